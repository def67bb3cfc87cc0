//! Builds of the core from changed sources.

pub use crate::edits::Edit;
use crate::edits::{self, Sources};
use sluice_core::Core;
use std::sync::OnceLock;

const SOURCES: Sources = Sources { native: "crates/core/src/native.c", headers: "sched", others: &["abi"] };

/// The core, compiled from the sources as they are, by the same compiler and with the same options as edited ones.
pub fn unchanged() -> &'static Core {
    static CORE: OnceLock<&'static Core> = OnceLock::new();
    CORE.get_or_init(|| build(&[]))
}

/// The core, compiled with these edits of `sched/`. The text of each must occur once.
pub fn build(edits: &[Edit]) -> &'static Core {
    // SAFETY: the core runs nothing when it is loaded, and its table is a `Core`: the compiler saw the same `native.c`.
    // Edits are of arithmetic; a core indexes by `sl_at`, which stays within its arrays.
    let core: &Core = unsafe { edits::table(&SOURCES, edits, Core::SYMBOL) };
    assert!(core.fits(), "the sources have changed since this program was compiled");
    core
}
