//! A network as a policy with one class: what every command takes.

use super::NetworkPolicy;
use crate::ceiling::Limits;
use crate::class_id::ClassId;
use crate::forward::DEFAULT_CONNECTIONS;
use crate::link::Link;
use crate::policy::{Class, FORMAT_VERSION, Malformed, Mode, Policy};
use crate::rank::Rank;
use crate::scheduler::Scheduler;
use std::collections::BTreeMap;

impl From<NetworkPolicy> for Policy {
    /// All packets are of one class, which the tree of the network queues.
    fn from(network: NetworkPolicy) -> Policy {
        let own = &network.link;
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
            default_class: None,
            flows: 0,
            connections: DEFAULT_CONNECTIONS,
            malformed: Malformed::default(),
            address_sets: BTreeMap::new(),
            port_sets: BTreeMap::new(),
            classes: vec![Class { name: "subscribers".to_owned(), ..Class::new(ClassId(0)) }],
            rules: Vec::new(),
            forwards: Vec::new(),
            origin: network.origin.clone(),
            network: Some(Box::new(network)),
        }
    }
}
