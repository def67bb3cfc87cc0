//! The scheduling disciplines a policy may name, and which of them this version has.

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
    /// Earliest eligible virtual deadline first.
    Eevdf,
    /// Push-in first-out: a rank function decides each packet's place.
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

    /// The disciplines that this version has. A policy that names another is refused; it never gets a substitute.
    /// This is the only place to change when one is built.
    pub const BUILT: &[Scheduler] = &[Scheduler::StrictPriority, Scheduler::DeficitRoundRobin];

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

    /// Whether this version has the discipline.
    pub fn is_built(self) -> bool {
        Scheduler::BUILT.contains(&self)
    }

    /// The names of [`Scheduler::BUILT`], separated by commas.
    pub fn built_names() -> String {
        Scheduler::BUILT.iter().map(|s| s.name()).collect::<Vec<_>>().join(", ")
    }

    /// The discipline that an abbreviation or another tool's name stands for: for suggestions, never accepted.
    pub(crate) fn meant_by(name: &str) -> Option<Scheduler> {
        Some(match name.to_ascii_lowercase().as_str() {
            "sp" | "strict" | "prio" | "priority" => Scheduler::StrictPriority,
            "drr" | "ets" => Scheduler::DeficitRoundRobin,
            "rr" => Scheduler::RoundRobin,
            "wfq" | "fair" => Scheduler::WeightedFairQueuing,
            _ => return None,
        })
    }
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
