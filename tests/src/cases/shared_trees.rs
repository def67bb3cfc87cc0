//! Trees of classes over all tx queues of an interface: each queue has a tree, a filter leads packets to the tree of their subscriber or class, and the
//! rate, weights and guarantees below the link hold for all trees together.

use crate::cases::{assert_near, crash, upgrade};
use crate::command::await_that;
use crate::lab::Lab;
use crate::many_queues::{RUN, classes_by_port, port, sent_in_three_seconds, take_in_by_one_processor, together};
use crate::needs::Need;
use crate::net::{B, Ns, Pair};
use crate::suite::Suite;
use crate::town::{
    SETTLE, address, assert_town_down, assert_up_behind_nat, box_with, download, end, listed, masquerade,
    policy as town_of, subscriber, town,
};
use crate::traffic::{self, Flow, Outcome};
use serde_json::{Value, json};
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("shared_trees")
        .qdisc("plans_hold_over_queues", &[Need::Icount, Need::Conntrack], plans_hold)
        .qdisc("what_is_left_is_shared_over_queues", &[Need::Icount], what_is_left_is_shared)
        .qdisc("weights_and_guarantees_hold_over_queues", &[Need::Icount], weights_and_guarantees)
        .qdisc("processors_share_the_rate_by_trees", &[Need::Processors], processors_share)
        .qdisc("trees_change_while_packets_flow", &[], changes)
        .qdisc("new_subscribers_have_a_home_at_once", &[], new_subscribers)
        .qdisc("high_rates_have_trees", &[], high_rates)
        .qdisc("a_filter_that_was_removed", &[], a_filter_that_was_removed)
        .qdisc("queues_that_shrink_below_trees", &[], queues_that_shrink)
        .qdisc("policies_that_need_one_tree", &[], policies_that_need_one)
        .qdisc("commands_for_trees_that_are_killed", &[], commands_that_are_killed)
}

/// Tx queues of an interface. A tree takes 37 MB, so those with two interfaces, or with two sets of trees at once, have half as many.
const QUEUES: usize = 8;
const EIGHT: &str = "numtxqueues 8 numrxqueues 8";
const FOUR: &str = "numtxqueues 4 numrxqueues 4";

/// The policy over all queues. The device that splits super-packets has one.
fn over_all(mut policy: Value) -> Value {
    policy["link"]["queues"] = "all".into();
    policy["link"]["split_gso"] = "off".into();
    policy
}

/// Packets that each tx queue has sent.
fn sent_by_queue(ns: &Ns, device: &str) -> Vec<u64> {
    let qdiscs = ns.qdiscs(device);
    let of =
        |queue: usize| qdiscs.iter().find(|one| one.parent == format!("5100:{:x}", queue + 1)).map(|one| one.packets);
    (0..QUEUES).map_while(of).collect()
}

