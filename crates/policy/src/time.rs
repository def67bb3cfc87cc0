//! A time in nanoseconds, as policies write it: with a unit, `s`, `ms`, `us` or `ns`, in any case.

use crate::quantity::{self, UnitError};
use std::ops::RangeInclusive;

const UNITS: &[(&str, u64)] = &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

const UNIT_HELP: &str = "units are s, ms, us and ns, as in \"5ms\"";

/// A text as a time within `range`, ns.
pub(crate) fn read(text: &str, range: &RangeInclusive<u64>) -> Result<u64, UnitError> {
    let error = |cause: String| Err(UnitError { cause, cure: UNIT_HELP.into() });
    let Some((number, unit)) = quantity::split(text) else {
        return error(format!("\"{text}\" is not a number followed by a unit"));
    };
    match of(number, &unit) {
        Some(ns) => within(ns, range, text),
        None if unit.is_empty() => error(format!("\"{text}\" has no unit")),
        None => error(format!("\"{unit}\" is not a unit of time")),
    }
}

/// A number with a unit in lower case, ns; `None` if it is no unit of time.
pub(crate) fn of(number: f64, unit: &str) -> Option<u64> {
    let &(_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    Some((number * factor as f64).round() as u64)
}

/// The time of `text`, if it is within `range`.
pub(crate) fn within(ns: u64, range: &RangeInclusive<u64>, text: &str) -> Result<u64, UnitError> {
    if range.contains(&ns) {
        return Ok(ns);
    }
    let cause = format!("\"{text}\" is not between {} and {}", format(*range.start()), format(*range.end()));
    Err(UnitError { cause, cure: "choose a time within that range".into() })
}

/// A time as policies write it, exactly.
pub(crate) fn format(ns: u64) -> String {
    quantity::format(ns, UNITS, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_units_within_a_range() {
        let range = 100_000..=10_000_000_000;
        for (text, ns) in [("5ms", 5_000_000), ("0.5 MS", 500_000), ("10s", 10_000_000_000), ("100000ns", 100_000)] {
            assert_eq!(read(text, &range), Ok(ns), "{text}");
            assert_eq!(read(&format(ns), &range), Ok(ns), "{text}");
        }
        for (text, cause) in [
            ("99us", "\"99us\" is not between 100us and 10s"),
            ("11s", "\"11s\" is not between 100us and 10s"),
            ("5", "\"5\" has no unit"),
            ("5min", "\"min\" is not a unit of time"),
            ("soon", "\"soon\" is not a number followed by a unit"),
        ] {
            assert_eq!(read(text, &range).unwrap_err().cause, cause);
        }
    }
}
