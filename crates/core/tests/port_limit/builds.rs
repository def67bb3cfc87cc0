//! Builds of the limit on what a port has under way, from changed sources.

use sluice_core::port_limit::LimitCore;

crate::suite::builds_of!(LimitCore, "crates/core/tests/port_limit/native.c");
