//! The state of a tree of classes: its sites and subscribers, as they are counted.

mod values;

pub use values::{LeafClassStatus, LeafCounts, QueueStatus, SiteStatus, SubscriberStatus, TreeStatus};

use super::{ClassStatus, Count, TxQueueStatus, add_drops};
use crate::engine::tc_tree;
use crate::maps::tree::TreeMaps;
use crate::record::{Engine, Record};
use crate::system::clock;
use sluice_abi as abi;
use sluice_error::{Error, Result};
use sluice_policy::network::{Address, EachWay, Group, LeafClass, Network, Node, Way};
use sluice_policy::{ClassId, IpNet, Rate};
use sluice_tables::each_host::HostTable;
use sluice_tables::tree::{NOBODY, Numbers};
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

/// The reason of packets that a hook on arrivals has dropped.
const EARLY: &str = "early";
/// A host of a group is shown so long after its last packet.
const HOST_SHOWN: Duration = Duration::from_secs(60);

/// The parts of a tree's readings that the next reading can use again.
#[derive(Default)]
pub(crate) struct Kept {
    /// The owners of numbers as they were, and the numbers of the network's nodes, which follow from them: a hash of each name is asked for.
    numbers: Option<(Vec<u64>, Arc<Numbers>)>,
    /// The memory of the copy: new memory would be cleared page by page.
    tree: Option<Box<abi::sl_tree>>,
}

impl Kept {
    /// The numbers of the network's nodes, where numbers have these owners.
    fn numbers(&mut self, network: &Network, owners: Vec<u64>) -> Result<Arc<Numbers>> {
        if let Some((_, numbers)) = self.numbers.as_ref().filter(|(known, _)| *known == owners) {
            return Ok(Arc::clone(numbers));
        }
        let numbers = Numbers::of(network, &owners).map_err(|error| Error::system(error.to_string()))?;
        let (_, numbers) = self.numbers.insert((owners, Arc::new(numbers)));
        Ok(Arc::clone(numbers))
    }

    /// Takes back the memory of a reading.
    pub fn put_back(&mut self, snapshot: Snapshot<'_>) {
        self.tree = Some(snapshot.tree);
    }
}

/// The sums of the tree of a tx queue over its leaves. A divided leaf counts what its parts do.
fn tx_queue(tree: &abi::sl_tree) -> TxQueueStatus {
    let mut own = TxQueueStatus::default();
    for leaf in tree.leaf.iter().filter(|leaf| u32::from(leaf.queue) != abi::SL_LEAF_DIVIDED) {
        own.sent.add(Count { pkts: leaf.sent_pkts, bytes: leaf.sent_bytes });
        own.dropped.pkts += leaf.dropped_pkts.iter().map(|pkts| u64::from(*pkts)).sum::<u64>();
        own.backlog.add(Count { pkts: leaf.pkts.into(), bytes: leaf.backlog_bytes.into() });
    }
    own
}

/// A tree at one moment.
pub(crate) struct Snapshot<'a> {
    network: &'a Network,
    /// The addresses of each subscriber.
    addresses: &'a [Arc<[Address]>],
    way: Way,
    numbers: Arc<Numbers>,
    tree: Box<abi::sl_tree>,
    /// The sums of each of several trees.
    pub tx_queues: Vec<TxQueueStatus>,
    hosts: Vec<Host>,
    /// Whether a qdisc or a process of ours runs the tree: then buckets are filled, and drops have reasons.
    runs: bool,
    now_ns: u64,
}

