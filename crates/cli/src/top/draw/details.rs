//! Details of the chosen class, in three lines.

use super::header;
use crate::humanize;
use crate::top::app::{App, Row};
use crate::top::cells::Cells;
use crate::top::palette::State;
use ratatui::text::Line;
use sluice_observe::rates::ClassRates;

pub fn lines(app: &App) -> Vec<Line<'static>> {
    let Some(row) = app.chosen_row() else { return Vec::new() };
    let palette = app.palette;
    let class = row.class;
    let mut first = Cells::default();
    first.text(format!("{} {} {}", row.interface.interface, row.direction.direction, class.name), palette.strong());
    let mut plain = vec![
        format!("sent {}", humanize::bytes(class.sent.bytes as f64)),
        format!("dropped {} pkts in all", humanize::number(class.dropped.pkts as f64)),
    ];
    plain.extend(settings_of(class));
    first.text(format!("  {}", plain.join(", ")), palette.state(State::Good));
    let mut second = Cells::default();
    second.text(waiting(&row), palette.state(State::Good));
    let mut third = Cells::default();
    if class.drops_pps.is_empty() {
        third.text("nothing is dropped", palette.dim());
    } else {
        third.text(format!("drops: {}", header::reasons(&class.drops_pps)), palette.state(State::Bad));
    }
    if let Some(queues) = class.flow_queues {
        let text = format!("   flows: {} sparse, {} swift, {} bulk", queues.sparse, queues.swift, queues.bulk);
        third.text(text, palette.state(State::Good));
    }
    vec![first.line(), second.line(), third.line()]
}

/// The settings of the class in the policy.
fn settings_of(class: &ClassRates) -> Vec<String> {
    let filled = |fill: Option<f64>| fill.map_or(String::new(), |fill| format!(", bucket {}", humanize::percent(fill)));
    let mut settings = Vec::new();
    settings.extend(class.priority.map(|priority| format!("priority {priority}")));
    settings.extend(class.weight.map(|weight| format!("weight {weight}")));
    settings.extend(
        class.rate_bps.map(|bps| format!("guarantee {}{}", humanize::number(bps as f64), filled(class.rate_fill))),
    );
    settings.extend(class.flow_ceil_bps.map(|bps| format!("each flow at most {}", humanize::number(bps as f64))));
    settings.extend(
        class
            .shared_ceil_bps
            .map(|bps| format!("shared ceiling {}{}", humanize::number(bps as f64), filled(class.shared_ceil_fill))),
    );
    settings.extend(
        class.ceil_bps.map(|bps| format!("ceiling {}{}", humanize::number(bps as f64), filled(class.ceil_fill))),
    );
    settings
        .extend(class.peak_bps.map(|bps| format!("peak {}{}", humanize::number(bps as f64), filled(class.peak_fill))));
    settings
}

/// The queue of the class, and the waiting time in it.
fn waiting(row: &Row<'_>) -> String {
    let class = row.class;
    if !row.direction.queued {
        return "counted where it arrives, not queued".to_owned();
    }
    let mut text = format!("{} {}", class.queue.as_deref().unwrap_or("queue"), class.backlog.pkts);
    if let Some(limit) = class.limit_pkts {
        text += &format!("/{limit}");
    }
    text += &format!(" pkts, {}", humanize::bytes(class.backlog.bytes as f64));
    if let Some(limit) = class.limit_bytes {
        text += &format!(" of {}", humanize::bytes(limit as f64));
    }
    match class.sojourn {
        Some(waits) => {
            text += &format!(
                "  wait p50 {} p95 {} p99 {} max {}",
                humanize::wait_us(waits.p50_us),
                humanize::wait_us(waits.p95_us),
                humanize::wait_us(waits.p99_us),
                humanize::wait_us(waits.max_us)
            );
        }
        None if row.interface.engine == sluice_kernel::Engine::Tc => text += "   engine tc does not measure waits",
        None => {}
    }
    if let Some(target) = class.target_us {
        text += &format!(" target {}", humanize::wait_us(target));
    }
    text
}
