//! The packets that a port has been given and has not sent yet, and their limit.

use sluice_core::port_limit::{Bounds, PortLimit};
use std::collections::VecDeque;

/// The least limit: a frame, so that another one waits while one is sent.
const LEAST_BYTES: u64 = 1514;
/// A limit that no ring reaches.
const MOST_BYTES: u64 = 1 << 30;
/// The time for which bytes must be too many before the limit falls by them, ns: as the kernel has it for the rings of drivers.
const HOLD_NS: u64 = 1_000_000_000;

/// How much a port may have under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Most {
    /// As little as keeps it busy, which is found out while it works.
    Found,
    /// So many packets, whatever their length.
    Packets(u32),
}

/// The packets of one port.
pub struct UnderWay {
    most: Most,
    limit: PortLimit,
    /// Lengths of packets in the order in which they were given. A port may give frames back in another order; then a length is counted as that of another
    /// packet for a while.
    lengths: VecDeque<u32>,
}

impl UnderWay {
    /// A port that has nothing, and a ring of so many places.
    pub fn new(most: Most, places: u32, now_ns: u64) -> UnderWay {
        let bounds = Bounds { least_bytes: LEAST_BYTES, most_bytes: MOST_BYTES, hold_ns: HOLD_NS };
        UnderWay { most, limit: PortLimit::new(&bounds, now_ns), lengths: VecDeque::with_capacity(places as usize) }
    }

    /// Whether one more packet may be given.
    pub fn has_room(&self) -> bool {
        match self.most {
            Most::Found => self.limit.has_room(),
            Most::Packets(most) => self.lengths.len() < most as usize,
        }
    }

    /// A packet of so many bytes is given.
    pub fn give(&mut self, bytes: u32) {
        self.limit.give(bytes);
        self.lengths.push_back(bytes);
    }

    /// So many packets were sent.
    pub fn come_back(&mut self, count: u32, now_ns: u64) {
        let bytes = self.lengths.drain(..(count as usize).min(self.lengths.len())).map(u64::from).sum();
        self.limit.come_back(bytes, now_ns);
    }

    /// The last packets, so many, were not given after all. To the limit, they have been sent.
    pub fn take_back(&mut self, count: u32, now_ns: u64) {
        let from = self.lengths.len().saturating_sub(count as usize);
        let bytes = self.lengths.drain(from..).map(u64::from).sum();
        self.limit.come_back(bytes, now_ns);
    }

    /// The limit that was found, in bytes; 0: it is a number of packets.
    pub fn limit_bytes(&self) -> u64 {
        match self.most {
            Most::Found => self.limit.bytes(),
            Most::Packets(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_what_is_under_way() {
        let mut under_way = UnderWay::new(Most::Found, 8, 0);
        (0..3).for_each(|_| under_way.give(700));
        assert!(!under_way.has_room(), "2100 bytes are more than a frame");
        under_way.take_back(1, 10);
        assert!(under_way.has_room());
        under_way.come_back(2, 20);
        assert_eq!(under_way.limit.under_way_bytes(), 0);
        under_way.come_back(1, 30);
        assert!(under_way.lengths.is_empty(), "more came back than was given");
    }

    #[test]
    fn a_number_of_packets_is_one_whatever_their_length() {
        let mut under_way = UnderWay::new(Most::Packets(3), 8, 0);
        (0..3).for_each(|_| {
            assert!(under_way.has_room());
            under_way.give(9000);
        });
        assert!(!under_way.has_room());
        under_way.come_back(1, 10);
        assert!(under_way.has_room());
        assert_eq!(under_way.limit_bytes(), 0);
    }
}
