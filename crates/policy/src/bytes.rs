//! An amount of data in bytes, as policies write it.

use crate::quantity::{self, UnitError};
use std::fmt;
use std::str::FromStr;

/// The largest Ethernet frame without VLAN tag or checksum, in bytes.
pub const FRAME_BYTES: u32 = 1514;

/// An amount of data in bytes.
///
/// Written with a unit of powers of 1,024, as `burst_size_kb` of the published format and tc count: `b`, `kb`, `mb`,
/// `gb` (also `kib`, `mib`, `gib`), in any case. In a policy file a plain integer is bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

const UNITS: &[(&str, u64)] = &[("gb", 1 << 30), ("mb", 1 << 20), ("kb", 1 << 10), ("b", 1)];

const UNIT_HELP: &str = "units are b, kb, mb and gb (bytes, powers of 1024), as in \"100kb\"";

impl Bytes {
    /// The largest amount a policy may name: 1 GiB.
    pub const MAX: Bytes = Bytes(1 << 30);

    pub(crate) fn checked(bytes: f64, text: &str) -> Result<Bytes, UnitError> {
        if bytes < 1.0 {
            let cure = "leave it out for the default".into();
            return Err(UnitError { cause: format!("{text} is less than one byte"), cure });
        }
        if bytes > Bytes::MAX.0 as f64 {
            let cause = format!("{text} is above the largest size, {}", Bytes::MAX);
            return Err(UnitError { cause, cure: "check the unit".into() });
        }
        Ok(Bytes(bytes.round() as u64))
    }
}

impl FromStr for Bytes {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Bytes, UnitError> {
        let error = |cause: String, cure: String| Err(UnitError { cause, cure });
        let Some((number, unit)) = quantity::split(text) else {
            return error(format!("\"{text}\" is not a number followed by a unit"), UNIT_HELP.into());
        };
        let name = unit.replace("ib", "b");
        if let Some(&(_, factor)) = UNITS.iter().find(|(unit, _)| *unit == name) {
            return Bytes::checked(number * factor as f64, text);
        }
        if unit.is_empty() {
            return error(format!("\"{text}\" has no unit"), format!("{UNIT_HELP}; or a plain number of bytes"));
        }
        if ["k", "m", "g"].contains(&unit.as_str()) {
            return error(format!("\"{unit}\" is not a unit of size"), format!("write \"{number}{unit}b\""));
        }
        error(format!("\"{unit}\" is not a unit of size"), UNIT_HELP.into())
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&quantity::format(self.0, UNITS, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_units() {
        for (text, bytes) in
            [("100kb", 102_400), ("1mb", 1 << 20), ("1500b", 1500), ("1.5kb", 1536), ("1 GiB", 1 << 30)]
        {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn refuses_with_a_cure() {
        for (text, cure) in [
            ("100k", "write \"100kb\""),
            ("100kbit", UNIT_HELP),
            ("0kb", "leave it out for the default"),
            ("2gb", "check the unit"),
            ("big", UNIT_HELP),
        ] {
            assert_eq!(text.parse::<Bytes>().unwrap_err().cure, cure, "{text}");
        }
    }

    #[test]
    fn prints_what_it_reads() {
        for bytes in [1, 1023, 1024, 1500, 102_400, 1 << 20, (1 << 20) + 1, 1 << 30] {
            assert_eq!(Bytes(bytes).to_string().parse(), Ok(Bytes(bytes)));
        }
        assert_eq!(Bytes(102_400).to_string(), "100kb");
        assert_eq!(Bytes(1500).to_string(), "1500b");
    }
}
