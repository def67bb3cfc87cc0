//! Subscribers, hosts that no list names, and class trees on a wire.

use super::{LONG, Middle, end, middle};
use crate::cases::assert_near;
use crate::command::{Process, await_that};
use crate::lab::Lab;
use crate::needs::is_icount;
use crate::server::Server;
use crate::town::listed;
use crate::traffic::{self, Flow, Outcome, Streams};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::time::Duration;

const SETTLE: Duration = Duration::from_millis(300);
/// Hosts behind m1, by their names: addresses there, and addresses on the other side to which each of them sends.
const HOSTS: [(&str, &str, &str); 4] = [
    ("a", "10.90.1.1", "10.90.2.1"),
    ("b", "10.90.1.2", "10.90.2.2"),
    ("c", "10.90.1.3", "10.90.2.3"),
    ("d", "10.90.1.4", "10.90.2.4"),
];

/// The wire, with several hosts behind m1.
fn street(lab: &Lab) -> Middle {
    let net = middle(lab);
    for (_, own, other) in HOSTS {
        net.far.ip(&format!("addr add {own}/32 dev f0"));
        net.near.ip(&format!("addr add {other}/32 dev n0"));
        net.near.ip(&format!("route add {own}/32 dev n0"));
        net.far.ip(&format!("route add {other}/32 dev f0 src {own}"));
        net.near.ip(&format!("neigh replace {own} dev n0 lladdr 02:00:00:00:90:02 nud permanent"));
        net.far.ip(&format!("neigh replace {other} dev f0 lladdr 02:00:00:00:90:01 nud permanent"));
    }
    net
}

fn subscriber(name: &str, plan: &str, site: &str) -> Value {
    let (_, own, _) = HOSTS.iter().find(|(known, _, _)| *known == name).expect("a host");
    json!({ "name": name, "addresses": [own], "plan": plan, "site": site })
}

fn policy(subscribers: &[Value]) -> Value {
    json!({
        "name": "street",
        "link": { "rate": { "down": "30mbit", "up": "10mbit" }, "overhead": 14 },
        "subscriber_side": ["m1"],
        "sites": { "mast": { "ceil": { "down": "26mbit" } } },
        "plans": {
            "capped": { "ceil": { "down": "8mbit", "up": "2mbit" }, "weight": 5, "queue": "fifo" },
            "light": { "queue": "fifo" },
            "heavy": { "weight": 3, "queue": "fifo" },
        },
        "subscribers": subscribers,
    })
}

fn three() -> Vec<Value> {
    vec![subscriber("a", "capped", "mast"), subscriber("b", "light", "mast"), subscriber("c", "heavy", "mast")]
}

/// Begins a wire with the rates of its policy.
fn begin(lab: &Lab, net: &Middle, policy: &Value) -> Process {
    let process = lab.start(&net.machine, &["wire", "m0", "m1", "--policy", &lab.policy(policy)]);
    process.await_stdout_lines("packets pass", 1);
    process
}

/// Streams to some hosts, or from them, of so many Mbit/s.
fn load(net: &Middle, down: bool, loads: &[(&str, u64)]) -> Vec<Streams> {
    let start = |(place, (name, mbit)): (usize, &(&str, u64))| {
        let (_, own, other) = HOSTS.iter().find(|(known, _, _)| known == name).expect("a host");
        let flows = [Flow::new(7000 + place as u16, &[1514], mbit * 1_000_000)];
        match down {
            true => traffic::start(&net.near, &net.far, own, &flows),
            false => traffic::start(&net.far, &net.near, other, &flows),
        }
    };
    loads.iter().enumerate().map(start).collect()
}

fn after(streams: Vec<Streams>, time: Duration) -> Vec<Outcome> {
    std::thread::sleep(time);
    crate::town::end(streams)
}

/// On a machine that gives the process no time, packets pass it by.
#[track_caller]
fn assert_rates(outcomes: &[Outcome], mbit: &[(&str, f64)]) {
    for (outcome, (name, mbit)) in outcomes.iter().zip(mbit) {
        assert!(outcome.in_order(), "{name}");
        if is_icount() {
            assert_near(name, outcome.bps(SETTLE, 0), mbit * 1e6, 0.02);
        }
    }
}

