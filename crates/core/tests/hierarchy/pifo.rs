//! A PIFO at a node.

use crate::{
    follow::{Child, Model, follow},
    laws, traces,
    traces::Case,
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_abi::SL_FIRST_INNER as LINK;
use sluice_core::hierarchy::{Bucket, Discipline, Node, Tree, TreeCore, Verdict};
use std::collections::{BTreeMap, VecDeque};

laws! {
    the_smallest_rank_is_served: traces::of(300).serving(&[Discipline::Pifo]);
    equal_ranks_are_served_as_they_came: traces::of(0);
    a_child_that_returns_begins_now: traces::of(0);
    what_is_dropped_has_no_rank: traces::of(300).serving(&[Discipline::Pifo]).limits();
}

#[derive(Default)]
struct Leaf {
    /// Bytes that it has sent since it was empty.
    attained: u64,
    /// The start of its next packet in virtual time.
    start: u64,
}

#[derive(Default)]
struct Parent {
    /// The rank of the first packet of each child that may send, and how many ranks were given before.
    ranked: BTreeMap<u32, (i128, u64)>,
    leaves: BTreeMap<u32, Leaf>,
    given: u64,
    time: u64,
}

/// First packets in a list.
#[derive(Default)]
struct List(BTreeMap<u32, Parent>);

impl List {
    /// The parent of a child, if it has leaves alone: other children have packets that nobody knows.
    fn of(&mut self, child: &Child<'_>) -> Option<&mut Parent> {
        let mut siblings =
            child.world.nodes.iter().filter(|(number, node)| **number != LINK && node.parent == child.parent);
        let are_leaves = siblings.all(|(number, _)| *number < LINK && !child.world.is_divided(*number));
        are_leaves.then(|| self.0.entry(child.parent).or_default())
    }
}

impl Parent {
    /// The child gets a place by its first packet.
    fn rank(&mut self, child: &Child<'_>) {
        let (node, parent) = (&child.world.nodes[&child.number], &child.world.nodes[&child.parent]);
        let packet = child.first.expect("a leaf with packets");
        let leaf = self.leaves.entry(child.number).or_default();
        let due = i128::from(packet.arrived_ns) + 1000 * i128::from(node.request);
        let rank = match parent.rank_function {
            abi::SL_RANK_PRIORITY => node.priority.into(),
            abi::SL_RANK_EARLIEST_DEADLINE => due,
            abi::SL_RANK_SHORTEST_PACKET => packet.bytes.into(),
            abi::SL_RANK_LEAST_ATTAINED_SERVICE => leaf.attained.into(),
            abi::SL_RANK_START_TIME_FAIR => {
                leaf.start = leaf.start.max(self.time);
                (leaf.start >> 16).into()
            }
            _ => {
                let link = child.world.nodes[&LINK].ceil.expect("it has one");
                due - ((i128::from(packet.bytes) * i128::from(link.cost())) >> abi::SL_NODE_COST_BITS)
            }
        };
        self.ranked.insert(child.number, (rank, self.given));
        self.given += 1;
    }
}

impl Model for List {
    fn joins(&mut self, child: &Child<'_>) -> TestCaseResult {
        if let Some(parent) = self.of(child) {
            parent.rank(child);
        }
        Ok(())
    }

    fn is_chosen(&mut self, child: &Child<'_>) -> TestCaseResult {
        let Some(parent) = self.of(child) else { return Ok(()) };
        let first = parent.ranked.values().min().expect("a child may send");
        prop_assert_eq!(&parent.ranked[&child.number], first, "of leaf {} and the one to serve", child.number);
        Ok(())
    }

    fn sends(&mut self, child: &Child<'_>, bytes: u32) -> TestCaseResult {
        let weight = u64::from(child.world.nodes[&child.number].weight);
        let Some(parent) = self.of(child) else { return Ok(()) };
        let leaf = parent.leaves.entry(child.number).or_default();
        leaf.attained += u64::from(bytes);
        parent.time = leaf.start;
        leaf.start += (u64::from(bytes) << 32) / weight;
        if child.first.is_some() {
            parent.rank(child);
        }
        Ok(())
    }

    fn leaves(&mut self, child: &Child<'_>) -> TestCaseResult {
        let Some(parent) = self.of(child) else { return Ok(()) };
        parent.ranked.remove(&child.number);
        parent.leaves.entry(child.number).or_default().attained = 0;
        Ok(())
    }

    fn loses(&mut self, child: &Child<'_>) -> TestCaseResult {
        self.joins(child)
    }
}

/// The case with short budgets, few priorities, and, in half of the cases, all leaves below the link: so that neighbours are near each other in rank.
fn close(case: &Case) -> Case {
    let mut case = case.clone();
    let is_flat = case.seed & 1 == 0;
    for (number, node) in case.inners.iter_mut().chain(&mut case.leaves) {
        node.request %= 500;
        node.priority %= 2;
        if *number < 1000 && is_flat {
            node.parent = LINK;
        }
    }
    case
}

/// The leaf is served whose first packet has the smallest rank; of equal ones, the one that was given first.
fn the_smallest_rank_is_served(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    follow(core, &close(case), &mut List::default())
}

/// A leaf that drops its first packets is ranked by the next.
fn what_is_dropped_has_no_rank(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    follow(core, &close(case), &mut List::default())
}

/// A link of 100 Mbit/s that serves so many leaves as a PIFO with this rank function.
fn star(core: &'static TreeCore, leaves: u32, rank_function: u32) -> Tree {
    let mut tree = Tree::of(core);
    let ceil = Some(Bucket { bits_per_second: 100_000_000, burst_ns: 100_000 });
    let link = Node { ceil, discipline: Discipline::Pifo, rank_function, ..Node::below(LINK) };
    tree.configure(LINK, &link, 0).expect("the link");
    (0..leaves).for_each(|leaf| tree.configure(leaf, &Node::below(LINK), 0).expect("a leaf"));
    tree
}

/// The leaf of the next packet, once the link is free.
fn sent(tree: &mut Tree, now_ns: &mut u64) -> Result<u32, TestCaseError> {
    loop {
        match tree.dequeue(*now_ns) {
            Verdict::Send { leaf, .. } => return Ok(leaf),
            Verdict::Wait(wake_ns) => *now_ns = wake_ns,
            Verdict::Idle => return Err(TestCaseError::fail("idle")),
        }
    }
}

/// Leaves of one priority are served in the order in which their first packets became the first.
fn equal_ranks_are_served_as_they_came(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    let leaves = 2 + case.seed % 15;
    let mut tree = star(core, leaves, abi::SL_RANK_PRIORITY);
    let (mut random, mut now_ns) = (case.seed, 0);
    let mut order = VecDeque::new();
    let mut pkts = vec![0; leaves as usize];
    for step in 0..400 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let leaf = (random >> 16) % leaves;
        // At first more come than leave.
        if step < 20 || random >> 30 != 0 {
            tree.enqueue(leaf, 1000, now_ns).expect("room");
            pkts[leaf as usize] += 1;
            if pkts[leaf as usize] == 1 {
                order.push_back(leaf);
            }
        }
        if step >= 20 && order.len() > 1 {
            let first = order.pop_front().expect("more than one");
            prop_assert_eq!(sent(&mut tree, &mut now_ns)?, first);
            pkts[first as usize] -= 1;
            if pkts[first as usize] > 0 {
                order.push_back(first);
            }
        }
    }
    Ok(())
}

