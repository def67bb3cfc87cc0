//! Runs an XDP program on live frames, which the kernel makes and treats as a driver's own.

use sluice_error::{Error, Result};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Frames that the kernel hands to a program at a time, as a driver's poll does.
const BATCH: u32 = 64;
/// Bytes of Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 42;
/// Bytes of the shortest and of the longest frame, without checksums of Ethernet: an MTU of 1,500.
pub const SHORTEST: usize = 64;
/// See [`SHORTEST`].
pub const LONGEST: usize = 1_514;

/// Runs a program on so many copies of a frame. A signal ends it early.
///
/// # Errors
///
/// A kernel before Linux 5.18, a program that is not of XDP.
pub fn run(program: BorrowedFd<'_>, frame: &[u8], frames: u32) -> Result<()> {
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
    let result = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
    match result {
        0 => Ok(()),
        error if -error == nix::errno::Errno::EINTR as i32 => Ok(()),
        error => Err(Error::system(format!("running on live frames: {}", std::io::Error::from_raw_os_error(-error)))),
    }
}

/// A frame of [`SHORTEST`] to [`LONGEST`] bytes with a UDP datagram without a checksum, from 10.99.1.1 port 0 to 10.99.1.2 port 5201.
pub fn datagram(bytes: usize) -> Vec<u8> {
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
        let frame = datagram(64);
        assert_eq!(frame.len(), 64);
        assert_eq!((&frame[16..18], &frame[38..40]), (&[0, 50][..], &[0, 30][..]));
        assert_eq!(ip_checksum(&frame[14..34]), 0);
    }
}
