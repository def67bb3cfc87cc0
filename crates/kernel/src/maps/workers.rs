//! The workers of a wire (engine `xsk`), one for each receive queue: when they were last seen, what they have lost, and the ports that they send by.

use crate::bpf::mapped::{Mapped, Written};
use crate::maps::tables;
use crate::system::clock;
use sluice_abi as abi;
use sluice_error::Result;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Time between two looks at a worker.
const LOOK: Duration = Duration::from_millis(1);

/// The pinned map, whose name this is.
const MAP: &str = "workers";

/// The use of the port that a worker sends by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PortUse {
    /// The time in which packets waited since the port had enough under way, ns.
    pub wait_ns: u64,
    /// The bytes that it may have under way; 0: a number of packets was asked for.
    pub limit_bytes: u64,
}

/// The workers of the arrivals of an interface, as others read them.
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

    /// When each was last seen, ns, by receive queue; 0: there is none, or it has ended.
    fn seen_ns(&self) -> impl Iterator<Item = u64> + '_ {
        // SAFETY: the pointers are into the mapping, which lives as long as `self`.
        self.0.values().map(|worker| unsafe { (&raw const (*worker).seen_ns).read_volatile() })
    }

    /// Whether one moves packets now.
    pub fn is_running(&self) -> bool {
        let now_ns = now_ns();
        self.seen_ns().any(|seen_ns| runs(seen_ns, now_ns))
    }

    /// The receive queues, of so many, whose workers do not move packets. A worker that was not seen gets a second look: one that
    /// has begun just now, or was kept from its processor for once, moves packets again by then.
    pub fn away(&self, workers: u32) -> Vec<u32> {
        let away = || {
            let now_ns = now_ns();
            let each = (0..workers).zip(self.seen_ns());
            each.filter(|(_, seen_ns)| !runs(*seen_ns, now_ns)).collect::<Vec<_>>()
        };
        let mut found = away();
        if found.iter().any(|(_, seen_ns)| *seen_ns > 0) {
            std::thread::sleep(Duration::from_nanos(abi::SL_WIRE_PATIENCE_NS.into()));
            let still = away();
            found.retain(|before| still.contains(before));
        }
        found.into_iter().map(|(queue, _)| queue).collect()
    }

    /// Packets that each of so many workers has held and lost, by receive queue.
    pub fn lost_pkts(&self, workers: u32) -> Vec<u64> {
        // SAFETY: the pointers are into the mapping, which lives as long as `self`.
        let lost = |worker: *const abi::sl_wire_worker| unsafe { (&raw const (*worker).lost_pkts).read_volatile() };
        self.0.values().take(workers as usize).map(lost).collect()
    }

    /// The port that each of so many workers sends by, by receive queue.
    pub fn ports(&self, workers: u32) -> Vec<PortUse> {
        let of = |worker: *const abi::sl_wire_worker| {
            // SAFETY: the pointers are into the mapping, which lives as long as `self`.
            let (wait_ns, limit_bytes) = unsafe {
                (
                    (&raw const (*worker).port_wait_ns).read_volatile(),
                    (&raw const (*worker).port_limit_bytes).read_volatile(),
                )
            };
            PortUse { wait_ns, limit_bytes }
        };
        self.0.values().take(workers as usize).map(of).collect()
    }

    /// Waits until each worker that runs has begun another turn: it has queued what it was handed before, and takes up what has become live.
    pub fn await_turn(&self) {
        let from_ns = now_ns();
        loop {
            let now_ns = now_ns();
            if !self.seen_ns().any(|seen_ns| seen_ns <= from_ns && runs(seen_ns, now_ns)) {
                return;
            }
            std::thread::sleep(LOOK);
        }
    }
}

fn now_ns() -> u64 {
    clock::monotonic().as_nanos() as u64
}

/// Whether a worker that was last seen at a time moves packets now.
fn runs(seen_ns: u64, now_ns: u64) -> bool {
    seen_ns > 0 && now_ns <= seen_ns + u64::from(abi::SL_WIRE_PATIENCE_NS)
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

    /// When the worker of a queue, or that of an earlier process, was last seen, ns; 0: there was none, or it has said that it ends.
    pub fn last_seen_ns(&self, queue: u32) -> u64 {
        self.seen(queue).load(Ordering::Acquire)
    }

    /// Says that the worker of a queue is there, ns of CLOCK_MONOTONIC; 0: that it ends.
    pub fn say_seen(&self, queue: u32, now_ns: u64) {
        self.seen(queue).store(now_ns, Ordering::Release);
    }

    /// Counts packets that were held and lost.
    pub fn count_lost(&self, queue: u32, pkts: u64) {
        // SAFETY: as above; the worker of the queue alone changes it.
        let lost = unsafe { AtomicU64::from_ptr(&raw mut (*self.0.value(queue as usize)).lost_pkts) };
        lost.fetch_add(pkts, Ordering::Relaxed);
    }

    /// Counts time in which packets waited for the port.
    pub fn count_port_wait(&self, queue: u32, wait_ns: u64) {
        // SAFETY: as above.
        let waited = unsafe { AtomicU64::from_ptr(&raw mut (*self.0.value(queue as usize)).port_wait_ns) };
        waited.fetch_add(wait_ns, Ordering::Relaxed);
    }

    /// Says how many bytes the port may have under way.
    pub fn say_port_limit(&self, queue: u32, bytes: u64) {
        // SAFETY: as above.
        let limit = unsafe { AtomicU64::from_ptr(&raw mut (*self.0.value(queue as usize)).port_limit_bytes) };
        limit.store(bytes, Ordering::Relaxed);
    }
}
