//! Builds of the core from changed sources.

use sluice_core::Core;

crate::suite::builds_of!(Core, "crates/core/src/native.c");
