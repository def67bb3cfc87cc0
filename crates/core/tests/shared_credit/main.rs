//! The laws of instances that share a link (`sched/shared_credit.h` and what builds on it), over random interleavings of 1 to 64 instances: their calls
//! stop before each access to a shared word, and the case chooses which goes on (`stepped.c`). Each law must hold, and each must fail for headers
//! that were broken on purpose (`mutants.rs`).
//!
//! `PROPTEST_CASES` is the number of cases of each law. A counterexample is printed with the `PROPTEST_RNG_SEED` that finds it again.

mod active;
mod builds;
mod cases;
mod credit;
#[path = "../laws/edits.rs"]
mod edits;
#[path = "../laws/holds.rs"]
mod holds;
mod interleaving;
#[path = "../laws/law.rs"]
mod law;
mod links;
mod mutants;
mod places;
mod stepping;
#[path = "../laws/suite.rs"]
mod suite;
mod threads;
mod world;

use builds::Stepped;
use cases::Case;

/// A property that must hold of every case.
pub(crate) type Law = law::Law<Stepped, Case>;

pub(crate) use holds::holds;
pub(crate) use suite::laws;

/// The laws of all modules.
fn all_laws() -> impl Iterator<Item = &'static Law> {
    [active::LAWS, credit::LAWS, links::LAWS].into_iter().flatten()
}

fn prove(law: &Law) {
    law.prove(builds::unchanged(), 16);
}
