//! Limits of a class's queue: packets, bytes or time, as policies write them.

use crate::bytes::Bytes;
use crate::quantity::{self, UnitError};
use crate::time;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The limit of a class's queue. A packet that finds its class at the limit is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Packets, 1 to [`crate::MAX_QUEUED_PKTS`]. A plain integer in a policy file.
    Pkts(u32),
    /// Bytes, up to [`Bytes::MAX`]. `"64kb"` in a policy file.
    Bytes(Bytes),
    /// The bytes that pass in this time, in nanoseconds, at the rate of the class (its `ceil`, else the link's rate); 1 us to
    /// 10 s. `"50ms"` in a policy file.
    TimeNs(u64),
}

/// The shortest and the longest time limit, ns.
const TIMES_NS: RangeInclusive<u64> = 1_000..=10_000_000_000;

const UNIT_HELP: &str =
    "write packets as a plain number (1000), bytes as \"64kb\", or time at the class's rate as \"50ms\"";

impl FromStr for Limit {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Limit, UnitError> {
        let error = |cause: String, cure: String| Err(UnitError { cause, cure });
        let Some((number, unit)) = quantity::split(text) else {
            return error(format!("\"{text}\" is not a number followed by a unit"), UNIT_HELP.into());
        };
        if let Some(ns) = time::of(number, &unit) {
            return time::within(ns, &TIMES_NS, text).map(Limit::TimeNs);
        }
        match unit.as_str() {
            "b" | "kb" | "mb" | "gb" | "kib" | "mib" | "gib" => text.parse().map(Limit::Bytes),
            "k" | "m" | "g" => error(format!("\"{unit}\" is not a unit of size"), format!("write \"{number}{unit}b\"")),
            "" | "p" | "pkt" | "pkts" | "packet" | "packets" => error(
                format!("\"{text}\" is a number of packets in quotes"),
                format!("write {number}, without quotes or unit"),
            ),
            _ => error(format!("\"{unit}\" is not a unit of size or time"), UNIT_HELP.into()),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Pkts(pkts) => write!(f, "{pkts}"),
            Limit::Bytes(bytes) => bytes.fmt(f),
            Limit::TimeNs(ns) => f.pad(&time::format(*ns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_each_form() {
        for (text, limit) in [
            ("64kb", Limit::Bytes(Bytes(65_536))),
            ("50ms", Limit::TimeNs(50_000_000)),
            ("1.5ms", Limit::TimeNs(1_500_000)),
            ("10s", Limit::TimeNs(10_000_000_000)),
        ] {
            assert_eq!(text.parse(), Ok(limit), "{text}");
            assert_eq!(limit.to_string().parse(), Ok(limit));
        }
    }

    #[test]
    fn refuses_with_a_cure() {
        for (text, cure) in [
            ("1000pkt", "write 1000, without quotes or unit"),
            ("1000", "write 1000, without quotes or unit"),
            ("64k", "write \"64kb\""),
            ("0ms", "choose a time within that range"),
            ("11s", "choose a time within that range"),
            ("64kbit", UNIT_HELP),
        ] {
            assert_eq!(text.parse::<Limit>().unwrap_err().cure, cure, "{text}");
        }
    }
}
