//! A new policy under traffic.

use crate::lab::Lab;
use crate::net::B;
use crate::policy::{by_port, port};
use crate::suite::Suite;
use crate::traffic::{self, Flow, Outcome};
use serde_json::json;

pub fn suite() -> Suite {
    Suite::new("apply").both("fifty_times_without_loss", &[], fifty_times).both(
        "a_class_that_goes_drains",
        &[],
        a_class_that_goes,
    )
}

/// Two policies that differ in their discipline, quanta, rates and rules: no packet is lost, reordered or misclassified.
fn fifty_times(lab: &Lab) {
    let pair = lab.pair();
    let strict = lab.policy(&by_port(
        "strict_priority",
        json!([
            { "id": 0, "name": "game", "priority": 0, "limit": 1000 },
            { "id": 1, "name": "bulk", "priority": 1, "limit": 1000, "ceil": "15mbit" },
        ]),
    ));
    let drr = lab.policy(&by_port(
        "deficit_round_robin",
        json!([
            { "id": 0, "name": "game", "quantum": 3028, "limit": 900 },
            { "id": 1, "name": "bulk", "quantum": 1514, "limit": 800 },
            { "id": 2, "name": "other" },
        ]),
    ));
    lab.up(&pair.a, "a0", &strict, &["--rate", "20mbit"]);
    let flows = [Flow::new(port(0), &[214], 800_000), Flow::new(port(1), &[1014], 4_000_000)];
    let streams = traffic::start(&pair.a, &pair.b, B, &flows);
    let begin = std::time::Instant::now();
    for n in 0..50 {
        lab.sluice(&pair.a, &["apply", "a0", if n % 2 == 0 { &drr } else { &strict }]).ok();
    }
    let each = begin.elapsed() / 50;
    let outcomes = streams.finish(|| 0);
    eprintln!("    {} packets, an apply took {each:?}", outcomes[0].sent + outcomes[1].sent);
    assert!(outcomes.iter().all(|one| one.lost() == 0 && one.in_order()), "{outcomes:?}");
    assert!(outcomes.iter().all(|one| one.sent > 100), "traffic flowed all the while");
    let status = lab.status(&pair.a, "a0");
    assert_eq!((status.policy.generation, status.policy.scheduler.as_str()), (51, "strict_priority"));
    for class in [0u8, 1] {
        assert_eq!(status.egress(class).sent.pkts, outcomes[usize::from(class)].sent, "counters go on, class {class}");
        assert_eq!(status.egress(class).dropped.pkts, 0);
    }
    lab.down(&pair.a, "a0");
}

/// What is queued in a class that the new policy does not have is not stuck; what comes later is in the default class.
fn a_class_that_goes(lab: &Lab) {
    let pair = lab.pair();
    let class = |id: u8| json!({ "id": id, "limit": 400 });
    let two = lab.policy(&by_port("deficit_round_robin", json!([class(0), class(1)])));
    let one = lab.policy(&by_port("deficit_round_robin", json!([class(0)])));
    lab.up(&pair.a, "a0", &two, &["--rate", "2mbit"]);
    let streams = traffic::start(&pair.a, &pair.b, B, &[Flow::new(port(1), &[514], 4_000_000)]);
    crate::command::await_that("class 1 queues", std::time::Duration::from_secs(10), || {
        lab.status(&pair.a, "a0").egress(1).backlog.pkts > 50
    });
    lab.sluice(&pair.a, &["apply", "a0", &one]).ok();
    crate::command::await_that("class 0 takes what class 1 was sent", std::time::Duration::from_secs(10), || {
        lab.status(&pair.a, "a0").egress(0).sent.pkts > 20
    });
    let outcomes = streams.finish_lossy();
    let status = lab.status(&pair.a, "a0");
    assert_eq!(status.direction("egress").totals().2, 0, "nothing is stuck");
    assert_eq!(status.direction("egress").classes.len(), 1);
    if lab.engine == crate::lab::Engine::Qdisc {
        assert_eq!(outcomes.iter().map(Outcome::lost).sum::<u64>(), status.egress(0).dropped.pkts, "class 1 drained");
    }
    lab.down(&pair.a, "a0");
}