/// Ceilings hold and the rest is shared by weight, towards subscribers and from them; what commands say is what was sent.
pub fn plans_hold(lab: &Lab) {
    let net = street(lab);
    let before = [net.machine.state("m0"), net.machine.state("m1")];
    let process = begin(lab, &net, &policy(&three()));
    let streams = load(&net, true, &[("a", 12), ("b", 12), ("c", 24), ("d", 2)]);
    let down = after(streams, Duration::from_millis(1300));
    // The site has 26 Mbit/s.
    assert_rates(&down, &[("down to a", 8.0), ("down to b", 4.5), ("down to c", 13.5), ("down to nobody's d", 2.0)]);
    let up = after(load(&net, false, &[("a", 5), ("b", 8), ("c", 10)]), Duration::from_millis(1300));
    assert_rates(&up, &[("up from a", 2.0), ("up from b", 2.0), ("up from c", 6.0)]);
    let one = lab.sluice(&net.machine, &["status", "a"]).ok().stdout;
    for heading in ["arrivals at m0, which leave by m1", "arrivals at m1, which leave by m0"] {
        assert!(one.contains(heading) && !one.contains("departures"), "{one}");
    }
    for (dev, outcomes) in [("m0", &down), ("m1", &up)] {
        let counts = || listed(lab, &net.machine, dev);
        await_that("queues are empty", LONG, || counts().values().all(|(_, [_, _, queued])| *queued == 0));
        for (name, outcome) in ["a", "b", "c"].iter().zip(outcomes) {
            let (_, [sent, dropped, _]) = counts()[*name];
            assert!(dropped > 0 && outcome.lost() > 0, "{dev}: {name} is full");
            if is_icount() {
                assert_eq!((sent, dropped), (outcome.received(), outcome.lost()), "{dev}: {name}");
            }
        }
    }
    shown(lab, &net);
    end(process);
    assert_eq!([net.machine.state("m0"), net.machine.state("m1")], before);
}

