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

/// A forward that has opened so many connections: of each, 10 packets of 100 bytes from the client, and 20 of 500 from the target.
pub fn forward(name: &str, opened: u64) -> ForwardStatus {
    ForwardStatus {
        name: name.to_owned(),
        protocol: "tcp".to_owned(),
        listen: "any:80".to_owned(),
        targets: vec!["192.0.2.1:8080".to_owned()],
        open: 7,
        opened,
        refused: [("table_full", opened)].into(),
        from_clients: Count { pkts: opened * 10, bytes: opened * 1000 },
        from_targets: Count { pkts: opened * 20, bytes: opened * 10_000 },
        ways: Vec::new(),
        places: 1,
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
        tx_queues: Vec::new(),
        lost: None,
        port: None,
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
        arrivals_of: None,
        split: false,
        queues: 0,
        directions: vec![egress],
        rules: vec![rule(if generation == 1 { "first" } else { "other" }, pkts[0])],
        unmatched: Count { pkts: pkts[1], bytes: 0 },
        forwards: Vec::new(),
        tree: None,
    };
    Sample { at_ns: at_s * 1_000_000_000, at_ms: at_s * 1000, interfaces: vec![status], events: Vec::new() }
}
