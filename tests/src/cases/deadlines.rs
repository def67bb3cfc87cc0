//! Deadlines that EDF meets, and that no order by priority meets.

use crate::lab::Lab;
use crate::needs::Need;
use crate::net::{B, Pair};
use crate::policy::{by_port, port, with};
use crate::suite::Suite;
use crate::traffic::{self, Arrival, Flow};
use serde_json::{Value, json};
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("deadlines").qdisc(
        "only_deadline_order_meets_all_deadlines",
        &[Need::Icount],
        only_deadline_order_meets_all_deadlines,
    )
}

/// A millisecond of 10 Mbit/s.
const FRAME: usize = 1250;
const FRAME_MS: f64 = 1.0;
/// The resolution of ranks with a deadline: 1/512 of the largest budget.
const RESOLUTION_MS: f64 = 62.0 / 512.0;

/// A stream of bursts: so many frames every so many milliseconds, each with a latency budget.
struct Bursts {
    frames: u64,
    every_ms: u64,
    budget_ms: u64,
}

/// Together they ask for 97 % of the link. If one always goes first, the other is late: 20 frames and 20 more before the 40
/// make the last of these leave after 80 ms; behind the 40, the last of the 20 leaves after 60 ms. In the order of arrival it
/// is 50 ms and more. By deadline it takes 40 and 60 ms. (After Liu and Layland, 1973.)
const STREAMS: [Bursts; 2] =
    [Bursts { frames: 20, every_ms: 50, budget_ms: 42 }, Bursts { frames: 40, every_ms: 70, budget_ms: 62 }];

/// Two rounds of the pattern, which repeats itself after 350 ms.
const TIME: Duration = Duration::from_millis(690);

fn only_deadline_order_meets_all_deadlines(lab: &Lab) {
    let pair = lab.pair();
    let classes = |key: &str, values: [Value; 2]| {
        let class = |id: usize| json!({ "id": id, "limit": 200, key: values[id] });
        json!([class(0), class(1)])
    };
    let budgets = STREAMS.map(|one| json!(format!("{}ms", one.budget_ms)));
    let pifo = by_port("pifo", classes("latency_budget", budgets));
    let strict = |priorities: [u8; 2]| by_port("strict_priority", classes("priority", priorities.map(|n| json!(n))));
    let start = lab.policy(&strict([0, 1]));
    lab.up(&pair.a, "a0", &start, &["--rate", "10mbit"]);
    for (what, policy, misses) in [
        ("earliest_deadline", with(pifo.clone(), "rank", json!("earliest_deadline")), [false, false]),
        ("slack", with(pifo, "rank", json!("slack")), [false, false]),
        ("arrival", by_port("pifo", classes("priority", [json!(0), json!(0)])), [true, false]),
        ("strict_priority, the shorter budget first", strict([0, 1]), [false, true]),
        ("strict_priority, the longer budget first", strict([1, 0]), [true, false]),
    ] {
        let missed = missed(lab, &pair, what, &policy);
        assert_eq!(
            missed.map(|count| count > 0),
            misses,
            "streams that miss deadlines under {what}: {missed:?} packets"
        );
    }
    lab.down(&pair.a, "a0");
}

/// The number of packets of each stream that are later than their deadline by more than a frame in transmission and the
/// resolution of the ranks.
fn missed(lab: &Lab, pair: &Pair, what: &str, policy: &Value) -> [usize; 2] {
    lab.sluice(&pair.a, &["apply", "a0", &lab.policy(policy)]).ok();
    let flows = [0, 1].map(|class| {
        let Bursts { frames, every_ms, .. } = STREAMS[usize::from(class)];
        Flow::bursts(port(class), FRAME, frames, Duration::from_millis(every_ms))
    });
    let outcomes = traffic::run(&pair.a, &pair.b, B, &flows, TIME, || 0);
    assert!(outcomes.iter().all(|one| one.lost() == 0 && one.in_order()), "{what}: all arrive, in order");
    [0, 1].map(|class| {
        let budget_ms = STREAMS[class].budget_ms as f64;
        let worst_ms = outcomes[class].delay_ms(1.0);
        let late = |arrival: &&Arrival| arrival.delay_ns() as f64 / 1e6 > budget_ms + FRAME_MS + RESOLUTION_MS;
        let missed = outcomes[class].arrivals.iter().filter(late).count();
        let sent = outcomes[class].sent;
        eprintln!("    {what}: of {sent} with {budget_ms} ms, {missed} missed, the slowest took {worst_ms:.2} ms");
        missed
    })
}
