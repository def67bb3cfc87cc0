//! The report as CSV, one figure a row.

use super::figure::figures;
use crate::result::results::{Outcome, Results};
use sluice_error::{Error, Result};

const HEADER: [&str; 8] = ["scenario", "contender", "rate_bps", "repeat", "load", "figure", "unit", "value"];

/// The figures of every trial, long and tidy: scenario, contender, rate_bps, repeat, load, figure, unit, value.
///
/// `load` is a load, a direction of a bottleneck, or empty for the whole trial. Each trial has a row whose figure is
/// "status" and whose value is "measured", "failed: why" or "unsupported: why".
pub fn csv(results: &Results) -> Result<String> {
    let broken = |e: String| Error::system(format!("cannot write the results as CSV: {e}"));
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    writer.write_record(HEADER).map_err(|e| broken(e.to_string()))?;
    for trial in &results.trials {
        let (rate_bps, repeat) = (trial.rate_bps.to_string(), trial.repeat.to_string());
        let mut row = |load: &str, figure: &str, unit: &str, value: &str| {
            let row = [trial.scenario.as_str(), &trial.contender, &rate_bps, &repeat, load, figure, unit, value];
            writer.write_record(row).map_err(|e| broken(e.to_string()))
        };
        match &trial.outcome {
            Outcome::Failed(why) => row("", "status", "", &format!("failed: {why}"))?,
            Outcome::Unsupported(why) => row("", "status", "", &format!("unsupported: {why}"))?,
            Outcome::Measured(measured) => {
                row("", "status", "", "measured")?;
                let Some(scenario) = results.scenarios.iter().find(|s| s.name == trial.scenario) else { continue };
                for f in figures(scenario, measured) {
                    row(&f.of, &f.measure.name(), f.measure.unit(), &f.value.to_string())?;
                }
            }
        }
    }
    let bytes = writer.into_inner().map_err(|e| broken(e.to_string()))?;
    String::from_utf8(bytes).map_err(|e| broken(e.to_string()))
}
