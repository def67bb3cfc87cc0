//! Sites and subscribers with their rates.

use super::{BodyLine, header};
use crate::humanize;
use crate::top::app::{App, TreeRow};
use crate::top::bars;
use crate::top::cells::Cells;
use crate::top::once;
use crate::top::palette::State;
use ratatui::text::Line;
use sluice_observe::rates::{LeafRates, SubscriberRates, TreeRates, is_at_ceiling};

/// Width of the bar of a ceiling.
const BAR: usize = 8;

pub fn lines(app: &App, width: usize) -> Vec<BodyLine> {
    let mut drawn = Vec::new();
    let mut row = 0;
    // Seven columns of figures and the bar; the rest is for names.
    let name_width = width.saturating_sub(53 + BAR).clamp(12, 40);
    for interface in app.interfaces() {
        let Some(tree) = &interface.tree else { continue };
        header::of_interface(app, interface, &mut drawn);
        let summary = once::tree_summary(tree);
        drawn.push(BodyLine::plain(Cells::default().text(summary, app.palette.state(State::Good)).line()));
        drawn.push(BodyLine::plain(titles(app, tree, name_width)));
        for one in app.tree_rows(tree) {
            let line = match one {
                TreeRow::Site(site) => {
                    let name = format!("{}{} ({})", "  ".repeat(site.depth), site.name, site.subscribers);
                    line(app, (&name, ""), (site.used, String::new()), &site.rates, name_width)
                }
                TreeRow::Subscriber(own) => {
                    let names =
                        (own.id.as_str(), if tree.is_class_tree { "" } else { own.plan.as_deref().unwrap_or("-") });
                    line(
                        app,
                        names,
                        (own.queue.used, humanize::wait_ms(own.queue.wait_ms)),
                        &own.queue.rates,
                        name_width,
                    )
                }
            };
            drawn.push(BodyLine { line, row: Some(row) });
            row += 1;
        }
    }
    if drawn.is_empty() {
        let text = "no policy in force has subscribers or a class tree";
        drawn.push(BodyLine::plain(Cells::default().text(text, app.palette.dim()).line()));
    }
    drawn
}

fn titles(app: &App, tree: &TreeRates, name_width: usize) -> Line<'static> {
    let style = app.palette.title();
    let (name, plan) = once::titles(tree);
    let mut cells = Cells::default();
    cells.left(&format!("  {name}"), name_width + 2, style).left(plan, 10, style);
    for (title, width) in [("rate", 5), ("pps", 5), ("queue", 6), ("wait", 6), ("drop", 5)] {
        cells.right(title, width, style);
    }
    cells.left("of ceiling", BAR + 6, style);
    cells.line()
}

fn line(
    app: &App,
    (name, plan): (&str, &str),
    (used, wait): (Option<f64>, String),
    rates: &LeafRates,
    name_width: usize,
) -> Line<'static> {
    let palette = app.palette;
    let state = state_of(rates, used);
    let style = palette.state(if state == State::Idle { State::Idle } else { State::Good });
    let mut cells = Cells::default();
    cells.left(&format!("{} {name}", state.sign()), name_width + 2, palette.state(state)).left(plan, 10, palette.dim());
    cells.right(&humanize::number(rates.sent_bps), 5, style).right(&humanize::number(rates.sent_pps), 5, style);
    cells.right(&humanize::bytes(rates.backlog.bytes as f64), 6, style).right(&wait, 6, style);
    cells.right(
        &humanize::number(rates.dropped_pps),
        5,
        if rates.dropped_pps > 0.0 { palette.state(State::Bad) } else { style },
    );
    match used {
        Some(used) => {
            let (filled, rest) = bars::bar(used.min(1.0), BAR);
            cells.text(filled, palette.bar(state)).text(rest + " ", palette.dim());
            cells.right(&humanize::percent(used), 5, style);
        }
        None => {
            cells.left("none", BAR, palette.dim());
        }
    }
    cells.line()
}

/// The state of a site or subscriber.
fn state_of(rates: &LeafRates, used: Option<f64>) -> State {
    if rates.dropped_pps > 0.0 {
        State::Bad
    } else if is_at_ceiling(used) {
        State::Strained
    } else if rates.sent_pps > 0.0 || rates.backlog.pkts > 0 {
        State::Good
    } else {
        State::Idle
    }
}

/// Details of the chosen row, in three lines.
pub fn details(app: &App) -> Vec<Line<'static>> {
    let chosen = app.chosen_tree_row();
    let (plain, strong) = (app.palette.state(State::Good), app.palette.strong());
    let rate = |bps: Option<u64>| bps.map_or("none".to_owned(), |bps| humanize::number(bps as f64));
    let mut cells = Cells::default();
    match chosen {
        None => Vec::new(),
        Some((interface, TreeRow::Site(site))) => vec![
            cells.text(format!("{interface} site {}", site.name), strong).line(),
            cells
                .text(format!("{} subscribers below it, ceiling {}", site.subscribers, rate(site.ceil_bps)), plain)
                .line(),
            cells.text(waiting(&site.rates), plain).line(),
        ],
        Some((interface, TreeRow::Subscriber(own))) => {
            let SubscriberRates { id, name, site, plan, queue, counts, .. } = own;
            let called = if name == id { String::new() } else { format!("  {name}") };
            let place = site.as_ref().map_or("right below the link".to_owned(), |site| format!("site {site}"));
            let plan = plan.as_ref().map_or("no plan".to_owned(), |plan| format!("plan {plan}"));
            let mut first = Cells::default();
            first.text(format!("{interface} {id}"), strong).text(format!("{called}  {place}, {plan}"), plain);
            vec![
                first.line(),
                cells
                    .text(
                        format!(
                            "guarantee {}, ceiling {}   {}",
                            rate(queue.rate_bps),
                            rate(queue.ceil_bps),
                            waiting(&queue.rates)
                        ),
                        plain,
                    )
                    .line(),
                cells
                    .text(
                        format!(
                            "since it came: {} sent, {} pkts dropped",
                            humanize::bytes(counts.sent.bytes as f64),
                            humanize::number(counts.dropped_pkts as f64)
                        ),
                        plain,
                    )
                    .line(),
            ]
        }
    }
}

fn waiting(rates: &LeafRates) -> String {
    format!("{} pkts, {} queued", rates.backlog.pkts, humanize::bytes(rates.backlog.bytes as f64))
}
