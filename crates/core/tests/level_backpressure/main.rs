//! The laws of backpressure by level (`sched/level_backpressure.h`): what it promises, as properties of random traffic and ports. Each must hold
//! for the core that is built in, and each must fail for a core that was broken on purpose (`mutants.rs`).
//!
//! `PROPTEST_CASES` is the number of cases of each law. A counterexample is printed with the `PROPTEST_RNG_SEED` that finds it again.

mod builds;
mod conservation;
#[path = "../laws/edits.rs"]
mod edits;
#[path = "../laws/holds.rs"]
mod holds;
#[path = "../laws/law.rs"]
mod law;
mod mutants;
mod order;
#[path = "../backpressure/port.rs"]
mod port;
#[path = "../laws/suite.rs"]
mod suite;
mod traces;
mod world;

use sluice_core::level_backpressure::LevelCore;
use traces::Case;

/// A property that must hold of every case.
pub(crate) type Law = law::Law<LevelCore, Case>;

pub(crate) use holds::holds;
pub(crate) use suite::laws;

/// The laws of all modules.
fn all_laws() -> impl Iterator<Item = &'static Law> {
    [conservation::LAWS, order::LAWS].into_iter().flatten()
}

fn prove(law: &Law) {
    law.prove(LevelCore::built_in(), 100);
}