impl<'a> Snapshot<'a> {
    /// Reads the tree of a record, which is that of this network. `kept`: of the readings of the same network before.
    pub fn take(
        maps: &TreeMaps,
        (network, addresses): (&'a Network, &'a [Arc<[Address]>]),
        way: Way,
        record: &Record,
        kept: &mut Kept,
    ) -> Result<Snapshot<'a>> {
        let numbers = kept.numbers(network, maps.owners())?;
        let (mut tree, runs) = (kept.tree.take().unwrap_or_else(abi::boxed_zeroed), record.engine != Engine::Tc);
        let mut tx_queues = Vec::new();
        maps.copy_into(&mut tree, |own| tx_queues.push(tx_queue(own)));
        (0..).zip(&mut tx_queues).for_each(|(number, own): (u16, &mut TxQueueStatus)| own.queue = number);
        // The only tree is no tx queue's.
        tx_queues.truncate(if tx_queues.len() > 1 { tx_queues.len() } else { 0 });
        if !runs {
            tc_tree::add_counts(&mut tree, &record.interface)?;
        }
        let now_ns = clock::monotonic().as_nanos() as u64;
        let hosts = hosts(maps, network, &numbers, &tree, now_ns);
        Ok(Snapshot { network, addresses, way, numbers, tree, tx_queues, hosts, runs, now_ns })
    }

    /// Adds each leaf to the class whose packets it holds, and returns the fill level of the link's bucket. A leaf without classes counts for the
    /// default class, and in a class tree for none.
    pub fn add_to(&self, classes: &mut [ClassStatus], default: ClassId) -> Option<f64> {
        let mut inside: Vec<Option<ClassId>> = vec![None; self.tree.leaf.len()];
        let parts = self.numbers.classes.iter().flatten().zip(self.network.leaf_classes().map(|(_, class)| class.id));
        parts.for_each(|(number, id)| inside[*number as usize] = Some(id));
        for (leaf, number) in self.network.leaves.iter().zip(&self.numbers.leaves) {
            inside[*number as usize] = leaf.class.or(inside[*number as usize]);
        }
        let reasons: Vec<abi::DropReason> = abi::drop_reasons().collect();
        // A divided leaf counts what its classes do.
        for (id, leaf) in inside.into_iter().zip(&self.tree.leaf) {
            if u32::from(leaf.queue) == abi::SL_LEAF_DIVIDED {
                continue;
            }
            let of_none = (!self.is_class_tree()).then_some(default);
            let Some(id) = id.or(of_none) else { continue };
            let Some(class) = classes.iter_mut().find(|class| class.id == id.0) else { continue };
            class.sent.add(Count { pkts: leaf.sent_pkts, bytes: leaf.sent_bytes });
            class.backlog.add(Count { pkts: leaf.pkts.into(), bytes: leaf.backlog_bytes.into() });
            class.marked.pkts += u64::from(leaf.marked_pkts);
            if leaf.early_pkts > 0 {
                class.dropped.add_pkts(leaf.early_pkts);
                add_drops(class, EARLY, leaf.early_pkts);
            }
            for reason in &reasons {
                let pkts = u64::from(leaf.dropped_pkts[reason.index as usize]);
                if pkts > 0 {
                    class.dropped.add_pkts(pkts);
                    if self.runs {
                        add_drops(class, reason.name, pkts);
                    }
                }
            }
        }
        for (leaf, number) in self.network.leaves.iter().zip(&self.numbers.leaves) {
            let own = leaf.class.and_then(|id| classes.iter_mut().find(|class| class.id == id.0));
            let Some(class) = own else { continue };
            let limits = self.queue(*number, &leaf.node.rate, &leaf.node.ceil);
            (class.rate_bps, class.ceil_bps, class.ceil_fill) = (limits.rate_bps, limits.ceil_bps, limits.ceil_fill);
        }
        self.fill(abi::SL_FIRST_INNER)
    }

    /// Whether it is a class tree.
    pub fn is_class_tree(&self) -> bool {
        self.network.is_class_tree()
    }

    /// The status of the tree, whose hook on arrivals is at these interfaces.
    pub fn status(&self, early_drop_at: Vec<String>) -> TreeStatus {
        let network = self.network;
        let mut counts = vec![(0, LeafCounts::default()); network.inner.len()];
        let is_there: HashSet<usize> = self.hosts.iter().map(|host| host.leaf).collect();
        let subscribers = network.subscribers().len();
        for (place_of_leaf, (leaf, number)) in network.leaves.iter().zip(&self.numbers.leaves).enumerate() {
            let own = self.counts(*number);
            let mut at = place(leaf.node.parent);
            let counts_as_one = place_of_leaf < subscribers || is_there.contains(&place_of_leaf);
            loop {
                counts[at].0 += usize::from(counts_as_one);
                counts[at].1.add(&own);
                if at == 0 {
                    break;
                }
                at = place(network.inner[at].parent);
            }
        }
        let is_group: HashSet<usize> = network.groups.iter().map(|group| group.inner).collect();
        let sites = below_each_other(network).into_iter().map(|(at, depth)| {
            let (node, (subscribers, counts)) = (&network.inner[at], counts[at]);
            SiteStatus {
                name: node.name.clone(),
                parent: self.site(node),
                depth,
                is_group: is_group.contains(&at),
                subscribers,
                rate_bps: node.rate.of(self.way).map(|rate| rate.0),
                ceil_bps: node.ceil.of(self.way).map(|rate| rate.0),
                ceil_fill: self.fill(self.numbers.inner[at]),
                counts,
            }
        });
        let sites = sites.collect();
        TreeStatus {
            way: self.way,
            is_class_tree: network.is_class_tree(),
            early_drop_at,
            sites,
            all: self.all().collect(),
            nobody: self.counts(NOBODY),
        }
    }

    /// The status of each subscriber that is wanted, in the order of the table, then that of hosts.
    pub fn subscribers(&self, wanted: impl Fn(&SubscriberStatus) -> bool) -> Vec<SubscriberStatus> {
        self.all().filter(wanted).collect()
    }

    /// All subscribers in the order of the table, then the hosts of groups that are there.
    fn all(&self) -> impl Iterator<Item = SubscriberStatus> + '_ {
        let subscribers = (0..self.network.subscribers().len()).map(|leaf| self.subscriber(leaf));
        let hosts = self.hosts.iter().map(|host| self.host(host));
        subscribers.chain(hosts).chain(self.network.groups.iter().filter_map(|group| self.others(group)))
    }

    /// A host of a group, as a subscriber. The key has the name of the group, since an address may be of two, one after the other.
    fn host(&self, host: &Host) -> SubscriberStatus {
        let own = self.subscriber(host.leaf);
        let name = match host.prefix {
            IpNet::V4(own) => own.addr().to_string(),
            IpNet::V6(own) if own.prefix_len() == 128 => own.addr().to_string(),
            IpNet::V6(own) => own.to_string(),
        };
        let (now, then) = (own.queue.counts, &host.before);
        let sent = Count {
            pkts: now.sent.pkts.saturating_sub(then.sent.pkts),
            bytes: now.sent.bytes.saturating_sub(then.sent.bytes),
        };
        // The place of a host has 32 bits for them.
        let dropped_pkts = u64::from((now.dropped_pkts as u32).wrapping_sub(then.dropped_pkts as u32));
        SubscriberStatus {
            id: format!("{} {name}", own.site.as_deref().unwrap_or_default()),
            name,
            addresses: Arc::new([host.prefix.into()]),
            queue: QueueStatus {
                counts: LeafCounts { sent, dropped_pkts, backlog: now.backlog },
                marked_pkts: own.queue.marked_pkts.saturating_sub(host.marked_before_pkts),
                ..own.queue
            },
            ..own
        }
    }

    /// The hosts of a group that have no leaf of their own, as a subscriber. None: there were none.
    fn others(&self, group: &Group) -> Option<SubscriberStatus> {
        let own = self.subscriber(group.shared);
        let name = "others";
        let id = format!("{} {name}", own.id);
        (own.queue.counts != LeafCounts::default()).then(|| SubscriberStatus { id, name: name.to_owned(), ..own })
    }

    fn subscriber(&self, leaf: usize) -> SubscriberStatus {
        let (own, number) = (&self.network.leaves[leaf], self.numbers.leaves[leaf]);
        SubscriberStatus {
            id: own.node.id.clone(),
            name: own.node.name.clone(),
            site: self.site(&own.node),
            plan: own.plan.clone(),
            addresses: Arc::clone(&self.addresses[leaf]),
            queue: self.queue(number, &own.node.rate, &own.node.ceil),
            classes: self.inside(leaf),
        }
    }

    /// The classes inside a leaf.
    fn inside(&self, leaf: usize) -> Vec<LeafClassStatus> {
        let classes = &self.network.leaves[leaf].classes.classes;
        let numbers = &self.numbers.classes[leaf];
        let of = |(class, number): (&LeafClass, &u32)| LeafClassStatus {
            id: class.id.0,
            name: class.name.clone(),
            queue: self.queue(*number, &class.rate, &class.ceil),
        };
        classes.iter().zip(numbers).map(of).collect()
    }

    /// The limits of a leaf, and what it has counted.
    fn queue(&self, number: u32, rate: &EachWay<Option<Rate>>, ceil: &EachWay<Option<Rate>>) -> QueueStatus {
        let counted = &self.tree.leaf[number as usize];
        QueueStatus {
            rate_bps: rate.of(self.way).map(|rate| rate.0),
            ceil_bps: ceil.of(self.way).map(|rate| rate.0),
            ceil_fill: self.fill(number),
            counts: self.counts(number),
            marked_pkts: counted.marked_pkts.into(),
            wait_ms: (self.runs && counted.sent_pkts > 0).then(|| f64::from(counted.wait_ns) / 1e6),
        }
    }

    /// The name of the site above a node. None: the link.
    fn site(&self, node: &Node) -> Option<String> {
        let above = place(node.parent);
        (above > 0).then(|| self.network.inner[above].name.clone())
    }

    fn counts(&self, number: u32) -> LeafCounts {
        let leaf = &self.tree.leaf[number as usize];
        LeafCounts {
            sent: Count { pkts: leaf.sent_pkts, bytes: leaf.sent_bytes },
            dropped_pkts: leaf.dropped_pkts.iter().copied().map(u64::from).sum::<u64>() + leaf.early_pkts,
            backlog: Count { pkts: leaf.pkts.into(), bytes: leaf.backlog_bytes.into() },
        }
    }

    /// Fill level of a node's ceiling: 1 is full, 0 is empty or in debt. None: it has none.
    fn fill(&self, number: u32) -> Option<f64> {
        let bucket = self.tree.node[number as usize].bucket[abi::SL_TURN_SHARED as usize];
        let owed_ns = (bucket.tat_64ths >> 6).saturating_sub(self.now_ns);
        (self.runs && bucket.cost > 0).then(|| (1.0 - owed_ns as f64 / f64::from(bucket.burst_ns.max(1))).max(0.0))
    }
}

