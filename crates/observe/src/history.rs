//! The last hour, in bounded memory.

use crate::rates::{ClassRates, DirectionRates, Rates};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// Points of an hour at one a second.
const HOUR_POINTS: usize = 3600;
/// Series that are kept at most: 32 interfaces of 64 classes in two directions. Those beyond are not kept.
const MOST_SERIES: usize = 4096;

/// What a class, or a direction as a whole, did at one moment. Numbers are rounded to 24 bits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// What left, bits per second.
    pub sent_bps: f32,
    /// What left, packets per second.
    pub sent_pps: f32,
    /// What was dropped, packets per second.
    pub dropped_pps: f32,
    /// What left marked, packets per second.
    pub marked_pps: f32,
    /// What was in the queue, bytes.
    pub backlog_bytes: f32,
    /// Median time in the queue, microseconds. None: nothing left, or the engine does not tell.
    pub p50_us: Option<f32>,
    /// 99th percentile of it.
    pub p99_us: Option<f32>,
}

/// What a series is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Series {
    /// Name of the interface.
    pub interface: String,
    /// egress or ingress.
    pub direction: &'static str,
    /// Number of the class. None: the whole direction.
    pub class: Option<u8>,
}

/// Rates, one after another: the oldest make room for the newest.
#[derive(Debug, Clone)]
pub struct History {
    capacity: usize,
    /// Milliseconds since 1970.
    at_ms: VecDeque<u64>,
    /// How many moments were ever taken.
    taken: u64,
    series: BTreeMap<Series, Track>,
}

/// The points of a series: the last is of the moment `first + points.len() - 1`.
#[derive(Debug, Clone)]
struct Track {
    /// Number of the moment of its first point.
    first: u64,
    points: VecDeque<Compact>,
}

/// A point as it is kept. NaN: nothing is known.
#[derive(Debug, Clone, Copy)]
struct Compact([f32; 7]);

impl Compact {
    const NOTHING: Compact = Compact([f32::NAN; 7]);

    fn point(self) -> Option<Point> {
        let [sent_bps, sent_pps, dropped_pps, marked_pps, backlog_bytes, p50, p99] = self.0;
        let known = |value: f32| (!value.is_nan()).then_some(value);
        known(sent_bps)?;
        Some(Point {
            sent_bps,
            sent_pps,
            dropped_pps,
            marked_pps,
            backlog_bytes,
            p50_us: known(p50),
            p99_us: known(p99),
        })
    }

    fn of_class(class: &ClassRates) -> Compact {
        let wait = |of: fn(&crate::rates::SojournRates) -> f64| class.sojourn.as_ref().map_or(f64::NAN, of);
        Compact(
            [
                class.sent_bps,
                class.sent_pps,
                class.dropped_pps,
                class.marked_pps,
                class.backlog.bytes as f64,
                wait(|waits| waits.p50_us),
                wait(|waits| waits.p99_us),
            ]
            .map(|value| value as f32),
        )
    }

    fn of_direction(one: &DirectionRates) -> Compact {
        let values = [one.sent_bps, one.sent_pps, one.dropped_pps, one.marked_pps, one.backlog.bytes as f64];
        let [sent_bps, sent_pps, dropped_pps, marked_pps, backlog] = values.map(|value| value as f32);
        Compact([sent_bps, sent_pps, dropped_pps, marked_pps, backlog, f32::NAN, f32::NAN])
    }
}

/// Some of the history, a list per quantity: what a chart wants.
#[derive(Debug, Clone, Serialize)]
pub struct Columns {
    /// Moments, milliseconds since 1970.
    pub at_ms: Vec<u64>,
    /// What is known of each series, as long as `at_ms` each.
    pub series: Vec<Column>,
}

/// A series of [`Columns`]. `null` where nothing is known.
#[derive(Debug, Clone, Serialize)]
pub struct Column {
    /// Name of the interface.
    pub interface: String,
    /// egress or ingress.
    pub direction: &'static str,
    /// Number of the class. None: the whole direction.
    pub class: Option<u8>,
    /// What left, bits per second.
    pub sent_bps: Vec<Option<f32>>,
    /// What left, packets per second.
    pub sent_pps: Vec<Option<f32>>,
    /// What was dropped, packets per second.
    pub dropped_pps: Vec<Option<f32>>,
    /// What left marked, packets per second.
    pub marked_pps: Vec<Option<f32>>,
    /// What was in the queue, bytes.
    pub backlog_bytes: Vec<Option<f32>>,
    /// Median time in the queue, microseconds.
    pub p50_us: Vec<Option<f32>>,
    /// 99th percentile of it, microseconds.
    pub p99_us: Vec<Option<f32>>,
}

