//! The game's ping over time, drawn in the terminal: both runs, logarithmic.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::symbols::Marker;
use ratatui::symbols::line::VERTICAL;
use ratatui::widgets::{Axis, Chart, Dataset, GraphType, Widget};

use super::Report;
use super::scale::{decade_label, decades, pings, seconds_between_labels};
use super::sentences::with_title;

/// Height of the plot with the axis and its labels, lines.
const LINES: u16 = 19;
const WITHOUT: Color = Color::Red;
const WITH: Color = Color::Green;
/// The label under the horizontal axis.
const SECONDS: &str = "seconds since the downloads began";

/// The plot as lines without line ends.
pub fn render(report: &Report, color: bool, columns: u16) -> String {
    let (low, high) = decades(report);
    let bounds_s = [-report.parameters.idle_s, report.parameters.window.to_ms / 1e3];
    let points = [&report.without, &report.with]
        .map(|run| pings(run).map(|(s, ms)| (s, ms.log10().max(f64::from(low)))).collect::<Vec<(f64, f64)>>());
    let datasets = points.iter().zip([WITHOUT, WITH]).map(|(points, tint)| {
        Dataset::default().data(points).marker(Marker::Braille).graph_type(GraphType::Line).style(Style::new().fg(tint))
    });
    let chart = Chart::new(datasets.collect())
        // The labels are placed by hand, because the chart's own take the ends of the axis, whatever their numbers.
        .x_axis(Axis::default().bounds(bounds_s).labels(["", ""]))
        .y_axis(Axis::default().bounds([low, high].map(f64::from)).labels((low..=high).map(decade_label)));
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, LINES));
    chart.render(buffer.area, &mut buffer);
    label_seconds(&mut buffer, bounds_s);

    let mut lines = vec![
        "Ping of the game over time, ms (logarithmic):".to_owned(),
        format!(
            "{}   {}",
            painted(WITHOUT, &format!("━━ {} ({})", report.without.contender, position(&points, 0)), color),
            painted(WITH, &format!("━━ {} ({})", with_title(report), position(&points, 1)), color)
        ),
    ];
    lines.extend((0..LINES).map(|y| line(&buffer, y, color)));
    lines.push(format!("{SECONDS:>width$}", width = usize::from(columns)));
    lines.join("\n")
}

fn label_seconds(buffer: &mut Buffer, bounds_s: [f64; 2]) {
    let Some(left) = (0..buffer.area.width).find(|x| buffer[(*x, 0)].symbol() == VERTICAL).map(|x| x + 1) else {
        return; // Too narrow for an axis.
    };
    let last = f64::from(buffer.area.width - 1 - left);
    let step_s = seconds_between_labels(bounds_s[1]);
    for second in (0..).step_by(step_s as usize).take_while(|s| f64::from(*s) <= bounds_s[1]) {
        let at = (f64::from(second) - bounds_s[0]) / (bounds_s[1] - bounds_s[0]) * last;
        let label = second.to_string();
        let x = (left + at.round() as u16).min(buffer.area.width - label.len() as u16);
        buffer.set_string(x, LINES - 1, label, Style::new());
    }
}

/// The position of a curve where colours cannot tell the curves apart: upper or lower.
fn position(points: &[Vec<(f64, f64)>; 2], which: usize) -> &'static str {
    let median = |points: &Vec<(f64, f64)>| {
        let mut sorted: Vec<f64> = points.iter().map(|point| point.1).collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    };
    if median(&points[which]) > median(&points[1 - which]) { "upper curve" } else { "lower curve" }
}

/// A line of the buffer; neighbours of one colour share one escape sequence.
fn line(buffer: &Buffer, y: u16, color: bool) -> String {
    let mut stretches: Vec<(Color, String)> = Vec::new();
    for x in 0..buffer.area.width {
        let cell = &buffer[(x, y)];
        // Blanks between coloured parts have no colour of their own.
        match stretches.last_mut() {
            Some((tint, text)) if *tint == cell.fg || cell.symbol() == " " => text.push_str(cell.symbol()),
            _ => stretches.push((cell.fg, cell.symbol().to_owned())),
        }
    }
    if let Some((_, text)) = stretches.last_mut() {
        text.truncate(text.trim_end().len());
    }
    stretches.iter().map(|(tint, text)| painted(*tint, text, color)).collect()
}

fn painted(tint: Color, text: &str, color: bool) -> String {
    let code = match tint {
        WITHOUT => 31,
        WITH => 32,
        _ => return text.to_owned(),
    };
    if color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}
