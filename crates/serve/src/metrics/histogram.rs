//! Times in the queue as a histogram of Prometheus.

use sluice_abi as abi;
use sluice_kernel::status::Sojourn;

/// Bounds: 1,024 ns times these powers of two, from 16 microseconds to 4.3 seconds. The kernel's own buckets end there, so that
/// every count is exact.
const POWERS: std::ops::RangeInclusive<u32> = 4..=22;

/// A histogram as the metrics library takes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// Sum of all waits, seconds, to 12.5 %: each wait counts as the middle of its bucket.
    pub sum_s: f64,
    /// Number of packets.
    pub count: u64,
    /// Upper bound in seconds, and the packets above the bound before it and up to this one.
    pub buckets: Vec<(f64, u64)>,
}

impl From<&Sojourn> for Histogram {
    fn from(sojourn: &Sojourn) -> Histogram {
        let bounds_ns = || POWERS.map(|power| 1024u64 << power);
        let mut buckets: Vec<(f64, u64)> = bounds_ns().map(|bound| (bound as f64 / 1e9, 0)).collect();
        buckets.push((f64::MAX, 0));
        let mut sum_ns = 0.0;
        let last = sojourn.0.len().saturating_sub(1);
        for (bucket, count) in sojourn.0.iter().enumerate() {
            let (from, to) = abi::sojourn_bucket_ns(bucket);
            sum_ns += *count as f64 * (from + to) as f64 / 2.0;
            // The last bucket holds all longer waits, too.
            let place = bounds_ns().position(|bound| to <= bound && bucket < last).unwrap_or(buckets.len() - 1);
            buckets[place].1 += count;
        }
        Histogram { sum_s: sum_ns / 1e9, count: sojourn.pkts(), buckets }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_is_below_its_bound_and_above_the_one_before() {
        for bucket in 0..abi::SL_SOJOURN_BUCKETS as usize {
            let mut sojourn = Sojourn::default();
            sojourn.0[bucket] = 3;
            let histogram = Histogram::from(&sojourn);
            assert_eq!(histogram.count, 3);
            let full: Vec<usize> = (0..histogram.buckets.len()).filter(|n| histogram.buckets[*n].1 > 0).collect();
            assert_eq!(full.len(), 1, "bucket {bucket}");
            let (from, to) = abi::sojourn_bucket_ns(bucket);
            let above = full[0].checked_sub(1).map_or(0.0, |before| histogram.buckets[before].0);
            assert!(from as f64 / 1e9 >= above * 0.999_999, "bucket {bucket} begins above {above}");
            if bucket + 1 < abi::SL_SOJOURN_BUCKETS as usize {
                assert!(to as f64 / 1e9 <= histogram.buckets[full[0]].0 * 1.000_001, "bucket {bucket}");
            }
            assert!((histogram.sum_s - 3.0 * (from + to) as f64 / 2e9).abs() < 1e-9);
        }
    }
}
