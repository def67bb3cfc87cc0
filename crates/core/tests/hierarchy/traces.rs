//! Random trees and random traffic.

use proptest::{collection::vec, option, prelude::*, strategy::BoxedStrategy};
use sluice_abi::{
    SL_FIRST_INNER as LINK, SL_HOSTS_DESTINATION, SL_HOSTS_SOURCE, SL_LEAF_DIVIDED, SL_RANKS, SL_TREE_LEVELS,
    SL_TREE_PKTS,
};
use sluice_core::Packet;
use sluice_core::hierarchy::{Bucket, Discipline, LeafQueue, Node};

/// The longest packet, bytes.
pub const LONGEST: u32 = 1514;

/// The flow of a packet, and the host that it comes from; the host with half that number is its destination.
#[derive(Debug, Clone, Copy, Default)]
pub struct Flow {
    pub hash: u32,
    pub host: u16,
    /// Its packets can be marked instead of dropped.
    pub ecn: bool,
}

impl Flow {
    /// A packet of this flow for a leaf.
    pub fn packet(self, leaf: u32, bytes: u32) -> Packet {
        Packet {
            class: leaf,
            len_bytes: bytes,
            segments: 1,
            flow_hash: self.hash,
            src_host: self.host,
            dst_host: self.host / 2,
            ecn: u32::from(self.ecn),
        }
    }
}

#[derive(Debug, Clone)]
pub enum Step {
    /// A packet for the leaf of this index.
    Arrive { leaf: usize, flow: Flow, bytes: u32 },
    /// This node, by its index among all but the link, gets other limits, another weight and, as a leaf, another queue.
    Limit { node: usize, ceil: Option<Bucket>, rate: Option<Bucket>, weight: u32, queue: u32 },
    /// The node of this index among those that have children serves by another discipline, unless children of it may send.
    Serve { node: usize, discipline: Discipline },
    /// Leaves with this queue queue by flow in another way.
    SetQueue { queue: usize, conf: LeafQueue },
    /// The leaf moves to the node of this index among those that have children, unless it would have to be empty for that.
    Move { leaf: usize, parent: usize },
    /// The leaf is emptied.
    Empty { leaf: usize },
    /// The leaf is emptied and removed, and added again.
    Renew { leaf: usize },
    /// Any node is to become a child of any other, and a leaf to be divided: both numbers may be wrong.
    Join { node: u32, parent: u32, divided: bool },
    /// Any node is removed, if it may be.
    Remove { node: u32 },
}

#[derive(Debug, Clone)]
pub struct Case {
    pub link: Bucket,
    pub link_discipline: Discipline,
    /// Inner nodes and divided leaves. Parents come before their children.
    pub inners: Vec<(u32, Node)>,
    pub leaves: Vec<(u32, Node)>,
    /// How leaves queue by flow, by the numbers that these have.
    pub queues: Vec<LeafQueue>,
    /// Packets that the tree may hold.
    pub slots: u32,
    /// Bytes that the link below adds to each packet.
    pub overhead: u32,
    /// The event, so many ns after the step before.
    pub steps: Vec<(u64, Step)>,
    pub seed: u32,
}

impl Case {
    /// Every node but the link.
    pub fn nodes(&self) -> impl Iterator<Item = &(u32, Node)> {
        self.inners.iter().chain(&self.leaves)
    }
}

/// The properties of a kind of cases.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traces {
    ceilings: bool,
    guarantees: bool,
    disciplines: &'static [Discipline],
    limits: bool,
    flows: bool,
    few_slots: bool,
    uneven: bool,
    framing: bool,
    edits: bool,
    structure: bool,
    steps: usize,
}

/// Cases without limits below the link, of so many steps at most.
pub const fn of(steps: usize) -> Traces {
    Traces {
        ceilings: false,
        guarantees: false,
        disciplines: &[Discipline::Elastic],
        limits: false,
        flows: false,
        few_slots: false,
        uneven: false,
        framing: false,
        edits: false,
        structure: false,
        steps,
    }
}

impl Traces {
    pub const fn ceilings(self) -> Traces {
        Traces { ceilings: true, ..self }
    }

    pub const fn guarantees(self) -> Traces {
        Traces { guarantees: true, ..self }
    }

    /// Nodes that serve by any of these.
    pub const fn serving(self, disciplines: &'static [Discipline]) -> Traces {
        Traces { disciplines, ..self }
    }

    /// Nodes that serve by any discipline.
    pub const fn disciplines(self) -> Traces {
        self.serving(&[
            Discipline::Elastic,
            Discipline::Priority,
            Discipline::RoundRobin,
            Discipline::Fair,
            Discipline::Eevdf,
            Discipline::Pifo,
        ])
    }

    pub const fn limits(self) -> Traces {
        Traces { limits: true, ..self }
    }

