//! A network as a policy with classes: what every command takes.

use super::NetworkPolicy;
use crate::ceiling::Limits;
use crate::class_id::ClassId;
use crate::forward::DEFAULT_CONNECTIONS;
use crate::link::Link;
use crate::policy::{Class, FORMAT_VERSION, Malformed, Mode, Policy};
use crate::rank::Rank;
use crate::scheduler::Scheduler;

impl From<NetworkPolicy> for Policy {
    /// The classes are those inside the subscribers; without any, all packets are of one class. The tree of the network queues all of them.
    fn from(network: NetworkPolicy) -> Policy {
        let own = &network.link;
        let choice = &network.classification;
        let urgency = |id: ClassId| {
            let leaf = network.class_tree.iter().flat_map(|tree| &tree.leaves).find(|leaf| leaf.id == id);
            leaf.map_or(0, |leaf| leaf.priority)
        };
        let named = |(id, name)| Class { name, priority: urgency(id), ..Class::new(id) };
        let mut classes: Vec<Class> = network.classes().into_iter().map(named).collect();
        if classes.is_empty() {
            classes.push(Class { name: "subscribers".to_owned(), ..Class::new(ClassId(0)) });
        }
        Policy {
            version: FORMAT_VERSION,
            name: network.name.clone(),
            description: network.description.clone(),
            scheduler: Scheduler::STRICT_PRIORITY,
            rank: Rank::default(),
            mode: Mode::default(),
            link: Link { framing: own.framing, burst: own.burst, split_gso: own.split_gso, ..Link::default() },
            arrivals_of: Vec::new(),
            limits: Limits::default(),
            default_class: choice.default_class,
            flows: 0,
            connections: DEFAULT_CONNECTIONS,
            malformed: Malformed::default(),
            address_sets: choice.address_sets.clone(),
            port_sets: choice.port_sets.clone(),
            classes,
            rules: choice.rules.clone(),
            forwards: Vec::new(),
            origin: network.origin.clone(),
            network: Some(Box::new(network)),
        }
    }
}
