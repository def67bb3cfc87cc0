//! The meaning of keys and signs.

use crate::top::app::App;
use crate::top::cells::Cells;
use crate::top::palette::State;
use ratatui::text::Line;

pub fn lines(app: &App) -> Vec<Line<'static>> {
    let palette = app.palette;
    let mut cells = Cells::default();
    let mut lines = Vec::new();
    for (key, what) in [
        ("q, Ctrl-C", "quit"),
        ("space, p", "pause; history goes on"),
        ("s  S", "sort by another column; the other way round"),
        ("/  Esc", "show only names with this text; everything again"),
        ("c d r f u", "classes, discipline's state, rules, flows, subscribers"),
        ("i, Tab", "one interface after the other, then all"),
        ("b  n", "flows: order of the rank; names of hosts"),
        ("arrows, j k", "choose a row; PgUp, PgDn, Home, End"),
    ] {
        lines.push(cells.left(key, 12, palette.key()).text(what, palette.state(State::Good)).line());
    }
    lines.push(Line::raw(""));
    for (sign, state, what) in [
        ("> green", State::Good, "sends, and keeps up"),
        ("~ magenta", State::Strained, "marks, waits beyond its target, queue nearly full"),
        ("! red", State::Bad, "drops packets"),
    ] {
        lines.push(cells.left(sign, 12, palette.bar(state)).text(what, palette.state(State::Good)).line());
    }
    lines.push(Line::raw(""));
    for (name, what) in [
        ("rate pps", "bits and packets per second that left"),
        ("queue", "how full, by its limit; and the bytes in it"),
        ("p50 p99", "time in queue of packets that left (engine qdisc)"),
        ("drop mark", "packets per second"),
        ("share", "part of the bytes that left / promised part"),
        ("bkt", "tokens of its ceiling or guarantee, the emptier"),
    ] {
        lines.push(cells.left(name, 12, palette.strong()).text(what, palette.state(State::Good)).line());
    }
    lines.push(Line::styled("any key goes back", palette.dim()));
    lines
}
