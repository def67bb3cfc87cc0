//! Estimates from weighted records, with their standard errors.
//!
//! A packet that was recorded by a chance of 1 in w stands for w: the sum of w times y over the records is an unbiased estimate of the sum of
//! y over all packets (Horvitz and Thompson, 1952), also if w changes from packet to packet, as long as it does not depend on the packet's own
//! y. Since packets are chosen independently, the variance is estimated by the sum of w (w - 1) y^2.

use std::collections::BTreeMap;

/// How many standard errors either side of an estimate hold the truth with 95 %, if the records are not few.
pub const Z95: f64 = 1.959_964;

/// An estimate of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sum {
    total: f64,
    variance: f64,
    records: u64,
}

impl Sum {
    /// Adds a record of this weight and value.
    pub fn add(&mut self, weight: u32, value: f64) {
        let weight = f64::from(weight);
        self.total += weight * value;
        self.variance += weight * (weight - 1.0) * value * value;
        self.records += 1;
    }

    /// The estimate.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Its standard error; 0 if every packet was recorded.
    pub fn error(&self) -> f64 {
        self.variance.sqrt()
    }

    /// Records that it is made of.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The interval that holds the truth with 95 %. It does not reach below 0.
    pub fn interval(&self) -> (f64, f64) {
        let reach = Z95 * self.error();
        ((self.total - reach).max(0.0), self.total + reach)
    }
}

/// Packets in all, and bytes by port. Where both ports are known, the lower one counts: it is the service's more often than not.
#[derive(Debug, Clone, Default)]
pub struct Estimates {
    /// Packets.
    pub packets: Sum,
    /// Bytes.
    pub bytes: Sum,
    /// Bytes by port.
    pub by_port: BTreeMap<u16, Sum>,
}

impl Estimates {
    /// Adds a packet.
    pub fn add(&mut self, packet: &crate::Packet) {
        if packet.weight == 0 {
            return;
        }
        let bytes = f64::from(packet.length);
        self.packets.add(packet.weight, f64::from(packet.segments.max(1)));
        self.bytes.add(packet.weight, bytes);
        if let Some(port) = packet.sport.into_iter().chain(packet.dport).min() {
            self.by_port.entry(port).or_default().add(packet.weight, bytes);
        }
    }

    /// The ports with most bytes, the largest first.
    pub fn largest_ports(&self, count: usize) -> Vec<(u16, Sum)> {
        let mut ports: Vec<_> = self.by_port.iter().map(|(port, sum)| (*port, *sum)).collect();
        ports.sort_by(|a, b| b.1.total().total_cmp(&a.1.total()));
        ports.truncate(count);
        ports
    }
}

/// Packets of about one size that a port must have had for its bytes to be known to a part `precision` with 95 %, at 1 in `one_in`.
///
/// The relative standard error of n packets is sqrt((one_in - 1) (1 + cv^2) / n), where cv is the standard deviation of sizes by their mean.
pub fn packets_needed(one_in: u32, precision: f64, cv: f64) -> f64 {
    f64::from(one_in - 1) * (1.0 + cv * cv) * (Z95 / precision).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SplitMix64 (Steele, Lea and Flood, 2014).
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }

        /// Packets that are passed over before the next of 1 in `one_in` is chosen: geometric.
        fn skip(&mut self, one_in: f64) -> u64 {
            let unit = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
            ((1.0 - unit).ln() / (1.0 - 1.0 / one_in).ln()) as u64
        }
    }

    /// The size of a packet of a port: full ones, small ones, and those between.
    fn size(port: u16, number: u64) -> u32 {
        let random = Random(number ^ u64::from(port) << 48).next();
        match port {
            443 => [1514, 1514, 1514, 1514, 66][(random % 5) as usize],
            _ => 64 + (random % 1400) as u32,
        }
    }

    /// Of 100 seeds, how many have the truth in their interval and within a part of it.
    fn trial(packets: u64, port: u16, precision: f64) -> (u32, u32) {
        const ONE_IN: u32 = 100;
        let truth: f64 = (0..packets).map(|number| f64::from(size(port, number))).sum();
        let (mut held, mut near) = (0, 0);
        for seed in 0..100 {
            let mut random = Random(seed << 32 ^ u64::from(port));
            let mut sum = Sum::default();
            let mut number = random.skip(ONE_IN.into());
            while number < packets {
                sum.add(ONE_IN, size(port, number).into());
                number += 1 + random.skip(ONE_IN.into());
            }
            let (low, high) = sum.interval();
            held += u32::from((low..=high).contains(&truth));
            near += u32::from((sum.total() - truth).abs() <= precision * truth);
        }
        (held, near)
    }

    #[test]
    fn intervals_hold_the_truth() {
        for port in [443, 5201] {
            let (held, _) = trial(200_000, port, 0.01);
            assert!((90..=99).contains(&held), "port {port}: {held} of 100 intervals hold the truth");
        }
    }

    #[test]
    fn large_ports_are_known_to_a_hundredth() {
        for (port, cv) in [(443, 0.47), (5201, 0.53)] {
            let needed = packets_needed(100, 0.01, cv) as u64;
            let (held, near) = trial(needed, port, 0.01);
            assert!((90..=99).contains(&held), "port {port}: {held} of 100 intervals hold the truth");
            // At exactly what is needed, 95 are expected; the standard deviation of that count is 2.2.
            assert!(near >= 90, "port {port} with {needed} packets: {near} of 100 are within 1 %");
            let (_, near) = trial(2 * needed, port, 0.01);
            assert!(near >= 95, "port {port} with twice {needed} packets: {near} of 100 are within 1 %");
        }
    }

    #[test]
    fn what_was_not_sampled_has_no_error() {
        let mut sum = Sum::default();
        [100.0, 200.0].iter().for_each(|value| sum.add(1, *value));
        assert_eq!((sum.total(), sum.error(), sum.interval()), (300.0, 0.0, (300.0, 300.0)));
    }
}
