//! A rate in bits per second, as policies and the command line write it.

use crate::quantity::{self, UnitError};
use std::fmt;
use std::str::FromStr;

/// A rate in bits per second, [`Rate::MIN`] to [`Rate::MAX`] when it comes from text.
///
/// Written with a unit of powers of 1,000: `bit`, `kbit`, `mbit`, `gbit`, `tbit`, in any case, with or without `/s`.
/// tc's `bps` forms count bytes where the rest of the world counts bits, so they are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

const UNITS: &[(&str, u64)] =
    &[("tbit", 1_000_000_000_000), ("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)];

const UNIT_HELP: &str = "units are bit, kbit, mbit, gbit and tbit (bits per second, powers of 1000), as in \"20mbit\"";

impl Rate {
    /// The smallest rate: one byte per second, the unit the scheduler counts in.
    pub const MIN: Rate = Rate(8);
    /// The largest rate: 1 Tbit/s.
    pub const MAX: Rate = Rate(1_000_000_000_000);

    /// Whole bytes per second, rounded down.
    pub fn bytes_per_s(self) -> u64 {
        self.0 / 8
    }

    /// The bytes that pass in `ns` nanoseconds at this rate, rounded up.
    pub fn bytes_in_ns(self, ns: u64) -> u64 {
        let bytes = (u128::from(self.0) * u128::from(ns)).div_ceil(8 * 1_000_000_000);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// The rate of `mbps` million bits per second, as the published key `rate_limit_mbps` gives it.
    pub(crate) fn from_mbps(mbps: f64) -> Result<Rate, UnitError> {
        Rate::checked(mbps * 1e6, &format!("{mbps} Mbit/s"))
    }

    fn checked(bits: f64, text: &str) -> Result<Rate, UnitError> {
        let error = |cause: String, cure: &str| Err(UnitError { cause, cure: cure.into() });
        if bits <= 0.0 {
            return error("a rate of zero lets nothing pass".into(), "leave it out for no limit");
        }
        if bits > Rate::MAX.0 as f64 {
            return error(format!("{text} is above the largest rate, {}", Rate::MAX), "check the unit");
        }
        if bits < Rate::MIN.0 as f64 {
            return error(format!("{text} is below the smallest rate, {}", Rate::MIN), "check the unit");
        }
        // Up to 1e12 every whole number is exact in an f64.
        Ok(Rate(bits.round() as u64))
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Rate, UnitError> {
        let error = |cause: String, cure: String| Err(UnitError { cause, cure });
        if let Some(rate) = text.trim_start().strip_prefix('-') {
            return error("a rate cannot be negative".into(), format!("write \"{rate}\""));
        }
        let Some((number, unit)) = quantity::split(text) else {
            return error(format!("\"{text}\" is not a number followed by a unit"), UNIT_HELP.into());
        };
        let unit = unit.strip_suffix("/s").unwrap_or(&unit);
        if let Some(&(_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) {
            return Rate::checked(number * factor as f64, text);
        }
        if unit.is_empty() {
            let cure = format!("write \"{}mbit\" if megabits per second are meant", text.trim());
            return error(format!("\"{text}\" has no unit"), cure);
        }
        let bytes_unit = unit.strip_suffix("bps").filter(|p| ["", "k", "m", "g", "t"].contains(p));
        if let Some(prefix) = bytes_unit {
            return error(
                format!("the unit of \"{text}\" is ambiguous: to tc it is bytes, to most people bits per second"),
                format!(
                    "write \"{number}{prefix}bit\" for bits, or \"{}{prefix}bit\" for bytes per second",
                    number * 8.0
                ),
            );
        }
        let meant = unit.trim_end_matches("b").trim_end_matches("ib");
        if ["k", "m", "g", "t"].contains(&meant) {
            return error(format!("\"{unit}\" is not a unit of rate"), format!("write \"{number}{meant}bit\""));
        }
        error(format!("\"{unit}\" is not a unit of rate"), UNIT_HELP.into())
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&quantity::format(self.0, UNITS, 3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_units() {
        for (text, bits) in [
            ("20mbit", 20_000_000),
            ("1gbit", 1_000_000_000),
            ("64kbit", 64_000),
            ("1.5mbit", 1_500_000),
            ("8bit", 8),
            ("1tbit", 1_000_000_000_000),
            ("20 Mbit/s", 20_000_000),
            ("0.3mbit", 300_000),
        ] {
            assert_eq!(text.parse(), Ok(Rate(bits)), "{text}");
        }
    }

    #[test]
    fn refuses_with_a_cure() {
        for (text, cure) in [
            ("1mbps", "write \"1mbit\" for bits, or \"8mbit\" for bytes per second"),
            ("1500bps", "write \"1500bit\" for bits, or \"12000bit\" for bytes per second"),
            ("20M", "write \"20mbit\""),
            ("20mb", "write \"20mbit\""),
            ("20", "write \"20mbit\" if megabits per second are meant"),
            ("-5mbit", "write \"5mbit\""),
            ("20mbti", UNIT_HELP),
            ("fast", UNIT_HELP),
            ("0mbit", "leave it out for no limit"),
            ("2tbit", "check the unit"),
            ("7bit", "check the unit"),
        ] {
            assert_eq!(text.parse::<Rate>().unwrap_err().cure, cure, "{text}");
        }
    }

    #[test]
    fn prints_what_it_reads() {
        for bits in [8, 999, 1000, 1001, 1_500_000, 12_345_678, 20_000_000, 999_999_999_999, 1_000_000_000_000] {
            assert_eq!(Rate(bits).to_string().parse(), Ok(Rate(bits)));
        }
        assert_eq!(Rate(1_500_000).to_string(), "1.5mbit");
        assert_eq!(Rate(12_345_678).to_string(), "12345.678kbit");
    }

    #[test]
    fn counts_bytes_in_time() {
        assert_eq!(Rate(10_000_000).bytes_per_s(), 1_250_000);
        assert_eq!(Rate(10_000_000).bytes_in_ns(10_000_000), 12_500);
        assert_eq!(Rate(8).bytes_in_ns(1), 1);
    }
}
