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
    /// No engine: the policy only classifies.
    None,
}

impl Engine {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Qdisc => "qdisc",
            Engine::Tc => "tc",
            Engine::None => "none",
        }
    }

    /// Whether the engine queues packets.
    pub fn queues(self) -> bool {
        self != Engine::None
    }

    /// Whether all classes share one number of slots for packets.
    pub fn shares_slots(self) -> bool {
        self != Engine::Tc
    }
}
