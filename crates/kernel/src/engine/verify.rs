//! Verification that the kernel runs the policy that was written.

use crate::engine::{Placed, driver, is_ours};
use crate::maps::tables;
use crate::record::Record;
use crate::system::qdiscs;
use sluice_abi as abi;
use sluice_error::{Error, Result};

/// Verifies the live tables, the queues, and the configuration that schedulers have taken up since `seen`.
pub(crate) fn verify(at: &Placed<'_>, seen: &[Scheduler]) -> Result<()> {
    let buffer = tables::live_buffer(at.pins)?;
    let compiled = at.compiled(buffer)?;
    if abi::bytes_of(&*tables::live(at.pins)?) != abi::bytes_of(&*compiled.tables) {
        let interface = &at.record.interface;
        return Err(Error::system(format!("{interface}: the tables in force are not those that were written")));
    }
    queues(at.record)?;
    driver(at.record).verify(at, (buffer, &compiled), seen)
}

/// Fails unless the root qdisc is ours.
pub(crate) fn queues(record: &Record) -> Result<()> {
    if !record.engine.has_qdiscs() {
        return Ok(());
    }
    match qdiscs::root(&record.interface)? {
        Some(root) if is_ours(record, &root) => Ok(()),
        root => Err(Error::system(format!(
            "{}: the root qdisc is {}, not ours",
            record.interface,
            root.map_or("none".to_owned(), |root| format!("{} {}", root.kind, root.handle))
        ))
        .help("something else (NetworkManager, systemd-networkd, another script) sets qdiscs on it: stop that first")),
    }
}

/// A scheduler in the kernel at one moment.
#[derive(Debug)]
pub(crate) struct Scheduler {
    pub number: u32,
    pub generation: u32,
    /// Packets that the scheduler has sent. An idle scheduler has no occasion to look for a new configuration.
    pub moved: u64,
}
