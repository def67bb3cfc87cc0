//! `sluice events`: important events of managed interfaces, as they happen.

use crate::args::Events;
use crate::failure::Failure;
use crate::terminal;
use sluice_kernel::events::{Event, EventKind, Listener, Place, Subject};
use std::time::{Duration, Instant};

pub fn run(args: &Events, color: bool) -> Result<(), Failure> {
    let end = end(args.time.as_deref())?;
    let mut listener = Listener::new(&args.interfaces, Subject::Events)?;
    say_listening();
    // No other listener can exist meanwhile.
    while let Some(left) = left(end).filter(|_| !terminal::has_no_reader()) {
        for event in listener.next(left.min(terminal::READER_POLL))? {
            let line = if args.json { json(&event)? } else { text(&event, color) };
            terminal::say(&(line + "\n"));
        }
    }
    Ok(())
}

/// Prints on standard error that events are recorded from now on.
pub fn say_listening() {
    eprintln!("listening; Ctrl-C ends");
}

/// The time at which a listening command ends.
pub fn end(time: Option<&str>) -> Result<Option<Instant>, Failure> {
    let time = time.map(|text| sluice_kernel::confirm::time_of("--for", text)).transpose()?;
    Ok(time.map(|time| Instant::now() + time))
}

/// The time that is left until `end`, or an hour without an end; `None` once it is over.
pub fn left(end: Option<Instant>) -> Option<Duration> {
    match end {
        None => Some(Duration::from_secs(3600)),
        Some(end) => end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()),
    }
}

pub fn json(event: &Event) -> Result<String, Failure> {
    serde_json::to_string(event).map_err(|error| Failure::system(error.to_string()))
}

/// The time of day and the interface of an event.
pub fn beginning(event: &Event) -> String {
    format!("{} {}", terminal::time_of_day(event.at_s), event.interface)
}

fn text(event: &Event, color: bool) -> String {
    const RED: &str = "31";
    const YELLOW: &str = "33";
    const GREEN: &str = "32";
    let class = |place: &Place| format!("{} class {} {}", place.direction, place.class, place.name);
    let (code, what) = match &event.what {
        EventKind::Drops { place, reason } => {
            (RED, format!("{} begins to drop: {reason}, {}", class(place), sluice_kernel::events::explained(reason)))
        }
        EventKind::Exhausted { place, bucket: bucket @ ("ceil" | "peak") } => {
            (YELLOW, format!("{} has used up its {bucket}, and waits", class(place)))
        }
        EventKind::Exhausted { place, bucket } => (RED, format!("{} is over a rate: {bucket}", class(place))),
        EventKind::Late { place, wait_ms } => {
            (YELLOW, format!("{} has been late for 100 ms: {wait_ms:.1} ms in the queue", class(place)))
        }
        EventKind::Policy { policy, generation } => (GREEN, format!("policy {policy}, generation {generation}")),
        EventKind::Managed => (GREEN, "is managed".to_owned()),
        EventKind::Unmanaged => (YELLOW, "is not managed any more".to_owned()),
        EventKind::LinkUp => (GREEN, "link up".to_owned()),
        EventKind::LinkDown => (RED, "link down".to_owned()),
        EventKind::Packet(_) => ("0", String::new()),
    };
    let begins = beginning(event);
    if color { format!("{begins} \x1b[{code}m{what}\x1b[0m") } else { format!("{begins} {what}") }
}
