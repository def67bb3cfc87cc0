//! A network in a few lines for people.

use super::Network;
use crate::rate::Rate;

/// What `sluice check` prints of a network. Ends in a newline.
pub fn summary(network: &Network) -> String {
    let mut rows = vec![("policy", network.name.clone())];
    rows.extend(network.description.clone().map(|description| ("purpose", description)));
    let link = network.link();
    let rate = |rate: &Option<Rate>| rate.map_or("unknown, not shaped".to_owned(), |rate| rate.to_string());
    rows.push(("link", format!("down {}, up {}", rate(&link.ceil.down), rate(&link.ceil.up))));
    rows.push(("towards them", network.subscriber_side.join(", ")));
    let prefixes = count(network.prefixes.len(), "prefix", "prefixes");
    rows.push(("subscribers", format!("{}, with {prefixes}", network.subscribers().len())));
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

fn count(many: usize, one: &str, more: &str) -> String {
    format!("{many} {}", if many == 1 { one } else { more })
}
