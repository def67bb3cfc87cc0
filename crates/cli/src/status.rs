//! `sluice status`: a table per direction, or JSON.

use crate::args::Status as Args;
use crate::failure::Failure;
use crate::humanize;
use crate::subscriber;
use crate::terminal;
use comfy_table::{Cell, CellAlignment, Table, presets};
use sluice_kernel::status::{
    Count, DirectionStatus, ForwardStatus, LeafCounts, SharedWay, SiteStatus, Status, SubscriberStatus, TreeStatus,
};
use sluice_kernel::{Engine, Interface, Phase, Record};
use sluice_policy::network::Way;

pub fn run(args: &Args, color: bool) -> Result<(), Failure> {
    sluice_kernel::require_root()?;
    let names = match &args.interface {
        Some(name) if !is_managed(name)? && sluice_kernel::with_subscribers().is_ok() => {
            return subscriber::show_named(name, args.json);
        }
        Some(name) => vec![name.clone()],
        None => here()?,
    };
    let statuses = names.iter().map(|name| sluice_kernel::status_of(name)).collect::<Result<Vec<_>, _>>()?;
    if args.json {
        let json = match (&args.interface, &statuses[..]) {
            (Some(_), [one]) => serde_json::to_string_pretty(one),
            _ => serde_json::to_string_pretty(&statuses),
        };
        terminal::say(&(json.map_err(|error| Failure::system(error.to_string()))? + "\n"));
        return Ok(());
    }
    if statuses.is_empty() {
        terminal::say("no interface is managed here; `sluice up IFACE --policy P` begins\n");
    }
    let shown: Vec<String> = statuses.iter().map(|status| text(status, args.queues, color)).collect();
    terminal::say(&shown.join("\n"));
    Ok(())
}

/// Whether this network namespace has a managed interface of this name.
fn is_managed(name: &str) -> Result<bool, Failure> {
    let own = sluice_kernel::netns::inode()?;
    Ok(Record::all()?.iter().any(|record| record.netns == own && record.interface == name))
}

/// The managed interfaces of this network namespace. Remains of an interface that has gone, or of an interrupted command, and
/// records that cannot be read are named on standard error.
fn here() -> Result<Vec<String>, Failure> {
    let own = sluice_kernel::netns::inode()?;
    let mut names = Vec::new();
    let lost = sluice_kernel::lost_groups()?;
    for record in Record::all()?.into_iter().filter(|record| record.netns == own) {
        if lost.contains(&record.interface) {
            eprintln!("{0}: the device of the group was deleted; sluice ensure {0} makes it again", record.interface);
        } else if record.phase != Phase::Active || !Interface::is_there(&record.interface, record.ifindex) {
            eprintln!(
                "{}: left over from an interrupted command or a removed interface; sluice down {0} cleans up",
                record.interface
            );
        } else {
            names.push(record.interface);
        }
    }
    for name in sluice_kernel::unreadable_here()? {
        eprintln!(
            "{name}: its record cannot be read; sluice up {name} --policy P --force makes it anew, sluice down {name} cleans up"
        );
    }
    Ok(names)
}

fn text(status: &Status, queues: bool, color: bool) -> String {
    let bold = |text: &str| if color { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() };
    let engine = match status.engine {
        Engine::Qdisc => format!("engine qdisc ({})", status.qdisc),
        Engine::Tc => "engine tc (HTB)".to_owned(),
        Engine::Xsk => "engine xsk".to_owned(),
        Engine::None => "classified only".to_owned(),
    };
    let mut lines = vec![format!(
        "{}  policy {} ({}), generation {}, {engine}",
        bold(&status.interface),
        status.policy.name,
        status.policy.scheduler,
        status.policy.generation
    )];
    lines.extend(warnings(status));
    let shaped =
        |bps: Option<u64>| bps.map_or("not shaped".to_owned(), |bps| format!("shaped to {}", terminal::rate(bps)));
    lines.push(match &status.arrivals_of {
        Some(members) if members.is_empty() => "  no interface of the group is there".to_owned(),
        Some(members) => format!("  arrivals of {} {}", members.join(", "), shaped(status.ingress_rate_bps)),
        None => format!(
            "  departures {}; arrivals {}; {}",
            shaped(status.rate_bps),
            shaped(status.ingress_rate_bps),
            if status.split { "super-packets are split" } else { "super-packets stay whole" }
        ),
    });
    for direction in &status.directions {
        if direction.queued || direction.classes.iter().any(|class| class.sent.pkts + class.dropped.pkts > 0) {
            lines.push(format!(
                "{}{}",
                bold(direction.direction),
                if direction.queued { "" } else { " (counted, not queued)" }
            ));
            lines.push(format!("{}", table(direction)));
            lines.extend(queues.then(|| tx_queues(direction)));
            if let Some(lost) = direction.lost.filter(|lost| lost.pkts > 0) {
                lines.push(format!("  lost by the wire: {} packets", lost.pkts));
            }
            if let Some(port) = direction.port.filter(|port| port.wait_s > 0.0) {
                lines.push(format!("  packets waited for the interface on the other side: {:.3} s", port.wait_s));
            }
        }
    }
    if let Some(tree) = &status.tree {
        lines.extend(subscribers(tree, &bold));
    }
    if !status.forwards.is_empty() {
        lines.push(bold("forwards"));
        lines.push(format!("{}", forwards(&status.forwards)));
        lines.extend(ways(&status.forwards));
    }
    lines.extend(malformed(status));
    lines.push(String::new());
    lines.join("\n")
}

