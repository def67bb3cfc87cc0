//! The options of the commands that look: `sluice top`, `sluice flows`.

use clap::Args;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Keys: q quit, ? help, space pause, s sort, S other way round, / filter, arrows choose a class,
c classes, d state of the discipline, r rules, f flows, i one interface.

Examples:
  sluice top                          every managed interface of this network namespace
  sluice top eth0 --once              one table of what a second brought, for a script or a log
  sluice top eth0 --json | jq ...     one object a second, one a line")]
pub struct Top {
    /// Interfaces; without them, all of this network namespace
    #[arg(value_name = "INTERFACE")]
    pub interfaces: Vec<String>,
    /// Time between two looks, such as 500ms or 2s
    #[arg(long, short = 'n', value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub interval: Duration,
    /// Print one table of what happened within one interval, and end
    #[arg(long)]
    pub once: bool,
    /// Print JSON, an object for each interval on a line of its own; with --once, one
    #[arg(long)]
    pub json: bool,
}

/// A time between two looks.
fn interval(text: &str) -> Result<Duration, String> {
    const LEAST_S: f64 = 0.1;
    const MOST_S: f64 = 3600.0;
    let (number, factor) = match text {
        _ if text.ends_with("ms") => (&text[..text.len() - 2], 1e-3),
        _ if text.ends_with('s') => (&text[..text.len() - 1], 1.0),
        _ if text.ends_with('m') => (&text[..text.len() - 1], 60.0),
        _ => (text, 1.0),
    };
    let seconds = number.trim().parse::<f64>().map_err(|_| "write a time such as 500ms, 1s or 1m".to_owned())? * factor;
    if (LEAST_S..=MOST_S).contains(&seconds) {
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
