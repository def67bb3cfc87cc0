//! A row for each contender: bars of costs and of fetch times, points of rate shares.

use maud::Markup;

use super::super::group::{Entry, Group};
use super::super::measure::{Measure, Path, Rank};
use super::canvas::{Anchor, Canvas, picture};
use super::scale::Scale;
use super::style::Style;
use crate::result::results::{LoadInfo, Measured};
use sluice_error::Result;

const WIDTH: u32 = 1040;
const LEFT: i32 = 290;
const RIGHT: i32 = 930;
const TOP: i32 = 16;
const ROW: i32 = 42;
const AXIS_HEIGHT: i32 = 80;
/// Longest name, characters.
const NAME: usize = 22;

/// A bar: the value, and its range.
struct Bar<'a> {
    entry: &'a Entry<'a>,
    value: f64,
    ends: (f64, f64),
}

/// The cost of each contender, if it is known.
pub fn costs(id: &str, group: &Group, styles: &[Style]) -> Result<Option<Markup>> {
    let measure = group.cost_measure();
    let unit = if measure == Measure::Instructions {
        "instructions a packet, all hosts and tools"
    } else {
        "processors busy, percent, all hosts and tools"
    };
    let bars = group.measured().filter_map(|entry| {
        let spread = entry.get("", measure)?;
        Some(Bar { entry, value: spread.median, ends: (spread.min, spread.max) })
    });
    let title = format!("Cost: {}", group.title());
    chart(id, &title, unit, measure, &bars.collect::<Vec<Bar>>(), styles)
}

/// The fetch times of this load: the median, and up to p95.
pub fn fetches(id: &str, group: &Group, load: &LoadInfo, styles: &[Style]) -> Result<Option<Markup>> {
    let measure = |rank: Rank| Measure::Delay(Path::Whole, rank);
    let bars = group.measured().filter_map(|entry| {
        let median = entry.get(&load.name, measure(Rank::P50))?.median;
        let p95 = entry.get(&load.name, measure(Rank::P95))?.median;
        Some(Bar { entry, value: median, ends: (median, p95) })
    });
    let title = format!("Fetches of {}: {}", load.name, group.title());
    let bars: Vec<Bar> = bars.collect();
    chart(id, &title, "ms for a page, the median; the thin line goes up to p95", measure(Rank::P50), &bars, styles)
}

fn chart(
    id: &str,
    title: &str,
    unit: &str,
    measure: Measure,
    bars: &[Bar],
    styles: &[Style],
) -> Result<Option<Markup>> {
    if bars.is_empty() {
        return Ok(None);
    }
    let x = Scale::from_zero(bars.iter().map(|bar| bar.value.max(bar.ends.1)).fold(0.0, f64::max), (LEFT, RIGHT));
    let descriptions: Vec<String> =
        bars.iter().map(|bar| format!("{} {}", bar.entry.contender.title, measure.text(bar.value))).collect();
    let size = (WIDTH, (TOP + ROW * bars.len() as i32 + AXIS_HEIGHT) as u32);
    let svg = picture(id, size, title, &format!("Bars, {unit}: {}.", descriptions.join(", ")), |canvas| {
        frame(canvas, &x, bars.len(), unit);
        for (row, bar) in bars.iter().enumerate() {
            let middle = name(canvas, row, bar.entry);
            canvas.bar((LEFT, middle - 12), (x.at(bar.value), middle + 12), styles[bar.entry.index]);
            canvas.line(&[(x.at(bar.ends.0), middle), (x.at(bar.ends.1), middle)], Style::Ink);
            let end = x.at(bar.value.max(bar.ends.1));
            canvas.text(&measure.text(bar.value), (end + 14, middle), Anchor::Left, Style::Label);
        }
    })?;
    Ok(Some(svg))
}

