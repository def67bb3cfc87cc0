//! What a PIFO orders its packets by.

use std::fmt;

/// A rank function: the packet with the smallest rank leaves first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Rank {
    /// The `priority` of the class, then arrival.
    #[default]
    Priority,
    /// Arrival and the `latency_budget` of the class.
    EarliestDeadline,
    /// The packet's length.
    ShortestPacket,
    /// What the class has brought since it was last empty.
    LeastAttainedService,
    /// Virtual start time, by the `weight` of the class.
    StartTimeFair,
    /// The latest time at which sending may begin to keep the `latency_budget`.
    Slack,
}

impl Rank {
    /// Every rank a policy may name.
    pub const ALL: &[Rank] = &[
        Rank::Priority,
        Rank::EarliestDeadline,
        Rank::ShortestPacket,
        Rank::LeastAttainedService,
        Rank::StartTimeFair,
        Rank::Slack,
    ];

    /// The name in policy files.
    pub const fn name(self) -> &'static str {
        match self {
            Rank::Priority => "priority",
            Rank::EarliestDeadline => "earliest_deadline",
            Rank::ShortestPacket => "shortest_packet",
            Rank::LeastAttainedService => "least_attained_service",
            Rank::StartTimeFair => "start_time_fair",
            Rank::Slack => "slack",
        }
    }

    /// Whether it is made of the classes' `latency_budget`.
    pub fn has_deadline(self) -> bool {
        matches!(self, Rank::EarliestDeadline | Rank::Slack)
    }

    /// The rank that an abbreviation stands for: for suggestions, never accepted.
    pub(crate) fn meant_by(name: &str) -> Option<Rank> {
        Some(match name.to_ascii_lowercase().as_str() {
            "sp" | "strict" | "prio" | "strict_priority" => Rank::Priority,
            "edf" | "edd" | "deadline" => Rank::EarliestDeadline,
            "sjf" | "spt" | "srpt" | "shortest" => Rank::ShortestPacket,
            "las" | "fb" | "attained" => Rank::LeastAttainedService,
            "stfq" | "sfq" | "fair" => Rank::StartTimeFair,
            "lst" | "lstf" | "llf" => Rank::Slack,
            _ => return None,
        })
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