/// The lines on sites and on the subscribers that sent the most.
fn subscribers(tree: &TreeStatus, bold: &dyn Fn(&str) -> String) -> Vec<String> {
    if tree.is_class_tree {
        return class_tree(tree, bold);
    }
    let way = match tree.way {
        Way::Down => "down, by destination",
        Way::Up => "up, by source",
    };
    let mut lines = vec![format!("{} ({}; {way})", bold("subscribers"), tree.all.len())];
    if !tree.early_drop_at.is_empty() {
        lines.push(format!("  dropped early, where queues are full: at arrival at {}", tree.early_drop_at.join(", ")));
    }
    if !tree.sites.is_empty() {
        lines.push(format!("{}", sites(&tree.sites)));
    }
    let busiest = tree.busiest();
    if !busiest.is_empty() {
        lines.push(format!("{}", crate::subscriber::table(busiest)));
    }
    lines.extend(others("of addresses that no subscriber has", &tree.nobody));
    lines
}

/// The lines on a class tree: each class behind its parent.
fn class_tree(tree: &TreeStatus, bold: &dyn Fn(&str) -> String) -> Vec<String> {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["  class", "guarantee", "ceiling", "sent", "bytes", "dropped", "queued", "wait", "bucket"]);
    let rate =
        |bps: Option<u64>| Cell::new(bps.map_or("-".to_owned(), terminal::rate)).set_alignment(CellAlignment::Right);
    let row = |(name, depth): (&str, usize), limits: [Option<u64>; 2], counts: &LeafCounts, wait: String, filled| {
        [
            Cell::new(format!("  {}{name}", "  ".repeat(depth))),
            rate(limits[0]),
            rate(limits[1]),
            number(counts.sent.pkts),
            Cell::new(terminal::bytes(counts.sent.bytes)).set_alignment(CellAlignment::Right),
            number(counts.dropped_pkts),
            number(counts.backlog.pkts),
            Cell::new(wait).set_alignment(CellAlignment::Right),
            fill(filled),
        ]
    };
    let leaves_of = |parent: Option<&str>, depth: usize| {
        let own = tree.all.iter().filter(|leaf| leaf.site.as_deref() == parent);
        let of = |leaf: &SubscriberStatus| {
            let (own, wait) = (&leaf.queue, humanize::wait_ms(leaf.queue.wait_ms));
            row((&leaf.name, depth), [own.rate_bps, own.ceil_bps], &own.counts, wait, own.ceil_fill)
        };
        own.map(of).collect::<Vec<_>>()
    };
    for site in &tree.sites {
        let limits = [site.rate_bps, site.ceil_bps];
        table.add_row(row((&site.name, site.depth), limits, &site.counts, String::new(), site.ceil_fill));
        table.add_rows(leaves_of(Some(&site.name), site.depth + 1));
    }
    table.add_rows(leaves_of(None, 0));
    let mut lines = vec![bold("class tree"), format!("{table}")];
    lines.extend(others("unclassified (ARP, neighbour discovery, DHCP, broken headers)", &tree.nobody));
    lines
}

/// The line on packets that no subscriber and no class has. None: there were none.
fn others(what: &str, counts: &LeafCounts) -> Option<String> {
    let LeafCounts { sent, dropped_pkts, backlog } = counts;
    let were_there = sent.pkts + dropped_pkts > 0;
    were_there.then(|| format!("  {what}: {} packets sent, {dropped_pkts} dropped, {} queued", sent.pkts, backlog.pkts))
}

fn sites(sites: &[SiteStatus]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["  site", "subscribers", "ceiling", "sent", "bytes", "dropped", "queued", "bucket"]);
    for site in sites {
        table.add_row([
            Cell::new(format!("  {}{}", "  ".repeat(site.depth), site.name)),
            number(site.subscribers as u64),
            Cell::new(site.ceil_bps.map_or("-".to_owned(), terminal::rate)).set_alignment(CellAlignment::Right),
            number(site.counts.sent.pkts),
            Cell::new(terminal::bytes(site.counts.sent.bytes)).set_alignment(CellAlignment::Right),
            number(site.counts.dropped_pkts),
            number(site.counts.backlog.pkts),
            fill(site.ceil_fill),
        ]);
    }
    table
}

