//! One rate over all tx queues of an interface: each queue has a scheduler, and rate, weights, ceilings and guarantees hold for all together.

use crate::cases::lifecycle::passes;
use crate::cases::{assert_near, crash, upgrade};
use crate::command::await_that;
use crate::lab::Lab;
use crate::many_queues::{RUN, classes_by_port, port, sent_in_three_seconds, take_in_by_one_processor, together};
use crate::needs::{Need, is_icount};
use crate::net::{B, Pair};
use crate::suite::Suite;
use crate::traffic::{self, Flow, Outcome};
use serde_json::{Value, json};
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("shared_queues")
        .qdisc("high_rates_are_shared", &[], high_rates_are_shared)
        .qdisc("rates_are_exact", &[Need::Icount], rates_are_exact)
        .qdisc("one_busy_queue_gets_all", &[Need::Icount], one_busy_queue_gets_all)
        .qdisc("weights_hold_over_queues", &[Need::Icount], weights_hold_over_queues)
        .qdisc("urgent_classes_go_first_over_queues", &[Need::Icount], urgent_classes_go_first)
        .qdisc("ceilings_and_guarantees_hold_over_queues", &[Need::Icount], ceilings_and_guarantees)
        .qdisc("processors_share_the_rate", &[Need::Processors], processors_share)
        .qdisc("changes_under_load", &[], changes_under_load)
        .qdisc("queues_that_shrink", &[], queues_that_shrink)
        .qdisc("a_link_that_goes_down", &[], a_link_that_goes_down)
        .qdisc("queues_that_cannot_be_had", &[], queues_that_cannot_be_had)
        .qdisc("queues_beyond_those_in_use", &[], queues_beyond_those_in_use)
        .qdisc("commands_that_are_killed", &[], commands_that_are_killed)
}

/// Number of tx queues.
const QUEUES: u16 = 8;
const EIGHT: &str = "numtxqueues 8 numrxqueues 8";
/// Classes by port, which share a link over all of its queues.
fn policy(rate: &str, classes: Value) -> Value {
    let mut policy = classes_by_port(classes);
    policy["link"] = json!({ "rate": rate, "queues": "all" });
    policy
}

fn one_class(rate: &str) -> Value {
    policy(rate, json!([{ "id": 0, "limit": 50 }]))
}

/// A pair whose a0 sends on the tx queue that the port says: a filter of the kernel's sets it, as XPS or a driver would.
fn steered(lab: &Lab) -> Pair {
    let pair = lab.pair_with(EIGHT);
    pair.a.tc("qdisc add dev a0 clsact");
    for queue in 0..QUEUES {
        pair.a.tc(&format!(
            "filter add dev a0 egress pref 7 protocol ip u32 match ip dport {queue} 0x0007 action skbedit queue_mapping {queue}"
        ));
    }
    pair
}

/// Streams of frames of 1,514 bytes to these classes and queues, each with a load in bit/s. What was lost must have been counted.
fn overload(lab: &Lab, pair: &Pair, streams: &[(u16, u16, u64)]) -> Vec<Outcome> {
    let flows: Vec<Flow> =
        streams.iter().map(|(class, queue, bps)| Flow::new(port(*class, *queue), &[1514], *bps)).collect();
    let before = dropped(lab, pair);
    traffic::run(&pair.a, &pair.b, B, &flows, RUN, || dropped(lab, pair) - before)
}

fn dropped(lab: &Lab, pair: &Pair) -> u64 {
    lab.status(&pair.a, "a0").direction("egress").totals().1
}

/// Packets that each tx queue has sent.
fn sent_by_queue(pair: &Pair) -> Vec<u64> {
    let qdiscs = pair.a.qdiscs("a0");
    let of =
        |queue: u16| qdiscs.iter().find(|one| one.parent == format!("5100:{:x}", queue + 1)).map(|one| one.packets);
    (0..QUEUES).map(|queue| of(queue).unwrap_or_else(|| panic!("queue {queue}: {qdiscs:?}"))).collect()
}

/// The packets that each queue has sent, as `status` says.
fn told_by_queue(lab: &Lab, pair: &Pair) -> Vec<u64> {
    let status = lab.sluice(&pair.a, &["status", "a0", "--json"]).ok().stdout;
    let status: Value = serde_json::from_str(&status).expect("JSON");
    let queues = status["directions"][0]["tx_queues"].as_array().expect("tx queues").clone();
    let numbers: Vec<_> = queues.iter().map(|one| one["queue"].as_u64()).collect();
    assert_eq!(numbers, (0..QUEUES).map(|queue| Some(queue.into())).collect::<Vec<_>>());
    queues.iter().map(|one| one["sent"]["pkts"].as_u64().expect("a number")).collect()
}

