//! Rank functions of the PIFO. The list is `abi/disciplines.h`.

use sluice_abi as abi;

/// A rank function, by its number: the packet with the smallest rank leaves first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rank(u32);

listed!(Rank, rank_functions, rank_function);

impl Rank {
    /// The `priority` of the class, then arrival.
    pub const PRIORITY: Rank = Rank(abi::SL_RANK_PRIORITY);
    /// Arrival plus the `latency_budget` of the class.
    pub const EARLIEST_DEADLINE: Rank = Rank(abi::SL_RANK_EARLIEST_DEADLINE);
    /// The length of the packet.
    pub const SHORTEST_PACKET: Rank = Rank(abi::SL_RANK_SHORTEST_PACKET);
    /// The bytes that the class has brought since it was last empty.
    pub const LEAST_ATTAINED_SERVICE: Rank = Rank(abi::SL_RANK_LEAST_ATTAINED_SERVICE);
    /// Virtual start time, by the `weight` of the class.
    pub const START_TIME_FAIR: Rank = Rank(abi::SL_RANK_START_TIME_FAIR);
    /// The latest time to begin sending that keeps the `latency_budget`.
    pub const SLACK: Rank = Rank(abi::SL_RANK_SLACK);

    /// Keys of a class that the rank depends on: `SL_KEY_`.
    pub(crate) fn keys(self) -> u32 {
        self.line().keys
    }

    /// The discipline that replaces this PIFO on engine `tc`: an `enum sl_kind`.
    pub(crate) fn on_tc(self) -> u32 {
        self.line().on_tc
    }

    /// Whether the rank depends on `latency_budget`.
    pub fn has_deadline(self) -> bool {
        self.keys() & abi::SL_KEY_LATENCY_BUDGET != 0
    }

    /// The rank for an abbreviation: for suggestions, never accepted.
    pub(crate) fn from_alias(name: &str) -> Option<Rank> {
        Some(match name.to_ascii_lowercase().as_str() {
            "sp" | "strict" | "prio" | "strict_priority" => Rank::PRIORITY,
            "edf" | "edd" | "deadline" => Rank::EARLIEST_DEADLINE,
            "sjf" | "spt" | "srpt" | "shortest" => Rank::SHORTEST_PACKET,
            "las" | "fb" | "attained" => Rank::LEAST_ATTAINED_SERVICE,
            "stfq" | "sfq" | "fair" => Rank::START_TIME_FAIR,
            "lst" | "lstf" | "llf" => Rank::SLACK,
            _ => return None,
        })
    }
}

impl Default for Rank {
    fn default() -> Rank {
        Rank::PRIORITY
    }
}
