//! Made-up samples for tests.

use super::*;
use sluice_kernel::Phase;
use sluice_kernel::status::Packets;

fn class(id: u8, pkts: u64, drops: u64) -> ClassStatus {
    let mut sojourn = Sojourn::default();
    sojourn.0[8] = pkts;
    ClassStatus {
        id,
        name: format!("class{id}"),
        sent: Count { pkts, bytes: pkts * 1000 },
        dropped: Dropped { pkts: drops, bytes: Some(drops * 1000) },
        drops: [("limit_pkts", drops)].into(),
        marked: Packets { pkts: pkts / 10 },
        backlog: Count { pkts: 50, bytes: 1000 },
        limit_pkts: Some(100),
        limit_bytes: Some(100_000),
        sojourn: Some(sojourn),
        share: Some(0.5),
        urgent: id == 0,
        ..ClassStatus::default()
    }
}

/// A sample at a second, with so many packets of two classes.
pub fn sample(at_s: u64, generation: u32, pkts: [u64; 2], drops: u64) -> Sample {
    let egress = DirectionStatus {
        direction: "egress",
        queued: true,
        rate_bps: Some(8_000_000),
        framing: None,
        link_fill: Some(0.25),
        limit_bps: None,
        limit_fill: None,
        scheduler: None,
        classes: vec![class(0, pkts[0], 0), class(1, pkts[1], drops)],
        parsed: BTreeMap::new(),
    };
    let rule = |name: &str, pkts| RuleStatus {
        name: name.to_owned(),
        priority: Some(1),
        line: None,
        matches: String::new(),
        class: 0,
        matched: Count { pkts, bytes: 0 },
    };
    let status = Status {
        interface: "eth7".to_owned(),
        ifindex: 7,
        phase: Phase::Active,
        engine: Engine::Qdisc,
        classifier: Hook::Tc,
        qdisc: String::new(),
        in_place: true,
        missing: Vec::new(),
        outdated: false,
        policy: PolicyStatus {
            name: "p".to_owned(),
            source: String::new(),
            scheduler: "eevdf".to_owned(),
            generation,
            applied_s: 0,
        },
        unconfirmed: None,
        rate_bps: Some(8_000_000),
        ingress_rate_bps: None,
        split: false,
        queues: 0,
        directions: vec![egress],
        rules: vec![rule(if generation == 1 { "first" } else { "other" }, pkts[0])],
        unmatched: Count { pkts: pkts[1], bytes: 0 },
    };
    Sample { at_ns: at_s * 1_000_000_000, at_ms: at_s * 1000, interfaces: vec![status], events: Vec::new() }
}