/// Above 1 Gbit/s the rate is shared without being asked for; changes keep the queues as long as the policy holds over them.
fn high_rates_are_shared(lab: &Lab) {
    let pair = lab.pair_with(EIGHT);
    let before = pair.a.state("a0");
    let mut shared = one_class("2gbit");
    shared["link"].as_object_mut().expect("a link").remove("queues");
    let path = lab.policy(&shared);
    let printed = lab.up(&pair.a, "a0", &path, &[]).stdout;
    assert!(printed.contains("8 tx queues has a scheduler, below mq, and all of them share 2gbit"), "{printed}");
    let status = lab.status(&pair.a, "a0");
    assert_eq!((status.queues, status.rate_bps), (8, Some(2_000_000_000)));
    let children = pair.a.qdiscs("a0").iter().filter(|one| one.kind == status.qdisc).count();
    assert_eq!(children, 8);
    let doctor = lab.sluice(&pair.a, &["doctor"]).ok().stdout;
    assert!(doctor.contains("8 queues have a scheduler each, and share 2gbit"), "{doctor}");
    passes(&pair);
    let sent: u64 = lab.status(&pair.a, "a0").direction("egress").totals().0;
    assert_eq!(sent_by_queue(&pair).iter().sum::<u64>(), sent, "status adds the queues up");
    assert!(sent > 0);
    lab.sluice(&pair.a, &["apply", "a0", &path, "--rate", "500mbit"]).exits(2).says("super-packets must be split");
    let mut whole = shared.clone();
    whole["link"]["split_gso"] = json!("off");
    let path = lab.policy(&whole);
    lab.sluice(&pair.a, &["apply", "a0", &path, "--rate", "500mbit"]).ok();
    assert_eq!(lab.status(&pair.a, "a0").queues, 8, "a running interface keeps its queues");
    passes(&pair);
    let mut strict = whole.clone();
    strict["scheduler"] = json!("strict_priority");
    strict["classes"][0]["priority"] = json!(0);
    lab.sluice(&pair.a, &["apply", "a0", &lab.policy(&strict)]).exits(2).says("one scheduler for all queues");
    assert_eq!(lab.status(&pair.a, "a0").queues, 8);
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.state("a0"), before);
    lab.up(&pair.a, "a0", &lab.policy(&strict), &[]);
    assert_eq!(lab.status(&pair.a, "a0").queues, 0, "priorities take one queue, unless all are asked for");
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.state("a0"), before);
}

/// Eight busy queues send at the rate together, where credit is drawn in advance (100 Mbit/s) and where it is not.
fn rates_are_exact(lab: &Lab) {
    let pair = steered(lab);
    lab.up(&pair.a, "a0", &lab.policy(&one_class("100mbit")), &[]);
    for rate in [100, 20] {
        lab.sluice(&pair.a, &["apply", "a0", &lab.policy(&one_class(&format!("{rate}mbit")))]).ok();
        let before = sent_by_queue(&pair);
        let streams: Vec<_> = (0..QUEUES).map(|queue| (0, queue, rate * 1_300_000 / 8)).collect();
        let outcomes = overload(lab, &pair, &streams);
        let after = sent_by_queue(&pair);
        assert!(before.iter().zip(&after).all(|(before, after)| after - before > 20), "{before:?} {after:?}");
        assert!(outcomes.iter().all(Outcome::in_order), "a flow stays on its queue");
        assert!(outcomes.iter().any(|one| one.lost() > 0), "more was offered than the rate");
        assert_near(&format!("{rate} Mbit/s over eight queues"), together(&outcomes), rate as f64 * 1e6, 0.005);
    }
    assert_eq!(told_by_queue(lab, &pair), sent_by_queue(&pair), "status tells of each queue what tc does");
    let table = lab.sluice(&pair.a, &["status", "a0", "--queues"]).ok().stdout;
    assert!(table.contains("  tx queue"), "{table}");
    lab.down(&pair.a, "a0");
}

