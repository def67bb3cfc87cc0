//! The tree of a network: from subscribers and sites to numbered nodes, and the changes that lead from one tree to another while packets flow.
//!
//! A node keeps its number as long as its subscriber or site is there, so its queue, its counters and its buckets' debts stay. The
//! owner of each number is kept beside the tree, as a hash of its name (`numbers.rs`): a process needs nothing but the maps to change a tree that another made.

mod numbers;

pub use numbers::{LINK, NOBODY, NODES, Numbers, TreeError, owner_of_subscriber};

use crate::queues::{cells, hosts};
use sluice_abi as abi;
use sluice_core::hierarchy::{Bucket, Discipline, Node, Tree};
pub use sluice_core::shared_tree::part;
use sluice_policy::network::{LeafClass, LeafQueue, NODE_RATES, Network, NodeScheduler, Order, Way};
use sluice_policy::{Bytes, FRAME_BYTES, LATENCY_BUDGETS_NS, Rate};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The most packets of a leaf.
pub const MOST_PKTS: u32 = 65_535;
/// Burst of a shaped link where the policy names none, as that of a link with classes.
const LINK_BURST_NS: u64 = 250_000;
/// The guarantee of unclassified packets in a class tree, at most a tenth of the link: about 200 ARP packets per second.
const UNCLASSIFIED_RATE: Rate = Rate(128_000);
/// Burst of a guarantee: what a subscriber may catch up after the guarantees of others went first.
const GUARANTEE_BURST_NS: u64 = 5_000_000;
const GUARANTEE_BURST_BYTES: Bytes = Bytes(3028);

/// The configuration of a whole tree, as the core holds it.
#[derive(Clone)]
pub struct TreeTable {
    /// How many packets it may hold, and how the link below counts them.
    pub set_up: abi::sl_tree_conf,
    /// The link's ceiling.
    pub link: abi::sl_node_conf,
    /// Kinds of queues by their number.
    pub queues: BTreeMap<u32, abi::sl_leaf_queue>,
    /// Nodes by their number, without the link.
    pub nodes: BTreeMap<u32, abi::sl_node_conf>,
    /// The leaves of packets by their class, of each divided leaf.
    pub parts: BTreeMap<u32, abi::sl_parts_conf>,
    /// The leaf of each class of a class tree, and that of unclassified packets. Empty: addresses choose the leaf.
    pub classes: BTreeMap<u32, u32>,
}

impl TreeTable {
    /// The homes of leaves and classes, of so many trees: all that is below one child of the link has one, and the children are dealt out by their numbers.
    pub fn homes(&self, trees: u32) -> Box<abi::sl_tree_homes> {
        let mut homes = abi::boxed_zeroed::<abi::sl_tree_homes>();
        for leaf in self.nodes.keys().copied().filter(|number| *number < LINK) {
            homes.of_leaf[leaf as usize] = self.home(leaf, trees);
        }
        homes.by_class = u64::from(!self.classes.is_empty());
        homes.of_class = [homes.of_leaf[NOBODY as usize]; abi::SL_TREE_CLASSES as usize];
        for (class, leaf) in &self.classes {
            homes.of_class[*class as usize] = homes.of_leaf[*leaf as usize];
        }
        homes
    }

    fn home(&self, leaf: u32, trees: u32) -> u8 {
        let above = |number: &u32| self.nodes.get(number).map(|node| node.parent).filter(|parent| *parent != LINK);
        let child = std::iter::successors(Some(leaf), above).take(abi::SL_TREE_LEVELS as usize).last().unwrap_or(leaf);
        ((child & (LINK - 1)) % trees.max(1)) as u8
    }

