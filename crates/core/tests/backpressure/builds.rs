//! Builds of backpressure and of the scheduler of pipes from changed sources. They count their steps.

pub use crate::edits::Edit;
use crate::edits::{self, Sources};
use sluice_core::backpressure::BackpressureCore;
use std::sync::OnceLock;

const SOURCES: Sources =
    Sources { native: "crates/core/tests/backpressure/counted.c", headers: "sched", others: &["abi"] };

/// The core, compiled from the sources as they are.
pub fn unchanged() -> &'static BackpressureCore {
    static CORE: OnceLock<&'static BackpressureCore> = OnceLock::new();
    CORE.get_or_init(|| build(&[]))
}

/// The core, compiled with these edits of `sched/`. The text of each must occur once.
pub fn build(edits: &[Edit]) -> &'static BackpressureCore {
    // SAFETY: the core runs nothing when it is loaded, and its table is a `BackpressureCore`: the compiler saw the same `backpressure.c`.
    // Edits are of arithmetic; a core indexes by `sl_at`, which stays within its arrays.
    let core: &BackpressureCore = unsafe { edits::table(&SOURCES, edits, BackpressureCore::SYMBOL) };
    assert!(core.fits(), "the sources have changed since this program was compiled");
    core
}
