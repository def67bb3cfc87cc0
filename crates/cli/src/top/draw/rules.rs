//! Rules and their matches, in the order of evaluation.

use super::BodyLine;
use crate::humanize;
use crate::top::app::App;
use crate::top::cells::Cells;
use crate::top::palette::State;
use sluice_observe::rates::InterfaceRates;

pub fn lines(app: &App, width: usize) -> Vec<BodyLine> {
    let mut drawn = Vec::new();
    let mut row = 0;
    let name_width = width.saturating_sub(50).clamp(16, 40);
    for interface in app.interfaces() {
        let mut cells = Cells::default();
        cells.text(interface.interface.clone(), app.palette.strong());
        cells.text(format!("  {} rules, both directions together", interface.rules.len()), app.palette.dim());
        drawn.push(BodyLine { line: cells.line(), row: Some(row) });
        row += 1;
        let style = app.palette.title();
        cells.left("  rule", name_width, style).left("class", 12, style);
        cells.right("pkt/s", 7, style).right("pkts", 7, style).right("bytes", 7, style).right("line", 5, style);
        drawn.push(BodyLine::plain(cells.line()));
        let filter = app.filter.to_lowercase();
        for rule in &interface.rules {
            let class = class_name(interface, rule.class);
            if !rule.name.to_lowercase().contains(&filter) && !class.to_lowercase().contains(&filter) {
                row += 1;
                continue;
            }
            let busy = if rule.matched_pps > 0.0 { State::Good } else { State::Idle };
            let style = app.palette.state(busy);
            let name = if rule.name.is_empty() { "(no name)" } else { &rule.name };
            cells.left(&format!("{} {name}", if busy == State::Good { '>' } else { ' ' }), name_width, style);
            cells.left(&class, 12, style);
            cells.right(&humanize::number(rule.matched_pps), 7, style);
            cells.right(&humanize::number(rule.matched.pkts as f64), 7, style);
            cells.right(&humanize::bytes(rule.matched.bytes as f64), 7, style);
            cells.right(&rule.line.map_or("-".to_owned(), |line| line.to_string()), 5, style);
            drawn.push(BodyLine { line: cells.line(), row: Some(row) });
            row += 1;
        }
        let style = app.palette.state(if interface.unmatched_pps > 0.0 { State::Good } else { State::Idle });
        cells.left("  no rule: the default class", name_width + 13, style);
        cells.right(&humanize::number(interface.unmatched_pps), 7, style);
        drawn.push(BodyLine::plain(cells.line()));
    }
    drawn
}

fn class_name(interface: &InterfaceRates, id: u8) -> String {
    let classes = interface.directions.first().map(|one| &one.classes[..]).unwrap_or_default();
    classes.iter().find(|class| class.id == id).map_or(id.to_string(), |class| class.name.clone())
}
