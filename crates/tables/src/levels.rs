//! The levels of classes: their priorities, numbered without gaps.

use sluice_policy::{Resolved, ResolvedClass};

/// The priorities of a policy's classes, in order.
pub(crate) struct Levels(Vec<u8>);

impl Levels {
    pub(crate) fn of(policy: &Resolved) -> Levels {
        let mut priorities: Vec<u8> = policy.classes.iter().map(|class| class.priority).collect();
        priorities.sort_unstable();
        priorities.dedup();
        Levels(priorities)
    }

    /// The level of a class of that policy; 0 is the most urgent.
    pub(crate) fn level(&self, class: &ResolvedClass) -> u32 {
        self.0.binary_search(&class.priority).unwrap_or(0) as u32
    }
}
