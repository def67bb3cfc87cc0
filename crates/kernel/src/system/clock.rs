//! The clocks: one that people read, and those that cannot be set.

use nix::time::{ClockId, clock_gettime};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
pub(crate) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The clock of BPF programs.
pub(crate) fn monotonic() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}

/// Now in ticks of 2^20 ns, as BPF programs count them.
pub(crate) fn tick() -> u32 {
    (monotonic().as_nanos() >> sluice_abi::SL_TICK_SHIFT) as u32
}

/// Time since the machine was started: it goes on while the machine sleeps, and setting the clock does not change it.
pub(crate) fn since_boot() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from)
}
