//! The subscriber of a packet, and the nodes of the tree that it passes.

use super::Fields;
use crate::status::{SubscriberStatus, TreeStatus};
use serde::Serialize;
use sluice_policy::ClassId;
use sluice_policy::network::{Address, LeafClass, Network, Node, NodeScheduler, Way};

/// The subscriber of a packet.
#[derive(Debug, Clone, Serialize)]
pub struct SubscriberFound {
    /// Direction as the subscriber sees it.
    pub way: Way,
    /// Whether this is a class tree, and the key that of a leaf class.
    pub is_class: bool,
    /// Its key. None: mark, VLAN and address are nobody's.
    pub id: Option<String>,
    /// The mark or the VLAN by which it was found. None: by the address.
    pub by: Option<Address>,
    /// Its plan.
    pub plan: Option<String>,
    /// The class inside the subscriber. None: it has none.
    pub class: Option<String>,
    /// Whether the subscriber lacks the class that the rules chose. The packet is then queued in `class`, or in the subscriber's one queue if that is
    /// `None`.
    pub falls_back: bool,
    /// Packets in the queue of the packet. None: nothing tells.
    pub backlog_pkts: Option<u64>,
    /// The nodes from the class, or the subscriber, to the link.
    pub path: Vec<NodeFound>,
}

/// A node that a packet passes.
#[derive(Debug, Clone, Serialize)]
pub struct NodeFound {
    /// Its name.
    pub name: String,
    /// Guarantee, bits per second.
    pub rate_bps: Option<u64>,
    /// Ceiling, bits per second.
    pub ceil_bps: Option<u64>,
    /// Part of the ceiling's burst that is left now, 0 to 100: at 0 what passes here waits. None: it has no ceiling, or nothing tells.
    pub full_percent: Option<f64>,
    /// Its weight beside others below the same parent, or its quantum in bytes, where the parent's scheduler looks at one.
    pub weight: u32,
    /// Its share below its parent in words, by what the scheduler there looks at: `priority 0`, `weight 3, quantum 1514`. None: it is the link.
    pub share: Option<String>,
}

impl SubscriberFound {
    /// The queue of the packet, in words.
    pub(super) fn queue(&self) -> String {
        match (&self.id, &self.class) {
            (Some(id), _) if self.is_class => format!("queued in class {id}"),
            (None, _) if self.is_class => "queued with all unclassified packets".to_owned(),
            (Some(id), Some(class)) => format!("queued in class {class} of {id}"),
            (Some(id), None) => format!("queued in the queue of {id}"),
            (None, _) => "queued with all packets that are nobody's".to_owned(),
        }
    }
}

/// The buckets of a tree that runs.
#[derive(Clone, Copy)]
pub(super) struct Fills<'a> {
    pub tree: &'a TreeStatus,
    /// That of the link, 0 to 1.
    pub link: Option<f64>,
}

/// The subscriber of a packet of this class. `way`: the direction of the departures, if it is known; else the one in which an address is a subscriber's.
pub(super) fn of(
    network: &Network,
    way: Option<Way>,
    class: Option<ClassId>,
    fields: &Fields,
    fills: Option<Fills<'_>>,
) -> SubscriberFound {
    let address = |way: Way| if way == Way::Down { fields.dst } else { fields.src };
    let tried = way.map_or(vec![Way::Down, Way::Up], |way| vec![way]);
    let found = tried.iter().find_map(|way| Some((*way, network.leaf_of(address(*way)?)?)));
    let (way, leaf) = found.map_or((tried[0], None), |(way, leaf)| (way, Some(leaf)));
    let marked = network.marked(fields.mark, fields.vlan);
    let mut leaf = marked.map(|(_, leaf)| leaf).or(leaf).map(|leaf| &network.leaves[leaf]);
    if network.is_class_tree() {
        leaf = class.and_then(|class| network.leaves.iter().find(|leaf| leaf.class == Some(class)));
    }
    let inside = leaf.and_then(|leaf| leaf.classes.classes.get(leaf.classes.of(class)));
    // A host of a group has a leaf of its own, which the status knows by its address.
    let own = fills.and_then(|fills| {
        let (leaf, address) = (leaf?, address(way));
        let has = |one: &SubscriberStatus, address| one.addresses.iter().any(|own| own.contains(address));
        let is_own = |one: &&SubscriberStatus| address.is_some_and(|address| has(one, address));
        fills.tree.all.iter().find(|one| one.id == leaf.node.id).or_else(|| fills.tree.all.iter().find(is_own))
    });
    let mut path = Vec::new();
    let mut counts = own.map(|own| own.queue.counts);
    if leaf.is_none() {
        counts = fills.map(|fills| fills.tree.nobody);
    }
    if let Some(class) = inside {
        let running = own.and_then(|own| own.classes.iter().find(|one| one.id == class.id.0));
        counts = running.map(|one| one.queue.counts);
        let scheduler = leaf.map(|leaf| leaf.classes.scheduler).unwrap_or_default();
        path.push(class_node(class, scheduler, way, running.and_then(|one| one.queue.ceil_fill)));
    }
    let mut parent = network.link().number;
    if let Some(leaf) = leaf {
        path.push(node(network, &leaf.node, way, own.and_then(|own| own.queue.ceil_fill)));
        parent = leaf.node.parent;
    }
    while let Some(above) = network.node(parent) {
        let is_link = above.number == above.parent;
        let fill = fills.and_then(|fills| match is_link {
            true => fills.link,
            false => fills.tree.sites.iter().find(|site| site.name == above.name)?.ceil_fill,
        });
        path.push(node(network, above, way, fill));
        if is_link {
            break;
        }
        parent = above.parent;
    }
    SubscriberFound {
        way,
        is_class: network.is_class_tree(),
        id: leaf.map(|leaf| leaf.node.id.clone()),
        by: marked.map(|(by, _)| by),
        plan: leaf.and_then(|leaf| leaf.plan.clone()),
        class: inside.map(|class| class.name.clone()),
        falls_back: leaf.is_some_and(|leaf| leaf.class.is_none())
            && class.is_some()
            && !network.classes.is_empty()
            && inside.map(|inside| inside.id) != class,
        backlog_pkts: counts.map(|counts| counts.backlog.pkts),
        path,
    }
}

fn class_node(class: &LeafClass, scheduler: NodeScheduler, way: Way, fill: Option<f64>) -> NodeFound {
    NodeFound {
        name: format!("class {} {}", class.id, class.name),
        rate_bps: class.rate.of(way).map(|rate| rate.0),
        ceil_bps: class.ceil.of(way).map(|rate| rate.0),
        full_percent: fill.map(|part| part * 100.0),
        weight: class.weight,
        share: Some(scheduler.share(class.weight, class.priority, class.order)),
    }
}

fn node(network: &Network, node: &Node, way: Way, fill: Option<f64>) -> NodeFound {
    let is_link = node.number == node.parent;
    NodeFound {
        name: node.name.clone(),
        rate_bps: node.rate.of(way).map(|rate| rate.0),
        ceil_bps: node.ceil.of(way).map(|rate| rate.0),
        full_percent: fill.map(|part| part * 100.0),
        weight: node.weight,
        share: (!is_link).then(|| network.scheduler_above(node).share(node.weight, node.priority, node.order)),
    }
}
