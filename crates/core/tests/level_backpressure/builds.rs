//! Builds of backpressure by level and of the flat scheduler from changed sources.

use sluice_core::level_backpressure::LevelCore;

crate::suite::builds_of!(LevelCore, "crates/core/tests/level_backpressure/native.c");
