//! A card that takes the time of a rate for each frame, at the end of a veth.

use crate::{device_number, load, open};
use libbpf_rs::{MapCore, MapFlags, Object, OpenObject};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use serde::Serialize;
use sluice_error::{Doing, Error, Result};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Time between two looks at whether the card is to end.
const LOOK: Duration = Duration::from_millis(20);
/// Bytes of constants of the object in front of those of the card (`bpf/frames.bpf.c`).
const OTHERS: usize = 24;
/// Bytes of `struct frames_left`.
const LEFT_BYTES: usize = 24;

/// A slow card.
#[derive(Debug, Clone, Copy)]
pub struct Card {
    /// Bits a second.
    pub rate_bps: u64,
    /// Bytes that it adds to each frame.
    pub overhead_bytes: u32,
    /// Frames that it notes at most, a power of two; the first ones are overwritten.
    pub notes: u32,
    /// Whether frames go on to the stack of the device's host, else they end at the card.
    pub passes: bool,
    /// The processor that it keeps busy, with a thread of its own. Without it, frames take the time of the processor that sends them.
    pub processor: Option<usize>,
}

/// A frame that has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// The first eight bytes behind its UDP header.
    pub stamp: u64,
    /// When its last bit was sent, ns of CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Its length.
    pub bytes: u32,
    /// The UDP ports from which and to which it goes.
    pub ports: [u16; 2],
}

/// The packets that a card has sent.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SentByCard {
    /// Frames.
    pub frames: u64,
    /// Their bytes, without what the card adds.
    pub bytes: u64,
    /// The time between the first frame and the last in which it had none, ns.
    pub idle_ns: u64,
    /// The frames that it has noted, in their order.
    #[serde(skip)]
    pub left: Vec<Left>,
}

/// Makes a device a slow card until `ended`: frames that arrive there are what the card at the other end of the veth sends. `ready` is called when it is.
///
/// # Errors
///
/// A device that is not there or has an XDP program already, a rate of 0, notes that are no power of two, a kernel that refuses the program.
pub fn slow(device: &str, card: &Card, ready: impl FnOnce(), ended: impl Fn() -> bool) -> Result<SentByCard> {
    if card.rate_bps == 0 || !card.notes.is_power_of_two() {
        return Err(Error::input("a card without a rate, or with notes of a number that is no power of two"));
    }
    let number = device_number(device)? as i32;
    let object = program(card)?;
    let program = object.progs_mut().find(|own| own.name() == "frames_slow");
    let program = program.ok_or_else(|| Error::system("the BPF object frames has no program frames_slow"))?;
    let link = program.attach_xdp(number).map_err(|error| {
        Error::unsupported(format!("{device} takes no XDP program: {error}"))
            .help("ip link show tells whether it has one")
    })?;
    let thread = card.processor.map(|processor| OwnThread::begin(device, processor)).transpose()?;
    ready();
    while !ended() {
        std::thread::sleep(LOOK);
    }
    drop(link);
    drop(thread);
    sent(&object, card)
}

/// The thread that polls a device (Documentation/networking/napi.rst), until it is dropped.
struct OwnThread {
    switch: PathBuf,
}

impl OwnThread {
    /// Has a device polled by a thread that keeps to a processor, and goes before others there.
    fn begin(device: &str, processor: usize) -> Result<OwnThread> {
        let name = format!("napi/{device}-");
        let before = kernel_threads(&name);
        let own = OwnThread { switch: PathBuf::from(format!("/sys/class/net/{device}/threaded")) };
        let cure = "the namespace's own /sys is needed, as with `ip netns exec`";
        fs::write(&own.switch, "1")
            .map_err(|error| Error::system(format!("{}: {error}", own.switch.display())).help(cure))?;
        let thread = kernel_threads(&name).into_iter().find(|thread| !before.contains(thread));
        let thread = thread.ok_or_else(|| Error::unsupported(format!("no thread polls {device}")))?;
        let mut all = CpuSet::new();
        all.set(processor)
            .and_then(|()| sched_setaffinity(Pid::from_raw(thread), &all))
            .map_err(|error| Error::input(format!("processor {processor}: {error}")))?;
        // SAFETY: the call takes numbers only. A thread that waits for its processor makes the card slower than it is to be, which its idle time does not show.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, thread as libc::id_t, -20) };
        Ok(own)
    }
}

impl Drop for OwnThread {
    fn drop(&mut self) {
        // The device may be gone, and its thread with it.
        let _ = fs::write(&self.switch, "0");
    }
}

/// The kernel's threads whose names begin so.
fn kernel_threads(name: &str) -> Vec<i32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_one =
        |thread: &i32| fs::read_to_string(format!("/proc/{thread}/comm")).is_ok_and(|own| own.starts_with(name));
    numbers.filter(is_one).collect()
}

fn program(card: &Card) -> Result<Object> {
    let mut constants = Vec::new();
    constants.extend(((8_000_000_000u128 << 10) as u64 / card.rate_bps).max(1).to_ne_bytes());
    constants.extend(card.overhead_bytes.to_ne_bytes());
    constants.extend((card.notes - 1).to_ne_bytes());
    constants.extend(u32::from(card.passes).to_ne_bytes());
    let none = || Error::system("the BPF object frames has no constants");
    let mut open: OpenObject = open("frames_slow")?;
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if name == "frames_left" {
            map.set_max_entries(card.notes).doing(|| format!("{} notes", card.notes))?;
        } else if name.ends_with(".rodata") {
            let bytes = map.initial_value_mut().ok_or_else(none)?;
            bytes.get_mut(OTHERS..OTHERS + constants.len()).ok_or_else(none)?.copy_from_slice(&constants);
        }
    }
    load(open, "frames_slow")
}

fn sent(object: &Object, card: &Card) -> Result<SentByCard> {
    let read = |name: &str, key: u32| {
        let map = object.maps().find(|map| map.name() == name);
        let map = map.ok_or_else(|| Error::system(format!("the BPF object frames has no map {name}")))?;
        let value = map.lookup(&key.to_ne_bytes(), MapFlags::ANY).doing(|| format!("reading {name}"))?;
        Ok::<_, Error>(value.unwrap_or_default())
    };
    let whole = read("frames_card", 0)?;
    let word = |n: usize| word(&whole, n);
    let mut sent = SentByCard { frames: word(0)?, bytes: word(1)?, idle_ns: word(3)?, left: Vec::new() };
    for number in sent.frames.saturating_sub(card.notes.into())..sent.frames {
        sent.left.push(left(&read("frames_left", (number % u64::from(card.notes)) as u32)?)?);
    }
    Ok(sent)
}

fn word(bytes: &[u8], n: usize) -> Result<u64> {
    let word = bytes.get(8 * n..8 * n + 8).and_then(|word| word.try_into().ok());
    word.map(u64::from_ne_bytes).ok_or_else(|| Error::system("a value of the BPF object frames is too short"))
}

fn left(bytes: &[u8]) -> Result<Left> {
    if bytes.len() < LEFT_BYTES {
        return Err(Error::system("a note of the BPF object frames is too short"));
    }
    let rest = word(bytes, 2)?.to_ne_bytes();
    let port = |at: usize| u16::from_be_bytes([rest[at], rest[at + 1]]);
    let length = u32::from_ne_bytes([rest[0], rest[1], rest[2], rest[3]]);
    Ok(Left { stamp: word(bytes, 0)?, at_ns: word(bytes, 1)?, bytes: length, ports: [port(4), port(6)] })
}
