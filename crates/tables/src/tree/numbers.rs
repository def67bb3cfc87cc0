//! The numbers of a network's nodes, each of which a subscriber, a class inside one, a host or a site owns.

use sha2::{Digest, Sha256};
use sluice_abi as abi;
use sluice_policy::network::{Address, LeafClasses, Network, Node, NodeScheduler};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// The numbers of nodes: leaves, then inner nodes.
pub const NODES: usize = (abi::SL_FIRST_INNER + abi::SL_INNERS) as usize;
/// The leaf of packets that are nobody's.
pub const NOBODY: u32 = abi::SL_FIRST_INNER - 1;
/// The link.
pub const LINK: u32 = abi::SL_FIRST_INNER;

/// A tree that the core cannot hold, or not reach from the one that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeError {
    /// No number is free for so many more subscribers: those who have left keep theirs while they have packets.
    NoLeaves(usize),
    /// No number is free for so many more sites.
    NoInners(usize),
    /// No number is free for so many more kinds of queues, beside those that are in use until the change is done.
    NoQueues(usize),
    /// No place is free for the hosts of a group with so many, beside those of groups that go.
    NoHostPlaces(usize),
    /// These two names have the same hash.
    SameHash(String, String),
}

impl fmt::Display for TreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TreeError::NoLeaves(more) => {
                write!(
                    f,
                    "the tree is full: no class is free for {more} of the new subscribers and hosts beside those that are there"
                )
            }
            TreeError::NoInners(more) => {
                write!(
                    f,
                    "the tree is full: no class is free for {more} of the new sites; removed ones keep theirs until it is empty"
                )
            }
            TreeError::NoQueues(more) => {
                write!(
                    f,
                    "subscribers need {more} more kinds of queues than the tree has place for, which has {}",
                    abi::SL_LEAF_QUEUES
                )
            }
            TreeError::NoHostPlaces(hosts) => {
                write!(f, "no gap between the places of groups that stay has room for a group of {hosts} hosts")
            }
            TreeError::SameHash(one, other) => write!(f, "the names \"{one}\" and \"{other}\" have the same hash"),
        }
    }
}

impl std::error::Error for TreeError {}

/// The numbers of a network's nodes.
#[derive(Debug, Clone)]
pub struct Numbers {
    /// The number of each leaf of the network.
    pub leaves: Vec<u32>,
    /// The numbers of the classes inside each leaf, which are leaves below it.
    pub classes: Vec<Vec<u32>>,
    /// The number of each inner node of the network; that of the link is first.
    pub inner: Vec<u32>,
    /// The owner of each number, those of nodes that the network lacks included.
    pub owners: Vec<u64>,
}

/// The hash of a subscriber's key: the owner of its leaf, if it has no classes.
pub fn owner_of_subscriber(key: &str) -> u64 {
    owner("subscriber", 0, key)
}

/// The words for a scheduler in kinds. They stay what they are, since maps of running interfaces have the hashes.
fn served(scheduler: NodeScheduler) -> String {
    match scheduler {
        NodeScheduler::ElasticRoundRobin => "by weight".to_owned(),
        NodeScheduler::StrictPriority => "by priority".to_owned(),
        NodeScheduler::Pifo(rank) => format!("by pifo {rank}"),
        other => format!("by {}", other.name()),
    }
}

/// The kind in the hash of a leaf's owner. Leaves with and without classes, and leaves with different schedulers, are of different kinds, since a
/// leaf changes between them only while it is empty.
fn kind_of_leaf(kind: &str, classes: &LeafClasses) -> String {
    if classes.classes.is_empty() { kind.to_owned() } else { format!("{kind} {}", served(classes.scheduler)) }
}

/// The kind in the hash of an inner node's owner. It tells the scheduler: the core can change that only while no child has packets to send, so a node
/// with another one is a new node.
fn kind_of_site(site: &Node) -> String {
    let is_default = site.scheduler == NodeScheduler::default();
    if is_default { "site".to_owned() } else { format!("site {}", served(site.scheduler)) }
}

/// The hash of a node's name: 64 bits of SHA-256, never 0. A site of another depth is another node, since a node with children cannot move to
/// another level.
fn owner(kind: &str, depth: usize, name: &str) -> u64 {
    let hash = Sha256::new().chain_update(format!("{kind} {depth} {name}")).finalize();
    u64::from_ne_bytes(hash[..8].try_into().expect("eight bytes")).max(1)
}

/// The owners of a network's nodes: of its leaves and the classes inside them, and of its inner nodes but the link.
struct Owners {
    leaves: Vec<u64>,
    classes: Vec<u64>,
    sites: Vec<u64>,
}

fn owners(network: &Network) -> Owners {
    let depths = depths(network);
    let subscribers = network.subscribers().len();
    let kind = |place: usize| if place < subscribers { "subscriber" } else { "host" };
    let kinds: Vec<String> =
        network.leaves.iter().enumerate().map(|(place, leaf)| kind_of_leaf(kind(place), &leaf.classes)).collect();
    let leaves = network.leaves.iter().zip(&kinds);
    let classes = network.leaf_classes().map(|(leaf, class)| {
        let kind = format!("class {} of {}", class.id, kinds[leaf]);
        owner(&kind, 0, &network.leaves[leaf].node.id)
    });
    let sites = network.sites().iter().zip(&depths[1..]);
    Owners {
        leaves: leaves.map(|(leaf, kind)| owner(kind, 0, &leaf.node.id)).collect(),
        classes: classes.collect(),
        sites: sites.map(|(site, depth)| owner(&kind_of_site(site), *depth, &site.id)).collect(),
    }
}

