//! `sluice watch`: applies a policy file whenever it changes.

use crate::args::Watch as Args;
use crate::assignment::{choose, named};
use crate::change::show_briefly;
use crate::check::print_remarks;
use crate::failure::Failure;
use sluice_kernel::Request;
use sluice_kernel::watch::{Event, Watch};
use sluice_policy::Context;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Interval at which an unconfirmed change is checked again.
const CONFIRM_POLL: Duration = Duration::from_secs(1);

pub fn run(args: &Args, color: bool) -> Result<(), Failure> {
    sluice_kernel::require_root()?;
    let (interface, file) = named("watch", &args.words)?;
    let mut watch = Watch::new(Path::new(file))?;
    let file = std::path::absolute(file).map_err(|error| Failure::system(error.to_string()))?;
    let watched = Watched { interface: interface.map(str::to_owned), file };
    if let Some(interface) = interface {
        sluice_kernel::confirm::left(interface)?;
    }
    outln!("{}{} is watched", interface.map_or(String::new(), |name| format!("{name}: ")), watched.file.display());
    let mut waits = watched.take(false, color);
    loop {
        match watch.next(waits.then_some(CONFIRM_POLL))? {
            Event::Stopped => return Ok(()),
            Event::Nothing => waits = watched.take(waits, color),
            Event::Changed => waits = watched.take(false, color),
        }
    }
}

struct Watched {
    /// The interface; `None` stands for those that the file names.
    interface: Option<String>,
    file: PathBuf,
}

impl Watched {
    /// Applies the file as it is now. Returns whether an unconfirmed change prevents this, since applying would confirm it.
    fn take(&self, waits: bool, color: bool) -> bool {
        self.try_take(waits, color).unwrap_or_else(|failure| {
            eprint!("{}", failure.render(color));
            false
        })
    }

    fn try_take(&self, waits: bool, color: bool) -> Result<bool, Failure> {
        let requests = self.requests()?;
        for Request { interface, .. } in &requests {
            if let Some(left) = sluice_kernel::confirm::left(interface)? {
                if !waits {
                    let seconds = left.as_secs();
                    outln!(
                        "{interface}: another change waits {seconds} s to be confirmed; the file is applied after that"
                    );
                }
                return Ok(true);
            }
        }
        apply(requests, color)?;
        Ok(false)
    }

    fn requests(&self) -> Result<Vec<Request>, Failure> {
        let assignments = choose(&self.file.to_string_lossy(), self.interface.as_deref(), &Context::default())?;
        Ok(assignments.into_iter().map(Request::from).collect())
    }
}

/// Applies the policies that differ from those in force.
fn apply(requests: Vec<Request>, color: bool) -> Result<(), Failure> {
    let mut differ = Vec::new();
    for (request, preview) in requests.iter().zip(sluice_kernel::preview(&requests)?) {
        if preview.difference.is_empty() {
            outln!("{}: nothing changes", request.interface);
        } else {
            differ.push(request.clone());
        }
    }
    for done in sluice_kernel::apply(&differ)? {
        print_remarks(&done.remarks, color);
        outln!("{} has a new policy: generation {}", done.record.interface, done.record.generation);
        if let Some(difference) = &done.difference {
            show_briefly(difference, color);
        }
        done.notes.iter().for_each(|note| outln!("  note: {note}"));
    }
    Ok(())
}