/// Plans and a site's ceiling hold towards the subscribers and from them, also behind NAT; what is below a site comes to one queue.
fn plans_hold(lab: &Lab) {
    let net = box_with(lab, FOUR);
    let policy = lab.policy(&over_all(town()));
    let printed = lab.up(&net.router, "lan0", &policy, &[]).stdout;
    assert!(
        printed.contains("4 tx queues has a tree of classes, below mq, and all of them share 100mbit (and take 1"),
        "{printed}"
    );
    lab.up(&net.router, "wan0", &policy, &[]);
    let before = sent_by_queue(&net.router, "lan0");
    let outcomes = {
        let streams = download(&net, &[("a", 30), ("b", 60), ("c", 30), ("d", 15)]);
        std::thread::sleep(Duration::from_millis(1200));
        end(streams)
    };
    assert_town_down(lab, &net, &outcomes);
    let after = sent_by_queue(&net.router, "lan0");
    let used: Vec<u64> = before.iter().zip(&after).map(|(before, after)| after - before).filter(|n| *n > 50).collect();
    let of = |names: &[usize]| names.iter().map(|n| outcomes[*n].received()).sum::<u64>();
    let mut expected = vec![of(&[0, 1]), of(&[2]), of(&[3])];
    let mut busiest = used.clone();
    expected.sort_unstable();
    busiest.sort_unstable();
    let near = busiest.iter().zip(&expected).all(|(got, told)| got.abs_diff(*told) < 20);
    assert!(busiest.len() == 3 && near, "north, south and nobody have a queue each: {used:?}, {expected:?}");

    masquerade(&net);
    let mut queues = Vec::new();
    for (name, mbit) in [("a", 5.0), ("b", 10.0), ("c", 5.0)] {
        let before = sent_by_queue(&net.router, "wan0");
        assert_up_behind_nat(lab, &net, name, mbit);
        let after = sent_by_queue(&net.router, "wan0");
        queues.push((0..after.len()).find(|queue| after[*queue] - before[*queue] > 50).expect("it has a queue"));
    }
    assert!(queues[0] == queues[1] && queues[1] != queues[2], "by site: {queues:?}");
    let shown = lab.sluice(&net.router, &["status", "wan0"]).ok().stdout;
    assert!(shown.contains("subscribers (3; up, by source)"), "{shown}");
    lab.down(&net.router, "lan0");
    lab.down(&net.router, "wan0");
}

/// Subscribers in different trees share what the link has by weight, and each gets its guarantee.
fn what_is_left_is_shared(lab: &Lab) {
    let net = box_with(lab, EIGHT);
    let mut policy = town_of(&["a", "b", "c", "d"].map(|name| subscriber(name, "free", "")));
    policy["link"]["rate"] = "40mbit".into();
    policy["sites"] = json!({});
    policy["plans"] = json!({
        "free": { "queue": "fifo" }, "heavy": { "queue": "fifo", "weight": 3 }, "sure": { "queue": "fifo", "rate": "16mbit" }
    });
    policy["subscribers"][1]["plan"] = "heavy".into();
    policy["subscribers"][3]["plan"] = "sure".into();
    lab.up(&net.router, "lan0", &lab.policy(&over_all(policy)), &[]);
    let streams = download(&net, &[("a", 40), ("b", 40), ("c", 40), ("d", 40)]);
    std::thread::sleep(RUN + Duration::from_millis(600));
    let outcomes = end(streams);
    let used = sent_by_queue(&net.router, "lan0").into_iter().filter(|packets| *packets > 50).count();
    assert_eq!(used, 4, "each subscriber has a queue of its own");
    // 16 of 40 are guaranteed to d; six weights share the rest.
    for ((name, mbit), outcome) in [("a", 4.0), ("b", 12.0), ("c", 4.0), ("d", 20.0)].iter().zip(&outcomes) {
        assert_near(name, outcome.bps(SETTLE, 0), mbit * 1e6, 0.02);
        assert!(outcome.in_order(), "{name}");
    }
    assert_near("all", together(&outcomes), 40e6, 0.005);
    lab.down(&net.router, "lan0");
}

/// A class tree: two classes of the first level with two leaves each, and one beside.
fn office(rate: &str) -> Value {
    let mut policy = classes_by_port(json!([
        { "id": 0, "parent": "left", "limit": 100 },
        { "id": 1, "parent": "left", "rate": "6mbit", "limit": 100 },
        { "id": 2, "parent": "right", "limit": 100 },
        { "id": 3, "limit": 100 },
    ]));
    let classes = policy["classes"].as_array_mut().expect("a list");
    classes.push(json!({ "name": "left", "weight": 2 }));
    classes.push(json!({ "name": "right", "ceil": "8mbit" }));
    policy["link"] = json!({ "rate": rate, "overhead": 14 });
    over_all(policy)
}

fn send(pair: &Pair, classes: &[(u16, u64)]) -> Vec<Outcome> {
    let flows: Vec<Flow> =
        classes.iter().map(|(class, mbit)| Flow::new(port(*class, 0), &[1514], mbit * 1_000_000)).collect();
    traffic::start(&pair.a, &pair.b, B, &flows).stop_after(RUN + Duration::from_millis(600))
}

