//! Tests on histories that run full.

use super::*;
use crate::rates::InterfaceRates;
use sluice_kernel::status::{Count, PolicyStatus};
use sluice_kernel::{Engine, Hook};

fn rates(at_ms: u64, interfaces: &[(&str, u8, f64)]) -> Rates {
    let interface = |(name, classes, bps): &(&str, u8, f64)| InterfaceRates {
        tree: None,
        interface: (*name).to_owned(),
        ifindex: 1,
        engine: Engine::Tc,
        classifier: Hook::Tc,
        in_place: true,
        policy: PolicyStatus {
            name: String::new(),
            source: String::new(),
            scheduler: String::new(),
            generation: 1,
            applied_s: 0,
        },
        unconfirmed: None,
        directions: vec![DirectionRates {
            direction: "egress",
            sent_bps: *bps,
            classes: (0..*classes).map(|id| ClassRates { id, sent_bps: *bps, ..ClassRates::default() }).collect(),
            backlog: Count { pkts: 1, bytes: 9 },
            ..DirectionRates::default()
        }],
        rules: Vec::new(),
        unmatched_pps: 0.0,
        forwards: Vec::new(),
    };
    Rates { at_ms, span_s: 1.0, interfaces: interfaces.iter().map(interface).collect(), events: Vec::new() }
}

fn series(interface: &str, class: Option<u8>) -> Series {
    Series { interface: interface.to_owned(), direction: "egress", class }
}

fn sent(history: &History, name: &Series, moments: usize) -> Vec<Option<f32>> {
    history.last(name, moments).map(|point| point.map(|point| point.sent_bps)).collect()
}

#[test]
fn the_oldest_makes_room() {
    let mut history = History::new(3);
    (1..=5u64).for_each(|n| history.push(&rates(n, &[("a", 1, n as f64)])));
    assert_eq!(history.len(), 3);
    assert_eq!(sent(&history, &series("a", Some(0)), 9), [Some(3.0), Some(4.0), Some(5.0)]);
    assert_eq!(sent(&history, &series("a", None), 2), [Some(4.0), Some(5.0)]);
}

#[test]
fn absent_series_has_a_gap_and_then_disappears() {
    let mut history = History::new(4);
    history.push(&rates(1, &[("a", 1, 1.0), ("b", 1, 10.0)]));
    history.push(&rates(2, &[("a", 1, 2.0)]));
    history.push(&rates(3, &[("a", 1, 3.0), ("b", 1, 30.0), ("c", 1, 7.0)]));
    assert_eq!(sent(&history, &series("b", None), 3), [Some(10.0), None, Some(30.0)]);
    assert_eq!(sent(&history, &series("c", None), 3), [None, None, Some(7.0)]);
    (4..=8u64).for_each(|n| history.push(&rates(n, &[("a", 1, n as f64)])));
    assert!(history.series().all(|name| name.interface == "a"), "what is older than the ring is forgotten");
    let columns = history.columns(2, |name| name.class.is_none());
    assert_eq!((columns.at_ms, columns.series.len()), (vec![7, 8], 1));
    assert_eq!(columns.series[0].sent_bps, [Some(7.0), Some(8.0)]);
    assert_eq!(columns.series[0].p50_us, [None, None]);
}

#[test]
fn an_hour_has_bounded_memory() {
    let mut history = History::default();
    let busy = [("a", 64, 1.0), ("b", 64, 1.0)];
    (0..3600u64).for_each(|n| history.push(&rates(n, &busy)));
    let full_bytes = history.memory_bytes();
    (3600..9000u64).for_each(|n| history.push(&rates(n, &busy)));
    assert_eq!((history.len(), history.memory_bytes()), (3600, full_bytes));
    assert!(full_bytes < 130 * 4096 * size_of::<Compact>() + (1 << 16), "{full_bytes} bytes");
    // Series beyond the limit are not kept.
    let many: Vec<String> = (0..80).map(|n| format!("i{n}")).collect();
    let many: Vec<(&str, u8, f64)> = many.iter().map(|name| (name.as_str(), 64, 1.0)).collect();
    let mut history = History::new(2);
    history.push(&rates(1, &many));
    assert_eq!(history.series().count(), MAX_SERIES);
}
