//! Classes inside subscribers: rules choose them, each has its guarantee, ceiling and share of what its subscriber gets, and its counters.

use super::in_place;
use crate::cases::assert_near;
use crate::lab::{Engine, Lab};
use crate::net::{Ns, Routed};
use crate::server::Server;
use crate::town::{SETTLE, address, box_between, end, listed, policy, subscriber};
use crate::traffic::{self, Flow, Outcome};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::time::Duration;

/// Ports that rules know, by the class that they lead to; packets to others are of no class.
const CALLS: u16 = 7000;
const REST: u16 = 7001;
const BULK: u16 = 7002;
const OTHER: u16 = 7003;

/// A town of "a", whose plan has classes, and "b", whose plan has none.
fn divided_town() -> Value {
    let mut town = policy(&[subscriber("a", "divided", "north"), subscriber("b", "work", "north")]);
    town["plans"]["divided"] = json!({
        "rate": { "down": "5mbit", "up": "1mbit" }, "ceil": { "down": "20mbit", "up": "5mbit" }, "queue": "fifo",
        "classes": [
            { "id": 0, "name": "calls", "rate": { "down": "4mbit" } },
            { "id": 1, "name": "rest", "weight": 3 },
            { "id": 4, "name": "bulk", "ceil": "3mbit", "limit": 50 },
        ],
    });
    town["default_class"] = 1.into();
    town["rules"] = json!([
        { "priority": 1, "dst_port": CALLS, "class_id": 0 },
        { "priority": 2, "dst_port": BULK, "class_id": 4 },
    ]);
    town
}

/// Sends to a subscriber so many Mbit/s on each port.
fn send(net: &Routed, name: &str, loads: &[(u16, u64)]) -> Vec<traffic::Streams> {
    let flow = |(port, mbit): &(u16, u64)| Flow::new(*port, &[1514], mbit * 1_000_000);
    loads.iter().map(|load| traffic::start(&net.server, &net.client, address(name), &[flow(load)])).collect()
}

/// The packets that each class inside a subscriber has sent, dropped and holds, by its name.
fn inside(lab: &Lab, ns: &Ns, name: &str) -> Vec<(String, [u64; 3])> {
    let shown = lab.sluice(ns, &["subscriber", "show", name, "--json"]).ok().stdout;
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    let Some(classes) = shown["lan0"]["classes"].as_array() else { return Vec::new() };
    let number = |value: &Value| value.as_u64().expect("a number");
    let of = |one: &Value| {
        let counts = [&one["sent"]["pkts"], &one["dropped_pkts"], &one["backlog"]["pkts"]].map(number);
        (one["name"].as_str().expect("a name").to_owned(), counts)
    };
    classes.iter().map(of).collect()
}

/// A class has its guarantee and its ceiling inside its subscriber, and the others share the rest; what they count adds up to what their subscriber
/// does. With a splitter, whose hook finds the class, and with a hook that does only that.
pub fn classes_share(lab: &Lab) {
    for splits in ["on", "off"] {
        let net = box_between(lab);
        let mut town = divided_town();
        town["link"]["split_gso"] = splits.into();
        let file = lab.policy(&town);
        lab.up(&net.router, "lan0", &file, &[]);
        let streams = send(&net, "a", &[(CALLS, 4), (REST, 30), (BULK, 30)]);
        let beside = send(&net, "b", &[(OTHER, 20)]);
        std::thread::sleep(Duration::from_millis(1300));
        let outcomes = end(streams);
        let beside = end(beside).remove(0);
        for ((what, mbit), outcome) in [("calls", 4.0), ("rest", 13.0), ("bulk", 3.0)].iter().zip(&outcomes) {
            assert_near(&format!("{what}, splitting {splits}"), outcome.bps(SETTLE, 0), mbit * 1e6, 0.01);
            assert!(outcome.in_order(), "{what}");
        }
        assert_eq!((outcomes[0].lost(), beside.lost()), (0, 0), "of what is guaranteed, and of another subscriber");
        await_empty(lab, &net.router, "a");
        let counted = inside(lab, &net.router, "a");
        let sent = |outcome: &Outcome| [outcome.received(), outcome.lost(), 0];
        let expected = ["calls", "rest", "bulk"].map(str::to_owned).into_iter().zip(outcomes.iter().map(sent));
        assert_eq!(counted, expected.collect::<Vec<_>>());
        let whole = counted.iter().fold([0; 3], |all, (_, own)| std::array::from_fn(|i| all[i] + own[i]));
        assert_eq!(listed(lab, &net.router, "lan0")["a"].1, whole, "a subscriber counts what its classes do");
        let status = lab.sluice(&net.router, &["status", "lan0", "--json"]).ok().stdout;
        let status: Value = serde_json::from_str(&status).expect("JSON");
        let classes = status["directions"][0]["classes"].as_array().expect("classes");
        let of_class = |name: &str| classes.iter().find(|one| one["name"] == name).expect("it is there");
        let bulk = &of_class("bulk")["sent"]["pkts"];
        assert_eq!(bulk.as_u64(), Some(outcomes[2].received()), "the class counts for all subscribers");
        let server = Server::start(lab, &net.router, &[]);
        let scraped = server.get("/metrics?subscribers=a").body;
        let labels = r#"interface="lan0",subscriber="a",site="north",plan="divided",class="bulk""#;
        for (what, count) in [("sent", outcomes[2].received()), ("dropped", outcomes[2].lost())] {
            let series = format!("sluice_subscriber_class_{what}_packets_total{{{labels}}} {count}\n");
            assert!(scraped.contains(&series), "{series} is not in {scraped}");
        }
        assert!(!server.get("/metrics?subscribers=b").body.contains("sluice_subscriber_class_"), "b has no classes");
        server.stop(Signal::SIGTERM);
        explains(lab, &net, &file);
        lab.down(&net.router, "lan0");
    }
}

