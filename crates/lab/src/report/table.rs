//! The tables of a scenario, for the page and for Markdown.

use super::group::{Entry, Group};
use super::measure::{Measure, Path, Rank};
use super::number;
use super::spread::Spread;
use crate::format::{ALL, EARLY, Model};
use crate::result::results::LoadInfo;

/// A table: contenders by figures.
pub struct Table {
    pub caption: String,
    /// The columns' labels and units.
    pub columns: Vec<Head>,
    pub rows: Vec<Row>,
}

/// A column's head.
pub struct Head {
    pub label: String,
    pub unit: &'static str,
}

/// A contender's row.
pub struct Row {
    pub contender: String,
    pub ours: bool,
    /// The cells, one for each column; or the reason why there are none.
    pub cells: Result<Vec<TableCell>, String>,
}

/// A cell.
#[derive(Default)]
pub struct TableCell {
    pub text: String,
    /// Least and greatest of the repeats.
    pub range: Option<String>,
}

impl TableCell {
    fn of(value: Option<Spread>, measure: Measure) -> TableCell {
        match value {
            Some(value) => TableCell { text: value.text(measure), range: value.range(measure) },
            None => TableCell::from(number::MISSING),
        }
    }
}

impl From<&str> for TableCell {
    fn from(text: &str) -> TableCell {
        TableCell { text: text.to_owned(), range: None }
    }
}

/// All tables of a group: one for each load with delays, one of rates, one of backlogs and costs.
pub fn tables(group: &Group) -> Vec<Table> {
    if group.scenario.chain {
        return chain(group);
    }
    if group.scenario.tap {
        return group.loads_of_kind("frames").filter_map(|load| frames(group, load)).collect();
    }
    if let Some(model) = &group.scenario.model {
        return modelled(group, model);
    }
    let mut tables: Vec<Table> = group.delay_loads().into_iter().map(|load| delays(group, load)).collect();
    tables.extend(rates(group));
    tables.extend(bottleneck(group));
    tables
}

