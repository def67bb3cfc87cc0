//! The processes of engine `xsk`, one for each receive queue: when they were last seen, and what they have lost.

use crate::bpf::mapped::{Mapped, Written};
use crate::maps::tables;
use crate::system::clock;
use sluice_abi as abi;
use sluice_error::Result;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Time between two looks at a process.
const LOOK: Duration = Duration::from_millis(1);

/// The pinned map, whose name this is.
const MAP: &str = "workers";

/// When the processes of an interface were last seen, as others read it.
pub(crate) struct Workers(Mapped<abi::sl_wire_worker>);

impl Workers {
    /// Opens the map that is pinned in a directory.
    pub fn open(pins: &Path) -> Result<Workers> {
        Mapped::of_this_version(&tables::open(pins, MAP)?).map(Workers)
    }

    /// As [`Workers::open`]. None: the engine is another one.
    pub fn open_if_there(pins: &Path) -> Result<Option<Workers>> {
        pins.join(MAP).exists().then(|| Workers::open(pins)).transpose()
    }

    /// When one was last seen, ns. None: none ever was, or each has ended.
    pub fn last_seen_ns(&self) -> Option<u64> {
        // SAFETY: the pointers are into the mapping, which lives as long as `self`.
        let seen = self.0.values().map(|worker| unsafe { (&raw const (*worker).seen_ns).read_volatile() }).max();
        seen.filter(|seen| *seen > 0)
    }

    /// Whether one moves packets now.
    pub fn is_running(&self) -> bool {
        let now_ns = clock::monotonic().as_nanos() as u64;
        self.last_seen_ns().is_some_and(|seen| now_ns <= seen + u64::from(abi::SL_WIRE_PATIENCE_NS))
    }

    /// Waits until a process that runs has begun another turn: it has queued what it was handed before, and takes up what has become live.
    pub fn await_turn(&self) {
        let from_ns = clock::monotonic().as_nanos() as u64;
        while self.is_running() && self.last_seen_ns().is_some_and(|seen| seen <= from_ns) {
            std::thread::sleep(LOOK);
        }
    }
}

/// The map as the process itself writes it.
pub(crate) struct OwnWorker(Written<abi::sl_wire_worker>);

impl OwnWorker {
    /// Opens the map that is pinned in a directory.
    pub fn open(pins: &Path) -> Result<OwnWorker> {
        Written::of_this_version(&tables::open(pins, MAP)?).map(OwnWorker)
    }

    fn seen(&self, queue: u32) -> &AtomicU64 {
        // SAFETY: the value begins with the word, which is aligned, stored whole, and in a mapping that lives as long as `self`.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.0.value(queue as usize)).seen_ns) }
    }

    /// When this process or an earlier one was last seen, ns; 0: there was none, or it has said that it ends.
    pub fn last_seen_ns(&self, queue: u32) -> u64 {
        self.seen(queue).load(Ordering::Acquire)
    }

    /// Says that the process is there, ns of CLOCK_MONOTONIC; 0: that it ends.
    pub fn say_seen(&self, queue: u32, now_ns: u64) {
        self.seen(queue).store(now_ns, Ordering::Release);
    }

    /// Counts packets that were held and lost.
    pub fn count_lost(&self, queue: u32, pkts: u64) {
        // SAFETY: as above; this process alone changes it.
        let lost = unsafe { AtomicU64::from_ptr(&raw mut (*self.0.value(queue as usize)).lost_pkts) };
        lost.fetch_add(pkts, Ordering::Relaxed);
    }
}
