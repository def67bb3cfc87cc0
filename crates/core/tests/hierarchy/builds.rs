//! Builds of the tree of classes from changed sources. They count the nodes that they visit.

pub use crate::edits::Edit;
use crate::edits::{self, Sources};
use sluice_core::hierarchy::TreeCore;
use std::sync::OnceLock;

const SOURCES: Sources =
    Sources { native: "crates/core/tests/hierarchy/counted.c", headers: "sched", others: &["abi"] };

/// The core, compiled from the sources as they are.
pub fn unchanged() -> &'static TreeCore {
    static CORE: OnceLock<&'static TreeCore> = OnceLock::new();
    CORE.get_or_init(|| build(&[]))
}

/// The core, compiled with these edits of `sched/`. The text of each must occur once.
pub fn build(edits: &[Edit]) -> &'static TreeCore {
    // SAFETY: the core runs nothing when it is loaded, and its table is a `TreeCore`: the compiler saw the same `hierarchy.c`.
    // Edits are of arithmetic; a core indexes by `sl_at`, which stays within its arrays.
    let core: &TreeCore = unsafe { edits::table(&SOURCES, edits, TreeCore::SYMBOL) };
    assert!(core.fits(), "the sources have changed since this program was compiled");
    core
}
