//! Builds of `forward/` from changed sources.

pub use crate::edits::Edit;
use crate::edits::{self, Sources};
use sluice_forward::Functions;

const SOURCES: Sources =
    Sources { native: "crates/forward/src/native.c", headers: "forward", others: &["abi", "sched"] };

/// The functions, compiled with these edits of `forward/`. The text of each must occur once.
pub fn build(edits: &[Edit]) -> &'static Functions {
    // SAFETY: the object runs nothing when it is loaded, and its table is a `Functions`: the compiler saw the same
    // `native.c`. Edits change no index of an array.
    let functions: &Functions = unsafe { edits::table(&SOURCES, edits, Functions::SYMBOL) };
    assert!(functions.fits(), "the sources have changed since this program was compiled");
    functions
}
