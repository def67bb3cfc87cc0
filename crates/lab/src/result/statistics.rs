//! Statistics of delays.

use serde::{Deserialize, Serialize};

/// A distribution of delays in milliseconds; percentiles by nearest rank, so each is a value that was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// The number of values.
    pub count: usize,
    /// The least value, ms.
    pub min_ms: f64,
    /// The arithmetic mean, ms.
    pub mean_ms: f64,
    /// The median, ms.
    pub p50_ms: f64,
    /// The 90th percentile, ms.
    pub p90_ms: f64,
    /// The 95th percentile, ms.
    pub p95_ms: f64,
    /// The 99th percentile, ms.
    pub p99_ms: f64,
    /// The greatest value, ms.
    pub max_ms: f64,
}

impl Distribution {
    /// The distribution of these delays; none without delays.
    pub fn of(values_ms: impl IntoIterator<Item = f64>) -> Option<Distribution> {
        let mut sorted: Vec<f64> = values_ms.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        Some(Distribution {
            count: sorted.len(),
            min_ms: *sorted.first()?,
            mean_ms: sorted.iter().sum::<f64>() / sorted.len() as f64,
            p50_ms: nearest_rank(&sorted, 50),
            p90_ms: nearest_rank(&sorted, 90),
            p95_ms: nearest_rank(&sorted, 95),
            p99_ms: nearest_rank(&sorted, 99),
            max_ms: *sorted.last()?,
        })
    }
}

/// The least value that at least `percent` of all do not exceed. `sorted` is not empty.
fn nearest_rank(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted[rank - 1]
}

/// The mean change of delay from one packet to the next, ms, over neighbours that both arrived (RFC 3393's IPDV,
/// absolute). A lost packet is `None`.
pub fn mean_jitter_ms(delays_ms: &[Option<f64>]) -> Option<f64> {
    let changes: Vec<f64> =
        delays_ms.windows(2).filter_map(|pair| Some((pair[1]? - pair[0]?).abs())).collect::<Vec<f64>>();
    if changes.is_empty() {
        return None;
    }
    Some(changes.iter().sum::<f64>() / changes.len() as f64)
}

/// The standard deviation of all these values around their mean; none of fewer than two.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / values.len() as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let d = Distribution::of((1..=200).rev().map(f64::from)).unwrap();
        assert_eq!((d.count, d.min_ms, d.max_ms), (200, 1.0, 200.0));
        assert_eq!((d.p50_ms, d.p90_ms, d.p95_ms, d.p99_ms), (100.0, 180.0, 190.0, 198.0));
        assert_eq!(d.mean_ms, 100.5);
    }

    #[test]
    fn few_values_are_enough_and_none_are_none() {
        let d = Distribution::of([3.0]).unwrap();
        assert_eq!((d.p50_ms, d.p99_ms, d.max_ms), (3.0, 3.0, 3.0));
        assert_eq!(Distribution::of([]), None);
    }

    #[test]
    fn deviation_is_around_the_mean() {
        assert_eq!(standard_deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), Some(2.0));
        assert_eq!((standard_deviation(&[3.0]), standard_deviation(&[])), (None, None));
    }

    #[test]
    fn jitter_does_not_span_losses() {
        assert_eq!(mean_jitter_ms(&[Some(1.0), Some(3.0), None, Some(9.0), Some(8.0)]), Some(1.5));
        assert_eq!(mean_jitter_ms(&[Some(1.0), None, Some(9.0)]), None);
    }
}