/// Commands tell the same of subscribers, whatever the engine.
fn shown(lab: &Lab, net: &Middle) {
    let told = |arguments: &[&str]| lab.sluice(&net.machine, arguments).ok().stdout;
    for (dev, way) in [("m0", "down, by destination"), ("m1", "up, by source")] {
        let text = told(&["status", dev]);
        for part in ["engine xsk", &format!("subscribers (3; {way})"), "mast", "at arrival at"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    let early = told(&["status", "m0", "--json"]);
    let early: Value = serde_json::from_str(&early).expect("JSON");
    let class = &early["directions"][1]["classes"][0];
    assert!(class["drops"]["early"].as_u64() > Some(0), "the hook has dropped: {class}");
    let asked = ["udp", "10.90.2.1:5000", "to", "10.90.1.1:7000", "--arriving"];
    let text = told(&[&["explain", "m0"], &asked[..]].concat());
    for part in ["a, plan capped; down, by its destination", "a: ceiling 8 Mbit/s", "queued in the queue of a"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let top: Value = serde_json::from_str(&told(&["top", "m0", "--once", "--json"])).expect("JSON");
    let mut sites = top["interfaces"][0]["tree"]["sites"].as_array().expect("sites").iter();
    assert!(sites.any(|site| site["name"] == "mast"), "{top}");
    let server = Server::start(lab, &net.machine, &[]);
    let metrics = server.get("/metrics").body;
    let line = |line: &&str| line.starts_with("sluice_") && line.contains("mast") && line.contains("interface=\"m0\"");
    assert!(metrics.lines().any(|one| line(&one)), "{metrics}");
    server.stop(Signal::SIGTERM);
}

/// One subscriber's ceiling changes, one comes, one moves, one goes, by commands and by policies: nothing of others is lost or overtaken.
pub fn subscribers_change(lab: &Lab) {
    let net = street(lab);
    let process = begin(lab, &net, &policy(&three()));
    let streams = load(&net, true, &[("a", 6), ("b", 3), ("c", 3), ("d", 2)]);
    std::thread::sleep(Duration::from_millis(300));
    let change = |arguments: &[&str]| {
        let from = traffic::now_ns();
        let output = lab.sluice(&net.machine, &[&["subscriber"], arguments].concat()).ok();
        std::thread::sleep(Duration::from_millis(300));
        (output, from, traffic::now_ns())
    };
    let server = Server::start(lab, &net.machine, &[]);
    change(&["set", "b", "--site", ""]);
    let (told, from, to) = change(&["set", "a", "--ceil", "3mbit"]);
    assert!(told.stdout.contains("subscriber a: ceil.down 8mbit -> 3mbit"), "{told}");
    change(&["set", "a", "--ceil", ""]);
    change(&["add", "d", "--addresses", "10.90.1.4", "--plan", "capped", "--site", "mast"]);
    change(&["remove", "c"]);
    let counted = listed(lab, &net.machine, "m0");
    let outcomes = crate::town::end(streams);
    if is_icount() {
        let slow = outcomes[0].between(from + 150_000_000, to).bps(Duration::ZERO, 0);
        assert_near("a while its ceiling was 3 Mbit/s", slow, 3e6, 0.05);
        assert!(counted["a"].1[0] > 500 && counted["d"].1[0] > 20, "{counted:?}");
        assert!(outcomes[1..].iter().all(|outcome| outcome.lost() == 0));
    }
    assert!(outcomes.iter().all(Outcome::in_order));
    assert_eq!(counted.keys().collect::<Vec<_>>(), ["a", "b", "d"]);
    // The other side has changed likewise, and whole policies do, for a time or for good.
    assert_eq!(listed(lab, &net.machine, "m1").keys().collect::<Vec<_>>(), ["a", "b", "d"]);
    let other = lab.policy(&policy(&[subscriber("a", "light", "mast"), subscriber("d", "capped", "mast")]));
    let ceiling = || listed(lab, &net.machine, "m0")["a"].0;
    assert_eq!(ceiling(), 8_000_000);
    lab.sluice(&net.machine, &["apply", "m0", &other, "--confirm", "60s"]).ok();
    assert_eq!((ceiling(), listed(lab, &net.machine, "m0").len()), (0, 2));
    lab.sluice(&net.machine, &["rollback", "m0"]).ok();
    assert_eq!((ceiling(), listed(lab, &net.machine, "m0").len()), (8_000_000, 3));
    lab.sluice(&net.machine, &["apply", "m0", &other, "--confirm", "60s"]).ok();
    lab.sluice(&net.machine, &["confirm", "m0"]).ok();
    assert_eq!((ceiling(), listed(lab, &net.machine, "m0").len()), (0, 2));
    lab.sluice(&net.machine, &["subscriber", "set", "a", "--plan", "hom"]).exits(2).says("there is no plan \"hom\"");
    samples_follow(lab, &net, &server);
    server.stop(Signal::SIGTERM);
    end(process);
}

/// The server reads anew, when a policy or a subscriber has changed, the values that it keeps from one sample to the next: its plan, its site, the numbers of leaves.
fn samples_follow(lab: &Lab, net: &Middle, server: &Server) {
    let on_m0 = |name: &str, key: &str| {
        let reply = server.get(&format!("/api/interfaces/m0/subscriber?name={name}"));
        (reply.status == 200).then(|| reply.json()[key].clone())
    };
    let becomes = |name: &str, key: &str, value: Option<Value>| {
        await_that("the next sample", LONG, || on_m0(name, key) == value);
    };
    becomes("a", "plan", Some(json!("light")));
    let change = |arguments: &[&str]| lab.sluice(&net.machine, &[&["subscriber"], arguments].concat()).ok();
    change(&["set", "a", "--plan", "capped", "--interface", "m0"]);
    becomes("a", "plan", Some(json!("capped")));
    becomes("a", "ceil_bps", Some(json!(8_000_000)));
    change(&["add", "b", "--addresses", "10.90.1.2", "--plan", "light", "--interface", "m0"]);
    becomes("b", "plan", Some(json!("light")));
    // Packets count for the one whose leaf it is, whatever numbers others have.
    change(&["remove", "a", "--interface", "m0"]);
    becomes("a", "plan", None);
    let before = on_m0("b", "sent").expect("it is there")["pkts"].as_u64();
    drop(after(load(net, true, &[("b", 1)]), Duration::from_millis(300)));
    await_that("packets of b", LONG, || on_m0("b", "sent").is_some_and(|sent| sent["pkts"].as_u64() > before));
}

/// Without its process packets pass; changes are made meanwhile, and counters stay.
pub fn process_of_a_tree_dies(lab: &Lab) {
    let net = street(lab);
    let mut process = begin(lab, &net, &policy(&three()));
    let streams = load(&net, true, &[("a", 20), ("b", 2)]);
    std::thread::sleep(Duration::from_millis(500));
    process.kill();
    lab.sluice(&net.machine, &["subscriber", "set", "a", "--ceil", "4mbit"]).ok();
    lab.sluice(&net.machine, &["subscriber", "remove", "c"]).ok();
    std::thread::sleep(Duration::from_millis(300));
    // Until the hook takes the process for dead, it drops early what the leaf has no room for.
    let counted = listed(lab, &net.machine, "m0");
    let from_ns = traffic::now_ns();
    let outcomes = after(streams, Duration::from_millis(400));
    let bps = outcomes[0].between(from_ns, from_ns + 350_000_000).bps(Duration::ZERO, 0);
    assert!(bps > 15e6 && outcomes.iter().all(Outcome::in_order), "unshaped: {bps}");
    let process = lab.start(&net.machine, &["wire", "m0", "m1"]);
    process.await_stdout_lines("packets pass", 1);
    let stayed = listed(lab, &net.machine, "m0");
    assert_eq!(stayed["a"].1[..2], counted["a"].1[..2], "counters stay");
    assert_eq!((stayed["a"].1[2], stayed.len()), (0, 2), "nothing is queued, and c has gone");
    let again = after(load(&net, true, &[("a", 10)]), Duration::from_millis(900));
    assert_rates(&again, &[("a again", 4.0)]);
    // One that hangs drops what it held.
    let streams = load(&net, true, &[("a", 10)]);
    std::thread::sleep(Duration::from_millis(300));
    process.signal(Signal::SIGSTOP);
    std::thread::sleep(Duration::from_millis(200));
    process.signal(Signal::SIGCONT);
    assert!(after(streams, Duration::from_millis(300))[0].in_order(), "nothing is late");
    end(process);
}

/// Each host of a group that no list names has a ceiling of its own.
pub fn each_host_has_its_own(lab: &Lab) {
    let net = street(lab);
    let groups = json!({ "guests": { "addresses": ["10.90.1.0/24"], "plan": "guest", "hosts": 16 } });
    let plans = json!({ "guest": { "ceil": { "down": "4mbit", "up": "2mbit" }, "queue": "fifo" } });
    let mut own = policy(&[subscriber("d", "light", "mast")]);
    own["each_host"] = groups;
    own["plans"]["guest"] = plans["guest"].clone();
    let process = begin(lab, &net, &own);
    let down = after(load(&net, true, &[("a", 8), ("b", 6), ("d", 8)]), Duration::from_millis(900));
    assert_rates(&down, &[("a", 4.0), ("b", 4.0), ("d, which is listed", 8.0)]);
    let up = after(load(&net, false, &[("a", 4), ("b", 5)]), Duration::from_millis(900));
    assert_rates(&up, &[("a", 2.0), ("b", 2.0)]);
    let counted = listed(lab, &net.machine, "m0");
    assert!(counted.contains_key("guests 10.90.1.1") && counted.contains_key("guests 10.90.1.2"), "{counted:?}");
    end(process);
}

/// Each level of a class tree shares what it gets, and classes inside a subscriber do; trees change.
pub fn class_trees_share(lab: &Lab) {
    let net = street(lab);
    let rules: Vec<Value> = [(0, 7000), (1, 7001), (2, 7002)]
        .iter()
        .map(|(class, port)| json!({ "priority": class + 1, "dst_port": port, "class_id": class }))
        .collect();
    let office = |weight: u64| {
        json!({
            "name": "office",
            "link": { "rate": "20mbit", "overhead": 14 },
            "classes": [
                { "name": "office", "ceil": "12mbit", "weight": 3 },
                { "name": "floor", "parent": "office", "weight": weight },
                { "id": 0, "name": "calls", "parent": "floor", "rate": "4mbit" },
                { "id": 1, "name": "web", "parent": "floor", "limit": 100 },
                { "id": 2, "name": "backup", "parent": "office", "limit": 100 },
                { "id": 63, "name": "guests", "limit": 100 },
            ],
            "rules": rules,
        })
    };
    let process = begin(lab, &net, &office(2));
    let loads = [("a", 3), ("a", 15), ("b", 15), ("b", 15)];
    let outcomes = after(load(&net, true, &loads), Duration::from_millis(1200));
    // 4 of 12 are guaranteed to the floor, which gets two thirds of the rest.
    let shares = [("calls", 3.0), ("web", 1.0 + 16.0 / 3.0), ("backup", 8.0 / 3.0), ("guests", 8.0)];
    assert_rates(&outcomes, &shares);
    let status = lab.status(&net.machine, "m0");
    if is_icount() {
        assert_eq!(outcomes[0].lost(), 0, "of what is guaranteed");
        let queued = |class| status.ingress(class).sent.pkts + status.ingress(class).dropped.pkts;
        assert_eq!([0, 1, 2].map(queued), [0, 1, 2].map(|place: u8| outcomes[usize::from(place)].sent));
    }
    let text = lab.sluice(&net.machine, &["status", "m0"]).ok().stdout;
    assert!(text.contains("floor") && text.contains("backup"), "{text}");
    lab.sluice(&net.machine, &["apply", "m0", &lab.policy(&office(1))]).ok();
    let outcomes = after(load(&net, true, &loads), Duration::from_millis(1200));
    assert_rates(&outcomes, &[("calls", 3.0), ("web", 5.0), ("backup", 4.0), ("guests", 8.0)]);
    end(process);
}

/// Classes inside a subscriber share what it gets.
pub fn classes_inside(lab: &Lab) {
    let net = street(lab);
    let mut own = policy(&[subscriber("a", "home", "mast"), subscriber("b", "light", "mast")]);
    own["plans"]["home"] = json!({
        "ceil": { "down": "8mbit", "up": "4mbit" },
        "classes": [
            { "id": 0, "name": "calls", "rate": "1mbit", "weight": 3, "queue": "fifo" },
            { "id": 1, "name": "rest", "queue": "fifo" },
        ],
    });
    own["rules"] = json!([{ "priority": 1, "dst_port": 7000, "class_id": 0 }]);
    own["default_class"] = json!(1);
    let process = begin(lab, &net, &own);
    let outcomes = after(load(&net, true, &[("a", 8), ("a", 8), ("b", 5)]), Duration::from_millis(1200));
    assert_rates(&outcomes, &[("calls of a", 1.0 + 7.0 * 0.75), ("the rest of a", 1.75), ("b", 5.0)]);
    let asked = ["explain", "m0", "udp", "10.90.2.1:5000", "to", "10.90.1.1:7000", "--arriving"];
    let text = lab.sluice(&net.machine, &asked).ok().stdout;
    assert!(text.contains("queued in class calls of a"), "{text}");
    end(process);
}

/// Conditions that a wire cannot see are refused, and so is a policy that does not say where the subscribers are.
pub fn bad_trees(lab: &Lab) {
    let net = street(lab);
    let state = [net.machine.state("m0"), net.machine.state("m1")];
    let ask = |policy: &Value, more: &[&str]| {
        let file = lab.policy(policy);
        lab.sluice(&net.machine, &[&["wire", "m0", "m1", "--policy", &file], more].concat())
    };
    let with = |key: &str, value: Value| {
        let mut own = policy(&three());
        own[key] = value;
        own
    };
    for address in ["vlan:100", "mark:7"] {
        let own = with("subscribers", json!([{ "name": "x", "addresses": [address], "plan": "light" }]));
        ask(&own, &[]).exits(2).says("subscriber \"x\"").says(address).says("give the subscriber addresses instead");
    }
    ask(&with("subscriber_side", json!(["eth9"])), &[]).exits(2).says("neither of m0 and m1");
    ask(&with("subscriber_side", json!(["m0", "m1"])), &[]).exits(2).says("both of m0 and m1");
    ask(&with("link", json!({ "rate": { "down": "30mbit" } })), &[]).exits(2).says("m1 has no rate").says("--rate");
    assert_eq!([net.machine.state("m0"), net.machine.state("m1")], state, "nothing has changed");
    let process = begin(lab, &net, &policy(&three()));
    let turned = lab.policy(&with("subscriber_side", json!(["m0"])));
    lab.sluice(&net.machine, &["apply", "m0", &turned]).exits(2).says("on which side of the subscribers");
    let flat = lab.policy(&crate::policy::three());
    lab.sluice(&net.machine, &["apply", "m0", &flat]).exits(2).says("flat classes");
    let vlan = ["subscriber", "add", "x", "--addresses", "vlan:100", "--plan", "light"];
    lab.sluice(&net.machine, &vlan).exits(2).says("vlan:100");
    assert_eq!(listed(lab, &net.machine, "m0").len(), 3);
    end(process);
}
