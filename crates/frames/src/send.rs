//! Sends frames to a device.

use crate::{device_number, load, open};
use libbpf_rs::{MapCore, MapFlags, Object};
use serde::Serialize;
use sluice_error::{Doing, Error, Result};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

/// Frames that the kernel hands on at a time, as a driver's poll does.
const BATCH: u32 = 64;
/// Frames of a call of the kernel, of which it drops those that come before their time.
const CALL: u32 = 1 << 22;
/// Bytes of Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 42;
/// The longest frame: a page less the kernel's own room in it.
const LONGEST: usize = 1_514;

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
    if !(64..=LONGEST).contains(&frames.bytes) {
        return Err(Error::input(format!("frames of {} bytes", frames.bytes)).help("write 64 to 1514"));
    }
    if !frames.flows.is_power_of_two() || frames.flows > 65_536 {
        return Err(Error::input(format!("{} flows", frames.flows)).help("write a power of two, at most 65536"));
    }
    let object = program(device_number(device)?, frames, length)?;
    let frame = frame(frames.bytes);
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

/// What the program has sent.
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
    let mut options = libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
        data_in: frame.as_ptr().cast(),
        data_size_in: frame.len() as u32,
        repeat: frames as i32,
        flags: libbpf_sys::BPF_F_TEST_XDP_LIVE_FRAMES,
        batch_size: BATCH.min(frames),
        ..Default::default()
    };
    // SAFETY: the frame outlives the call, which only reads it.
    let result = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_fd().as_raw_fd(), &raw mut options) };
    match result {
        0 => Ok(()),
        error if -error == nix::errno::Errno::EINTR as i32 => Ok(()),
        error => Err(Error::system(format!("sending frames: {}", std::io::Error::from_raw_os_error(-error)))),
    }
}

/// A UDP datagram over IPv4 without checksum, from 10.99.1.1 port 0 to 10.99.1.2 port 5201.
fn frame(bytes: usize) -> Vec<u8> {
    let mut frame = vec![0; bytes];
    let (ip, udp) = ((bytes - 14) as u16, (bytes - 34) as u16);
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
    frame[14..24].copy_from_slice(&[0x45, 0, (ip >> 8) as u8, ip as u8, 0, 0, 0, 0, 64, 17]);
    frame[26..34].copy_from_slice(&[10, 99, 1, 1, 10, 99, 1, 2]);
    frame[36..HEADERS].copy_from_slice(&[0x14, 0x51, (udp >> 8) as u8, udp as u8, 0, 0]);
    let checksum = ip_checksum(&frame[14..34]).to_be_bytes();
    frame[24..26].copy_from_slice(&checksum);
    frame
}

/// The checksum of an IPv4 header (RFC 791).
fn ip_checksum(header: &[u8]) -> u16 {
    let sum: u32 = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_lengths_and_a_checksum() {
        let frame = frame(64);
        assert_eq!(frame.len(), 64);
        assert_eq!((&frame[16..18], &frame[38..40]), (&[0, 50][..], &[0, 30][..]));
        assert_eq!(ip_checksum(&frame[14..34]), 0);
    }
}
