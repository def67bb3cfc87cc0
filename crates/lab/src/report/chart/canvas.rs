//! The canvas of charts: `plotters`' SVG, with classes instead of colours and without the attributes that the style sheet sets.

use std::cell::RefCell;

use maud::{Markup, PreEscaped, html};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::style::Style;
use sluice_error::{Error, Result};

/// Height of text, pixels of the picture; `plotters` takes this for the size of its own boxes, the style sheet sets the same.
const TEXT: u32 = 24;

/// The position of text relative to its point.
#[derive(Debug, Clone, Copy)]
pub enum Anchor {
    Left,
    Right,
    /// Centred below.
    Below,
    /// To the right, below.
    Under,
}

/// A drawing surface; the first failure is kept and ends the drawing.
pub struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
    failure: RefCell<Option<String>>,
}

impl Canvas<'_> {
    /// A line through these points.
    pub fn line(&self, points: &[(i32, i32)], style: Style) {
        if points.len() > 1 {
            self.draw(&PathElement::new(points.to_vec(), style.color()));
        }
    }

    /// A filled rectangle.
    pub fn bar(&self, from: (i32, i32), to: (i32, i32), style: Style) {
        let (left, right) = (from.0.min(to.0), from.0.max(to.0));
        let (top, bottom) = (from.1.min(to.1), from.1.max(to.1));
        self.draw(&Rectangle::new([(left, top), (right, bottom)], style.color().filled()));
    }

    /// A filled outline.
    pub fn surface(&self, points: &[(i32, i32)], style: Style) {
        if points.len() > 2 {
            self.draw(&Polygon::new(points.to_vec(), style.color().filled()));
        }
    }

    /// A point.
    pub fn dot(&self, at: (i32, i32), radius: u32, style: Style) {
        self.draw(&Circle::new(at, radius, style.color().filled()));
    }

    /// A short text.
    pub fn text(&self, text: &str, at: (i32, i32), anchor: Anchor, style: Style) {
        let (h, v) = match anchor {
            Anchor::Left => (HPos::Left, VPos::Center),
            Anchor::Right => (HPos::Right, VPos::Center),
            Anchor::Below => (HPos::Center, VPos::Top),
            Anchor::Under => (HPos::Left, VPos::Top),
        };
        let font = (FontFamily::SansSerif, TEXT).into_font().color(&style.color()).pos(Pos::new(h, v));
        self.draw(&Text::new(text.to_owned(), at, font));
    }

    fn draw<'e, E>(&self, element: &'e E)
    where
        &'e E: plotters::element::PointCollection<'e, (i32, i32)>,
        E: for<'b> plotters::element::Drawable<SVGBackend<'b>>,
    {
        if self.failure.borrow().is_none() {
            if let Err(e) = self.area.draw(element) {
                *self.failure.borrow_mut() = Some(e.to_string());
            }
        }
    }
}

/// A picture of this size; `id` is unique in the page, `title` and `description` are for screen readers.
pub fn picture(
    id: &str,
    size: (u32, u32),
    title: &str,
    description: &str,
    draw: impl FnOnce(&Canvas),
) -> Result<Markup> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let canvas = Canvas { area, failure: RefCell::new(None) };
        draw(&canvas);
        let ended = canvas.area.present().map_err(|e| e.to_string());
        if let Some(e) = canvas.failure.take().or(ended.err()) {
            return Err(Error::system(format!("cannot draw a picture of the report: {e}")));
        }
    }
    let inner = svg.split_once("<svg").and_then(|(_, rest)| Some(rest.split_once('>')?.1)).unwrap_or_default();
    let inner = tidied(inner.trim_end().trim_end_matches("</svg>"));
    let (title_id, description_id) = (format!("{id}-t"), format!("{id}-d"));
    Ok(html! {
        svg class="chart" viewBox={ "0 0 " (size.0) " " (size.1) } role="img"
            aria-labelledby={ (title_id) " " (description_id) } {
            title id=(title_id) { (title) }
            desc id=(description_id) { (description) }
            (PreEscaped(inner))
        }
    })
}

/// Replaces colours by classes, and removes attributes that are defaults or in the style sheet. Text is safe, since its quotes
/// are escaped.
fn tidied(svg: &str) -> String {
    let mut svg = svg.to_owned();
    for default in [
        " opacity=\"1\"",
        " stroke-width=\"1\"",
        " stroke=\"none\"",
        " fill=\"none\"",
        " font-family=\"sans-serif\"",
        " text-anchor=\"start\"",
        &format!(" font-size=\"{}\"", f64::from(TEXT) / 1.24),
    ] {
        svg = svg.replace(default, "");
    }
    for style in Style::all() {
        let class = format!("class=\"{}\"", style.class());
        svg = svg.replace(&format!("fill=\"{}\"", style.hex()), &class);
        svg = svg.replace(&format!("stroke=\"{}\"", style.hex()), &class);
    }
    svg.replace(">\n", ">").replace("\n</text>", "</text>").replace(" \"/>", "\"/>")
}
