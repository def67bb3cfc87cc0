//! The scheduling disciplines a policy may name.

use crate::rank::Rank;
use std::fmt;

/// A scheduling discipline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheduler {
    /// The class with the smallest `priority` number goes first; equal ones share by deficit round robin.
    StrictPriority,
    /// Each backlogged class in turn, `quantum` bytes a round.
    DeficitRoundRobin,
    /// Each backlogged class in turn, one packet each.
    RoundRobin,
    /// Bytes in proportion to `weight`, by virtual time.
    WeightedFairQueuing,
    /// Earliest eligible virtual deadline first: bytes in proportion to `weight`, `quantum` bytes a request.
    Eevdf,
    /// Push-in first-out: a [`Rank`] decides each packet's place.
    Pifo,
}

impl Scheduler {
    /// Every discipline a policy may name.
    pub const ALL: &[Scheduler] = &[
        Scheduler::StrictPriority,
        Scheduler::DeficitRoundRobin,
        Scheduler::RoundRobin,
        Scheduler::WeightedFairQueuing,
        Scheduler::Eevdf,
        Scheduler::Pifo,
    ];

    /// The name in policy files.
    pub const fn name(self) -> &'static str {
        match self {
            Scheduler::StrictPriority => "strict_priority",
            Scheduler::DeficitRoundRobin => "deficit_round_robin",
            Scheduler::RoundRobin => "round_robin",
            Scheduler::WeightedFairQueuing => "weighted_fair_queuing",
            Scheduler::Eevdf => "eevdf",
            Scheduler::Pifo => "pifo",
        }
    }

    /// Whether the classes' `priority` orders packets.
    pub fn uses_priority(self, rank: Rank) -> bool {
        self == Scheduler::StrictPriority || (self == Scheduler::Pifo && rank == Rank::Priority)
    }

    /// Whether the classes' `weight` does anything.
    pub fn uses_weight(self, rank: Rank) -> bool {
        match self {
            Scheduler::WeightedFairQueuing | Scheduler::Eevdf => true,
            Scheduler::Pifo => rank == Rank::StartTimeFair,
            Scheduler::StrictPriority | Scheduler::DeficitRoundRobin | Scheduler::RoundRobin => false,
        }
    }

    /// Whether the classes' `quantum` does anything.
    pub fn uses_quantum(self) -> bool {
        matches!(self, Scheduler::StrictPriority | Scheduler::DeficitRoundRobin | Scheduler::Eevdf)
    }

    /// Whether the classes' `latency_budget` does anything.
    pub fn uses_budget(self, rank: Rank) -> bool {
        self == Scheduler::Pifo && rank.has_deadline()
    }

    /// What comes nearest to it on engine `tc`, where the kernel's HTB has nothing like it; None where it has.
    pub fn instead_on_tc(self, rank: Rank) -> Option<Scheduler> {
        match self {
            Scheduler::StrictPriority | Scheduler::DeficitRoundRobin | Scheduler::WeightedFairQueuing => None,
            Scheduler::RoundRobin => Some(Scheduler::DeficitRoundRobin),
            Scheduler::Eevdf => Some(Scheduler::WeightedFairQueuing),
            Scheduler::Pifo if rank == Rank::StartTimeFair => Some(Scheduler::WeightedFairQueuing),
            Scheduler::Pifo => Some(Scheduler::StrictPriority),
        }
    }

    /// The discipline that an abbreviation or another tool's name stands for: for suggestions, never accepted.
    pub(crate) fn meant_by(name: &str) -> Option<Scheduler> {
        Some(match name.to_ascii_lowercase().as_str() {
            "sp" | "strict" | "prio" | "priority" => Scheduler::StrictPriority,
            "drr" | "ets" => Scheduler::DeficitRoundRobin,
            "rr" => Scheduler::RoundRobin,
            "wfq" | "wf2q" | "wf2q+" | "fq" | "fair" => Scheduler::WeightedFairQueuing,
            _ => return None,
        })
    }
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