/// The classes of a local sender: weights of the first level, a ceiling and a guarantee, at 32 Mbit/s, and at 120, where credit is drawn in advance.
fn weights_and_guarantees(lab: &Lab) {
    let pair = lab.pair_with(EIGHT);
    lab.up(&pair.a, "a0", &lab.policy(&office("32mbit")), &[]);
    let outcomes = send(&pair, &[(0, 40), (1, 40), (2, 40), (3, 40)]);
    // 6 are guaranteed to the left one, which has a half of the rest, as the other two have a quarter each: 12.5, and 6.5 each.
    for ((class, mbit), outcome) in [(0, 6.5), (1, 12.5), (2, 6.5), (3, 6.5)].iter().zip(&outcomes) {
        assert_near(&format!("class {class}"), outcome.bps(SETTLE, 0), mbit * 1e6, 0.03);
        assert!(outcome.in_order(), "class {class}");
    }
    assert_near("all", together(&outcomes), 32e6, 0.005);
    lab.sluice(&pair.a, &["apply", "a0", &lab.policy(&office("120mbit"))]).ok();
    let outcomes = send(&pair, &[(0, 90), (2, 40), (3, 90)]);
    // The left one has the guarantees of its classes, whichever of them sends.
    for ((class, mbit), outcome) in [(0, 76.667), (2, 8.0), (3, 35.333)].iter().zip(&outcomes) {
        assert_near(&format!("class {class}"), outcome.bps(SETTLE, 0), mbit * 1e6, 0.01);
    }
    assert_near("all", together(&outcomes), 120e6, 0.005);
    let used = sent_by_queue(&pair.a, "a0").into_iter().filter(|packets| *packets > 50).count();
    assert_eq!(used, 3, "left, right and the class beside them have a queue each");
    lab.down(&pair.a, "a0");
}

/// Trees that several processors serve at once send no more than the rate, the burst and a batch each; a flow keeps its order, and what is lost is counted.
fn processors_share(lab: &Lab) {
    let pair = lab.pair_with(EIGHT);
    take_in_by_one_processor(lab, &pair, QUEUES as u16);
    let mut classes: Vec<Value> = (0..7).map(|id| json!({ "id": id, "limit": 50, "weight": 1 + id % 3 })).collect();
    classes.push(json!({ "id": 7, "limit": 50, "parent": "above" }));
    let mut policy = classes_by_port(classes.into());
    policy["classes"].as_array_mut().expect("a list").push(json!({ "name": "above" }));
    policy["link"] = json!({ "rate": "20mbit", "overhead": 14 });
    lab.up(&pair.a, "a0", &lab.policy(&over_all(policy)), &[]);
    let flows: Vec<Flow> = (0..8).map(|class| Flow::new(port(class, 0), &[1514], 5_000_000)).collect();
    let dropped = || lab.status(&pair.a, "a0").direction("egress").totals().1;
    let (outcomes, sent, took_ns) = sent_in_three_seconds(&pair, &flows, dropped);
    // A batch is a frame at this rate, and the burst two of them.
    let most = took_ns / 1000 * 20 / 8 + (2 + QUEUES as u64) * 1514;
    assert!(sent <= most, "{sent} bytes of {most}");
    assert!(outcomes.iter().all(Outcome::in_order), "a flow stays on its queue");
    assert!(outcomes.iter().any(|one| one.lost() > 0), "more was offered than the rate");
    let used = sent_by_queue(&pair.a, "a0").into_iter().filter(|packets| *packets > 20).count();
    assert!(used >= 4, "{used} queues are used");
    lab.down(&pair.a, "a0");
}

