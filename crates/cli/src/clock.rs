//! The clock of programs in the kernel, and the time of day.

use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// CLOCK_MONOTONIC, ns.
pub fn monotonic_ns() -> u64 {
    read_ns(ClockId::CLOCK_MONOTONIC)
}

/// The time since 1970 less CLOCK_MONOTONIC, ns: to be added to times of that clock.
pub fn unix_less_monotonic_ns() -> i64 {
    read_ns(ClockId::CLOCK_REALTIME) as i64 - monotonic_ns() as i64
}

fn read_ns(clock: ClockId) -> u64 {
    clock_gettime(clock).map(Duration::from).unwrap_or_default().as_nanos() as u64
}