    /// Leaves that queue by flow, fair between hosts, with CoDel, and one after the other without. Else all are FIFOs.
    pub const fn flows(self) -> Traces {
        Traces { flows: true, ..self }
    }

    /// Slots for some packets of each leaf.
    pub const fn few_slots(self) -> Traces {
        Traces { few_slots: true, ..self }
    }

    /// Two leaves get most packets.
    pub const fn uneven(self) -> Traces {
        Traces { uneven: true, ..self }
    }

    /// A link that adds bytes to each packet.
    pub const fn framing(self) -> Traces {
        Traces { framing: true, ..self }
    }

    pub const fn edits(self) -> Traces {
        Traces { edits: true, ..self }
    }

    pub const fn structure(self) -> Traces {
        Traces { structure: true, ..self }
    }

    pub fn cases(self) -> BoxedStrategy<Case> {
        let inners = vec((any::<u16>(), self.node()), 0..7);
        let leaves = vec((any::<u16>(), self.node()), 1..10);
        let steps = vec((self.gap(), self.step()), 0..=self.steps);
        let queues = if self.flows { vec(queue(), 4).boxed() } else { Just(vec![LeafQueue::fifo()]).boxed() };
        let slots = if self.few_slots { (20..120u32).boxed() } else { Just(SL_TREE_PKTS).boxed() };
        let overhead = if self.framing { (0..60u32).boxed() } else { Just(0).boxed() };
        (bucket(10_000..200_000), self.discipline(), inners, leaves, steps, queues, (slots, overhead, any::<u32>()))
            .prop_map(move |(link, link_discipline, inners, leaves, steps, queues, (slots, overhead, seed))| {
                let (inners, leaves) = join(inners, leaves);
                Case { link, link_discipline, inners, leaves, queues, slots, overhead, steps, seed }
            })
            .boxed()
    }

    fn node(self) -> BoxedStrategy<Node> {
        let limits = (self.ceil(), self.rate(), 1..=10u32, 0..4u32);
        (limits, (self.discipline(), self.order()), 1..20u32, self.queue())
            .prop_map(move |((ceil, rate, weight, priority), (discipline, (rank_function, request)), limit, queue)| {
                Node {
                    weight,
                    priority,
                    discipline,
                    rank_function,
                    request,
                    ceil,
                    rate,
                    limit_pkts: if self.limits { limit } else { 0 },
                    queue,
                    ..Node::below(LINK)
                }
            })
            .boxed()
    }

    fn discipline(self) -> impl Strategy<Value = Discipline> {
        any::<u8>().prop_map(move |nth| self.disciplines[usize::from(nth) % self.disciplines.len()])
    }

    /// A rank function; and the bytes of a request, or a latency budget in us, short or long.
    fn order(self) -> BoxedStrategy<(u32, u32)> {
        if !self.disciplines.iter().any(|one| matches!(one, Discipline::Eevdf | Discipline::Pifo)) {
            return Just((0, 0)).boxed();
        }
        (0..SL_RANKS, prop_oneof![0..2000u32, 0..60_000u32]).boxed()
    }

    fn ceil(self) -> BoxedStrategy<Option<Bucket>> {
        if self.ceilings { option::of(bucket(500..100_000)).boxed() } else { Just(None).boxed() }
    }

    fn rate(self) -> BoxedStrategy<Option<Bucket>> {
        if self.guarantees { option::of(bucket(500..20_000)).boxed() } else { Just(None).boxed() }
    }

    /// The number of a queue.
    fn queue(self) -> BoxedStrategy<u32> {
        if self.flows { (0..4u32).boxed() } else { Just(0).boxed() }
    }

    /// Most steps follow each other at once. Where slots are few, the link hardly sends meanwhile.
    fn gap(self) -> BoxedStrategy<u64> {
        if self.few_slots {
            return prop_oneof![9 => Just(0u64), 1 => 1..200_000u64].boxed();
        }
        prop_oneof![4 => Just(0u64), 4 => 1..200_000u64, 1 => 1..200_000_000u64].boxed()
    }

