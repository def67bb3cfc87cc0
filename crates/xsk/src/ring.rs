//! A ring of descriptors in memory that this process and the kernel share: one side produces, the other consumes.
//!
//! Both counters run on and wrap at 2^32; a descriptor's place is its number modulo the size. The producer stores its counter with release order
//! behind the descriptors, and the consumer loads it with acquire order before them; likewise the other way round for places that become free.

use crate::{Refusal, Step};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// The ring of a socket.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Which {
    /// Frames that the kernel may fill.
    Fill,
    /// Frames whose packets the kernel has sent.
    Completion,
    /// Packets that have arrived.
    Receive,
    /// Packets to send.
    Transmit,
}

impl Which {
    /// The socket option that makes it, and where it is mapped.
    fn numbers(self) -> (libc::c_int, libc::off_t) {
        match self {
            Which::Fill => (libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t),
            Which::Completion => (libc::XDP_UMEM_COMPLETION_RING, libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t),
            Which::Receive => (libc::XDP_RX_RING, libc::XDP_PGOFF_RX_RING),
            Which::Transmit => (libc::XDP_TX_RING, libc::XDP_PGOFF_TX_RING as libc::off_t),
        }
    }

    fn offsets(self, all: &libc::xdp_mmap_offsets) -> libc::xdp_ring_offset {
        match self {
            Which::Fill => all.fr,
            Which::Completion => all.cr,
            Which::Receive => all.rx,
            Which::Transmit => all.tx,
        }
    }
}

/// The options that are asked of and set at a socket.
pub(crate) const SOL_XDP: libc::c_int = 283;

/// A ring whose descriptors are of type T: u64 addresses, or `xdp_desc`.
#[derive(Debug)]
pub(crate) struct Ring<T> {
    memory: NonNull<u8>,
    length_bytes: usize,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    descriptors: NonNull<T>,
    size: u32,
    /// The counter of this side.
    own: u32,
}

// SAFETY: the mapping belongs to the ring, and the counters that the kernel shares are atomic.
unsafe impl<T> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// Makes a ring of a socket and maps it. size: a power of two.
    pub fn new(socket: BorrowedFd<'_>, which: Which, size: u32) -> Result<Ring<T>, Refusal> {
        let (option, page) = which.numbers();
        set(socket, option, &size).map_err(|()| Refusal::last(Step::Rings))?;
        // SAFETY: offsets of zeroes are valid.
        let mut offsets: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
        get(socket, libc::XDP_MMAP_OFFSETS, &mut offsets).map_err(|()| Refusal::last(Step::Rings))?;
        let at = which.offsets(&offsets);
        let length_bytes = at.desc as usize + size as usize * size_of::<T>();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: a new mapping, at an address that the kernel chooses; nothing of ours lies there.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), length_bytes, access, flags, socket.as_raw_fd(), page) };
        let memory = NonNull::new(memory.cast::<u8>()).filter(|_| memory != libc::MAP_FAILED);
        let memory = memory.ok_or_else(|| Refusal::last(Step::Rings))?;
        // SAFETY: the kernel says that the parts lie at these offsets, which the length covers.
        unsafe {
            Ok(Ring {
                memory,
                length_bytes,
                producer: memory.add(at.producer as usize).cast(),
                consumer: memory.add(at.consumer as usize).cast(),
                flags: memory.add(at.flags as usize).cast(),
                descriptors: memory.add(at.desc as usize).cast(),
                size,
                own: 0,
            })
        }
    }

    /// Its places.
    pub fn size(&self) -> u32 {
        self.size
    }

    fn place(&self, number: u32) -> NonNull<T> {
        // SAFETY: the size is a power of two, so the place is below it, and the mapping has so many.
        unsafe { self.descriptors.add((number & (self.size - 1)) as usize) }
    }

    /// As the consumer: the descriptors that wait.
    pub fn waiting(&self) -> u32 {
        // SAFETY: the counter lies in the mapping.
        unsafe { self.producer.as_ref() }.load(Ordering::Acquire).wrapping_sub(self.own)
    }

    /// As the consumer: the descriptor behind so many others that wait. The caller has asked `waiting`.
    pub fn peek(&self, nth: u32) -> T {
        // SAFETY: the place lies in the mapping; the producer has written it before its counter, and leaves it until it is released.
        unsafe { self.place(self.own.wrapping_add(nth)).read() }
    }

    /// As the consumer: gives places back.
    pub fn release(&mut self, count: u32) {
        self.own = self.own.wrapping_add(count);
        // SAFETY: the counter lies in the mapping.
        unsafe { self.consumer.as_ref() }.store(self.own, Ordering::Release);
    }

    /// As the producer: places that are free.
    pub fn free(&self) -> u32 {
        // SAFETY: the counter lies in the mapping.
        self.size - self.own.wrapping_sub(unsafe { self.consumer.as_ref() }.load(Ordering::Acquire))
    }

    /// As the producer: writes a descriptor behind so many others that are not submitted yet. The caller has asked `free`.
    pub fn write(&mut self, nth: u32, descriptor: T) {
        // SAFETY: the place lies in the mapping, and is this side's until it is submitted.
        unsafe { self.place(self.own.wrapping_add(nth)).write(descriptor) };
    }

    /// As the producer: hands over what was written.
    pub fn submit(&mut self, count: u32) {
        self.own = self.own.wrapping_add(count);
        // SAFETY: the counter lies in the mapping.
        unsafe { self.producer.as_ref() }.store(self.own, Ordering::Release);
    }

    /// Whether the kernel waits for a system call before it looks at the ring (XDP_USE_NEED_WAKEUP).
    pub fn needs_wakeup(&self) -> bool {
        // SAFETY: the flags lie in the mapping.
        unsafe { self.flags.as_ref() }.load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped by `new`, and no reference into it is left.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.length_bytes) };
    }
}

/// Sets an option of AF_XDP of a socket.
pub(crate) fn set<T>(socket: BorrowedFd<'_>, option: libc::c_int, value: &T) -> Result<(), ()> {
    set_at(socket, (SOL_XDP, option), value)
}

/// Sets an option of a socket, of any level.
pub(crate) fn set_at<T>(
    socket: BorrowedFd<'_>,
    (level, option): (libc::c_int, libc::c_int),
    value: &T,
) -> Result<(), ()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value is as long as it is said to be, and lives through the call.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(()) }
}

/// Reads an option of a socket.
pub(crate) fn get<T>(socket: BorrowedFd<'_>, option: libc::c_int, value: &mut T) -> Result<(), ()> {
    let mut length = size_of::<T>() as libc::socklen_t;
    let to = std::ptr::from_mut(value).cast();
    // SAFETY: the kernel writes at most so many bytes, and the values that are asked for are plain numbers.
    let result = unsafe { libc::getsockopt(socket.as_raw_fd(), SOL_XDP, option, to, &raw mut length) };
    if result == 0 { Ok(()) } else { Err(()) }
}
