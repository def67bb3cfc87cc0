//! The laws of the limit on what a port has under way (`sched/port_limit.h`): what it promises, as properties of random ports and of the times at which
//! an engine looks at them. Each must hold for the core that is built in, and each must fail for a core that was broken on purpose (`mutants.rs`).
//!
//! `PROPTEST_CASES` is the number of cases of each law. A counterexample is printed with the `PROPTEST_RNG_SEED` that finds it again.

mod bounds;
mod builds;
mod busy;
#[path = "../laws/edits.rs"]
mod edits;
#[path = "../laws/holds.rs"]
mod holds;
#[path = "../laws/law.rs"]
mod law;
mod mutants;
#[path = "../laws/suite.rs"]
mod suite;
mod world;

use sluice_core::port_limit::LimitCore;
use world::Case;

/// A property that must hold of every case.
pub(crate) type Law = law::Law<LimitCore, Case>;

pub(crate) use holds::holds;
pub(crate) use suite::laws;

/// The laws of all modules.
fn all_laws() -> impl Iterator<Item = &'static Law> {
    [bounds::LAWS, busy::LAWS].into_iter().flatten()
}

fn prove(law: &Law) {
    law.prove(LimitCore::built_in(), 100);
}
