//! Builds of the scheduler of pipes from changed sources. They count their steps.

use sluice_core::pipes::PipesCore;

crate::suite::builds_of!(PipesCore, "crates/core/tests/pipes/counted.c");
