//! The laws of the address table: what `sched/addresses.h` finds in what `sluice-tables` builds and changes, as properties of random tables. Each
//! must hold for the look-up that is built in, and each must fail for one that was broken on purpose (`mutants.rs`).
//!
//! `PROPTEST_CASES` is the number of cases of each law. A counterexample is printed with the `PROPTEST_RNG_SEED` that finds it again.

mod cases;
#[path = "../../../core/tests/laws/edits.rs"]
mod edits;
#[path = "../../../core/tests/laws/holds.rs"]
mod holds;
#[path = "../../../core/tests/laws/law.rs"]
mod law;
mod model;
mod mutants;
mod promises;
mod readers;
mod refusals;

use cases::Case;
use sluice_core::addresses::LookUp;

/// A property that must hold of every case.
pub(crate) type Law = law::Law<LookUp, Case>;

/// A test for each of these laws: functions of a look-up and a case, and the cases that they are about. `LAWS` lists them.
macro_rules! laws {
    ($($name:ident: $cases:expr;)*) => {
        pub(crate) const LAWS: &[Law] = &[$(Law {
            name: concat!(module_path!(), "::", stringify!($name)),
            cases: || $cases,
            holds: $name,
        }),*];

        $crate::holds! { $($name)* }
    };
}
pub(crate) use holds::holds;
pub(crate) use laws;

fn prove(law: &Law) {
    law.prove(LookUp::built_in(), 60);
}
