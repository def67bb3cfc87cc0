//! The difference between two networks: settings, sites and subscribers that differ, by name. The numbers of nodes are no difference: an engine
//! chooses them.

use super::{Address, EachWay, Group, Leaf, LeafClass, LeafClasses, LeafQueue, Network, Node};
use crate::difference::change::{Change, Field, Values, changed};
use crate::link::{Cells, SplitGso};
use crate::rate::Rate;
use crate::resolved::ResolvedClass;
use crate::time;
use serde::Serialize;
use std::collections::HashMap;

/// A site or a subscriber that changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeChange {
    /// The kind of change; never `Moved`, since the place in a table means nothing.
    pub change: Change,
    /// Its key among sites or subscribers.
    pub id: String,
    /// All values of one that is added or removed, else the changed values.
    pub fields: Vec<Field>,
}

/// The sites and the subscribers that change.
pub(crate) fn changed_nodes(old: Option<&Network>, new: Option<&Network>) -> (Vec<NodeChange>, Vec<NodeChange>) {
    let all = |network: Option<&Network>| {
        let network = network?;
        let mut sites: Vec<(String, Values)> =
            network.sites().iter().map(|site| (site.id.clone(), node(network, site))).collect();
        network.groups.iter().for_each(|own| sites[own.inner - 1].1 = group(network, own));
        // Classes of a tree are told as classes.
        let leaves = if network.is_class_tree() { &[] } else { network.subscribers() };
        let leaves = leaves.iter().zip(network.addresses());
        let leaves: Vec<(String, Values)> =
            leaves.map(|(own, addresses)| (own.node.id.clone(), leaf(network, own, &addresses))).collect();
        Some((sites, leaves))
    };
    let (old, new) = (all(old).unwrap_or_default(), all(new).unwrap_or_default());
    (nodes(&old.0, &new.0), nodes(&old.1, &new.1))
}

fn nodes(old: &[(String, Values)], new: &[(String, Values)]) -> Vec<NodeChange> {
    let was: HashMap<&str, &Values> = old.iter().map(|(id, values)| (id.as_str(), values)).collect();
    let is: HashMap<&str, &Values> = new.iter().map(|(id, values)| (id.as_str(), values)).collect();
    let none = Values::new();
    let gone = old.iter().filter(|(id, _)| !is.contains_key(id.as_str()));
    let gone = gone.map(|(id, values)| (Change::Removed, id, changed(values, &none)));
    let here = new.iter().map(|(id, values)| match was.get(id.as_str()) {
        Some(was) => (Change::Changed, id, changed(was, values)),
        None => (Change::Added, id, changed(&none, values)),
    });
    let here = here.filter(|(change, _, fields)| *change == Change::Added || !fields.is_empty());
    gone.chain(here).map(|(change, id, fields)| NodeChange { change, id: id.clone(), fields }).collect()
}

/// The values of the policy as a whole.
pub(crate) fn settings(network: &Network) -> Values {
    let Network {
        name,
        description,
        subscriber_side,
        framing,
        split_gso,
        plans: _,
        // Those of subscribers are told with each.
        classes: _,
        default_leaf,
        guaranteed: _,
        inner: _,
        leaves: _,
        groups: _,
        queues: _,
        addresses: _,
        remarks: _,
    } = network;
    let Node { ceil, burst, scheduler, .. } = network.link();
    let default = default_leaf.and_then(|leaf| network.leaves.get(leaf));
    let mut values = present([
        ("name", Some(name.clone())),
        ("description", description.clone()),
        ("subscriber_side", default_leaf.is_none().then(|| subscriber_side.join(", "))),
        ("scheduler", default_leaf.map(|_| scheduler.words())),
        ("default_class", default.and_then(|leaf| leaf.class).map(|class| class.to_string())),
    ]);
    values.extend(each_way(network, ["link.rate", "link.rate.down", "link.rate.up"], ceil.map(|own| rate(*own))));
    values.extend(present([
        ("link.overhead", Some(framing.overhead_bytes.to_string())),
        ("link.mpu", Some(framing.mpu_bytes.to_string())),
        ("link.cells", name_of(Cells::NAMES, &framing.cells)),
        ("link.burst", burst.down.map(|burst| burst.to_string())),
        ("link.split_gso", name_of(SplitGso::NAMES, split_gso)),
    ]));
    values
}

/// The values of a class of a class tree, or those that a class inside subscribers has in all of them; each subscriber tells the rest.
pub(crate) fn class(network: &Network, class: &ResolvedClass) -> Values {
    if let Some(own) = network.leaves.iter().find(|leaf| leaf.class == Some(class.id)) {
        return leaf(network, own, &[]);
    }
    present([("id", Some(class.id.to_string())), ("name", Some(class.name.clone()))])
}

