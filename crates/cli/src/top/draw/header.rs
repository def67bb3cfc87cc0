//! The title, and the lines above an interface and above a direction.

use super::BodyLine;
use crate::humanize;
use crate::top::app::{App, Pane, Sort};
use crate::top::bars;
use crate::top::cells::{Cells, cut};
use crate::top::palette::State;
use ratatui::text::Line;
use sluice_kernel::Engine;
use sluice_observe::Series;
use sluice_observe::rates::{DirectionRates, InterfaceRates};
use std::collections::BTreeMap;

pub fn title(app: &App, width: u16) -> Line<'static> {
    let time = jiff::Timestamp::from_millisecond(app.rates.at_ms as i64).unwrap_or_default();
    let time = time.to_zoned(app.zone.clone()).strftime("%H:%M:%S").to_string();
    let count = app.rates.interfaces.len();
    let shown = match &app.only {
        Some(only) => format!("{only} alone"),
        None if count == 1 => "1 interface".to_owned(),
        None => format!("{count} interfaces"),
    };
    let pane = match app.pane {
        Pane::Classes => "classes",
        Pane::Discipline => "discipline",
        Pane::Rules => "rules",
        Pane::Flows => "flows",
        Pane::Subscribers => "subscribers",
    };
    let mut left =
        format!(" sluice top  {pane}, {shown}, every {}", humanize::wait_us(app.interval_s * 1e6).replace(".0s", "s"));
    if matches!(app.pane, Pane::Classes | Pane::Discipline | Pane::Subscribers) {
        let order = match app.sort {
            Sort::Class if app.pane == Pane::Subscribers => "table",
            sort => sort.name(),
        };
        left += &format!(", by {order}{}", if app.reverse { " reversed" } else { "" });
    }
    if !app.filter.is_empty() {
        left += &format!(", filter {}", app.filter);
    }
    let right = format!("{}{time} ", if app.paused { "PAUSED  " } else { "" });
    let width = usize::from(width);
    let left = cut(&left, width.saturating_sub(right.len() + 1));
    let gap = width.saturating_sub(Line::raw(left.as_str()).width() + right.len());
    Line::raw(format!("{left}{}{right}", " ".repeat(gap)))
}

/// The lines above the directions of an interface.
pub fn of_interface(app: &App, one: &InterfaceRates, drawn: &mut Vec<BodyLine>) {
    let (strong, plain) = (app.palette.strong(), app.palette.state(State::Good));
    let engine = match one.engine {
        Engine::Qdisc => "engine qdisc",
        Engine::Tc => "engine tc (HTB)",
        Engine::Xsk => "engine xsk",
        Engine::None => "classified only",
    };
    let mut cells = Cells::default();
    cells.text(one.interface.clone(), strong);
    cells.text(
        format!("  {} ({}), generation {}, {engine}", one.policy.name, one.policy.scheduler, one.policy.generation),
        plain,
    );
    drawn.push(BodyLine::plain(cells.line()));
    let mut warn = |text: String| {
        drawn.push(BodyLine::plain(Cells::default().text(text, app.palette.state(State::Bad)).line()));
    };
    if !one.in_place {
        warn(format!("  not all of it is in place: sluice ensure {} puts it back", one.interface));
    }
    if let Some(unconfirmed) = &one.unconfirmed {
        warn(format!(
            "  reverts to {} in {} s: sluice confirm {} keeps it",
            unconfirmed.former, unconfirmed.left_s, one.interface
        ));
    }
}

/// The line above the classes of a direction: the used rate and the losses.
pub fn of_direction(app: &App, interface: &InterfaceRates, one: &DirectionRates, width: usize) -> BodyLine {
    const BAR: usize = 10;
    let palette = app.palette;
    let state = if one.dropped_pps > 0.0 { State::Bad } else { State::Good };
    let mut cells = Cells::default();
    cells.left(one.direction, 8, palette.strong());
    match (one.rate_bps, one.used) {
        (Some(rate), Some(used)) => {
            let (filled, rest) = bars::bar(used, BAR);
            cells.text(filled, palette.bar(state)).text(rest, palette.dim());
            cells.text(
                format!(
                    " {} of {}bit/s ({})",
                    humanize::number(one.sent_bps),
                    humanize::number(rate as f64),
                    humanize::percent(used)
                ),
                palette.strong(),
            );
        }
        _ => {
            let what = if one.queued { "not shaped" } else { "counted, not queued" };
            cells.text(format!("{}bit/s", humanize::number(one.sent_bps)), palette.strong());
            cells.text(format!(", {what}"), palette.dim());
        }
    }
    cells.text(format!("  {} pps", humanize::number(one.sent_pps)), palette.state(State::Good));
    if one.dropped_pps > 0.0 {
        cells.text(format!("  drops {}/s", humanize::number(one.dropped_pps)), palette.state(State::Bad));
    }
    if one.marked_pps > 0.0 {
        cells.text(format!("  marks {}/s", humanize::number(one.marked_pps)), palette.state(State::Strained));
    }
    if let Some(bps) = one.limit_bps {
        let fill = one.limit_fill.map_or(String::new(), |fill| format!(", bucket {}", humanize::percent(fill)));
        let state = if one.limit_fill.is_some_and(|fill| fill < 0.1) { State::Strained } else { State::Good };
        cells.text(format!("  at most {}bit/s{fill}", humanize::number(bps as f64)), palette.state(state));
    }
    if one.queued {
        cells.text(format!("  queued {}", humanize::bytes(one.backlog.bytes as f64)), palette.state(State::Good));
    }
    let mut line = cells.line();
    let left = width.saturating_sub(line.width() + 2);
    if left >= 8 && one.queued {
        let name = Series { interface: interface.interface.clone(), direction: one.direction, class: None };
        let values: Vec<Option<f32>> =
            app.history.last(&name, left.min(60)).map(|point| point.map(|point| point.sent_bps)).collect();
        line.push_span(ratatui::text::Span::styled(
            format!("  {}", bars::line(&values, left.min(60))),
            palette.bar(state),
        ));
    }
    BodyLine::plain(line)
}

/// Drops by reason, the most frequent first.
pub fn reasons(drops: &BTreeMap<&'static str, f64>) -> String {
    let mut all: Vec<(&&str, &f64)> = drops.iter().collect();
    all.sort_by(|a, b| b.1.total_cmp(a.1));
    let texts: Vec<String> =
        all.iter().map(|(reason, pps)| format!("{reason} {}/s", humanize::number(**pps))).collect();
    texts.join(", ")
}
