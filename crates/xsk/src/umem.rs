//! The memory of packets: frames of one size, one after the other, which this process and the kernel share.

use crate::{Refusal, Step};
use std::io;
use std::ptr::NonNull;

/// The size of a frame. The kernel takes powers of two from 2,048 to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FrameBytes {
    /// 2,048 bytes.
    Small,
    /// 4,096 bytes.
    Large,
}

/// Bytes that the kernel keeps free in front of a packet (XDP_PACKET_HEADROOM).
const HEADROOM: u32 = 256;

impl FrameBytes {
    /// The size that has room for a packet of so many bytes, if there is one.
    pub fn holding(packet_bytes: u32) -> Option<FrameBytes> {
        [FrameBytes::Small, FrameBytes::Large].into_iter().find(|size| packet_bytes <= size.packet_bytes())
    }

    /// Bytes of the longest packet that it has room for.
    pub const fn packet_bytes(self) -> u32 {
        self.get() - HEADROOM
    }

    /// Bytes of a frame.
    pub const fn get(self) -> u32 {
        match self {
            FrameBytes::Small => 2048,
            FrameBytes::Large => 4096,
        }
    }
}

/// A place and a length in the memory.
type Bytes = NonNull<[u8]>;

/// Memory for packets, until its last socket is dropped.
#[derive(Debug)]
pub struct Umem {
    memory: NonNull<u8>,
    frame: FrameBytes,
    frames: u32,
}

// SAFETY: the memory is plain bytes; each frame is touched by one side at a time, which the rings decide, and by one socket.
unsafe impl Send for Umem {}
// SAFETY: likewise; a shared reference gives no access to frames outside of this crate.
unsafe impl Sync for Umem {}

impl Umem {
    /// Maps memory for so many frames.
    ///
    /// # Errors
    ///
    /// There is not so much memory.
    pub fn new(frame: FrameBytes, frames: u32) -> Result<Umem, Refusal> {
        let bytes = frame.get() as usize * frames as usize;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, at an address that the kernel chooses; nothing of ours lies there.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
        if memory == libc::MAP_FAILED {
            return Err(Refusal::last(Step::Memory));
        }
        let memory = NonNull::new(memory.cast())
            .ok_or_else(|| Refusal { step: Step::Memory, error: io::Error::from_raw_os_error(libc::ENOMEM) })?;
        Ok(Umem { memory, frame, frames })
    }

    /// Bytes of all frames.
    pub fn bytes(&self) -> usize {
        self.frame.get() as usize * self.frames as usize
    }

    /// Frames in it.
    pub fn frames(&self) -> u32 {
        self.frames
    }

    pub(crate) fn frame(&self) -> FrameBytes {
        self.frame
    }

    pub(crate) fn address(&self) -> u64 {
        self.memory.as_ptr() as u64
    }

    /// Where the bytes of a frame in front of a packet are, and where the packet is. None: the descriptor is not of a packet in one frame.
    pub(crate) fn packet(&self, address: u64, length: u32) -> Option<(Bytes, Bytes)> {
        let frame_bytes = u64::from(self.frame.get());
        let (first, front) = (address - address % frame_bytes, (address % frame_bytes) as usize);
        let inside = address.checked_add(u64::from(length))? <= first.checked_add(frame_bytes)?;
        if !inside || first + frame_bytes > self.bytes() as u64 {
            return None;
        }
        // SAFETY: the frame lies in the mapping, by the comparison above.
        let begin = unsafe { self.memory.add(first as usize) };
        // SAFETY: the packet begins within the frame.
        let packet = unsafe { begin.add(front) };
        Some((NonNull::slice_from_raw_parts(begin, front), NonNull::slice_from_raw_parts(packet, length as usize)))
    }
}

impl Drop for Umem {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped by `new`. Sockets hold the value, so none is left; the kernel has the pages for itself.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.bytes()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_holds_a_packet_and_what_the_kernel_keeps_in_front() {
        assert_eq!(FrameBytes::holding(1514), Some(FrameBytes::Small));
        assert_eq!(FrameBytes::holding(1792), Some(FrameBytes::Small));
        assert_eq!(FrameBytes::holding(1793), Some(FrameBytes::Large));
        assert_eq!(FrameBytes::holding(3840), Some(FrameBytes::Large));
        assert_eq!(FrameBytes::holding(3841), None);
    }

    #[test]
    fn descriptors_outside_of_a_frame_are_refused() {
        let umem = Umem::new(FrameBytes::Small, 2).expect("memory");
        let lengths = |address, length| umem.packet(address, length).map(|(front, packet)| (front.len(), packet.len()));
        assert_eq!(lengths(256, 64), Some((256, 64)));
        assert_eq!(lengths(2048 + 256, 1792), Some((256, 1792)));
        assert_eq!(lengths(2048 + 256, 1793), None, "into the next frame");
        assert_eq!(lengths(4096, 0), None, "behind the last frame");
        assert_eq!(lengths(u64::MAX - 5, 64), None);
    }
}
