//! A figure of some lines over steps that have names, such as numbers of instances.

use maud::Markup;

use super::canvas::{Anchor, Canvas, picture};
use super::scale::Scale;
use super::style::Style;
use sluice_error::Result;

const SIZE: (u32, u32) = (1040, 470);
const LEFT: i32 = 110;
const RIGHT: i32 = 1010;
const TOP: i32 = 20;
const BOTTOM: i32 = 380;

/// A line: a value at each step that has one.
pub struct Line {
    pub title: String,
    pub style: Style,
    pub values: Vec<Option<f64>>,
}

/// The picture's texts.
pub struct Steps<'a> {
    pub title: &'a str,
    /// The names of the steps, from the left.
    pub names: &'a [String],
    /// The name of the steps, in the plural.
    pub what: &'a str,
    /// The name of the values, with their unit.
    pub unit: &'a str,
    /// Values go from zero in equal steps, not by decades.
    pub linear: bool,
}

/// Draws lines over steps; none without a value to draw.
pub fn steps(id: &str, of: &Steps, lines: &[Line]) -> Result<Option<Markup>> {
    let all = || lines.iter().flat_map(|line| line.values.iter().copied().flatten());
    let greatest = all().fold(0.0, f64::max);
    let y = if of.linear {
        all().next().map(|_| Scale::from_zero(greatest, (BOTTOM, TOP)))
    } else {
        Scale::logarithmic(all(), (BOTTOM, TOP))
    };
    let Some(y) = y else { return Ok(None) };
    let count = of.names.len().max(1) as i32;
    let x = |at: usize| LEFT + (RIGHT - LEFT) * (2 * at as i32 + 1) / (2 * count);
    let described: Vec<String> = lines.iter().map(|line| described(line, of.names)).collect();
    let description = format!("{} over {}: {}.", of.unit, of.what, described.join("; "));
    let svg = picture(id, SIZE, of.title, &description, |canvas| {
        frame(canvas, &y, of, &x);
        for line in lines {
            let points: Vec<(i32, i32)> =
                line.values.iter().enumerate().filter_map(|(at, value)| Some((x(at), y.at((*value)?)))).collect();
            canvas.line(&points, line.style);
            points
                .iter()
                .for_each(|point| canvas.bar((point.0 - 6, point.1 - 6), (point.0 + 6, point.1 + 6), line.style));
        }
    })?;
    Ok(Some(svg))
}

fn described(line: &Line, names: &[String]) -> String {
    let values = names.iter().zip(&line.values);
    let values: Vec<String> = values.filter_map(|(name, value)| Some(format!("{name}: {:.2}", (*value)?))).collect();
    format!("{} ({})", line.title, values.join(", "))
}

fn frame(canvas: &Canvas, y: &Scale, of: &Steps, x: &dyn Fn(usize) -> i32) {
    for (at, label) in y.labels(6.0) {
        canvas.line(&[(LEFT, at), (RIGHT, at)], Style::Grid);
        canvas.text(&label, (LEFT - 14, at), Anchor::Right, Style::Label);
    }
    for (at, name) in of.names.iter().enumerate() {
        canvas.text(name, (x(at), BOTTOM + 12), Anchor::Below, Style::Label);
    }
    canvas.line(&[(LEFT, BOTTOM), (RIGHT, BOTTOM)], Style::Axis);
    canvas.text(&format!("↑ {}", of.unit), (LEFT, BOTTOM + 66), Anchor::Left, Style::Quiet);
    canvas.text(&format!("{} →", of.what), (RIGHT, BOTTOM + 66), Anchor::Right, Style::Quiet);
}
