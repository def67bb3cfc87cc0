//! Whatever is asked for, the tree stays a tree.

use crate::{
    laws,
    traces::{self, Case, Step},
    world::World,
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi::{SL_FIRST_INNER as LINK, SL_LEAF_DIVIDED, SL_TREE_LEVELS};
use sluice_core::hierarchy::{Node, TreeCore, Verdict};
use std::collections::{BTreeMap, BTreeSet};

laws! {
    the_tree_stays_a_tree: traces::of(200).structure();
}

/// The parents of the nodes that are configured.
type Parents = BTreeMap<u32, u32>;

fn depth(parents: &Parents, node: u32) -> u32 {
    if node == LINK { 0 } else { 1 + depth(parents, parents[&node]) }
}

/// Nodes with their parents, and the leaves among them that are divided.
struct Known<'a> {
    parents: &'a Parents,
    divided: &'a BTreeSet<u32>,
}

fn may_join(known: &Known<'_>, node: u32, parent: u32, divide: bool, has_packets: bool) -> bool {
    let Known { parents, divided } = *known;
    if node == LINK {
        return true;
    }
    let is_inner = |node: u32| (LINK..LINK + sluice_abi::SL_INNERS).contains(&node);
    let takes = is_inner(parent) || (divided.contains(&parent) && !is_inner(node) && !divide);
    if node >= LINK + sluice_abi::SL_INNERS || node == parent || !takes {
        return false;
    }
    if parent != LINK && !parents.contains_key(&parent) {
        return false;
    }
    let has_children = parents.values().any(|above| *above == node);
    if !is_inner(node) {
        let whole = |parent: Option<&u32>| parent.copied().filter(|parent| !is_inner(*parent));
        let becomes_another = divide != divided.contains(&node);
        let moves = whole(parents.get(&node)) != whole(Some(&parent));
        if (becomes_another && (has_packets || has_children)) || (moves && has_packets) {
            return false;
        }
    }
    let deep = depth(parents, parent) + 1;
    let most = SL_TREE_LEVELS - if is_inner(node) || divide { 2 } else { 1 };
    deep <= most && (!is_inner(node) || !has_children || deep == depth(parents, node))
}

/// A node joins exactly the parents that exist, that are not below it, and under which every leaf has a way of `SL_TREE_LEVELS` nodes at most to the link;
/// one with children keeps its level. Parts join divided leaves alone, and no leaf is divided, or becomes a part, with packets. Nodes with children or
/// packets are not removed. Afterwards all packets leave.
fn the_tree_stays_a_tree(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    let mut world = World::new(core, case);
    let mut parents: Parents = case.nodes().map(|(number, node)| (*number, node.parent)).collect();
    let is_divided = |node: &Node| node.queue == SL_LEAF_DIVIDED;
    let mut divided: BTreeSet<u32> =
        case.nodes().filter(|(_, node)| is_divided(node)).map(|(number, _)| *number).collect();
    for (_, step) in &case.steps {
        match *step {
            Step::Join { node, parent, divided: divide } => {
                let divide = divide && node < LINK;
                let has_packets = node < LINK && world.tree.leaf(node).pkts > 0;
                let known = Known { parents: &parents, divided: &divided };
                let may = may_join(&known, node, parent, divide, has_packets);
                let queue = if divide { SL_LEAF_DIVIDED } else { 0 };
                let answer = world.tree.configure(node, &Node { queue, ..Node::below(parent) }, world.now_ns);
                prop_assert_eq!(answer.is_ok(), may, "node {} below {}: {:?}", node, parent, answer);
                if may && node != LINK {
                    parents.insert(node, parent);
                    divided.remove(&node);
                    divided.extend(divide.then_some(node));
                }
            }
            Step::Remove { node } => {
                let busy = node < LINK && world.tree.leaf(node).pkts > 0;
                let may = parents.contains_key(&node) && !busy && !parents.values().any(|parent| *parent == node);
                let answer = world.tree.remove(node);
                prop_assert_eq!(answer.is_ok(), may, "removing node {}: {:?}", node, answer);
                if may {
                    parents.remove(&node);
                    divided.remove(&node);
                }
            }
            Step::Arrive { leaf, bytes, .. } => {
                let leaf = leaf as u32 % 12;
                let taken = world.tree.enqueue(leaf, bytes, world.now_ns).is_ok();
                prop_assert_eq!(taken, parents.contains_key(&leaf) && !divided.contains(&leaf), "leaf {}", leaf);
            }
            _ => {}
        }
    }
    let mut left = world.tree.state().pkts;
    while left > 0 {
        match world.tree.dequeue(world.now_ns) {
            Verdict::Send { .. } => left -= 1,
            answer => return Err(TestCaseError::fail(format!("{left} packets are queued: {answer:?}"))),
        }
        // A link that is not configured anew has a ceiling.
        world.now_ns += 10_000_000;
    }
    Ok(())
}
