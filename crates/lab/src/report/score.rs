//! The scorecard: for each key figure a table of contenders by scenario and rate, with the best of each column.

use super::group::{Entry, Group};
use super::measure::{Better, Measure, Path};
use super::number;
use super::spread::Spread;

/// The keys by which contenders are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Delay,
    Requests,
    Observation,
    Throughput,
    Steadiness,
    Loss,
    Fairness,
    Cost,
}

/// The keys in the order of the scorecard.
pub const KEYS: [Key; 8] = [
    Key::Delay,
    Key::Requests,
    Key::Observation,
    Key::Throughput,
    Key::Steadiness,
    Key::Loss,
    Key::Fairness,
    Key::Cost,
];

/// A scenario at a rate, and the load if the key is of a load.
pub struct Column<'a> {
    pub group: &'a Group<'a>,
    pub of: String,
    pub measure: Measure,
    /// The cells, one for each contender, in order.
    pub cells: Vec<Cell>,
}

/// The figure of one contender in a column.
pub struct Cell {
    pub standing: Standing,
    pub value: Option<Spread>,
    /// Use of the wire next to throughput: percent, of the most used direction.
    pub used: Option<Spread>,
    /// Whether the queue formed behind the contender.
    pub not_owned: bool,
    /// The kind of failure if figures are missing: "failed" or "unsupported"; also if only some repeats failed.
    pub failure: Option<&'static str>,
    /// The reasons of the failures, as indices of `Scorecard::notes`.
    pub notes: Vec<usize>,
}

/// The standing of a contender among the others of the column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The best median; several contenders share it if most have it.
    Best,
    /// No different from the best beyond the repeats.
    Equal,
    Behind,
    /// Undecided: nothing to compare, or all equal, or one trial that is not behind.
    Alone,
}

/// The table of one key.
pub struct KeyTable<'a> {
    pub key: Key,
    pub columns: Vec<Column<'a>>,
}

/// The tables of all keys.
pub struct Scorecard<'a> {
    pub tables: Vec<KeyTable<'a>>,
    /// The reasons of missing figures, each once.
    pub notes: Vec<&'a str>,
}

impl Key {
    pub fn title(self) -> &'static str {
        match self {
            Key::Delay => "Delay under load",
            Key::Requests => "Requests",
            Key::Observation => "Observation",
            Key::Throughput => "Throughput",
            Key::Steadiness => "Steadiness",
            Key::Loss => "Loss",
            Key::Fairness => "Fairness",
            Key::Cost => "Cost",
        }
    }

    /// The meaning of the figures, in words.
    pub fn about(self) -> &'static str {
        match self {
            Key::Delay => {
                "p99 of the probe's delay above its idle median, or as it is where that is not known; over a chain the mean time of requests, ms; of a model the mean latency, µs; lower is better"
            }
            Key::Requests => "answered requests a second; higher is better",
            Key::Observation => "packets a second that userspace got, as records or as counts; higher is better",
            Key::Throughput => {
                "payload of the TCP loads together (of UDP where there is nothing else), Mbit/s, and percent of the wire used; over a chain each load alone; of a model all that the port has sent; higher is better"
            }
            Key::Steadiness => {
                "standard deviation, around its mean, of the rate of the bulk load that the scenario is about, kbit/s; lower is better"
            }
            Key::Loss => {
                "probe packets lost, over a chain requests that failed, at a tap loss that the observer does not tell, percent; lower is better"
            }
            Key::Fairness => {
                "Jain's index over the loads with weights, of a model over pipes; 1 is exact; higher is better"
            }
            Key::Cost => "instructions per packet, or else processor time, percent; lower is better",
        }
    }

    /// The columns of this key in a group: subjects and measures.
    fn columns(self, group: &Group) -> Vec<(String, Measure)> {
        let probes = || group.probes().into_iter().map(|load| load.name.clone());
        let of_frames = |measure| group.loads_of_kind("frames").map(|load| (load.name.clone(), measure)).collect();
        let columns: Vec<(String, Measure)> = match self {
            Key::Delay => probes().map(|load| (load.clone(), group.delay_measure(&load))).collect(),
            Key::Observation => of_frames(Measure::Observed),
            Key::Loss if group.scenario.tap => of_frames(Measure::Untold),
            Key::Cost if group.scenario.tap => of_frames(Measure::Instructions),
            Key::Loss if group.scenario.chain => vec![(String::new(), Measure::Loss)],
            Key::Loss => {
                let datagrams = group.datagram_probes().map(|load| (load.name.clone(), Measure::FlowLoss));
                probes().map(|load| (load, Measure::Loss)).chain(datagrams).collect()
            }
            Key::Requests => group.loads_of_kind("wrk").map(|load| (load.name.clone(), Measure::PerSecond)).collect(),
            Key::Throughput if group.scenario.chain => {
                group.loads_of_kind("tcp").map(|load| (load.name.clone(), Measure::Rate)).collect()
            }
            Key::Throughput => vec![(String::new(), Measure::TotalRate)],
            Key::Steadiness => {
                let loads = group.scenario.loads.iter().filter(|load| load.probe);
                loads.map(|load| (load.name.clone(), Measure::Deviation)).collect()
            }
            Key::Fairness if group.scenario.model.is_some() => vec![(String::new(), Measure::Jain)],
            Key::Fairness => vec![(String::new(), Measure::WeightedJain)],
            Key::Cost => vec![(String::new(), group.cost_measure())],
        };
        columns.into_iter().filter(|(of, measure)| group.has(of, *measure)).collect()
    }
}

