//! The course of a trial, a panel for each contender: the probe's delay above, rates below.

use maud::Markup;

use super::super::group::{Entry, Group};
use super::super::number;
use super::canvas::{Anchor, Canvas, picture};
use super::scale::Scale;
use super::style::Style;
use crate::result::results::Measured;
use sluice_error::Result;

const WIDTH: u32 = 720;
const LEFT: i32 = 84;
const RIGHT: i32 = 704;
/// Top and bottom of the delay plot.
const DELAYS: (i32, i32) = (16, 196);
const RATES: (i32, i32) = (232, 392);
/// Height of the axis below the plots.
const AXIS_HEIGHT: i32 = 60;
/// Intervals of the delay plot, which shows the worst delay of each.
const DELAY_INTERVALS: usize = 124;
const RATE_INTERVALS: usize = 62;

/// A contender's panel.
pub struct Panel {
    pub contender: String,
    pub ours: bool,
    pub svg: Markup,
    /// Descriptions of the scenario's events.
    pub events: Vec<String>,
}

/// The axes that the panels share.
struct Axes {
    time: Scale,
    from_ms: f64,
    to_ms: f64,
    delay: Option<Scale>,
    rate: Option<Scale>,
    bottom: i32,
    probe: Option<String>,
    loads: Vec<String>,
}

