//! The laws of trees of classes that share a link (`sched/shared_tree.h`), over random interleavings of 1 to 16 trees: their calls stop before each
//! access to a shared word, and the case chooses which goes on (`stepped.c`). Each law must hold, and each must fail for headers that were broken on
//! purpose (`mutants.rs`).
//!
//! `PROPTEST_CASES` is the number of cases of each law. A counterexample is printed with the `PROPTEST_RNG_SEED` that finds it again.

mod builds;
#[path = "../shared_credit/cases.rs"]
mod cases;
#[path = "../laws/edits.rs"]
mod edits;
mod forest;
#[path = "../laws/holds.rs"]
mod holds;
#[path = "../shared_credit/interleaving.rs"]
mod interleaving;
#[path = "../laws/law.rs"]
mod law;
mod mutants;
#[path = "../shared_credit/stepping.rs"]
mod stepping;
#[path = "../laws/suite.rs"]
mod suite;
mod trees;

use builds::Stepped;
use cases::Case;

/// A property that must hold of every case.
pub(crate) type Law = law::Law<Stepped, Case>;

pub(crate) use holds::holds;
pub(crate) use suite::laws;

/// All laws.
fn all_laws() -> impl Iterator<Item = &'static Law> {
    trees::LAWS.iter()
}

fn prove(law: &Law) {
    law.prove(builds::unchanged(), 16);
}
