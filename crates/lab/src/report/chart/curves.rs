//! The distribution of a load's delays, a curve for each contender; the slow tail is stretched.

use maud::Markup;

use super::super::group::{Entry, Group};
use super::super::measure::{Measure, Path, Rank};
use super::canvas::{Anchor, Canvas, picture};
use super::scale::Scale;
use super::style::Style;
use crate::result::results::{Delays, LoadInfo, Measured};
use sluice_error::Result;

const SIZE: (u32, u32) = (1440, 620);
const LEFT: i32 = 96;
const RIGHT: i32 = 1410;
const TOP: i32 = 20;
const BOTTOM: i32 = 530;
/// Points of a curve.
const POINTS: usize = 180;
/// The number of curves that have colours of their own.
const COLOURED: usize = 8;
/// The number of rivals with a colour where not all have one.
const RIVALS: usize = 4;
/// The shares of packets that have labels.
const SHARES: [(f64, &str); 6] =
    [(0.0, "0 %"), (0.5, "50 %"), (0.9, "90 %"), (0.95, "95 %"), (0.99, "99 %"), (0.999, "99.9 %")];

/// A chart and the contenders in it.
pub struct Curves {
    pub svg: Markup,
    /// The least p99 first: style, title, p99.
    pub legend: Vec<(Style, String, String)>,
}

/// The curve of one contender.
struct Curve<'a> {
    entry: &'a Entry<'a>,
    /// The delays of the packets that arrived, sorted, in the unit of the measure.
    arrived: Vec<f64>,
    /// The number of packets, lost ones included.
    sent: usize,
    p99: Option<f64>,
}

/// The curves of this load's delays, if there are any.
pub fn curves(id: &str, group: &Group, load: &LoadInfo, styles: &[Style]) -> Result<Option<Curves>> {
    let path = group.path(&load.name);
    let measure = Measure::Delay(path, Rank::P99);
    let mut all: Vec<Curve> = group.measured().filter_map(|entry| Curve::of(entry, load, measure)).collect();
    all.sort_by(|a, b| a.p99.unwrap_or(f64::INFINITY).total_cmp(&b.p99.unwrap_or(f64::INFINITY)));
    let Some(x) = Scale::logarithmic(all.iter().flat_map(|curve| curve.arrived.iter().copied()), (LEFT, RIGHT)) else {
        return Ok(None);
    };
    let most = all.iter().map(|curve| curve.sent).max().unwrap_or(0) as f64;
    let nines = most.log10().clamp(1.0, 3.0);
    let y = Scale::linear(0.0, nines, (BOTTOM, TOP));

    let crowded = all.len() > COLOURED;
    let mut rivals = 0;
    let drawn: Vec<(Style, &Curve)> = all
        .iter()
        .map(|curve| {
            rivals += usize::from(!curve.entry.contender.ours);
            let faint = crowded && !curve.entry.contender.ours && rivals > RIVALS;
            (if faint { Style::Faint } else { styles[curve.entry.index] }, curve)
        })
        .collect();
    let what = group.timed(&load.name);
    let title = format!("Delays of {}: {}", load.name, group.title());
    let description = format!(
        "Share of packets (up) that took no longer than a delay in {} ({what}, logarithmic, to the right); a curve \
         further left is better. p99 by contender: {}.",
        measure.unit(),
        all.iter().map(|curve| curve.description(measure)).collect::<Vec<String>>().join(", ")
    );
    let svg = picture(id, SIZE, &title, &description, |canvas| {
        frame(canvas, &x, &y, nines, &format!("{what}, {}", measure.unit()));
        // The most important curve is drawn last, over the others.
        let rank = |style: Style| match style {
            Style::Faint => 0,
            Style::Ours(_) => 2,
            _ => 1,
        };
        for level in 0..=2 {
            for (style, curve) in drawn.iter().filter(|(style, _)| rank(*style) == level) {
                canvas.line(&curve.points(&x, &y, nines), *style);
            }
        }
    })?;
    let legend = drawn
        .iter()
        .map(|(style, curve)| {
            let p99 = curve.entry.get(&load.name, measure).map_or(String::new(), |p99| measure.quantity(p99.median));
            (*style, curve.entry.contender.title.clone(), p99)
        })
        .collect();
    Ok(Some(Curves { svg, legend }))
}

impl<'a> Curve<'a> {
    fn of(entry: &'a Entry<'a>, load: &LoadInfo, measure: Measure) -> Option<Curve<'a>> {
        let (mut arrived, mut sent) = (Vec::new(), 0);
        let unit = if matches!(measure, Measure::Delay(Path::Modelled, _)) { 1e3 } else { 1.0 };
        for (measured, delays) in entry.delays(&load.name) {
            for delay in window(measured, delays) {
                sent += 1;
                arrived.extend(delay.filter(|ms| ms.is_finite()).map(|ms| (ms * unit).max(1e-3)));
            }
        }
        arrived.sort_by(f64::total_cmp);
        let p99 = entry.get(&load.name, measure).map(|p99| p99.median);
        (!arrived.is_empty()).then_some(Curve { entry, arrived, sent, p99 })
    }

    fn points(&self, x: &Scale, y: &Scale, nines: f64) -> Vec<(i32, i32)> {
        let mut points: Vec<(i32, i32)> = Vec::with_capacity(POINTS);
        for step in 0..=POINTS {
            let at = nines * step as f64 / POINTS as f64;
            let rank = (((1.0 - 10f64.powf(-at)) * self.sent as f64).ceil() as usize).max(1);
            let Some(ms) = self.arrived.get(rank - 1) else { break };
            let point = (x.at(*ms), y.at(at));
            match points.as_mut_slice() {
                // A vertical segment needs only its end.
                [.., before, last] if before.0 == last.0 && last.0 == point.0 => *last = point,
                _ => points.push(point),
            }
        }
        points
    }

    fn description(&self, measure: Measure) -> String {
        let p99 = self.p99.map_or("not known".to_owned(), |p99| measure.quantity(p99));
        format!("{} {p99}", self.entry.contender.title)
    }
}

fn window<'a>(measured: &'a Measured, delays: &'a Delays) -> impl Iterator<Item = Option<f64>> + 'a {
    let window = measured.from_ms..measured.to_ms;
    delays.series.iter().filter(move |(sent_ms, _)| window.contains(sent_ms)).map(|(_, delay)| *delay)
}

fn frame(canvas: &Canvas, x: &Scale, y: &Scale, nines: f64, what: &str) {
    for (share, label) in SHARES {
        let at = -(1.0 - share).log10();
        if at <= nines + 1e-9 {
            canvas.line(&[(LEFT, y.at(at)), (RIGHT, y.at(at))], Style::Grid);
            canvas.text(label, (LEFT - 12, y.at(at)), Anchor::Right, Style::Label);
        }
    }
    for (at, label) in x.labels(8.0) {
        canvas.line(&[(at, TOP), (at, BOTTOM)], Style::Grid);
        canvas.text(&label, (at, BOTTOM + 14), Anchor::Below, Style::Label);
    }
    canvas.line(&[(LEFT, BOTTOM), (RIGHT, BOTTOM)], Style::Axis);
    canvas.text(&format!("delay, {what} →"), (RIGHT, BOTTOM + 62), Anchor::Right, Style::Quiet);
    canvas.text("↑ share of packets that took no longer", (LEFT, BOTTOM + 62), Anchor::Left, Style::Quiet);
}
