//! Shaping of arrivals, behind an ifb.

use crate::cases::assert_near;
use crate::command::{await_that, run, words};
use crate::lab::{Engine, Lab};
use crate::needs::{Need, is_icount};
use crate::net::{A, Pair};
use crate::policy::{by_port, port, three, with};
use crate::suite::Suite;
use crate::traffic::{self, Flow, Outcome};
use serde_json::{Value, json};
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("ingress")
        .both("arrivals_are_shaped", &[Need::Ifb], arrivals_are_shaped)
        .both("their_rate_changes_by_apply", &[Need::Ifb], rate_changes)
        .both("queues_come_and_go_under_traffic", &[Need::Ifb], queues_come_and_go)
}

fn overload(lab: &Lab, pair: &Pair) -> Vec<Outcome> {
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "50mbit", "--ingress-rate", "10mbit"]);
    assert_eq!(pair.a.interfaces().iter().filter(|name| name.starts_with("sluice-in")).count(), 1);
    let flows = [Flow::new(port(0), &[214], 2_000_000), Flow::new(port(2), &[1514], 15_000_000)];
    let lost = || lab.status(&pair.a, "a0").direction("ingress").totals().1;
    traffic::run(&pair.b, &pair.a, A, &flows, Duration::from_millis(1500), lost)
}

fn arrivals_are_shaped(lab: &Lab) {
    let pair = lab.pair();
    let before = pair.a.state("a0");
    let outcomes = overload(lab, &pair);
    assert_eq!(outcomes[0].lost(), 0, "nothing of the urgent class is lost");
    assert!(outcomes[1].lost() > 0, "the line is too small for the rest");
    assert!(outcomes[0].delay_ms(0.5) < outcomes[1].delay_ms(0.5));
    if is_icount() {
        let settle = Duration::from_millis(300);
        let sum = outcomes[0].bps(settle, 0) + outcomes[1].bps(settle, 0);
        assert_near("arrivals at 10 Mbit/s", sum, 10e6, 0.01);
        assert!(outcomes[0].delay_ms(0.99) < 2.5, "p99 of the urgent class: {} ms", outcomes[0].delay_ms(0.99));
    }
    let status = lab.status(&pair.a, "a0");
    let ingress = status.direction("ingress");
    assert!(ingress.queued);
    assert_eq!(ingress.class(0).sent.pkts, outcomes[0].received());
    assert_eq!(ingress.class(2).sent.pkts, outcomes[1].received());
    assert_eq!(ingress.class(2).dropped.pkts, outcomes[1].lost());
    assert_eq!(status.direction("egress").totals().0, 0, "departures have counters of their own");
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.state("a0"), before, "the ifb is gone");
}

/// Asserts the rate of arrivals: by status, and with engine `tc` also by tc.
#[track_caller]
fn shaped_to(lab: &Lab, pair: &Pair, bps: u64) {
    let printed = lab.sluice(&pair.a, &["status", "a0", "--json"]).ok();
    let printed: serde_json::Value = serde_json::from_str(&printed.stdout).expect("JSON");
    assert_eq!(printed["ingress_rate_bps"], bps);
    assert_eq!(printed["directions"][1]["rate_bps"], bps);
    if lab.engine == Engine::Tc {
        let device = pair.a.interfaces().into_iter().find(|name| name.starts_with("sluice-in")).expect("an ifb");
        let shown = run(&mut words("tc", &format!("-n {} class show dev {device}", pair.a.name))).ok().stdout;
        let rate = format!("rate {}Mbit ", bps / 1_000_000);
        assert!(shown.contains(&rate), "no `{rate}` in {shown}");
    }
}