/// The tables of a chain: response times by size of page, requests a second, rates, and requests that failed.
fn chain(group: &Group) -> Vec<Table> {
    let times = |rank| {
        let of = |load: &LoadInfo| column(load.name.clone(), &load.name, Measure::Delay(Path::Whole, rank));
        group.loads_of_kind("siege").map(of).collect::<Vec<Column>>()
    };
    let mut requests = Vec::new();
    for load in group.loads_of_kind("wrk") {
        let name = load.name.as_str();
        requests.push(column(name, name, Measure::PerSecond));
        requests.push(column(format!("{name}, p50"), name, Measure::Delay(Path::Whole, Rank::P50)));
        requests.push(column(format!("{name}, p99"), name, Measure::Delay(Path::Whole, Rank::P99)));
    }
    let timed = group.scenario.loads.iter().filter(|load| group.has(&load.name, Measure::Loss));
    let failed = [column("all", "", Measure::Loss)].into_iter();
    let failed = failed.chain(timed.map(|load| column(load.name.clone(), &load.name, Measure::Loss))).collect();
    [
        table(group, "Response times of requests one after the other, mean".to_owned(), times(Rank::Mean)),
        table(group, "Response times of requests one after the other, p99".to_owned(), times(Rank::P99)),
        table(group, "Requests as fast as they are answered".to_owned(), requests),
        rates(group),
        table(group, "Requests that failed".to_owned(), failed),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The table of a load of frames at a tap.
fn frames(group: &Group, load: &LoadInfo) -> Option<Table> {
    let of = load.name.as_str();
    let columns = vec![
        column("arrived", of, Measure::Arrived),
        column("passed the limit", of, Measure::Passed),
        column("observed", of, Measure::Observed),
        column("records of a sample", of, Measure::Records),
        column("not observed", of, Measure::Unobserved),
        column("of these not told", of, Measure::Untold),
        column("instructions a packet", of, Measure::Instructions),
        column("instructions a passed packet", of, Measure::InstructionsPassed),
    ];
    table(group, format!("Packets of “{}” ({})", load.name, load.about), columns)
}

/// The tables of a model: all packets, and those of each class.
fn modelled(group: &Group, model: &Model) -> Vec<Table> {
    let latency = |rank| Measure::Delay(Path::Modelled, rank);
    let mut columns: Vec<Column> =
        [("least", Rank::Min), ("mean", Rank::Mean), ("p50", Rank::P50), ("p99", Rank::P99), ("greatest", Rank::Max)]
            .map(|(label, rank)| column(label, ALL, latency(rank)))
            .into();
    columns.extend(
        [("mean", Rank::Mean), ("p99", Rank::P99), ("greatest", Rank::Max)]
            .map(|(label, rank)| column(format!("{label} of all but the last class"), EARLY, latency(rank))),
    );
    let shared = vec![
        column("sent by the port", "", Measure::TotalRate),
        column("fairness of pipes", "", Measure::Jain),
        column("lost, all", ALL, Measure::Loss),
        column("lost, all but the last class", EARLY, Measure::Loss),
        column("lost before the scheduler, of all", "", Measure::LostOnArrival),
    ];
    let by_class = |measure| {
        let names = model.class_names().into_iter();
        names.map(|name| column(name.clone(), &name, measure)).collect::<Vec<Column>>()
    };
    [
        table(group, "Latency of all packets".to_owned(), columns),
        table(group, "Throughput, fairness and loss".to_owned(), shared),
        table(group, "Mean latency by class".to_owned(), by_class(latency(Rank::Mean))),
        table(group, "p99 of latency by class".to_owned(), by_class(latency(Rank::P99))),
        table(group, "Greatest latency by class".to_owned(), by_class(latency(Rank::Max))),
        table(group, "Lost by class".to_owned(), by_class(Measure::Loss)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A column of figures.
struct Column {
    label: String,
    of: String,
    measure: Measure,
}

fn column(label: impl Into<String>, of: &str, measure: Measure) -> Column {
    Column { label: label.into(), of: of.to_owned(), measure }
}

fn table(group: &Group, caption: String, columns: Vec<Column>) -> Option<Table> {
    let columns: Vec<Column> = columns.into_iter().filter(|c| group.has(&c.of, c.measure)).collect();
    let cell = |entry: &Entry, c: &Column| match c.measure {
        Measure::Owned => TableCell::from(match entry.get(&c.of, c.measure) {
            Some(owned) if owned.min == 1.0 => "yes",
            Some(owned) if owned.max == 0.0 => "no",
            Some(_) => "at times",
            None => number::MISSING,
        }),
        measure => TableCell::of(entry.get(&c.of, measure), measure),
    };
    (!columns.is_empty()).then(|| Table {
        caption,
        rows: group
            .entries
            .iter()
            .map(|entry| Row {
                contender: entry.contender.title.clone(),
                ours: entry.contender.ours,
                cells: why_empty(entry).map_or_else(|| Ok(columns.iter().map(|c| cell(entry, c)).collect()), Err),
            })
            .collect(),
        columns: columns.into_iter().map(|c| Head { unit: c.measure.unit(), label: c.label }).collect(),
    })
}

/// The reason why a contender has no figures at all.
fn why_empty(entry: &Entry) -> Option<String> {
    if !entry.measured.is_empty() {
        return None;
    }
    match entry.failures.first() {
        Some(failure) => Some(format!("{}: {}", failure.word, failure.why)),
        None => Some("not tried".to_owned()),
    }
}

fn delays(group: &Group, load: &LoadInfo) -> Table {
    let of = load.name.as_str();
    let path = group.path(of);
    let idle = if path == Path::OneWay { Path::IdleOneWay } else { Path::Idle };
    let measures = [
        ("p50", Measure::Delay(path, Rank::P50)),
        ("p95", Measure::Delay(path, Rank::P95)),
        ("p99", Measure::Delay(path, Rank::P99)),
        ("max", Measure::Delay(path, Rank::Max)),
        ("idle p50", Measure::Delay(idle, Rank::P50)),
        ("p99 above idle", Measure::Added),
        ("jitter", Measure::Jitter),
        ("lost", Measure::Loss),
        ("round trips", Measure::PerMinute),
        ("connect p50", Measure::Delay(Path::Connect, Rank::P50)),
        ("connect p99", Measure::Delay(Path::Connect, Rank::P99)),
    ];
    let columns = measures.map(|(label, measure)| column(label, of, measure)).into();
    let caption = format!("Delay of “{}” ({}), {}", load.name, load.about, group.timed(of));
    table(group, caption.clone(), columns).unwrap_or(Table { caption, columns: Vec::new(), rows: Vec::new() })
}

fn rates(group: &Group) -> Option<Table> {
    let loads = group.flow_loads();
    let mut columns = Vec::new();
    for load in &loads {
        let name = load.name.as_str();
        let weight = load.weight.map_or(String::new(), |weight| format!(" (weight {weight})"));
        columns.push(column(format!("{name}{weight}"), name, Measure::Rate));
        columns.push(column(format!("{name}, fairness of flows"), name, Measure::Jain));
        columns.push(column(format!("{name}, lost"), name, Measure::FlowLoss));
        columns.push(column(format!("{name}, jitter"), name, Measure::FlowJitter));
        columns.push(column(format!("{name}, deviation"), name, Measure::Deviation));
        columns.push(column(format!("{name}, sent again"), name, Measure::Retransmitted));
    }
    if loads.len() > 1 {
        columns.push(column("all loads", "", Measure::TotalRate));
    }
    columns.push(column("fairness by weight", "", Measure::WeightedJain));
    columns
        .extend(group.directions().into_iter().map(|name| column(format!("wire used, {name}"), name, Measure::Used)));
    table(group, "Rates of the bulk loads".to_owned(), columns)
}

fn bottleneck(group: &Group) -> Option<Table> {
    let mut columns = Vec::new();
    for name in group.directions() {
        columns.push(column(format!("owned, {name}"), name, Measure::Owned));
        columns.push(column("own backlog, mean", name, Measure::OwnedMean));
        columns.push(column("own backlog, max", name, Measure::OwnedMax));
        columns.push(column("line’s backlog, max", name, Measure::LineMax));
        columns.push(column("line dropped", name, Measure::LineDropped));
    }
    columns.push(column("processor busy", "", Measure::Busy));
    columns.push(column("instructions a packet", "", Measure::Instructions));
    columns.push(column("noise p99", "", Measure::Delay(Path::Noise, Rank::P99)));
    table(group, "Backlogs, and the cost".to_owned(), columns)
}