/// The lines on states that a command should end: an unconfirmed change, missing parts, programs of another version.
fn warnings(status: &Status) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(unconfirmed) = &status.unconfirmed {
        lines.push(format!(
            "  reverts to policy {} in {} s unless confirmed: sluice confirm {}",
            unconfirmed.former, unconfirmed.left_s, status.interface
        ));
    }
    if !status.in_place {
        lines.push(format!(
            "  NOT all is in place: {}; sluice ensure {} puts it back, or says how to",
            status.missing.join("; "),
            status.interface
        ));
    }
    if status.outdated {
        lines.push(format!(
            "  its programs are of another version of sluice than this command; sluice upgrade {} loads this one's",
            status.interface
        ));
    }
    lines
}

/// The line on packets with malformed headers, if there were any.
fn malformed(status: &Status) -> Option<String> {
    let kinds: Vec<String> = status
        .directions
        .iter()
        .flat_map(|direction| &direction.parsed)
        .filter(|(kind, _)| kind.starts_with("truncated") || kind.starts_with("bad") || kind.starts_with("deep"))
        .map(|(kind, count)| format!("{kind} {}", count.pkts))
        .collect();
    (!kinds.is_empty()).then(|| format!("malformed: {}", kinds.join(", ")))
}

/// The table of forwards.
pub fn forwards(forwards: &[ForwardStatus]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header([
        "  forward",
        "protocol",
        "listens on",
        "to",
        "open",
        "opened",
        "refused",
        "why",
        "from clients",
        "from targets",
    ]);
    for forward in forwards {
        let more = forward.targets.len() - 1;
        let more = if more > 0 { format!(" +{more}") } else { String::new() };
        let why: Vec<String> = forward.refused.iter().map(|(reason, pkts)| format!("{reason} {pkts}")).collect();
        let bytes = |count: Count| Cell::new(terminal::bytes(count.bytes)).set_alignment(CellAlignment::Right);
        table.add_row([
            Cell::new(format!("  {}", forward.name)),
            Cell::new(&forward.protocol),
            Cell::new(&forward.listen),
            Cell::new(format!("{}{more}", forward.targets[0])),
            number(forward.open),
            number(forward.opened),
            number(forward.refused.values().sum()),
            Cell::new(why.join(", ")),
            bytes(forward.from_clients),
            bytes(forward.from_targets),
        ]);
    }
    table
}

/// The ways by which packets of forwards leave, and why: a line for each.
pub fn ways(forwards: &[ForwardStatus]) -> Vec<String> {
    let all = forwards.iter().map(|forward| (forward.name.as_str(), &forward.ways[..]));
    SharedWay::of(all).iter().map(|way| format!("    {way}")).collect()
}

fn table(direction: &DirectionStatus) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header([
        "  class", "sent", "bytes", "dropped", "why", "marked", "queued", "peak", "wait p50", "p99", "bucket",
    ]);
    for class in &direction.classes {
        let why: Vec<String> = class.drops.iter().map(|(reason, pkts)| format!("{reason} {pkts}")).collect();
        table.add_row([
            Cell::new(format!("  {} {}", class.id, class.name)),
            number(class.sent.pkts),
            Cell::new(terminal::bytes(class.sent.bytes)).set_alignment(CellAlignment::Right),
            number(class.dropped.pkts),
            Cell::new(why.join(", ")),
            number(class.marked.pkts),
            number(class.backlog.pkts),
            Cell::new(class.peak_backlog_bytes.map_or("-".to_owned(), terminal::bytes))
                .set_alignment(CellAlignment::Right),
            wait(class.sojourn_p50_us),
            wait(class.sojourn_p99_us),
            fill(class.bucket_fill()),
        ]);
    }
    table
}

/// The tx queues of a direction, or the workers of a wire, in a table, or that there is one queue.
fn tx_queues(direction: &DirectionStatus) -> String {
    if direction.tx_queues.is_empty() {
        return "  one queue holds all packets".to_owned();
    }
    let of_wire = direction.lost.is_some();
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let mut header = vec![if of_wire { "  worker" } else { "  tx queue" }, "sent", "bytes", "dropped", "queued"];
    header.extend(of_wire.then_some("lost"));
    table.set_header(header);
    for one in &direction.tx_queues {
        let mut row = vec![
            Cell::new(format!("  {}", one.queue)),
            number(one.sent.pkts),
            Cell::new(terminal::bytes(one.sent.bytes)).set_alignment(CellAlignment::Right),
            number(one.dropped.pkts),
            number(one.backlog.pkts),
        ];
        row.extend(one.lost.map(|lost| number(lost.pkts)));
        table.add_row(row);
    }
    format!("{table}")
}

fn number(n: u64) -> Cell {
    Cell::new(n).set_alignment(CellAlignment::Right)
}

fn fill(part: Option<f64>) -> Cell {
    Cell::new(part.map_or("-".to_owned(), |part| format!("{:.0} %", part * 100.0))).set_alignment(CellAlignment::Right)
}

fn wait(us: Option<f64>) -> Cell {
    let text = match us {
        None => "-".to_owned(),
        Some(us) if us < 1000.0 => format!("{us:.0} us"),
        Some(us) => format!("{:.1} ms", us / 1000.0),
    };
    Cell::new(text).set_alignment(CellAlignment::Right)
}
