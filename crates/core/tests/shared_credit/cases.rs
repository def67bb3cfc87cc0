//! Random cases of instances that share a link, and what is asked of what they sent.

use proptest::{prelude::*, strategy::BoxedStrategy};

/// The longest frame.
pub const FRAME: u32 = 1500;
pub const START_NS: u64 = 1_000_000_000;

/// A case.
#[derive(Debug, Clone)]
pub struct Case {
    /// Instances, 1 to 64.
    pub instances: u32,
    /// The rate of the link, bit/s.
    pub rate: u64,
    /// Its burst, ns.
    pub burst_ns: u64,
    /// Weights of two classes.
    pub weights: [u32; 2],
    /// Chooses all else, and the interleaving.
    pub seed: u64,
}

/// The cases of all laws.
pub struct Cases {
    most: u32,
}

/// Cases of up to so many instances.
pub fn of(most: u32) -> Cases {
    Cases { most }
}

impl Cases {
    pub fn cases(self) -> BoxedStrategy<Case> {
        let instances = prop_oneof![1..=8u32, 1..=self.most];
        let rate =
            prop_oneof![Just(10_000_000u64), Just(1_000_000_000), Just(10_000_000_000), 1_000_000..100_000_000_000u64];
        (instances, rate, 0..2_000_000u64, [1..10u32, 1..10u32], any::<u64>())
            .prop_map(|(instances, rate, burst_ns, weights, seed)| Case {
                instances: instances.max(1),
                rate,
                burst_ns,
                weights,
                seed,
            })
            .boxed()
    }
}

/// Random numbers of a case (xorshift64*): the case shrinks by its seed, and steps are cheap.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) % n.max(1)
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// The most by which charges (time in ns, bytes) exceed a rate in any window.
pub fn most_ahead(charges: impl Iterator<Item = (u64, u32)>, rate: u64) -> f64 {
    let (mut ahead, mut most, mut last) = (0.0f64, 0.0f64, 0);
    for (at_ns, bytes) in charges {
        ahead = (ahead - rate as f64 / 8e9 * at_ns.saturating_sub(last) as f64).max(0.0) + f64::from(bytes);
        last = last.max(at_ns);
        most = most.max(ahead);
    }
    most
}

/// Bytes that a rate sends in a time.
pub fn bytes_in(rate: u64, ns: u64) -> f64 {
    rate as f64 / 8e9 * ns as f64
}

/// The time that so many packets of a frame take at the rate of a case, ns.
pub fn time_of(case: &Case, packets: u64) -> u64 {
    packets * u64::from(FRAME) * 8_000_000_000 / case.rate
}
