//! Times in the queue, as histograms have them.

use sluice_abi as abi;

/// Histogram of waits: bucket `b` counts the packets whose wait is within [`sluice_abi::sojourn_bucket_ns`] of `b`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sojourn(pub Vec<u64>);

impl Default for Sojourn {
    fn default() -> Sojourn {
        Sojourn(vec![0; abi::SL_SOJOURN_BUCKETS as usize])
    }
}

impl Sojourn {
    pub(super) fn add(&mut self, counts: &[u64]) {
        self.0.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }

    /// Number of packets that the histogram counts.
    pub fn pkts(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The waits counted since `earlier`. None: counting has begun anew in between.
    pub fn since(&self, earlier: &Sojourn) -> Option<Sojourn> {
        let pairs = self.0.iter().zip(&earlier.0);
        pairs.map(|(now, then)| now.checked_sub(*then)).collect::<Option<Vec<u64>>>().map(Sojourn)
    }

    /// The middle of the bucket in which the quantile (0 to 1) lies, microseconds: right to 12.5 %. None: the histogram is empty.
    pub fn quantile_us(&self, quantile: f64) -> Option<f64> {
        abi::sojourn_quantile_us(&self.0, quantile)
    }

    /// Upper bound of all waits, microseconds: the end of the last bucket that counts any.
    pub fn max_us(&self) -> Option<f64> {
        let last = self.0.iter().rposition(|count| *count > 0)?;
        Some(abi::sojourn_bucket_ns(last).1 as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_in_their_bucket() {
        let mut sojourn = Sojourn::default();
        assert_eq!((sojourn.quantile_us(0.5), sojourn.max_us()), (None, None));
        sojourn.0[2] = 98;
        sojourn.0[40] = 2;
        let (from, to) = abi::sojourn_bucket_ns(40);
        assert_eq!(sojourn.quantile_us(0.5), Some(2.56));
        assert!((from as f64 / 1e3..to as f64 / 1e3).contains(&sojourn.quantile_us(0.99).unwrap_or(0.0)));
        assert_eq!(sojourn.max_us(), Some(to as f64 / 1e3));
    }

    #[test]
    fn a_difference_is_of_what_came_since() {
        let (mut then, mut now) = (Sojourn::default(), Sojourn::default());
        then.0[3] = 5;
        now.0[3] = 5;
        now.0[9] = 1;
        let since = now.since(&then).unwrap_or_default();
        assert_eq!((since.pkts(), since.0[9]), (1, 1));
        assert_eq!(then.since(&now), None);
    }
}
