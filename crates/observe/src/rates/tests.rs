//! Tests on the differences of fixed samples.

use super::fixture::{forward, sample};
use super::*;
use sluice_kernel::status::{LeafCounts, QueueStatus, SubscriberStatus, TreeStatus, TxQueueStatus, Way};
use std::sync::Arc;

fn egress(rates: &Rates) -> &DirectionRates {
    &rates.interfaces[0].directions[0]
}

#[test]
fn rates_are_differences_over_time() {
    let rates = Rates::between(&sample(10, 1, [100, 200], 4), &sample(12, 1, [300, 800], 24));
    let one = egress(&rates);
    assert_eq!((rates.span_s, rates.at_ms), (2.0, 12_000));
    assert_eq!((one.sent_pps, one.sent_bps), (400.0, 3_200_000.0));
    assert_eq!(one.used, Some(0.4));
    assert_eq!((one.dropped_pps, one.marked_pps), (10.0, 40.0));
    let class = &one.classes[1];
    assert_eq!((class.sent_pps, class.share, class.promised_share), (300.0, Some(0.75), Some(0.5)));
    assert_eq!(class.drops_pps, [("limit_pkts", 10.0)].into());
    assert!(one.classes[0].drops_pps.is_empty(), "what dropped nothing is left out");
    assert_eq!(class.backlog_fill, Some(0.5), "packets are nearer to their limit than bytes");
    let waits = class.sojourn.expect("the engine tells");
    assert_eq!((waits.pkts, waits.p50_us, waits.max_us), (600, 9.216, 10.24));
    assert_eq!(rates.interfaces[0].rules[0].matched_pps, 100.0);
    assert_eq!(rates.interfaces[0].unmatched_pps, 300.0);
}

#[test]
fn tx_queues_have_rates_of_their_own() {
    let with = |at_s, queues: &[(u16, u64)]| {
        let mut sample = sample(at_s, 1, [0, 0], 0);
        let one = |&(queue, pkts): &(u16, u64)| TxQueueStatus {
            queue,
            sent: Count { pkts, bytes: pkts * 1000 },
            dropped: Count { pkts: pkts / 10, bytes: pkts * 100 },
            backlog: Count { pkts: 3, bytes: 3000 },
            lost: None,
        };
        sample.interfaces[0].directions[0].tx_queues = queues.iter().map(one).collect();
        sample
    };
    let rates = Rates::between(&with(10, &[(0, 100), (1, 500)]), &with(12, &[(0, 300), (1, 500), (7, 40)]));
    let told: Vec<_> =
        egress(&rates).tx_queues.iter().map(|one| (one.queue, one.sent_pps, one.sent_bps, one.dropped_pps)).collect();
    assert_eq!(told, [(0, 100.0, 800_000.0, 10.0), (1, 0.0, 0.0, 0.0), (7, 0.0, 0.0, 0.0)]);
}

#[test]
fn decreasing_counter_has_begun_anew() {
    let rates = Rates::between(&sample(10, 1, [1000, 2000], 50), &sample(11, 1, [10, 20], 5));
    let one = egress(&rates);
    assert_eq!((one.sent_pps, one.dropped_pps), (30.0, 5.0));
    assert_eq!(one.classes[1].sojourn.map(|waits| waits.pkts), Some(20));
}

#[test]
fn interface_set_up_again_counts_from_zero() {
    let mut now = sample(11, 1, [3000, 4000], 0);
    now.events.push(Event { interface: "eth7".to_owned(), what: News::SetUpAnew });
    let rates = Rates::between(&sample(10, 1, [1000, 2000], 0), &now);
    assert_eq!(egress(&rates).sent_pps, 7000.0);
}

#[test]
fn interfaces_are_identified_by_number() {
    let then = sample(10, 1, [1000, 2000], 0);
    let mut renamed = sample(11, 1, [1100, 2000], 0);
    renamed.interfaces[0].interface = "wan".to_owned();
    assert_eq!(egress(&Rates::between(&then, &renamed)).sent_pps, 100.0);
    let mut replaced = sample(11, 1, [1100, 2000], 0);
    replaced.interfaces[0].ifindex = 8;
    assert_eq!(egress(&Rates::between(&then, &replaced)).sent_pps, 3100.0);
}

#[test]
fn new_interface_has_no_rates() {
    let rates = Rates::between(&Sample { at_ns: 1, ..Sample::default() }, &sample(11, 1, [3000, 4000], 9));
    let one = egress(&rates);
    assert_eq!((one.sent_pps, one.dropped_pps, one.classes[0].share), (0.0, 0.0, None));
    assert!(one.classes[0].sojourn.is_none());
}

