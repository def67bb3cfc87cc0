//! Made-up rates of a busy interface and of an idle one.

use crate::flows::processes::Process;
use crate::flows::view::{FlowReport, NamedFlow};
use sluice_kernel::flows::FlowKey;
use sluice_kernel::status::{
    ClassState, Count, Dropped, FlowQueues, LeafCounts, PolicyStatus, SchedulerState, Turn, Way,
};
use sluice_kernel::{Engine, Hook};
use sluice_observe::Rates;
use sluice_observe::flows::{Anomaly, ClassFlows, FlowRate, Kind};
use sluice_observe::rates::{
    ClassRates, DirectionRates, ForwardRates, InterfaceRates, LeafRates, QueueRates, RuleRates, SiteRates,
    SojournRates, SubscriberRates, TreeRates, TxQueueRates,
};

fn class(id: u8, name: &str, bps: f64, share: f64) -> ClassRates {
    ClassRates {
        id,
        name: name.to_owned(),
        sent_bps: bps,
        sent_pps: bps / 8000.0,
        share: Some(share),
        limit_pkts: Some(200),
        backlog_fill: Some(0.0),
        sent: Count { pkts: 1000, bytes: 1_000_000 },
        priority: Some(id),
        state: Some(ClassState {
            level: id,
            deficit_bytes: 1514 - i64::from(id) * 1000,
            virtual_start: 0.0,
            virtual_deadline: 0.0,
            virtual_lag: 0.0,
            attained_bytes: 0,
        }),
        ..ClassRates::default()
    }
}

fn waits(p50_us: f64, p99_us: f64) -> Option<SojournRates> {
    Some(SojournRates { pkts: 900, p50_us, p95_us: p99_us * 0.8, p99_us, max_us: p99_us * 1.5 })
}

fn busy() -> Vec<ClassRates> {
    let mut game = class(1, "gaming", 1_200_000.0, 0.06);
    game.sojourn = waits(85.0, 410.0);
    game.ceil_bps = Some(15_000_000);
    (game.ceil_fill, game.bucket_fill) = (Some(1.0), Some(1.0));
    game.target_us = Some(5000.0);
    let mut calls = class(2, "voip", 4_100_000.0, 0.21);
    calls.sojourn = waits(900.0, 6200.0);
    calls.ceil_bps = Some(4_000_000);
    (calls.ceil_fill, calls.bucket_fill) = (Some(0.03), Some(0.03));
    calls.marked_pps = 4.0;
    calls.target_us = Some(5000.0);
    let mut bulk = class(5, "bulk", 13_600_000.0, 0.72);
    bulk.sojourn = waits(18_400.0, 61_000.0);
    bulk.backlog = Count { pkts: 170, bytes: 251_000 };
    bulk.backlog_fill = Some(0.85);
    bulk.dropped_pps = 131.0;
    bulk.drops_pps = [("aqm", 120.0), ("overflow", 11.0)].into();
    bulk.dropped = Dropped { pkts: 8123, bytes: Some(12_000_000) };
    bulk.target_us = Some(5000.0);
    bulk.flow_queues = Some(FlowQueues { queues: 1024, sparse: 2, swift: 1, bulk: 7 });
    vec![class(0, "control", 0.0, 0.0), game, calls, bulk]
}

/// Departures of a busy interface. `swing` is the part of the sent rate that this interval has.
fn departures(swing: f64) -> DirectionRates {
    let classes = busy();
    let sum = |of: fn(&ClassRates) -> f64| classes.iter().map(of).sum::<f64>();
    DirectionRates {
        direction: "egress",
        queued: true,
        rate_bps: Some(19_000_000),
        used: Some(0.995),
        link_fill: Some(0.0),
        sent_bps: 18_900_000.0 * swing,
        sent_pps: sum(|class| class.sent_pps),
        dropped_pps: sum(|class| class.dropped_pps),
        marked_pps: sum(|class| class.marked_pps),
        backlog: Count { pkts: 170, bytes: 251_000 },
        scheduler: Some(SchedulerState {
            slots: 16_384,
            backlog_pkts: 170,
            virtual_time: 0.0,
            ready: vec![1, 5],
            held: vec![2],
            guarantee_left: Vec::new(),
            turns: vec![Turn { level: 0, class: 0 }, Turn { level: 2, class: 5 }],
        }),
        classes,
        ..DirectionRates::default()
    }
}

fn rule(name: &str, class: u8, pps: f64) -> RuleRates {
    RuleRates {
        name: name.to_owned(),
        priority: Some(1),
        line: Some(40),
        matches: String::new(),
        class,
        matched_pps: pps,
        matched: Count { pkts: (pps * 60.0) as u64, bytes: (pps * 60_000.0) as u64 },
    }
}

