//! The laws of the scheduler core: what the theory of each discipline promises, as properties of random traffic. Each
//! must hold for the core that is built in, and each must fail for a core that was broken on purpose (`mutants.rs`).
//!
//! `PROPTEST_CASES` is the number of cases of each law. A counterexample is printed with the `PROPTEST_RNG_SEED` that finds
//! it again.

mod buckets;
mod builds;
mod cases;
mod codel;
mod conservation;
mod deficit_round_robin;
mod early;
mod edits;
mod eevdf;
mod elastic_round_robin;
mod fairness;
mod flow_queues;
mod flow_shares;
mod gps;
mod holds;
mod lone;
mod mutants;
mod order;
mod pifo;
mod priority_queue;
mod room;
mod round_robin;
mod strict_priority;
mod traces;
mod weighted_fair_queuing;
mod work;
mod world;

use cases::Case;
use proptest::{
    strategy::BoxedStrategy,
    test_runner::{Config, RngAlgorithm, RngSeed, TestCaseResult, TestError, TestRng, TestRunner},
};
use sluice_core::Core;
use std::{
    cell::Cell,
    env,
    hash::{BuildHasher, RandomState},
};

/// A property that must hold of every case.
#[derive(Clone, Copy)]
pub(crate) struct Law {
    pub name: &'static str,
    pub cases: fn() -> BoxedStrategy<Case>,
    pub holds: fn(&'static Core, &Case) -> TestCaseResult,
}

/// A test for each of these laws: functions of a core and a case, and the traffic that they are about. `LAWS` lists them.
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
        lone::LAWS,
        work::LAWS,
        order::LAWS,
        flow_queues::LAWS,
        flow_shares::LAWS,
        room::LAWS,
        early::LAWS,
        codel::LAWS,
        buckets::LAWS,
        strict_priority::LAWS,
        deficit_round_robin::LAWS,
        round_robin::LAWS,
        weighted_fair_queuing::LAWS,
        eevdf::LAWS,
        elastic_round_robin::LAWS,
        pifo::LAWS,
    ]
    .into_iter()
    .flatten()
}

/// The law holds for the core that is built in, or the test fails with the smallest case that was found.
fn prove(law: &Law) {
    // From the environment: PROPTEST_CASES, PROPTEST_RNG_SEED.
    let given = Config::default();
    let seed = match given.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => RandomState::new().hash_one(law.name),
    };
    let mut config = Config { rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..given };
    (config.max_shrink_iters, config.max_shrink_time) = (1_000_000, 10_000);
    if env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 100;
    }
    let mut runner = TestRunner::new(config);
    if let Err(error) = runner.run(&(law.cases)(), |case| (law.holds)(Core::built_in(), &case)) {
        panic!("{error}\nThe same with PROPTEST_RNG_SEED={seed}");
    }
}

/// Why the law does not hold for this core, if one of so many cases, always the same, shows it.
fn refute(law: &Law, core: &'static Core, cases: u32) -> Option<String> {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let case_number = Cell::new(0);
    let count = |case| {
        case_number.set(case_number.get() + 1);
        (law.holds)(core, &case)
    };
    match runner.run(&(law.cases)(), count) {
        Ok(()) => None,
        Err(TestError::Fail(reason, _)) => Some(format!("in case {}, {reason}", case_number.get())),
        Err(TestError::Abort(reason)) => panic!("{}: {reason}", law.name),
    }
}