/// The rate of each flow or weighted load, as a multiple of its due share; none with fewer than two.
pub fn shares(id: &str, group: &Group) -> Result<Option<Markup>> {
    let rows: Vec<(&Entry, Vec<(usize, f64)>)> = group
        .measured()
        .filter_map(|entry| Some((entry, parts(group, entry.typical(None)?))))
        .filter(|(_, parts)| parts.len() > 1)
        .collect();
    if rows.is_empty() {
        return Ok(None);
    }
    let greatest = rows.iter().flat_map(|(_, parts)| parts).map(|(_, part)| *part).fold(1.5, f64::max);
    let x = Scale::from_zero(greatest, (LEFT, RIGHT));
    let size = (WIDTH, (TOP + ROW * rows.len() as i32 + AXIS_HEIGHT) as u32);
    let title = format!("Shares: {}", group.title());
    let about = "A point for each flow, or each load with a weight: what it got, as a multiple of its due share; all at \
                 1 is exactly fair.";
    let svg = picture(id, size, &title, about, |canvas| {
        frame(canvas, &x, rows.len(), "times the share that was due");
        let bottom = TOP + ROW * rows.len() as i32;
        canvas.line(&[(x.at(1.0), TOP), (x.at(1.0), bottom)], Style::Axis);
        for (row, (entry, parts)) in rows.iter().enumerate() {
            let middle = name(canvas, row, entry);
            let at = parts.iter().map(|(_, part)| x.at(*part));
            if let Some((least, most)) = at.clone().min().zip(at.max()) {
                canvas.line(&[(least, middle), (most, middle)], Style::Grid);
            }
            parts.iter().for_each(|(load, part)| canvas.dot((x.at(*part), middle), 9, Style::Load(*load)));
        }
    })?;
    Ok(Some(svg))
}

/// The index of the load among those with rates, and its rate as a multiple of its due share.
fn parts(group: &Group, measured: &Measured) -> Vec<(usize, f64)> {
    let loads: Vec<(usize, &LoadInfo, f64)> = group
        .flow_loads()
        .into_iter()
        .enumerate()
        .filter_map(|(at, load)| Some((at, load, measured.flows_of(&load.name)?.mbit)))
        .collect();
    let weighted: Vec<(usize, f64, f64)> =
        loads.iter().filter_map(|(at, load, mbit)| Some((*at, load.weight.filter(|w| *w > 0.0)?, *mbit))).collect();
    let (all_weight, all_mbit) =
        weighted.iter().fold((0.0, 0.0), |sum, (_, weight, mbit)| (sum.0 + weight, sum.1 + mbit));
    if weighted.len() > 1 && all_mbit > 0.0 {
        return weighted.iter().map(|(at, weight, mbit)| (*at, mbit / all_mbit * all_weight / weight)).collect();
    }
    let mut parts = Vec::new();
    for (at, load, _) in loads {
        let each = measured.flows_of(&load.name).map(|flows| flows.each_mbit.as_slice()).unwrap_or_default();
        let mean = each.iter().sum::<f64>() / each.len() as f64;
        if each.len() > 1 && mean > 0.0 {
            parts.extend(each.iter().map(|mbit| (at, mbit / mean)));
        }
    }
    parts
}

fn frame(canvas: &Canvas, x: &Scale, rows: usize, unit: &str) {
    let bottom = TOP + ROW * rows as i32;
    for (at, label) in x.labels(6.0) {
        canvas.line(&[(at, TOP), (at, bottom)], Style::Grid);
        canvas.text(&label, (at, bottom + 10), Anchor::Below, Style::Label);
    }
    canvas.line(&[(LEFT, TOP), (LEFT, bottom)], Style::Axis);
    canvas.text(unit, (LEFT, bottom + 60), Anchor::Left, Style::Quiet);
}

/// Writes the contender's name and returns the middle of its row.
fn name(canvas: &Canvas, row: usize, entry: &Entry) -> i32 {
    let middle = TOP + ROW * row as i32 + ROW / 2;
    let title = &entry.contender.title;
    let long = title.chars().count() > NAME;
    let text = if long { title.chars().take(NAME - 1).chain(['…']).collect() } else { title.clone() };
    canvas.text(&text, (LEFT - 16, middle), Anchor::Right, Style::Label);
    middle
}
