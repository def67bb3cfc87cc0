//! The subscriber of a packet, and the nodes of the tree that it passes.

use super::Fields;
use serde::Serialize;
use sluice_policy::ClassId;
use sluice_policy::network::{LeafClass, Network, Node, Way};

/// The subscriber of a packet.
#[derive(Debug, Clone, Serialize)]
pub struct SubscriberFound {
    /// Direction as the subscriber sees it.
    pub way: Way,
    /// Its key. None: the address is nobody's.
    pub id: Option<String>,
    /// Its plan.
    pub plan: Option<String>,
    /// The class inside the subscriber. None: it has none.
    pub class: Option<String>,
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
    /// Share beside others below the same parent.
    pub weight: u32,
}

/// The subscriber of a packet of this class. `way`: the direction of the departures, if it is known; else the one in which an address is a subscriber's.
pub(super) fn of(network: &Network, way: Option<Way>, class: Option<ClassId>, fields: &Fields) -> SubscriberFound {
    let leaf = |way: Way| {
        let address = if way == Way::Down { fields.dst } else { fields.src };
        network.leaf(address?)
    };
    let tried = way.map_or(vec![Way::Down, Way::Up], |way| vec![way]);
    let found = tried.iter().find_map(|way| Some((*way, leaf(*way)?)));
    let (way, leaf) = found.map_or((tried[0], None), |(way, leaf)| (way, Some(leaf)));
    let inside = leaf.and_then(|leaf| leaf.classes.classes.get(leaf.classes.of(class)));
    let mut path: Vec<NodeFound> = inside.map(|class| class_node(class, way)).into_iter().collect();
    let mut parent = network.link().number;
    if let Some(leaf) = leaf {
        path.push(node(&leaf.node, way));
        parent = leaf.node.parent;
    }
    while let Some(above) = network.node(parent) {
        path.push(node(above, way));
        if above.number == above.parent {
            break;
        }
        parent = above.parent;
    }
    SubscriberFound {
        way,
        id: leaf.map(|leaf| leaf.node.id.clone()),
        plan: leaf.and_then(|leaf| leaf.plan.clone()),
        class: inside.map(|class| class.name.clone()),
        path,
    }
}

fn class_node(class: &LeafClass, way: Way) -> NodeFound {
    NodeFound {
        name: format!("class {} {}", class.id, class.name),
        rate_bps: class.rate.of(way).map(|rate| rate.0),
        ceil_bps: class.ceil.of(way).map(|rate| rate.0),
        weight: class.weight,
    }
}

fn node(node: &Node, way: Way) -> NodeFound {
    NodeFound {
        name: node.name.clone(),
        rate_bps: node.rate.of(way).map(|rate| rate.0),
        ceil_bps: node.ceil.of(way).map(|rate| rate.0),
        weight: node.weight,
    }
}
