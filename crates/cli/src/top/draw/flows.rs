//! Flows by rank, the shares of classes, and anomalies.

use super::BodyLine;
use crate::flows::view::{FlowReport, NamedFlow, direction};
use crate::humanize;
use crate::top::app::App;
use crate::top::bars;
use crate::top::cells::{Cells, cut};
use crate::top::palette::State;
use ratatui::text::{Line, Span};
use sluice_observe::flows::{By, ClassFlows};

/// Most anomalies that are shown, so that flows stay in sight.
const MAX_ANOMALIES: usize = 5;

pub fn lines(app: &App, width: usize) -> Vec<BodyLine> {
    let Some(report) = &app.flows else {
        let text = "the tables of flows are being read";
        return vec![BodyLine::plain(Cells::default().text(text, app.palette.dim()).line())];
    };
    let mut drawn = vec![BodyLine::plain(summary(app, report))];
    for name in &report.without_flows {
        let text = format!("{name}: its policy keeps no flows (\"flow_table\": 0)");
        drawn.push(BodyLine::plain(Cells::default().text(text, app.palette.state(State::Strained)).line()));
    }
    drawn.extend(classes(app, report, width));
    for anomaly in report.anomalies.iter().take(MAX_ANOMALIES) {
        let mut cells = Cells::default();
        cells.text(format!("! {}: ", anomaly.kind.name()), app.palette.state(State::Bad));
        if let Some(key) = anomaly.flow {
            let port = |port: Option<u16>| port.map_or(String::new(), |port| format!(":{port}"));
            cells.text(
                format!("{}{} > {}{} ", key.src, port(key.src_port), key.dst, port(key.dst_port)),
                app.palette.strong(),
            );
        }
        let mut line = cells.line();
        if line.width() + anomaly.reason.len() > width {
            drawn.push(BodyLine::plain(std::mem::take(&mut line)));
            line = Cells::default().text("  ", app.palette.dim()).line();
        }
        line.push_span(Span::styled(anomaly.reason.clone(), app.palette.state(State::Strained)));
        drawn.push(BodyLine::plain(line));
    }
    if report.anomalies.len() > MAX_ANOMALIES {
        let text = format!("! and {} more", report.anomalies.len() - MAX_ANOMALIES);
        drawn.push(BodyLine::plain(Cells::default().text(text, app.palette.state(State::Strained)).line()));
    }
    let widths = Widths::of(width);
    drawn.push(BodyLine::plain(titles(app, &widths)));
    let flows = app.chosen_flows(report);
    if flows.is_empty() {
        drawn.push(BodyLine::plain(Cells::default().text("  no flow to show", app.palette.dim()).line()));
    }
    let top = flows.iter().map(|named| named.flow.bps).fold(0.0, f64::max);
    drawn.extend(
        flows.iter().enumerate().map(|(row, named)| BodyLine { line: line(app, named, top, &widths), row: Some(row) }),
    );
    drawn
}

fn summary(app: &App, report: &FlowReport) -> Line<'static> {
    let by = match app.flow_options.by {
        By::Rate => "rate",
        By::Bytes => "bytes",
        By::Pkts => "packets",
    };
    let text = format!("{} flows known, {} sent within {:.1} s, by {by}", report.known, report.active, report.span_s);
    let mut cells = Cells::default();
    cells.text(text, app.palette.strong());
    let names = if app.flow_options.resolve { "off" } else { "on" };
    cells.text("   b", app.palette.key()).text(" by what  ", app.palette.dim());
    cells.text("n", app.palette.key()).text(format!(" names {names}"), app.palette.dim());
    cells.line()
}

/// A line for each direction with the share of each class.
fn classes(app: &App, report: &FlowReport, width: usize) -> Vec<BodyLine> {
    let mut lines: Vec<(String, Vec<&ClassFlows>)> = Vec::new();
    for class in &report.classes {
        if app.only.as_ref().is_some_and(|only| *only != class.interface) {
            continue;
        }
        let name = format!("{} {}", class.interface, direction(class.arriving));
        match lines.last_mut().filter(|(last, _)| *last == name) {
            Some((_, classes)) => classes.push(class),
            None => lines.push((name, vec![class])),
        }
    }
    let line = |(name, mut classes): (String, Vec<&ClassFlows>)| {
        classes.sort_by(|a, b| b.bps.total_cmp(&a.bps));
        let all: f64 = classes.iter().map(|class| class.bps).sum();
        let named: Vec<String> = classes
            .iter()
            .map(|class| {
                format!("{} {} ({}/{})", class.class_name, humanize::percent(class.share), class.active, class.flows)
            })
            .collect();
        let mut cells = Cells::default();
        cells.text(format!("{name} {}bit/s  ", humanize::number(all)), app.palette.strong());
        let left = width.saturating_sub(name.len() + 14);
        cells.text(cut(&named.join("  "), left), app.palette.state(State::Good));
        BodyLine::plain(cells.line())
    };
    lines.into_iter().map(line).collect()
}