impl Default for History {
    fn default() -> History {
        History::new(HOUR_POINTS)
    }
}

impl History {
    /// Of so many moments.
    pub fn new(capacity: usize) -> History {
        History { capacity: capacity.max(1), at_ms: VecDeque::new(), taken: 0, series: BTreeMap::new() }
    }

    /// Takes what has just happened.
    pub fn push(&mut self, rates: &Rates) {
        let moment = self.taken;
        self.taken += 1;
        if self.at_ms.len() == self.capacity {
            self.at_ms.pop_front();
        }
        self.at_ms.push_back(rates.at_ms);
        for interface in &rates.interfaces {
            for one in &interface.directions {
                let name = |class| Series { interface: interface.interface.clone(), direction: one.direction, class };
                self.put(name(None), moment, Compact::of_direction(one));
                one.classes.iter().for_each(|class| self.put(name(Some(class.id)), moment, Compact::of_class(class)));
            }
        }
        let oldest = self.taken - self.at_ms.len() as u64;
        self.series.retain(|_, track| {
            while track.first < oldest && !track.points.is_empty() {
                track.points.pop_front();
                track.first += 1;
            }
            !track.points.is_empty()
        });
    }

    fn put(&mut self, name: Series, moment: u64, point: Compact) {
        let full = self.series.len() >= MOST_SERIES;
        let track = match self.series.get_mut(&name) {
            Some(track) => track,
            None if full => return,
            None => self.series.entry(name).or_insert(Track { first: moment, points: VecDeque::new() }),
        };
        // Moments at which it was away.
        while track.first + (track.points.len() as u64) < moment {
            track.points.push_back(Compact::NOTHING);
        }
        track.points.push_back(point);
    }

    /// Moments that it holds.
    pub fn len(&self) -> usize {
        self.at_ms.len()
    }

    /// Whether nothing was taken yet.
    pub fn is_empty(&self) -> bool {
        self.at_ms.is_empty()
    }

    /// Every series that it holds.
    pub fn series(&self) -> impl Iterator<Item = &Series> {
        self.series.keys()
    }

    /// The last so many moments of a series, oldest first. None: nothing is known of that moment.
    pub fn last<'a>(&'a self, name: &Series, moments: usize) -> impl Iterator<Item = Option<Point>> + use<'a> {
        let track = self.series.get(name);
        let from = self.taken - moments.min(self.at_ms.len()) as u64;
        (from..self.taken).map(move |moment| {
            let track = track?;
            let place = moment.checked_sub(track.first)?;
            track.points.get(place as usize)?.point()
        })
    }

    /// The last so many moments of every series that `wanted` wants.
    pub fn columns(&self, moments: usize, wanted: impl Fn(&Series) -> bool) -> Columns {
        let from = self.at_ms.len() - moments.min(self.at_ms.len());
        let column = |name: &Series| {
            let points: Vec<Option<Point>> = self.last(name, moments).collect();
            let list = |of: fn(&Point) -> Option<f32>| points.iter().map(|point| point.as_ref().and_then(of)).collect();
            Column {
                interface: name.interface.clone(),
                direction: name.direction,
                class: name.class,
                sent_bps: list(|point| Some(point.sent_bps)),
                sent_pps: list(|point| Some(point.sent_pps)),
                dropped_pps: list(|point| Some(point.dropped_pps)),
                marked_pps: list(|point| Some(point.marked_pps)),
                backlog_bytes: list(|point| Some(point.backlog_bytes)),
                p50_us: list(|point| point.p50_us),
                p99_us: list(|point| point.p99_us),
            }
        };
        Columns {
            at_ms: self.at_ms.iter().skip(from).copied().collect(),
            series: self.series.keys().filter(|name| wanted(name)).map(column).collect(),
        }
    }

    /// Memory that it takes, bytes, but for a little per series.
    pub fn memory_bytes(&self) -> usize {
        let points: usize = self.series.values().map(|track| track.points.capacity()).sum();
        points * size_of::<Compact>() + self.at_ms.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests;
