//! The trials of a run by scenario, rate and contender, with every figure over the repeats.

use std::collections::{BTreeMap, BTreeSet};

use super::figure::figures;
use super::measure::{Measure, Path, Rank};
use super::number;
use super::spread::Spread;
use crate::result::results::{ContenderInfo, Delays, LoadInfo, Measured, Outcome, Results, ScenarioInfo, Timed};

/// A scenario at a rate.
pub struct Group<'a> {
    pub scenario: &'a ScenarioInfo,
    pub rate_bps: u64,
    /// The entries, one for each contender of the run, in its order.
    pub entries: Vec<Entry<'a>>,
}

/// A contender in a group.
pub struct Entry<'a> {
    /// The contender's place among the run's contenders.
    pub index: usize,
    pub contender: &'a ContenderInfo,
    /// The measured trials, by repeat.
    pub measured: Vec<&'a Measured>,
    /// The trials without figures, with their kinds and reasons.
    pub failures: Vec<Failure<'a>>,
    figures: BTreeMap<(String, Measure), Spread>,
}

/// A trial without figures.
#[derive(Clone, Copy)]
pub struct Failure<'a> {
    /// "failed" or "unsupported".
    pub word: &'static str,
    pub why: &'a str,
}

/// The groups of a run in the order of the plan, rates from the least.
pub fn groups(results: &Results) -> Vec<Group<'_>> {
    let mut groups = Vec::new();
    for scenario in &results.scenarios {
        let trials = || results.trials.iter().filter(|trial| trial.scenario == scenario.name);
        let rates: BTreeSet<u64> = trials().map(|trial| trial.rate_bps).collect();
        for rate_bps in rates {
            let mut group = Group { scenario, rate_bps, entries: Vec::new() };
            for (index, contender) in results.contenders.iter().enumerate() {
                let mut entry = Entry::new(index, contender);
                for trial in trials().filter(|t| t.rate_bps == rate_bps && t.contender == contender.name) {
                    match &trial.outcome {
                        Outcome::Measured(measured) => entry.measured.push(measured),
                        Outcome::Failed(why) => entry.failures.push(Failure { word: "failed", why }),
                        Outcome::Unsupported(why) => entry.failures.push(Failure { word: "unsupported", why }),
                    }
                }
                entry.gather(scenario);
                group.entries.push(entry);
            }
            groups.push(group);
        }
    }
    groups
}

impl<'a> Group<'a> {
    /// "Title, 100 Mbit/s"; the title alone where links have no rate.
    pub fn title(&self) -> String {
        if self.rate_bps == 0 {
            return self.scenario.title.clone();
        }
        format!("{}, {}", self.scenario.title, number::rate(self.rate_bps))
    }

    /// Entries with figures.
    pub fn measured(&self) -> impl Iterator<Item = &Entry<'a>> {
        self.entries.iter().filter(|entry| !entry.measured.is_empty())
    }

    /// Whether a contender has this figure.
    pub fn has(&self, of: &str, measure: Measure) -> bool {
        self.entries.iter().any(|entry| entry.get(of, measure).is_some())
    }

    /// The loads that a contender has delays of, in the scenario's order.
    pub fn delay_loads(&self) -> Vec<&'a LoadInfo> {
        self.loads(|measured, load| measured.delays_of(load).is_some())
    }

    /// The loads of this kind, in the scenario's order.
    pub fn loads_of_kind(&self, kind: &str) -> impl Iterator<Item = &'a LoadInfo> {
        self.scenario.loads.iter().filter(move |load| load.kind == kind)
    }

    /// The loads that a contender has rates of, in the scenario's order.
    pub fn flow_loads(&self) -> Vec<&'a LoadInfo> {
        self.loads(|measured, load| measured.flows_of(load).is_some())
    }

    /// The loads of `delay_loads` that are marked as probes; all, if none is.
    pub fn probes(&self) -> Vec<&'a LoadInfo> {
        let all = self.delay_loads();
        if all.iter().any(|load| load.probe) { all.into_iter().filter(|load| load.probe).collect() } else { all }
    }

    /// The probes with datagram losses, under any contender.
    pub fn datagram_probes(&self) -> impl Iterator<Item = &'a LoadInfo> {
        self.scenario.loads.iter().filter(|load| load.probe && self.has(&load.name, Measure::FlowLoss))
    }

    fn loads(&self, has: impl Fn(&Measured, &str) -> bool) -> Vec<&'a LoadInfo> {
        let is_measured =
            |load: &LoadInfo| self.entries.iter().flat_map(|e| &e.measured).any(|measured| has(measured, &load.name));
        self.scenario.loads.iter().filter(|load| is_measured(load)).collect()
    }

    /// The directions that a contender shaped.
    pub fn directions(&self) -> Vec<&'a str> {
        let mut names: Vec<&str> = Vec::new();
        for bottleneck in self.entries.iter().flat_map(|e| &e.measured).flat_map(|m| &m.bottlenecks) {
            if !names.contains(&bottleneck.direction.as_str()) {
                names.push(&bottleneck.direction);
            }
        }
        names
    }

    /// Whether the delays of this load are shown one way.
    pub fn path(&self, load: &str) -> Path {
        if self.scenario.model.is_some() {
            return Path::Modelled;
        }
        if self.has(load, Measure::Delay(Path::OneWay, Rank::P50)) { Path::OneWay } else { Path::Whole }
    }

    /// The name of the timed exchange: one way, whole fetch or round trip.
    pub fn timed(&self, load: &str) -> &'static str {
        match (self.path(load), self.is_fetched(load)) {
            (Path::OneWay, _) => "one way",
            (Path::Modelled, _) => "from arrival to the wire",
            (_, true) => "whole fetch",
            (_, false) => "round trip",
        }
    }

    /// Whether the load fetches pages.
    pub fn is_fetched(&self, load: &str) -> bool {
        self.entries.iter().flat_map(|e| e.delays(load)).any(|(_, delays)| delays.what == Timed::Fetch)
    }

    /// The measure for the delay of this load: above idle, or absolute where the idle delay is not known. Over a chain the mean,
    /// as in published tables of response times.
    pub fn delay_measure(&self, load: &str) -> Measure {
        if self.scenario.chain || self.scenario.model.is_some() {
            return Measure::Delay(self.path(load), Rank::Mean);
        }
        if self.has(load, Measure::Added) { Measure::Added } else { Measure::Delay(self.path(load), Rank::P99) }
    }

    /// The measure for the cost: per packet, unless nothing is carried and there are too few packets to divide by.
    pub fn cost_measure(&self) -> Measure {
        let carries = self.has("", Measure::TotalRate);
        if carries && self.has("", Measure::Instructions) { Measure::Instructions } else { Measure::Busy }
    }
}

