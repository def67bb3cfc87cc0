//! Early drop: what arrives at one interface for a subscriber's full queue at another is dropped before it is routed.

use crate::cases::assert_near;
use crate::cases::crash::points;
use crate::command::await_that;
use crate::lab::Lab;
use crate::net::{Ns, Routed, SERVER};
use crate::town::{SETTLE, address, box_between, listed, policy, subscriber};
use crate::traffic::{self, Flow, Outcome};
use serde_json::{Value, json};
use std::fs;
use std::net::UdpSocket;
use std::time::Duration;

/// Ports of a flood, and of a flow that sends little.
const HEAVY: u16 = 7000;
const LIGHT: u16 = 7001;
const FRAME: usize = 1514;
/// The faults before and after commands attach and detach the hook; other tests are killed at all of them.
const AROUND_HOOK: [&str; 5] = ["up-forwarding", "up-early-drop", "down-recorded", "down-forwarding", "down-pins"];

/// A town of "a", whose packets queue by flow, "b" with one queue, and "c".
fn flooded_town() -> Value {
    let mut town = policy(&[
        subscriber("a", "flows", "north"),
        subscriber("b", "home", "north"),
        subscriber("c", "work", "south"),
    ]);
    town["plans"]["flows"] = json!({ "ceil": { "down": "20mbit", "up": "5mbit" }, "queue": "flows", "limit": 200 });
    town["sites"]["north"] = json!({});
    town
}

fn both_up(lab: &Lab, net: &Routed, policy: &Value) {
    let policy = lab.policy(policy);
    lab.up(&net.router, "lan0", &policy, &[]);
    lab.up(&net.router, "wan0", &policy, &[]);
}

fn both_down(lab: &Lab, net: &Routed) {
    lab.down(&net.router, "lan0");
    lab.down(&net.router, "wan0");
}

fn status(lab: &Lab, ns: &Ns, interface: &str) -> Value {
    let shown = lab.sluice(ns, &["status", interface, "--json"]).ok().stdout;
    serde_json::from_str(&shown).expect("JSON")
}

/// The interfaces at which the hook of an interface is, as its status says.
fn places(lab: &Lab, ns: &Ns, interface: &str) -> Vec<String> {
    serde_json::from_value(status(lab, ns, interface)["tree"]["early_drop_at"].clone()).expect("names")
}

/// Packets that an interface has dropped early, and all that it has dropped.
fn dropped(lab: &Lab, ns: &Ns, interface: &str) -> (u64, u64) {
    let status = status(lab, ns, interface);
    let classes = status["directions"][0]["classes"].as_array().expect("classes");
    let sum = |of: &dyn Fn(&Value) -> &Value| classes.iter().filter_map(|class| of(class).as_u64()).sum();
    (sum(&|class| &class["drops"]["early"]), sum(&|class| &class["dropped"]["pkts"]))
}

/// The packets to a subscriber and the counters of the tree agree: each was sent, dropped or is queued.
#[track_caller]
fn is_counted(lab: &Lab, ns: &Ns, interface: &str, name: &str, outcomes: &[&Outcome]) {
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().copied().map(of).sum::<u64>();
    let (_, [sent, dropped, queued]) = listed(lab, ns, interface)[name];
    assert_eq!((sent, dropped + queued), (sum(Outcome::received), sum(Outcome::lost)), "{name}");
}

