//! The table of figures before and after.

use comfy_table::modifiers::UTF8_ROUND_CORNERS;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, Table};

use super::Report;
use super::sentences::{milliseconds, with_title};
use crate::demo::measurement::{Probe, Run};
use crate::result::statistics::Distribution;

/// The escape sequences that begin and end emphasis.
const BOLD: (&str, &str) = ("\x1b[1m", "\x1b[0m");

/// The table as lines without an end.
pub fn render(report: &Report, color: bool) -> String {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).apply_modifier(UTF8_ROUND_CORNERS);
    table.set_header(["", "", report.without.contender.as_str(), &with_title(report)]);
    for (what, figures) in rows() {
        for (at, (name, figure)) in figures.iter().enumerate() {
            let what = if at == 0 { what } else { "" };
            table.add_row([what, name, &figure(&report.without), &figure(&report.with)].map(Cell::new));
        }
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let text = table.to_string();
    if color { embolden_header(&text) } else { text }
}

type Figure = (&'static str, fn(&Run) -> String);

fn rows() -> [(&'static str, Vec<Figure>); 4] {
    [
        (
            "Game",
            vec![
                ("ping p50", |run| delay(&run.game, |d| d.p50_ms)),
                ("ping p99", |run| delay(&run.game, |d| d.p99_ms)),
                ("ping max", |run| delay(&run.game, |d| d.max_ms)),
                ("jitter", |run| run.game.jitter_ms.map_or("-".to_owned(), milliseconds)),
                ("loss", |run| format!("{:.1} %", run.game.loss_percent)),
            ],
        ),
        (
            "Call",
            vec![
                ("ping p50", |run| delay(&run.call, |d| d.p50_ms)),
                ("ping p99", |run| delay(&run.call, |d| d.p99_ms)),
                ("ping max", |run| delay(&run.call, |d| d.max_ms)),
                ("jitter", |run| run.call.jitter_ms.map_or("-".to_owned(), milliseconds)),
                ("loss", |run| format!("{:.1} %", run.call.loss_percent)),
            ],
        ),
        ("Downloads", vec![("together", |run| format!("{:.1} Mbit/s", run.bulk.mbit))]),
        ("Modem", vec![("its queue, mean", |run| milliseconds(run.modem_queue.mean_ms))]),
    ]
}

fn delay(probe: &Probe, of: fn(&Distribution) -> f64) -> String {
    probe.rtt.as_ref().map_or("-".to_owned(), |d| milliseconds(of(d)))
}

fn embolden_header(text: &str) -> String {
    let bold =
        |(at, line): (usize, &str)| if at == 1 { format!("{}{line}{}", BOLD.0, BOLD.1) } else { line.to_owned() };
    text.lines().enumerate().map(bold).collect::<Vec<String>>().join("\n")
}