/// By virtual start, a leaf that has been away has no credit: when it comes back, it takes turns with the others at once.
fn a_child_that_returns_begins_now(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    let leaves = 2 + case.seed % 10;
    let mut tree = star(core, leaves, abi::SL_RANK_START_TIME_FAIR);
    let mut now_ns = 0;
    for leaf in 0..leaves {
        for _ in 0..if leaf == 0 { 1 } else { 2 } {
            tree.enqueue(leaf, 1000, now_ns).expect("room");
        }
    }
    for _ in 0..100 + case.seed % 50 {
        let leaf = sent(&mut tree, &mut now_ns)?;
        if leaf != 0 {
            tree.enqueue(leaf, 1000, now_ns).expect("room");
        }
    }
    prop_assert_eq!(tree.leaf(0).pkts, 0);
    for _ in 0..20 {
        tree.enqueue(0, 1000, now_ns).expect("room");
    }
    let mut counts = vec![0; leaves as usize];
    for _ in 0..leaves * 10 {
        let leaf = sent(&mut tree, &mut now_ns)?;
        counts[leaf as usize] += 1;
        tree.enqueue(leaf, 1000, now_ns).expect("room");
    }
    prop_assert!(counts.iter().all(|sent| (9..=11).contains(sent)), "{:?}", counts);
    Ok(())
}
