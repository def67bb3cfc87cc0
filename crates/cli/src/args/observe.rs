//! The options of `sluice top` and `sluice flows`.

use crate::completion;
use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Keys: q quit, ? help, space pause, s sort, S other way round, / filter, arrows choose a class,
c classes, d state of the discipline, r rules, f flows, i one interface.

Examples:
  sluice top                          every managed interface of this network namespace
  sluice top eth0 --once              one table of the rates of a second, for a script or a log
  sluice top eth0 --json | jq ...     one object a second, one a line")]
pub struct Top {
    /// Interfaces; without them, all of this network namespace
    #[arg(value_name = "INTERFACE", add = ArgValueCompleter::new(completion::managed))]
    pub interfaces: Vec<String>,
    /// Time between two samples, such as 500ms or 2s
    #[arg(long, short = 'n', value_name = "TIME", default_value = "1s", value_parser = interval, allow_hyphen_values = true)]
    pub interval: Duration,
    /// Print one table of the rates within one interval, and end
    #[arg(long)]
    pub once: bool,
    /// Print JSON, an object for each interval on a line of its own; with --once, one
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Flows count offered packets, before the queues, which may drop some of them.

Examples:
  sluice flows                        flows on the managed links, live
  sluice flows eth0 --once --top 5    the five that send most, for a script or a log
  sluice flows eth0 --by bytes --csv --once > flows.csv")]
pub struct Flows {
    /// Interfaces; without them, all of this network namespace
    #[arg(value_name = "INTERFACE", add = ArgValueCompleter::new(completion::managed))]
    pub interfaces: Vec<String>,
    /// The order of flows
    #[arg(long, value_name = "WHAT", default_value = "rate")]
    pub by: Rank,
    /// The number of flows
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub top: u32,
    /// Show names of hosts, asked of the name servers
    #[arg(long)]
    pub resolve: bool,
    /// Time between two samples, such as 500ms or 2s
    #[arg(long, short = 'n', value_name = "TIME", default_value = "1s", value_parser = interval, allow_hyphen_values = true)]
    pub interval: Duration,
    /// Print one table of the rates within one interval, and end
    #[arg(long)]
    pub once: bool,
    /// Print JSON, an object for each interval on a line of its own; with --once, one
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print CSV, a line for each flow and interval
    #[arg(long)]
    pub csv: bool,
}

/// The order of flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Rank {
    /// Bits per second
    Rate,
    /// Bytes since the flow began
    Bytes,
    /// Packets since the flow began
    Pkts,
}

impl Rank {
    pub fn by(self) -> sluice_observe::flows::By {
        match self {
            Rank::Rate => sluice_observe::flows::By::Rate,
            Rank::Bytes => sluice_observe::flows::By::Bytes,
            Rank::Pkts => sluice_observe::flows::By::Pkts,
        }
    }
}

/// Parses the time between two samples.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    const MIN_S: f64 = 0.1;
    const MAX_S: f64 = 3600.0;
    let (number, factor) = match text {
        _ if text.ends_with("ms") => (&text[..text.len() - 2], 1e-3),
        _ if text.ends_with('s') => (&text[..text.len() - 1], 1.0),
        _ if text.ends_with('m') => (&text[..text.len() - 1], 60.0),
        _ => (text, 1.0),
    };
    let seconds = number.trim().parse::<f64>().map_err(|_| "write a time such as 500ms, 1s or 1m".to_owned())? * factor;
    if (MIN_S..=MAX_S).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err("the least is 100ms, the most 60m".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_units_and_bounds() {
        let good = [("1s", 1000), ("500ms", 500), ("2", 2000), ("0.1s", 100), ("60m", 3_600_000)];
        for (text, ms) in good {
            assert_eq!(interval(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "0", "99ms", "-1s", "NaN", "inf", "1h", "61m", "é"] {
            assert!(interval(text).is_err(), "{text}");
        }
    }
}