/// A panel for each measured contender, of the repeat with the median p99; none without series.
pub fn panels(id: &str, group: &Group) -> Result<Vec<Panel>> {
    let probe = group.probes().first().map(|load| load.name.clone());
    let typical: Vec<(&Entry, &Measured)> =
        group.measured().filter_map(|entry| Some((entry, entry.typical(probe.as_deref())?))).collect();
    let Some(axes) = Axes::of(group, &typical, probe) else { return Ok(Vec::new()) };
    let size = (WIDTH, (axes.bottom + AXIS_HEIGHT) as u32);
    let what: Vec<&str> = [
        axes.delay.map(|_| "above: delay of the probe in ms, logarithmic, the worst of each stretch"),
        axes.rate.map(|_| "below: rates of the bulk loads in Mbit/s, stacked"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut panels = Vec::new();
    for (at, (entry, measured)) in typical.iter().enumerate() {
        let title = format!("{} over time: {}", entry.contender.title, group.title());
        let svg =
            picture(&format!("{id}-{at}"), size, &title, &what.join("; "), |canvas| draw(canvas, &axes, measured))?;
        let events = measured.events.iter().map(|event| {
            let at = number::fixed(event.at_ms / 1e3, 1);
            format!("{at} s: {}, took {} ms", event.what, number::digits(event.took_ms))
        });
        panels.push(Panel {
            contender: entry.contender.title.clone(),
            ours: entry.contender.ours,
            svg,
            events: events.collect(),
        });
    }
    Ok(panels)
}

impl Axes {
    fn of(group: &Group, typical: &[(&Entry, &Measured)], probe: Option<String>) -> Option<Axes> {
        let loads: Vec<String> = group.flow_loads().into_iter().map(|load| load.name.clone()).collect();
        let delays = || typical.iter().filter_map(|(_, m)| m.delays_of(probe.as_deref()?)).flat_map(|d| &d.series);
        let rates = || typical.iter().flat_map(|(_, m)| &m.flows).flat_map(|f| &f.series);
        let finite = |ms: &f64| ms.is_finite();
        let starts = delays().map(|(ms, _)| *ms).filter(finite).fold(0.0, f64::min);
        let ends = typical.iter().map(|(_, m)| m.to_ms).filter(finite).fold(0.0, f64::max);
        let delay = Scale::logarithmic(delays().filter_map(|(_, delay)| *delay), (DELAYS.1, DELAYS.0));
        let plot = if delay.is_some() { RATES } else { DELAYS };
        let greatest = typical.iter().map(|(_, m)| stack(m, &loads, 0.0, ends).1).fold(0.0, f64::max);
        let greatest = greatest.max(group.rate_bps as f64 / 1e6);
        let rate = rates().next().map(|_| Scale::from_zero(greatest, (plot.1, plot.0)));
        if (delay.is_none() && rate.is_none()) || ends <= starts {
            return None;
        }
        let time = Scale::linear(starts / 1e3, ends / 1e3, (LEFT, RIGHT));
        let bottom = if rate.is_some() { plot.1 } else { DELAYS.1 };
        Some(Axes { time, from_ms: starts, to_ms: ends, delay, rate, bottom, probe, loads })
    }
}

fn draw(canvas: &Canvas, axes: &Axes, measured: &Measured) {
    let time = |ms: f64| axes.time.at(ms / 1e3);
    canvas.bar((LEFT, DELAYS.0), (time(measured.from_ms), axes.bottom), Style::Shade);
    for (at, label) in axes.time.labels(6.0) {
        canvas.line(&[(at, DELAYS.0), (at, axes.bottom)], Style::Grid);
        canvas.text(&label, (at, axes.bottom + 8), Anchor::Below, Style::Label);
    }
    canvas.text("s", (LEFT - 14, axes.bottom + 20), Anchor::Right, Style::Quiet);
    for event in &measured.events {
        canvas.line(&[(time(event.at_ms), DELAYS.0), (time(event.at_ms), axes.bottom)], Style::Alarm);
    }
    if let Some(delay) = axes.delay {
        levels(canvas, &delay, "ms", DELAYS);
        delays(canvas, axes, &delay, measured);
    }
    if let Some(rate) = axes.rate {
        levels(canvas, &rate, "Mbit/s", if axes.delay.is_some() { RATES } else { DELAYS });
        let (stack, _) = stack(measured, &axes.loads, axes.from_ms.max(0.0), axes.to_ms);
        for pair in 0..axes.loads.len() {
            let edge =
                |level: usize| stack.iter().map(move |(ms, levels)| (*ms, levels[level])).collect::<Vec<(f64, f64)>>();
            let upper = edge(pair + 1).into_iter().map(|(ms, mbit)| (time(ms), rate.at(mbit)));
            let lower = edge(pair).into_iter().rev().map(|(ms, mbit)| (time(ms), rate.at(mbit)));
            canvas.surface(&upper.chain(lower).collect::<Vec<(i32, i32)>>(), Style::Load(pair));
        }
    }
    canvas.line(&[(LEFT, axes.bottom), (RIGHT, axes.bottom)], Style::Axis);
}

fn levels(canvas: &Canvas, scale: &Scale, unit: &str, (top, _): (i32, i32)) {
    for (at, label) in scale.labels(3.0) {
        canvas.line(&[(LEFT, at), (RIGHT, at)], Style::Grid);
        // The unit takes the place of a number.
        let label = if at <= top + 12 { format!("{label} {unit}") } else { label };
        let inside = label.contains(' ');
        let (x, anchor) = if inside { (LEFT + 8, Anchor::Under) } else { (LEFT - 10, Anchor::Right) };
        canvas.text(&label, (x, if inside { at + 2 } else { at }), anchor, Style::Label);
    }
}

/// Draws the worst delay of each interval, and a mark above lost packets.
fn delays(canvas: &Canvas, axes: &Axes, scale: &Scale, measured: &Measured) {
    let Some(delays) = axes.probe.as_deref().and_then(|probe| measured.delays_of(probe)) else { return };
    let mut worst: [Option<f64>; DELAY_INTERVALS] = [None; DELAY_INTERVALS];
    let mut lost = [false; DELAY_INTERVALS];
    let length_ms = (axes.to_ms - axes.from_ms) / DELAY_INTERVALS as f64;
    for (sent_ms, delay) in delays.series.iter().filter(|(ms, _)| (axes.from_ms..axes.to_ms).contains(ms)) {
        let stretch = (((sent_ms - axes.from_ms) / length_ms) as usize).min(DELAY_INTERVALS - 1);
        match delay {
            Some(ms) => worst[stretch] = Some(worst[stretch].map_or(*ms, |worst| worst.max(*ms))),
            None => lost[stretch] = true,
        }
    }
    let x = |stretch: usize| axes.time.at((axes.from_ms + length_ms * (stretch as f64 + 0.5)) / 1e3);
    let known = worst.iter().flatten().count();
    let mut line = Vec::new();
    for (stretch, worst) in worst.iter().enumerate() {
        match worst {
            Some(ms) => line.push((x(stretch), scale.at(*ms))),
            None if lost[stretch] => {
                canvas.line(&line, Style::Ink);
                line.clear();
            }
            None => {}
        }
    }
    canvas.line(&line, Style::Ink);
    // Sparse samples, such as pages, are drawn one by one.
    if known < DELAY_INTERVALS / 2 {
        let dots = worst.iter().enumerate().filter_map(|(stretch, ms)| Some((x(stretch), scale.at((*ms)?))));
        dots.for_each(|at| canvas.dot(at, 4, Style::Ink));
    }
    for (stretch, _) in lost.iter().enumerate().filter(|(_, lost)| **lost) {
        canvas.bar((x(stretch) - 2, DELAYS.0), (x(stretch) + 2, DELAYS.0 + 14), Style::Alarm);
    }
}

/// Stacked rates of the loads: time, and each load's lower end and the last one's upper; and the greatest sum.
fn stack(measured: &Measured, loads: &[String], from_ms: f64, to_ms: f64) -> (Vec<(f64, Vec<f64>)>, f64) {
    let length_ms = (to_ms - from_ms) / RATE_INTERVALS as f64;
    let mut greatest = 0.0;
    let mut rates: Vec<Vec<f64>> = Vec::new();
    for load in loads {
        let mut sums = vec![(0.0, 0u32); RATE_INTERVALS];
        let series = measured.flows_of(load).map(|flows| flows.series.as_slice()).unwrap_or_default();
        for (end_ms, mbit) in series.iter().filter(|(ms, mbit)| *ms > from_ms && *ms <= to_ms && mbit.is_finite()) {
            let step = (((end_ms - from_ms) / length_ms).ceil() as usize).clamp(1, RATE_INTERVALS) - 1;
            sums[step] = (sums[step].0 + mbit, sums[step].1 + 1);
        }
        let mut last = 0.0;
        let last_ms = series.iter().map(|(ms, _)| *ms).fold(f64::NEG_INFINITY, f64::max);
        rates.push(
            sums.iter()
                .enumerate()
                .map(|(step, (sum, count))| {
                    let over = from_ms + length_ms * step as f64 > last_ms;
                    last = if *count > 0 {
                        sum / f64::from(*count)
                    } else if over {
                        0.0
                    } else {
                        last
                    };
                    last
                })
                .collect(),
        );
    }
    let mut stack = Vec::with_capacity(RATE_INTERVALS);
    for step in 0..RATE_INTERVALS {
        let mut levels = vec![0.0];
        for load in &rates {
            levels.push(levels[levels.len() - 1] + load[step]);
        }
        greatest = f64::max(greatest, levels[levels.len() - 1]);
        stack.push((from_ms + length_ms * (step as f64 + 0.5), levels));
    }
    (stack, greatest)
}
