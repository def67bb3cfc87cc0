//! A law, its proof and its refutation. The laws of the tree of classes and of the address table include this file too.

use proptest::{
    strategy::BoxedStrategy,
    test_runner::{Config, RngAlgorithm, RngSeed, TestCaseResult, TestError, TestRng, TestRunner},
};
use std::{
    cell::Cell,
    env,
    fmt::Debug,
    hash::{BuildHasher, RandomState},
};

/// A property of a build `K` that must hold of every case `C`.
pub(crate) struct Law<K: 'static, C> {
    pub name: &'static str,
    pub cases: fn() -> BoxedStrategy<C>,
    pub holds: fn(&'static K, &C) -> TestCaseResult,
}

impl<K, C: Debug> Law<K, C> {
    /// The law holds for this build, or the test fails with the smallest case that was found. `cases`: how many, unless PROPTEST_CASES says so.
    pub(crate) fn prove(&self, build: &'static K, cases: u32) {
        // From the environment: PROPTEST_CASES, PROPTEST_RNG_SEED.
        let given = Config::default();
        let seed = match given.rng_seed {
            RngSeed::Fixed(seed) => seed,
            RngSeed::Random => RandomState::new().hash_one(self.name),
        };
        let mut config = Config { rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..given };
        (config.max_shrink_iters, config.max_shrink_time) = (1_000_000, 10_000);
        if env::var_os("PROPTEST_CASES").is_none() {
            config.cases = cases;
        }
        let mut runner = TestRunner::new(config);
        if let Err(error) = runner.run(&(self.cases)(), |case| (self.holds)(build, &case)) {
            panic!("{error}\nThe same with PROPTEST_RNG_SEED={seed}");
        }
    }

    /// Why the law does not hold for this build, if one of so many cases, always the same, shows it.
    pub(crate) fn refute(&self, build: &'static K, cases: u32) -> Option<String> {
        let config = Config { cases, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
        let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let mut runner = TestRunner::new_with_rng(config, rng);
        let case_number = Cell::new(0);
        let count = |case| {
            case_number.set(case_number.get() + 1);
            (self.holds)(build, &case)
        };
        match runner.run(&(self.cases)(), count) {
            Ok(()) => None,
            Err(TestError::Fail(reason, _)) => Some(format!("in case {}, {reason}", case_number.get())),
            Err(TestError::Abort(reason)) => panic!("{}: {reason}", self.name),
        }
    }
}
