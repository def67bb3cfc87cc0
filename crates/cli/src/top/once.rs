//! One table of the rates of an interval.

use crate::humanize;
use crate::terminal;
use crate::top::app::shown_directions;
use comfy_table::{Cell, CellAlignment, Table, presets};
use sluice_observe::Rates;
use sluice_observe::rates::{ClassRates, DirectionRates, ForwardRates, LeafRates, TreeRates};
use std::fmt::Write;

/// The table as text.
pub fn text(rates: &Rates) -> String {
    let mut text = String::new();
    for (n, one) in rates.interfaces.iter().enumerate() {
        if n > 0 {
            text.push('\n');
        }
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{}  policy {} ({}), generation {}, engine {}{}",
            one.interface,
            one.policy.name,
            one.policy.scheduler,
            one.policy.generation,
            one.engine.name(),
            if one.in_place { "" } else { "; not all of it is in place" }
        );
        for direction in shown_directions(one) {
            let _ = writeln!(text, "{}\n{}", summary(direction), table(direction));
        }
        if let Some(tree) = &one.tree {
            let _ = writeln!(text, "{}\n{}", tree_summary(tree), subscribers(tree));
        }
        if !one.forwards.is_empty() {
            let _ = writeln!(text, "forwards\n{}", forwards(&one.forwards));
        }
    }
    text
}

fn summary(one: &DirectionRates) -> String {
    let used = match (one.rate_bps, one.used) {
        (Some(rate), Some(used)) => format!(" of {} ({})", terminal::rate(rate), humanize::percent(used)),
        _ if one.queued => ", not shaped".to_owned(),
        _ => ", counted and not queued".to_owned(),
    };
    let limit = one.limit_bps.map_or(String::new(), |bps| {
        let fill = one.limit_fill.map_or(String::new(), |fill| format!(" (bucket {})", humanize::percent(fill)));
        format!(", at most {}{fill}", terminal::rate(bps))
    });
    format!(
        "{}  {}{used}{limit}, {:.0} pkt/s, {:.0} dropped/s, {:.0} marked/s",
        one.direction,
        terminal::rate(one.sent_bps.round() as u64),
        one.sent_pps,
        one.dropped_pps,
        one.marked_pps
    )
}

/// The direction of a tree, and how many of its subscribers send.
pub fn tree_summary(tree: &TreeRates) -> String {
    if tree.is_class_tree {
        return format!(
            "class tree  {} leaf classes, {} of them send; {} unclassified",
            tree.subscribers.len(),
            tree.sending().len(),
            terminal::rate(tree.nobody.sent_bps.round() as u64)
        );
    }
    format!(
        "{}  {} subscribers, {} of them send; {} of other addresses",
        tree.way.name(),
        tree.subscribers.len(),
        tree.sending().len(),
        terminal::rate(tree.nobody.sent_bps.round() as u64)
    )
}

/// The titles of names and plans.
pub fn titles(tree: &TreeRates) -> (&'static str, &'static str) {
    if tree.is_class_tree { ("class", "") } else { ("site, subscriber", "plan") }
}

/// Sites, then the subscribers that send most.
fn subscribers(tree: &TreeRates) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let (name, plan) = titles(tree);
    table.set_header([
        format!("  {name}").as_str(),
        plan,
        "rate",
        "pkt/s",
        "queued",
        "wait",
        "drop/s",
        "ceiling",
        "used",
    ]);
    let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    let mut add =
        |name: String, plan: &str, wait_ms, (ceil_bps, used): (Option<u64>, Option<f64>), rates: &LeafRates| {
            table.add_row([
                Cell::new(format!("  {name}")),
                Cell::new(plan),
                right(terminal::rate(rates.sent_bps.round() as u64)),
                right(format!("{:.0}", rates.sent_pps)),
                right(rates.backlog.pkts.to_string()),
                right(humanize::wait_ms(wait_ms)),
                right(format!("{:.0}", rates.dropped_pps)),
                right(ceil_bps.map_or("-".to_owned(), terminal::rate)),
                right(used.map_or("-".to_owned(), humanize::percent)),
            ]);
        };
    for site in &tree.sites {
        let name = format!("{}{} ({})", "  ".repeat(site.depth), site.name, site.subscribers);
        add(name, "", None, (site.ceil_bps, site.used), &site.rates);
    }
    for one in tree.busiest() {
        add(
            one.id.clone(),
            if tree.is_class_tree { "" } else { one.plan.as_deref().unwrap_or("-") },
            one.queue.wait_ms,
            (one.queue.ceil_bps, one.queue.used),
            &one.queue.rates,
        );
    }
    table
}

fn table(direction: &DirectionRates) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header([
        "  class", "rate", "pkt/s", "share", "queued", "wait p50", "p95", "p99", "drop/s", "why", "mark/s", "bucket",
    ]);
    let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    for class in &direction.classes {
        let why: Vec<String> = class.drops_pps.iter().map(|(reason, pps)| format!("{reason} {pps:.0}")).collect();
        let wait = |of: fn(&sluice_observe::rates::SojournRates) -> f64| {
            right(class.sojourn.as_ref().map_or("-".to_owned(), |waits| humanize::wait_us(of(waits))))
        };
        table.add_row([
            Cell::new(format!("  {} {}", class.id, class.name)),
            right(terminal::rate(class.sent_bps.round() as u64)),
            right(format!("{:.0}", class.sent_pps)),
            right(class.share.map_or("-".to_owned(), humanize::percent)),
            right(terminal::bytes(class.backlog.bytes)),
            wait(|waits| waits.p50_us),
            wait(|waits| waits.p95_us),
            wait(|waits| waits.p99_us),
            right(format!("{:.0}", class.dropped_pps)),
            Cell::new(why.join(", ")),
            right(format!("{:.0}", class.marked_pps)),
            right(bucket(class)),
        ]);
    }
    table
}

fn forwards(forwards: &[ForwardRates]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["  forward", "listens on", "open", "new/s", "from clients", "from targets", "refused/s", "why"]);
    let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    for forward in forwards {
        let why: Vec<String> = forward.refusals_pps.iter().map(|(reason, pps)| format!("{reason} {pps:.0}")).collect();
        table.add_row([
            Cell::new(format!("  {}", forward.name)),
            Cell::new(&forward.listen),
            right(forward.open.to_string()),
            right(format!("{:.0}", forward.opened_per_s)),
            right(terminal::rate(forward.from_clients_bps.round() as u64)),
            right(terminal::rate(forward.from_targets_bps.round() as u64)),
            right(format!("{:.0}", forward.refused_pps)),
            Cell::new(why.join(", ")),
        ]);
    }
    table
}

fn bucket(class: &ClassRates) -> String {
    class.bucket_fill.map_or("-".to_owned(), humanize::percent)
}
