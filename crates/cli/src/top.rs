//! `sluice top`: live rates of schedulers.

mod app;
mod bars;
mod cells;
mod draw;
#[cfg(test)]
mod fixture;
mod once;
mod palette;
mod screen;
#[cfg(test)]
mod tests;

use crate::args::observe::Top as Args;
use crate::failure::Failure;
use crate::terminal;
pub use app::FlowOptions;

use crate::flows::view::View;
use app::{Action, App, Pane, Sort};
use screen::Screen;
use sluice_observe::{Rates, Sample, Source};
use std::thread;
use std::time::{Duration, Instant};

pub fn run(args: &Args, color: bool) -> Result<(), Failure> {
    let mut source = Source::new(&args.interfaces)?;
    if source.is_empty() {
        return Err(Source::nothing().into());
    }
    if args.once || args.json {
        return print(args, &mut source);
    }
    live(source, args.interval, FlowOptions::default(), color)
}

/// Prints the rates of each interval.
fn print(args: &Args, source: &mut Source) -> Result<(), Failure> {
    let mut before = source.sample()?;
    let mut due = Instant::now();
    loop {
        due += args.interval;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let now = source.sample()?;
        let rates = Rates::between(&before, &now);
        let text = if args.json {
            serde_json::to_string(&rates).map_err(|error| Failure::system(error.to_string()))? + "\n"
        } else {
            once::text(&rates)
        };
        if !terminal::write(text.as_bytes()) || args.once {
            return Ok(());
        }
        before = now;
    }
}

/// Runs the dashboard until the user ends it.
pub fn live(mut source: Source, interval: Duration, options: FlowOptions, color: bool) -> Result<(), Failure> {
    let mut app = App::new(color, interval.as_secs_f64(), jiff::tz::TimeZone::system());
    app.flow_options = options;
    if options.first {
        app.pane = Pane::Flows;
    }
    let mut before = source.sample()?;
    app.take(Rates::between(&before, &before));
    if app.pane == Pane::Classes && app.has_trees_alone() {
        (app.pane, app.sort) = (Pane::Subscribers, Sort::Rate);
    }
    let mut flows = View::new();
    let mut screen = Screen::take()?;
    // The first figures come soon; those of a whole interval follow.
    let mut due = Instant::now() + interval.min(Duration::from_millis(300));
    loop {
        if app.pane == Pane::Flows {
            read_flows(&source, &before, &mut flows, &mut app);
        }
        // Flows are read also while another pane is shown, so that a user who turns to them sees them at once.
        if screen.until(due, &mut app)? == Action::Quit {
            return Ok(());
        }
        if Instant::now() < due {
            continue;
        }
        // Intervals missed during a pause of the whole machine are not made up for.
        due = (due + interval).max(Instant::now());
        read_rates(&mut source, &mut before, &mut app);
    }
}

fn read_rates(source: &mut Source, before: &mut Sample, app: &mut App) {
    match source.sample() {
        Ok(now) => {
            app.take(Rates::between(before, &now));
            *before = now;
        }
        Err(error) => app.trouble = Some(error.to_string()),
    }
}

fn read_flows(source: &Source, sample: &Sample, flows: &mut View, app: &mut App) {
    let options = app.flow_options;
    flows.resolve(options.resolve);
    match flows.read(source, sample, options.by, options.top) {
        Ok(shown) => app.take_flows(shown),
        Err(error) => app.trouble = Some(error.to_string()),
    }
}