/// Subscribers come, go and change in all trees while packets flow; the rate of the link too.
fn changes(lab: &Lab) {
    let net = box_with(lab, EIGHT);
    let before = net.router.state("lan0");
    let policy = over_all(town());
    lab.up(&net.router, "lan0", &lab.policy(&policy), &[]);
    let streams = download(&net, &[("a", 10), ("b", 10), ("c", 10), ("d", 2)]);
    let change = |arguments: &[&str]| lab.sluice(&net.router, &[&["subscriber"], arguments].concat()).ok();
    change(&["move", "b", "south"]);
    change(&["set", "c", "--plan", "work"]);
    change(&["add", "d", "--addresses", address("d"), "--plan", "home"]);
    await_that("the new one's packets", Duration::from_secs(20), || {
        listed(lab, &net.router, "lan0").get("d").is_some_and(|(_, [sent, ..])| *sent > 0)
    });
    change(&["move", "d", "south"]);
    change(&["remove", "d"]);
    let mut faster = policy.clone();
    faster["link"]["rate"] = "200mbit".into();
    lab.sluice(&net.router, &["apply", "lan0", &lab.policy(&faster)]).ok();
    lab.sluice(&net.router, &["rollback", "lan0"]).ok();
    let outcomes = end(streams);
    for (name, outcome) in ["a", "b", "c"].iter().zip(&outcomes) {
        assert_eq!(outcome.lost(), 0, "{name} goes on");
        assert!(outcome.in_order(), "{name}");
    }
    assert_eq!(listed(lab, &net.router, "lan0")["c"].0, 50_000_000, "another plan");
    assert!(!listed(lab, &net.router, "lan0").contains_key("d"));
    lab.sluice(&net.router, &["status", "lan0"]).ok();
    lab.sluice(&net.router, &["ensure"]).ok();
    lab.down(&net.router, "lan0");
    assert_eq!(net.router.state("lan0"), before);
}

/// A subscriber that comes, or moves, while no packet comes to the other queues: all below its site come to one queue.
fn new_subscribers(lab: &Lab) {
    let net = box_with(lab, FOUR);
    lab.up(&net.router, "lan0", &lab.policy(&over_all(town())), &[]);
    let change = |arguments: &[&str]| lab.sluice(&net.router, &[&["subscriber"], arguments].concat()).ok();
    let queue_of = |name: &str| {
        let before = sent_by_queue(&net.router, "lan0");
        let streams = download(&net, &[(name, 3)]);
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(end(streams)[0].lost(), 0);
        let after = sent_by_queue(&net.router, "lan0");
        let used = (0..after.len()).filter(|queue| after[*queue] - before[*queue] > 20);
        let used: Vec<usize> = used.collect();
        assert_eq!(used.len(), 1, "{name}: {before:?} {after:?}");
        used[0]
    };
    let (north, south) = (queue_of("a"), queue_of("c"));
    assert_ne!(north, south);
    change(&["add", "d", "--addresses", address("d"), "--plan", "home", "--site", "south"]);
    assert_eq!(queue_of("d"), south, "it has come");
    change(&["move", "d", "north"]);
    assert_eq!(queue_of("d"), north, "it has moved");
    change(&["move", "b", "south"]);
    assert_eq!([queue_of("b"), queue_of("c"), queue_of("a")], [south, south, north]);
    lab.down(&net.router, "lan0");
}

