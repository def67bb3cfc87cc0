//! Shaping of what arrives, behind an ifb.

use crate::cases::assert_near;
use crate::lab::Lab;
use crate::needs::{Need, is_icount};
use crate::net::{A, Pair};
use crate::policy::{port, three};
use crate::suite::Suite;
use crate::traffic::{self, Flow, Outcome};
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("ingress").both("arrivals_are_shaped", &[Need::Ifb], arrivals_are_shaped)
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
