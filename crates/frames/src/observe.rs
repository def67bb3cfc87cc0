//! Observers of packets, as published work on XDP telemetry has them.

use crate::{device_number, load, open};
use libbpf_rs::{MapCore, MapFlags, Object, RingBufferBuilder};
use serde::Serialize;
use sluice_error::{Doing, Error, Result};
use std::cell::Cell;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Time between two looks at whether the observer is to end, and between two readings of counters.
const LOOK: Duration = Duration::from_millis(50);

/// The way in which packets are observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Not at all: the XDP program drops them.
    Drop,
    /// Counted by protocol in a map, which is read once a second.
    Counters,
    /// A record of 22 bytes for each, in one ring for all CPUs.
    Ring {
        /// Bytes of the ring: a power of two.
        bytes: u32,
        /// Time for which the reader sleeps between two looks at the ring; zero: it never sleeps.
        wait: Duration,
        /// Whether the callback asks for the time, reckons with floats and prints each record.
        works: bool,
    },
}

/// The packets that an observer saw.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Observed {
    /// Packets that the program has seen.
    pub seen: u64,
    /// Packets that came to userspace, as records or as counts.
    pub delivered: u64,
}

/// Observes the packets that arrive at a device until `ended`. `ready` is called when the program is attached.
///
/// # Errors
///
/// A device that is not there or has an XDP program already, a ring that cannot be, a kernel that refuses the program.
pub fn observe(device: &str, way: Way, ready: impl FnOnce(), ended: impl Fn() -> bool) -> Result<Observed> {
    let number = device_number(device)? as i32;
    let name = match way {
        Way::Drop => "frames_drop",
        Way::Counters => "frames_to_counters",
        Way::Ring { .. } => "frames_to_ring",
    };
    let mut open = open(name)?;
    if let Way::Ring { bytes, .. } = way {
        let mut ring = open.maps_mut().find(|map| map.name() == "frames_ring");
        let ring = ring.as_mut().ok_or_else(|| Error::system("the BPF object frames has no ring"))?;
        ring.set_max_entries(bytes).doing(|| format!("a ring of {bytes} bytes"))?;
    }
    let object = load(open, name)?;
    let program = object.progs_mut().find(|own| own.name() == name);
    let program = program.ok_or_else(|| Error::system(format!("the BPF object frames has no program {name}")))?;
    let _link = program.attach_xdp(number).map_err(|error| {
        Error::unsupported(format!("{device} takes no XDP program: {error}"))
            .help("ip link show tells whether it has one")
    })?;
    ready();
    match way {
        Way::Drop => {
            await_end(&ended);
            Ok(Observed::default())
        }
        Way::Counters => {
            let mut read = Observed::default();
            let mut last = false;
            while !last {
                last = ended();
                let packets = sum(&object, "frames_counters", 256)?;
                read = Observed { seen: packets, delivered: packets };
                if !last {
                    sleep_until(&ended, Duration::from_secs(1));
                }
            }
            Ok(read)
        }
        Way::Ring { wait, works, .. } => {
            let delivered = read_ring(&object, wait, works, &ended)?;
            Ok(Observed { seen: sum(&object, "frames_seen", 1)?, delivered })
        }
    }
}

/// Takes records until the end, and the rest of the ring then. Returns how many there were.
fn read_ring(object: &Object, wait: Duration, works: bool, ended: &impl Fn() -> bool) -> Result<u64> {
    let ring = object.maps().find(|map| map.name() == "frames_ring");
    let ring = ring.ok_or_else(|| Error::system("the BPF object frames has no ring"))?;
    let (delivered, mean_ms, begun) = (Cell::new(0u64), Cell::new(0f64), Instant::now());
    let take = |record: &[u8]| {
        delivered.set(delivered.get() + 1);
        if works {
            // The work of published callbacks for each record.
            let now_ms = begun.elapsed().as_secs_f64() * 1e3;
            mean_ms.set(mean_ms.get() * 0.99 + now_ms * 0.01);
            let mut line = String::new();
            let _ = write!(line, "{now_ms:.3} {:.3} {:?}", mean_ms.get(), &record[8..]);
            std::hint::black_box(&line);
        }
        0
    };
    let mut builder = RingBufferBuilder::new();
    builder.add(&ring, take).doing(|| "opening the ring".to_owned())?;
    let buffer = builder.build().doing(|| "opening the ring".to_owned())?;
    let mut last = false;
    while !last {
        last = ended();
        buffer.consume().doing(|| "reading the ring".to_owned())?;
        if !wait.is_zero() && !last {
            std::thread::sleep(wait);
        }
    }
    Ok(delivered.get())
}

fn await_end(ended: &impl Fn() -> bool) {
    while !ended() {
        std::thread::sleep(LOOK);
    }
}

fn sleep_until(ended: &impl Fn() -> bool, length: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < length && !ended() {
        std::thread::sleep(LOOK);
    }
}

/// The packets of a map of counts, over all CPUs and keys.
fn sum(object: &Object, name: &str, keys: u32) -> Result<u64> {
    let map = object.maps().find(|map| map.name() == name);
    let map = map.ok_or_else(|| Error::system(format!("the BPF object frames has no map {name}")))?;
    let mut packets = 0;
    for key in 0..keys {
        let values = map.lookup_percpu(&key.to_ne_bytes(), MapFlags::ANY).doing(|| format!("reading {name}"))?;
        for value in values.unwrap_or_default() {
            packets += value.get(..8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes);
        }
    }
    Ok(packets)
}
