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

/// The tests of the laws as a whole: none is broken by the sources as they are, in so many cases, and each is by one of these mutants.
macro_rules! laws_can_fail {
    ($cases:literal, $broken:expr) => {
        #[test]
        fn the_core_as_it_is_breaks_no_law() {
            $crate::suite::holds_unchanged($cases);
        }

        #[test]
        fn each_law_is_broken_by_a_mutant() {
            $crate::suite::are_all_broken($broken);
        }
    };
}
pub(crate) use laws_can_fail;

/// The builds of a core whose type has `SYMBOL` and `fits`, from changed sources. `native`: the file that is compiled.
macro_rules! builds_of {
    ($core:ty, $native:literal) => {
        pub use crate::edits::Edit;
        use crate::edits::{self, Sources};
        use std::sync::OnceLock;

        pub(crate) const SOURCES: Sources = Sources { native: $native, headers: "sched", others: &["abi"] };

        /// The core, compiled from the sources as they are, by the same compiler and with the same options as edited ones.
        pub fn unchanged() -> &'static $core {
            static CORE: OnceLock<&'static $core> = OnceLock::new();
            CORE.get_or_init(|| build(&[]))
        }

        /// The core, compiled with these edits of `sched/`. The text of each must occur once.
        pub fn build(edits: &[Edit]) -> &'static $core {
            // SAFETY: the core runs nothing when it is loaded, and what has the name is of this type: the compiler saw the same file.
            // Edits are of arithmetic; a core indexes by `sl_at`, which stays within its arrays.
            let core: &$core = unsafe { edits::table(&SOURCES, edits, <$core>::SYMBOL) };
            assert!(core.fits(), "the sources have changed since this program was compiled");
            core
        }
    };
}
pub(crate) use builds_of;

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
