//! A port with several tx queues: each has a ring of packets, and the link takes from the rings in turn.

use crate::Link;
use std::collections::VecDeque;

/// A packet on its way through a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Packet {
    /// The source that sent it.
    pub source: usize,
    /// Its class.
    pub class: u32,
    /// Its length.
    pub bytes: u32,
    /// When it came to its tx queue.
    pub arrived_ns: u64,
}

/// The properties of a port.
#[derive(Debug, Clone, Copy)]
pub struct Port {
    /// The link that it sends on.
    pub link: Link,
    /// Packets that the ring of a tx queue holds.
    pub ring_packets: usize,
    /// The watchdog of an instance is late by up to so much.
    pub timer_late_ns: u64,
}

/// The rings of a port.
pub(crate) struct Rings {
    rings: Vec<VecDeque<(u64, Packet)>>,
    capacity: usize,
    next: usize,
    /// The link is sending.
    pub(crate) busy: bool,
}

impl Rings {
    pub(crate) fn new(queues: usize, capacity: usize) -> Rings {
        assert!(capacity > 0, "a ring holds a packet at least");
        Rings { rings: vec![VecDeque::new(); queues], capacity, next: 0, busy: false }
    }

    pub(crate) fn has_room(&self, queue: usize) -> bool {
        self.rings[queue].len() < self.capacity
    }

    /// A packet comes to a ring that has room, at this time.
    pub(crate) fn push(&mut self, queue: usize, now_ns: u64, packet: Packet) {
        self.rings[queue].push_back((now_ns, packet));
    }

    /// The next packet that the link sends: its tx queue, and when it came to the ring.
    pub(crate) fn take(&mut self) -> Option<(usize, u64, Packet)> {
        let queues = self.rings.len();
        let queue = (0..queues).map(|n| (self.next + n) % queues).find(|queue| !self.rings[*queue].is_empty())?;
        self.next = (queue + 1) % queues;
        self.rings[queue].pop_front().map(|(at_ns, packet)| (queue, at_ns, packet))
    }
}
