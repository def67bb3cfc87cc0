//! A network in a few lines for people.

use super::{Address, Network, Node};
use crate::class_id::ClassId;
use crate::rate::Rate;

/// What `sluice check` prints of a network. Ends in a newline.
pub fn summary(network: &Network) -> String {
    let mut rows = vec![("policy", network.name.clone())];
    rows.extend(network.description.clone().map(|description| ("purpose", description)));
    let link = network.link();
    let rate = |rate: &Option<Rate>| rate.map_or("unknown, not shaped".to_owned(), |rate| rate.to_string());
    if network.is_class_tree() {
        return of_class_tree(network, rows);
    }
    rows.push(("link", format!("down {}, up {}", rate(&link.ceil.down), rate(&link.ceil.up))));
    rows.push(("towards them", network.subscriber_side.join(", ")));
    rows.push(("subscribers", format!("{}, with {}", network.subscribers().len(), addresses(network))));
    for group in &network.groups {
        let prefixes = count(group.prefixes.len(), "prefix", "prefixes");
        let name = &network.inner[group.inner].name;
        rows.push(("each host of", format!("{name}: {} at once, of {prefixes}", group.hosts.len())));
    }
    let sites = match (network.sites().len() - network.groups.len(), network.levels()) {
        (0, _) if !network.groups.is_empty() => "none: all are right below the link".to_owned(),
        (0, _) => "none: all subscribers are right below the link".to_owned(),
        (sites, levels) => format!("{sites}, on {}", count(levels, "level", "levels")),
    };
    rows.push(("sites", sites));
    rows.push(("plans", network.plans.to_string()));
    if !network.classes.is_empty() {
        let names: Vec<String> = network.classes.iter().map(|(id, name)| format!("{id} {name}")).collect();
        rows.push(("classes", names.join(", ")));
    }
    rows.push(("queues", count(network.queues.len(), "kind", "kinds")));
    let sums = network.guaranteed.named().into_iter().zip(link.ceil.named());
    let sums: Vec<String> = sums
        .map(|((way, sum), (_, link))| {
            let sum =
                if *sum == 0 { "none".to_owned() } else { Rate(u64::try_from(*sum).unwrap_or(u64::MAX)).to_string() };
            link.map_or(format!("{way} {sum}"), |link| format!("{way} {sum} of {link}"))
        })
        .collect();
    rows.push(("guarantees", sums.join(", ")));
    rows.iter().map(|(name, value)| format!("{name:<14} {value}\n")).collect()
}

/// The rest of a class tree: a line for each, indented below its parent.
fn of_class_tree(network: &Network, mut rows: Vec<(&'static str, String)>) -> String {
    let link = network.link();
    rows.push(("link", link.ceil.down.map_or("rate unknown, not shaped".to_owned(), |rate| rate.to_string())));
    let sum = Rate(u64::try_from(network.guaranteed.down).unwrap_or(u64::MAX));
    rows.push(("guarantees", if sum.0 == 0 { "none".to_owned() } else { sum.to_string() }));
    let default = network.default_leaf.and_then(|leaf| network.leaves.get(leaf));
    rows.extend(default.map(|leaf| ("default class", title(leaf.class, &leaf.node.name))));
    let rows: String = rows.iter().map(|(name, value)| format!("{name:<14} {value}\n")).collect();
    let mut lines = Vec::new();
    below(network, link, 0, &mut lines);
    let widest = lines.iter().map(|line| line[0].chars().count()).max().unwrap_or(0).max("class".len());
    let header = ["class", "rate", "ceil", "share", "queue"].map(str::to_owned);
    let shown = std::iter::once(&header).chain(&lines).map(|[name, rate, ceil, share, queue]| {
        format!("{name:<widest$}  {rate:>10}  {ceil:>10}  {share:<11}  {queue}").trim_end().to_owned() + "\n"
    });
    rows + "\n" + &shown.collect::<String>()
}

/// The lines of all below a node.
fn below(network: &Network, above: &Node, depth: usize, lines: &mut Vec<[String; 5]>) {
    let line = |name: String, node: &Node, queue: &str| {
        let rate = |rate: Option<Rate>| rate.map_or("-".to_owned(), |rate| rate.to_string());
        let share = above.scheduler.share(node.weight, node.priority, node.order);
        let name = format!("{:1$}{name}", "", 2 * depth);
        [name, rate(node.rate.down), rate(node.ceil.down), share, queue.to_owned()]
    };
    for node in network.sites().iter().filter(|node| node.parent == above.number) {
        lines.push(line(node.name.clone(), node, ""));
        below(network, node, depth + 1, lines);
    }
    for leaf in network.leaves.iter().filter(|leaf| leaf.node.parent == above.number) {
        let queue = network.queues.get(leaf.queue.down).map_or("", |queue| queue.queue.name());
        lines.push(line(title(leaf.class, &leaf.node.name), &leaf.node, queue));
    }
}

/// A class by its number and its name.
fn title(class: Option<ClassId>, name: &str) -> String {
    class.map_or(name.to_owned(), |class| format!("{class} {name}"))
}

/// The addresses of the subscribers by kind, as "5 prefixes, 1 VLAN".
fn addresses(network: &Network) -> String {
    let of = |kind: fn(&Address) -> bool| network.addresses.iter().filter(|(address, _)| kind(address)).count();
    let prefixes = count(of(|one| matches!(one, Address::Prefix(_))), "prefix", "prefixes");
    let vlans = (of(|one| matches!(one, Address::Vlan(_))), "VLAN", "VLANs");
    let marks = (of(|one| matches!(one, Address::Mark(_))), "mark", "marks");
    let others = [vlans, marks].into_iter().filter(|(number, ..)| *number > 0);
    std::iter::once(prefixes)
        .chain(others.map(|(number, one, many)| count(number, one, many)))
        .collect::<Vec<_>>()
        .join(", ")
}

fn count(many: usize, one: &str, more: &str) -> String {
    format!("{many} {}", if many == 1 { one } else { more })
}
