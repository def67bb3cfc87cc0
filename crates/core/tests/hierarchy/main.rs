//! The laws of the tree of classes (`sched/hierarchy.h`): what it promises, as properties of random trees and traffic. Each must hold for
//! the core that is built in, and each must fail for a core that was broken on purpose (`mutants.rs`).
//!
//! `PROPTEST_CASES` is the number of cases of each law. A counterexample is printed with the `PROPTEST_RNG_SEED` that finds it again.

mod builds;
mod ceilings;
mod conservation;
mod early;
#[path = "../laws/edits.rs"]
mod edits;
mod eevdf;
mod flows;
mod follow;
mod guarantees;
#[path = "../laws/holds.rs"]
mod holds;
#[path = "../laws/law.rs"]
mod law;
mod mutants;
mod pifo;
mod priority;
mod sharing;
mod steps;
mod structure;
#[path = "../laws/suite.rs"]
mod suite;
mod thousands;
mod traces;
mod work;
mod world;

use sluice_core::hierarchy::TreeCore;
use traces::Case;

/// A property that must hold of every case.
pub(crate) type Law = law::Law<TreeCore, Case>;

pub(crate) use holds::holds;
pub(crate) use suite::laws;

/// The laws of all modules.
fn all_laws() -> impl Iterator<Item = &'static Law> {
    [
        conservation::LAWS,
        ceilings::LAWS,
        guarantees::LAWS,
        sharing::LAWS,
        priority::LAWS,
        eevdf::LAWS,
        pifo::LAWS,
        work::LAWS,
        steps::LAWS,
        structure::LAWS,
        flows::LAWS,
        early::LAWS,
    ]
    .into_iter()
    .flatten()
}

fn prove(law: &Law) {
    // Only the build of its own counts visited nodes.
    let core = if law.name.contains("steps::") { builds::unchanged() } else { TreeCore::built_in() };
    law.prove(core, 60);
}
