//! Class trees: ceilings and guarantees hold at each level, what is left is shared by level, and the tree changes while packets flow.

use crate::cases::assert_near;
use crate::lab::{Engine, Lab};
use crate::needs::Need;
use crate::net::{B, Pair};
use crate::suite::Suite;
use crate::traffic::{self, Flow, Outcome};
use serde_json::{Value, json};
use std::net::UdpSocket;
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("class_tree")
        .both("each_level_shares_what_it_gets", &[Need::Icount], shares)
        .both("it_changes_while_packets_flow", &[], changes)
        .both("urgent_classes_go_first", &[Need::Icount], urgent)
        .both("schedulers_share_as_they_say", &[Need::Icount], schedulers)
        .both("requests_and_ranks_order_classes", &[Need::Icount], requests_and_ranks)
}

/// An address of the network that no host has, with a port.
const UNUSED_ADDRESS: &str = "10.77.0.99:9";
const SETTLE: Duration = Duration::from_millis(300);
/// Leaf classes, with their names and ports.
const CALLS: (u8, &str, u16) = (0, "calls", 7000);
const WEB: (u8, &str, u16) = (1, "web", 7001);
const BACKUP: (u8, &str, u16) = (2, "backup", 7002);
const GUESTS: (u8, &str, u16) = (63, "guests", 7003);

/// A class that comes and goes, whose packets are the guests' before and after.
const NEW: (u8, &str, u16) = (9, "new", 7004);

/// An office with a floor inside, beside guests, who also have what no rule matches.
fn office() -> Value {
    json!({
        "name": "office",
        "link": { "rate": "20mbit", "overhead": 14 },
        "classes": [
            { "name": "office", "ceil": "12mbit", "weight": 3 },
            { "id": CALLS.0, "name": CALLS.1, "parent": "floor", "rate": "4mbit" },
            { "id": WEB.0, "name": WEB.1, "parent": "floor", "limit": 100 },
            { "id": BACKUP.0, "name": BACKUP.1, "parent": "office", "limit": 100 },
            { "id": GUESTS.0, "name": GUESTS.1, "limit": 100 },
            { "name": "floor", "parent": "office", "weight": 2 },
        ],
        "rules": [
            { "priority": 1, "dst_port": CALLS.2, "class_id": CALLS.0 },
            { "priority": 2, "dst_port": WEB.2, "class_id": WEB.0 },
            { "priority": 3, "dst_port": BACKUP.2, "class_id": BACKUP.0 },
        ],
    })
}

/// Streams to the ports of classes, of so many Mbit/s each.
fn send(pair: &Pair, loads: &[((u8, &str, u16), u64)]) -> traffic::Streams {
    let flows: Vec<Flow> =
        loads.iter().map(|((_, _, port), mbit)| Flow::new(*port, &[1514], mbit * 1_000_000)).collect();
    traffic::start(&pair.a, &pair.b, B, &flows)
}

fn status(lab: &Lab, pair: &Pair) -> Value {
    let output = lab.sluice(&pair.a, &["status", "a0", "--json"]).ok();
    serde_json::from_str(&output.stdout).expect("JSON")
}

/// Packets that a class has sent, dropped and holds, by its name.
fn counted(status: &Value, name: &str) -> [u64; 3] {
    let classes = status["directions"][0]["classes"].as_array().expect("classes");
    let class = classes.iter().find(|class| class["name"] == name).unwrap_or_else(|| panic!("{name} is not there"));
    [&class["sent"]["pkts"], &class["dropped"]["pkts"], &class["backlog"]["pkts"]]
        .map(|n| n.as_u64().expect("a number"))
}

fn await_empty(lab: &Lab, pair: &Pair) {
    let is_empty = || {
        let status = status(lab, pair);
        [CALLS, WEB, BACKUP, GUESTS].iter().all(|(_, name, _)| counted(&status, name)[2] == 0)
    };
    crate::command::await_that("queues to drain", Duration::from_secs(20), is_empty);
}

/// Makes the host send an ARP request.
fn trigger_arp(pair: &Pair) {
    pair.a.inside(|| {
        UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.send_to(&[0], UNUSED_ADDRESS)).expect("a packet")
    });
}

/// Unclassified packets that were sent.
fn unclassified_sent(status: &Value) -> u64 {
    status["tree"]["nobody"]["sent"]["pkts"].as_u64().expect("a number")
}

