//! Policies that only classify, or only schedule.

use crate::lab::{Engine, Lab};
use crate::net::B;
use crate::policy::{by_port, port, with};
use crate::suite::Suite;
use crate::traffic::{self, Flow, HEADERS};
use serde_json::json;
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("modes")
        .any("classify_only_counts_and_polices", &[], classify_only)
        .both("schedule_only_by_dscp", &[], by_dscp)
        .both("schedule_only_by_mark", &[], by_mark)
}

fn classify_only(lab: &Lab) {
    let pair = lab.pair();
    let before = pair.a.state("a0");
    let classes = json!([
        { "id": 0, "name": "free", "priority": 0 },
        { "id": 1, "name": "policed", "priority": 1, "ceil": "2mbit", "police": true },
    ]);
    let policy = with(by_port("strict_priority", classes), "mode", json!("classify_only"));
    lab.up(&pair.a, "a0", &lab.policy(&policy), &[]);
    assert_eq!(pair.a.root("a0").map(|root| root.kind), Some("noqueue".to_owned()), "nothing is queued");
    for (from, to, address, direction) in
        [(&pair.a, &pair.b, B, "egress"), (&pair.b, &pair.a, crate::net::A, "ingress")]
    {
        let flows = [Flow::new(port(0), &[500], 4_000_000), Flow::new(port(1), &[500], 8_000_000)];
        let dropped = || lab.status(&pair.a, "a0").direction(direction).totals().1;
        let outcomes = traffic::run(from, to, address, &flows, Duration::from_millis(500), dropped);
        let status = lab.status(&pair.a, "a0");
        let counted = status.direction(direction);
        assert!(!counted.queued);
        assert_eq!(outcomes[0].lost(), 0, "{direction}: what is free is not dropped");
        assert_eq!(counted.class(0).sent.pkts, outcomes[0].sent, "{direction}");
        assert_eq!(counted.class(0).sent.bytes, outcomes[0].sent * 500, "{direction}: bytes of frames");
        assert_eq!(counted.class(1).sent.pkts, outcomes[1].received(), "{direction}: what passed");
        assert_eq!(counted.class(1).drops.get("policed"), Some(&outcomes[1].lost()), "{direction}");
        let passed = outcomes[1].received() as f64 / outcomes[1].sent as f64;
        assert!((0.2..0.35).contains(&passed), "{direction}: 2 of 8 Mbit/s pass, and a burst; {passed}");
    }
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.state("a0"), before);
}

fn by_dscp(lab: &Lab) {
    let pair = lab.pair();
    let policy = json!({ "scheduler": "strict_priority", "mode": "schedule_only", "class_from": "dscp", "default_class": 2,
        "classes": [{ "id": 0, "priority": 0, "dscp": ["ef", "cs6"] }, { "id": 1, "priority": 1, "dscp": [10] },
            { "id": 2, "priority": 2 }] });
    lab.up(&pair.a, "a0", &lab.policy(&policy), &["--rate", "20mbit"]);
    let flows = [(46, 0), (48, 0), (10, 1), (0, 2), (47, 2)];
    for (dscp, class) in flows {
        let flow = Flow::new(port(0), &[HEADERS + 100], 400_000).tos(dscp << 2);
        goes_to(lab, &pair, &flow, class, &format!("DSCP {dscp}"));
    }
    lab.down(&pair.a, "a0");
}

fn by_mark(lab: &Lab) {
    let pair = lab.pair();
    let policy = json!({ "scheduler": "deficit_round_robin", "mode": "schedule_only", "class_from": "mark",
        "default_class": 2,
        "classes": [{ "id": 0, "mark": [17, 4_000_000_000u32] }, { "id": 1, "mark": [0x100] }, { "id": 2 }] });
    lab.up(&pair.a, "a0", &lab.policy(&policy), &["--rate", "20mbit"]);
    for (mark, class) in [(17, 0), (4_000_000_000, 0), (0x100, 1), (0, 2), (18, 2)] {
        let flow = Flow::new(port(0), &[HEADERS + 100], 400_000).mark(mark);
        goes_to(lab, &pair, &flow, class, &format!("mark {mark}"));
    }
    lab.down(&pair.a, "a0");
}

#[track_caller]
fn goes_to(lab: &Lab, pair: &crate::net::Pair, flow: &Flow, class: u8, what: &str) {
    assert_ne!(lab.engine, Engine::Auto);
    let before = lab.status(&pair.a, "a0");
    let outcomes = traffic::run(&pair.a, &pair.b, B, std::slice::from_ref(flow), Duration::from_millis(40), || 0);
    let after = lab.status(&pair.a, "a0");
    for other in [0, 1, 2] {
        let more = after.egress(other).sent.pkts - before.egress(other).sent.pkts;
        assert_eq!(more, if other == class { outcomes[0].sent } else { 0 }, "{what} in class {other}");
    }
}
