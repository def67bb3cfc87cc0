//! A socket that is bound to a queue of an interface, and receives what an XDP program sends to it.

use crate::ring::{Ring, Which, get, set};
use crate::umem::Umem;
use crate::{Refusal, Step};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

/// Whether packets are copied into the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copying {
    /// Only where the driver cannot write there itself.
    WhereNeeded,
    /// Always. Programs in the stack (generic XDP) can do nothing else.
    Always,
}

/// The place of a socket.
#[derive(Debug, Clone)]
pub struct Binding {
    /// Number of the interface.
    pub ifindex: u32,
    /// Number of the queue.
    pub queue: u32,
    /// Frames of the memory that are this socket's alone: a power of two of them, which is also the size of its rings.
    pub frames: Range<u32>,
    /// Whether packets are copied.
    pub copying: Copying,
}

/// The packets that the kernel could not hand over (XDP_STATISTICS).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets that were dropped: no frame was free, or the packet is longer than one.
    pub rx_dropped: u64,
    /// Packets that were dropped since the receive ring was full.
    pub rx_ring_full: u64,
    /// Times that the kernel looked for a free frame and found none. Where packets are copied, each of these packets is in `rx_dropped`, too.
    pub rx_fill_ring_empty: u64,
}

/// A socket that receives.
#[derive(Debug)]
pub struct Socket {
    fill: Ring<u64>,
    receive: Ring<libc::xdp_desc>,
    /// Bound with the memory, as the kernel wants it; without transmission it stays empty.
    _completion: Ring<u64>,
    fd: OwnedFd,
    umem: Arc<Umem>,
}

/// Whether this kernel has AF_XDP. Where this process may not open such a socket, the kernel still has it.
pub fn is_supported() -> bool {
    !matches!(open(), Err(refusal) if refusal.error.raw_os_error() == Some(libc::EAFNOSUPPORT))
}