/// Floods to two subscribers are dropped where they arrive; what else is sent to them and to a third one loses nothing. Each packet is counted once.
pub fn floods_are_dropped_on_arrival(lab: &Lab) {
    let net = box_between(lab);
    both_up(lab, &net, &flooded_town());
    assert_eq!([places(lab, &net.router, "lan0"), places(lab, &net.router, "wan0")], [["wan0"], ["lan0"]]);
    let start = |name: &str, flows: &[Flow]| traffic::start(&net.server, &net.client, address(name), flows);
    let streams = [
        start("a", &[Flow::new(HEAVY, &[FRAME], 60_000_000), Flow::new(LIGHT, &[200], 400_000)]),
        start("b", &[Flow::new(HEAVY + 2, &[FRAME], 60_000_000)]),
        start("c", &[Flow::new(HEAVY + 3, &[FRAME], 5_000_000)]),
    ];
    std::thread::sleep(Duration::from_millis(1200));
    streams.iter().for_each(traffic::Streams::stop);
    let outcomes = streams.map(traffic::Streams::finish_lossy);
    let [a, b, c] = &outcomes;
    await_that("queues to drain", Duration::from_secs(20), || {
        listed(lab, &net.router, "lan0").values().all(|(_, [_, _, queued])| *queued == 0)
    });
    is_counted(lab, &net.router, "lan0", "a", &[&a[0], &a[1]]);
    is_counted(lab, &net.router, "lan0", "b", &[&b[0]]);
    is_counted(lab, &net.router, "lan0", "c", &[&c[0]]);
    let (early, all) = dropped(lab, &net.router, "lan0");
    eprintln!("    {early} of {all} dropped early; {} of the light flow sent", a[1].sent);
    assert_eq!((a[1].lost(), c[0].lost()), (0, 0), "a light flow, and another subscriber");
    assert!(early * 10 >= all * 9 && all > 1000, "{early} of {all}");
    for (name, outcome) in [("a", &a[0]), ("b", &b[0])] {
        // The light flow has a fiftieth.
        let due = if name == "a" { 19.6e6 } else { 20e6 };
        assert_near(&format!("down to {name}"), outcome.bps(SETTLE, 0), due, 0.01);
        assert!(outcome.in_order(), "{name}");
    }
    let shown = lab.sluice(&net.router, &["status", "lan0"]).ok().stdout;
    assert!(shown.contains("dropped early, where queues are full: at arrival at wan0"), "{shown}");
    upwards(lab, &net);
    both_down(lab, &net);
}

/// A flood from a subscriber is dropped where it arrives. Packets to the box itself and to other subscribers come from the same address, and pass.
fn upwards(lab: &Lab, net: &Routed) {
    let own = address("b");
    net.client.ip(&format!("route replace default via 10.78.0.1 src {own}"));
    net.client.ip(&format!("route replace 10.78.0.1/32 dev c0 src {own}"));
    let before = dropped(lab, &net.router, "wan0");
    let flood = traffic::start(&net.client, &net.server, SERVER, &[Flow::new(7100, &[FRAME], 40_000_000)]);
    std::thread::sleep(Duration::from_millis(300));
    let calls = net.router.inside(|| UdpSocket::bind("10.78.0.1:7200").expect("a socket"));
    calls.set_read_timeout(Some(Duration::from_secs(10))).expect("a time");
    let caller = net.client.inside(|| UdpSocket::bind(format!("{own}:7201")).expect("a socket"));
    for number in 0..20_u8 {
        net.client.inside(|| caller.send_to(&[number], "10.78.0.1:7200").expect("sending"));
        let mut heard = [0];
        calls.recv(&mut heard).expect("a packet to the box is not dropped");
        assert_eq!(heard, [number]);
    }
    let outcome = flood.stop_after(Duration::from_millis(700)).remove(0);
    let (early, all) = dropped(lab, &net.router, "wan0");
    eprintln!("    up: {} of {} dropped early", early - before.0, all - before.1);
    assert_eq!(all - before.1, outcome.lost());
    assert!((early - before.0) * 10 >= outcome.lost() * 9 && outcome.lost() > 500, "{early} of {all}");
    assert_near("up from b", outcome.bps(SETTLE, 0), 5e6, 0.01);
}

/// Hosts of a group have their packets dropped early once they have queues of their own; a host that comes gets its queue from the tree.
pub fn hosts_of_a_group(lab: &Lab) {
    let net = box_between(lab);
    let office = json!({
        "name": "office",
        "link": { "rate": "100mbit", "overhead": 14 },
        "subscriber_side": ["lan0"],
        "plans": { "guest": { "ceil": "10mbit", "queue": "fifo" } },
        "each_host": { "guests": { "addresses": ["10.78.0.0/24"], "plan": "guest", "hosts": 64 } },
    });
    both_up(lab, &net, &office);
    let start = |name: &str, port: u16, mbit: u64| {
        traffic::start(&net.server, &net.client, address(name), &[Flow::new(port, &[FRAME], mbit * 1_000_000)])
    };
    let flood = start("b", HEAVY, 50);
    std::thread::sleep(Duration::from_millis(400));
    let beside = start("c", LIGHT, 5);
    std::thread::sleep(Duration::from_millis(600));
    let [flood, beside] = [flood, beside].map(|stream| {
        stream.stop();
        stream.finish_lossy().remove(0)
    });
    let (early, all) = dropped(lab, &net.router, "lan0");
    assert_eq!((beside.lost(), all), (0, flood.lost()), "each loss is of the flood, and counted");
    assert!(early * 10 >= all * 9 && all > 500, "{early} of {all}");
    is_counted(lab, &net.router, "lan0", &format!("guests {}", address("b")), &[&flood]);
    is_counted(lab, &net.router, "lan0", &format!("guests {}", address("c")), &[&beside]);
    both_down(lab, &net);
}