struct Widths {
    bar: usize,
    flow: usize,
    kind: usize,
    class: usize,
    process: usize,
    rule: usize,
}

impl Widths {
    fn of(width: usize) -> Widths {
        let mut own = Widths { bar: 0, flow: 34, kind: 0, class: 8, process: 11, rule: 0 };
        let mut spare = width.saturating_sub(80);
        for (what, most) in [
            (&mut own.bar, 5),
            (&mut own.process, 4),
            (&mut own.flow, 12),
            (&mut own.kind, 11),
            (&mut own.rule, 13),
            (&mut own.class, 5),
        ] {
            let more = spare.min(most);
            *what += more;
            spare -= more;
        }
        for (what, most) in [(&mut own.process, 6), (&mut own.flow, 60)] {
            let more = spare.min(most);
            *what += more;
            spare -= more;
        }
        own
    }
}

fn titles(app: &App, widths: &Widths) -> Line<'static> {
    let style = app.palette.title();
    let mut cells = Cells::default();
    cells.right("rate", 4, style).text(" ".repeat(widths.bar), style);
    cells.right("bytes", 5, style).right("for", 6, style);
    cells.left("if", 5, style).left("class", widths.class, style);
    for (title, width) in [("rule", widths.rule), ("kind", widths.kind)] {
        if width > 5 {
            cells.left(title, width - 1, style);
        }
    }
    cells.left("flow", widths.flow, style).left("process", widths.process, style);
    cells.line()
}

fn line(app: &App, named: &NamedFlow, top: f64, widths: &Widths) -> Line<'static> {
    let (palette, flow) = (app.palette, &named.flow);
    let anomalous = app.flows.iter().flat_map(|report| &report.anomalies).any(|one| one.flow == Some(flow.key));
    let state = match (anomalous, flow.bps > 0.0) {
        (true, _) => State::Strained,
        (_, true) => State::Good,
        _ => State::Idle,
    };
    let style = palette.state(state);
    let mut cells = Cells::default();
    cells.right(&humanize::number(flow.bps), 4, style);
    if widths.bar > 1 {
        let (filled, rest) = bars::bar(if top > 0.0 { flow.bps / top } else { 0.0 }, widths.bar - 1);
        cells.text(filled, palette.bar(state)).text(rest + " ", palette.dim());
    }
    cells.right(&humanize::bytes(flow.bytes as f64), 5, style).right(&humanize::span_s(flow.age_s), 6, style);
    let arrow = if flow.key.arriving { '<' } else { '>' };
    cells.left(&format!("{arrow}{}", flow.interface), 5, style).left(&flow.class_name, widths.class, style);
    if widths.rule > 5 {
        cells.left(flow.rule.as_deref().unwrap_or("-"), widths.rule - 1, style);
    }
    if widths.kind > 5 {
        cells.left(&named.kind(), widths.kind - 1, style);
    }
    let ends = if widths.kind > 5 { named.ends() } else { format!("{} {}", named.protocol_name, named.ends()) };
    cells.left(&ends, widths.flow, style);
    cells.left(named.owner().as_deref().unwrap_or("-"), widths.process, style);
    cells.line()
}

/// Details of the chosen flow.
pub fn details(app: &App) -> Vec<Line<'static>> {
    let Some(report) = &app.flows else { return Vec::new() };
    let flows = app.chosen_flows(report);
    let Some(named) = flows.get(app.chosen.min(flows.len().saturating_sub(1))) else { return Vec::new() };
    let (palette, flow) = (app.palette, &named.flow);
    let mut cells = Cells::default();
    let first = cells.text(format!("{} {}", named.kind(), named.ends()), palette.strong()).line();
    let second = format!(
        "{} {}, class {}, rule {}, {}",
        flow.interface,
        direction(flow.key.arriving),
        flow.class_name,
        flow.rule.as_deref().unwrap_or("of a policy before"),
        named.owner().map_or("no process here".to_owned(), |owner| format!("process {owner}")),
    );
    let third = format!(
        "{}bit/s, {} pps; {} pkts, {} in {}; silent for {}",
        humanize::number(flow.bps),
        humanize::number(flow.pps),
        humanize::number(flow.pkts as f64),
        humanize::bytes(flow.bytes as f64),
        humanize::span_s(flow.age_s),
        humanize::span_s(flow.idle_s)
    );
    let plain = palette.state(State::Good);
    vec![first, cells.text(second, plain).line(), cells.text(third, plain).line()]
}
