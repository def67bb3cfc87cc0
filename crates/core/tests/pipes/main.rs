//! The laws of the scheduler of pipes (`sched/pipes.h`): what it promises, as properties of random pipes and traffic. Each must hold for the
//! core that is built in, and each must fail for a core that was broken on purpose (`mutants.rs`).
//!
//! `PROPTEST_CASES` is the number of cases of each law. A counterexample is printed with the `PROPTEST_RNG_SEED` that finds it again.

mod builds;
mod changes;
mod codel;
mod conservation;
#[path = "../laws/edits.rs"]
mod edits;
#[path = "../laws/holds.rs"]
mod holds;
#[path = "../laws/law.rs"]
mod law;
mod mutants;
mod neon;
mod priority;
mod rates;
mod sharing;
mod steps;
#[path = "../laws/suite.rs"]
mod suite;
mod traces;
mod work;
mod world;

use sluice_core::pipes::PipesCore;
use traces::Case;

/// A property that must hold of every case.
pub(crate) type Law = law::Law<PipesCore, Case>;

pub(crate) use holds::holds;
pub(crate) use suite::laws;

/// The laws of all modules.
fn all_laws() -> impl Iterator<Item = &'static Law> {
    [
        changes::LAWS,
        codel::LAWS,
        conservation::LAWS,
        priority::LAWS,
        rates::LAWS,
        sharing::LAWS,
        steps::LAWS,
        work::LAWS,
    ]
    .into_iter()
    .flatten()
}

fn prove(law: &Law) {
    // Only the build of its own counts steps.
    let core = if law.name.contains("steps::") { builds::unchanged() } else { PipesCore::built_in() };
    law.prove(core, 16);
}