    /// The tree of a network in one direction. `running`: the tree that runs, whose kinds of queues keep their numbers. `header_bytes`: as in
    /// [`crate::Context`].
    pub fn of(
        network: &Network,
        way: Way,
        numbers: &Numbers,
        running: &TreeTable,
        header_bytes: u32,
    ) -> Result<TreeTable, TreeError> {
        let link = network.link();
        let link_rate = *link.ceil.of(way);
        let link_burst =
            link_rate.map(|rate| link.burst.of(way).map_or(LINK_BURST_NS, |burst| crate::duration_ns(burst, rate)));
        let mut kinds = Kinds::of(running);
        let mut nodes = BTreeMap::new();
        for (node, number) in network.inner.iter().zip(&numbers.inner).skip(1) {
            nodes.insert(*number, conf(node, way, numbers));
        }
        let mut parts = BTreeMap::new();
        let mut in_queue = |queue: usize, rate: Option<Rate>, own: abi::sl_node_conf| {
            let queue = &network.queues[queue];
            let limit_pkts = queue.limit_pkts.unwrap_or(MOST_PKTS).min(MOST_PKTS);
            abi::sl_node_conf { limit_pkts, queue: kinds.number(leaf_queue(queue, rate)), ..own }
        };
        for ((leaf, number), of_classes) in network.leaves.iter().zip(&numbers.leaves).zip(&numbers.classes) {
            let own = conf(&leaf.node, way, numbers);
            let rate = leaf.node.ceil.of(way).or(link_rate);
            if of_classes.is_empty() {
                nodes.insert(*number, in_queue(*leaf.queue.of(way), rate, own));
                continue;
            }
            let (discipline, rank) = (discipline(leaf.classes.scheduler) as u32, rank_function(leaf.classes.scheduler));
            nodes.insert(*number, abi::sl_node_conf { queue: abi::SL_LEAF_DIVIDED, discipline, rank, ..own });
            let of_class = leaf.classes.by_number().map(|class| of_classes[class] as u16 + 1);
            parts.insert(*number, abi::sl_parts_conf { of_class });
            for (class, part) in leaf.classes.classes.iter().zip(of_classes) {
                let sends_at = class.ceil.of(way).map_or(rate, |ceil| Some(rate.map_or(ceil, |rate| rate.min(ceil))));
                nodes.insert(*part, in_queue(*class.queue.of(way), sends_at, conf_of_class(class, way, *number)));
            }
        }
        let nobody = network.queue_of_nobody(way);
        let own = abi::sl_node_conf {
            limit_pkts: MOST_PKTS,
            queue: kinds.number(leaf_queue(&nobody, link_rate)),
            ..normal(node_of_nobody(network, link_rate).conf())
        };
        nodes.insert(NOBODY, own);
        let used: BTreeSet<u32> = nodes.range(..LINK).map(|(_, node)| node.queue).collect();
        let queues = kinds.list.into_iter().filter(|(number, _)| used.contains(number)).collect();
        if kinds.lacking > 0 {
            return Err(TreeError::NoQueues(kinds.lacking));
        }
        let ceil = link_rate.zip(link_burst).map(|(rate, burst_ns)| bucket(rate, burst_ns));
        Ok(TreeTable {
            set_up: abi::sl_tree_conf {
                slots: abi::SL_TREE_PKTS,
                mpu_bytes: network.framing.mpu_bytes,
                overhead_bytes: network.framing.overhead_bytes - header_bytes as i32,
                cells: cells(network.framing.cells),
            },
            link: Node {
                ceil,
                discipline: discipline(link.scheduler),
                rank_function: rank_function(link.scheduler),
                ..Node::below(LINK)
            }
            .conf(),
            queues,
            nodes,
            parts,
            classes: leaves_of_classes(network, numbers),
        })
    }

    /// The owners of the numbers that are in use: in this tree, or in the one that it becomes when the changes are made that wait. A number
    /// whose node is yet to be removed still has packets, counters and a place in the tree, which no other node may inherit.
    pub fn owners_in_use(&self, soon: &TreeTable, owners: &[u64]) -> Vec<u64> {
        let is_used = |number: &u32| self.nodes.contains_key(number) || soon.nodes.contains_key(number);
        (0..).zip(owners).map(|(number, owner)| if is_used(&number) { *owner } else { 0 }).collect()
    }

    /// A tree that has not been set up.
    pub fn empty() -> TreeTable {
        TreeTable::read(&abi::boxed_zeroed())
    }

