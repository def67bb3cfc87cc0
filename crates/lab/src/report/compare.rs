//! A comparison of two runs: the key figures that changed by more than the spread of the repeats.

mod show;

use serde::Serialize;

use super::group::{Entry, Group, groups};
use super::measure::{Better, Measure};
use super::number;
use super::score::{Scorecard, ahead};
use super::spread::Spread;
use crate::result::results::{FORMAT, Results};

/// A comparison of two runs; `a` came before, `b` after.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Reasons why the runs may not be comparable.
    pub warnings: Vec<String>,
    /// Each key figure that both runs measured, in the order of `b`.
    pub changes: Vec<Change>,
    /// Combinations of scenario, contender and rate with figures in `a` and only failures in `b`, with the reason: regressions,
    /// too.
    pub broken: Vec<String>,
    /// Combinations that only `a` tried.
    pub only_in_a: Vec<String>,
    /// Combinations that only `b` tried, or for which only `b` has figures.
    pub only_in_b: Vec<String>,
}

/// A key figure in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// `ScenarioInfo::name`.
    pub scenario: String,
    /// `ContenderInfo::name`.
    pub contender: String,
    /// The rate shaped to, bits per second.
    pub rate_bps: u64,
    /// A load, a direction, or "" for the whole trial.
    pub load: String,
    /// The figure's name in CSV.
    pub figure: String,
    /// The unit of `a`, `b` and `difference`; "" for an index or a count.
    pub unit: String,
    /// The figure in the run before.
    pub a: Spread,
    /// The figure in the run after.
    pub b: Spread,
    /// Median after less median before.
    pub difference: f64,
    /// The difference in percent of the median before, unless that is 0.
    pub percent: Option<f64>,
    /// The judgement of the change.
    pub judgement: Judgement,
    #[serde(skip)]
    measure: Measure,
}

/// The judgement of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// Not beyond the spread of the repeats, or too little to matter.
    Same,
    /// Beyond the spread, for the better.
    Better,
    /// Beyond the spread, for the worse: a regression.
    Worse,
    /// Beyond the spread, and neither way is better in itself.
    Changed,
}

/// Compares the key figures of each scenario, contender and rate that both runs have; `a` came before.
pub fn compare(a: &Results, b: &Results) -> Comparison {
    let (before, after) = (groups(a), groups(b));
    let mut comparison = Comparison {
        warnings: warnings(a, b),
        changes: Vec::new(),
        broken: Vec::new(),
        only_in_a: Vec::new(),
        only_in_b: Vec::new(),
    };
    for group in &after {
        let keys = keys(group);
        for entry in group.entries.iter().filter(|entry| entry.tried()) {
            let what = what(group, entry);
            match find(&before, group, entry) {
                None => comparison.only_in_b.push(what),
                Some(old) if old.measured.is_empty() && !entry.measured.is_empty() => comparison.only_in_b.push(what),
                Some(old) if !old.measured.is_empty() && entry.measured.is_empty() => {
                    let failure = entry.failures.first().map(|f| format!(": {}: {}", f.word, f.why));
                    comparison.broken.push(format!("{what}{}", failure.unwrap_or_default()));
                }
                Some(old) => {
                    comparison.changes.extend(keys.iter().filter_map(|key| change(group, key, old, entry)));
                }
            }
        }
    }
    for group in &before {
        let gone = group.entries.iter().filter(|entry| entry.tried() && find(&after, group, entry).is_none());
        comparison.only_in_a.extend(gone.map(|entry| what(group, entry)));
    }
    comparison
}

impl Entry<'_> {
    fn tried(&self) -> bool {
        !(self.measured.is_empty() && self.failures.is_empty())
    }
}

fn find<'g, 'a>(groups: &'g [Group<'a>], like: &Group, entry: &Entry) -> Option<&'g Entry<'a>> {
    let group = groups.iter().find(|g| g.scenario.name == like.scenario.name && g.rate_bps == like.rate_bps)?;
    group.entries.iter().find(|e| e.contender.name == entry.contender.name && e.tried())
}

fn what(group: &Group, entry: &Entry) -> String {
    format!("{} under {} at {}", group.scenario.name, entry.contender.name, number::rate(group.rate_bps))
}

/// The key figures of the scorecard, and the use of the wire.
fn keys(group: &Group) -> Vec<(String, Measure)> {
    let scorecard = Scorecard::of(std::slice::from_ref(group));
    let columns = scorecard.tables.iter().flat_map(|board| &board.columns);
    let mut keys: Vec<(String, Measure)> = columns.map(|column| (column.of.clone(), column.measure)).collect();
    keys.extend(group.directions().into_iter().map(|direction| (direction.to_owned(), Measure::Used)));
    keys
}

fn change(group: &Group, (of, measure): &(String, Measure), old: &Entry, new: &Entry) -> Option<Change> {
    let (a, b) = (old.get(of, *measure)?, new.get(of, *measure)?);
    let difference = b.median - a.median;
    Some(Change {
        scenario: group.scenario.name.clone(),
        contender: new.contender.name.clone(),
        rate_bps: group.rate_bps,
        load: of.clone(),
        figure: measure.name(),
        unit: measure.unit().to_owned(),
        a,
        b,
        difference,
        percent: (a.median != 0.0).then(|| 100.0 * difference / a.median.abs()),
        judgement: match () {
            () if !a.differs(&b, *measure) => Judgement::Same,
            () if measure.better() == Better::Neither => Judgement::Changed,
            () if ahead(&b, &a, *measure) => Judgement::Better,
            () => Judgement::Worse,
        },
        measure: *measure,
    })
}

/// The differences of environment that make the figures of the two runs incomparable, or nearly so.
fn warnings(a: &Results, b: &Results) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut differ = |what: &str, a: String, b: String| {
        if a != b {
            warnings.push(format!("The {what} differs: {a} before, {b} after."));
        }
    };
    differ("clock", format!("{:?}", a.clock).to_lowercase(), format!("{:?}", b.clock).to_lowercase());
    let (here, there) = (&a.environment, &b.environment);
    differ("processor", here.cpu.clone(), there.cpu.clone());
    differ("number of cores", here.cores.to_string(), there.cores.to_string());
    differ("kernel", here.kernel.clone(), there.kernel.clone());
    differ("distribution", here.distribution.clone(), there.distribution.clone());
    let absent = || "none".to_owned();
    for tool in a.tools.keys().chain(b.tools.keys().filter(|tool| !a.tools.contains_key(*tool))) {
        let version = |results: &Results| results.tools.get(tool).cloned().unwrap_or_else(absent);
        differ(&format!("version of {tool}"), version(a), version(b));
    }
    for scenario in &b.scenarios {
        if a.scenarios.iter().any(|old| old.name == scenario.name && old.file != scenario.file) {
            warnings.push(format!("The file of scenario {} differs.", scenario.name));
        }
    }
    for contender in &b.contenders {
        if a.contenders.iter().any(|old| old.name == contender.name && old.file != contender.file) {
            warnings.push(format!("The file of contender {} differs.", contender.name));
        }
    }
    for (which, results) in [("first", a), ("second", b)] {
        if results.format != FORMAT {
            warnings.push(format!("The {which} run has format {}, this program knows {FORMAT}.", results.format));
        }
    }
    let single = |results: &Results| results.trials.iter().all(|trial| trial.repeat <= 1);
    if single(a) || single(b) {
        warnings.push("A run without repeats has no spread: any difference above the resolution counts.".to_owned());
    }
    warnings
}

#[cfg(test)]
mod tests;
