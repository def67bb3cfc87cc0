//! The shaped rate, with what the link below adds to each frame.

use crate::cases::assert_near;
use crate::lab::Lab;
use crate::needs::Need;
use crate::net::B;
use crate::policy::{by_port, port, with};
use crate::suite::Suite;
use crate::traffic::{self, Flow, Outcome};
use serde_json::{Value, json};
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("shaping")
        .both("holds_below_the_rate", &[Need::NoIcount], holds_below_the_rate)
        .both("rate_is_exact", &[Need::Icount], rate_is_exact)
        .both("overhead_is_counted", &[Need::Icount], overhead_is_counted)
}

const SETTLE: Duration = Duration::from_millis(200);

fn one_class() -> Value {
    by_port("strict_priority", json!([{ "id": 0, "priority": 0, "limit": 100 }]))
}

/// Overloads a0 with frames of these lengths, at the rate in force.
fn measure(lab: &Lab, pair: &crate::net::Pair, frames: &[usize], bps: u64) -> Outcome {
    let before = lab.status(&pair.a, "a0").egress(0).dropped.pkts;
    let lost = || lab.status(&pair.a, "a0").egress(0).dropped.pkts - before;
    let flows = [Flow::new(port(0), frames, bps)];
    traffic::run(&pair.a, &pair.b, B, &flows, Duration::from_millis(800), lost).remove(0)
}

/// The rate is not exceeded, natively too: a loaded machine may be late, but it is never early.
fn holds_below_the_rate(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&one_class()), &["--rate", "20mbit"]);
    let outcome = measure(lab, &pair, &[1514], 40_000_000);
    let bps = outcome.bps(SETTLE, 0);
    assert!(bps < 20.4e6, "{bps} bit/s at a rate of 20 Mbit/s");
    assert!(bps > 2e6, "{bps} bit/s at a rate of 20 Mbit/s");
    assert!(outcome.lost() > 0, "what is too much is dropped");
    lab.down(&pair.a, "a0");
    let outcome = traffic::run(&pair.a, &pair.b, B, &[Flow::new(port(0), &[1514], 40_000_000)], SETTLE * 3, || 0);
    assert_eq!(outcome[0].lost(), 0, "without it, nothing is");
}

fn rate_is_exact(lab: &Lab) {
    let pair = lab.pair();
    let policy = lab.policy(&one_class());
    lab.up(&pair.a, "a0", &policy, &["--rate", "10mbit"]);
    for (rate, frames) in [(10, &[150][..]), (20, &[1514]), (20, &[614]), (50, &[1514, 314]), (50, &[1014])] {
        lab.sluice(&pair.a, &["apply", "a0", &policy, "--rate", &format!("{rate}mbit")]).ok();
        assert_eq!(lab.status(&pair.a, "a0").rate_bps, Some(rate * 1_000_000));
        let outcome = measure(lab, &pair, frames, rate * 1_300_000);
        assert_near(
            &format!("{rate} Mbit/s with frames of {frames:?}"),
            outcome.bps(SETTLE, 0),
            rate as f64 * 1e6,
            0.005,
        );
    }
    lab.sluice(&pair.a, &["apply", "a0", &policy]).ok();
    assert_eq!(lab.status(&pair.a, "a0").rate_bps, Some(50_000_000), "without --rate it stays");
    lab.down(&pair.a, "a0");
}

/// A frame of n bytes on a link with Ethernet's framing costs n + 24 (FCS, preamble, gap), and at least 84.
fn overhead_is_counted(lab: &Lab) {
    let pair = lab.pair();
    let policy = with(one_class(), "link", json!({ "rate": "10mbit", "overhead": "ethernet" }));
    lab.up(&pair.a, "a0", &lab.policy(&policy), &[]);
    for (frame, wire) in [(58usize, 84i64), (90, 114), (514, 538)] {
        let outcome = measure(lab, &pair, &[frame], 10_000_000 * frame as u64 / wire as u64 * 13 / 10);
        let what = format!("frames of {frame} bytes that take {wire} on the wire");
        assert_near(&what, outcome.bps(SETTLE, wire - frame as i64), 10e6, 0.005);
    }
    lab.down(&pair.a, "a0");
}