fn rate_changes(lab: &Lab) {
    let pair = lab.pair();
    let with_rate = lab.policy(&with(three(), "link", json!({ "rate": "50mbit", "ingress_rate": "30mbit" })));
    lab.up(&pair.a, "a0", &with_rate, &[]);
    shaped_to(lab, &pair, 30_000_000);
    let faster = ["apply", "a0", &with_rate, "--ingress-rate", "8mbit"];
    let planned = lab.sluice(&pair.a, &[&faster[..], &["--dry-run"]].concat()).ok().stdout;
    assert!(planned.contains("link.ingress_rate 30mbit -> 8mbit"), "{planned}");
    shaped_to(lab, &pair, 30_000_000);
    lab.sluice(&pair.a, &faster).ok();
    shaped_to(lab, &pair, 8_000_000);
    // The rate stays until another is given; without a confirmation it is taken back with the policy.
    lab.sluice(&pair.a, &["apply", "a0", &with_rate, "--rate", "40mbit"]).ok();
    shaped_to(lab, &pair, 8_000_000);
    lab.sluice(&pair.a, &["apply", "a0", &with_rate, "--ingress-rate", "5mbit", "--confirm", "2s"]).ok();
    shaped_to(lab, &pair, 5_000_000);
    await_that("the rate is taken back", Duration::from_secs(20), || {
        let printed = lab.sluice(&pair.a, &["status", "a0", "--json"]).ok().stdout;
        printed.contains("\"ingress_rate_bps\": 8000000")
    });
    shaped_to(lab, &pair, 8_000_000);
    // Rollback uses the rate of the policy itself.
    lab.sluice(&pair.a, &["rollback", "a0", "1"]).ok();
    shaped_to(lab, &pair, 30_000_000);
    // A running interface cannot stop queueing arrivals.
    let without = lab.policy(&three());
    lab.sluice(&pair.a, &["apply", "a0", &without]).exits(2).says("whether arrivals are queued");
    shaped_to(lab, &pair, 30_000_000);
    lab.down(&pair.a, "a0");
    lab.up(&pair.a, "a0", &without, &["--rate", "50mbit"]);
    lab.sluice(&pair.a, &["apply", "a0", &without, "--ingress-rate", "8mbit"]).exits(2).says("arrivals are queued");
    lab.down(&pair.a, "a0");
}

/// A class that `apply` adds gets a queue of a tenth of a second at its rate; one that it removes gives up its packets. A class that stays
/// loses nothing.
fn queues_come_and_go(lab: &Lab) {
    let pair = lab.pair();
    let of = |ids: &[u8]| {
        let classes: Vec<Value> =
            ids.iter().map(|id| json!({ "id": id, "priority": 7 - id, "queue": "fifo", "ceil": "16mbit" })).collect();
        lab.policy(&by_port("strict_priority", json!(classes)))
    };
    lab.up(&pair.a, "a0", &of(&[0, 1]), &["--ingress-rate", "40mbit"]);
    let steady = traffic::start(&pair.b, &pair.a, A, &[Flow::new(port(0), &[214], 1_000_000)]);
    let ids: [&[u8]; 5] = [&[0, 2], &[0, 1, 2, 3], &[0, 3], &[0], &[0, 1, 2]];
    for ids in ids {
        let added = *ids.last().expect("a class");
        lab.sluice(&pair.a, &["apply", "a0", &of(ids)]).ok();
        let flow = [Flow::new(port(added), &[1514], 30_000_000)];
        let burst = traffic::start(&pair.b, &pair.a, A, if added > 0 { &flow } else { &[] });
        std::thread::sleep(Duration::from_millis(300));
        if added > 0 {
            let class = lab.status(&pair.a, "a0").ingress(added).clone();
            assert!(class.backlog.pkts > 0, "{class:?}");
            if is_icount() {
                assert!((125..=133).contains(&class.backlog.pkts), "a tenth of a second at 16 Mbit/s: {class:?}");
            }
        }
        burst.finish_lossy();
    }
    let outcome = steady.finish(|| lab.status(&pair.a, "a0").ingress(0).dropped.pkts).remove(0);
    assert_eq!(outcome.lost(), 0, "the class that stays");
    assert!(outcome.received() > 500, "{} packets", outcome.received());
    lab.down(&pair.a, "a0");
}
