//! The axes that both plots share.

use super::Report;
use crate::demo::measurement::Run;

/// One packet in this many may be faster than the scale's lower end.
const FAST_OUTLIERS: usize = 50;

/// The powers of ten that hold the pings of both runs, as exponents; the few fastest may lie below.
pub fn decades(report: &Report) -> (i32, i32) {
    let mut pings: Vec<f64> = [&report.without, &report.with].into_iter().flat_map(pings).map(|ping| ping.1).collect();
    pings.sort_by(f64::total_cmp);
    match (pings.get(pings.len() / FAST_OUTLIERS), pings.last()) {
        (Some(low), Some(high)) => {
            let low = low.log10().floor() as i32;
            (low, (high.log10().ceil() as i32).max(low + 1))
        }
        _ => (-1, 3),
    }
}

/// The game's packets that came back: seconds since the downloads began, and the ping, ms (never 0).
pub fn pings(run: &Run) -> impl Iterator<Item = (f64, f64)> {
    run.game.series.iter().filter_map(|s| Some((s.sent_ms / 1e3, s.rtt_ms?.max(1e-3))))
}

/// A power of ten as text.
pub fn decade_label(exponent: i32) -> String {
    let digits = exponent.unsigned_abs();
    if exponent < 0 { format!("{:.*}", digits as usize, 10f64.powi(exponent)) } else { 10u64.pow(digits).to_string() }
}

/// Whole seconds between two labels, so that there are about seven.
pub fn seconds_between_labels(end_s: f64) -> u32 {
    [1, 2, 5, 10, 20, 30, 60].into_iter().find(|step| end_s / f64::from(*step) <= 8.0).unwrap_or(120)
}
