//! The shares of each discipline, and that a ceiling holds in all of them.

use crate::cases::assert_near;
use crate::lab::{Engine, Lab};
use crate::needs::Need;
use crate::net::B;
use crate::policy::{by_port, port, with};
use crate::suite::Suite;
use crate::traffic::{self, Flow, Outcome, now_ns};
use serde_json::{Value, json};
use std::thread;
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("disciplines").both("shares_and_ceilings", &[Need::Icount], shares_and_ceilings)
}

const SETTLE: Duration = Duration::from_millis(100);

/// The expected result of a policy.
enum Expected {
    /// Bytes as 3 : 2 : 1.
    Shares,
    /// One packet of each class in turn.
    Turns,
    /// 3 Mbit/s of class 0, which would get more, and no idle moment of the link.
    Ceiling,
}

/// Overloads a0 at 20 Mbit/s, under one policy after the other: the interface goes up once, since that takes longest. The class
/// with the least share has the longest packets.
fn shares_and_ceilings(lab: &Lab) {
    let pair = lab.pair();
    let trials = trials(lab.engine);
    let files: Vec<String> = trials.iter().map(|(_, policy, _)| lab.policy(policy)).collect();
    let flows = [
        Flow::new(port(0), &[700], 11_500_000),
        Flow::new(port(1), &[1400, 700, 200], 8_500_000),
        Flow::new(port(2), &[1400], 11_500_000),
    ];
    lab.up(&pair.a, "a0", &files[0], &["--rate", "20mbit"]);
    let streams = traffic::start(&pair.a, &pair.b, B, &flows);
    let mut spans = Vec::new();
    for (file, (_, _, expected)) in files.iter().zip(&trials) {
        lab.sluice(&pair.a, &["apply", "a0", file]).ok();
        thread::sleep(SETTLE);
        let from = now_ns();
        thread::sleep(Duration::from_millis(if matches!(expected, Expected::Shares) { 1200 } else { 700 }));
        spans.push((from, now_ns()));
    }
    // Engine tc loses drop counts when it creates the queue of a class again.
    let outcomes = match lab.engine {
        Engine::Tc => streams.finish_lossy(),
        _ => streams.finish(|| lab.status(&pair.a, "a0").direction("egress").totals().1),
    };
    lab.down(&pair.a, "a0");
    assert!(outcomes.iter().all(Outcome::in_order), "no stream is reordered");
    for ((what, _, expected), (from, to)) in trials.iter().zip(spans) {
        let parts: Vec<Outcome> = outcomes.iter().map(|one| one.between(from, to)).collect();
        let bytes: u64 = parts.iter().map(Outcome::bytes).sum();
        assert_near(&format!("{what}, all of the link"), bytes as f64 * 8e9 / (to - from) as f64, 20e6, 0.005);
        check(what, expected, &parts);
    }
}

/// Names of the trials, and policies.
fn trials(engine: Engine) -> Vec<(String, Value, Expected)> {
    let class = |id: u32| {
        json!({ "id": id, "limit": 200, "priority": id, "weight": 3 - id, "quantum": 1514 * (3 - id),
            "latency_budget": format!("{}ms", 5 + 40 * id) })
    };
    let classes = json!([class(0), class(1), class(2)]);
    let mut held = classes.clone();
    held[0]["ceil"] = json!("3mbit");
    let policy = |scheduler: &str, rank: Option<&str>, expected: Expected| {
        let classes = if matches!(expected, Expected::Ceiling) { &held } else { &classes };
        let policy = by_port(scheduler, classes.clone());
        match rank {
            None => (scheduler.to_owned(), policy, expected),
            Some(rank) => (format!("{scheduler} by {rank}"), with(policy, "rank", json!(rank)), expected),
        }
    };
    let mut trials = vec![
        policy("weighted_fair_queuing", None, Expected::Shares),
        policy("deficit_round_robin", None, Expected::Shares),
        policy("strict_priority", None, Expected::Ceiling),
        policy("weighted_fair_queuing", None, Expected::Ceiling),
        policy("deficit_round_robin", None, Expected::Ceiling),
    ];
    if engine == Engine::Qdisc {
        trials.extend([
            policy("eevdf", None, Expected::Shares),
            policy("elastic_round_robin", None, Expected::Shares),
            policy("pifo", Some("start_time_fair"), Expected::Shares),
            policy("round_robin", None, Expected::Turns),
            policy("round_robin", None, Expected::Ceiling),
            policy("eevdf", None, Expected::Ceiling),
            policy("pifo", Some("start_time_fair"), Expected::Ceiling),
            policy("pifo", Some("earliest_deadline"), Expected::Ceiling),
        ]);
    }
    trials
}

fn check(what: &str, expected: &Expected, parts: &[Outcome]) {
    let rates: Vec<f64> = parts.iter().map(|one| one.bps(Duration::ZERO, 0)).collect();
    match expected {
        Expected::Shares => {
            let sum: f64 = rates.iter().sum();
            for (class, part) in [(0, 3.0), (1, 2.0), (2, 1.0)] {
                assert_near(&format!("{what}, share of class {class}"), rates[class] / sum, part / 6.0, 0.005);
            }
        }
        Expected::Turns => {
            let packets: Vec<u64> = parts.iter().map(Outcome::received).collect();
            let bytes: Vec<u64> = parts.iter().map(Outcome::bytes).collect();
            eprintln!("    {what}: {packets:?} packets of {bytes:?} bytes");
            let (least, most) = (packets.iter().min(), packets.iter().max());
            assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1), "equal turns: {packets:?} packets");
        }
        Expected::Ceiling => assert_near(&format!("{what}, a ceiling"), rates[0], 3e6, 0.005),
    }
}
