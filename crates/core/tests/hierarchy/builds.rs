//! Builds of the tree of classes from changed sources. They count the nodes that they visit.

use sluice_core::hierarchy::TreeCore;

crate::suite::builds_of!(TreeCore, "crates/core/tests/hierarchy/counted.c");
