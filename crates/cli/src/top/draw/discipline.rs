//! The discipline's own state, by which the core decides.

use super::{BodyLine, header};
use crate::humanize;
use crate::terminal;
use crate::top::app::{App, shown_directions};
use crate::top::cells::Cells;
use crate::top::palette::State;
use sluice_observe::rates::{DirectionRates, TxQueueRates};

pub fn lines(app: &App, width: usize) -> Vec<BodyLine> {
    let mut drawn = Vec::new();
    let mut row = 0;
    for interface in app.interfaces() {
        header::of_interface(app, interface, &mut drawn);
        for direction in shown_directions(interface) {
            drawn.push(header::of_direction(app, interface, direction, width));
            if direction.tx_queues.is_empty() {
                drawn.push(BodyLine::plain(scheduler(app, direction)));
            }
            // Those of arrivals are the workers of a wire.
            let name = if direction.direction == "ingress" { "worker" } else { "tx queue" };
            drawn.extend(direction.tx_queues.iter().map(|one| BodyLine::plain(tx_queue(app, name, one))));
            drawn.push(BodyLine::plain(titles(app)));
            for class in app.classes(interface, direction) {
                drawn.push(BodyLine { line: class_line(app, direction, class), row: Some(row) });
                row += 1;
            }
        }
    }
    drawn
}

fn names(direction: &DirectionRates, ids: &[u8]) -> String {
    let name = |id: &u8| {
        direction.classes.iter().find(|class| class.id == *id).map_or(id.to_string(), |class| class.name.clone())
    };
    if ids.is_empty() { "none".to_owned() } else { ids.iter().map(name).collect::<Vec<_>>().join(" ") }
}

fn scheduler(app: &App, direction: &DirectionRates) -> ratatui::text::Line<'static> {
    let Some(state) = &direction.scheduler else {
        let text = "  only engine qdisc with one scheduler has its state";
        return Cells::default().text(text, app.palette.dim()).line();
    };
    let turns: Vec<String> =
        state.turns.iter().map(|turn| format!("level {}: {}", turn.level, names(direction, &[turn.class]))).collect();
    let text = format!(
        "  {} of {} slots  virtual time {}  ready: {}  held: {}  turns: {}",
        state.backlog_pkts,
        state.slots,
        humanize::bytes(state.virtual_time),
        names(direction, &state.ready),
        names(direction, &state.held),
        turns.join(", ")
    );
    Cells::default().text(text, app.palette.state(State::Good)).line()
}

/// A tx queue or a worker that has a scheduler, one of several that share the link.
fn tx_queue(app: &App, name: &str, one: &TxQueueRates) -> ratatui::text::Line<'static> {
    let style = app.palette.state(if one.dropped_pps > 0.0 { State::Bad } else { State::Good });
    let mut cells = Cells::default();
    cells.left(&format!("  {name} {}", one.queue), 14, app.palette.dim());
    cells.right(&terminal::rate(one.sent_bps as u64), 12, style);
    cells.right(&format!("{}/s", humanize::number(one.sent_pps)), 10, style);
    cells.right(&format!("{} dropped/s", humanize::number(one.dropped_pps)), 16, style);
    cells.right(&format!("{} queued", one.backlog.pkts), 12, style);
    cells.line()
}

const COLUMNS: [(&str, usize); 7] =
    [("level", 5), ("deficit", 8), ("start", 9), ("deadline", 9), ("lag", 8), ("attained", 8), ("sp/sw/bulk", 12)];

fn titles(app: &App) -> ratatui::text::Line<'static> {
    let style = app.palette.title();
    let mut cells = Cells::default();
    cells.left("  class", 14, style);
    for (title, width) in COLUMNS {
        cells.right(title, width, style);
    }
    cells.line()
}

fn class_line(
    app: &App,
    direction: &DirectionRates,
    class: &sluice_observe::rates::ClassRates,
) -> ratatui::text::Line<'static> {
    let ready = direction.scheduler.as_ref().is_some_and(|state| state.ready.contains(&class.id));
    let held = direction.scheduler.as_ref().is_some_and(|state| state.held.contains(&class.id));
    let (sign, state) = match (ready, held) {
        (true, _) => ('>', State::Good),
        (_, true) => ('~', State::Strained),
        _ => (' ', State::Idle),
    };
    let style = app.palette.state(state);
    let mut cells = Cells::default();
    cells.left(&format!("{sign} {}", class.name), 14, style);
    // Virtual times are readable only as distances from the present.
    let now = direction.scheduler.as_ref().map_or(0.0, |state| state.virtual_time);
    let away = |time: f64| {
        let distance = time - now;
        let sign = if distance < 0.0 { "-" } else { "+" };
        if time == 0.0 { "0".to_owned() } else { format!("{sign}{}", humanize::bytes(distance.abs())) }
    };
    let values = class.state.map(|own| {
        let lag = if own.virtual_lag < 0.0 { "-" } else { "" };
        [
            own.level.to_string(),
            own.deficit_bytes.to_string(),
            away(own.virtual_start),
            away(own.virtual_deadline),
            format!("{lag}{}", humanize::bytes(own.virtual_lag.abs())),
            humanize::bytes(own.attained_bytes as f64),
            class.flow_queues.map_or("-".to_owned(), |own| format!("{}/{}/{}", own.sparse, own.swift, own.bulk)),
        ]
    });
    for (place, (_, width)) in COLUMNS.iter().enumerate() {
        match &values {
            Some(values) => cells.right(&values[place], *width, style),
            None => cells.right("-", *width, app.palette.dim()),
        };
    }
    cells.line()
}