fn await_empty(lab: &Lab, ns: &Ns, name: &str) {
    crate::command::await_that("queues to drain", Duration::from_secs(20), || listed(lab, ns, "lan0")[name].1[2] == 0);
}

/// `explain` names the class and its limits, on an interface and of a file; packets of no class are of the default one.
fn explains(lab: &Lab, net: &Routed, file: &str) {
    for target in ["lan0", file] {
        let ask = |port: &str, name: &str| {
            let asked = ["explain", target, "udp", "10.79.0.2:5000", "to", &format!("{}:{port}", address(name))];
            lab.sluice(&net.router, &asked).ok().stdout
        };
        let plain = ask("7002", "b");
        for text in
            ["class     4 bulk, which its subscriber does not have", "b, plan work; down", "queued in the queue of b"]
        {
            assert!(plain.contains(text), "{text}: {plain}");
        }
        for (port, class, queue) in [
            ("7002", "class 4 bulk: ceiling 3 Mbit/s", "queued in class bulk of a"),
            ("9", "class 1 rest: weight 3", "queued in class rest of a"),
        ] {
            let told = ask(port, "a");
            for text in [class, queue, "a: guarantee 5 Mbit/s, ceiling 20 Mbit/s", "north: "] {
                assert!(told.contains(text), "{text}: {told}");
            }
            // Those of a, north and the link. HTB tells of none.
            let is_told = told.matches("its burst is unused").count() > 2;
            assert_eq!(is_told, target == "lan0" && lab.engine == Engine::Qdisc, "{told}");
        }
    }
}

/// Plans with classes come and go while packets flow; rates change in place, and a plan with other classes makes other queues.
pub fn classes_change(lab: &Lab) {
    let net = box_between(lab);
    lab.up(&net.router, "lan0", &lab.policy(&divided_town()), &[]);
    let streams = send(&net, "a", &[(REST, 3)]).into_iter().chain(send(&net, "b", &[(CALLS, 3)])).collect();
    let set = |arguments: &[&str]| {
        let told = lab.sluice(&net.router, &[&["subscriber", "set"], arguments].concat()).ok();
        std::thread::sleep(Duration::from_millis(200));
        told
    };
    set(&["a", "--ceil", "15mbit"]);
    set(&["a", "--ceil", "10mbit/4mbit"]);
    assert_eq!(in_place::amendments(), 2, "the first one makes the index");
    assert_eq!(inside(lab, &net.router, "a").len(), 3);
    let told = set(&["b", "--plan", "divided"]);
    assert!(
        told.stdout.contains("classes none -> 0 calls, weight 1, rate down 4mbit; 1 rest (default), weight 3; 4 bulk"),
        "{told}"
    );
    assert_eq!(in_place::amendments(), 0, "other classes are other queues");
    let [(_, [sent, ..]), ..] = &inside(lab, &net.router, "b")[..] else { panic!("b has no classes") };
    assert!(*sent > 20, "{sent} calls since the change");
    set(&["b", "--plan", "work"]);
    assert_eq!(inside(lab, &net.router, "b"), []);
    // A class more, whose packets were the rest's before.
    let mut town = divided_town();
    town["plans"]["divided"]["classes"].as_array_mut().expect("classes").push(json!({ "id": 9, "name": "ninth" }));
    town["rules"].as_array_mut().expect("rules").push(json!({ "priority": 3, "dst_port": REST, "class_id": 9 }));
    let before = inside(lab, &net.router, "a");
    lab.sluice(&net.router, &["apply", "lan0", &lab.policy(&town)]).ok();
    std::thread::sleep(Duration::from_millis(200));
    let outcomes = end(streams);
    let counted = inside(lab, &net.router, "a");
    let rest = |all: &[(String, [u64; 3])]| all.iter().find(|(name, _)| name == "rest").map(|(_, [sent, ..])| *sent);
    assert!(rest(&before) > Some(20) && rest(&counted) >= rest(&before), "it stays: {before:?}, {counted:?}");
    let [.., (name, [sent, ..])] = &counted[..] else { panic!("a has no classes") };
    assert!(name == "ninth" && *sent > 20, "{counted:?}");
    for (outcome, may_lose) in outcomes.iter().zip([0, if lab.engine == Engine::Tc { 4 } else { 0 }]) {
        assert!(outcome.in_order() && outcome.lost() <= may_lose, "{} lost", outcome.lost());
    }
    // The queue learns classes from a hook, which a running interface does not get.
    let mut plain = policy(&[subscriber("a", "home", "north")]);
    plain["link"]["split_gso"] = "off".into();
    lab.sluice(&net.router, &["down", "lan0"]).ok();
    lab.up(&net.router, "lan0", &lab.policy(&plain), &[]);
    town["link"]["split_gso"] = "off".into();
    let refused = lab.sluice(&net.router, &["apply", "lan0", &lab.policy(&town)]).exits(2);
    refused.says("classes inside subscribers need a hook on departure").says("sluice down lan0");
    assert_eq!(listed(lab, &net.router, "lan0").len(), 1, "nothing has changed");
    lab.down(&net.router, "lan0");
}

