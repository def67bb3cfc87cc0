//! Sends frames to a device.

use crate::live::{self, LONGEST, SHORTEST};
use crate::{device_number, load, open};
use libbpf_rs::{MapCore, MapFlags, Object};
use serde::Serialize;
use sluice_error::{Doing, Error, Result};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Frames of a call of the kernel, of which it drops those that come before their time.
const CALL: u32 = 1 << 22;
/// The frames that are to be sent: UDP over IPv4, to a link-layer address that no device has.
#[derive(Debug, Clone, Copy)]
pub struct Frames {
    /// Bytes of a frame, without its checksum: 64 to 1,514.
    pub bytes: usize,
    /// Source ports that frames have in turn: a power of two.
    pub flows: u32,
    /// Bits a second; none: as many as go.
    pub rate_bps: Option<u64>,
}

/// The frames that were sent.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Sent {
    /// Frames.
    pub frames: u64,
    /// Time from the first to the last, seconds.
    pub seconds: f64,
}

/// Sends frames to a device for a time, or until `ended`.
///
/// # Errors
///
/// A device that is not there, frames that cannot be, a kernel that sends no live frames.
pub fn send(device: &str, frames: Frames, length: Duration, ended: impl Fn() -> bool) -> Result<Sent> {
    if !(SHORTEST..=LONGEST).contains(&frames.bytes) {
        return Err(Error::input(format!("frames of {} bytes", frames.bytes)).help("write 64 to 1514"));
    }
    if !frames.flows.is_power_of_two() || frames.flows > 65_536 {
        return Err(Error::input(format!("{} flows", frames.flows)).help("write a power of two, at most 65536"));
    }
    let object = program(device_number(device)?, frames, length)?;
    let frame = live::datagram(frames.bytes);
    let begun = Instant::now();
    while begun.elapsed() < length && !ended() {
        run(&object, &frame, CALL)?;
    }
    sent(&object)
}

/// The program that sends to a device, with its constants.
fn program(device: u32, frames: Frames, length: Duration) -> Result<Object> {
    let interval_ns = frames.rate_bps.map_or(0, |bps| frames.bytes as u64 * 8_000_000_000 / bps.max(1));
    let mut constants = Vec::new();
    constants.extend(interval_ns.to_ne_bytes());
    constants.extend((length.as_nanos() as u64).to_ne_bytes());
    constants.extend(device.to_ne_bytes());
    constants.extend((frames.flows - 1).to_ne_bytes());
    let none = || Error::system("the BPF object frames has no constants");
    let mut open = open("frames_send")?;
    for mut map in open.maps_mut().filter(|map| map.name().to_string_lossy().ends_with(".rodata")) {
        let bytes = map.initial_value_mut().ok_or_else(none)?;
        bytes.get_mut(..constants.len()).ok_or_else(none)?.copy_from_slice(&constants);
    }
    load(open, "frames_send")
}

/// The frames that the program has sent.
fn sent(object: &Object) -> Result<Sent> {
    let map = object.maps().find(|map| map.name() == "frames_sender");
    let map = map.ok_or_else(|| Error::system("the BPF object frames has no map frames_sender"))?;
    let bytes = map.lookup(&[0; 4], MapFlags::ANY).doing(|| "reading what was sent".to_owned())?.unwrap_or_default();
    let word = |n: usize| {
        let word = bytes.get(8 * n..8 * n + 8).and_then(|word| word.try_into().ok());
        word.map(u64::from_ne_bytes).ok_or_else(|| Error::system("the map frames_sender is too short"))
    };
    Ok(Sent { frames: word(0)?, seconds: (word(2)? - word(1)?) as f64 / 1e9 })
}

fn run(object: &Object, frame: &[u8], frames: u32) -> Result<()> {
    let program = object.progs_mut().find(|own| own.name() == "frames_send");
    let program = program.ok_or_else(|| Error::system("the BPF object frames has no program frames_send"))?;
    live::run(program.as_fd(), frame, frames)
}