fn interface(name: &str, engine: Engine, directions: Vec<DirectionRates>) -> InterfaceRates {
    InterfaceRates {
        interface: name.to_owned(),
        ifindex: 2,
        engine,
        classifier: Hook::Tc,
        in_place: true,
        policy: PolicyStatus {
            name: "gaming".to_owned(),
            source: "gaming.json".to_owned(),
            scheduler: "strict_priority".to_owned(),
            generation: 3,
            applied_s: 0,
        },
        unconfirmed: None,
        directions,
        rules: vec![rule("game", 1, 150.0), rule("ssh", 0, 0.0)],
        unmatched_pps: 1700.0,
        forwards: Vec::new(),
        tree: None,
    }
}

/// Rates of an interval that ends `after_s` seconds after 22:13:20 UTC.
pub fn rates(after_s: u64) -> Rates {
    // The history rises and falls.
    let egress = departures(0.6 + 0.4 * ((after_s % 8) as f64 / 8.0));
    let ingress = DirectionRates {
        direction: "ingress",
        sent_bps: 52_000.0,
        sent_pps: 100.0,
        classes: vec![ClassRates { priority: None, ..class(5, "bulk", 52_000.0, 1.0) }],
        ..DirectionRates::default()
    };
    let quiet = DirectionRates {
        direction: "egress",
        queued: true,
        classes: vec![class(0, "control", 0.0, 0.0), class(5, "bulk", 0.0, 0.0)],
        ..DirectionRates::default()
    };
    let mut second = interface("wlan0", Engine::Tc, vec![quiet]);
    second.in_place = false;
    Rates {
        at_ms: 1_700_000_000_000 + after_s * 1000,
        span_s: 1.0,
        interfaces: vec![interface("eth0", Engine::Qdisc, vec![egress, ingress]), second],
        events: Vec::new(),
    }
}

/// Rates of an interface whose departures four tx queues send, each with a scheduler.
pub fn rates_with_tx_queues() -> Rates {
    let mut rates = rates(30);
    let egress = &mut rates.interfaces[0].directions[0];
    egress.scheduler = None;
    egress.tx_queues = [(0, 1200.0, 0.0), (1, 0.0, 0.0), (2, 900.0, 131.0), (3, 300.0, 0.0)]
        .map(|(queue, pps, dropped_pps)| TxQueueRates {
            queue,
            sent_bps: pps * 7875.0,
            sent_pps: pps,
            dropped_pps,
            backlog: Count { pkts: (pps / 10.0) as u64, bytes: (pps * 100.0) as u64 },
        })
        .to_vec();
    rates
}

fn forward(name: &str, listen: &str, targets: &[&str], bps: f64) -> ForwardRates {
    ForwardRates {
        name: name.to_owned(),
        protocol: "tcp".to_owned(),
        listen: listen.to_owned(),
        targets: targets.iter().map(|&target| target.to_owned()).collect(),
        open: (bps / 10_000.0) as u64,
        opened_per_s: bps / 100_000.0,
        from_clients_bps: bps / 20.0,
        from_targets_bps: bps,
        ..ForwardRates::default()
    }
}

/// The rates with forwards on the first interface.
pub fn rates_with_forwards(after_s: u64) -> Rates {
    let mut rates = rates(after_s);
    let mut games = forward("games", "198.51.100.7:27015-27020", &["10.0.0.9:27015-27020"], 620_000.0);
    games.refused_pps = 12.0;
    games.refusals_pps = [("table_full", 12.0)].into();
    rates.interfaces[0].forwards = vec![
        forward("mail", "any:25", &["10.0.0.4:25"], 0.0),
        forward("web", "any:443", &["10.0.0.5:8443", "10.0.0.6:8443", "10.0.0.7:8443"], 9_400_000.0),
        games,
        forward("shell", "[2001:db8::1]:2222", &["[2001:db8:1::5]:22"], 1200.0),
    ];
    rates
}

fn named_flow(class_name: &str, bps: f64, src_port: u16, dst: &str, dst_port: u16, arriving: bool) -> NamedFlow {
    let key = FlowKey {
        protocol: 6,
        src: "192.0.2.10".parse().expect("an address"),
        src_port: Some(src_port),
        dst: dst.parse().expect("an address"),
        dst_port: Some(dst_port),
        arriving: false,
    };
    let key = if arriving { key.reverse() } else { key };
    NamedFlow {
        flow: FlowRate {
            interface: "eth0".to_owned(),
            key,
            class: 1,
            class_name: class_name.to_owned(),
            rule: Some("default".to_owned()),
            bps,
            pps: bps / 8000.0,
            bytes: (bps * 4.0) as u64,
            pkts: (bps / 250.0) as u64,
            age_s: 754.0,
            idle_s: 0.2,
        },
        protocol_name: "tcp".to_owned(),
        service: (dst_port == 443).then(|| "https".to_owned()),
        src_name: None,
        dst_name: None,
        process: (src_port == 50_001).then(|| Process { pid: 4321, name: "curl".to_owned() }),
        connection: None,
    }
}

