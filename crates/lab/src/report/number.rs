//! Numbers and names as text.

/// The sign for a missing figure.
pub const MISSING: &str = "–";

/// A value with three digits or so; never "NaN" nor "-0".
pub fn digits(value: f64) -> String {
    if !value.is_finite() {
        return MISSING.to_owned();
    }
    let decimals = match value.abs() {
        v if v >= 99.5 => 0,
        v if v >= 9.95 => 1,
        _ => 2,
    };
    fixed(value, decimals)
}

/// A value with this many digits behind the point.
pub fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return MISSING.to_owned();
    }
    let text = format!("{value:.decimals$}");
    if text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') {
        text.trim_start_matches('-').to_owned()
    } else {
        text
    }
}

/// A rate in bits per second.
pub fn rate(bps: u64) -> String {
    if bps == 0 {
        return "unlimited".to_owned();
    }
    let (unit, name) = match bps {
        0..1_000_000 => (1e3, "kbit/s"),
        1_000_000..1_000_000_000 => (1e6, "Mbit/s"),
        _ => (1e9, "Gbit/s"),
    };
    let value = format!("{:.3}", bps as f64 / unit);
    format!("{} {name}", value.trim_end_matches('0').trim_end_matches('.'))
}

/// A duration in seconds, minutes or hours.
pub fn duration(s: f64) -> String {
    match s {
        s if !s.is_finite() => MISSING.to_owned(),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// The text on one line, without control characters: names come from files.
pub fn plain(text: &str) -> String {
    let printable: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    printable.split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// A count with its noun: `one`, or `many`.
pub fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_finite() {
        assert_eq!([0.1234, 12.34, 1234.5, -0.001, 99.6].map(digits), ["0.12", "12.3", "1234", "0.00", "100"]);
        assert_eq!([f64::NAN, f64::INFINITY, -f64::INFINITY].map(digits), [MISSING; 3]);
        assert_eq!([512_000, 20_000_000, 2_500_000_000].map(rate), ["512 kbit/s", "20 Mbit/s", "2.5 Gbit/s"]);
        assert_eq!([45.2, 600.0, 9000.0].map(duration), ["45 s", "10 min", "2.5 h"]);
        assert_eq!(plain("a\u{1b}[31m\n b"), "a [31m b");
    }
}