/// Above 1 Gbit/s each queue has a tree without being asked for, where there is memory; what is below a class is told, and traced, as with one.
fn high_rates(lab: &Lab) {
    let pair = lab.pair_with(FOUR);
    let before = pair.a.state("a0");
    let mut policy = office("2gbit");
    policy["link"].as_object_mut().expect("a link").remove("queues");
    let path = lab.policy(&policy);
    lab.up(&pair.a, "a0", &path, &[]);
    let status = lab.status(&pair.a, "a0");
    assert_eq!((status.queues, status.rate_bps), (4, Some(2_000_000_000)));
    let outcomes = send(&pair, &[(0, 2), (1, 2), (2, 2), (3, 2)]);
    assert!(outcomes.iter().all(|one| one.lost() == 0 && one.in_order()));
    let status: Value =
        serde_json::from_str(&lab.sluice(&pair.a, &["status", "a0", "--json"]).ok().stdout).expect("JSON");
    for (class, outcome) in (0..).zip(&outcomes) {
        let classes = status["directions"][0]["classes"].as_array().expect("classes");
        let own = classes.iter().find(|own| own["id"] == class).expect("it is there");
        assert!(own["sent"]["pkts"].as_u64() >= Some(outcome.received()), "{class}: {own}");
    }
    let queues = status["directions"][0]["tx_queues"].as_array().expect("tx queues");
    let sent: Vec<u64> = queues.iter().map(|one| one["sent"]["pkts"].as_u64().expect("a number")).collect();
    assert_eq!(sent, sent_by_queue(&pair.a, "a0"), "each tx queue is shown");
    let shown = lab.sluice(&pair.a, &["status", "a0", "--queues"]).ok().stdout;
    assert!(shown.contains("tx queue"), "{shown}");
    let doctor = lab.sluice(&pair.a, &["doctor"]).ok().stdout;
    assert!(doctor.contains("4 queues have a scheduler each, and share 2gbit"), "{doctor}");
    let explained =
        lab.sluice(&pair.a, &["explain", "a0", "udp", "10.77.0.1:5000", "to", &format!("{B}:{}", port(2, 0))]);
    assert!(explained.ok().stdout.contains("right"));
    let mut one = policy.clone();
    one["link"]["queues"] = "one".into();
    lab.sluice(&pair.a, &["apply", "a0", &lab.policy(&one)]).exits(2).says("one scheduler for all queues");
    lab.down(&pair.a, "a0");
    lab.up(&pair.a, "a0", &lab.policy(&one), &[]);
    assert_eq!(lab.status(&pair.a, "a0").queues, 0);
    lab.sluice(&pair.a, &["apply", "a0", &path]).ok();
    assert_eq!(lab.status(&pair.a, "a0").queues, 0, "a running interface keeps its queue");
    lab.sluice(&pair.a, &["apply", "a0", &lab.policy(&office("2gbit"))]).exits(2).says("one scheduler for each queue");
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.state("a0"), before);
}

/// Status says that the filter is gone, and `ensure` puts it back; packets pass all the while.
fn a_filter_that_was_removed(lab: &Lab) {
    let pair = lab.pair_with(EIGHT);
    lab.up(&pair.a, "a0", &lab.policy(&office("2gbit")), &[]);
    pair.a.tc("filter del dev a0 egress pref 65004");
    let outcomes = send(&pair, &[(0, 2), (3, 2)]);
    assert!(outcomes.iter().all(|one| one.lost() == 0));
    let shown = lab.sluice(&pair.a, &["status", "a0"]).ok().stdout;
    assert!(shown.contains("the filter that leads packets to the tx queue"), "{shown}");
    let healed = lab.sluice(&pair.a, &["ensure"]).ok().stdout;
    assert!(healed.contains("the filter that leads packets to the tx queue"), "{healed}");
    assert!(pair.a.tc("filter show dev a0 egress").contains("skbedit"));
    pair.a.tc("qdisc replace dev a0 parent 5100:3 pfifo");
    let shown = || lab.sluice(&pair.a, &["status", "a0"]).ok().stdout;
    assert!(shown().contains("the scheduler of queue 3 of mq was replaced"), "{}", shown());
    lab.sluice(&pair.a, &["ensure"]).ok();
    assert!(!shown().contains("was replaced"), "{}", shown());
    lab.down(&pair.a, "a0");
}

