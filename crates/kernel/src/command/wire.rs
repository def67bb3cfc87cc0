//! Two interfaces as a wire, for the process that moves packets between them: its claim to them, and the maps of both sides.

mod end;
mod side;

pub use end::End;
pub use side::{FlatQueue, Queue, SharedLink, Side, Terms, TreeQueue};

use crate::command::change::Done;
use crate::command::down::down_side;
use crate::command::up::{UpRequest, up};
use crate::engine::xsk_process::{WireProcess, claim_path, is_at};
use crate::engine::{programs, xsk_checks, xsk_workers};
use crate::record::policy::{Rates, resolve};
use crate::record::{Engine, Phase, Record};
use crate::system::interface::Interface;
use crate::system::{paths, private};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use sluice_error::{Doing, Error, Result};
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

/// The lock of the one process that moves packets between two interfaces. It is free again when the process ends, however it does.
pub struct Claim {
    /// Numbers of the interfaces: their names may change.
    numbers: [u32; 2],
    path: PathBuf,
    _file: Flock<File>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        // A lock file that is left behind does no harm.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Attempts to lock, and the time between them: a process that was killed keeps its lock until the kernel has taken it apart.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// The error of interfaces that another process has.
fn is_claimed(interfaces: [&str; 2], by: Option<WireProcess>) -> Error {
    let what = format!("another `sluice wire {} {}` runs", interfaces[0], interfaces[1]);
    let Some(process) = by else { return Error::input(what).help("stop it first") };
    match process.is_stopped {
        false => {
            Error::input(format!("{what} (PID {})", process.pid)).help(format!("stop it first: kill {}", process.pid))
        }
        true => Error::input(format!("{what}, and is stopped (PID {})", process.pid)).help(process.cure(interfaces)),
    }
}

/// Whether a side of a wire has this number of workers, if one is asked for, and so many receive queues.
fn has_workers(record: &Record, wanted: Option<u32>) -> bool {
    let has_queues = Interface::name_of(record.ifindex).is_some_and(|name| {
        Interface::find(&name).is_ok_and(|found| matches!(xsk_workers::other_number(record, &found), Ok(None)))
    });
    has_queues && wanted.is_none_or(|wanted| wanted == record.workers())
}

/// Checks that a side of a wire can be brought up as asked for.
fn check(request: &UpRequest) -> Result<()> {
    let rates = Rates { departures: request.rate, arrivals: request.ingress_rate };
    let policy = resolve(&request.policy, rates, Engine::Xsk)?;
    let partner = request.partner.as_deref().unwrap_or_default();
    xsk_checks::check_new(&Interface::find(&request.interface)?, partner, &policy, request.workers).map(drop)
}

impl Claim {
    /// Takes the lock of these two interfaces.
    ///
    /// # Errors
    ///
    /// Another process has it, or there is no such interface.
    pub fn take(interfaces: [&str; 2]) -> Result<Claim> {
        let [first, second] = interfaces.map(Interface::find);
        let numbers = [first?.ifindex, second?.ifindex];
        private::directory(paths::run())?;
        let path = claim_path(numbers)?;
        let mut left = TRIES;
        loop {
            let file = private::file(&path).doing(|| path.display().to_string())?;
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(file) if !is_at(&path, &file) && left > 0 => left -= 1,
                Ok(file) => return Ok(Claim { numbers, path, _file: file }),
                Err((_, Errno::EWOULDBLOCK)) if left > 0 => {
                    left -= 1;
                    std::thread::sleep(BETWEEN_TRIES);
                }
                Err((_, Errno::EWOULDBLOCK)) => {
                    return Err(is_claimed(interfaces, WireProcess::find(numbers)?));
                }
                Err((_, error)) => return Err(error).doing(|| format!("locking {}", path.display())),
            }
        }
    }

    /// The records of both sides, as far as they are sides of a wire.
    fn records(&self) -> Result<[Option<Record>; 2]> {
        let [first, second] = self.numbers.map(Record::of_number);
        Ok([first?, second?].map(|record| record.filter(|record| record.partner.is_some())))
    }

    /// Whether the side of this place is wholly up, and leads to the other one.
    fn is_made(&self, records: &[Option<Record>; 2], place: usize) -> bool {
        let record = records[place].as_ref().filter(|record| record.phase == Phase::Active);
        let partner = record.and_then(|record| record.partner.as_ref());
        partner.is_some_and(|partner| partner.ifindex == self.numbers[1 - place])
    }

    /// Brings up both sides of a wire, or takes over those that a former process has left. None: they were there.
    ///
    /// # Errors
    ///
    /// An interface is managed otherwise, or cannot be a side of a wire.
    pub fn make(&self, requests: &[UpRequest; 2]) -> Result<Option<Vec<Done>>> {
        let records = self.records()?;
        let made = [0, 1].map(|place| self.is_made(&records, place));
        let is_current =
            |record: &Record| programs::runs_own_programs(record) && has_workers(record, requests[0].workers);
        if made == [true, true] && records.iter().flatten().all(is_current) {
            return Ok(None);
        }
        // Sides that are made anew pass packets until then, so they are taken down only if `up` can bring them up.
        if records.iter().any(Option::is_some) {
            requests.iter().try_for_each(check)?;
        }
        // A side of a wire to elsewhere stays, and `up` refuses it.
        let is_own = |place: usize| {
            let partner = records[place].as_ref().and_then(|record| record.partner.as_ref());
            partner.is_none_or(|partner| partner.ifindex == self.numbers[1 - place])
        };
        let [first, second] = self.numbers.map(Record::of_number);
        let is_free =
            |record: Option<Record>, place: usize| record.is_none() || records[place].is_some() && is_own(place);
        if is_free(first?, 0) && is_free(second?, 1) {
            // Those of another version, half of a wire, and what an interrupted start has left.
            self.unmake()?;
        }
        up(requests).map(Some)
    }

    /// Fails unless both interfaces are sides of a wire that was made before, by this version, with so many workers.
    ///
    /// # Errors
    ///
    /// One of them is not.
    pub fn require(&self, interfaces: [&str; 2], workers: Option<u32>) -> Result<()> {
        let records = self.records()?;
        for (place, name) in interfaces.iter().enumerate() {
            let is_current = records[place].as_ref().is_some_and(programs::runs_own_programs);
            if !is_current || !self.is_made(&records, place) {
                return Err(Error::input(format!("{name} is not part of a wire to {}", interfaces[1 - place]))
                    .help("name a policy: sluice wire A B --policy P --rate R"));
            }
            if let Some(record) = records[place].as_ref().filter(|record| !has_workers(record, workers)) {
                let what = match workers.filter(|wanted| *wanted != record.workers()) {
                    Some(wanted) => format!("the wire was made with {} workers, not {wanted}", record.workers()),
                    None => format!(
                        "the wire was made with {} workers, and {name} has a different number of receive queues now",
                        record.workers()
                    ),
                };
                return Err(Error::input(what).help(format!(
                    "ethtool -L {name} combined {0} (or rx {0} tx {0}), or name a policy, so that the wire is made anew: sluice wire A B --policy P --rate R",
                    record.workers()
                )));
            }
        }
        Ok(())
    }

    /// Gives both sides back, as far as they are sides of this wire still.
    ///
    /// # Errors
    ///
    /// A part cannot be removed.
    pub fn unmake(&self) -> Result<()> {
        let [first, second] = self.numbers;
        down_side([first, second])?;
        down_side([second, first])
    }
}