    /// The configuration that a tree has.
    pub fn read(tree: &abi::sl_tree) -> TreeTable {
        TreeTable::read_part(tree, 0..NODES as u32)
    }

    /// The configuration of these nodes of a tree, with the kinds of queues of all leaves. Of nodes but these, only the leaves are looked at.
    pub fn read_part(tree: &abi::sl_tree, numbers: impl IntoIterator<Item = u32>) -> TreeTable {
        let set_up = abi::sl_tree_conf {
            slots: tree.slots,
            mpu_bytes: tree.mpu_bytes,
            overhead_bytes: tree.overhead_bytes,
            cells: tree.cells,
        };
        let node = |number: u32| {
            let own = &tree.node[number as usize];
            let [ceil, rate] = own.bucket;
            let leaf = tree.leaf.get(number as usize);
            abi::sl_node_conf {
                parent: LINK ^ u32::from(own.parent),
                weight: own.weight.into(),
                priority: own.priority.into(),
                discipline: tree.inner[number as usize].discipline.into(),
                ceil_cost: ceil.cost,
                ceil_burst_ns: ceil.burst_ns,
                rate_cost: rate.cost,
                rate_burst_ns: rate.burst_ns,
                limit_pkts: leaf.map_or(0, |leaf| leaf.limit_pkts.into()),
                queue: leaf.map_or(0, |leaf| leaf.queue.into()),
                request: tree.inner[number as usize].request,
                rank: tree.inner[number as usize].rank.into(),
            }
        };
        let configured = numbers.into_iter().filter(|&number| number != LINK && tree.node[number as usize].weight > 0);
        let nodes: BTreeMap<u32, abi::sl_node_conf> = configured.map(|number| (number, node(number))).collect();
        let used: BTreeSet<u32> =
            tree.leaf.iter().filter(|leaf| leaf.limit_pkts > 0).map(|leaf| leaf.queue.into()).collect();
        let queues = used.into_iter().map(|number| (number, tree.queue[number as usize])).collect();
        let divided = nodes.iter().filter(|(_, node)| node.queue == abi::SL_LEAF_DIVIDED);
        let parts = divided.map(|(number, _)| {
            let of_class = tree.parts[*number as usize].of_class;
            (*number, abi::sl_parts_conf { of_class })
        });
        let parts = parts.collect();
        let classes = (0..).zip(&tree.class_leaf).filter(|(_, leaf)| **leaf != 0);
        let classes = classes.map(|(class, leaf)| (class, u32::from(*leaf) - 1)).collect();
        TreeTable { set_up, link: abi::sl_node_conf { weight: 1, ..node(LINK) }, queues, nodes, parts, classes }
    }

    /// The tree once these changes are made.
    pub fn after(mut self, changes: &[abi::sl_tree_change]) -> TreeTable {
        for change in changes {
            let what = &abi::bytes_of(change)[std::mem::offset_of!(abi::sl_tree_change, what)..];
            match change.kind {
                abi::SL_CHANGE_SET_UP => self.set_up = read(what),
                abi::SL_CHANGE_QUEUE => drop(self.queues.insert(change.at, read(what))),
                abi::SL_CHANGE_NODE if change.at == LINK => self.link = read(what),
                abi::SL_CHANGE_NODE => drop(self.nodes.insert(change.at, read(what))),
                abi::SL_CHANGE_PARTS => drop(self.parts.insert(change.at, read(what))),
                abi::SL_CHANGE_CLASS_LEAF => {
                    match read::<abi::sl_class_leaf_conf>(what).leaf.checked_sub(1) {
                        Some(leaf) => self.classes.insert(change.at, leaf),
                        None => self.classes.remove(&change.at),
                    };
                }
                _ => {
                    self.nodes.remove(&change.at);
                    self.parts.remove(&change.at);
                }
            }
        }
        self
    }

