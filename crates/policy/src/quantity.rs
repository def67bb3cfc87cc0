//! Numbers with units: splitting the text, and the error of unreadable text. Each quantity (`rate`, `bytes`, `limit`) defines
//! the meaning of its units.

use std::fmt;

/// An unreadable quantity, and the text to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitError {
    /// The error, as a clause: `"20mbps" is ambiguous`.
    pub cause: String,
    /// The text to write instead.
    pub cure: String,
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.cause, self.cure)
    }
}

impl std::error::Error for UnitError {}

/// Splits `text` into a non-negative decimal number and a unit in lower case; the unit may be empty and may be
/// separated by spaces. `None` if it does not begin with such a number.
pub(crate) fn split(text: &str) -> Option<(f64, String)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    // `f64::from_str` alone would also take ".", "5." and ".5".
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() {
        return None;
    }
    let number: f64 = number.parse().ok()?;
    Some((number, unit.trim_start().to_ascii_lowercase()))
}

/// Writes `value` in the largest of `units` (largest first, the last with factor 1) that shows it exactly with at
/// most `decimals` decimals, so that what is printed reads back as the same number.
pub(crate) fn format(value: u64, units: &[(&str, u64)], decimals: u32) -> String {
    let scale = 10u64.pow(decimals);
    for &(unit, factor) in units {
        let rest = value % factor;
        if value < factor || (u128::from(rest) * u128::from(scale)) % u128::from(factor) != 0 {
            continue;
        }
        let fraction = u128::from(rest) * u128::from(scale) / u128::from(factor);
        let text = format!("{}.{fraction:0width$}", value / factor, width = decimals as usize);
        let text = if decimals == 0 { text.trim_end_matches(".0") } else { text.trim_end_matches('0') };
        return format!("{}{unit}", text.trim_end_matches('.'));
    }
    let unit = units.last().map_or("", |(unit, _)| unit);
    format!("{value}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_number_and_unit() {
        assert_eq!(split("20mbit"), Some((20.0, "mbit".into())));
        assert_eq!(split(" 1.5 MBit "), Some((1.5, "mbit".into())));
        assert_eq!(split("7"), Some((7.0, String::new())));
        for bad in ["", "mbit", "-1mbit", ".5mbit", "5.mbit", "1.2.3mbit", "inf"] {
            assert_eq!(split(bad), None, "{bad}");
        }
    }

    #[test]
    fn formats_exactly() {
        let units = [("k", 1000), ("", 1)];
        assert_eq!(format(1500, &units, 3), "1.5k");
        assert_eq!(format(20_000, &units, 3), "20k");
        assert_eq!(format(20_000, &units, 0), "20k");
        assert_eq!(format(1501, &units, 0), "1501");
        assert_eq!(format(0, &units, 3), "0");
        assert_eq!(format(999, &units, 3), "999");
    }
}
