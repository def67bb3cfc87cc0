//! Sockets that receive and send, and share their frames: what arrives at one leaves by another without being copied.

use crate::ring::{Ring, Which, set_at};
use crate::socket::{bind, is_zero_copy, open, register};
use crate::umem::Umem;
use crate::{Copying, FrameBytes, Refusal, Step};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

/// A frame with a packet, which is the caller's until it gives it to a port or back to the pool. One that is dropped is lost to the pool.
#[derive(Debug)]
#[must_use = "it is lost to the pool otherwise"]
pub struct Frame {
    address: u64,
    length_bytes: u32,
}

impl Frame {
    /// Bytes of the packet.
    pub fn length_bytes(&self) -> u32 {
        self.length_bytes
    }
}

/// The memory of ports, and its frames that no ring has.
#[derive(Debug)]
pub struct Pool {
    umem: Arc<Umem>,
    free: Vec<u64>,
}

impl Pool {
    /// Memory for so many frames.
    ///
    /// # Errors
    ///
    /// There is not so much memory.
    pub fn new(frame: FrameBytes, frames: u32) -> Result<Pool, Refusal> {
        let umem = Umem::new(frame, frames)?;
        let free = (0..u64::from(frames)).rev().map(|n| n * u64::from(frame.get())).collect();
        Ok(Pool { umem: Arc::new(umem), free })
    }

    /// Parts of its free frames, as many each, for threads that each have one. What is left over is no part's.
    pub fn split(self, parts: usize) -> Vec<Pool> {
        let each = self.free.len() / parts.max(1);
        self.free
            .chunks_exact(each.max(1))
            .take(parts)
            .map(|free| Pool { umem: Arc::clone(&self.umem), free: free.to_vec() })
            .collect()
    }

    /// Frames that neither a ring nor the caller has.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// A frame that is not sent.
    pub fn give_back(&mut self, frame: Frame) {
        self.put(frame.address);
    }

    fn put(&mut self, address: u64) {
        self.free.push(address - address % u64::from(self.umem.frame().get()));
    }

    /// The bytes in front of the packet of a frame, which hold its metadata, and the packet.
    pub fn bytes(&mut self, frame: &Frame) -> (&[u8], &mut [u8]) {
        let (front, packet) = self.parts(frame);
        // SAFETY: both lie in a frame and do not overlap. The frame is the caller's, so no ring has it, and the borrow of the pool lets the caller look at
        // one frame at a time.
        unsafe { (front.as_ref(), &mut *packet.as_ptr()) }
    }

    fn parts(&self, frame: &Frame) -> (NonNull<[u8]>, NonNull<[u8]>) {
        self.umem.packet(frame.address, frame.length_bytes).expect("a frame is made of a descriptor that was checked")
    }
}

/// The kernel's answer when it is told to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kick {
    /// It has sent what waited, or sends it by itself.
    Sent,
    /// Something waits still: it is to be told again soon.
    Again,
    /// The interface takes nothing: it is down, or gone.
    Down,
}

/// A socket that is bound to a queue of an interface.
#[derive(Debug)]
pub struct Port {
    fill: Ring<u64>,
    receive: Ring<libc::xdp_desc>,
    transmit: Ring<libc::xdp_desc>,
    completion: Ring<u64>,
    fd: OwnedFd,
    umem: Arc<Umem>,
    /// Packets whose frames have not come back.
    under_way: u32,
}

impl Port {
    /// Binds a socket to a queue of an interface, with rings of so many places, a power of two. `at`: the numbers of the interface and the queue. `sharing`: a port of the same pool that is there
    /// already.
    ///
    /// # Errors
    ///
    /// The kernel has no AF_XDP, another socket has the queue, the interface cannot be bound as asked, the memory may not be locked.
    pub fn bind(
        pool: &Pool,
        at: (u32, u32),
        places: u32,
        copying: Copying,
        sharing: Option<&Port>,
    ) -> Result<Port, Refusal> {
        let other_memory = sharing.is_some_and(|first| !Arc::ptr_eq(&first.umem, &pool.umem));
        if !places.is_power_of_two() || other_memory {
            return Err(Refusal { step: Step::Rings, error: io::Error::from_raw_os_error(libc::EINVAL) });
        }
        let fd = open()?;
        if sharing.is_none() {
            register(fd.as_fd(), &pool.umem)?;
        }
        let socket = fd.as_fd();
        let (fill, completion) =
            (Ring::new(socket, Which::Fill, places)?, Ring::new(socket, Which::Completion, places)?);
        let (receive, transmit) =
            (Ring::new(socket, Which::Receive, places)?, Ring::new(socket, Which::Transmit, places)?);
        bind(socket, at, copying, sharing.map(|first| first.fd.as_fd()))?;
        Ok(Port { fill, receive, transmit, completion, fd, umem: Arc::clone(&pool.umem), under_way: 0 })
    }