    /// The changes from this tree to another one, in an order in which the core takes them. Nodes that the other lacks stay: see
    /// [`TreeTable::removals`].
    pub fn changes_to(&self, to: &TreeTable) -> Vec<abi::sl_tree_change> {
        let mut changes = Vec::new();
        if !same(&self.set_up, &to.set_up) {
            changes.push(change(abi::SL_CHANGE_SET_UP, 0, &to.set_up));
        }
        if !same(&self.link, &to.link) {
            changes.push(change(abi::SL_CHANGE_NODE, LINK, &to.link));
        }
        for (number, queue) in &to.queues {
            if !self.queues.get(number).is_some_and(|own| same(own, queue)) {
                changes.push(change(abi::SL_CHANGE_QUEUE, *number, queue));
            }
        }
        let differs =
            |number: &u32, node: &abi::sl_node_conf| !self.nodes.get(number).is_some_and(|own| same(own, node));
        let mut nodes: Vec<(usize, u32)> = to
            .nodes
            .iter()
            .filter(|(number, node)| differs(number, node))
            .map(|(number, _)| (to.depth(*number), *number))
            .collect();
        // Parents come before their children.
        nodes.sort_unstable_by_key(|(depth, number)| (*number < LINK, *depth, *number));
        changes.extend(nodes.iter().map(|(_, number)| change(abi::SL_CHANGE_NODE, *number, &to.nodes[number])));
        // Then the parts are there to which packets go.
        for (number, parts) in &to.parts {
            if !self.parts.get(number).is_some_and(|own| same(own, parts)) {
                changes.push(change(abi::SL_CHANGE_PARTS, *number, parts));
            }
        }
        // The entry of unclassified packets is set last, since it makes this a class tree.
        let new = to.classes.iter().filter(|(class, leaf)| self.classes.get(class) != Some(leaf));
        changes.extend(new.map(|(class, leaf)| set_class_leaf(*class, leaf + 1)));
        changes
    }

    /// The changes that remove those of these nodes that have no packets, and no child that stays: leaves first. Classes whose
    /// leaf is removed lose it before that, and not by [`TreeTable::changes_to`]: until the new rules are in force, packets have these classes.
    pub fn removals(&self, gone: &[u32], has_packets: impl Fn(u32) -> bool) -> Vec<abi::sl_tree_change> {
        let mut left = self.nodes.clone();
        let mut order: Vec<u32> = gone.iter().copied().filter(|number| self.nodes.contains_key(number)).collect();
        order.sort_by_key(|number| (*number >= LINK, std::cmp::Reverse(self.depth(*number))));
        let mut children: HashMap<u32, usize> = HashMap::new();
        left.values().for_each(|node| *children.entry(node.parent).or_default() += 1);
        let gone_classes = self.classes.iter().filter(|(_, leaf)| order.contains(leaf));
        let mut changes: Vec<abi::sl_tree_change> = gone_classes.map(|(class, _)| set_class_leaf(*class, 0)).collect();
        for number in order {
            let has_children = children.get(&number).is_some_and(|n| *n > 0);
            let busy = has_children || (number < LINK && has_packets(number));
            if let Some(node) = left.remove(&number).filter(|_| !busy) {
                *children.entry(node.parent).or_default() -= 1;
                changes.push(abi::sl_tree_change { kind: abi::SL_CHANGE_REMOVE, at: number, what: [0; 6] });
            }
        }
        changes
    }

    /// Whether this tree has all that another one has.
    pub fn includes(&self, other: &TreeTable) -> bool {
        self.changes_to(other).is_empty()
    }

    /// Nodes between a node and the link.
    pub fn depth(&self, number: u32) -> usize {
        let mut at = number;
        let up = |at: &u32| self.nodes.get(at).map(|node| node.parent);
        (0..abi::SL_TREE_LEVELS as usize)
            .take_while(|_| {
                up(&at).is_some_and(|parent| {
                    at = parent;
                    parent != LINK
                })
            })
            .count()
    }

    /// The tree itself, without packets.
    ///
    /// # Errors
    /// The number of a node that the core refuses.
    pub fn build(&self) -> Result<Tree, u32> {
        let mut tree = Tree::default();
        for change in TreeTable::empty().changes_to(self) {
            tree.make(&change, 0).map_err(|_| change.at)?;
        }
        Ok(tree)
    }
}

