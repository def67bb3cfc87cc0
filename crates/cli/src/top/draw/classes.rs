//! A row for each class.

use super::{BodyLine, header};
use crate::humanize;
use crate::top::app::{App, Row, shown_directions, state_of};
use crate::top::bars;
use crate::top::cells::Cells;
use crate::top::palette::State;
use sluice_observe::Series;
use sluice_observe::rates::ClassRates;

/// Widths of the columns that depend on the width of the screen.
struct Widths {
    name: usize,
    queue: usize,
    history: usize,
    reasons: usize,
}

impl Widths {
    fn of(width: usize) -> Widths {
        let mut own = Widths { name: 11, queue: 4, history: 8, reasons: 0 };
        let mut spare = width.saturating_sub(80);
        for (what, most) in [(&mut own.name, 10), (&mut own.queue, 6), (&mut own.history, 12)] {
            let more = spare.min(most);
            *what += more;
            spare -= more;
        }
        if spare >= 18 {
            own.reasons = spare.min(40) - 1;
            spare -= own.reasons + 1;
        }
        own.history += spare.min(40);
        own
    }
}

pub fn lines(app: &App, width: usize) -> Vec<BodyLine> {
    let widths = Widths::of(width);
    let mut drawn = Vec::new();
    let mut row = 0;
    for interface in app.interfaces() {
        header::of_interface(app, interface, &mut drawn);
        for direction in shown_directions(interface) {
            drawn.push(header::of_direction(app, interface, direction, width));
            drawn.push(BodyLine::plain(titles(app, &widths)));
            for class in app.classes(interface, direction) {
                let line = class_line(app, Row { interface, direction, class }, &widths);
                drawn.push(BodyLine { line, row: Some(row) });
                row += 1;
            }
        }
    }
    if let Some(trouble) = &app.trouble {
        drawn.insert(0, BodyLine::plain(Cells::default().text(trouble.clone(), app.palette.state(State::Bad)).line()));
    }
    if app.rates.interfaces.is_empty() {
        let text = "no interface is managed here now; this goes on when one is";
        drawn.push(BodyLine::plain(Cells::default().text(text, app.palette.strong()).line()));
    }
    drawn
}

fn titles(app: &App, widths: &Widths) -> ratatui::text::Line<'static> {
    let style = app.palette.title();
    let mut cells = Cells::default();
    cells.left("  class", widths.name + 2, style);
    for (title, width) in [("rate", 4), ("pps", 4)] {
        cells.right(title, width, style);
    }
    cells.left("queue", widths.queue + 5, style);
    for (title, width) in [("p50", 6), ("p99", 6), ("drop", 5), ("mark", 5)] {
        cells.right(title, width, style);
    }
    cells.right("share", 4 + 3, style).left("bkt", 3, style);
    if widths.reasons > 0 {
        cells.left("dropped for", widths.reasons, style);
    }
    cells.left("history", widths.history, style);
    cells.line()
}

fn class_line(app: &App, row: Row<'_>, widths: &Widths) -> ratatui::text::Line<'static> {
    let (palette, class) = (app.palette, row.class);
    let state = state_of(class);
    let plain = palette.state(if state == State::Idle { State::Idle } else { State::Good });
    let some = |value: f64, state: State| palette.state(if value > 0.0 { state } else { State::Idle });
    let mut cells = Cells::default();
    cells.left(&format!("{} {}", state.sign(), class.name), widths.name + 2, palette.state(state));
    cells.right(&humanize::number(class.sent_bps), 4, plain);
    cells.right(&humanize::number(class.sent_pps), 4, plain);
    // The bar, then its value.
    let (filled, rest) = bars::bar(class.backlog_fill.unwrap_or(0.0), widths.queue);
    cells.text(filled, palette.bar(state)).text(rest, palette.dim());
    cells.right(&queued(row), 5, some(class.backlog.pkts as f64, State::Good));
    let late = |us: f64| if class.target_us.is_some_and(|target| us > target) { State::Strained } else { State::Good };
    let waits = class.sojourn.map(|waits| [waits.p50_us, waits.p99_us]);
    for place in 0..2 {
        match waits {
            Some(waits) => cells.right(&humanize::wait_us(waits[place]), 6, palette.state(late(waits[place]))),
            None => cells.right("-", 6, palette.dim()),
        };
    }
    cells.right(&humanize::number(class.dropped_pps), 5, some(class.dropped_pps, State::Bad));
    cells.right(&humanize::number(class.marked_pps), 5, some(class.marked_pps, State::Strained));
    cells.right(&share(class), 7, plain);
    match class.bucket_fill {
        Some(fill) => {
            let (filled, rest) = bars::bar(fill, 3);
            let state = if fill < 0.1 { State::Strained } else { State::Good };
            cells.text(filled, palette.bar(state)).text(rest + " ", palette.dim());
        }
        None => {
            cells.left("-", 3, palette.dim());
        }
    }
    if widths.reasons > 0 {
        cells.left(&header::reasons(&class.drops_pps), widths.reasons, palette.state(State::Bad));
    }
    let name = Series {
        interface: row.interface.interface.clone(),
        direction: row.direction.direction,
        class: Some(class.id),
    };
    let values: Vec<Option<f32>> =
        app.history.last(&name, widths.history).map(|point| point.map(|point| point.sent_bps)).collect();
    cells.text(bars::line(&values, widths.history), palette.bar(state));
    cells.line()
}

fn queued(row: Row<'_>) -> String {
    if row.direction.queued { humanize::bytes(row.class.backlog.bytes as f64) } else { "-".to_owned() }
}

/// The share of the direction that the class got, and its promised share: 60/25%.
fn share(class: &ClassRates) -> String {
    match (class.share, class.promised_share) {
        (None, None) => "-".to_owned(),
        (got, None) => humanize::percent(got.unwrap_or(0.0)),
        (got, Some(promised)) => format!("{:.0}/{}", got.unwrap_or(0.0) * 100.0, humanize::percent(promised)),
    }
}