/// Flows of the same interval.
pub fn flows() -> FlowReport {
    let all = vec![
        named_flow("bulk", 13_100_000.0, 50_001, "198.51.100.7", 443, false),
        named_flow("voip", 2_400_000.0, 50_002, "2001:db8:12:34::5678", 5061, false),
        named_flow("bulk", 52_000.0, 50_001, "198.51.100.7", 443, true),
        named_flow("gaming", 0.0, 3074, "203.0.113.9", 3074, false),
    ];
    let class = |class_name: &str, arriving: bool, bps: f64, share: f64| ClassFlows {
        interface: "eth0".to_owned(),
        arriving,
        class: 1,
        class_name: class_name.to_owned(),
        flows: 2,
        active: 1,
        bps,
        share,
    };
    let anomaly = Anomaly {
        kind: Kind::ElephantInUrgentClass,
        interface: "eth0".to_owned(),
        source: all[1].flow.key.src,
        flow: Some(all[1].flow.key),
        class_name: Some("voip".to_owned()),
        reason: "it sends 2.4 Mbit/s of 19.0 Mbit/s in voip, a class for what is urgent; 9.6 MB so far".to_owned(),
    };
    FlowReport {
        at_ms: 1_700_000_000_000,
        span_s: 1.0,
        known: 412,
        active: 3,
        without_flows: vec!["wlan0".to_owned()],
        flows: all,
        classes: vec![
            class("gaming", false, 0.0, 0.0),
            class("voip", false, 2_400_000.0, 0.15),
            class("bulk", false, 13_100_000.0, 0.85),
            class("bulk", true, 52_000.0, 1.0),
        ],
        anomalies: vec![anomaly],
    }
}

/// The rates of a provider's network: a site that is full, and a subscriber whose packets are dropped.
pub fn rates_with_subscribers() -> Rates {
    let leaf = |mbit: f64, queued: u64, dropped_pps: f64| LeafRates {
        sent_bps: mbit * 1e6,
        sent_pps: mbit * 100.0,
        dropped_pps,
        backlog: Count { pkts: queued, bytes: queued * 1500 },
    };
    let subscriber = |id: &str, plan: Option<&str>, ceil_bps: Option<u64>, rates: LeafRates| SubscriberRates {
        id: id.to_owned(),
        name: id.to_owned(),
        site: plan.map(|_| "north mast".to_owned()),
        plan: plan.map(str::to_owned),
        addresses: Default::default(),
        queue: QueueRates {
            rate_bps: None,
            ceil_bps,
            used: ceil_bps.map(|ceil| rates.sent_bps / ceil as f64),
            rates,
            wait_ms: (rates.sent_pps > 0.0).then_some(0.15 + rates.backlog.pkts as f64 * 0.12),
        },
        marked_pkts: 0,
        classes: Vec::new(),
        counts: LeafCounts { sent: Count { pkts: 1000, bytes: 1_400_000 }, dropped_pkts: 12, backlog: rates.backlog },
    };
    let site = |name: &str, parent: Option<&str>, subscribers, ceil_bps: Option<u64>, rates: LeafRates| SiteRates {
        name: name.to_owned(),
        parent: parent.map(str::to_owned),
        depth: usize::from(parent.is_some()),
        subscribers,
        rate_bps: None,
        ceil_bps,
        used: ceil_bps.map(|ceil| rates.sent_bps / ceil as f64),
        rates,
    };
    let subscribers = vec![
        subscriber("1 High Street", Some("home"), Some(100_000_000), leaf(99.0, 40, 7.0)),
        subscriber("2 High Street", Some("home"), Some(100_000_000), leaf(12.0, 0, 0.0)),
        subscriber("Corner Shop", Some("office"), Some(20_000_000), leaf(19.8, 3, 0.0)),
        subscriber("Mill", None, None, leaf(0.0, 0, 0.0)),
    ];
    let sites = vec![
        site("north", None, 3, Some(600_000_000), leaf(130.8, 43, 7.0)),
        site("north mast", Some("north"), 3, Some(132_000_000), leaf(130.8, 43, 7.0)),
        site("south", None, 0, None, leaf(0.0, 0, 0.0)),
    ];
    let tree = TreeRates { way: Way::Down, is_class_tree: false, sites, subscribers, nobody: leaf(0.4, 0, 0.0) };
    let mut rates = rates(0);
    rates.interfaces.truncate(1);
    rates.interfaces[0].tree = Some(tree);
    rates
}
