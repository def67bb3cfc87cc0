//! Guarantees are kept.

use crate::{
    laws, traces,
    traces::{Case, LONGEST},
    world::{Event, TICK_NS, World},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi::SL_FIRST_INNER as LINK;
use sluice_core::hierarchy::{Bucket, Node, TreeCore};
use std::collections::BTreeMap;

laws! {
    kept_in_every_window: traces::of(150).guarantees().disciplines();
}

/// The number of nodes below each parent.
fn siblings(case: &Case, parent: u32) -> u32 {
    case.nodes().filter(|(_, node)| node.parent == parent).count() as u32
}

/// The case with guarantees that fit: what siblings have adds up to what their parent has, or the link. Also the bytes by which each guarantee
/// may be late, by node.
///
/// Since a parent had no child whose guarantee has tokens, each child has sent a packet more than its guarantee at most, and what comes of
/// looking at it a tick late. So what a parent sends less than that was one packet of each sibling, and one that was under way. As much
/// again is allowed for children that are woken together, 8 in a call; four ticks of the parent's rate for the wheels; and what the parent is
/// late itself. With a burst of that, no token is lost.
fn fitted(case: &Case) -> (Case, BTreeMap<u32, f64>) {
    let mut case = case.clone();
    let whole: Vec<(u32, Node)> = case.nodes().copied().collect();
    let mut rates = BTreeMap::from([(LINK, case.link.bits_per_second)]);
    let mut late = BTreeMap::from([(LINK, 0.0)]);
    let counts: BTreeMap<u32, u32> =
        whole.iter().map(|(_, node)| (node.parent, siblings(&case, node.parent))).collect();
    // The bursts of all but the first leaf may be longer, which is none of its business.
    let seed = case.seed;
    let longer = |number: u32| if number == 0 { 1.0 } else { f64::from(1 + 4 * (seed >> (number % 29) & 7)) };
    let weights =
        |parent: u32| whole.iter().filter(|(_, node)| node.parent == parent).map(|(_, node)| node.weight).sum::<u32>();
    for (number, node) in case.inners.iter_mut().chain(&mut case.leaves) {
        let above = rates[&node.parent];
        let rate = above * u64::from(node.weight) / u64::from(weights(node.parent));
        let packets = f64::from((2 * counts[&node.parent] + 2) * LONGEST);
        let bytes = late[&node.parent] + packets + 4.0 * TICK_NS as f64 * above as f64 / 8e9;
        let burst_ns = (bytes * 8e9 / rate as f64 * longer(*number)) as u32;
        node.rate = Some(Bucket { bits_per_second: rate, burst_ns });
        rates.insert(*number, rate);
        late.insert(*number, bytes);
    }
    (case, late)
}

/// In any window in which a leaf has packets all the time, it sends its guarantee, but for what it may be late and a packet: whatever its
/// siblings do, before and in the window. The first leaf has packets from the middle of the trace on, and others all the time or as the trace says;
/// or the first has them all the time, and borrows what others leave until they come.
fn kept_in_every_window(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    let (case, late) = fitted(case);
    // Nodes have no lower rates, and no longer bursts.
    prop_assume!(
        case.nodes()
            .all(|(_, node)| node.rate.is_some_and(|rate| rate.bits_per_second > 40_000 && rate.burst_ns < u32::MAX))
    );
    let mut world = World::new(core, &case);
    let first = case.leaves[0].0;
    let rate = world.nodes[&first].rate.expect("all have one").bits_per_second as f64 / 8e9;
    // Bytes due but for the guarantee, since the window that is worst began.
    let (mut due, mut at_ns, mut since) = (0.0_f64, 0, false);
    let allowed = late[&first] + 2.0 * f64::from(LONGEST);
    let mut observe = |world: &World, event: &Event| {
        if since {
            due += (world.now_ns - at_ns) as f64 * rate * 0.999;
            prop_assert!(due <= allowed, "{} bytes less than the guarantee, and {} are allowed", due, allowed);
        }
        at_ns = world.now_ns;
        since = world.backlogged.contains(&first);
        if let Event::Sent { leaf, bytes, .. } = *event
            && leaf == first
        {
            due = (due - f64::from(bytes)).max(0.0);
        }
        Ok(())
    };
    let others = case.leaves[1..].iter().map(|(leaf, _)| *leaf).filter(|leaf| case.seed >> leaf & 1 == 0).collect();
    let (early, later) = if case.seed >> 20 & 1 == 0 { (others, vec![first]) } else { (vec![first], others) };
    world.keep_busy(&early, &mut observe)?;
    let begins = case.steps.len() / 2;
    for (index, (gap_ns, step)) in case.steps.iter().enumerate() {
        world.advance(world.now_ns + gap_ns.min(&2_000_000), &mut observe)?;
        if let traces::Step::Arrive { leaf, bytes, .. } = *step {
            world.arrive(case.leaves[leaf % case.leaves.len()].0, bytes, &mut observe)?;
        }
        if index == begins {
            world.keep_busy(&later, &mut observe)?;
        }
    }
    world.advance(world.now_ns + 50_000_000, &mut observe)
}
