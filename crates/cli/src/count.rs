//! `sluice count`: packets and bytes by key.

pub mod key;
mod print;
mod report;

use crate::args::count::Count;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::{observation, terminal};
use report::Reporter;
use sluice_kernel::telemetry::{Observer, Request};
use std::io::IsTerminal;
use std::thread;
use std::time::{Duration, Instant};

/// Clears the screen and goes to its first line.
const CLEAR: &str = "\x1b[H\x1b[2J";
/// Time after which a signal is noticed, and leases are renewed.
const LOOK: Duration = Duration::from_millis(100);

pub fn run(args: &Count) -> Result<(), Failure> {
    let request = request(args)?;
    let interrupt = Interrupt::new()?;
    let mut observer = observation::begin(&args.observed.interfaces, &request)?;
    eprintln!("counting; Ctrl-C ends");
    let counted = count(args, &request, &mut observer, &interrupt);
    observation::tell_gap(&observer);
    counted
}

/// Prints reports until the end, a signal, or the loss of an interface.
fn count(args: &Count, request: &Request, observer: &mut Observer, interrupt: &Interrupt) -> Result<(), Failure> {
    let live = !args.once && !args.json && !args.csv && std::io::stdout().is_terminal();
    let mut reporter = Reporter::new(args.observed.interfaces.len());
    let mut due = Instant::now();
    let mut titles = true;
    loop {
        due += args.interval;
        while let Some(left) = due.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            if interrupt.is_asked() || terminal::has_no_reader() {
                return Ok(());
            }
            thread::sleep(left.min(LOOK));
            observer.renew()?;
        }
        if live {
            terminal::say(CLEAR);
        }
        for (number, interface) in args.observed.interfaces.iter().enumerate() {
            let report = reporter.next(observer, number, interface, request, args.top as usize);
            let bytes = match (args.json, args.csv) {
                (true, _) => print::json(&report)?,
                (_, true) => print::csv(&report, std::mem::take(&mut titles))?,
                _ => print::text(&report, request).into_bytes(),
            };
            if !terminal::write(&bytes) {
                return Ok(());
            }
        }
        if let Some(gone) = observer.gone() {
            return Err(Failure::system(format!("{gone}; start the command again to go on")));
        }
        if args.once || interrupt.is_asked() {
            return Ok(());
        }
    }
}

fn request(args: &Count) -> Result<Request, Failure> {
    Ok(Request { by: key::parse("--by", &args.by)?, keys: args.keys, sizes: args.sizes, ..args.observed.request()? })
}
