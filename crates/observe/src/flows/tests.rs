//! Tests on fixed tables of flows.

use super::*;
use crate::rates::fixture::sample;
use std::net::{IpAddr, Ipv4Addr};

const SECOND: u64 = 1_000_000_000;

fn host(n: u32) -> IpAddr {
    Ipv4Addr::from(0x0a00_0000 + n).into()
}

fn flow(src: u32, src_port: u16, dst: u32, dst_port: u16, pkts: u64, bytes: u64) -> FlowCount {
    FlowCount {
        key: FlowKey {
            protocol: 17,
            src: host(src),
            src_port: Some(src_port),
            dst: host(dst),
            dst_port: Some(dst_port),
            arriving: false,
        },
        pkts,
        bytes,
        first_ns: 90 * SECOND,
        last_ns: 100 * SECOND,
        generation: 1,
        class: 1,
        rule: 0,
    }
}

fn table(at_s: u64, flows: Vec<FlowCount>) -> FlowSample {
    let rules = vec![(0, "first".to_owned())];
    let table = FlowTable { flows, capacity: 100, rules, generation: 1 };
    FlowSample { at_ns: at_s * SECOND, tables: vec![("eth7".to_owned(), Some(table))] }
}

/// The last rates of a tracker that takes these tables one after another.
fn follow(tables: &[FlowSample], by: By) -> FlowRates {
    let mut tracker = Tracker::default();
    let mut last = FlowRates::default();
    for one in tables {
        last = tracker.take(one, &sample(1, 1, [0, 0], 0), by, 10);
    }
    last
}

fn kinds(rates: &FlowRates) -> Vec<Kind> {
    rates.anomalies.iter().map(|one| one.kind).collect()
}

#[test]
fn rates_are_differences_and_rank() {
    let small = |pkts, bytes| flow(1, 10, 2, 20, pkts, bytes);
    let large = |pkts, bytes| flow(1, 11, 2, 20, pkts, bytes);
    let then = table(100, vec![small(10, 1000), large(9000, 9_000_000)]);
    let now = table(102, vec![small(210, 21_000), large(9002, 9_002_000)]);
    let by_rate = follow(&[then.clone(), now.clone()], By::Rate);
    assert_eq!((by_rate.known, by_rate.active, by_rate.span_s), (2, 2, 2.0));
    let first = &by_rate.top[0];
    assert_eq!((first.key.src_port, first.bps, first.pps), (Some(10), 80_000.0, 100.0));
    assert_eq!((first.class_name.as_str(), first.rule.as_deref(), first.age_s), ("class1", Some("first"), 10.0));
    assert_eq!(first.idle_s, 2.0);
    let by_bytes = follow(&[then.clone(), now.clone()], By::Bytes);
    assert_eq!(by_bytes.top[0].key.src_port, Some(11));
    assert_eq!(follow(&[then, now], By::Pkts).top[0].pkts, 9002);
    assert_eq!(by_rate.classes.len(), 1);
    assert_eq!((by_rate.classes[0].flows, by_rate.classes[0].share), (2, 1.0));
}

#[test]
fn first_reading_has_no_rates_but_new_flows_have() {
    let old = flow(1, 10, 2, 20, 10, 1000);
    let first = follow(&[table(100, vec![old])], By::Rate);
    assert_eq!((first.top[0].bps, first.active), (0.0, 0));
    let new = flow(3, 10, 2, 20, 4, 500);
    let second = follow(&[table(100, vec![old]), table(101, vec![old, new])], By::Rate);
    assert_eq!((second.top[0].key.src, second.top[0].bps, second.active), (host(3), 4000.0, 1));
    // A flow that was put out of the table and is back counts from its return.
    let back = flow(1, 10, 2, 20, 2, 250);
    let third = follow(&[table(100, vec![old]), table(101, vec![back])], By::Rate);
    assert_eq!(third.top[0].bps, 2000.0);
}

#[test]
fn choice_of_a_former_policy_names_no_rule() {
    let old = FlowCount { generation: 7, ..flow(1, 10, 2, 20, 10, 1000) };
    assert_eq!(follow(&[table(100, vec![old])], By::Rate).top[0].rule, None);
}

