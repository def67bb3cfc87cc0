//! One figure over the repeats of a trial, and the test whether two of them differ.

use serde::Serialize;

use super::measure::Measure;
use super::number::MISSING;
use crate::result::statistics::Distribution;

/// A figure over repeats; the unit is that of the figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The median by nearest rank, so it is a value that was measured.
    pub median: f64,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
    /// The number of repeats with a value.
    pub repeats: usize,
}

impl Spread {
    /// The spread of the finite values; none if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let d = Distribution::of(values.into_iter().filter(|v| v.is_finite()))?;
        Some(Spread { median: d.p50_ms, min: d.min_ms, max: d.max_ms, repeats: d.count })
    }

    /// Whether two spreads are apart by more than their repeats and the measure's resolution.
    pub fn differs(&self, other: &Spread, measure: Measure) -> bool {
        let overlap = self.min <= other.max && other.min <= self.max;
        let (absolute, share) = measure.resolution();
        let resolved = absolute.max(share * self.median.abs().max(other.median.abs()));
        !overlap && (self.median - other.median).abs() > resolved
    }

    /// The median as text.
    pub fn text(&self, measure: Measure) -> String {
        measure.text(self.median)
    }

    /// The least and the greatest as text, if repeats differ visibly.
    pub fn range(&self, measure: Measure) -> Option<String> {
        let (min, max) = (measure.text(self.min), measure.text(self.max));
        (self.repeats > 1 && min != max).then(|| format!("{min}{MISSING}{max}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::measure::Measure;
    use super::*;

    #[test]
    fn differing_spreads_are_apart_and_above_the_resolution() {
        let spread = |values: [f64; 3]| Spread::of(values).unwrap();
        let (low, high, near) = (spread([4.0, 5.0, 6.0]), spread([7.0, 8.0, 9.0]), spread([5.9, 6.5, 7.5]));
        assert!(low.differs(&high, Measure::Added) && high.differs(&low, Measure::Added));
        assert!(!low.differs(&near, Measure::Added) && !near.differs(&high, Measure::Added));
        let single = |value: f64| Spread::of([value]).unwrap();
        assert!(!single(1.0).differs(&single(1.05), Measure::Added), "less than what is resolved");
        assert!(single(1.0).differs(&single(1.2), Measure::Added));
        assert_eq!(Spread::of([f64::NAN]), None);
        assert_eq!(spread([3.0, 1.0, 2.0]).range(Measure::Added).unwrap(), "1.00–3.00");
        assert_eq!(single(1.0).range(Measure::Added), None);
    }
}