#[test]
fn a_new_rule_does_not_inherit_hits() {
    let rates = Rates::between(&sample(10, 1, [100, 0], 0), &sample(11, 2, [500, 0], 0));
    assert_eq!(rates.interfaces[0].rules[0].matched_pps, 0.0);
    assert_eq!(egress(&rates).sent_pps, 400.0, "classes go on");
}

#[test]
fn forwards_are_compared_by_name() {
    let with = |mut sample: Sample, forwards: Vec<ForwardStatus>| {
        sample.interfaces[0].forwards = forwards;
        sample
    };
    let then = with(sample(10, 1, [0, 0], 0), vec![forward("web", 10), forward("mail", 50)]);
    let later = with(sample(12, 2, [0, 0], 0), vec![forward("mail", 70), forward("new", 1000), forward("web", 10)]);
    let rates = Rates::between(&then, &later);
    let [mail, new, web] = &rates.interfaces[0].forwards[..] else { panic!("three forwards") };
    assert_eq!((mail.opened_per_s, mail.open, mail.opened), (10.0, 7, 70));
    assert_eq!((mail.from_clients_pps, mail.from_clients_bps), (100.0, 80_000.0));
    assert_eq!((mail.from_targets_pps, mail.from_targets_bps), (200.0, 800_000.0));
    assert_eq!((mail.refused_pps, &mail.refusals_pps), (10.0, &[("table_full", 10.0)].into()));
    assert_eq!((new.opened_per_s, new.from_clients_bps), (0.0, 0.0), "nothing is known of its past");
    assert!(web.refusals_pps.is_empty() && web.refused_pps.is_sign_positive());
    let fell = Rates::between(&later, &with(sample(13, 3, [0, 0], 0), vec![forward("mail", 20)]));
    assert_eq!(fell.interfaces[0].forwards[0].from_targets_bps, 0.0, "sums of a replaced forward have gone");
    let mut anew = with(sample(13, 1, [0, 0], 0), vec![forward("web", 900)]);
    anew.events.push(Event { interface: "eth7".to_owned(), what: News::SetUpAnew });
    assert_eq!(Rates::between(&then, &anew).interfaces[0].forwards[0].opened_per_s, 0.0, "another interface kept them");
}

#[test]
fn zero_interval_has_zero_rates() {
    let rates = Rates::between(&sample(10, 1, [100, 0], 0), &sample(10, 1, [500, 0], 0));
    assert_eq!(egress(&rates).sent_pps, 0.0);
}

#[test]
fn json_has_the_field_names() {
    let rates = Rates::between(&sample(10, 1, [100, 200], 4), &sample(12, 1, [300, 800], 24));
    let json = serde_json::to_value(&rates).expect("rates are JSON");
    let one = &json["interfaces"][0]["directions"][0];
    assert_eq!(one["use"], 0.4);
    assert_eq!(one["classes"][1]["drops_pps"]["limit_pkts"], 10.0);
    assert_eq!(json["interfaces"][0]["engine"], "qdisc");
}

/// A tree with these subscribers, each with a key and the packets that it has sent.
fn tree(subscribers: &[(&str, u64)]) -> TreeStatus {
    let counts = |pkts| LeafCounts { sent: Count { pkts, bytes: pkts * 1000 }, ..LeafCounts::default() };
    let one = |&(id, pkts): &(&str, u64)| SubscriberStatus {
        id: id.to_owned(),
        name: id.to_owned(),
        site: None,
        plan: None,
        addresses: Arc::new([]),
        queue: QueueStatus {
            rate_bps: None,
            ceil_bps: None,
            ceil_fill: None,
            counts: counts(pkts),
            marked_pkts: 0,
            wait_ms: None,
        },
        classes: Vec::new(),
    };
    TreeStatus {
        way: Way::Down,
        is_class_tree: false,
        early_drop_at: Vec::new(),
        sites: Vec::new(),
        all: subscribers.iter().map(one).collect(),
        nobody: counts(0),
    }
}

#[test]
fn subscribers_are_compared_by_their_keys() {
    let with = |at_s, subscribers: &[(&str, u64)]| {
        let mut sample = sample(at_s, 1, [0, 0], 0);
        sample.interfaces[0].tree = Some(tree(subscribers));
        sample
    };
    let then = with(10, &[("a", 100), ("b", 200), ("c", 300)]);
    // One has gone, one has come, and the others stand elsewhere.
    let now = with(12, &[("b", 240), ("new", 1000), ("c", 320), ("a", 160)]);
    let rates = Rates::between(&then, &now);
    let tree = rates.interfaces[0].tree.as_ref().expect("a tree");
    let told: Vec<_> = tree.subscribers.iter().map(|one| (one.id.as_str(), one.queue.rates.sent_pps)).collect();
    assert_eq!(told, [("b", 20.0), ("new", 0.0), ("c", 10.0), ("a", 30.0)]);
}
