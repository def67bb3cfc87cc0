//! The laws of port forwarding's connections: what the table, the states and the ports promise, as examples and as
//! properties of random packets. Each must hold for the functions that are built in, and each must fail for functions that
//! were broken on purpose (`mutants.rs`).
//!
//! `PROPTEST_CASES` is the number of cases of a law about random packets. Cases that have broken a law before
//! (`found.proptest-regressions`) are tried first.

mod builds;
mod connections;
#[path = "../../../core/tests/laws/edits.rs"]
mod edits;
#[path = "../../../core/tests/laws/holds.rs"]
mod holds;
mod mutants;
mod ports;
mod tracking;
mod translation;

use proptest::test_runner::{Config, FileFailurePersistence, RngAlgorithm, TestRng, TestRunner};
use sluice_forward::Functions;
use std::{any::Any, panic};

/// A promise that the functions must keep; one that is broken panics.
#[derive(Clone, Copy)]
pub(crate) struct Law {
    pub name: &'static str,
    pub check: fn(&'static Functions, &mut TestRunner),
}

/// A test for each of these laws: functions of a build of `forward/` and, where a strategy follows the name, of a case of it.
/// `LAWS` lists them.
macro_rules! laws {
    ($($name:ident $(: $cases:expr)?;)*) => {
        pub(crate) const LAWS: &[$crate::Law] = &[$($crate::Law {
            name: concat!(module_path!(), "::", stringify!($name)),
            check: laws!(check $name $($cases)?),
        }),*];

        $crate::holds! { $($name)* }
    };
    (check $name:ident) => { |functions, _| $name(functions) };
    (check $name:ident $cases:expr) => {
        |functions, runner| {
            if let Err(error) = runner.run(&$cases, |case| $name(functions, case)) {
                panic!("{error}");
            }
        }
    };
}
pub(crate) use holds::holds;
pub(crate) use laws;

/// The laws of all modules.
fn all_laws() -> impl Iterator<Item = &'static Law> {
    [connections::LAWS, ports::LAWS, tracking::LAWS, translation::LAWS].into_iter().flatten()
}

/// The law holds for the functions that are built in, or the test fails with the smallest case that was found.
fn prove(law: &Law) {
    let found = FileFailurePersistence::Direct("tests/laws/found.proptest-regressions");
    let config = Config { failure_persistence: Some(Box::new(found)), ..Config::default() };
    (law.check)(Functions::built_in(), &mut TestRunner::new(config));
}

/// Why the law does not hold for these functions, if so many cases, always the same, show it.
fn refute(law: &Law, functions: &'static Functions, cases: u32) -> Option<String> {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    panic::catch_unwind(panic::AssertUnwindSafe(|| (law.check)(functions, &mut runner))).err().map(reason)
}

/// The text of a panic.
fn reason(panic: Box<dyn Any + Send>) -> String {
    panic
        .downcast::<String>()
        .map(|text| *text)
        .or_else(|panic| panic.downcast::<&str>().map(|text| text.to_string()))
        .unwrap_or_else(|_| "a panic without a reason".to_owned())
}