fn one_busy_queue_gets_all(lab: &Lab) {
    let pair = steered(lab);
    lab.up(&pair.a, "a0", &lab.policy(&one_class("100mbit")), &[]);
    for queue in [2, 5] {
        let outcomes = overload(lab, &pair, &[(0, queue, 130_000_000)]);
        assert_near(&format!("queue {queue} alone"), together(&outcomes), 100e6, 0.005);
    }
    // Beside a queue that wants little, another gets the rest.
    let outcomes = overload(lab, &pair, &[(0, 1, 10_000_000), (0, 6, 130_000_000)]);
    assert_eq!(outcomes[0].lost(), 0, "the queue that wants little loses nothing");
    assert_near("both queues", together(&outcomes), 100e6, 0.005);
    lab.down(&pair.a, "a0");
}

/// Queues that several processors serve at once send no more than the rate, the burst and a batch each; a flow keeps its order, and what is lost is
/// counted.
fn processors_share(lab: &Lab) {
    let pair = steered(lab);
    take_in_by_one_processor(lab, &pair, QUEUES);
    let classes = json!([{ "id": 0, "weight": 1, "limit": 50 }, { "id": 1, "weight": 3, "limit": 50 }]);
    lab.up(&pair.a, "a0", &lab.policy(&policy("20mbit", classes)), &[]);
    let flows: Vec<Flow> = (0..QUEUES).map(|queue| Flow::new(port(queue % 2, queue), &[1514], 5_000_000)).collect();
    let (outcomes, sent, took_ns) = sent_in_three_seconds(&pair, &flows, || dropped(lab, &pair));
    // A batch is a frame at this rate, and the burst two of them.
    let most = took_ns / 1000 * 20 / 8 + (2 + u64::from(QUEUES)) * 1514;
    assert!(sent <= most, "{sent} bytes of {most}");
    assert!(outcomes.iter().all(Outcome::in_order), "a flow stays on its queue");
    assert!(outcomes.iter().any(|one| one.lost() > 0), "more was offered than the rate");
    assert!(sent_by_queue(&pair).iter().all(|pkts| *pkts > 20), "{:?}", sent_by_queue(&pair));
    assert_eq!(told_by_queue(lab, &pair), sent_by_queue(&pair), "status tells of each queue what tc does");
    lab.down(&pair.a, "a0");
}

/// A class on one queue, and one of three times its weight on seven; then the other way round.
fn weights_hold_over_queues(lab: &Lab) {
    let pair = steered(lab);
    let classes = json!([{ "id": 0, "weight": 1, "limit": 50 }, { "id": 1, "weight": 3, "limit": 50 }]);
    lab.up(&pair.a, "a0", &lab.policy(&policy("100mbit", classes)), &[]);
    for (alone, many) in [(0, 1), (1, 0)] {
        let mut streams = vec![(alone, 0, 120_000_000)];
        streams.extend((1..QUEUES).map(|queue| (many, queue, 120_000_000 / 7)));
        let outcomes = overload(lab, &pair, &streams);
        let (own, rest) = (together(&outcomes[..1]), together(&outcomes[1..]));
        let share = own / (own + rest);
        assert_near(&format!("share of class {alone} on one queue"), share, if alone == 0 { 0.25 } else { 0.75 }, 0.02);
        assert_near("both classes", own + rest, 100e6, 0.005);
    }
    lab.down(&pair.a, "a0");
}

/// An urgent class on one queue gets all that it wants, and at once, beside another class that fills the link from all queues.
fn urgent_classes_go_first(lab: &Lab) {
    let pair = steered(lab);
    let mut strict =
        policy("100mbit", json!([{ "id": 0, "priority": 0, "limit": 50 }, { "id": 1, "priority": 1, "limit": 50 }]));
    strict["scheduler"] = json!("strict_priority");
    let printed = lab.up(&pair.a, "a0", &lab.policy(&strict), &[]).stdout;
    assert!(printed.contains("an urgent packet waits until other queues"), "{printed}");
    assert_eq!(lab.status(&pair.a, "a0").queues, 8);
    for urgent in [30, 130] {
        let mut streams = vec![(0, 3, urgent * 1_000_000)];
        streams.extend((0..QUEUES).map(|queue| (1, queue, 120_000_000 / 8)));
        let outcomes = overload(lab, &pair, &streams);
        let (own, rest) = (together(&outcomes[..1]), together(&outcomes[1..]));
        assert_near("both classes", own + rest, 100e6, 0.005);
        if urgent < 100 {
            assert_eq!(outcomes[0].lost(), 0, "the urgent class gets what it wants");
            // Eight queues have drawn eight frames of 0.12 ms before; the stream itself sends two or three at once.
            assert!(outcomes[0].delay_ms(0.99) < 2.0, "{} ms", outcomes[0].delay_ms(0.99));
            assert!(outcomes[1].delay_ms(0.5) > 4.0, "{} ms", outcomes[1].delay_ms(0.5));
        } else {
            assert!(rest < 3e6, "{rest} bit/s beside an urgent class that fills the link");
        }
    }
    lab.down(&pair.a, "a0");
}

