//! Programs for the lab: a sender of frames, observers as published work has them, and a slow card. Each prints a line of JSON.

use crate::args::lab::{Card, Frames, Observe};
use crate::check;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::terminal::say;
use serde::Serialize;
use sluice_frames::Way;
use std::fmt::Write;
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

/// Frames that a card notes, if a file is to have them.
const NOTES: u32 = 1 << 20;

pub fn card(args: &Card) -> Result<(), Failure> {
    sluice_kernel::require_root()?;
    let interrupt = Interrupt::new()?;
    let card = sluice_frames::Card {
        rate_bps: check::rate("--rate", &args.rate)?.0,
        overhead_bytes: args.overhead,
        notes: if args.notes.is_some() { NOTES } else { 1 },
        passes: !args.drop,
        processor: args.processor,
    };
    let ready = || eprintln!("sending; Ctrl-C ends");
    let sent = sluice_frames::slow(&args.interface, &card, ready, || interrupt.is_asked())?;
    if let Some(file) = &args.notes {
        let mut text = String::new();
        for left in &sent.left {
            let _ = writeln!(text, "{} {} {} {} {}", left.stamp, left.at_ns, left.bytes, left.ports[0], left.ports[1]);
        }
        let failed = |error| Failure::system(format!("cannot write {}: {error}", file.display()));
        std::fs::write(file, text).map_err(failed)?;
    }
    print(&sent)
}

fn print(value: &impl Serialize) -> Result<(), Failure> {
    let json = serde_json::to_string(value).map_err(|error| Failure::system(error.to_string()))?;
    say(&(json + "\n"));
    Ok(())
}