/// The office stays at its ceiling, the calls have their guarantee, and each level shares the rest by weight. HTB shares the rest by class, whatever is
/// above.
fn shares(lab: &Lab) {
    let pair = lab.pair();
    let file = lab.policy(&office());
    lab.up(&pair.a, "a0", &file, &[]);
    let streams = send(&pair, &[(CALLS, 3), (WEB, 30), (BACKUP, 30), (GUESTS, 30)]);
    std::thread::sleep(Duration::from_millis(800));
    trigger_arp(&pair);
    std::thread::sleep(Duration::from_millis(700));
    let outcomes = streams.finish_lossy();
    let bps: Vec<f64> = outcomes.iter().map(|one| one.bps(SETTLE, 0)).collect();
    assert_eq!(outcomes[0].lost(), 0, "of what is guaranteed");
    assert_near("the office at its ceiling", bps[..3].iter().sum(), 12e6, 0.01);
    assert_near("guests", bps[3], 8e6, 0.01);
    if lab.engine == Engine::Qdisc {
        // 4 of 12 are guaranteed to the floor, which gets two thirds of the rest.
        assert_near("web", bps[1], 4e6 - 3e6 + 8e6 * 2.0 / 3.0, 0.01);
        assert_near("backup", bps[2], 8e6 / 3.0, 0.01);
    }
    await_empty(lab, &pair);
    let status = status(lab, &pair);
    let all: Vec<[u64; 3]> = [CALLS, WEB, BACKUP, GUESTS].iter().map(|(_, name, _)| counted(&status, name)).collect();
    let mut expected: Vec<[u64; 3]> = outcomes.iter().map(|one| [one.received(), one.lost(), 0]).collect();
    // What the hosts say to a network that comes up is the guests' too: no rule matches it.
    let startup_packets = all[3][0] - expected[3][0];
    assert!(startup_packets < 10, "{startup_packets} packets of others");
    expected[3][0] += startup_packets;
    assert_eq!(all, expected, "each class counts what it sends and drops");
    let site = |name: &str| {
        let sites = status["tree"]["sites"].as_array().expect("inner classes");
        sites.iter().find(|site| site["name"] == name).expect("it is there").clone()
    };
    for (name, below) in [("office", &all[..3]), ("floor", &all[..2])] {
        let sent: u64 = below.iter().map(|own| own[0]).sum();
        assert_eq!(site(name)["sent"]["pkts"].as_u64(), Some(sent), "{name} counts what is below it");
    }
    assert!(unclassified_sent(&status) > 0, "ARP is unclassified, and sent");
    shown(lab, &pair, &file);
    lab.down(&pair.a, "a0");
}

