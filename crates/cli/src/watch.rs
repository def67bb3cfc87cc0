//! `sluice watch`: a policy file that is applied whenever it changes.

use crate::args::Watch as Args;
use crate::change::show_briefly;
use crate::check::print_remarks;
use crate::failure::Failure;
use sluice_kernel::history::What;
use sluice_kernel::watch::{Event, Watch};
use sluice_kernel::{RateWish, Request};
use std::time::Duration;

/// How often it is looked whether a change that waits to be confirmed still does.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

pub fn run(args: &Args, color: bool) -> Result<(), Failure> {
    sluice_kernel::require_root()?;
    let mut watch = Watch::new(&args.file)?;
    sluice_kernel::confirm::left(&args.interface)?;
    println!("{}: {} is watched", args.interface, args.file.display());
    let mut waits = take(args, false, color);
    loop {
        match watch.next(waits.then_some(LOOK_AGAIN))? {
            Event::Stopped => return Ok(()),
            Event::Nothing => waits = take(args, waits, color),
            Event::Changed => waits = take(args, false, color),
        }
    }
}

/// Applies the file as it is now. Whether it waits for another change to be confirmed, which this would do for it.
fn take(args: &Args, waits: bool, color: bool) -> bool {
    match sluice_kernel::confirm::left(&args.interface) {
        Ok(Some(left)) => {
            if !waits {
                let (name, seconds) = (&args.interface, left.as_secs());
                println!("{name}: another change waits {seconds} s to be confirmed; the file is applied after that");
            }
            return true;
        }
        Ok(None) => {}
        Err(error) => return unchanged(&error.into(), color),
    }
    if let Err(failure) = apply(args, color) {
        return unchanged(&failure, color);
    }
    false
}

fn unchanged(failure: &Failure, color: bool) -> bool {
    eprint!("{}", failure.render(color));
    false
}

fn apply(args: &Args, color: bool) -> Result<(), Failure> {
    let path = std::path::absolute(&args.file).map_err(|error| Failure::system(error.to_string()))?;
    let (source, policy) = sluice_policy::load(&path.to_string_lossy())?;
    let request = Request {
        interface: args.interface.clone(),
        policy,
        source: source.name().to_owned(),
        rate: RateWish::AsBefore,
        confirm: None,
        message: None,
        what: What::Apply,
        repeats: None,
    };
    if !sluice_kernel::differs(&request)? {
        println!("{}: nothing changes", args.interface);
        return Ok(());
    }
    let done = sluice_kernel::apply(&request)?;
    print_remarks(&done.remarks, color);
    println!("{} has a new policy: generation {}", args.interface, done.record.generation);
    if let Some(difference) = &done.difference {
        show_briefly(difference, color);
    }
    done.notes.iter().for_each(|note| println!("  note: {note}"));
    Ok(())
}