    fn step(self) -> BoxedStrategy<Step> {
        let flow = if self.flows { flow().boxed() } else { Just(Flow::default()).boxed() };
        let busiest = if self.uneven { 3 } else { 0 };
        let leaf = prop_oneof![1 => any::<usize>(), busiest => 0..2usize];
        let arrive = (leaf, flow, 64..=LONGEST).prop_map(|(leaf, flow, bytes)| Step::Arrive { leaf, flow, bytes });
        if self.structure {
            let node = || prop_oneof![0..12u32, LINK..LINK + 10, 36860..36870u32];
            let join = |(node, parent, divided)| Step::Join { node, parent, divided };
            return prop_oneof![
                1 => arrive,
                2 => (node(), node(), any::<bool>()).prop_map(join),
                // Parts of a leaf.
                1 => (0..12u32, 0..3u32).prop_map(move |(node, parent)| join((node, parent, node == parent))),
                // Long ways.
                1 => (0..12u32, LINK + 4..LINK + 10).prop_map(move |(node, parent)| join((node, parent, true))),
                1 => (LINK + 1..LINK + 10).prop_map(move |node| join((node, node - 1, false))),
                1 => node().prop_map(|node| Step::Remove { node }),
            ]
            .boxed();
        }
        if !self.edits {
            return arrive.boxed();
        }
        prop_oneof![
            12 => arrive,
            2 => (any::<usize>(), self.ceil(), self.rate(), 1..=10u32, self.queue())
                .prop_map(|(node, ceil, rate, weight, queue)| Step::Limit { node, ceil, rate, weight, queue }),
            1 => (any::<usize>(), self.discipline()).prop_map(|(node, discipline)| Step::Serve { node, discipline }),
            u32::from(self.flows) => (any::<usize>(), queue()).prop_map(|(queue, conf)| Step::SetQueue { queue, conf }),
            1 => (any::<usize>(), any::<usize>()).prop_map(|(leaf, parent)| Step::Move { leaf, parent }),
            1 => any::<usize>().prop_map(|leaf| Step::Renew { leaf }),
            1 => any::<usize>().prop_map(|leaf| Step::Empty { leaf }),
        ]
        .boxed()
    }
}

/// A rate in kbit/s, and a burst of two buckets of a wheel to 20 ms.
fn bucket(kbit: std::ops::Range<u64>) -> impl Strategy<Value = Bucket> {
    (kbit, 32_768..20_000_000u32).prop_map(|(kbit, burst_ns)| Bucket { bits_per_second: kbit * 1000, burst_ns })
}

/// Few flows of few hosts, which meet in one leaf and have the same hashes in others. Some hashes have the same lower bits.
fn flow() -> impl Strategy<Value = Flow> {
    (0..6u32, any::<bool>()).prop_map(|(flow, ecn)| Flow {
        hash: if flow < 3 { flow } else { 1 | (flow << 16) },
        host: (flow / 2) as u16,
        ecn,
    })
}

/// Small turns, and a CoDel that acts soon.
pub fn queue() -> impl Strategy<Value = LeafQueue> {
    let hosts = 0..=SL_HOSTS_SOURCE | SL_HOSTS_DESTINATION;
    let codel = prop_oneof![Just((0, 0)), (100_000..5_000_000u64, 1_000_000..50_000_000u64)];
    (300..3000u32, 0..20_000u32, hosts, codel, proptest::bool::weighted(0.3)).prop_map(
        |(quantum_bytes, beyond, hosts, (target_ns, interval_ns), one_flow)| LeafQueue {
            quantum_bytes,
            allowance_bytes: quantum_bytes + beyond,
            hosts: hosts as u8,
            one_flow,
            target_ns,
            interval_ns,
            ..LeafQueue::by_flow()
        },
    )
}

/// Nodes with their numbers.
type Nodes = Vec<(u32, Node)>;

/// The inner nodes and the leaves of a tree, each below the parent that its number picks.
fn join(inners: Vec<(u16, Node)>, leaves: Vec<(u16, Node)>) -> (Nodes, Nodes) {
    let mut depths = vec![(LINK, 0)];
    let mut named = Vec::new();
    for (number, (pick, node)) in (LINK + 1..).zip(inners) {
        let above: Vec<(u32, u32)> = depths.iter().copied().filter(|&(_, depth)| depth < SL_TREE_LEVELS - 2).collect();
        let (parent, depth) = above[usize::from(pick) % above.len()];
        depths.push((number, depth + 1));
        named.push((number, Node { parent, ..node }));
    }
    let mut divided = None;
    let mut named_leaves = Vec::new();
    for (number, (pick, node)) in (0..).zip(leaves) {
        // Leaves prefer the nodes that were made last, so that trees are deep.
        let (parent, depth) = depths[depths.len() - 1 - usize::from(pick % 7) % depths.len()];
        match (pick / 7 % 4, divided) {
            (0, _) if depth < SL_TREE_LEVELS - 2 => {
                let whole = DIVIDED + number;
                named.push((whole, Node { parent, queue: SL_LEAF_DIVIDED, limit_pkts: 0, ..node }));
                named_leaves.push((number, Node { parent: whole, ..node }));
                divided = Some(whole);
            }
            (1, Some(whole)) => named_leaves.push((number, Node { parent: whole, ..node })),
            _ => named_leaves.push((number, Node { parent, ..node })),
        }
    }
    (named, named_leaves)
}

/// The first number of divided leaves.
const DIVIDED: u32 = 1000;