/// The change that gives packets of a class a leaf, 1 + its number; 0: none.
fn set_class_leaf(class: u32, leaf: u32) -> abi::sl_tree_change {
    change(abi::SL_CHANGE_CLASS_LEAF, class, &abi::sl_class_leaf_conf { leaf })
}

/// Kinds of queues and their numbers.
struct Kinds {
    list: BTreeMap<u32, abi::sl_leaf_queue>,
    known: HashMap<Vec<u8>, u32>,
    lacking: usize,
}

impl Kinds {
    fn of(running: &TreeTable) -> Kinds {
        let list = running.queues.clone();
        let known = list.iter().map(|(number, queue)| (abi::bytes_of(queue).to_vec(), *number)).collect();
        Kinds { list, known, lacking: 0 }
    }

    fn number(&mut self, queue: abi::sl_leaf_queue) -> u32 {
        let key = abi::bytes_of(&queue).to_vec();
        if let Some(number) = self.known.get(&key) {
            return *number;
        }
        let Some(free) = (0..abi::SL_LEAF_QUEUES).find(|number| !self.list.contains_key(number)) else {
            self.lacking += 1;
            return 0;
        };
        self.list.insert(free, queue);
        self.known.insert(key, free);
        free
    }
}

/// A kind of queue, at a leaf that sends at this rate.
fn leaf_queue(queue: &LeafQueue, rate: Option<Rate>) -> abi::sl_leaf_queue {
    let flows = queue.queue.flows();
    let quantum_bytes = queue.quantum_bytes();
    abi::sl_leaf_queue {
        flow_quantum_bytes: quantum_bytes,
        allowance_bytes: flows.map_or(quantum_bytes, |flows| flows.allowance.0 as u32).max(quantum_bytes),
        round_ns: queue.round_ns(rate),
        hosts: flows.map_or(0, |flows| hosts(flows.hosts) as u8),
        one_flow: u8::from(flows.is_none()),
        pad: 0,
        target_ns: queue.codel.map_or(0, |codel| codel.target_ns),
        interval_ns: queue.codel.map_or(0, |codel| codel.interval_ns),
    }
}

fn conf(node: &sluice_policy::network::Node, way: Way, numbers: &Numbers) -> abi::sl_node_conf {
    let ceil =
        node.ceil.of(way).zip(*node.burst.of(way)).map(|(rate, burst)| bucket(rate, crate::duration_ns(burst, rate)));
    let rate = node.rate.of(way).map(guarantee);
    let parent = numbers.inner[usize::from(node.parent) - LINK as usize];
    let (weight, priority) = (node.weight, node.priority.into());
    let (discipline, rank_function) = (discipline(node.scheduler), rank_function(node.scheduler));
    let request = request(node.order);
    normal(Node { weight, priority, ceil, rate, discipline, rank_function, request, ..Node::below(parent) }.conf())
}

/// The leaf of packets whose address no subscriber has, or of unclassified packets of a class tree. Anybody can send those, so they have a small guarantee,
/// and beyond it the lowest priority, or the longest latency budget.
fn node_of_nobody(network: &Network, link_rate: Option<Rate>) -> Node {
    // As much as a class whose policy names no quantum.
    let shares_by_quantum = network.link().scheduler == NodeScheduler::DeficitRoundRobin;
    let below = Node { weight: if shares_by_quantum { FRAME_BYTES } else { 1 }, ..Node::below(LINK) };
    if !network.is_class_tree() {
        return below;
    }
    let rate = unclassified_rate(link_rate);
    let order = match network.link().scheduler {
        NodeScheduler::Eevdf => Order { quantum_bytes: FRAME_BYTES, ..Order::default() },
        NodeScheduler::Pifo(_) => Order { latency_budget_ns: *LATENCY_BUDGETS_NS.end(), ..Order::default() },
        _ => Order::default(),
    };
    Node { rate: Some(guarantee(rate)), priority: abi::SL_TREE_PRIORITIES - 1, request: request(order), ..below }
}

