//! Puts packets of several CPUs into the order of time.
//!
//! Each CPU has a ring of its own, whose records are in order. A look takes a part of each ring, so the second half of a connection can come
//! before its first. A packet waits until no CPU can send an earlier one.

use crate::packet::Packet;
use sluice_error::Result;
use std::collections::HashMap;

/// Most packets that wait; beyond that the oldest go on as they are.
const MOST: usize = 1 << 18;

/// Packets that wait for earlier ones.
#[derive(Default)]
pub struct Sequence {
    waiting: Vec<Packet>,
    /// Time of the last packet of each interface and CPU in this look.
    last_ns: HashMap<(Option<u16>, u8), u64>,
}

impl Sequence {
    /// Adds a packet of this look.
    pub fn add(&mut self, packet: &Packet) {
        self.waiting.push(*packet);
        self.last_ns.insert((packet.interface, packet.cpu), packet.time_ns);
    }

    /// Ends a look that began at this time, nanoseconds since 1970, and hands over what is in order.
    ///
    /// A ring that had nothing in this look has nothing from before it; one that had something may have more, not older than its last.
    ///
    /// # Errors
    ///
    /// The first error of `take`.
    pub fn release(&mut self, begun_ns: u64, take: &mut impl FnMut(&Packet) -> Result<()>) -> Result<()> {
        let until_ns = self.last_ns.drain().map(|(_, last_ns)| last_ns).min().unwrap_or(begun_ns).min(begun_ns);
        // The sort is stable, and quick where there are runs in order.
        self.waiting.sort_by_key(|packet| packet.time_ns);
        let ready = self.waiting.partition_point(|packet| packet.time_ns <= until_ns);
        let ready = ready.max(self.waiting.len().saturating_sub(MOST));
        self.waiting.drain(..ready).try_for_each(|packet| take(&packet))
    }

    /// Hands over the rest.
    ///
    /// # Errors
    ///
    /// The first error of `take`.
    pub fn finish(&mut self, take: &mut impl FnMut(&Packet) -> Result<()>) -> Result<()> {
        self.last_ns.clear();
        self.release(u64::MAX, take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Kind;
    use proptest::prelude::*;

    proptest! {
        /// However looks cut the rings of CPUs, packets come out in the order of time, and all of them.
        #[test]
        fn time_does_not_go_back(
            sent in prop::collection::vec((0..4u8, 1..50u64), 1..300),
            looks in prop::collection::vec((1..100u64, 1..10usize), 1..60),
        ) {
            let mut rings: [Vec<u64>; 4] = Default::default();
            let mut now_ns = 1000;
            for (cpu, wait_ns) in &sent {
                now_ns += wait_ns;
                rings[usize::from(*cpu)].push(now_ns);
            }
            let mut sequence = Sequence::default();
            let mut times = Vec::new();
            let mut take = |packet: &Packet| {
                times.push(packet.time_ns);
                Ok(())
            };
            let mut look_ns = 1000;
            for (wait_ns, turn) in looks.into_iter().cycle().take(10_000) {
                if rings.iter().all(Vec::is_empty) {
                    break;
                }
                look_ns += wait_ns;
                for (cpu, ring) in rings.iter_mut().enumerate() {
                    let there = ring.iter().take_while(|time_ns| **time_ns <= look_ns).count().min(turn);
                    for time_ns in ring.drain(..there) {
                        let cpu = cpu as u8;
                        sequence.add(&Packet { kind: Kind::Packet, interface: Some(0), cpu, ..Packet::end(time_ns, 0) });
                    }
                }
                sequence.release(look_ns, &mut take).expect("taken");
            }
            sequence.finish(&mut take).expect("taken");
            prop_assert!(times.is_sorted());
            prop_assert_eq!(times.len(), sent.len());
        }
    }

    #[test]
    fn not_too_many_wait() {
        let mut sequence = Sequence::default();
        let late = Packet { cpu: 1, ..Packet::end(1, 0) };
        sequence.add(&late);
        (0..MOST as u64 + 10).for_each(|number| sequence.add(&Packet::end(100 + number, 0)));
        let mut count = 0;
        let mut take = |_: &Packet| {
            count += 1;
            Ok(())
        };
        sequence.release(50, &mut take).expect("taken");
        assert_eq!(count, 11);
    }
}
