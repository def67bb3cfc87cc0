//! `sluice subscriber`: the subscribers of the policies in force, and edits of them.

use crate::args::subscriber::{EditOptions, List, Move, Order, Remove, Set, Subscriber, SubscriberCommand};
use crate::change;
use crate::failure::Failure;
use crate::humanize;
use crate::terminal;
use comfy_table::{Cell, CellAlignment, Table, presets};
use serde_json::{Map, Value, json};
use sluice_kernel::SubscriberEdits;
use sluice_kernel::status::{LeafClassStatus, QueueStatus, SubscriberSearch, SubscriberStatus};
use sluice_policy::edit::SubscriberChange;
use std::cmp::{Ordering, Reverse};

pub fn run(args: &Subscriber, color: bool) -> Result<(), Failure> {
    sluice_kernel::require_root()?;
    match &args.command {
        SubscriberCommand::List(args) => list(args),
        SubscriberCommand::Show(args) => show_named(&args.name, args.json),
        SubscriberCommand::Set(args) => set(args, color),
        SubscriberCommand::Add(args) => add(args, color),
        SubscriberCommand::Move(args) => move_to(args, color),
        SubscriberCommand::Remove(args) => remove(args, color),
    }
}

/// Makes a change on the interfaces that are named, or on all with subscribers. `what`: the change in a word or two, for the history.
fn perform(what: &str, change: SubscriberChange, options: &EditOptions, color: bool) -> Result<(), Failure> {
    let EditOptions { interfaces, at_boot, change: options } = options;
    let confirm = change::confirm_time(options)?;
    let message = options.message.clone().unwrap_or_else(|| format!("subscriber {what}"));
    let edits = SubscriberEdits { changes: vec![change], interfaces: interfaces.clone(), confirm, message };
    if options.dry_run {
        return change::show_previews(edits.preview()?, options.json, color);
    }
    change::show_done(&edits.apply()?, options, *at_boot, "has other subscribers", color)
}

