//! The rates of the last hour, in bounded memory.

use crate::rates::{ClassRates, DirectionRates, Rates};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// Points of an hour at one a second.
const HOUR_POINTS: usize = 3600;
/// Most series that are kept: 32 interfaces of 64 classes in two directions. Series beyond are not kept.
const MAX_SERIES: usize = 4096;

/// The rates of a class, or of a direction as a whole, at one moment. Numbers are rounded to 24 bits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Sending rate, bits per second.
    pub sent_bps: f32,
    /// Sending rate, packets per second.
    pub sent_pps: f32,
    /// Drop rate, packets per second.
    pub dropped_pps: f32,
    /// Rate of packets that left marked, packets per second.
    pub marked_pps: f32,
    /// Backlog of the queue, bytes.
    pub backlog_bytes: f32,
    /// Median time in the queue, microseconds. None: no packet left, or the engine does not measure it.
    pub p50_us: Option<f32>,
    /// 99th percentile of the time in the queue, microseconds.
    pub p99_us: Option<f32>,
}

/// Identity of a series.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Series {
    /// Name of the interface.
    pub interface: String,
    /// Name of the direction: egress or ingress.
    pub direction: &'static str,
    /// Number of the class. None: the whole direction.
    pub class: Option<u8>,
}

/// Rates of the last moments: the oldest make room for the newest.
#[derive(Debug, Clone)]
pub struct History {
    capacity: usize,
    /// Moments, milliseconds since 1970.
    at_ms: VecDeque<u64>,
    /// Number of moments that were ever taken.
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

/// A stored point. NaN: nothing is known.
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

/// A part of the history, as a list per quantity for charts.
#[derive(Debug, Clone, Serialize)]
pub struct Columns {
    /// Moments, milliseconds since 1970.
    pub at_ms: Vec<u64>,
    /// Values of each series, as many as `at_ms` has.
    pub series: Vec<Column>,
}

/// A series of [`Columns`]. `null` where nothing is known.
#[derive(Debug, Clone, Serialize)]
pub struct Column {
    /// Name of the interface.
    pub interface: String,
    /// Name of the direction: egress or ingress.
    pub direction: &'static str,
    /// Number of the class. None: the whole direction.
    pub class: Option<u8>,
    /// Sending rate, bits per second.
    pub sent_bps: Vec<Option<f32>>,
    /// Sending rate, packets per second.
    pub sent_pps: Vec<Option<f32>>,
    /// Drop rate, packets per second.
    pub dropped_pps: Vec<Option<f32>>,
    /// Rate of packets that left marked, packets per second.
    pub marked_pps: Vec<Option<f32>>,
    /// Backlog of the queue, bytes.
    pub backlog_bytes: Vec<Option<f32>>,
    /// Median time in the queue, microseconds.
    pub p50_us: Vec<Option<f32>>,
    /// 99th percentile of the time in the queue, microseconds.
    pub p99_us: Vec<Option<f32>>,
}

impl Default for History {
    fn default() -> History {
        History::new(HOUR_POINTS)
    }
}

impl History {
    /// A history of so many moments.
    pub fn new(capacity: usize) -> History {
        History { capacity: capacity.max(1), at_ms: VecDeque::new(), taken: 0, series: BTreeMap::new() }
    }

    /// Adds the rates of a moment.
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
        let full = self.series.len() >= MAX_SERIES;
        let track = match self.series.get_mut(&name) {
            Some(track) => track,
            None if full => return,
            None => self.series.entry(name).or_insert(Track { first: moment, points: VecDeque::new() }),
        };
        // Moments without the series are filled with nothing.
        while track.first + (track.points.len() as u64) < moment {
            track.points.push_back(Compact::NOTHING);
        }
        track.points.push_back(point);
    }

    /// Number of moments in the history.
    pub fn len(&self) -> usize {
        self.at_ms.len()
    }

    /// Whether no moment was taken yet.
    pub fn is_empty(&self) -> bool {
        self.at_ms.is_empty()
    }

    /// Every series in the history.
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

    /// The last so many moments of every series that `wanted` selects.
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

    /// Memory of the history, bytes, except for a little per series.
    pub fn memory_bytes(&self) -> usize {
        let points: usize = self.series.values().map(|track| track.points.capacity()).sum();
        points * size_of::<Compact>() + self.at_ms.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests;
