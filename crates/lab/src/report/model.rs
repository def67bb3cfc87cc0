//! Models side by side: figures over numbers of classes, pipes and instances, and beside published ones.

use super::group::{Entry, Group};
use super::measure::{Measure, Path, Rank};
use super::number;
use crate::format::{ALL, EARLY, Model};

/// A number that models of a run have in different sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    Classes,
    Pipes,
    Instances,
}

/// Models that differ in one number alone, by that number.
pub struct Row<'a> {
    pub size: Size,
    pub groups: Vec<&'a Group<'a>>,
}

impl Size {
    fn of(self, model: &Model) -> u32 {
        match self {
            Size::Classes => model.classes,
            Size::Pipes => model.pipes,
            Size::Instances => model.instances,
        }
    }

    /// The model without this number.
    fn without(self, model: &Model) -> Model {
        let mut rest = model.clone();
        match self {
            Size::Classes => rest.classes = 0,
            Size::Pipes => rest.pipes = 0,
            Size::Instances => rest.instances = 0,
        }
        rest
    }

    pub fn name(self) -> &'static str {
        match self {
            Size::Classes => "classes",
            Size::Pipes => "pipes",
            Size::Instances => "instances",
        }
    }
}

impl<'a> Row<'a> {
    /// All rows of two models at least.
    pub fn all(groups: &'a [Group<'a>]) -> Vec<Row<'a>> {
        let mut rows: Vec<Row> = Vec::new();
        for size in [Size::Classes, Size::Pipes, Size::Instances] {
            let mut kinds: Vec<(Model, u64, Vec<&Group>)> = Vec::new();
            for group in groups {
                let Some(model) = &group.scenario.model else { continue };
                let rest = size.without(model);
                match kinds.iter_mut().find(|(kind, rate_bps, _)| *kind == rest && *rate_bps == group.rate_bps) {
                    Some((_, _, same)) => same.push(group),
                    None => kinds.push((rest, group.rate_bps, vec![group])),
                }
            }
            for (_, _, mut groups) in kinds.into_iter().filter(|(_, _, groups)| groups.len() > 1) {
                groups.sort_by_key(|group| group.scenario.model.as_ref().map(|model| size.of(model)));
                rows.push(Row { size, groups });
            }
        }
        rows
    }

    /// The numbers as text.
    pub fn names(&self) -> Vec<String> {
        let models = self.groups.iter().filter_map(|group| group.scenario.model.as_ref());
        models.map(|model| self.size.of(model).to_string()).collect()
    }

    /// The settings that the models have in common.
    pub fn title(&self) -> String {
        let Some((group, model)) = self.groups.first().and_then(|group| Some((group, group.scenario.model.as_ref()?)))
        else {
            return String::new();
        };
        let rate = number::rate(group.rate_bps);
        let sizes = [Size::Classes, Size::Pipes, Size::Instances].into_iter().filter(|size| *size != self.size);
        let sizes: Vec<String> = sizes.map(|size| counted(size, size.of(model))).collect();
        if model.real {
            return format!("By {}: AF_XDP, {} % of {rate}, {} flows", self.size.name(), model.load, model.pipes);
        }
        format!("By {}: {} of {rate}, {}", self.size.name(), format_args!("{} %", model.load), sizes.join(", "))
    }
}

fn counted(size: Size, n: u32) -> String {
    let name = size.name();
    match (n, size) {
        (1, Size::Classes) => "1 class".to_owned(),
        (1, _) => format!("1 {}", name.trim_end_matches('s')),
        _ => format!("{n} {name}"),
    }
}

/// A model with figures beside those that were published for it.
pub struct Beside<'a> {
    pub group: &'a Group<'a>,
    /// A row for each: its name, whether it was published, and the least, mean and greatest latency, us.
    pub rows: Vec<(String, bool, [Option<f64>; 3])>,
    /// The factor by which the mean is less with backpressure: published and here.
    pub times: [Option<f64>; 2],
}

impl<'a> Beside<'a> {
    /// The models that have published figures.
    pub fn all(groups: &'a [Group<'a>]) -> Vec<Beside<'a>> {
        groups.iter().filter_map(Beside::of).collect()
    }

    fn of(group: &'a Group<'a>) -> Option<Beside<'a>> {
        let published = group.scenario.published.as_ref()?;
        let mut rows = vec![
            ("published, without".to_owned(), true, published.without.map(Some)),
            ("published, with backpressure".to_owned(), true, published.with.map(Some)),
        ];
        let ranks = [Rank::Min, Rank::Mean, Rank::Max];
        rows.extend(group.measured().map(|entry| {
            let figures = ranks.map(|rank| Some(entry.get(ALL, Measure::Delay(Path::Modelled, rank))?.median));
            (entry.contender.title.clone(), false, figures)
        }));
        let theirs = published.without[1] / published.with[1];
        Some(Beside { group, rows, times: [Some(theirs), times(group, ALL)] })
    }
}

/// The factor by which the mean latency of some packets is less for Sluice than for the first other contender.
pub fn times(group: &Group, load: &str) -> Option<f64> {
    let mean = |entry: &Entry| Some(entry.get(load, Measure::Delay(Path::Modelled, Rank::Mean))?.median);
    let ours = group.measured().find(|entry| entry.contender.ours).and_then(mean)?;
    let other = group.measured().find(|entry| !entry.contender.ours).and_then(mean)?;
    (ours > 0.0).then(|| other / ours)
}

/// The ratios of a model that the published evaluation tells: of all packets, and of all classes but the last.
pub fn both_times(group: &Group) -> [Option<f64>; 2] {
    [times(group, ALL), times(group, EARLY)]
}