/// A new socket.
pub(crate) fn open() -> Result<OwnedFd, Refusal> {
    // SAFETY: the call takes numbers only.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(Refusal::last(Step::Socket));
    }
    // SAFETY: the kernel has just given us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl Socket {
    /// Binds a socket to a queue. All its frames are the kernel's from then on. `sharing`: a socket that has registered the same memory.
    ///
    /// # Errors
    ///
    /// The kernel has no AF_XDP, another socket has the queue, the interface cannot be bound as asked, the memory may not be locked.
    ///
    /// # Safety
    ///
    /// No other socket may have a frame of `binding.frames` of this memory: `receive` lends frames as if they were its own.
    pub unsafe fn bind(umem: &Arc<Umem>, binding: &Binding, sharing: Option<&Socket>) -> Result<Socket, Refusal> {
        let size = binding.frames.len() as u32;
        let other_memory = sharing.is_some_and(|first| !Arc::ptr_eq(&first.umem, umem));
        if !size.is_power_of_two() || binding.frames.end > umem.frames() || other_memory {
            return Err(Refusal { step: Step::Rings, error: io::Error::from_raw_os_error(libc::EINVAL) });
        }
        let fd = open()?;
        if sharing.is_none() {
            register(fd.as_fd(), umem)?;
        }
        let mut fill = Ring::<u64>::new(fd.as_fd(), Which::Fill, size)?;
        let completion = Ring::new(fd.as_fd(), Which::Completion, size)?;
        let receive = Ring::new(fd.as_fd(), Which::Receive, size)?;
        for (nth, frame) in binding.frames.clone().enumerate() {
            fill.write(nth as u32, u64::from(frame) * u64::from(umem.frame().get()));
        }
        fill.submit(size);
        bind(fd.as_fd(), (binding.ifindex, binding.queue), binding.copying, sharing.map(|first| first.fd.as_fd()))?;
        Ok(Socket { fill, receive, _completion: completion, fd, umem: Arc::clone(umem) })
    }

    /// Packets that wait.
    pub fn waiting(&self) -> u32 {
        self.receive.waiting()
    }

    /// Hands over so many of the packets that wait, at most: what stands in the frame in front of each, and the packet. Their frames are the
    /// kernel's again afterwards. Returns how many there were.
    pub fn receive(&mut self, most: u32, take: &mut dyn FnMut(&mut [u8], &[u8])) -> u32 {
        let count = self.receive.waiting().min(most);
        debug_assert!(self.fill.free() >= count, "each frame has a place");
        let frame_bytes = u64::from(self.umem.frame().get());
        for nth in 0..count {
            let descriptor = self.receive.peek(nth);
            if let Some((mut front, packet)) = self.umem.packet(descriptor.addr, descriptor.len) {
                // SAFETY: both lie in a frame and do not overlap. The kernel has handed the frame over, and gets it back below; of the sockets,
                // only this one has it.
                let (front, packet) = unsafe { (front.as_mut(), packet.as_ref()) };
                take(front, packet);
            }
            self.fill.write(nth, descriptor.addr - descriptor.addr % frame_bytes);
        }
        self.receive.release(count);
        self.fill.submit(count);
        if self.fill.needs_wakeup() {
            // SAFETY: nothing is received; the call has the driver look at the ring.
            unsafe { libc::recv(self.fd.as_raw_fd(), std::ptr::null_mut(), 0, libc::MSG_DONTWAIT) };
        }
        count
    }

    /// The packets that the kernel could not hand over until now.
    ///
    /// # Errors
    ///
    /// The kernel does not tell.
    pub fn statistics(&self) -> Result<Statistics, Refusal> {
        // SAFETY: statistics of zeroes are valid.
        let mut all: libc::xdp_statistics = unsafe { std::mem::zeroed() };
        get(self.fd.as_fd(), libc::XDP_STATISTICS, &mut all).map_err(|()| Refusal::last(Step::Ask))?;
        Ok(Statistics {
            rx_dropped: all.rx_dropped,
            rx_ring_full: all.rx_ring_full,
            rx_fill_ring_empty: all.rx_fill_ring_empty_descs,
        })
    }

    /// Whether the driver writes packets into the memory itself.
    ///
    /// # Errors
    ///
    /// The kernel does not tell.
    pub fn is_zero_copy(&self) -> Result<bool, Refusal> {
        is_zero_copy(self.fd.as_fd())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Binds a socket, whose rings are there, to a queue of an interface. `sharing`: a socket that has registered the same memory.
pub(crate) fn bind(
    socket: BorrowedFd<'_>,
    (ifindex, queue): (u32, u32),
    copying: Copying,
    sharing: Option<BorrowedFd<'_>>,
) -> Result<(), Refusal> {
    let (flags, shared) = match (sharing, copying) {
        // A socket that shares memory takes over how the first one copies.
        (Some(first), _) => (libc::XDP_SHARED_UMEM, first.as_raw_fd() as u32),
        (None, Copying::WhereNeeded) => (libc::XDP_USE_NEED_WAKEUP, 0),
        (None, Copying::Always) => (libc::XDP_USE_NEED_WAKEUP | libc::XDP_COPY, 0),
    };
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: flags,
        sxdp_ifindex: ifindex,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: shared,
    };
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the address is as long as it is said to be, and lives through the call.
    let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if bound == 0 { Ok(()) } else { Err(Refusal::last(Step::Bind)) }
}

/// Whether the driver writes packets into the memory itself.
pub(crate) fn is_zero_copy(socket: BorrowedFd<'_>) -> Result<bool, Refusal> {
    let mut options = libc::xdp_options { flags: 0 };
    get(socket, libc::XDP_OPTIONS, &mut options).map_err(|()| Refusal::last(Step::Ask))?;
    Ok(options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
}

/// Hands memory to the kernel.
pub(crate) fn register(socket: BorrowedFd<'_>, umem: &Umem) -> Result<(), Refusal> {
    // SAFETY: a registration of zeroes is valid; the fields that a kernel does not know stay 0.
    let mut registration: libc::xdp_umem_reg = unsafe { std::mem::zeroed() };
    registration.addr = umem.address();
    registration.len = umem.bytes() as u64;
    registration.chunk_size = umem.frame().get();
    set(socket, libc::XDP_UMEM_REG, &registration).map_err(|()| Refusal::last(Step::Memory))
}