fn ceilings_and_guarantees(lab: &Lab) {
    let pair = steered(lab);
    let classes = json!([{ "id": 0, "ceil": "20mbit", "limit": 50 }, { "id": 1, "limit": 50 }]);
    lab.up(&pair.a, "a0", &lab.policy(&policy("100mbit", classes)), &[]);
    let mut streams: Vec<_> = (0..4).map(|queue| (0, queue, 30_000_000)).collect();
    let alone = overload(lab, &pair, &streams);
    assert_near("a ceiling over four queues", together(&alone), 20e6, 0.01);
    streams.extend((4..QUEUES).map(|queue| (1, queue, 30_000_000)));
    let both = overload(lab, &pair, &streams);
    assert_near("the ceiling beside another class", together(&both[..4]), 20e6, 0.02);
    assert_near("the other class gets the rest", together(&both[4..]), 80e6, 0.01);
    let classes = json!([{ "id": 0, "rate": "60mbit", "limit": 50 }, { "id": 1, "weight": 9, "limit": 50 }]);
    lab.sluice(&pair.a, &["apply", "a0", &lab.policy(&policy("100mbit", classes))]).ok();
    let mut streams = vec![(0, 3, 90_000_000)];
    streams.extend((4..QUEUES).map(|queue| (1, queue, 30_000_000)));
    let outcomes = overload(lab, &pair, &streams);
    let (own, rest) = (together(&outcomes[..1]), together(&outcomes[1..]));
    assert!(own > 60e6 * 0.98, "a guarantee of 60 Mbit/s beside nine times the weight on four queues: {own}");
    assert_near("both classes", own + rest, 100e6, 0.005);
    lab.down(&pair.a, "a0");
}

/// A policy takes force while all queues are busy: nothing is lost without a count, and no queue is left waiting.
fn changes_under_load(lab: &Lab) {
    let pair = steered(lab);
    let before = pair.a.state("a0");
    let classes =
        |first: u32| json!([{ "id": 0, "weight": first, "limit": 50 }, { "id": 1, "rate": "2mbit", "limit": 50 }]);
    lab.up(&pair.a, "a0", &lab.policy(&policy("20mbit", classes(1))), &[]);
    let flows: Vec<Flow> = (0..QUEUES).map(|queue| Flow::new(port(queue % 2, queue), &[1014], 5_000_000)).collect();
    let streams = traffic::start(&pair.a, &pair.b, B, &flows);
    for (rate, weight) in [("40mbit", 5), ("20mbit", 1), ("200mbit", 2), ("10mbit", 3), ("40mbit", 1)] {
        std::thread::sleep(Duration::from_millis(150));
        lab.sluice(&pair.a, &["apply", "a0", &lab.policy(&policy(rate, classes(weight)))]).ok();
    }
    let outcomes = streams.finish(|| dropped(lab, &pair));
    let received: Vec<(u64, u64)> = outcomes.iter().map(|one| (one.sent, one.received())).collect();
    assert!(received.iter().all(|(_, received)| *received > 0), "sent and received: {received:?}");
    // A veth hands a packet to the processor that sends it: with several of them the receiver may see another order.
    assert!(!is_icount() || outcomes.iter().all(Outcome::in_order));
    passes(&pair);
    let status = lab.status(&pair.a, "a0");
    assert_eq!((0..2).map(|class| status.egress(class).backlog.pkts).sum::<u64>(), 0, "no queue is left waiting");
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.state("a0"), before);
}

