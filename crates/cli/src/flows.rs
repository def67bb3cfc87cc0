//! `sluice flows`: the users of the link.

mod print;
pub mod processes;
mod resolver;
pub mod services;
pub mod view;

use crate::args::observe::Flows as Args;
use crate::failure::Failure;
use crate::terminal;
use crate::top;
use sluice_observe::Source;
use std::thread;
use std::time::{Duration, Instant};
use view::{FlowReport, View};

/// Time that a table waits for host names.
const NAME_TIMEOUT: Duration = Duration::from_secs(2);

pub fn run(args: &Args, color: bool) -> Result<(), Failure> {
    let source = Source::new(&args.interfaces)?;
    if source.is_empty() {
        return Err(Source::nothing().into());
    }
    if args.once || args.json || args.csv {
        return print(args, source);
    }
    let options = top::FlowOptions { by: args.by.by(), top: args.top as usize, resolve: args.resolve, first: true };
    top::live(source, args.interval, options, color)
}

fn print(args: &Args, mut source: Source) -> Result<(), Failure> {
    let mut view = View::new();
    view.resolve(args.resolve);
    let sample = source.sample()?;
    view.read(&source, &sample, args.by.by(), args.top as usize)?;
    let mut due = Instant::now();
    let mut titles = true;
    loop {
        due += args.interval;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let sample = source.sample()?;
        let mut report = view.read(&source, &sample, args.by.by(), args.top as usize)?;
        if args.once {
            view.refresh_names(&mut report, NAME_TIMEOUT);
        }
        let bytes = bytes(args, &report, titles)?;
        titles = false;
        if !terminal::write(&bytes) || args.once || terminal::has_no_reader() {
            return Ok(());
        }
    }
}

fn bytes(args: &Args, report: &FlowReport, titles: bool) -> Result<Vec<u8>, Failure> {
    if args.json {
        let json = serde_json::to_string(report).map_err(|error| Failure::system(error.to_string()))?;
        return Ok((json + "\n").into_bytes());
    }
    if args.csv {
        return print::csv(report, titles);
    }
    Ok(print::text(report).into_bytes())
}
