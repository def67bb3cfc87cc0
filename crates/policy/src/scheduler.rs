//! The scheduling disciplines a policy may name. The list is `abi/disciplines.h`.

use crate::rank::Rank;
use sluice_abi as abi;

/// A scheduling discipline: its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scheduler(u32);

listed!(Scheduler, disciplines, discipline);

impl Scheduler {
    /// The class with the smallest `priority` number goes first; equal ones share by deficit round robin.
    pub const STRICT_PRIORITY: Scheduler = Scheduler(abi::SL_STRICT_PRIORITY);
    /// Each backlogged class in turn, `quantum` bytes a round.
    pub const DEFICIT_ROUND_ROBIN: Scheduler = Scheduler(abi::SL_DEFICIT_ROUND_ROBIN);
    /// Bytes in proportion to `weight`, by virtual time.
    pub const WEIGHTED_FAIR_QUEUING: Scheduler = Scheduler(abi::SL_WEIGHTED_FAIR_QUEUING);
    /// Push-in first-out: a [`Rank`] decides each packet's place.
    pub const PIFO: Scheduler = Scheduler(abi::SL_PIFO);
    /// Each backlogged class in turn, with one packet.
    pub const ROUND_ROBIN: Scheduler = Scheduler(abi::SL_ROUND_ROBIN);

    /// The unit in which classes share the link, an `enum sl_share`; under PIFO the rank decides.
    pub(crate) fn share(self) -> u32 {
        self.line().share
    }

    /// Whether a key of a class has an effect; `key` is an `SL_KEY_`.
    fn uses(self, key: u32, rank: Rank) -> bool {
        let of_rank = if self == Scheduler::PIFO { rank.keys() } else { 0 };
        (self.line().keys | of_rank) & key != 0
    }

    /// Whether the classes' `priority` orders packets.
    pub fn uses_priority(self, rank: Rank) -> bool {
        self.uses(abi::SL_KEY_PRIORITY, rank)
    }

    /// Whether the classes' `weight` has an effect.
    pub fn uses_weight(self, rank: Rank) -> bool {
        self.uses(abi::SL_KEY_WEIGHT, rank)
    }

    /// Whether the classes' `quantum` has an effect.
    pub fn uses_quantum(self, rank: Rank) -> bool {
        self.uses(abi::SL_KEY_QUANTUM, rank)
    }

    /// Whether the classes' `latency_budget` has an effect.
    pub fn uses_budget(self, rank: Rank) -> bool {
        self.uses(abi::SL_KEY_LATENCY_BUDGET, rank)
    }

    /// The discipline that replaces this one on engine `tc`; `None` if the kernel's HTB can do it.
    pub fn instead_on_tc(self, rank: Rank) -> Option<Scheduler> {
        let instead = if self == Scheduler::PIFO { rank.on_tc() } else { self.line().on_tc };
        Some(Scheduler(instead)).filter(|instead| *instead != self)
    }

    /// The discipline for an abbreviation or another tool's name: for suggestions, never accepted.
    pub(crate) fn from_alias(name: &str) -> Option<Scheduler> {
        Some(match name.to_ascii_lowercase().as_str() {
            "sp" | "strict" | "prio" | "priority" => Scheduler::STRICT_PRIORITY,
            "drr" | "ets" => Scheduler::DEFICIT_ROUND_ROBIN,
            "rr" => Scheduler::ROUND_ROBIN,
            "wfq" | "wf2q" | "wf2q+" | "fq" | "fair" => Scheduler::WEIGHTED_FAIR_QUEUING,
            _ => return None,
        })
    }
}
