//! A source of packets of one class for one tx queue.

use rand::Rng;
use rand_distr::{Distribution, Exp1};

/// When a source sends.
#[derive(Debug, Clone, Copy)]
pub enum Pattern {
    /// A packet at equal distances.
    Constant {
        /// The mean rate.
        bits_per_second: u64,
    },
    /// Packets at random, each independent of those before.
    Poisson {
        /// The mean rate.
        bits_per_second: u64,
    },
    /// So many packets at once, at equal distances.
    Bursts {
        /// The mean rate.
        bits_per_second: u64,
        /// Packets of a burst.
        packets: u32,
    },
    /// Another packet for each that leaves the queue, so that so many always wait.
    Backlogged {
        /// Packets that wait.
        packets: u32,
    },
}

/// A source.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    /// The tx queue that its packets come to.
    pub queue: usize,
    /// Their class.
    pub class: u32,
    /// Their lengths: from the first to the second, each equally often.
    pub bytes: (u32, u32),
    /// When it sends.
    pub pattern: Pattern,
    /// It sends from this time on.
    pub from_ns: u64,
    /// It sends no more from this time on.
    pub until_ns: u64,
    /// For so long it sends and for so long it pauses, in turn; 0 for both: it does not pause.
    pub on_off_ns: (u64, u64),
}

impl Source {
    /// A source that always has packets of this length.
    pub fn backlogged(queue: usize, class: u32, bytes: u32) -> Source {
        Source {
            queue,
            class,
            bytes: (bytes, bytes),
            pattern: Pattern::Backlogged { packets: 4 },
            from_ns: 0,
            until_ns: u64::MAX,
            on_off_ns: (0, 0),
        }
    }

    /// Whether it sends at this time.
    pub(crate) fn sends_at(&self, now_ns: u64) -> bool {
        let (on, off) = self.on_off_ns;
        (self.from_ns..self.until_ns).contains(&now_ns) && (on + off == 0 || (now_ns - self.from_ns) % (on + off) < on)
    }

    /// When it goes on, if it pauses at this time.
    pub(crate) fn goes_on_ns(&self, now_ns: u64) -> u64 {
        if now_ns < self.from_ns {
            return self.from_ns;
        }
        let period = self.on_off_ns.0 + self.on_off_ns.1;
        if period == 0 { u64::MAX } else { now_ns - (now_ns - self.from_ns) % period + period }
    }

    /// The length of its next packet.
    pub(crate) fn next_bytes(&self, random: &mut impl Rng) -> u32 {
        random.random_range(self.bytes.0..=self.bytes.1)
    }

    /// Packets that it sends at once, and how long after them it sends again; none: when one has left.
    pub(crate) fn next(&self, random: &mut impl Rng) -> (u32, Option<u64>) {
        let mean_bytes = (u64::from(self.bytes.0) + u64::from(self.bytes.1)) / 2;
        let apart_ns = |bits_per_second: u64, packets: u32| {
            (mean_bytes * u64::from(packets) * 8_000_000_000 / bits_per_second).max(1)
        };
        match self.pattern {
            Pattern::Constant { bits_per_second } => (1, Some(apart_ns(bits_per_second, 1))),
            Pattern::Poisson { bits_per_second } => {
                let times: f64 = Exp1.sample(random);
                (1, Some((times * apart_ns(bits_per_second, 1) as f64) as u64))
            }
            Pattern::Bursts { bits_per_second, packets } => (packets, Some(apart_ns(bits_per_second, packets))),
            Pattern::Backlogged { packets } => (packets, None),
        }
    }
}
