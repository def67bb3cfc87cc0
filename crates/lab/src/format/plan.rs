//! A plan: the combinations of scenarios, contenders and rates, with repeats and times.

use serde::Deserialize;

use super::library::Source;
use super::model::RATES;
use super::units::{Milliseconds, Rate};
use sluice_error::Result;

/// A plan file, checked as far as possible without other files.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The purpose of the plan.
    pub about: String,
    /// Rates of the contenders; bits per second, in order. Chains have none, written as "max".
    pub rates: Vec<Rate>,
    /// The number of repeats.
    pub repeats: u32,
    /// The window of each trial.
    pub measured: Milliseconds,
    /// Names of contenders; entries may have their own.
    #[serde(default)]
    pub contenders: Vec<String>,
    /// The scenarios, in the order in which they run.
    #[serde(rename = "run")]
    pub entries: Vec<Entry>,
}

/// One scenario of a plan.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The scenario's name.
    pub scenario: String,
    /// Contenders instead of the plan's.
    pub contenders: Option<Vec<String>>,
    /// Rates instead of the plan's.
    pub rates: Option<Vec<Rate>>,
}

/// A mistake in a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The key that it is about.
    pub key: &'static str,
    /// The mistake in words.
    pub what: String,
    /// The cure.
    pub cure: &'static str,
}

impl Plan {
    /// Reads and checks a plan.
    pub fn of(source: &Source) -> Result<Plan> {
        let plan: Plan = source.parse()?;
        plan.check().map_err(|mistake| source.bad(source.key(0, mistake.key), &mistake.what, mistake.cure))?;
        Ok(plan)
    }

    /// The first mistake in the plan.
    pub fn check(&self) -> std::result::Result<(), Mistake> {
        let mistake = |key, what: String, cure| Err(Mistake { key, what, cure });
        if !(1..=100).contains(&self.repeats) {
            return mistake("repeats", format!("{} repeats are not possible", self.repeats), "1 to 100 are");
        }
        // Below 1 s, only models can be measured.
        if !(10.0..=3_600_000.0).contains(&self.measured.0) {
            let what = format!("{} s are not possible for a trial", self.measured.seconds());
            return mistake("measured", what, "1 s to 1 h are, and with models from 10 ms on");
        }
        for rate in self.rates.iter().chain(self.entries.iter().filter_map(|entry| entry.rates.as_ref()).flatten()) {
            match rate {
                Rate::Bps(bps) if (500_000..=*RATES.end()).contains(bps) => {}
                Rate::Max => {}
                _ => {
                    let what = "a rate of a plan is not between 500kbit and 400gbit".to_owned();
                    return mistake("rates", what, "write it as 20mbit; over chains, as max");
                }
            }
        }
        let lacks = self.entries.iter().any(|entry| {
            entry.contenders.as_ref().unwrap_or(&self.contenders).is_empty()
                || entry.rates.as_ref().unwrap_or(&self.rates).is_empty()
        });
        if self.entries.is_empty() || lacks {
            let what = "a scenario without contenders or rates, or no scenario".to_owned();
            return mistake("contenders", what, "name them in the plan or in its [[run]]");
        }
        Ok(())
    }
}
