//! The shares of classes on an overloaded link: strict priority, deficit round robin, guarantees.

use crate::cases::assert_near;
use crate::lab::Lab;
use crate::needs::{Need, is_icount};
use crate::net::{B, Pair};
use crate::policy::{by_port, port, three};
use crate::suite::Suite;
use crate::traffic::{self, Flow, Outcome};
use serde_json::{Value, json};
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("shares")
        .both("strict_priority_under_overload", &[], strict_priority)
        .both("equal_priorities_share", &[Need::Icount], equal_priorities_share)
        .both("round_robin_by_quantum", &[Need::Icount], round_robin_by_quantum)
        .both("guarantee_under_strict_priority", &[Need::Icount], guarantee)
        .both("ceiling", &[Need::Icount], ceiling)
}

const SETTLE: Duration = Duration::from_millis(300);

/// Runs streams over a0 with this policy and rate. Losses must equal the drops that the product reports.
fn overload(lab: &Lab, policy: &Value, rate: &str, flows: &[Flow], time: Duration) -> Vec<Outcome> {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(policy), &["--rate", rate]);
    let outcomes = traffic::run(&pair.a, &pair.b, B, flows, time, || dropped(lab, &pair));
    lab.down(&pair.a, "a0");
    outcomes
}

fn dropped(lab: &Lab, pair: &Pair) -> u64 {
    lab.status(&pair.a, "a0").direction("egress").totals().1
}

/// 5 and 8 Mbit/s of urgent traffic and 20 of other traffic, on 20.
fn strict_priority(lab: &Lab) {
    let flows = [
        Flow::new(port(0), &[214], 5_000_000),
        Flow::new(port(1), &[514, 1014], 8_000_000),
        Flow::new(port(2), &[1514], 20_000_000),
    ];
    let outcomes = overload(lab, &three(), "20mbit", &flows, Duration::from_millis(1500));
    assert_eq!(outcomes[0].lost(), 0, "zero loss in the most urgent class");
    assert_eq!(outcomes[1].lost(), 0, "zero loss in the next");
    assert!(
        outcomes[2].lost() > outcomes[2].sent / 4,
        "loss in the last: {} of {}",
        outcomes[2].lost(),
        outcomes[2].sent
    );
    assert!(outcomes[2].received() > 0, "which gets what the others leave");
    assert!(outcomes.iter().all(Outcome::in_order), "no class is reordered");
    let delays: Vec<f64> = outcomes.iter().map(|one| one.delay_ms(0.5)).collect();
    eprintln!(
        "    median delays {delays:.3?} ms, p99 {:.3} / {:.3} ms",
        outcomes[0].delay_ms(0.99),
        outcomes[1].delay_ms(0.99)
    );
    assert!(delays[0] < delays[2] && delays[1] < delays[2], "the urgent wait less: {delays:?} ms");
    // The queue of 100 frames takes 174 ms at the remaining 7 Mbit/s.
    assert!(delays[2] > 10.0, "the last class does queue: {delays:?} ms");
    if is_icount() {
        assert_near("what is left to the last class", outcomes[2].bps(SETTLE, 0), 7e6, 0.02);
        let p99 = [0, 1].map(|class: usize| outcomes[class].delay_ms(0.99));
        // A frame of 1514 bytes takes 0.61 ms; the sender releases a millisecond's worth at a time.
        assert!(p99[0] < 1.5 && p99[0] <= p99[1] && p99[1] < 3.0, "p99 of the urgent classes: {p99:?} ms");
    }
}

fn equal_priorities_share(lab: &Lab) {
    let class = |id: u8, priority: u8| json!({ "id": id, "priority": priority, "limit": 200 });
    let policy = by_port("strict_priority", json!([class(0, 1), class(1, 1), class(2, 2)]));
    let flows = [
        Flow::new(port(0), &[1514], 15_000_000),
        Flow::new(port(1), &[714], 15_000_000),
        Flow::new(port(2), &[1014], 5_000_000),
    ];
    let outcomes = overload(lab, &policy, "20mbit", &flows, Duration::from_millis(1500));
    let rates: Vec<f64> = outcomes.iter().map(|one| one.bps(SETTLE, 0)).collect();
    assert_near("half of two equals", rates[0] / (rates[0] + rates[1]), 0.5, 0.02);
    assert!(rates[2] < 50_000.0 || outcomes[2].window(SETTLE).len() < 3, "the less urgent starves: {} bit/s", rates[2]);
}

fn round_robin_by_quantum(lab: &Lab) {
    let class = |id: u8, quantum: u32| json!({ "id": id, "quantum": quantum, "limit": 200 });
    let policy = by_port("deficit_round_robin", json!([class(0, 1514), class(1, 3028), class(2, 4542)]));
    let flows = [
        Flow::new(port(0), &[214], 5_500_000),
        Flow::new(port(1), &[714, 1514], 10_000_000),
        Flow::new(port(2), &[1414, 314, 1000], 14_000_000),
    ];
    let outcomes = overload(lab, &policy, "20mbit", &flows, Duration::from_secs(2));
    let rates: Vec<f64> = outcomes.iter().map(|one| one.bps(SETTLE, 0)).collect();
    let sum: f64 = rates.iter().sum();
    for (class, part) in [(0, 1.0), (1, 2.0), (2, 3.0)] {
        assert_near(&format!("share of class {class}"), rates[class] / sum, part / 6.0, 0.02);
    }
}

fn guarantee(lab: &Lab) {
    let policy = by_port(
        "strict_priority",
        json!([
            { "id": 0, "priority": 0, "limit": 200 },
            { "id": 1, "priority": 5, "limit": 200, "rate": "4mbit" },
        ]),
    );
    let flows = [Flow::new(port(0), &[1014], 30_000_000), Flow::new(port(1), &[714], 10_000_000)];
    let outcomes = overload(lab, &policy, "20mbit", &flows, Duration::from_millis(1500));
    assert_near("the guarantee of the less urgent", outcomes[1].bps(SETTLE, 0), 4e6, 0.02);
    assert_near("the rest", outcomes[0].bps(SETTLE, 0), 16e6, 0.02);
}

fn ceiling(lab: &Lab) {
    let policy = by_port(
        "strict_priority",
        json!([
            { "id": 0, "priority": 0, "limit": 200, "ceil": "5mbit" },
            { "id": 1, "priority": 5, "limit": 200 },
        ]),
    );
    let flows = [Flow::new(port(0), &[514], 9_000_000), Flow::new(port(1), &[1514], 20_000_000)];
    let outcomes = overload(lab, &policy, "20mbit", &flows, Duration::from_millis(1500));
    assert_near("the ceiling of the urgent class", outcomes[0].bps(SETTLE, 0), 5e6, 0.01);
    assert_near("the rest", outcomes[1].bps(SETTLE, 0), 15e6, 0.01);
}
