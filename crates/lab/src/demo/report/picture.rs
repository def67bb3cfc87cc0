//! The same plot as SVG, with a background of its own so that it reads on light and dark pages.

use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::FontFamily;

use super::Report;
use super::scale::{decades, seconds_between_labels};
use super::sentences::{milliseconds, with_title};
use crate::demo::measurement::Run;
use sluice_error::{Error, Result};

/// Width and height, pixels.
const SIZE: (u32, u32) = (960, 540);
const PAPER: RGBColor = RGBColor(0xfc, 0xfc, 0xfa);
const INK: RGBColor = RGBColor(0x24, 0x2a, 0x33);
const GRID: RGBColor = RGBColor(0xdd, 0xdf, 0xe2);
// A pair of colours for readers who do not see red and green (Okabe and Ito).
const WITHOUT: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
const WITH: RGBColor = RGBColor(0x00, 0x72, 0xb2);

/// The SVG document.
pub fn render(report: &Report) -> Result<String> {
    let mut svg = String::new();
    draw(report, &mut svg).map_err(|e| Error::system(format!("cannot draw the picture: {e}")))?;
    Ok(svg)
}

fn draw(report: &Report, svg: &mut String) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&PAPER)?;
    let p = &report.parameters;
    let font = |size: u32| (FontFamily::SansSerif, size).into_font().color(&INK);
    root.draw_text(
        &format!("Ping of a game beside {} downloads on a {} Mbit/s line", p.downloads, p.line_rate_mbit),
        &font(24),
        (24, 18),
    )?;

    let end_s = p.window.to_ms / 1e3;
    let (low, high) = decades(report);
    let (low_ms, high_ms) = (10f64.powi(low), 10f64.powi(high));
    let labels = (end_s / f64::from(seconds_between_labels(end_s))) as usize + 1;
    let mut chart = ChartBuilder::on(&root)
        .margin(24)
        .margin_top(86)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(-p.idle_s..end_s, (low_ms * 0.999..high_ms).log_scale())?;
    configure(&mut chart, &font(15), labels)?;

    let warm_s = p.window.from_ms / 1e3;
    chart.draw_series([Rectangle::new([(-p.idle_s, low_ms), (warm_s, high_ms)], INK.mix(0.05).filled())])?;
    for (run, tint) in [(&report.without, WITHOUT), (&report.with, WITH)] {
        chart
            .draw_series(pieces(run, low_ms).into_iter().map(|piece| PathElement::new(piece, tint.stroke_width(1))))?;
        let lost = run.game.series.iter().filter(|s| s.rtt_ms.is_none() && s.sent_ms / 1e3 < end_s);
        chart.draw_series(lost.map(|s| Cross::new((s.sent_ms / 1e3, high_ms * 0.8), 3, tint.stroke_width(2))))?;
    }
    let faint = INK.mix(0.7);
    let small = font(13).color(&faint);
    let note = chart.backend_coord(&(-p.idle_s, high_ms));
    root.draw_text("not measured: idle, then warm-up", &small, (note.0 + 6, note.1 + 24))?;

    let titles = [
        (24, WITHOUT, legend(&report.without, &report.without.contender)),
        (490, WITH, legend(&report.with, &with_title(report))),
    ];
    for (x, tint, text) in titles {
        root.draw(&PathElement::new(vec![(x, 66), (x + 26, 66)], tint.stroke_width(4)))?;
        root.draw_text(&text, &font(15), (x + 34, 58))?;
    }
    root.present()?;
    Ok(())
}

fn configure<'a, DB, X, Y>(
    chart: &mut ChartContext<'a, DB, Cartesian2d<X, Y>>,
    font: &TextStyle<'_>,
    x_labels: usize,
) -> std::result::Result<(), DrawingAreaErrorKind<DB::ErrorType>>
where
    DB: DrawingBackend + 'a,
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    chart
        .configure_mesh()
        .axis_style(INK)
        .bold_line_style(GRID)
        .light_line_style(GRID.mix(0.4))
        .label_style(font.clone())
        .axis_desc_style(font.clone())
        .x_desc("seconds since the downloads began")
        .y_desc("round trip, ms (logarithmic)")
        .x_labels(x_labels)
        .x_label_formatter(&|seconds| format!("{seconds:.0}"))
        .y_label_formatter(&|ms| format!("{ms}"))
        .draw()
}

/// The curve, broken where packets were lost.
fn pieces(run: &Run, low_ms: f64) -> Vec<Vec<(f64, f64)>> {
    let mut pieces = vec![Vec::new()];
    for sample in &run.game.series {
        match (sample.rtt_ms, pieces.last_mut()) {
            (Some(ms), Some(piece)) => piece.push((sample.sent_ms / 1e3, ms.max(low_ms))),
            _ => pieces.push(Vec::new()),
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

fn legend(run: &Run, title: &str) -> String {
    let figures = run
        .game
        .rtt
        .map_or("no answers".to_owned(), |d| format!("p50 {}, p99 {}", milliseconds(d.p50_ms), milliseconds(d.p99_ms)));
    let lost = if run.game.lost > 0 { format!(", {:.1} % lost (x)", run.game.loss_percent) } else { String::new() };
    format!("{title}: {figures}{lost}")
}