/// A host of a group that is there.
struct Host {
    /// Its address, or its prefix if that is one host.
    prefix: IpNet,
    /// The index of its leaf in the network.
    leaf: usize,
    /// The counters of the leaf when the host came.
    before: LeafCounts,
    /// Packets that the leaf had marked then.
    marked_before_pkts: u64,
}

/// The hosts of all groups that have packets, or had some not long ago.
fn hosts(maps: &TreeMaps, network: &Network, numbers: &Numbers, tree: &abi::sl_tree, now_ns: u64) -> Vec<Host> {
    if network.groups.is_empty() {
        return Vec::new();
    }
    let table = maps.copy_of_hosts();
    let present = HostTable::read(&table);
    let mut found = Vec::new();
    for group in &network.groups {
        let Some((_, own)) = present.present().find(|(_, own)| own.shared == numbers.leaves[group.shared]) else {
            continue;
        };
        let leaves: HashMap<u32, usize> =
            numbers.leaves[group.hosts.clone()].iter().copied().zip(group.hosts.clone()).collect();
        for place in &table.place[own.first as usize..own.first as usize + own.leaves.len()] {
            let since_ns = now_ns.saturating_sub(place.seen_ns);
            let has_packets = tree.leaf[usize::from(place.leaf)].pkts > 0;
            let is_there = place.seen_ns > 0 && (has_packets || since_ns < HOST_SHOWN.as_nanos() as u64);
            let Some(leaf) = leaves.get(&place.leaf.into()).filter(|_| is_there) else { continue };
            let prefix = host_prefix(place, group.ipv6_length);
            // One from before the policy was changed.
            if network.leaf_of(prefix.addr()) != Some(group.shared) {
                continue;
            }
            found.push(Host {
                prefix,
                marked_before_pkts: place.marked_pkts.into(),
                leaf: *leaf,
                before: LeafCounts {
                    sent: Count { pkts: place.sent_pkts, bytes: place.sent_bytes },
                    dropped_pkts: place.dropped_pkts.into(),
                    backlog: Count::default(),
                },
            });
        }
    }
    found
}