impl<'a> Entry<'a> {
    fn new(index: usize, contender: &'a ContenderInfo) -> Entry<'a> {
        Entry { index, contender, measured: Vec::new(), failures: Vec::new(), figures: BTreeMap::new() }
    }

    fn gather(&mut self, scenario: &ScenarioInfo) {
        let mut values: BTreeMap<(String, Measure), Vec<f64>> = BTreeMap::new();
        for figure in self.measured.iter().flat_map(|measured| figures(scenario, measured)) {
            values.entry((figure.of, figure.measure)).or_default().push(figure.value);
        }
        self.figures = values.into_iter().filter_map(|(key, values)| Some((key, Spread::of(values)?))).collect();
    }

    /// A figure over the repeats.
    pub fn get(&self, of: &str, measure: Measure) -> Option<Spread> {
        self.figures.get(&(of.to_owned(), measure)).copied()
    }

    /// Whether the contender always owned the bottleneck, in every direction; `None` if nothing is known.
    pub fn owned(&self) -> Option<bool> {
        let mut all = self.measured.iter().flat_map(|measured| &measured.bottlenecks).peekable();
        all.peek()?;
        Some(all.all(|bottleneck| bottleneck.owned()))
    }

    /// The delays of this load in each repeat.
    pub fn delays(&self, load: &str) -> impl Iterator<Item = (&'a Measured, &'a Delays)> {
        self.measured.iter().filter_map(move |measured| Some((*measured, measured.delays_of(load)?)))
    }

    /// The repeat whose p99 of this load is the median one; the first without such a load.
    pub fn typical(&self, load: Option<&str>) -> Option<&'a Measured> {
        let p99 = |measured: &Measured| {
            let delays = measured.delays_of(load?)?;
            Some(delays.one_way.or(delays.whole)?.p99_ms)
        };
        let mut sorted: Vec<(f64, &'a Measured)> =
            self.measured.iter().filter_map(|measured| Some((p99(measured)?, *measured))).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        match sorted.get(sorted.len().saturating_sub(1) / 2) {
            Some((_, measured)) => Some(measured),
            None => self.measured.first().copied(),
        }
    }
}

/// The trials whose scenario or contender is not listed, as a sentence for readers.
pub fn strays(results: &Results) -> Option<String> {
    let known = |trial: &&crate::result::results::Trial| {
        results.scenarios.iter().any(|s| s.name == trial.scenario)
            && results.contenders.iter().any(|c| c.name == trial.contender)
    };
    let strays = results.trials.len() - results.trials.iter().filter(known).count();
    (strays > 0).then(|| {
        format!("{} of a scenario or contender that is not listed: left out.", number::count(strays, "trial", "trials"))
    })
}

/// The contenders that could not run, wholly or in part. Each form of the report names them at its head, because a contender
/// that is missing has lost no comparison.
pub fn missing(groups: &[Group]) -> Vec<String> {
    let Some(first) = groups.first() else { return Vec::new() };
    let mut sentences = Vec::new();
    for (at, entry) in first.entries.iter().enumerate() {
        let all = || groups.iter().map(|group| &group.entries[at]);
        let measured: usize = all().map(|entry| entry.measured.len()).sum();
        let failed: usize = all().map(|entry| entry.failures.len()).sum();
        let Some(failure) = all().flat_map(|entry| &entry.failures).next() else { continue };
        let title = &entry.contender.title;
        let why = failure.why.lines().next().unwrap_or_default();
        sentences.push(match measured {
            0 => format!("{title} could not run ({}): {why}", failure.word),
            _ => format!(
                "{title}: {failed} of {} could not run: {why}",
                number::count(measured + failed, "trial", "trials")
            ),
        });
    }
    sentences
}