/// The most urgent class goes first, up to its ceiling. HTB has no such thing inside a subscriber, and `up` says so.
pub fn urgent_classes(lab: &Lab) {
    let net = box_between(lab);
    let mut town = divided_town();
    town["plans"]["divided"]["scheduler"] = "strict_priority".into();
    town["plans"]["divided"]["classes"] = json!([
        { "id": 0, "name": "calls", "priority": 0, "ceil": "6mbit" },
        { "id": 1, "name": "rest", "priority": 1 },
        { "id": 4, "name": "bulk", "priority": 2 },
    ]);
    let file = lab.policy(&town);
    if lab.engine == Engine::Tc {
        let refused = lab.sluice(&net.router, &["up", "lan0", "--policy", &file, "--engine", "tc"]).exits(2);
        refused.says("engine tc cannot serve the classes of the plan divided by strict priority");
        return;
    }
    lab.up(&net.router, "lan0", &file, &[]);
    let streams = send(&net, "a", &[(CALLS, 10), (REST, 10), (BULK, 10)]);
    std::thread::sleep(Duration::from_millis(1300));
    for ((what, mbit), outcome) in [("calls", 6.0), ("rest", 10.0), ("bulk", 4.0)].iter().zip(end(streams)) {
        assert_near(what, outcome.bps(SETTLE, 0), mbit * 1e6, 0.01);
    }
    lab.down(&net.router, "lan0");
}

/// Classes inside a subscriber share by EEVDF and go by deadlines, each up to what their subscriber gets. HTB has neither, and `up` says so.
pub fn requests_and_ranks(lab: &Lab) {
    let net = box_between(lab);
    let mut town = divided_town();
    let plans = [
        ("eevdf", json!({ "weight": 3, "quantum": 600 }), json!({ "weight": 1 }), [15.0, 5.0], "weight 3, quantum 600"),
        (
            "pifo",
            json!({ "latency_budget": "2s" }),
            json!({ "latency_budget": "5ms" }),
            [8.0, 12.0],
            "latency budget 2s",
        ),
    ];
    for (scheduler, calls, rest, mbit, told) in plans {
        let plan = &mut town["plans"]["divided"];
        plan["scheduler"] = scheduler.into();
        plan["classes"] =
            json!([{ "id": 0, "name": "calls" }, { "id": 1, "name": "rest" }, { "id": 4, "name": "bulk" }]);
        for (class, keys) in [(0, &calls), (1, &rest), (2, &calls)] {
            plan["classes"][class].as_object_mut().expect("a class").extend(keys.as_object().expect("keys").clone());
        }
        if scheduler == "pifo" {
            plan["rank"] = "earliest_deadline".into();
        }
        let file = lab.policy(&town);
        if lab.engine == Engine::Tc {
            let refused = lab.sluice(&net.router, &["up", "lan0", "--policy", &file, "--engine", "tc"]).exits(2);
            refused.says(&format!("engine tc cannot serve the classes of the plan divided by {scheduler}"));
            continue;
        }
        lab.up(&net.router, "lan0", &file, &[]);
        let ask = ["explain", "lan0", "udp", "10.79.0.2:5000", "to", &format!("{}:{CALLS}", address("a"))];
        let text = lab.sluice(&net.router, &ask).ok().stdout;
        assert!(text.contains(told), "{told}: {text}");
        let streams = send(&net, "a", &[(CALLS, 30), (REST, 12)]);
        std::thread::sleep(Duration::from_millis(1300));
        for ((what, mbit), outcome) in ["calls", "rest"].iter().zip(mbit).zip(end(streams)) {
            assert_near(&format!("{what} by {scheduler}"), outcome.bps(SETTLE, 0), mbit * 1e6, 0.01);
            assert!(outcome.in_order(), "{what} by {scheduler}");
        }
        lab.down(&net.router, "lan0");
    }
}
