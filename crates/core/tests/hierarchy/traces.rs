//! Random trees and random traffic.

use proptest::{collection::vec, option, prelude::*, strategy::BoxedStrategy};
use sluice_abi::{SL_FIRST_INNER as LINK, SL_TREE_LEVELS};
use sluice_core::hierarchy::{Bucket, Node};

/// The longest packet, bytes.
pub const LONGEST: u32 = 1514;

#[derive(Debug, Clone)]
pub enum Step {
    /// A packet for the leaf of this index.
    Arrive { leaf: usize, bytes: u32 },
    /// This node, by its index among all but the link, gets other limits and another weight.
    Limit { node: usize, ceil: Option<Bucket>, rate: Option<Bucket>, weight: u32 },
    /// The leaf moves to the inner node of this index; 0: the link.
    Move { leaf: usize, parent: usize },
    /// The leaf is emptied.
    Empty { leaf: usize },
    /// The leaf is emptied and removed, and added again.
    Renew { leaf: usize },
    /// Any node is to become a child of any other: both numbers may be wrong.
    Join { node: u32, parent: u32 },
    /// Any node is removed, if it may be.
    Remove { node: u32 },
}

#[derive(Debug, Clone)]
pub struct Case {
    pub link: Bucket,
    pub link_by_priority: bool,
    /// Parents come before their children.
    pub inners: Vec<(u32, Node)>,
    pub leaves: Vec<(u32, Node)>,
    /// What happens, so many ns after the step before.
    pub steps: Vec<(u64, Step)>,
    pub seed: u32,
}

impl Case {
    /// Every node but the link.
    pub fn nodes(&self) -> impl Iterator<Item = &(u32, Node)> {
        self.inners.iter().chain(&self.leaves)
    }
}

/// What a kind of cases has.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traces {
    ceilings: bool,
    guarantees: bool,
    priorities: bool,
    limits: bool,
    edits: bool,
    structure: bool,
    steps: usize,
}

/// Cases without limits below the link, of so many steps at most.
pub const fn of(steps: usize) -> Traces {
    Traces {
        ceilings: false,
        guarantees: false,
        priorities: false,
        limits: false,
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

    pub const fn priorities(self) -> Traces {
        Traces { priorities: true, ..self }
    }

    pub const fn limits(self) -> Traces {
        Traces { limits: true, ..self }
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
        let steps = vec((gap(), self.step()), 0..=self.steps);
        (bucket(10_000..200_000), any::<bool>(), inners, leaves, steps, any::<u32>())
            .prop_map(move |(link, link_by_priority, inners, leaves, steps, seed)| {
                let link_by_priority = link_by_priority && self.priorities;
                build(link, link_by_priority, inners, leaves, steps, seed)
            })
            .boxed()
    }

    fn node(self) -> BoxedStrategy<Node> {
        let limits = (self.ceil(), self.rate(), 1..=10u32, 0..4u32);
        (limits, any::<bool>(), 1..20u32)
            .prop_map(move |((ceil, rate, weight, priority), by_priority, limit)| Node {
                weight,
                priority,
                serves_by_priority: by_priority && self.priorities,
                ceil,
                rate,
                limit_pkts: if self.limits { limit } else { 0 },
                ..Node::below(LINK)
            })
            .boxed()
    }

    fn ceil(self) -> BoxedStrategy<Option<Bucket>> {
        if self.ceilings { option::of(bucket(500..100_000)).boxed() } else { Just(None).boxed() }
    }

    fn rate(self) -> BoxedStrategy<Option<Bucket>> {
        if self.guarantees { option::of(bucket(500..20_000)).boxed() } else { Just(None).boxed() }
    }

    fn step(self) -> BoxedStrategy<Step> {
        let arrive = (any::<usize>(), 64..=LONGEST).prop_map(|(leaf, bytes)| Step::Arrive { leaf, bytes });
        if self.structure {
            let node = || prop_oneof![0..12u32, LINK..LINK + 10, 36860..36870u32];
            return prop_oneof![
                1 => arrive,
                2 => (node(), node()).prop_map(|(node, parent)| Step::Join { node, parent }),
                // Long ways.
                1 => (LINK + 1..LINK + 10).prop_map(|node| Step::Join { node, parent: node - 1 }),
                1 => node().prop_map(|node| Step::Remove { node }),
            ]
            .boxed();
        }
        if !self.edits {
            return arrive.boxed();
        }
        prop_oneof![
            12 => arrive,
            2 => (any::<usize>(), self.ceil(), self.rate(), 1..=10u32)
                .prop_map(|(node, ceil, rate, weight)| Step::Limit { node, ceil, rate, weight }),
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

/// Most steps follow each other at once.
fn gap() -> impl Strategy<Value = u64> {
    prop_oneof![4 => Just(0u64), 4 => 1..200_000u64, 1 => 1..200_000_000u64]
}

fn build(
    link: Bucket,
    link_by_priority: bool,
    inners: Vec<(u16, Node)>,
    leaves: Vec<(u16, Node)>,
    steps: Vec<(u64, Step)>,
    seed: u32,
) -> Case {
    let mut depths = vec![(LINK, 0)];
    let mut named = Vec::new();
    for (number, (pick, node)) in (LINK + 1..).zip(inners) {
        let above: Vec<(u32, u32)> = depths.iter().copied().filter(|&(_, depth)| depth < SL_TREE_LEVELS - 2).collect();
        let (parent, depth) = above[usize::from(pick) % above.len()];
        depths.push((number, depth + 1));
        named.push((number, Node { parent, ..node }));
    }
    // Leaves prefer the nodes that were made last, so that trees are deep.
    let leaves = (0..).zip(leaves).map(|(number, (pick, node))| {
        let (parent, _) = depths[depths.len() - 1 - usize::from(pick % 7) % depths.len()];
        (number, Node { parent, ..node })
    });
    Case { link, link_by_priority, inners: named, leaves: leaves.collect(), steps, seed }
}
