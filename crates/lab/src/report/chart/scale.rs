//! Axes: the pixels of values, and the labelled values.

use super::super::number;

/// Values from `low` to `high` are drawn from pixel `from` to pixel `to`.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
    from: i32,
    to: i32,
}

/// The least value of a logarithmic scale.
const MIN_LOGARITHMIC: f64 = 1e-3;
/// Scales of fewer decades than this have labels between them.
const FEW_DECADES: f64 = 2.5;

impl Scale {
    /// A scale of equal steps.
    pub fn linear(low: f64, high: f64, pixels: (i32, i32)) -> Scale {
        let high = if high > low { high } else { low + 1.0 };
        Scale { low, high, logarithmic: false, from: pixels.0, to: pixels.1 }
    }

    /// From zero to a round number above `high`.
    pub fn from_zero(high: f64, pixels: (i32, i32)) -> Scale {
        let high = if high > 0.0 { high } else { 1.0 };
        let step = step(high, 4.0);
        Scale::linear(0.0, (high / step).ceil() * step, pixels)
    }

    /// A logarithmic scale that holds all values, but for the least few of many; none without a positive value.
    pub fn logarithmic(values: impl IntoIterator<Item = f64>, pixels: (i32, i32)) -> Option<Scale> {
        let mut sorted: Vec<f64> =
            values.into_iter().filter(|v| v.is_finite() && *v > 0.0).map(|v| v.max(MIN_LOGARITHMIC)).collect();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (*sorted.get(sorted.len() / 100)?, *sorted.last()?);
        let low = round_down(low);
        let high = round_up(high).max(low * 10.0);
        Some(Scale { low, high, logarithmic: true, from: pixels.0, to: pixels.1 })
    }

    /// The pixel of a value; values beyond the ends are at the ends.
    pub fn at(&self, value: f64) -> i32 {
        let value = value.clamp(self.low, self.high);
        let share = if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + (share * f64::from(self.to - self.from)).round() as i32
    }

    /// Labelled values, about `many` of them.
    pub fn labels(&self, many: f64) -> Vec<(i32, String)> {
        self.ticks(many).into_iter().map(|value| (self.at(value), label(value))).collect()
    }

    fn ticks(&self, many: f64) -> Vec<f64> {
        if !self.logarithmic {
            let step = step(self.high - self.low, many);
            let first = (self.low / step).ceil() as i64;
            let last = (self.high / step + 1e-9).floor() as i64;
            return (first..=last).map(|n| n as f64 * step).collect();
        }
        let decades = (self.high / self.low).log10();
        let within: &[f64] = if decades < FEW_DECADES { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let exponents = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        exponents
            .flat_map(|exponent| within.iter().map(move |digit| digit * 10f64.powi(exponent)))
            .filter(|value| *value >= self.low * 0.999 && *value <= self.high * 1.001)
            .collect()
    }
}

fn label(value: f64) -> String {
    let text = number::fixed(value, 3);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A step of 1, 2 or 5 times a power of ten that gives at most about `many` steps in `span`.
fn step(span: f64, many: f64) -> f64 {
    round_up(span / many)
}

fn round_up(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|digit| digit * decade).find(|v| *v >= value * 0.999).unwrap_or(value)
}

fn round_down(value: f64) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    [5.0, 2.0, 1.0].into_iter().map(|digit| digit * decade).find(|v| *v <= value * 1.001).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_at_round_numbers() {
        let texts = |scale: Scale, many: f64| scale.labels(many).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(texts(Scale::from_zero(93.0, (0, 100)), 4.0), ["0", "50", "100"]);
        let wide = Scale::logarithmic([0.3, 180.0], (0, 300)).unwrap();
        assert_eq!(texts(wide, 8.0), ["1", "10", "100"]);
        assert_eq!((wide.at(0.2), wide.at(200.0), wide.at(1e9)), (0, 300, 300));
        assert_eq!(texts(Scale::logarithmic([2.5, 8.0], (0, 100)).unwrap(), 8.0), ["2", "5", "10", "20"]);
        assert!(Scale::logarithmic([0.0, -1.0, f64::NAN], (0, 100)).is_none());
    }
}
