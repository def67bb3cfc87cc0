//! Builds of backpressure and of the scheduler of pipes from changed sources. They count their steps.

use sluice_core::backpressure::BackpressureCore;

crate::suite::builds_of!(BackpressureCore, "crates/core/tests/backpressure/counted.c");