#[test]
fn port_scan_is_found_and_answers_are_no_scan() {
    let probe = |port: u16| FlowCount { first_ns: 95 * SECOND, ..flow(1, 40_000 + port, 2, port, 1, 60) };
    let answer = |port: u16| {
        let asked = probe(port);
        FlowCount { key: asked.key.reverse(), first_ns: asked.first_ns + 1000, ..asked }
    };
    let flows: Vec<FlowCount> = (1..=200).flat_map(|port| [probe(port), answer(port)]).collect();
    let rates = follow(&[table(100, flows.clone())], By::Rate);
    assert_eq!(kinds(&rates), [Kind::PortScan]);
    let found = &rates.anomalies[0];
    assert_eq!(found.source, host(1));
    assert_eq!(
        found.reason,
        "10.0.0.1 has begun flows to 200 ports of 10.0.0.2 within 60 s, each of 3 packets at most"
    );
    // Flows of long ago, few flows, and flows with real traffic are no scan.
    assert!(kinds(&follow(&[table(200, flows.clone())], By::Rate)).is_empty());
    assert!(kinds(&follow(&[table(100, flows[..100].to_vec())], By::Rate)).is_empty());
    let real: Vec<FlowCount> = flows.iter().map(|flow| FlowCount { pkts: 40, ..*flow }).collect();
    assert!(kinds(&follow(&[table(100, real)], By::Rate)).is_empty());
}

#[test]
fn a_sweep_of_hosts_is_found() {
    let flows = (10..100).map(|n| flow(1, 5000, n, 22, 1, 60)).collect();
    let rates = follow(&[table(100, flows)], By::Rate);
    assert_eq!(kinds(&rates), [Kind::HostScan]);
    assert!(rates.anomalies[0].reason.contains("port 22 of 90 hosts"), "{}", rates.anomalies[0].reason);
}

#[test]
fn burst_above_a_known_baseline_is_found() {
    let sent = |at_s: u64, bytes: u64| table(at_s, vec![flow(1, 10, 2, 20, bytes / 1000, bytes)]);
    // The flow sends 100 kbit/s for so long, then 8 Mbit/s for a second.
    let quiet = |seconds: u64| (0..=seconds).map(|n| sent(100 + n, n * 12_500)).collect::<Vec<_>>();
    for (seconds, expected) in [(20, vec![Kind::AboveItsUsual]), (5, vec![])] {
        let mut all = quiet(seconds);
        all.push(sent(101 + seconds, seconds * 12_500 + 1_000_000));
        assert_eq!(kinds(&follow(&all, By::Rate)), expected, "after {seconds} s");
    }
    let mut all = quiet(20);
    all.push(sent(121, 20 * 12_500 + 1_000_000));
    let reason = follow(&all, By::Rate).anomalies[0].reason.clone();
    assert_eq!(reason, "it sends 8.0 Mbit/s, and usually 100.0 kbit/s");
}

#[test]
fn outlier_of_a_class_is_found() {
    let flows = |bytes: u64| {
        let mut all: Vec<FlowCount> = (0..9u16).map(|n| flow(1, n, 2, 20, 10 + bytes / 1000, bytes)).collect();
        all[4].bytes = bytes * 100;
        all[4].first_ns = 0;
        all
    };
    let now =
        table(4000, flows(20_000).into_iter().map(|f| FlowCount { first_ns: f.first_ns / 90 * 3990, ..f }).collect());
    let rates = follow(&[table(3999, flows(0)), now], By::Rate);
    assert_eq!(kinds(&rates), [Kind::AboveItsClass, Kind::LongLived], "{:#?}", rates.anomalies);
    assert!(rates.anomalies.iter().all(|one| one.flow.is_some_and(|key| key.src_port == Some(4))));
    assert!(rates.anomalies[1].reason.contains("67 min"), "{}", rates.anomalies[1].reason);
}

#[test]
fn elephants_are_found_only_in_urgent_classes() {
    let large = |class| FlowCount { class, ..flow(1, 10, 2, 20, 3000, 3_000_000) };
    let before = |class| FlowCount { pkts: 0, bytes: 0, ..large(class) };
    for (class, expected) in [(0, vec![Kind::ElephantInUrgentClass]), (1, vec![])] {
        let rates = follow(&[table(100, vec![before(class)]), table(110, vec![large(class)])], By::Rate);
        assert_eq!(kinds(&rates), expected);
    }
}