/// The hook is where the policy is on the other side: it comes and goes with `up`, `down` and `apply`, `ensure` puts it back, and a command that is
/// killed leaves none behind.
pub fn the_hook_follows_the_policy(lab: &Lab) {
    let net = box_between(lab);
    let [own, mut other] = [flooded_town(), flooded_town()];
    other["name"] = "elsewhere".into();
    let (own, other) = (lab.policy(&own), lab.policy(&other));
    let lan = net.router.state("lan0");
    let at = |interface: &str| places(lab, &net.router, interface);
    let none: [&str; 0] = [];
    let links = || {
        let pins = fs::read_dir(net.router.pins("lan0")).expect("pins of lan0").flatten();
        pins.filter(|pin| pin.file_name().to_string_lossy().starts_with("link_early_")).count()
    };
    lab.up(&net.router, "lan0", &own, &[]);
    assert_eq!(at("lan0"), none, "wan0 has no policy");
    let wan = net.router.state("wan0");
    lab.up(&net.router, "wan0", &own, &[]);
    assert_eq!([at("lan0"), at("wan0")], [["wan0"], ["lan0"]]);
    fs::remove_file(net.router.pins("lan0").join(format!("link_early_{}", net.router.ifindex("wan0"))))
        .expect("the link");
    let missing = "the hook that drops early what arrives at wan0 is gone";
    assert_eq!(status(lab, &net.router, "lan0")["missing"], json!([missing]));
    let told = lab.sluice(&net.router, &["ensure", "lan0"]).ok().stdout;
    assert!(told.contains(missing) && at("lan0") == ["wan0"], "{told}");
    lab.sluice(&net.router, &["apply", "wan0", &other]).ok();
    assert_eq!([at("lan0"), at("wan0")], [none, none], "they have two policies");
    lab.killed_at("apply-noted", &net.router, &["apply", "wan0", &own]);
    lab.sluice(&net.router, &["ensure"]).ok();
    assert_eq!([at("lan0"), at("wan0")], [["wan0"], ["lan0"]]);
    lab.down(&net.router, "wan0");
    assert_eq!((at("lan0"), links()), (Vec::new(), 0));
    assert_eq!(net.router.state("wan0"), wan);
    for point in points("up").into_iter().filter(|point| AROUND_HOOK.contains(point)) {
        lab.killed_at(point, &net.router, &["up", "wan0", "--policy", &own]);
        lab.down(&net.router, "wan0");
        assert_eq!((at("lan0"), links()), (Vec::new(), 0), "{point}");
    }
    for point in points("down").into_iter().filter(|point| AROUND_HOOK.contains(point)) {
        lab.up(&net.router, "wan0", &own, &[]);
        assert_eq!(at("lan0"), ["wan0"]);
        lab.killed_at(point, &net.router, &["down", "wan0"]);
        assert_eq!(at("lan0") == ["wan0"], point == "down-recorded", "the hook goes first: {point}");
        lab.sluice(&net.router, &["down", "wan0"]);
        assert_eq!((at("lan0"), links()), (Vec::new(), 0), "{point}");
        assert_eq!(status(lab, &net.router, "lan0")["missing"], json!([]), "{point}");
    }
    lab.up(&net.router, "wan0", &own, &[]);
    net.router.ip("link del wan0");
    assert_eq!((at("lan0"), &status(lab, &net.router, "lan0")["missing"]), (Vec::new(), &json!([])));
    lab.sluice(&net.router, &["ensure", "lan0"]).ok();
    assert_eq!(links(), 0, "no pin is left of an interface that has gone");
    lab.down(&net.router, "wan0");
    lab.down(&net.router, "lan0");
    assert_eq!(net.router.state("lan0"), lan.replace(" wan0", ""));
}
