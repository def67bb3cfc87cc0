//! One figure over the repeats of a trial, and when two of them differ.

use serde::Serialize;

use super::measure::Measure;
use super::number::NOTHING;
use crate::statistics::Distribution;

/// A figure over repeats; the unit is that of the figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// By nearest rank, so it is a value that was measured.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// How many repeats have it.
    pub repeats: usize,
}

impl Spread {
    /// Of the finite ones of these values, or nothing if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let d = Distribution::of(values.into_iter().filter(|v| v.is_finite()))?;
        Some(Spread { median: d.p50_ms, min: d.min_ms, max: d.max_ms, repeats: d.count })
    }

    /// Whether the two are further apart than their repeats and than what the measure resolves.
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

    /// The least and the greatest as text, where there are repeats that differ visibly.
    pub fn range(&self, measure: Measure) -> Option<String> {
        let (min, max) = (measure.text(self.min), measure.text(self.max));
        (self.repeats > 1 && min != max).then(|| format!("{min}{NOTHING}{max}"))
    }
}