/// `ethtool -L` takes queues out of use while they have packets, and brings them back.
fn queues_that_shrink(lab: &Lab) {
    let pair = steered(lab);
    lab.up(&pair.a, "a0", &lab.policy(&one_class("4mbit")), &[]);
    let flows: Vec<Flow> = (0..QUEUES).map(|queue| Flow::new(port(0, queue), &[1014], 2_000_000)).collect();
    let fill = |lab: &Lab| lab.status(&pair.a, "a0").direction("egress").link_fill;
    assert_eq!(fill(lab), Some(1.0), "the bucket that the queues share is full");
    let streams = traffic::start(&pair.a, &pair.b, B, &flows);
    std::thread::sleep(Duration::from_millis(500));
    await_that("the bucket is drawn from", Duration::from_secs(10), || fill(lab).is_some_and(|fill| fill < 0.9));
    pair.a.tool("ethtool", "-L a0 tx 2").ok();
    std::thread::sleep(Duration::from_millis(500));
    let few = sent_by_queue(&pair);
    std::thread::sleep(Duration::from_millis(400));
    let later = sent_by_queue(&pair);
    let (in_use, gone) = (&later[..2], &later[2..]);
    assert!(in_use.iter().zip(&few).all(|(later, few)| later > few), "queues in use go on: {few:?} {later:?}");
    assert_eq!(gone, &few[2..], "queues out of use send nothing");
    pair.a.tool("ethtool", "-L a0 tx 8").ok();
    std::thread::sleep(Duration::from_millis(500));
    let outcomes = streams.finish(|| dropped(lab, &pair));
    assert!(outcomes.iter().all(|one| one.received() > 0));
    let status = lab.status(&pair.a, "a0");
    let reset = status.egress(0).drops.get("reset").copied().unwrap_or(0);
    assert!(reset > 0, "packets of queues that went out of use are counted: {status:?}");
    assert_eq!(status.egress(0).backlog.pkts, 0);
    assert_eq!(lab.sluice(&pair.a, &["ensure", "a0"]).ok().stdout, "a0: everything is in place\n");
    let before = sent_by_queue(&pair);
    overload(lab, &pair, &(0..QUEUES).map(|queue| (0, queue, 1_000_000)).collect::<Vec<_>>());
    let after = sent_by_queue(&pair);
    assert!(
        before.iter().zip(&after).all(|(before, after)| after > before),
        "all queues send again: {before:?} {after:?}"
    );
    lab.down(&pair.a, "a0");
}

fn queues_that_cannot_be_had(lab: &Lab) {
    let pair = lab.pair_with(EIGHT);
    let ranked = json!({ "version": 1, "scheduler": "pifo", "link": { "rate": "2gbit", "queues": "all" },
        "classes": [{ "id": 0, "priority": 0 }] });
    lab.sluice(&pair.a, &["up", "a0", "--policy", &lab.policy(&ranked)])
        .exits(2)
        .says("ranks hold within a queue only");
    pair.a.tc("qdisc add dev a0 root mqprio num_tc 2 map 0 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 queues 4@0 4@4 hw 0");
    let path = lab.policy(&one_class("2gbit"));
    lab.sluice(&pair.a, &["up", "a0", "--policy", &path]).exits(2).says("mqprio").says("--force");
    assert_eq!(pair.a.root("a0").map(|root| root.kind), Some("mqprio".to_owned()), "nothing was changed");
    lab.up(&pair.a, "a0", &path, &["--force"]);
    assert_eq!(lab.status(&pair.a, "a0").queues, 8);
    passes(&pair);
    lab.down(&pair.a, "a0");
    let many = lab.pair_with("numtxqueues 64 numrxqueues 1");
    lab.sluice(&many.a, &["up", "a0", "--policy", &path]).exits(2).says("at most 62 share a rate").says("ethtool -L");
    let mut auto = one_class("2gbit");
    auto["link"]["queues"] = json!("auto");
    lab.up(&many.a, "a0", &lab.policy(&auto), &[]);
    assert_eq!(lab.status(&many.a, "a0").queues, 0, "one queue serves all");
    passes(&many);
    lab.down(&many.a, "a0");
}

/// A link that goes down forgets its packets, counts them, and sends at its rate when it is up again.
fn a_link_that_goes_down(lab: &Lab) {
    let pair = steered(lab);
    lab.up(&pair.a, "a0", &lab.policy(&one_class("20mbit")), &[]);
    let flows: Vec<Flow> = (0..QUEUES).map(|queue| Flow::new(port(0, queue), &[1014], 5_000_000)).collect();
    let streams = traffic::start(&pair.a, &pair.b, B, &flows);
    std::thread::sleep(Duration::from_millis(300));
    pair.a.ip("link set a0 down");
    pair.a.ip("link set a0 up");
    pair.a.ip(&format!("neigh replace {B} dev a0 lladdr {} nud permanent", crate::net::MAC_B));
    std::thread::sleep(Duration::from_millis(500));
    drop(streams.finish_lossy());
    let status = lab.status(&pair.a, "a0");
    assert!(status.egress(0).drops.get("reset").is_some_and(|reset| *reset > 0), "{status:?}");
    assert_eq!(status.egress(0).backlog.pkts, 0);
    let before = sent_by_queue(&pair);
    let outcomes = overload(lab, &pair, &(0..QUEUES).map(|queue| (0, queue, 4_000_000)).collect::<Vec<_>>());
    let after = sent_by_queue(&pair);
    assert!(before.iter().zip(&after).all(|(before, after)| after > before), "{before:?} {after:?}");
    let bps = together(&outcomes);
    assert!(bps < 20.4e6, "{bps} bit/s at 20 Mbit/s");
    lab.down(&pair.a, "a0");
}

