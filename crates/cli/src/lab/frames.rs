//! Programs for the lab's taps: a sender of frames, and observers as published work has them. Each prints a line of JSON.

use crate::args::lab::{Frames, Observe};
use crate::check;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::terminal::say;
use serde::Serialize;
use sluice_frames::Way;
use std::time::Duration;

pub fn send(args: &Frames) -> Result<(), Failure> {
    sluice_kernel::require_root()?;
    let interrupt = Interrupt::new()?;
    let rate_bps = args.rate.as_deref().map(|text| check::rate("--rate", text)).transpose()?.map(|rate| rate.0);
    let frames = sluice_frames::Frames { bytes: args.bytes, flows: args.flows, rate_bps };
    print(&sluice_frames::send(&args.interface, frames, args.duration, || interrupt.is_asked())?)
}

pub fn observe(args: &Observe) -> Result<(), Failure> {
    sluice_kernel::require_root()?;
    let interrupt = Interrupt::new()?;
    let way = match args.way.as_str() {
        "drop" => Way::Drop,
        "counters" => Way::Counters,
        _ => Way::Ring { bytes: args.ring, wait: Duration::from_millis(args.wait_ms), works: args.works },
    };
    let ready = || eprintln!("observing; Ctrl-C ends");
    print(&sluice_frames::observe(&args.interface, way, ready, || interrupt.is_asked())?)
}

fn print(value: &impl Serialize) -> Result<(), Failure> {
    let json = serde_json::to_string(value).map_err(|error| Failure::system(error.to_string()))?;
    say(&(json + "\n"));
    Ok(())
}