/// How deep each inner node is below the link.
fn depths(network: &Network) -> Vec<usize> {
    let mut depths = vec![0; network.inner.len()];
    for (place, node) in network.inner.iter().enumerate().skip(1) {
        depths[place] = depths[usize::from(node.parent) - LINK as usize] + 1;
    }
    depths
}

/// The numbers of all classes, which [`Network::leaf_classes`] lists, by their leaves.
fn by_leaf(network: &Network, numbers: &[u32]) -> Vec<Vec<u32>> {
    let mut rest = numbers.iter().copied();
    network.leaves.iter().map(|leaf| rest.by_ref().take(leaf.classes.classes.len()).collect()).collect()
}

impl Numbers {
    /// Numbers for a network: those that its nodes have, and free ones for the others. `owners`: of each number, 0: it is free.
    pub fn of(network: &Network, owners: &[u64]) -> Result<Numbers, TreeError> {
        let mut all = owners.to_vec();
        all.resize(NODES, 0);
        let wanted = self::owners(network);
        let has: HashMap<u64, u32> = all
            .iter()
            .enumerate()
            .filter(|(_, owner)| **owner != 0)
            .map(|(number, owner)| (*owner, number as u32))
            .collect();
        let mut seen = HashMap::new();
        let of_classes = network.leaf_classes().map(|(leaf, _)| &network.leaves[leaf].node);
        let nodes = network.leaves.iter().map(|leaf| &leaf.node).chain(of_classes).chain(network.sites());
        let all_wanted = wanted.leaves.iter().chain(&wanted.classes).chain(&wanted.sites);
        for (owner, name) in all_wanted.zip(nodes.map(|node| &node.id)) {
            if let Some(other) = seen.insert(*owner, name) {
                return Err(TreeError::SameHash(other.clone(), name.clone()));
            }
        }
        let mut place = |wanted: &[u64], range: std::ops::Range<u32>| -> Result<Vec<u32>, usize> {
            let mut free = range.filter(|&number| owners.get(number as usize).is_none_or(|owner| *owner == 0));
            let mut lacking = 0;
            let numbers: Vec<u32> = wanted
                .iter()
                .map(|owner| {
                    has.get(owner).copied().or_else(|| free.next()).unwrap_or_else(|| {
                        lacking += 1;
                        NOBODY
                    })
                })
                .collect();
            if lacking > 0 {
                return Err(lacking);
            }
            numbers.iter().zip(wanted).for_each(|(number, owner)| all[*number as usize] = *owner);
            Ok(numbers)
        };
        let of_leaves: Vec<u64> = wanted.leaves.iter().chain(&wanted.classes).copied().collect();
        let mut leaves = place(&of_leaves, 0..NOBODY).map_err(TreeError::NoLeaves)?;
        let classes = by_leaf(network, &leaves.split_off(wanted.leaves.len()));
        let sites = place(&wanted.sites, LINK + 1..NODES as u32).map_err(TreeError::NoInners)?;
        Ok(Numbers { leaves, classes, inner: std::iter::once(LINK).chain(sites).collect(), owners: all })
    }

    /// The numbers of a part of a network whose nodes all have one. None: one has none.
    pub fn of_part(network: &Network, owners: &[u64]) -> Option<Numbers> {
        let wanted = self::owners(network);
        let all_wanted = wanted.leaves.iter().chain(&wanted.classes).chain(&wanted.sites);
        let mut found: HashMap<u64, Option<u32>> = all_wanted.map(|own| (*own, None)).collect();
        for (number, owner) in (0..).zip(owners).filter(|(_, owner)| **owner != 0) {
            if let Some(found) = found.get_mut(owner) {
                *found = Some(number);
            }
        }
        let of = |all: &[u64]| all.iter().map(|own| found[own]).collect::<Option<Vec<u32>>>();
        let inner = std::iter::once(LINK).chain(of(&wanted.sites)?).collect();
        let (leaves, classes) = (of(&wanted.leaves)?, by_leaf(network, &of(&wanted.classes)?));
        Some(Numbers { leaves, classes, inner, owners: owners.to_vec() })
    }

    /// The numbers of all leaves that may hold packets, and of the divided ones.
    pub fn all_leaves(&self) -> Vec<u32> {
        self.leaves.iter().chain(self.classes.iter().flatten()).copied().collect()
    }

    /// Numbers that have an owner which the network lacks.
    pub fn gone(&self) -> Vec<u32> {
        let kept: HashSet<u32> = self.all_leaves().into_iter().chain(self.inner.iter().copied()).collect();
        let owned = self.owners.iter().enumerate().filter(|(_, owner)| **owner != 0);
        owned.map(|(number, _)| number as u32).filter(|number| !kept.contains(number)).collect()
    }

    /// The addresses of the network with the numbers of their leaves.
    pub fn addresses(&self, network: &Network) -> Vec<(Address, u16)> {
        network.all_addresses().map(|(address, leaf)| (address, self.leaves[leaf] as u16)).collect()
    }
}
