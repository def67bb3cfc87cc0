//! Lists of laws, and cores that are broken on purpose, each in one place, with the law that finds out. The laws of the tree of classes and those of
//! the scheduler of pipes include this file too.

use crate::{
    Law, all_laws,
    builds::{self, Edit},
};

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
pub(crate) use laws;

/// A test for each mutant: the law that must find a counterexample; a header of `sched/`, the text that is there once, and
/// what takes its place.
macro_rules! mutants {
    ($($name:ident breaks $law:literal: $($header:literal, $line:literal => $instead:literal),+;)*) => {
        /// The laws that they break.
        pub(crate) const BROKEN: &[&str] = &[$($law),*];

        $(#[test]
        fn $name() {
            let edits = [$($crate::builds::Edit { header: $header, line: $line, instead: $instead }),+];
            $crate::suite::breaks(&edits, $law, $crate::mutants::CASES);
        })*
    };
}
pub(crate) use mutants;

fn is(law: &Law, name: &str) -> bool {
    law.name.ends_with(&format!("::{name}"))
}

/// The law finds a counterexample among so many cases of a core with these edits.
pub(crate) fn breaks(edits: &[Edit], name: &str, cases: u32) {
    let law = all_laws().find(|law| is(law, name)).unwrap_or_else(|| panic!("no law is called {name}"));
    let why = law.refute(builds::build(edits), cases);
    println!("{name}: {}", why.expect("the law holds for the mutant"));
}

/// No law finds a counterexample among so many cases of the core as it is.
pub(crate) fn holds_unchanged(cases: u32) {
    let broken = |law: &Law| law.refute(builds::unchanged(), cases).map(|why| format!("{}: {why}\n", law.name));
    let broken: String = all_laws().filter_map(broken).collect();
    assert!(broken.is_empty(), "{broken}");
}

/// Each law is among those that mutants break.
pub(crate) fn are_all_broken<'a>(broken: impl Iterator<Item = &'a &'a str> + Clone) {
    for law in all_laws() {
        assert!(broken.clone().any(|name| is(law, name)), "{}", law.name);
    }
}
