//! A row for each forward, below the classes, where there is room.

use super::{BodyLine, header};
use crate::humanize;
use crate::top::app::App;
use crate::top::cells::Cells;
use crate::top::palette::State;
use ratatui::text::Line;
use sluice_observe::rates::ForwardRates;

/// Appends as many forwards as a body of this width and height has room for.
pub fn append(app: &App, width: usize, height: usize, drawn: &mut Vec<BodyLine>) {
    let mut forwards = app.forwards();
    // A blank line and the titles come before the rows, and the number of the others after them.
    let room = height.saturating_sub(drawn.len() + 2);
    let all = forwards.len();
    let shown = if all > room { room.saturating_sub(1) } else { all };
    if shown == 0 {
        return;
    }
    if shown < all {
        // Equals stay in the order of their names.
        forwards.sort_by(|(_, one), (_, other)| bps(other).total_cmp(&bps(one)));
    }
    drawn.push(BodyLine::plain(Line::raw("")));
    drawn.push(BodyLine::plain(titles(app, width)));
    for (interface, forward) in &forwards[..shown] {
        drawn.push(BodyLine::plain(line(app, interface, forward, width)));
    }
    if shown < all {
        let text = format!("  {} more, which pass on less: / finds them by name", all - shown);
        drawn.push(BodyLine::plain(Line::styled(text, app.palette.dim())));
    }
}

fn bps(forward: &ForwardRates) -> f64 {
    forward.from_clients_bps + forward.from_targets_bps
}

fn name_width(width: usize) -> usize {
    16 + width.saturating_sub(80).min(20)
}

fn titles(app: &App, width: usize) -> Line<'static> {
    let style = app.palette.title();
    let mut cells = Cells::default();
    cells.left("  forward", name_width(width) + 2, style);
    for (title, width) in [("open", 5), ("new/s", 5), ("to", 4), ("from", 4), ("refused", 7)] {
        cells.right(title, width, style);
    }
    cells.text("listens on > goes to", style).line()
}

fn line(app: &App, interface: &str, forward: &ForwardRates, width: usize) -> Line<'static> {
    let palette = app.palette;
    let state = match forward {
        forward if forward.refused_pps > 0.0 => State::Bad,
        forward if bps(forward) > 0.0 => State::Good,
        _ => State::Idle,
    };
    let sign = match state {
        State::Bad => '!',
        State::Good | State::Strained => '>',
        State::Idle => ' ',
    };
    let plain = palette.state(if state == State::Idle { State::Idle } else { State::Good });
    let name =
        if app.interfaces().nth(1).is_some() { format!("{interface} {}", forward.name) } else { forward.name.clone() };
    let mut cells = Cells::default();
    cells.left(&format!("{sign} {name}"), name_width(width) + 2, palette.state(state));
    for (value, width) in [
        (forward.open as f64, 5),
        (forward.opened_per_s, 5),
        (forward.from_clients_bps, 4),
        (forward.from_targets_bps, 4),
    ] {
        cells.right(&humanize::number(value), width, plain);
    }
    let refused = palette.state(if forward.refused_pps > 0.0 { State::Bad } else { State::Idle });
    cells.right(&humanize::number(forward.refused_pps), 7, refused);
    if forward.refused_pps > 0.0 {
        cells.text(header::reasons(&forward.refusals_pps) + "  ", palette.state(State::Bad));
    }
    let more = forward.targets.len().saturating_sub(1);
    let more = if more > 0 { format!(" +{more}") } else { String::new() };
    let target = forward.targets.first().map_or("", String::as_str);
    cells.text(format!("{} > {target}{more}", forward.listen), palette.dim()).line()
}
