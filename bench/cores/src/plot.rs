//! The model as a picture: packets a second by the number of processors, a panel for each length of frames.

use crate::model::{FRAMES, PROCESSORS, curves, link_pps};
use crate::{Raw, Result};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::FontFamily;

/// Width and height, pixels.
const SIZE: (u32, u32) = (1000, 460);
/// Both panels show packets from here to there, millions a second.
const LEAST_MPPS: f64 = 0.5;
const MOST_MPPS: f64 = 200.0;
const PAPER: RGBColor = RGBColor(0xfc, 0xfc, 0xfa);
const INK: RGBColor = RGBColor(0x24, 0x2a, 0x33);
const GRID: RGBColor = RGBColor(0xdd, 0xdf, 0xe2);
// Colours for readers who do not see red and green (Okabe and Ito), in the order of the curves.
const TINTS: [RGBColor; 3] = [RGBColor(0x00, 0x72, 0xb2), RGBColor(0x00, 0x9e, 0x73), RGBColor(0xd5, 0x5e, 0x00)];

fn font(size: u32) -> TextStyle<'static> {
    (FontFamily::SansSerif, size).into_font().color(&INK)
}

/// Draws the model of a run into a file.
pub fn draw(raw: &Raw, path: &str) -> Result<()> {
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&PAPER)?;
    root.draw_text("Processors that send through one interface of 100 Gbit/s, modelled", &font(22), (24, 16))?;
    for (n, curve) in curves(raw, FRAMES[0]).iter().enumerate() {
        let x = 24 + 310 * n as i32;
        root.draw(&PathElement::new(vec![(x, 62), (x + 26, 62)], TINTS[n].stroke_width(4)))?;
        root.draw_text(curve.name, &font(15), (x + 34, 54))?;
    }
    let (_, below) = root.split_vertically(78);
    let panels = below.split_evenly((1, FRAMES.len()));
    for (panel, frame_bytes) in panels.iter().zip(FRAMES) {
        draw_panel(panel, raw, frame_bytes)?;
    }
    root.present()?;
    Ok(())
}

fn draw_panel(area: &DrawingArea<SVGBackend<'_>, Shift>, raw: &Raw, frame_bytes: u32) -> Result<()> {
    let most = f64::from(PROCESSORS[PROCESSORS.len() - 1]);
    let top = link_pps(frame_bytes) / 1e6;
    let mut chart = ChartBuilder::on(area)
        .margin(16)
        .margin_right(28)
        .caption(format!("frames of {frame_bytes} bytes"), font(16))
        .x_label_area_size(44)
        .y_label_area_size(58)
        .build_cartesian_2d((1.0..most).log_scale().base(2.0), (LEAST_MPPS..MOST_MPPS).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("processors")
        .y_desc("million packets a second")
        .x_labels(PROCESSORS.len())
        .x_label_formatter(&|n| format!("{n:.0}"))
        .y_label_formatter(&|n| if *n < 1.0 { format!("{n:.1}") } else { format!("{n:.0}") })
        .label_style(font(13))
        .axis_desc_style(font(14))
        .axis_style(INK)
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .draw()?;
    chart.draw_series(DashedLineSeries::new([(1.0, top), (most, top)], 6, 4, INK.stroke_width(1)))?;
    let label = chart.backend_coord(&(1.0, top));
    for (curve, tint) in curves(raw, frame_bytes).iter().zip(TINTS) {
        let points: Vec<(f64, f64)> = curve.points.iter().map(|(n, pps)| (f64::from(*n), pps / 1e6)).collect();
        chart.draw_series(LineSeries::new(points.clone(), tint.stroke_width(3)))?;
        chart.draw_series(points.into_iter().map(|at| Circle::new(at, 3, tint.filled())))?;
    }
    let origin = area.get_base_pixel();
    area.draw_text("100 Gbit/s", &font(13), (label.0 - origin.0 + 6, label.1 - origin.1 + 4))?;
    Ok(())
}