fn node(network: &Network, own: &Node) -> Values {
    let Node { number, parent, id: _, name, weight, rate: least, ceil, burst, priority, order, scheduler } = own;
    let text = |values: &EachWay<Option<Rate>>| values.map(|own| rate(*own));
    let is_inner = *number >= network.link().number && network.is_class_tree();
    let above = network.node(*parent).filter(|above| above.number != network.link().number);
    let mut values = present([
        ("name", Some(name.clone())),
        (if network.is_class_tree() { "parent" } else { "site" }, above.map(|above| above.id.clone())),
        ("scheduler", is_inner.then(|| scheduler.words())),
    ]);
    let shares = network.scheduler_above(own).values(*weight, *priority, *order);
    values.extend(shares.into_iter().map(|(key, value)| (key.name(), key.text(value))));
    values.extend(each_way(network, ["rate", "rate.down", "rate.up"], text(least)));
    values.extend(each_way(network, ["ceil", "ceil.down", "ceil.up"], text(ceil)));
    let burst = burst.map(|burst| burst.map(|burst| burst.to_string()));
    values.extend(each_way(network, ["burst", "burst.down", "burst.up"], burst));
    values
}

fn leaf(network: &Network, leaf: &Leaf, addresses: &[Address]) -> Values {
    let Leaf { node: own, plan, class, queue, classes } = leaf;
    let mut values = node(network, own);
    values.extend(present([("id", class.map(|class| class.to_string()))]));
    let queues: EachWay<Option<&LeafQueue>> = queue.map(|queue| network.queues.get(*queue));
    let addresses: Vec<String> = addresses.iter().map(Address::to_string).collect();
    values
        .extend(present([("addresses", (!addresses.is_empty()).then(|| addresses.join(" "))), ("plan", plan.clone())]));
    values.extend(each_way(network, ["queue", "queue.down", "queue.up"], queues.map(|queue| queue.map(shown))));
    values.extend(present([("classes", (!classes.classes.is_empty()).then(|| shown_classes(network, leaf)))]));
    values
}

/// The classes inside a leaf on one line. Of their queues, those that differ from the leaf's are told.
fn shown_classes(network: &Network, leaf: &Leaf) -> String {
    let LeafClasses { scheduler, classes, default } = &*leaf.classes;
    let one = |(place, class): (usize, &LeafClass)| {
        let LeafClass { id, name, weight, priority, order, rate: least, ceil, burst, queue } = class;
        let of_ways = |what: &str, values: EachWay<Option<String>>| match &values {
            EachWay { down: Some(down), up: Some(up) } if down == up => vec![format!("{what} {down}")],
            _ => {
                let one =
                    |(way, value): (&str, &Option<String>)| value.as_ref().map(|value| format!("{what} {way} {value}"));
                values.named().into_iter().filter_map(one).collect()
            }
        };
        let share = scheduler.share(*weight, *priority, *order);
        let default = if place == *default { " (default)" } else { "" };
        let mut words = vec![format!("{id} {name}{default}"), share];
        words.extend(of_ways("rate", least.map(|own| rate(*own))));
        words.extend(of_ways("ceil", ceil.map(|own| rate(*own))));
        words.extend(of_ways("burst", burst.map(|own| own.map(|burst| burst.to_string()))));
        if *queue != leaf.queue {
            words.extend(of_ways("queue", queue.map(|queue| network.queues.get(*queue).map(shown))));
        }
        words.join(", ")
    };
    classes.iter().enumerate().map(one).collect::<Vec<_>>().join("; ")
}

/// The values of a group of hosts: where its node is, and what a host has.
fn group(network: &Network, group: &Group) -> Values {
    let Group { inner, shared, hosts, ipv6_length, prefixes } = group;
    let is_of_node = |name: &str| matches!(name, "name" | "site");
    let mut values = node(network, &network.inner[*inner]);
    values.retain(|(name, _)| is_of_node(name));
    let prefixes: Vec<Address> = prefixes.iter().copied().map(Address::from).collect();
    let of_host = leaf(network, &network.leaves[*shared], &prefixes);
    values.extend(of_host.into_iter().filter(|(name, _)| !is_of_node(name)));
    values.extend(present([("hosts", Some(hosts.len().to_string())), ("ipv6_length", Some(ipv6_length.to_string()))]));
    values
}

/// A queue on one line.
fn shown(queue: &LeafQueue) -> String {
    let LeafQueue { queue, codel, limit_pkts } = queue;
    let mut words = vec![queue.name().to_owned()];
    if let Some(flows) = queue.flows() {
        words.push(format!("hosts {}", flows.hosts.name()));
        words.push(format!("flow_quantum {}", flows.quantum_bytes));
        words.push(format!("allowance {}", flows.allowance));
    }
    let times = codel.map(|codel| (time::format(codel.target_ns), time::format(codel.interval_ns)));
    words.extend(times.map(|(target, interval)| format!("codel {target} {interval}")));
    words.extend(limit_pkts.map(|pkts| format!("limit {pkts}")));
    words.join(", ")
}

fn rate(rate: Option<Rate>) -> Option<String> {
    rate.map(|rate| rate.to_string())
}

/// The values of both directions under their names; of a class tree, which has one, under the name without it.
fn each_way(network: &Network, names: [&'static str; 3], values: EachWay<Option<String>>) -> Values {
    let [both, down, up] = names;
    if network.is_class_tree() {
        present([(both, values.down)])
    } else {
        present([(down, values.down), (up, values.up)])
    }
}

fn present<const N: usize>(all: [(&'static str, Option<String>); N]) -> Values {
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: &T) -> Option<String> {
    names.iter().find(|(_, known)| known == value).map(|(name, _)| (*name).to_owned())
}
