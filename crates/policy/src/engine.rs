//! The engines, which queue the packets that a policy classifies.

use serde::{Deserialize, Serialize};

/// An engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// The scheduler core as a BPF qdisc: all classes share [`MAX_QUEUED_PKTS`](crate::MAX_QUEUED_PKTS) slots.
    #[default]
    Qdisc,
    /// The kernel's HTB behind a BPF classifier: each class has a queue of its own.
    Tc,
    /// The scheduler core in a process, between two interfaces: packets come and go by AF_XDP.
    Xsk,
    /// No engine: the policy only classifies.
    None,
}

impl Engine {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Qdisc => "qdisc",
            Engine::Tc => "tc",
            Engine::Xsk => "xsk",
            Engine::None => "none",
        }
    }

    /// Whether the engine queues packets.
    pub fn queues(self) -> bool {
        self != Engine::None
    }

    /// Whether it queues what departs from an interface of its own, with a qdisc.
    pub fn has_qdiscs(self) -> bool {
        matches!(self, Engine::Qdisc | Engine::Tc)
    }

    /// Whether all classes share one number of slots for packets.
    pub fn shares_slots(self) -> bool {
        self != Engine::Tc
    }
}
