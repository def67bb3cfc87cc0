//! Whatever is asked for, the tree stays a tree.

use crate::{
    laws,
    traces::{self, Case, Step},
    world::World,
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi::{SL_FIRST_INNER as LINK, SL_TREE_LEVELS};
use sluice_core::hierarchy::{Node, TreeCore, Verdict};
use std::collections::BTreeMap;

laws! {
    the_tree_stays_a_tree: traces::of(200).structure();
}

/// The parents of the nodes that are configured.
type Parents = BTreeMap<u32, u32>;

fn depth(parents: &Parents, node: u32) -> u32 {
    if node == LINK { 0 } else { 1 + depth(parents, parents[&node]) }
}

fn may_join(parents: &Parents, node: u32, parent: u32) -> bool {
    if node == LINK {
        return true;
    }
    let is_inner = |node: u32| (LINK..LINK + sluice_abi::SL_INNERS).contains(&node);
    if node >= LINK + sluice_abi::SL_INNERS || node == parent || !is_inner(parent) {
        return false;
    }
    if parent != LINK && !parents.contains_key(&parent) {
        return false;
    }
    let deep = depth(parents, parent) + 1;
    let most = SL_TREE_LEVELS - if is_inner(node) { 2 } else { 1 };
    let has_children = parents.values().any(|above| *above == node);
    deep <= most && (!is_inner(node) || !has_children || deep == depth(parents, node))
}

/// A node joins exactly the parents that exist, that are not below it, and under which every leaf has a way of `SL_TREE_LEVELS` nodes at most to the link;
/// one with children keeps its level. Nodes with children or packets are not removed. Afterwards all packets leave.
fn the_tree_stays_a_tree(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    let mut world = World::new(core, case);
    let mut parents: Parents = case.nodes().map(|(number, node)| (*number, node.parent)).collect();
    for (_, step) in &case.steps {
        match *step {
            Step::Join { node, parent } => {
                let may = may_join(&parents, node, parent);
                let answer = world.tree.configure(node, &Node::below(parent), world.now_ns);
                prop_assert_eq!(answer.is_ok(), may, "node {} below {}: {:?}", node, parent, answer);
                if may && node != LINK {
                    parents.insert(node, parent);
                }
            }
            Step::Remove { node } => {
                let busy = node < LINK && world.tree.leaf(node).pkts > 0;
                let may = parents.contains_key(&node) && !busy && !parents.values().any(|parent| *parent == node);
                let answer = world.tree.remove(node);
                prop_assert_eq!(answer.is_ok(), may, "removing node {}: {:?}", node, answer);
                if may {
                    parents.remove(&node);
                }
            }
            Step::Arrive { leaf, bytes, .. } => {
                let leaf = leaf as u32 % 12;
                let taken = world.tree.enqueue(leaf, bytes, world.now_ns).is_ok();
                prop_assert_eq!(taken, parents.contains_key(&leaf), "leaf {}", leaf);
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
