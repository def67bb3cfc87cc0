//! Quantities in the lab's files.

use serde::{Deserialize, Serialize};

/// A time: "250ms", "1.5s", "20us".
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Milliseconds(pub f64);

/// A rate: "20mbit", "105%" of the contender's rate, or "max" for as fast as the sender can.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub enum Rate {
    /// Bits per second.
    Bps(u64),
    /// Percent of the trial's rate.
    Percent(f64),
    /// No limit.
    Max,
}

/// The TOS byte, written as a DSCP: "ef", "cs0" to "cs7", "af11" to "af43", "le", or a number below 64.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Tos(pub u8);

/// Splits a text into its number and unit.
fn split(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    number.is_finite().then_some((number, text[end..].trim()))
}

impl TryFrom<String> for Milliseconds {
    type Error = String;

    fn try_from(text: String) -> Result<Milliseconds, String> {
        let ms = split(&text).and_then(|(number, unit)| match unit {
            "us" => Some(number / 1e3),
            "ms" => Some(number),
            "s" => Some(number * 1e3),
            "m" => Some(number * 6e4),
            _ => None,
        });
        ms.map(Milliseconds).ok_or_else(|| format!("\"{text}\" is no time; write it as 20us, 250ms, 1.5s or 2m"))
    }
}

impl From<Milliseconds> for String {
    fn from(ms: Milliseconds) -> String {
        format!("{}ms", ms.0)
    }
}

impl Milliseconds {
    /// The time in seconds.
    pub fn seconds(self) -> f64 {
        self.0 / 1e3
    }

    /// The time in iproute2's notation.
    pub fn us(self) -> String {
        format!("{:.0}us", self.0 * 1e3)
    }
}

impl TryFrom<String> for Rate {
    type Error = String;

    fn try_from(text: String) -> Result<Rate, String> {
        if text == "max" {
            return Ok(Rate::Max);
        }
        let rate = split(&text).and_then(|(number, unit)| match unit {
            "kbit" => Some(Rate::Bps((number * 1e3) as u64)),
            "mbit" => Some(Rate::Bps((number * 1e6) as u64)),
            "gbit" => Some(Rate::Bps((number * 1e9) as u64)),
            "%" => Some(Rate::Percent(number)),
            _ => None,
        });
        let rate = rate.filter(|rate| !matches!(rate, Rate::Bps(0)) && *rate != Rate::Percent(0.0));
        rate.ok_or_else(|| format!("\"{text}\" is no rate; write it as 500kbit, 20mbit, 1gbit, 105% or max"))
    }
}

impl Rate {
    /// Bits per second at this rate of the trial; none without a limit.
    pub fn bps(self, trial_bps: u64) -> Option<u64> {
        match self {
            Rate::Bps(bps) => Some(bps),
            Rate::Percent(percent) => Some((trial_bps as f64 * percent / 100.0).round() as u64),
            Rate::Max => None,
        }
    }
}

impl TryFrom<String> for Tos {
    type Error = String;

    fn try_from(text: String) -> Result<Tos, String> {
        let number = |text: &str, below: u8| text.parse::<u8>().ok().filter(|number| *number < below);
        let dscp = match text.as_str() {
            "ef" => Some(46),
            "va" => Some(44),
            "le" => Some(1),
            name => match (name.strip_prefix("cs"), name.strip_prefix("af")) {
                (Some(class), _) => number(class, 8).map(|class| class * 8),
                (_, Some(af)) => number(af, 44)
                    .filter(|af| (1..=4).contains(&(af / 10)) && (1..=3).contains(&(af % 10)))
                    .map(|af| af / 10 * 8 + af % 10 * 2),
                _ => number(name, 64),
            },
        };
        dscp.map(|dscp| Tos(dscp << 2))
            .ok_or_else(|| format!("\"{text}\" is no DSCP; write ef, va, le, cs0 to cs7, af11 to af43, or 0 to 63"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_parsed() {
        let ms = |text: &str| Milliseconds::try_from(text.to_owned()).map(|ms| ms.0);
        assert_eq!((ms("15.625ms"), ms("2s"), ms("20us")), (Ok(15.625), Ok(2_000.0), Ok(0.02)));
        assert!(ms("5").is_err() && ms("fast").is_err() && ms("1.2.3s").is_err());
        let rate = |text: &str| Rate::try_from(text.to_owned());
        assert_eq!(rate("105%").unwrap().bps(20_000_000), Some(21_000_000));
        assert_eq!(rate("1.5mbit").unwrap().bps(0), Some(1_500_000));
        assert_eq!(rate("max").unwrap().bps(1), None);
        assert!(rate("0mbit").is_err() && rate("20").is_err() && rate("20Mbps").is_err());
        let tos = |text: &str| Tos::try_from(text.to_owned()).map(|tos| tos.0);
        assert_eq!((tos("ef"), tos("cs4"), tos("af41"), tos("8")), (Ok(0xb8), Ok(0x80), Ok(0x88), Ok(0x20)));
        assert!(tos("cs8").is_err() && tos("af14").is_err() && tos("64").is_err() && tos("af05").is_err());
    }
}
