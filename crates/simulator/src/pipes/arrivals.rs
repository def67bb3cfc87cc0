//! Arrivals at an instance: its pipes have a packet each in turn, in a scrambled order, which changes from round to round. Classes are random, and so
//! is the time between two packets, which is up to twice its mean.

use super::Frame;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sluice_core::pipes::queue_number;

/// Primes; pipes are visited at such a distance, of which their number is no multiple.
const STRIDES: [u64; 2] = [7919, 7907];

/// The packets that come to one instance.
pub(super) struct Arrivals {
    /// The number of its first pipe among those of all instances, and how many it has.
    pub(super) pipes: (u32, u32),
    pub(super) classes: u32,
    /// Lengths: from the first to the second, each equally often.
    pub(super) bytes: (u32, u32),
    mean_ps: u64,
    next_ps: u64,
    number: u64,
    random: ChaCha8Rng,
}

impl Arrivals {
    /// Packets from this time on, as far apart in the mean.
    pub(super) fn new(
        pipes: (u32, u32),
        classes: u32,
        bytes: (u32, u32),
        mean_ps: u64,
        start_ns: u64,
        seed: (u64, u64),
    ) -> Arrivals {
        let mut random = ChaCha8Rng::seed_from_u64(seed.0);
        random.set_stream(seed.1);
        let next_ps = start_ns * 1000 + random.random_range(0..=2 * mean_ps);
        Arrivals { pipes, classes, bytes, mean_ps, next_ps, number: 0, random }
    }

    /// The next packet, if it has come by this time.
    pub(super) fn next(&mut self, until_ns: u64) -> Option<Frame> {
        let arrived_ns = self.next_ps.div_ceil(1000);
        if arrived_ns > until_ns {
            return None;
        }
        let count = u64::from(self.pipes.1);
        let stride = if count % STRIDES[0] == 0 { STRIDES[1] } else { STRIDES[0] };
        let (round, place) = (self.number / count, self.number % count);
        let pipe = ((place * stride + round * 101) % count) as u32;
        let class = self.random.random_range(0..self.classes);
        let bytes = self.random.random_range(self.bytes.0..=self.bytes.1);
        self.next_ps += self.random.random_range(0..=2 * self.mean_ps);
        self.number += 1;
        Some(Frame {
            arrived_ns,
            queue: queue_number(pipe, class),
            pipe: self.pipes.0 + pipe,
            bytes,
            class: class as u8,
            number: Frame::UNCOUNTED,
        })
    }
}