    /// Has the kernel ask the driver for packets in the calls of this process (`poll_driver`, `kick`), for so long at most and for so many of them, instead
    /// of by interrupts (SO_PREFER_BUSY_POLL: Documentation/networking/napi.rst and af_xdp.rst).
    ///
    /// # Errors
    ///
    /// The kernel has no busy polling, or the process may not ask for it.
    pub fn poll_busily(&self, time_us: u32, packets: u32) -> Result<(), Refusal> {
        let options =
            [(libc::SO_PREFER_BUSY_POLL, 1), (libc::SO_BUSY_POLL, time_us), (libc::SO_BUSY_POLL_BUDGET, packets)];
        for (option, value) in options {
            let set = set_at(self.fd.as_fd(), (libc::SOL_SOCKET, option), &(value as libc::c_int));
            set.map_err(|()| Refusal::last(Step::BusyPoll))?;
        }
        Ok(())
    }

    /// Has the driver look at the fill ring, and hand packets over if busy polling was asked for.
    pub fn poll_driver(&self) {
        // SAFETY: nothing is received.
        unsafe { libc::recv(self.fd.as_raw_fd(), std::ptr::null_mut(), 0, libc::MSG_DONTWAIT) };
    }

    /// Lends the kernel free frames to receive into.
    pub fn refill(&mut self, pool: &mut Pool) {
        let count = self.fill.free().min(pool.free.len() as u32);
        for nth in 0..count {
            self.fill.write(nth, pool.free.pop().expect("they were counted"));
        }
        self.fill.submit(count);
        if self.fill.needs_wakeup() {
            self.poll_driver();
        }
    }

    /// Up to so many of the packets that have arrived, in their order.
    pub fn receive(&mut self, most: u32, pool: &mut Pool, mut take: impl FnMut(Frame, &mut Pool)) -> u32 {
        let count = self.receive.waiting().min(most);
        for nth in 0..count {
            let descriptor = self.receive.peek(nth);
            match self.umem.packet(descriptor.addr, descriptor.len) {
                Some(_) => take(Frame { address: descriptor.addr, length_bytes: descriptor.len }, pool),
                // The kernel never sends a descriptor outside of the memory.
                None => pool.put(descriptor.addr),
            }
        }
        self.receive.release(count);
        count
    }

    /// Packets that the rings have places for now.
    pub fn room(&self) -> u32 {
        // Each packet also needs a place in the completion ring.
        self.transmit.free().min(self.completion.size().saturating_sub(self.under_way))
    }

    /// Gives a packet to be sent, behind so many others that were not submitted yet. The caller has asked `room`.
    pub fn write(&mut self, nth: u32, frame: Frame) {
        self.transmit.write(nth, libc::xdp_desc { addr: frame.address, len: frame.length_bytes, options: 0 });
    }

    /// Has so many packets sent that were written.
    pub fn submit(&mut self, count: u32) {
        self.transmit.submit(count);
        self.under_way += count;
    }

    /// Takes back so many packets that were written and not submitted. Returns how many.
    pub fn withdraw(&mut self, count: u32, pool: &mut Pool) -> u32 {
        (0..count).for_each(|nth| pool.put(self.transmit.peek(nth).addr));
        count
    }

    /// Tells the kernel to send what waits, if it does not look by itself.
    pub fn kick(&mut self) -> Kick {
        if self.under_way == 0 || !self.transmit.needs_wakeup() {
            return Kick::Sent;
        }
        // SAFETY: nothing is sent from this process's memory; the call has the kernel look at the ring.
        let answer =
            unsafe { libc::sendto(self.fd.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0) };
        match io::Error::last_os_error().raw_os_error() {
            _ if answer >= 0 => Kick::Sent,
            Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS) => Kick::Again,
            _ => Kick::Down,
        }
    }

    /// Takes back the frames of packets that were sent. Returns how many.
    pub fn reclaim(&mut self, pool: &mut Pool) -> u32 {
        let count = self.completion.waiting();
        for nth in 0..count {
            pool.put(self.completion.peek(nth));
        }
        self.completion.release(count);
        self.under_way -= count.min(self.under_way);
        count
    }

    /// Packets that were given, and whose frames have not come back.
    pub fn under_way(&self) -> u32 {
        self.under_way
    }

    /// Whether frames of packets that were sent can be taken back.
    pub fn has_sent(&self) -> bool {
        self.completion.waiting() > 0
    }

    /// Packets that have arrived and wait to be received.
    pub fn waiting(&self) -> u32 {
        self.receive.waiting()
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

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_pool_have_as_many_frames_each_and_share_none() {
        let parts = Pool::new(FrameBytes::Small, 13).expect("memory").split(4);
        assert_eq!(parts.iter().map(Pool::free).collect::<Vec<_>>(), [3; 4]);
        let mut all: Vec<u64> = parts.iter().flat_map(|part| part.free.clone()).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 12);
        assert!(parts.iter().all(|part| Arc::ptr_eq(&part.umem, &parts[0].umem)));
    }
}
