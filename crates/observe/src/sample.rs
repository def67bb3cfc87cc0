//! The counters of interfaces at one moment, and the reader of them.

use nix::time::{ClockId, clock_gettime};
use serde::Serialize;
use sluice_kernel::reader::{ManagedInterfaces, News, Reader, Reading};
use sluice_kernel::status::Status;
use sluice_kernel::{Error, Result};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The counters of all watched interfaces at one moment.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Sample {
    /// Time of the sample, CLOCK_MONOTONIC, ns: differences are exact, even if the clock is set.
    pub at_ns: u64,
    /// Time of the sample, milliseconds since 1970.
    pub at_ms: u64,
    /// Interfaces that are up, in the order in which they are read.
    pub interfaces: Vec<Status>,
    /// Events of interfaces since the sample before.
    pub events: Vec<Event>,
}

/// An event of an interface between two samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Name of the interface.
    pub interface: String,
    /// Kind of the event.
    #[serde(flatten)]
    pub what: News,
}

/// The reader of samples, which keeps maps open between two of them.
pub struct Source {
    readers: Vec<Watched>,
    /// The managed interfaces, if those that come into management later are watched too.
    all: Option<ManagedInterfaces>,
}

struct Watched {
    reader: Reader,
    up: bool,
}

impl Source {
    /// A source of these interfaces, which must be managed now. Without names: of all in this network namespace, those too that come
    /// later; there may be none yet.
    pub fn new(names: &[String]) -> Result<Source> {
        sluice_kernel::require_root()?;
        let mut all = names.is_empty().then(ManagedInterfaces::default);
        let names = match &mut all {
            Some(managed) => managed.here()?.into_iter().map(|(name, _)| name).collect(),
            None => without_repeats(names),
        };
        let readers: Result<Vec<Watched>> =
            names.iter().map(|name| Ok(Watched { reader: Reader::open(name)?, up: true })).collect();
        Ok(Source { readers: readers?, all })
    }

    /// Whether no watched interface is up.
    pub fn is_empty(&self) -> bool {
        !self.readers.iter().any(|watched| watched.up)
    }

    /// The error of a caller that does not wait for an interface to be managed.
    pub fn nothing() -> Error {
        Error::input("no interface is managed here").help("`sluice up IFACE --policy P` begins")
    }

    /// Takes a sample now.
    pub fn sample(&mut self) -> Result<Sample> {
        let mut sample = Sample { at_ns: now_ns(), ..Sample::default() };
        for watched in &mut self.readers {
            watched.read(&mut sample)?;
        }
        if self.all.is_some() {
            self.readers.retain(|watched| watched.up);
            // New interfaces are read after the known ones, of which one may have another name now.
            for mut watched in self.more()? {
                sample.events.push(Event { interface: watched.reader.interface().to_owned(), what: News::Up });
                watched.read(&mut sample)?;
                self.readers.push(watched);
            }
            self.readers.sort_by(|one, other| one.reader.interface().cmp(other.reader.interface()));
            sample.interfaces.sort_by(|one, other| one.interface.cmp(&other.interface));
        }
        sample.at_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        Ok(sample)
    }

    /// The readers of interfaces that are up, for their other maps.
    pub fn readers(&self) -> impl Iterator<Item = &Reader> {
        self.readers.iter().filter(|watched| watched.up).map(|watched| &watched.reader)
    }

    /// The readers of interfaces that have come into management.
    fn more(&mut self) -> Result<Vec<Watched>> {
        let here = self.all.as_mut().map_or_else(|| Ok(Vec::new()), ManagedInterfaces::here)?;
        let known = |ifindex: u32| self.readers.iter().any(|watched| watched.reader.ifindex() == Some(ifindex));
        // An interface may go again before it is opened.
        let open = |name: String| Some(Watched { reader: Reader::open(&name).ok()?, up: true });
        Ok(here.into_iter().filter(|(_, ifindex)| !known(*ifindex)).filter_map(|(name, _)| open(name)).collect())
    }
}

impl Watched {
    fn read(&mut self, sample: &mut Sample) -> Result<()> {
        let before = self.reader.interface().to_owned();
        match self.reader.read()? {
            Reading::Up(status, news) => {
                self.up = true;
                let interface = self.reader.interface();
                sample.events.extend(news.into_iter().map(|one| Event { interface: interface.to_owned(), what: one }));
                sample.interfaces.push(*status);
            }
            Reading::Down if self.up => {
                self.up = false;
                sample.events.push(Event { interface: before, what: News::Down });
            }
            Reading::Down => {}
        }
        Ok(())
    }
}

fn without_repeats(names: &[String]) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for name in names {
        if !kept.contains(name) {
            kept.push(name.clone());
        }
    }
    kept
}

/// CLOCK_MONOTONIC, ns: the clock of BPF programs.
pub fn now_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from).as_nanos() as u64
}