/// The guarantee of unclassified packets in a class tree, at a link of this rate.
pub fn unclassified_rate(link_rate: Option<Rate>) -> Rate {
    link_rate.map_or(UNCLASSIFIED_RATE, |rate| UNCLASSIFIED_RATE.min(Rate(rate.0 / 10))).max(*NODE_RATES.start())
}

/// The discipline of the core by which a scheduler is run.
fn discipline(scheduler: NodeScheduler) -> Discipline {
    match scheduler {
        NodeScheduler::ElasticRoundRobin | NodeScheduler::DeficitRoundRobin => Discipline::Elastic,
        NodeScheduler::StrictPriority => Discipline::Priority,
        NodeScheduler::RoundRobin => Discipline::RoundRobin,
        NodeScheduler::WeightedFairQueuing => Discipline::Fair,
        NodeScheduler::Eevdf => Discipline::Eevdf,
        NodeScheduler::Pifo(_) => Discipline::Pifo,
    }
}

/// The rank function of the core by which a scheduler is run.
fn rank_function(scheduler: NodeScheduler) -> u32 {
    scheduler.rank().map_or(0, |rank| rank.number())
}

/// The word of a class for EEVDF or a PIFO above it, of which one looks at one.
fn request(order: Order) -> u32 {
    order.quantum_bytes.max(u32::try_from(order.latency_budget_ns / 1000).unwrap_or(u32::MAX))
}

/// The leaf of each class of a class tree, and that of unclassified packets.
fn leaves_of_classes(network: &Network, numbers: &Numbers) -> BTreeMap<u32, u32> {
    let of_class = network.leaves.iter().zip(&numbers.leaves);
    let of_class = of_class.filter_map(|(leaf, number)| Some((u32::from(leaf.class?.0), *number)));
    // Unclassified are ARP, neighbour discovery, DHCP and packets with broken headers.
    let without = network.is_class_tree().then_some((abi::SL_TREE_CLASSES - 1, NOBODY));
    of_class.chain(without).collect()
}

fn conf_of_class(class: &LeafClass, way: Way, leaf: u32) -> abi::sl_node_conf {
    let LeafClass { weight, priority, order, rate, ceil, burst, .. } = class;
    let ceil = ceil.of(way).zip(*burst.of(way)).map(|(rate, burst)| bucket(rate, crate::duration_ns(burst, rate)));
    let rate = rate.of(way).map(guarantee);
    let (weight, priority, request) = (*weight, (*priority).into(), request(*order));
    normal(Node { weight, priority, request, ceil, rate, ..Node::below(leaf) }.conf())
}

/// The bucket of a guarantee.
fn guarantee(rate: Rate) -> Bucket {
    bucket(rate, GUARANTEE_BURST_NS.max(crate::duration_ns(GUARANTEE_BURST_BYTES, rate)))
}

fn bucket(rate: Rate, burst_ns: u64) -> Bucket {
    Bucket { bits_per_second: rate.0, burst_ns: u32::try_from(burst_ns).unwrap_or(u32::MAX) }
}

/// As the core keeps it.
fn normal(conf: abi::sl_node_conf) -> abi::sl_node_conf {
    abi::sl_node_conf {
        ceil_burst_ns: conf.ceil_burst_ns.max(abi::SL_NODE_BURST_NS),
        rate_burst_ns: conf.rate_burst_ns.max(abi::SL_NODE_BURST_NS),
        ..conf
    }
}

fn same<T: abi::Pod>(one: &T, other: &T) -> bool {
    abi::bytes_of(one) == abi::bytes_of(other)
}

fn change<T: abi::Pod>(kind: u32, at: u32, what: &T) -> abi::sl_tree_change {
    let mut bytes = [0; 48];
    let from = abi::bytes_of(what);
    bytes[..from.len()].copy_from_slice(from);
    let word = |n: usize| u64::from_ne_bytes(bytes[8 * n..8 * n + 8].try_into().expect("eight bytes"));
    abi::sl_tree_change { kind, at, what: std::array::from_fn(word) }
}

fn read<T: abi::Pod + Copy>(bytes: &[u8]) -> T {
    abi::read_small(bytes).expect("the longest of the structs")
}

#[cfg(test)]
mod tests;