/// The inner nodes but the link, each behind the one above it with all that is below that, and how many sites are above it.
fn below_each_other(network: &Network) -> Vec<(usize, usize)> {
    let mut below = vec![Vec::new(); network.inner.len()];
    for (at, node) in network.inner.iter().enumerate().skip(1) {
        below[place(node.parent)].push(at);
    }
    let mut order = Vec::with_capacity(network.inner.len());
    let mut left: Vec<(usize, usize)> = below[0].iter().rev().map(|at| (*at, 0)).collect();
    while let Some((at, depth)) = left.pop() {
        order.push((at, depth));
        left.extend(below[at].iter().rev().map(|child| (*child, depth + 1)));
    }
    order
}

/// The prefix of a host: an address, or what is one host of IPv6.
fn host_prefix(place: &abi::sl_host_place, ipv6_length: u8) -> IpNet {
    let address = Ipv6Addr::from_bits(u128::from(place.upper) << 64 | u128::from(place.lower)).to_canonical();
    let whole = IpNet::from(address);
    match address {
        IpAddr::V6(_) => IpNet::new(address, ipv6_length.min(128)).unwrap_or(whole),
        IpAddr::V4(_) => whole,
    }
}

/// The index of an inner node.
fn place(number: u16) -> usize {
    usize::from(number) - abi::SL_FIRST_INNER as usize
}