impl<'a> Scorecard<'a> {
    pub fn of(groups: &'a [Group<'a>]) -> Scorecard<'a> {
        let mut notes = Vec::new();
        for failure in groups.iter().flat_map(|g| &g.entries).flat_map(|e| &e.failures) {
            if !notes.contains(&failure.why) {
                notes.push(failure.why);
            }
        }
        let tables = KEYS.map(|key| KeyTable {
            key,
            columns: groups
                .iter()
                .flat_map(|group| key.columns(group).into_iter().map(move |(of, measure)| (group, of, measure)))
                .map(|(group, of, measure)| Column::new(group, of, measure, &notes))
                .collect(),
        });
        Scorecard { tables: tables.into_iter().filter(|board| !board.columns.is_empty()).collect(), notes }
    }

    /// The table of this key, if anything is known.
    pub fn board(&self, key: Key) -> Option<&KeyTable<'a>> {
        self.tables.iter().find(|board| board.key == key)
    }
}

impl<'a> Column<'a> {
    fn new(group: &'a Group<'a>, of: String, measure: Measure, notes: &[&str]) -> Column<'a> {
        let mut cells: Vec<Cell> = group.entries.iter().map(|entry| Cell::new(entry, &of, measure, notes)).collect();
        let judged: Vec<bool> =
            group.entries.iter().map(|entry| entry.contender.ours || entry.contender.is_rival()).collect();
        rank(&mut cells, &judged, measure);
        Column { group, of, measure, cells }
    }

    /// "Title, 100 Mbit/s, load".
    pub fn title(&self) -> String {
        let title = self.group.title();
        if self.of.is_empty() { title } else { format!("{title}, {}", self.of) }
    }

    /// "100 Mbit/s" and the load, if the figure is a load's.
    pub fn subtitle(&self) -> String {
        if self.group.rate_bps == 0 {
            return if self.of.is_empty() { "all".to_owned() } else { self.of.clone() };
        }
        let rate = number::rate(self.group.rate_bps);
        let whole =
            if matches!(self.measure, Measure::Delay(path, _) if path != Path::Modelled) { ", with idle" } else { "" };
        if self.of.is_empty() { rate } else { format!("{rate}, {}{whole}", self.of) }
    }

    /// Whether each figure of this column is of one trial.
    pub fn seen_once(&self) -> bool {
        self.cells.iter().filter_map(|cell| cell.value).all(|value| value.repeats < 2)
    }

    /// The best entry by median among these contenders.
    pub fn best(&self, among: impl Fn(&Entry) -> bool) -> Option<(&Entry<'a>, &Cell, Spread)> {
        let with = self.group.entries.iter().zip(&self.cells).filter(|(entry, _)| among(entry));
        let known = with.filter_map(|(entry, cell)| Some((entry, cell, cell.value?)));
        known.reduce(|best, next| if ahead(&next.2, &best.2, self.measure) { next } else { best })
    }
}

impl Cell {
    fn new(entry: &Entry, of: &str, measure: Measure, notes: &[&str]) -> Cell {
        let used = entry.measured.iter().filter_map(|m| {
            let used = m.bottlenecks.iter().map(|b| b.used_percent).filter(|percent| percent.is_finite());
            used.reduce(f64::max)
        });
        let mut cited: Vec<usize> =
            entry.failures.iter().filter_map(|failure| notes.iter().position(|note| *note == failure.why)).collect();
        cited.dedup();
        Cell {
            standing: Standing::Alone,
            value: entry.get(of, measure),
            used: if measure == Measure::TotalRate { Spread::of(used) } else { None },
            not_owned: entry.owned() == Some(false),
            failure: entry.failures.first().map(|failure| failure.word),
            notes: cited,
        }
    }
}

/// Whether `a` has a better median than `b`, however little.
pub fn ahead(a: &Spread, b: &Spread, measure: Measure) -> bool {
    match measure.better() {
        Better::Lower => a.median < b.median,
        Better::Higher => a.median > b.median,
        Better::Neither => false,
    }
}

/// Ranks the judged cells; baselines are not judged. A figure of one trial has no spread, so its contender is never the best.
fn rank(cells: &mut [Cell], judged: &[bool], measure: Measure) {
    let known: Vec<(usize, Spread)> =
        (cells.iter().enumerate()).filter_map(|(at, cell)| Some((at, cell.value.filter(|_| judged[at])?))).collect();
    let all_the_same = known.windows(2).all(|pair| pair[0].1.median == pair[1].1.median);
    if all_the_same || measure.better() == Better::Neither {
        return;
    }
    let Some((_, best)) =
        known.iter().copied().reduce(|best, next| if ahead(&next.1, &best.1, measure) { next } else { best })
    else {
        return;
    };
    let shared = known.iter().filter(|(_, value)| value.median == best.median).count();
    let distinction = shared * 2 <= known.len();
    for (at, value) in known {
        let seen_once = value.repeats.min(best.repeats) < 2;
        cells[at].standing = match (value.median == best.median, value.differs(&best, measure)) {
            (true, _) | (false, false) if seen_once => Standing::Alone,
            (true, _) if distinction => Standing::Best,
            (true, _) | (false, false) => Standing::Equal,
            (false, true) => Standing::Behind,
        };
    }
}
