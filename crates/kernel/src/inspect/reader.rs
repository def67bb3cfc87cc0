//! Repeated reading of an interface: its maps are opened once, and changes in between are noticed.

use crate::command::recover;
use crate::engine::managed;
use crate::maps::flows::FlowTable;
pub use crate::record::managed_interfaces::ManagedInterfaces;
use crate::record::{self, Phase, Record};
use crate::status::{ForwardStatus, Pinned, Status};
use crate::system::interface::Interface;
use crate::system::privilege;
use serde::Serialize;
use sluice_error::Result;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A change of an interface between two readings. `Up` and `Down` come from readers of several interfaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum News {
    /// The interface came into management.
    Up,
    /// The interface is no longer managed, or has gone.
    Down,
    /// The interface was set up anew: every counter begins at zero.
    SetUpAnew,
    /// Another policy came into force; counters go on.
    NewPolicy {
        /// Number of the configuration before.
        from: u32,
        /// Number of the configuration now.
        to: u32,
    },
    /// A change waits to be confirmed.
    Unconfirmed,
    /// A change no longer waits: it was confirmed, or taken back.
    Settled,
}

/// The result of reading an interface.
#[derive(Debug, Clone)]
pub enum Reading {
    /// The status of an interface that is up, and its changes since the reading before.
    Up(Box<Status>, Vec<News>),
    /// The interface is no longer managed, or has gone; the reader looks again each time.
    Down,
}

/// Attempts to read an interface that changes while it is read.
const ATTEMPTS: usize = 5;

/// Identity of a file: another file at the same path has another one.
type FileId = (u64, u64, i64, i64);

/// Reads an interface of the process's namespace.
pub struct Reader {
    interface: String,
    open: Option<Open>,
}

struct Open {
    pinned: Pinned,
    record: Option<FileId>,
    pins: Option<FileId>,
    /// The forwards as they were last read.
    forwards: Vec<ForwardStatus>,
}

impl Reader {
    /// A reader of an interface that is managed now. Overdue changes are taken back first.
    pub fn open(interface: &str) -> Result<Reader> {
        privilege::require_root()?;
        recover::recover_unless_held()?;
        let open = Open::of(managed::managed(interface)?)?;
        Ok(Reader { interface: interface.to_owned(), open: Some(open) })
    }

    /// Name that the interface had when it was last read.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Number of the interface, while it is up.
    pub fn ifindex(&self) -> Option<u32> {
        self.open.as_ref().map(|open| open.pinned.record().ifindex)
    }

    /// Directory of the interface's pins, while it is up.
    pub fn pins(&self) -> Option<&Path> {
        self.open.as_ref().map(|open| open.pinned.pins())
    }

    /// The interface's flow table, as it is now. None: the interface is down, or its policy keeps no flows.
    pub fn flows(&self) -> Result<Option<FlowTable>> {
        self.open.as_ref().map_or(Ok(None), |open| open.pinned.flows())
    }

    /// Reads everything. A failure because the interface went or was renamed meanwhile is no error.
    pub fn read(&mut self) -> Result<Reading> {
        let mut news = Vec::new();
        let mut read = self.attempt(&mut news);
        // tc is asked by name, and before or after the pins are read: another attempt sees a change in between whole.
        for _ in 1..ATTEMPTS {
            if read.is_ok() || self.current()?.is_none() {
                break;
            }
            read = self.attempt(&mut news);
        }
        match read {
            Ok(Some(status)) => Ok(Reading::Up(status, news)),
            Ok(None) => Ok(self.gone()),
            Err(_) if self.current()?.is_none() => Ok(self.gone()),
            Err(error) => Err(error),
        }
    }

    fn attempt(&mut self, news: &mut Vec<News>) -> Result<Option<Box<Status>>> {
        if self.look(news)? { self.status() } else { Ok(None) }
    }

    fn gone(&mut self) -> Reading {
        self.open = None;
        Reading::Down
    }

    fn status(&mut self) -> Result<Option<Box<Status>>> {
        let Some(open) = &mut self.open else { return Ok(None) };
        let mut status = Box::new(open.pinned.status()?);
        status.forwards.iter_mut().zip(&open.forwards).for_each(|(now, before)| now.rise_from(before));
        open.forwards.clone_from(&status.forwards);
        Ok(Some(status))
    }

    /// The record of the interface as it is now, under its present name; none: it is not wholly up. While its number is known and
    /// there, it is found by that alone, since its name may change between two looks.
    fn current(&self) -> Result<Option<Record>> {
        let found = match self.ifindex().filter(|ifindex| Interface::name_of(*ifindex).is_some()) {
            Some(ifindex) => Record::of_number(ifindex)?,
            None => {
                Record::find(&self.interface)?.filter(|record| Interface::is_there(&record.interface, record.ifindex))
            }
        };
        Ok(found.filter(|record| record.phase == Phase::Active))
    }

    /// Opens the interface again if its record, pins or configuration are others. Returns whether it is up.
    fn look(&mut self, news: &mut Vec<News>) -> Result<bool> {
        let Some(open) = &mut self.open else { return self.look_for_it(news) };
        let record = open.pinned.record();
        if !Interface::is_there(&record.interface, record.ifindex) {
            return self.look_for_it(news);
        }
        let (path, pins) = (record::file(&record.key), open.pinned.pins().join("live"));
        let (record_now, pins_now) = (file_id(&path), file_id(&pins));
        if record_now.is_none() || pins_now != open.pins {
            return self.look_for_it(news);
        }
        let generation = open.pinned.generation()?;
        if record_now == open.record && generation == open.pinned.read_generation() {
            return Ok(true);
        }
        let Some(record) = self.current()? else { return Ok(false) };
        let record = managed::settled(record)?;
        let Some(open) = &mut self.open else { return Ok(false) };
        let (was, is) = (open.pinned.record().unconfirmed.is_some(), record.unconfirmed.is_some());
        let from = open.pinned.read_generation();
        if from == generation {
            open.pinned.renew(record);
            open.record = record_now;
        } else {
            *open = Open::of(record)?;
            news.push(News::NewPolicy { from, to: open.pinned.read_generation() });
        }
        match (was, is) {
            (false, true) => news.push(News::Unconfirmed),
            (true, false) => news.push(News::Settled),
            _ => {}
        }
        Ok(true)
    }

    /// Opens an interface that was down, was set up anew, or has another name. Returns whether it is up.
    fn look_for_it(&mut self, news: &mut Vec<News>) -> Result<bool> {
        let before = self.open.as_ref().and_then(|open| open.pins);
        let Some(record) = self.current()? else { return Ok(false) };
        let open = Open::of(managed::settled(record)?)?;
        if before.is_none() || open.pins != before {
            news.push(News::SetUpAnew);
        }
        self.interface.clone_from(&open.pinned.record().interface);
        self.open = Some(open);
        Ok(true)
    }
}

impl Open {
    fn of(record: Record) -> Result<Open> {
        let path = record::file(&record.key);
        let id = file_id(&path);
        let pinned = Pinned::open(record)?;
        let pins = file_id(&pinned.pins().join("live"));
        Ok(Open { pinned, record: id, pins, forwards: Vec::new() })
    }
}

fn file_id(path: &Path) -> Option<FileId> {
    fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino(), meta.mtime(), meta.mtime_nsec()))
}
