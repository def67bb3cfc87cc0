//! The part of `sluice status --json` that tests read. A missing field fails every test that reads it.

use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Deserialize)]
pub struct Status {
    pub interface: String,
    pub ifindex: u32,
    pub phase: String,
    pub engine: String,
    pub classifier: String,
    pub qdisc: String,
    pub policy: Policy,
    pub unconfirmed: Option<Unconfirmed>,
    pub rate_bps: Option<u64>,
    pub ingress_rate_bps: Option<u64>,
    pub split: bool,
    pub queues: u32,
    pub directions: Vec<Direction>,
    pub rules: Vec<Rule>,
    pub unmatched: Count,
    pub forwards: Vec<Forward>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Forward {
    pub name: String,
    pub open: u64,
    pub opened: u64,
    pub refused: BTreeMap<String, u64>,
    pub from_clients: Count,
    pub from_targets: Count,
    #[serde(default)]
    pub ways: serde_json::Value,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Policy {
    pub name: String,
    pub source: String,
    pub scheduler: String,
    pub generation: u32,
    pub applied_s: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Unconfirmed {
    pub left_s: u64,
    pub former: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct Count {
    pub pkts: u64,
    pub bytes: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Direction {
    pub direction: String,
    pub queued: bool,
    pub link_fill: Option<f64>,
    pub classes: Vec<Class>,
    pub parsed: BTreeMap<String, Count>,
    #[serde(default)]
    pub tx_queues: Vec<TxQueue>,
    pub lost: Option<Packets>,
    pub port: Option<Port>,
}

/// The interface by which a wire sends.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Port {
    pub wait_s: f64,
    pub limit_bytes: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct TxQueue {
    pub queue: u16,
    pub sent: Count,
    pub lost: Option<Packets>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Class {
    pub id: u8,
    pub name: String,
    pub sent: Count,
    pub dropped: Dropped,
    pub drops: BTreeMap<String, u64>,
    pub marked: Packets,
    pub backlog: Count,
    pub peak_backlog_bytes: Option<u64>,
}

/// Packets, and their bytes where the kernel counts them.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Dropped {
    pub pkts: u64,
    pub bytes: Option<u64>,
}

/// Packets alone.
#[derive(Debug, Clone, Deserialize)]
pub struct Packets {
    pub pkts: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Rule {
    pub name: String,
    pub matched: Count,
}

impl Status {
    #[track_caller]
    pub fn direction(&self, name: &str) -> &Direction {
        self.directions.iter().find(|one| one.direction == name).unwrap_or_else(|| panic!("no direction {name}"))
    }

    #[track_caller]
    pub fn egress(&self, class: u8) -> &Class {
        self.direction("egress").class(class)
    }

    #[track_caller]
    pub fn ingress(&self, class: u8) -> &Class {
        self.direction("ingress").class(class)
    }

    #[track_caller]
    pub fn rule(&self, name: &str) -> Count {
        self.rules.iter().find(|rule| rule.name == name).unwrap_or_else(|| panic!("no rule {name}")).matched
    }
}

impl Direction {
    #[track_caller]
    pub fn class(&self, id: u8) -> &Class {
        self.classes.iter().find(|class| class.id == id).unwrap_or_else(|| panic!("no class {id}"))
    }

    /// Packets of all classes: sent, dropped and still queued.
    pub fn totals(&self) -> (u64, u64, u64) {
        self.classes.iter().fold((0, 0, 0), |sum, class| {
            (sum.0 + class.sent.pkts, sum.1 + class.dropped.pkts, sum.2 + class.backlog.pkts)
        })
    }
}