/// Of an interface with more queues than may share a rate, those in use have a scheduler; one that comes into use later is reported.
fn queues_beyond_those_in_use(lab: &Lab) {
    let pair = lab.pair_with("numtxqueues 100 numrxqueues 1");
    pair.a.tool("ethtool", "-L a0 tx 8").ok();
    let printed = lab.up(&pair.a, "a0", &lab.policy(&one_class("2gbit")), &[]).stdout;
    assert!(printed.contains("a0 can have 100 tx queues, and 8 of them are in use"), "{printed}");
    assert_eq!(lab.status(&pair.a, "a0").queues, 8);
    passes(&pair);
    pair.a.tool("ethtool", "-L a0 tx 10").ok();
    let status = lab.sluice(&pair.a, &["status", "a0"]).ok().stdout;
    assert!(status.contains("NOT all is in place") && status.contains("queue 9, 10 of mq is in use"), "{status}");
    lab.sluice(&pair.a, &["ensure", "a0"]).exits(1).says("ethtool -L a0").says("sluice down a0");
    pair.a.tool("ethtool", "-L a0 tx 8").ok();
    assert_eq!(lab.sluice(&pair.a, &["ensure", "a0"]).ok().stdout, "a0: everything is in place\n");
    lab.down(&pair.a, "a0");
}

/// Commands on an interface whose queues share a rate die at each of their points, and the next command goes on.
fn commands_that_are_killed(lab: &Lab) {
    let pair = lab.pair_with(EIGHT);
    let before = pair.a.state("a0");
    let policy = lab.file("first.json", one_class("20mbit").to_string()).display().to_string();
    let other = policy_of_two(lab);
    let up = ["up", "a0", "--policy", &policy, "--engine", "qdisc", "--ingress-rate", "30mbit"];
    let whole = |after: &str| {
        passes(&pair);
        let status = lab.status(&pair.a, "a0");
        assert_eq!(status.queues, u32::from(QUEUES), "after {after}");
        let children = pair.a.qdiscs("a0").iter().filter(|one| one.kind == status.qdisc).count();
        assert_eq!(children, usize::from(QUEUES), "after {after}");
    };
    for point in crash::points("up") {
        lab.killed_at(point, &pair.a, &up);
        passes(&pair);
        lab.down(&pair.a, "a0");
        assert_eq!(pair.a.state("a0"), before, "after a death at {point}");
    }
    lab.sluice(&pair.a, &up).ok();
    whole("up");
    for point in crash::points("apply") {
        lab.killed_at(point, &pair.a, &["apply", "a0", &other]);
        lab.sluice(&pair.a, &["apply", "a0", &other]).ok();
        whole(point);
        lab.sluice(&pair.a, &["rollback", "a0"]).ok();
        whole(point);
    }
    for point in upgrade::POINTS {
        upgrade::age(&pair.a);
        lab.killed_at(point, &pair.a, &["upgrade", "a0"]);
        passes(&pair);
        lab.down(&pair.a, "a0");
        assert_eq!(pair.a.state("a0"), before, "after a death at {point}");
        lab.sluice(&pair.a, &up).ok();
    }
    upgrade::age(&pair.a);
    lab.sluice(&pair.a, &["upgrade", "a0"]).ok();
    whole("an upgrade");
    pair.a.tc("qdisc replace dev a0 parent 5100:3 pfifo");
    let printed = lab.sluice(&pair.a, &["ensure", "a0"]).ok().stdout;
    assert!(printed.contains("the scheduler of queue 3 of mq was replaced"), "{printed}");
    whole("a repair");
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.state("a0"), before);
}

fn policy_of_two(lab: &Lab) -> String {
    let two = policy("40mbit", json!([{ "id": 0, "weight": 2 }, { "id": 1, "ceil": "10mbit", "rate": "1mbit" }]));
    lab.file("second.json", two.to_string()).display().to_string()
}
