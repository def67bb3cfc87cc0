//! Mean, deviation, least and most of a sequence of numbers, without keeping it.

/// Moments of the numbers so far, by the method of Welford (1962), which stays exact where the sum of squares would cancel; a number that
/// comes several times at once is added as Chan, Golub and LeVeque (1983) join two sets.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Moments {
    count: u64,
    mean: f64,
    /// Sum of the squares of distances from the mean.
    squares: f64,
    min: f64,
    max: f64,
}

impl Moments {
    /// Adds a number that came so many times.
    pub fn add(&mut self, value: f64, times: u64) {
        if times == 0 {
            return;
        }
        if self.count == 0 {
            (self.min, self.max) = (value, value);
        }
        let before = self.count as f64;
        self.count += times;
        let distance = value - self.mean;
        let step = distance * times as f64 / self.count as f64;
        self.mean += step;
        self.squares += distance * step * before;
        (self.min, self.max) = (self.min.min(value), self.max.max(value));
    }

    fn known(&self, value: f64) -> Option<f64> {
        (self.count > 0).then_some(value)
    }

    /// How many numbers there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean.
    pub fn mean(&self) -> Option<f64> {
        self.known(self.mean)
    }

    /// Their standard deviation as an estimate from a sample (divided by n - 1); none for fewer than two.
    pub fn deviation(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.squares / (self.count - 1) as f64).sqrt())
    }

    /// The least.
    pub fn min(&self) -> Option<f64> {
        self.known(self.min)
    }

    /// The most.
    pub fn max(&self) -> Option<f64> {
        self.known(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (mean, (squares / (values.len() - 1) as f64).sqrt())
    }

    proptest! {
        #[test]
        fn moments_equal_the_textbook(parts in prop::collection::vec((0.0..1e6f64, 1..5u64), 2..200)) {
            let mut moments = Moments::default();
            let mut values = Vec::new();
            for &(value, times) in &parts {
                moments.add(value, times);
                values.extend(std::iter::repeat_n(value, times as usize));
            }
            let (mean, deviation) = naive(&values);
            prop_assert!((moments.mean().unwrap() - mean).abs() <= 1e-9 * mean.max(1.0));
            prop_assert!((moments.deviation().unwrap() - deviation).abs() <= 1e-6 * deviation.max(1.0));
            prop_assert_eq!(moments.count(), values.len() as u64);
            prop_assert_eq!(moments.min(), values.iter().copied().reduce(f64::min));
            prop_assert_eq!(moments.max(), values.iter().copied().reduce(f64::max));
        }
    }

    #[test]
    fn large_numbers_that_differ_little_keep_their_deviation() {
        let mut moments = Moments::default();
        for value in [4.0, 7.0, 13.0, 16.0] {
            moments.add(1e9 + value, 1);
        }
        assert!((moments.deviation().expect("four values") - 30f64.sqrt()).abs() < 1e-6);
    }

    #[test]
    fn nothing_has_no_moments() {
        let mut moments = Moments::default();
        moments.add(3.0, 0);
        assert_eq!((moments.mean(), moments.deviation(), moments.min(), moments.max()), (None, None, None, None));
        moments.add(3.0, 1);
        assert_eq!((moments.mean(), moments.deviation()), (Some(3.0), None));
    }
}
