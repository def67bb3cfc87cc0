//! One interface of a wire, as the process has it before its workers begin, and while it watches them.

use crate::engine::xsk_workers;
use crate::maps::tables;
use crate::maps::workers::Workers;
use crate::record::Record;
use crate::system::bpffs;
use crate::system::interface::Interface;
use sluice_abi as abi;
use sluice_error::{Error, Result};
use std::path::PathBuf;

/// One interface of a wire.
pub struct End {
    pub(super) record: Record,
    pub(super) pins: PathBuf,
    seen: Workers,
}

impl End {
    /// The interface of this name.
    ///
    /// # Errors
    ///
    /// It is no side of a wire.
    pub fn find(interface: &str) -> Result<End> {
        let record = Record::find(interface)?.filter(|record| record.partner.is_some());
        let record = record.ok_or_else(|| Error::input(format!("{interface} is no side of a wire")))?;
        let pins = record.pins(&bpffs::root()?);
        Ok(End { seen: Workers::open(&pins)?, record, pins })
    }

    /// Name of the interface.
    pub fn interface(&self) -> &str {
        &self.record.interface
    }

    /// Number of workers.
    pub fn workers(&self) -> u32 {
        self.record.workers()
    }

    /// Makes the link that several workers share free of what a former process was doing there. Its buckets stay.
    ///
    /// # Errors
    ///
    /// The maps are of another version.
    pub fn begin_sharing(&self) -> Result<()> {
        if self.workers() == 1 {
            return Ok(());
        }
        let link = tables::open(&self.pins, "shared_link")?;
        let words: Box<abi::sl_shared_link> = tables::read(&link, 0)?;
        let mut free: Box<abi::sl_shared_link> = abi::boxed_zeroed();
        (free.bucket, free.ceiling) = (words.bucket, words.ceiling);
        tables::write(&link, 0, &*free)?;
        let instances = tables::open(&self.pins, "shared_instance")?;
        let mut instance: Box<abi::sl_shared_instance> = abi::boxed_zeroed();
        (0..self.workers()).try_for_each(|number| {
            instance.number = number;
            tables::write(&instances, number, &*instance)
        })
    }

    /// Whether the interface is managed as this side of a wire still: `sluice down` ends that.
    pub fn is_managed(&self) -> bool {
        self.pins.join("sockets").exists()
    }

    /// Whether the interface is there, under whatever name.
    pub fn is_there(&self) -> bool {
        Interface::name_of(self.record.ifindex).is_some()
    }

    /// The receive queues whose workers were not seen for so long that packets pass them by.
    pub fn away(&self) -> Vec<u32> {
        self.seen.away(self.workers())
    }

    /// Receive queues of the interface now, if they are not as many as workers. None also if the kernel does not tell, as of an interface that has gone.
    pub fn other_number(&self) -> Option<u32> {
        let found = Interface::find(&Interface::name_of(self.record.ifindex)?).ok()?;
        xsk_workers::other_number(&self.record, &found).ok().flatten()
    }
}
