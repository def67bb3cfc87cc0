//! The laws of the address table: what `sched/addresses.h` finds in what `sluice-tables` builds and changes, as properties of random tables. Each
//! must hold for the look-up that is built in, and each must fail for one that was broken on purpose (`mutants.rs`).
//!
//! `PROPTEST_CASES` is the number of cases of each law. A counterexample is printed with the `PROPTEST_RNG_SEED` that finds it again.

mod cases;
#[path = "../../../core/tests/laws/edits.rs"]
mod edits;
#[path = "../../../core/tests/laws/holds.rs"]
mod holds;
mod model;
mod mutants;
mod promises;
mod readers;
mod refusals;

use cases::Case;
use proptest::{
    strategy::BoxedStrategy,
    test_runner::{Config, RngAlgorithm, RngSeed, TestCaseResult, TestError, TestRng, TestRunner},
};
use sluice_core::addresses::LookUp;
use std::{
    env,
    hash::{BuildHasher, RandomState},
};

/// A property that must hold of every case.
#[derive(Clone, Copy)]
pub(crate) struct Law {
    pub name: &'static str,
    pub cases: fn() -> BoxedStrategy<Case>,
    pub holds: fn(&'static LookUp, &Case) -> TestCaseResult,
}

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
    if let Err(error) = TestRunner::new(config).run(&(law.cases)(), |case| (law.holds)(LookUp::built_in(), &case)) {
        panic!("{error}\nThe same with PROPTEST_RNG_SEED={seed}");
    }
}

/// Why the law does not hold for this look-up, if one of so many cases, always the same, shows it.
fn refute(law: &Law, core: &'static LookUp, cases: u32) -> Option<String> {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    match TestRunner::new_with_rng(config, rng).run(&(law.cases)(), |case| (law.holds)(core, &case)) {
        Ok(()) => None,
        Err(TestError::Fail(reason, _)) => Some(reason.to_string()),
        Err(TestError::Abort(reason)) => panic!("{}: {reason}", law.name),
    }
}
