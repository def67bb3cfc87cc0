//! The laws of the tree of classes (`sched/hierarchy.h`): what it promises, as properties of random trees and traffic. Each must hold for
//! the core that is built in, and each must fail for a core that was broken on purpose (`mutants.rs`).
//!
//! `PROPTEST_CASES` is the number of cases of each law. A counterexample is printed with the `PROPTEST_RNG_SEED` that finds it again.

mod builds;
mod ceilings;
mod conservation;
#[path = "../laws/edits.rs"]
mod edits;
mod flows;
mod guarantees;
#[path = "../laws/holds.rs"]
mod holds;
mod mutants;
mod priority;
mod sharing;
mod steps;
mod structure;
mod traces;
mod work;
mod world;

use proptest::{
    strategy::BoxedStrategy,
    test_runner::{Config, RngAlgorithm, RngSeed, TestCaseResult, TestError, TestRng, TestRunner},
};
use sluice_core::hierarchy::TreeCore;
use std::{
    env,
    hash::{BuildHasher, RandomState},
};
use traces::Case;

/// A property that must hold of every case.
#[derive(Clone, Copy)]
pub(crate) struct Law {
    pub name: &'static str,
    pub cases: fn() -> BoxedStrategy<Case>,
    pub holds: fn(&'static TreeCore, &Case) -> TestCaseResult,
}

/// A test for each of these laws: functions of a core and a case, and the cases that they are about. `LAWS` lists them.
macro_rules! laws {
    ($($name:ident: $cases:expr;)*) => {
        pub(crate) const LAWS: &[$crate::Law] = &[$($crate::Law {
            name: concat!(module_path!(), "::", stringify!($name)),
            cases: || $cases.cases(),
            holds: $name,
        }),*];

        $crate::holds! { $($name)* }
    };
}
pub(crate) use holds::holds;
pub(crate) use laws;

/// The laws of all modules.
fn all_laws() -> impl Iterator<Item = &'static Law> {
    [
        conservation::LAWS,
        ceilings::LAWS,
        guarantees::LAWS,
        sharing::LAWS,
        priority::LAWS,
        work::LAWS,
        steps::LAWS,
        structure::LAWS,
        flows::LAWS,
    ]
    .into_iter()
    .flatten()
}

/// The law holds, or the test fails with the smallest case that was found.
fn prove(law: &Law) {
    let given = Config::default();
    let seed = match given.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => RandomState::new().hash_one(law.name),
    };
    let mut config = Config { rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..given };
    (config.max_shrink_iters, config.max_shrink_time) = (100_000, 10_000);
    if env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 60;
    }
    // Only the build of its own counts visited nodes.
    let core = if law.name.contains("steps::") { builds::unchanged() } else { TreeCore::built_in() };
    if let Err(error) = TestRunner::new(config).run(&(law.cases)(), |case| (law.holds)(core, &case)) {
        panic!("{error}\nThe same with PROPTEST_RNG_SEED={seed}");
    }
}

/// Why the law does not hold for this core, if one of so many cases, always the same, shows it.
fn refute(law: &Law, core: &'static TreeCore, cases: u32) -> Option<String> {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    match TestRunner::new_with_rng(config, rng).run(&(law.cases)(), |case| (law.holds)(core, &case)) {
        Ok(()) => None,
        Err(TestError::Fail(reason, _)) => Some(reason.to_string()),
        Err(TestError::Abort(reason)) => panic!("{}: {reason}", law.name),
    }
}