/// What commands tell of the tree.
fn shown(lab: &Lab, pair: &Pair, file: &str) {
    let told = |arguments: &[&str]| lab.sluice(&pair.a, arguments).ok().stdout;
    let text = told(&["status", "a0"]);
    for part in ["class tree", "  office", "    floor", "      calls", "  guests", "12 Mbit/s"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = told(&["check", file]);
    for part in ["default class  63 guests", "\noffice", "\n  floor", "\n    0 calls", "weight 2"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for target in ["a0", file] {
        let text = told(&["explain", target, "udp", "10.77.0.1:5000", "to", &format!("{B}:7001")]);
        for part in [
            "class     1 web",
            "web: ",
            "floor: guarantee 4 Mbit/s",
            "office: guarantee 4 Mbit/s, ceiling 12 Mbit/s",
            "queued in class web",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    let text = told(&["explain", file, "arp"]);
    assert!(text.contains("ARP has no class") && text.contains("all unclassified packets"), "{text}");
    let text = told(&["top", "a0", "--once", "--interval", "200ms"]);
    assert!(text.contains("4 leaf classes") && text.contains("    floor (2)"), "{text}");
    let refused = lab.sluice(&pair.a, &["subscriber", "list"]).exits(2);
    refused.says("no managed interface has a policy with subscribers");
}

/// A ceiling, a parent, an inner class's scheduler and a class change; packets of others are neither lost nor overtaken, and counters stay.
fn changes(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&office()), &[]);
    let streams = send(&pair, &[(CALLS, 2), (WEB, 2), (BACKUP, 2), (GUESTS, 2), (NEW, 8)]);
    let pause = || std::thread::sleep(Duration::from_millis(300));
    pause();
    let mut tree = office();
    let class = |tree: &mut Value, name: &str, key: &str, value: Value| {
        let classes = tree["classes"].as_array_mut().expect("classes");
        classes.iter_mut().find(|class| class["name"] == name).expect("it is there")[key] = value;
    };
    class(&mut tree, "office", "ceil", "10mbit".into());
    let told = lab.sluice(&pair.a, &["apply", "a0", &lab.policy(&tree)]).ok().stdout;
    assert!(told.contains("~ class office: ceil 12mbit -> 10mbit"), "{told}");
    pause();
    // The floor goes, and its classes move up.
    tree["classes"].as_array_mut().expect("classes").retain(|class| class["name"] != "floor");
    class(&mut tree, CALLS.1, "parent", "office".into());
    class(&mut tree, WEB.1, "parent", "office".into());
    tree["classes"].as_array_mut().expect("classes").push(json!({ "id": NEW.0, "name": NEW.1 }));
    if lab.engine == Engine::Qdisc {
        class(&mut tree, "office", "scheduler", "strict_priority".into());
        for (priority, name) in [CALLS.1, WEB.1, BACKUP.1].iter().enumerate() {
            class(&mut tree, name, "priority", priority.into());
        }
    }
    let rules = tree["rules"].as_array_mut().expect("rules");
    rules.push(json!({ "priority": 4, "dst_port": NEW.2, "class_id": NEW.0 }));
    let told = lab.sluice(&pair.a, &["apply", "a0", &lab.policy(&tree)]).ok().stdout;
    for part in ["- class floor", "~ class 0 calls: parent floor -> office", "+ class 9 new"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    pause();
    lab.sluice(&pair.a, &["rollback", "a0"]).ok();
    pause();
    let outcomes = streams.finish_lossy();
    // HTB drops the packets of a class that moves.
    let may_lose = if lab.engine == Engine::Tc { 6 } else { 0 };
    for (outcome, may_lose) in outcomes.iter().zip([may_lose, may_lose, 0, 0]) {
        assert!(outcome.in_order() && outcome.lost() <= may_lose, "{} lost", outcome.lost());
    }
    await_empty(lab, &pair);
    let now = status(lab, &pair);
    assert_eq!(counted(&now, BACKUP.1)[0], outcomes[2].received(), "it has kept its counter");
    assert!(counted(&now, GUESTS.1)[0] > outcomes[3].received(), "guests also count packets of the removed class");
    assert!(unclassified_sent(&now) < 10, "{} packets of the removed class were unclassified", unclassified_sent(&now));
    let mut other = office();
    other["scheduler"] = "strict_priority".into();
    let classes = other["classes"].as_array_mut().expect("classes");
    let office = classes.iter_mut().find(|class| class["name"] == "office").and_then(Value::as_object_mut);
    office.expect("it is there").remove("weight");
    class(&mut other, "office", "priority", 0.into());
    class(&mut other, GUESTS.1, "priority", 1.into());
    let refused = lab.sluice(&pair.a, &["apply", "a0", &lab.policy(&other)]).exits(2);
    refused.says(match lab.engine {
        Engine::Tc => "engine tc cannot serve a class tree by strict priority",
        _ => "this changes the \"scheduler\" of the policy",
    });
    let before = status(lab, &pair)["policy"].clone();
    assert_eq!(before["name"], "office", "nothing has changed");
    if lab.engine == Engine::Tc {
        a_removed_class_is_put_back(lab, &pair);
    }
    lab.down(&pair.a, "a0");
}

/// Somebody removes a class of HTB; `status` says so, and `ensure` and `apply` put it back.
fn a_removed_class_is_put_back(lab: &Lab, pair: &Pair) {
    let classes = || pair.a.tc("class show dev a0");
    let minors = |shown: &str| {
        // Leaves show flows that are active as classes, too.
        let own = shown.lines().filter(|line| line.starts_with("class htb"));
        let mut minors: Vec<String> = own.filter_map(|line| line.split(' ').nth(2)).map(str::to_owned).collect();
        minors.sort();
        minors
    };
    let before = minors(&classes());
    for mend in [vec!["ensure", "a0"], vec!["apply", "a0", &lab.policy(&office())]] {
        let shown = classes();
        let leaf = shown.lines().find(|line| line.contains(" leaf ") && !line.contains(":8000")).expect("a leaf");
        pair.a.tc(&format!("class del dev a0 classid {}", leaf.split(' ').nth(2).expect("its number")));
        assert_ne!(minors(&classes()), before);
        let told = lab.sluice(&pair.a, &["status", "a0"]).ok().stdout;
        assert!(told.contains("NOT all is in place") && told.contains("lacks some of its classes"), "{told}");
        lab.sluice(&pair.a, &mend).ok();
        assert_eq!(minors(&classes()), before, "{mend:?}");
        assert!(lab.sluice(&pair.a, &["status", "a0", "--json"]).ok().stdout.contains("\"in_place\": true"));
    }
}

/// The most urgent class of each level goes first, up to its ceiling. HTB has no such thing, and `up` says so.
fn urgent(lab: &Lab) {
    let pair = lab.pair();
    let mut tree = office();
    tree["scheduler"] = "strict_priority".into();
    tree["classes"] = json!([
        { "id": GUESTS.0, "name": GUESTS.1, "priority": 0, "ceil": "5mbit" },
        { "name": "office", "priority": 1, "scheduler": "strict_priority" },
        { "id": CALLS.0, "name": CALLS.1, "parent": "office", "priority": 0 },
        { "id": WEB.0, "name": WEB.1, "parent": "office", "priority": 9 },
        { "id": BACKUP.0, "name": BACKUP.1, "priority": 2 },
    ]);
    let file = lab.policy(&tree);
    if lab.engine == Engine::Tc {
        let refused = lab.sluice(&pair.a, &["up", "a0", "--policy", &file, "--engine", "tc"]).exits(2);
        refused.says("engine tc cannot serve a class tree by strict priority");
        return;
    }
    lab.up(&pair.a, "a0", &file, &[]);
    let streams = send(&pair, &[(GUESTS, 10), (CALLS, 10), (WEB, 10), (BACKUP, 10)]);
    std::thread::sleep(Duration::from_millis(800));
    trigger_arp(&pair);
    std::thread::sleep(Duration::from_millis(700));
    assert!(unclassified_sent(&status(lab, &pair)) > 0, "unclassified packets have a guarantee");
    let outcomes: Vec<Outcome> = streams.finish_lossy();
    for ((what, mbit), outcome) in [("guests", 5.0), ("calls", 10.0), ("web", 5.0)].iter().zip(&outcomes) {
        assert_near(what, outcome.bps(SETTLE, 0), mbit * 1e6, 0.01);
    }
    assert!(outcomes[3].bps(SETTLE, 0) < 1e5, "the least urgent class gets nothing");
    lab.down(&pair.a, "a0");
}

/// Below one inner class, each leaf class has a quantum; below the other, a packet each, of which one class sends short ones. HTB's turns are of bytes, and `up`
/// says so; it shares by quanta and by weights.
fn schedulers(lab: &Lab) {
    let pair = lab.pair();
    let mut tree = office();
    tree["scheduler"] = "weighted_fair_queuing".into();
    tree["classes"] = json!([
        { "name": "office", "scheduler": "deficit_round_robin" },
        { "id": CALLS.0, "name": CALLS.1, "parent": "office", "quantum": 3000, "limit": 100 },
        { "id": WEB.0, "name": WEB.1, "parent": "office", "quantum": 1500, "limit": 100 },
        { "name": "floor", "weight": 3, "scheduler": "round_robin" },
        { "id": BACKUP.0, "name": BACKUP.1, "parent": "floor", "limit": 100 },
        { "id": GUESTS.0, "name": GUESTS.1, "parent": "floor", "limit": 100 },
    ]);
    if lab.engine == Engine::Tc {
        let refused = lab.sluice(&pair.a, &["up", "a0", "--policy", &lab.policy(&tree), "--engine", "tc"]).exits(2);
        refused.says("engine tc cannot serve a class tree by round robin: HTB shares by bytes, not by packets");
        tree["classes"][3]["scheduler"] = "weighted_fair_queuing".into();
        tree["classes"][4]["weight"] = 3.into();
    }
    lab.up(&pair.a, "a0", &lab.policy(&tree), &[]);
    let flows = [(CALLS, 1514, 30), (WEB, 1514, 30), (BACKUP, 1514, 30), (GUESTS, 300, 15)];
    let flows: Vec<Flow> =
        flows.iter().map(|((_, _, port), bytes, mbit)| Flow::new(*port, &[*bytes], mbit * 1_000_000)).collect();
    let streams = traffic::start(&pair.a, &pair.b, B, &flows);
    std::thread::sleep(Duration::from_millis(1500));
    let outcomes = streams.finish_lossy();
    let bps: Vec<f64> = outcomes.iter().map(|one| one.bps(SETTLE, 0)).collect();
    assert_near("twice the quantum", bps[0] / bps[1], 2.0, 0.02);
    match lab.engine {
        Engine::Tc => assert_near("three times the weight", bps[2] / bps[3], 3.0, 0.02),
        _ => {
            assert_near("a packet each", bps[2] / bps[3], 1514.0 / 300.0, 0.01);
            assert_near("three times the weight", (bps[2] + bps[3]) / (bps[0] + bps[1]), 3.0, 0.01);
        }
    }
    lab.down(&pair.a, "a0");
}

/// The office shares by weight under EEVDF. Below the floor, the class with the small latency budget leaves first, so that all of it passes beside one that
/// always has packets; when the budgets are swapped while packets flow, the other class gets everything. HTB has neither, and `up` says so.
fn requests_and_ranks(lab: &Lab) {
    let pair = lab.pair();
    let mut tree = office();
    tree["scheduler"] = "eevdf".into();
    tree["classes"] = json!([
        { "name": "office", "weight": 3, "scheduler": "eevdf" },
        { "id": CALLS.0, "name": CALLS.1, "parent": "office", "weight": 2, "quantum": 300, "limit": 100 },
        { "id": WEB.0, "name": WEB.1, "parent": "office", "limit": 100 },
        { "name": "floor", "scheduler": "pifo", "rank": "earliest_deadline" },
        { "id": BACKUP.0, "name": BACKUP.1, "parent": "floor", "latency_budget": "2s", "limit": 100 },
        { "id": GUESTS.0, "name": GUESTS.1, "parent": "floor", "latency_budget": "5ms", "limit": 100 },
    ]);
    if lab.engine == Engine::Tc {
        let up =
            |tree: &Value| lab.sluice(&pair.a, &["up", "a0", "--policy", &lab.policy(tree), "--engine", "tc"]).exits(2);
        up(&tree).says("engine tc cannot serve a class tree by eevdf: HTB knows turns of bytes, and no deadlines");
        tree["scheduler"] = "elastic_round_robin".into();
        tree["classes"][0]["scheduler"] = "elastic_round_robin".into();
        tree["classes"][1].as_object_mut().expect("a class").remove("quantum");
        up(&tree).says("engine tc cannot serve a class tree by pifo: HTB does not order classes by their packets");
        return;
    }
    lab.up(&pair.a, "a0", &lab.policy(&tree), &[]);
    for ((_, _, port), passes) in [
        (CALLS, ["calls: weight 2, quantum 300", "office: weight 3, quantum 1514"]),
        (GUESTS, ["guests: latency budget 5ms", "floor: weight 1, quantum 1514"]),
    ] {
        let text = lab.sluice(&pair.a, &["explain", "a0", &format!("udp 10.77.0.1:9 to {B}:{port}")]).ok().stdout;
        passes.iter().for_each(|one| assert!(text.contains(one), "{one}: {text}"));
    }
    let bps = || {
        let streams = send(&pair, &[(CALLS, 30), (WEB, 30), (BACKUP, 30), (GUESTS, 4)]);
        std::thread::sleep(Duration::from_millis(1500));
        let outcomes = streams.finish_lossy();
        outcomes.iter().for_each(|one| assert!(one.in_order()));
        outcomes.iter().map(|one| one.bps(SETTLE, 0)).collect::<Vec<f64>>()
    };
    let first = bps();
    assert_near("twice the weight", first[0] / first[1], 2.0, 0.01);
    assert_near("three times the weight", (first[0] + first[1]) / (first[2] + first[3]), 3.0, 0.01);
    assert_near("all packets with a small budget", first[3], 4e6, 0.01);
    assert_near("what is left", first[2], 1e6, 0.05);
    await_empty(lab, &pair);
    let classes = tree["classes"].as_array_mut().expect("classes");
    for (class, key, value) in
        [(1, "weight", json!(1)), (4, "latency_budget", json!("5ms")), (5, "latency_budget", json!("2s"))]
    {
        classes[class][key] = value;
    }
    let told = lab.sluice(&pair.a, &["apply", "a0", &lab.policy(&tree)]).ok().stdout;
    for part in ["~ class 0 calls: weight 2 -> 1", "~ class 63 guests: latency_budget 5ms -> 2s"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let second = bps();
    assert_near("the same weight", second[0] / second[1], 1.0, 0.01);
    assert_near("the one with the small budget gets all", second[2], 5e6, 0.01);
    await_empty(lab, &pair);
    lab.down(&pair.a, "a0");
}
