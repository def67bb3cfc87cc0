//! Builds of the scheduler of pipes from changed sources. They count their steps.

pub use crate::edits::Edit;
use crate::edits::{self, Sources};
use sluice_core::pipes::PipesCore;
use std::sync::OnceLock;

pub(crate) const SOURCES: Sources =
    Sources { native: "crates/core/tests/pipes/counted.c", headers: "sched", others: &["abi"] };

/// The core, compiled from the sources as they are.
pub fn unchanged() -> &'static PipesCore {
    static CORE: OnceLock<&'static PipesCore> = OnceLock::new();
    CORE.get_or_init(|| build(&[]))
}

/// The core, compiled with these edits of `sched/`. The text of each must occur once.
pub fn build(edits: &[Edit]) -> &'static PipesCore {
    // SAFETY: the core runs nothing when it is loaded, and its table is a `PipesCore`: the compiler saw the same `pipes.c`.
    // Edits are of arithmetic; a core indexes by `sl_at`, which stays within its arrays.
    let core: &PipesCore = unsafe { edits::table(&SOURCES, edits, PipesCore::SYMBOL) };
    assert!(core.fits(), "the sources have changed since this program was compiled");
    core
}
