//! The whole screen: title, pane, details of the chosen class, keys.

mod classes;
mod details;
mod discipline;
pub mod flows;
mod forwards;
mod header;
mod help;
mod rules;
mod subscribers;

use super::app::{App, Pane};
use super::cells::Cells;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Clear, Paragraph};

/// A line of the body, with the number of its row if it can be chosen.
pub struct BodyLine {
    line: Line<'static>,
    row: Option<usize>,
}

impl BodyLine {
    fn plain(line: Line<'static>) -> BodyLine {
        BodyLine { line, row: None }
    }
}

/// Least height at which details of the chosen class are shown.
const DETAILS_FROM_LINES: u16 = 16;

/// Draws the screen.
pub fn draw(frame: &mut Frame<'_>, app: &App) {
    let area = frame.area();
    let details = if area.height >= DETAILS_FROM_LINES && app.pane != Pane::Rules { 4 } else { 0 };
    let [title, body, details_area, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(details),
        Constraint::Length(1),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(header::title(app, title.width)).style(app.palette.chosen()), title);
    draw_body(frame, app, body);
    if details > 0 {
        let block = Block::new().borders(Borders::TOP).border_style(app.palette.dim());
        let lines = match app.pane {
            Pane::Flows => flows::details(app),
            Pane::Subscribers => subscribers::details(app),
            _ => details::lines(app),
        };
        frame.render_widget(Paragraph::new(lines).block(block), details_area);
    }
    frame.render_widget(Paragraph::new(keys_line(app)), keys);
    if app.help {
        draw_help(frame, app);
    }
}

fn draw_body(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let width = usize::from(area.width);
    let drawn = match app.pane {
        Pane::Classes => {
            let mut drawn = classes::lines(app, width);
            forwards::append(app, width, usize::from(area.height), &mut drawn);
            drawn
        }
        Pane::Discipline => discipline::lines(app, width),
        Pane::Rules => rules::lines(app, width),
        Pane::Flows => flows::lines(app, width),
        Pane::Subscribers => subscribers::lines(app, width),
    };
    let height = usize::from(area.height);
    let chosen = drawn.iter().position(|one| one.row == Some(app.chosen)).unwrap_or(0);
    // The body scrolls until the chosen row is in sight, and no further than the end.
    let from = (chosen + 1).saturating_sub(height).min(drawn.len().saturating_sub(height));
    let style = app.palette.chosen();
    let shown = drawn.into_iter().skip(from).take(height).map(|one| {
        let is_chosen = one.row == Some(app.chosen);
        let mut line = one.line;
        if is_chosen && may_choose(app) {
            // Only the first cell is highlighted, so that bars keep their colours.
            if let Some(first) = line.spans.first_mut() {
                first.style = first.style.patch(style);
            }
        }
        line
    });
    frame.render_widget(Paragraph::new(shown.collect::<Vec<_>>()), area);
}

fn may_choose(app: &App) -> bool {
    app.pane != Pane::Rules
}

fn keys_line(app: &App) -> Line<'static> {
    let mut cells = Cells::default();
    let (key, plain) = (app.palette.key(), app.palette.dim());
    if app.typing {
        cells.text("filter: ", app.palette.strong()).text(format!("{}▏", app.filter), app.palette.strong());
        cells.text("  Enter keeps it, Esc clears it", plain);
        return cells.line();
    }
    // A tree has no discipline of its own to show.
    let own = if app.rates.interfaces.iter().any(|one| one.tree.is_some()) {
        ("u", " subscribers")
    } else {
        ("d", "iscipline")
    };
    for (letter, what) in [
        ("q", "uit"),
        ("?", "help"),
        ("space", if app.paused { " go on" } else { " pause" }),
        ("s", "ort"),
        ("/", "filter"),
        ("c", "lasses"),
        own,
        ("r", "ules"),
        ("f", "lows"),
        ("i", "nterface"),
    ] {
        cells.text(letter, key).text(format!("{what} "), plain);
    }
    cells.line()
}

fn draw_help(frame: &mut Frame<'_>, app: &App) {
    let lines = help::lines(app);
    let width = lines.iter().map(Line::width).max().unwrap_or(0) as u16 + 4;
    let area = frame.area();
    let (width, height) = (width.min(area.width), (lines.len() as u16 + 2).min(area.height));
    let place = Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    let block = Block::bordered().title(" help ").padding(ratatui::widgets::Padding::horizontal(1));
    frame.render_widget(Paragraph::new(lines).block(block), place);
}
