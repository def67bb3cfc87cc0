//! The beginning and the end of an observation, the same for `sluice count`, `features` and `capture`.

use crate::failure::Failure;
use crate::size;
use sluice_kernel::telemetry::{Observer, Request};

/// Bytes of a ring, as `--ring` has them. More than the observer takes become the most that a u32 holds, which it refuses.
pub fn ring_bytes(text: &str) -> Result<u32, Failure> {
    Ok(u32::try_from(size::bytes("--ring", text)?).unwrap_or(u32::MAX))
}

/// Begins to observe, and tells what the observer cannot see.
pub fn begin(interfaces: &[String], request: &Request) -> Result<Observer, Failure> {
    let observer = Observer::start(interfaces, request)?;
    observer.notes().iter().for_each(|note| eprintln!("note: {note}"));
    Ok(observer)
}

/// Tells of time in which nothing was observed.
pub fn tell_gap(observer: &Observer) {
    let gap = observer.gap();
    if !gap.is_zero() {
        eprintln!(
            "note: for {:.1} s no packet was observed or counted, since the command was stopped",
            gap.as_secs_f64()
        );
    }
}