/// Packets of a queue out of use come to the first one, in their order, and go back.
fn queues_that_shrink(lab: &Lab) {
    let pair = lab.pair_with(EIGHT);
    lab.up(&pair.a, "a0", &lab.policy(&office("2gbit")), &[]);
    let flows: Vec<Flow> = (0..4).map(|class| Flow::new(port(class, 0), &[600], 3_000_000)).collect();
    let streams = traffic::start(&pair.a, &pair.b, B, &flows);
    std::thread::sleep(Duration::from_millis(300));
    pair.a.tool("ethtool", "-L a0 tx 2").ok();
    std::thread::sleep(Duration::from_millis(400));
    pair.a.tool("ethtool", "-L a0 tx 8").ok();
    let outcomes = streams.stop_after(Duration::from_millis(400));
    let status: Value =
        serde_json::from_str(&lab.sluice(&pair.a, &["status", "a0", "--json"]).ok().stdout).expect("JSON");
    let dropped: u64 = status["directions"][0]["classes"]
        .as_array()
        .expect("classes")
        .iter()
        .map(|class| class["dropped"]["pkts"].as_u64().expect("a number"))
        .sum();
    let lost: u64 = outcomes.iter().map(Outcome::lost).sum();
    assert!(lost <= dropped, "{lost} packets were lost, and {dropped} counted");
    assert!(outcomes.iter().all(|one| one.received() > 100), "all go on");
    lab.down(&pair.a, "a0");
}

/// A policy that asks for all queues and needs one is refused, with the reason and a cure.
fn policies_that_need_one(lab: &Lab) {
    let pair = lab.pair_with(EIGHT);
    let before = pair.a.state("a0");
    let refused = |policy: &Value, why: &str, cure: &str| {
        let output = lab.sluice(&pair.a, &["up", "a0", "--policy", &lab.policy(policy)]).exits(2);
        assert!(output.stderr.contains(why) && output.stderr.contains(cure), "{}", output.stderr);
        assert_eq!(pair.a.state("a0"), before);
    };
    let mut turns = office("2gbit");
    turns["scheduler"] = "round_robin".into();
    turns["classes"][4].as_object_mut().expect("the left one").remove("weight");
    refused(&turns, "trees of several queues share the link by weights", "weighted_fair_queuing");
    let mut free = office("2gbit");
    free["link"].as_object_mut().expect("a link").remove("rate");
    refused(&free, "share a rate of the link", "write the rate of the link");
    let many = lab.pair_with("numtxqueues 24 numrxqueues 24");
    let output = lab.sluice(&many.a, &["up", "a0", "--policy", &lab.policy(&office("2gbit"))]).exits(2);
    assert!(output.stderr.contains("all 24 tx queues: at most 16 share a rate"), "{}", output.stderr);
}

/// Commands that are killed at some of their steps leave a policy in force, and `down` leaves nothing.
fn commands_that_are_killed(lab: &Lab) {
    let pair = lab.pair_with(FOUR);
    let before = pair.a.state("a0");
    let path = lab.file("first.json", office("2gbit").to_string()).display().to_string();
    let faster = lab.file("faster.json", office("3gbit").to_string()).display().to_string();
    for point in crash::points("up").into_iter().step_by(3) {
        lab.killed_at(point, &pair.a, &["up", "a0", "--policy", &path]);
        lab.down(&pair.a, "a0");
        assert_eq!(pair.a.state("a0"), before, "after a death at {point}");
    }
    lab.up(&pair.a, "a0", &path, &[]);
    for point in crash::points("apply").into_iter().step_by(3) {
        lab.killed_at(point, &pair.a, &["apply", "a0", &faster]);
        lab.sluice(&pair.a, &["apply", "a0", &faster]).ok();
        assert_eq!(lab.status(&pair.a, "a0").rate_bps, Some(3_000_000_000), "after a death at {point}");
        lab.sluice(&pair.a, &["rollback", "a0"]).ok();
    }
    upgrade::age(&pair.a);
    lab.sluice(&pair.a, &["upgrade", "a0"]).ok();
    assert_eq!(lab.status(&pair.a, "a0").queues, 4);
    assert!(send(&pair, &[(0, 2), (3, 2)]).iter().all(|one| one.lost() == 0));
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.state("a0"), before);
}