/// The values that options name, as policies have them; null: removed.
fn values(args: &Set) -> Map<String, Value> {
    let text = |text: &String| if text.is_empty() { Value::Null } else { json!(text) };
    let rate = |text: &String| match text.split_once('/') {
        _ if text.is_empty() => Value::Null,
        Some((down, up)) => json!({ "down": down.trim(), "up": up.trim() }),
        None => json!(text),
    };
    let addresses = args.addresses.as_ref().map(|all| json!(all.iter().map(|one| one.trim()).collect::<Vec<_>>()));
    let all = [
        ("addresses", addresses),
        ("plan", args.plan.as_ref().map(text)),
        ("rate", args.rate.as_ref().map(rate)),
        ("ceil", args.ceil.as_ref().map(rate)),
        ("site", args.site.as_ref().map(text)),
    ];
    all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

fn set(args: &Set, color: bool) -> Result<(), Failure> {
    let values = values(args);
    if values.is_empty() {
        let cure = "name at least one of --plan, --site, --rate, --ceil and --addresses";
        return Err(Failure::input(&format!("nothing of \"{}\" is to be set", args.name), cure));
    }
    let change = SubscriberChange::Set { name: args.name.clone(), values };
    perform(&format!("set {}", args.name), change, &args.options, color)
}

fn add(args: &Set, color: bool) -> Result<(), Failure> {
    let mut subscriber = Map::from_iter([("name".to_owned(), json!(args.name))]);
    subscriber.extend(values(args).into_iter().filter(|(_, value)| !value.is_null()));
    perform(&format!("add {}", args.name), SubscriberChange::Add(subscriber), &args.options, color)
}

fn move_to(args: &Move, color: bool) -> Result<(), Failure> {
    let site = if args.site.is_empty() { Value::Null } else { json!(args.site) };
    let values = Map::from_iter([("site".to_owned(), site)]);
    let change = SubscriberChange::Set { name: args.name.clone(), values };
    perform(&format!("move {}", args.name), change, &args.options, color)
}

fn remove(args: &Remove, color: bool) -> Result<(), Failure> {
    let change = SubscriberChange::Remove { name: args.name.clone() };
    perform(&format!("remove {}", args.name), change, &args.options, color)
}

fn list(args: &List) -> Result<(), Failure> {
    let interfaces = args.interface.clone().map_or_else(sluice_kernel::with_subscribers, |one| Ok(vec![one]))?;
    let search = SubscriberSearch::new(args.search.as_deref().unwrap_or_default());
    let mut found = Map::new();
    for interface in &interfaces {
        let mut all = sluice_kernel::subscribers_of(interface, |one| search.finds_subscriber(one))?;
        match args.sort {
            Order::Name => {}
            Order::Sent => all.sort_by_key(|one| Reverse(one.queue.counts.sent.bytes)),
            Order::Dropped => all.sort_by_key(|one| Reverse(one.queue.counts.dropped_pkts)),
            Order::Queued => all.sort_by_key(|one| Reverse(one.queue.counts.backlog.bytes)),
            Order::Wait => {
                all.sort_by(|one, other| other.queue.wait_ms.partial_cmp(&one.queue.wait_ms).unwrap_or(Ordering::Equal))
            }
        }
        all.truncate(args.limit.unwrap_or(usize::MAX));
        if args.json {
            found.insert(interface.clone(), json!(all));
            continue;
        }
        terminal::say(&format!("{interface}\n{}\n", table(&all)));
    }
    if args.json {
        terminal::say(&format!("{:#}\n", Value::Object(found)));
    }
    Ok(())
}

/// Shows the subscriber with this key on each interface.
pub fn show_named(name: &str, as_json: bool) -> Result<(), Failure> {
    let mut found = Map::new();
    for interface in sluice_kernel::with_subscribers()? {
        let Some(one) = sluice_kernel::subscribers_of(&interface, |one| one.id == name)?.into_iter().next() else {
            continue;
        };
        if as_json {
            found.insert(interface, json!(one));
            continue;
        }
        if found.is_empty() {
            let name = if one.name == one.id { String::new() } else { format!("  {}", one.name) };
            outln!("{}{name}", one.id);
            outln!("  plan       {}", one.plan.as_deref().unwrap_or("none"));
            outln!("  site       {}", one.site.as_deref().unwrap_or("none: right below the link"));
            outln!("  addresses  {}", one.addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
        }
        let rate = |bps: Option<u64>| bps.map_or("none".to_owned(), terminal::rate);
        outln!("{}", queued_at(&interface)?);
        outln!("  guarantee {}, ceiling {}", rate(one.queue.rate_bps), rate(one.queue.ceil_bps));
        outln!("{}", table([&one]));
        if !one.classes.is_empty() {
            outln!("{}", classes(&one.classes));
        }
        found.insert(interface, Value::Null);
    }
    if found.is_empty() {
        return Err(sluice_kernel::no_subscriber(name).into());
    }
    if as_json {
        terminal::say(&format!("{:#}\n", Value::Object(found)));
    }
    Ok(())
}

/// The packets that the queues of an interface hold: those that depart, or on a wire those that arrive.
fn queued_at(interface: &str) -> Result<String, Failure> {
    let partner = sluice_kernel::Record::find(interface)?.and_then(|record| record.partner);
    Ok(match partner {
        Some(partner) => format!("arrivals at {interface}, which leave by {}", partner.interface),
        None => format!("departures of {interface}"),
    })
}

/// The columns of a queue's counters.
const COUNTERS: [&str; 6] = ["sent", "bytes", "dropped", "queued", "wait", "bucket"];

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

fn rate(bps: Option<u64>) -> Cell {
    right(bps.map_or("-".to_owned(), terminal::rate))
}

/// The cells of [`COUNTERS`].
fn counters(queue: &QueueStatus) -> [Cell; 6] {
    let QueueStatus { counts, wait_ms, ceil_fill, .. } = queue;
    [
        right(counts.sent.pkts.to_string()),
        right(terminal::bytes(counts.sent.bytes)),
        right(counts.dropped_pkts.to_string()),
        right(counts.backlog.pkts.to_string()),
        right(humanize::wait_ms(*wait_ms)),
        right(ceil_fill.map_or("-".to_owned(), |part| format!("{:.0} %", part * 100.0))),
    ]
}

/// A table of the classes inside a subscriber.
fn classes(all: &[LeafClassStatus]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["  class", "guarantee", "ceiling"].into_iter().chain(COUNTERS));
    for one in all {
        let own = [Cell::new(format!("  {} {}", one.id, one.name)), rate(one.queue.rate_bps), rate(one.queue.ceil_bps)];
        table.add_row(own.into_iter().chain(counters(&one.queue)));
    }
    table
}

/// A table of subscribers.
pub fn table<'a>(all: impl IntoIterator<Item = &'a SubscriberStatus>) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["  subscriber", "site", "plan", "ceiling"].into_iter().chain(COUNTERS));
    for one in all {
        let own = [
            Cell::new(format!("  {}", one.id)),
            Cell::new(one.site.as_deref().unwrap_or("-")),
            Cell::new(one.plan.as_deref().unwrap_or("-")),
            rate(one.queue.ceil_bps),
        ];
        table.add_row(own.into_iter().chain(counters(&one.queue)));
    }
    table
}
