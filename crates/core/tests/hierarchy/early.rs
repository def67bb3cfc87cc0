//! Early drop (`sched/early_leaf.h`): a hook on arrivals drops what a leaf would drop, and no packet of a light flow.

use crate::{
    laws, traces,
    traces::{Case, Flow},
    world::{Event, World, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi::SL_FIRST_INNER as LINK;
use sluice_core::Underway;
use sluice_core::hierarchy::{Early, TreeCore};
use std::collections::BTreeMap;

laws! {
    one_queue_drops_while_it_is_full: traces::of(200).ceilings().limits().flows().edits();
    a_batch_passes_as_far_as_there_is_room: traces::of(200).ceilings().limits();
    light_flows_pass: traces::of(300).ceilings().limits().flows().uneven();
    the_longest_flow_of_a_full_leaf_does_not_pass: traces::of(300).ceilings().limits().flows().uneven();
    a_full_leaf_drops_by_itself: traces::of(300).ceilings().limits().flows().uneven();
    the_largest_leaves_drop_when_slots_run_out: traces::of(400).flows().few_slots().uneven();
}

/// Packets of one batch.
const BATCH: usize = 150;
/// A flow that sends nothing.
const SILENT: u32 = 0x5a5a_5a5a;

/// The verdict of a hook on a packet of this flow now, with nothing under way.
fn asked(world: &World, leaf: u32, hash: u32) -> Early {
    let packet = Flow { hash, ..Flow::default() }.packet(leaf, 100);
    world.tree.early(&mut Underway::default(), &packet, world.now_ns)
}

/// The packets that a leaf holds, and those that it may hold; none: so many as there are slots.
fn filled(world: &World, leaf: u32) -> (usize, Option<usize>) {
    let limit = world.nodes[&leaf].limit_pkts as usize;
    (world.queued(leaf).count(), (limit > 0).then_some(limit))
}

/// Leaves that hold packets of their own, by this kind of queue.
fn leaves(world: &World, one_queue: bool) -> impl Iterator<Item = u32> {
    let whole = world.nodes.keys().copied().filter(|node| *node < LINK && !world.is_divided(*node));
    whole.filter(move |leaf| world.has_one_queue(*leaf) == one_queue)
}

/// A hook drops the packets of a leaf with one queue exactly while that is full, and none of a divided leaf or of one that is not there.
fn one_queue_drops_while_it_is_full(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    run(core, case, &mut |world, event| {
        if matches!(event, Event::Dropped { .. }) {
            // Others may have been dropped with it, and are yet to be reaped.
            return Ok(());
        }
        for leaf in leaves(world, true) {
            let (pkts, limit) = filled(world, leaf);
            let due = if limit.is_some_and(|limit| pkts >= limit) { Early::Full } else { Early::Passes };
            prop_assert_eq!(asked(world, leaf, 0), due, "leaf {} has {} of {:?}", leaf, pkts, limit);
        }
        for leaf in (0..20).filter(|leaf| !world.nodes.contains_key(leaf)) {
            prop_assert_eq!(asked(world, leaf, 0), Early::Passes, "leaf {} is not there", leaf);
        }
        for leaf in world.nodes.keys().copied().filter(|node| *node < LINK && world.is_divided(*node)) {
            prop_assert_eq!(asked(world, leaf, 0), Early::Passes, "leaf {} is divided", leaf);
        }
        Ok(())
    })
    .map(drop)
}

/// Of packets that come to the hook before any of them comes to the queue, as many pass as there is room for.
fn a_batch_passes_as_far_as_there_is_room(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    run(core, case, &mut |world, event| {
        let Event::Arrived { leaf, .. } = *event else { return Ok(()) };
        let (pkts, Some(limit)) = filled(world, leaf) else { return Ok(()) };
        let (mut underway, packet) = (Underway::default(), Flow::default().packet(leaf, 100));
        let passes = |_: &usize| world.tree.early(&mut underway, &packet, world.now_ns) == Early::Passes;
        prop_assert_eq!((0..BATCH).filter(passes).count(), limit - pkts, "of {} packets of {}", pkts, limit);
        Ok(())
    })
    .map(drop)
}

/// The flows of a leaf: packets and bytes of each.
fn flows(world: &World, leaf: u32) -> BTreeMap<u32, (usize, u32)> {
    let of_leaf = world.flows.range((leaf, 0)..=(leaf, u32::MAX)).filter(|(_, queue)| !queue.is_empty());
    of_leaf.map(|(key, queue)| (key.1, (queue.len(), queue.iter().map(|packet| packet.bytes).sum()))).collect()
}

/// The bytes of the longest flow of so many packets but this one; 0: there is none.
fn longest_but(all: &BTreeMap<u32, (usize, u32)>, hash: u32, pkts: usize) -> u32 {
    all.iter().filter(|(other, queue)| **other != hash && queue.0 >= pkts).map(|(_, queue)| queue.1).max().unwrap_or(0)
}

/// A flow passes that has less than a quarter of the bytes of another one, of two packets and 4 KiB or more; and each flow while the leaf has less
/// than seven eighths of its limit. A flow that has no packets in the leaf passes until the leaf is full, and then while any flow has two.
fn light_flows_pass(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    run(core, case, &mut |world, event| {
        let Event::Arrived { .. } = event else { return Ok(()) };
        for leaf in leaves(world, false) {
            let ((pkts, limit), all) = (filled(world, leaf), flows(world, leaf));
            for hash in all.keys().copied().chain([SILENT]) {
                let (own_pkts, own) = all.get(&hash).copied().unwrap_or_default();
                match asked(world, leaf, hash) {
                    Early::Passes => {}
                    Early::Full => {
                        prop_assert!(limit.is_some_and(|limit| pkts >= limit), "there is room: {pkts} of {limit:?}");
                        prop_assert_eq!(longest_but(&all, SILENT, 2), 0, "the queue would drop of a longer flow");
                    }
                    Early::Long => {
                        prop_assert!(limit.is_some_and(|limit| pkts >= limit - limit / 8), "{pkts} of {limit:?}");
                        let longest = longest_but(&all, hash, 2);
                        prop_assert!(own_pkts > 0, "no packet of the flow has come there");
                        prop_assert!(4 * own >= longest || longest < 4096, "{own} bytes beside {longest}");
                    }
                }
            }
        }
        Ok(())
    })
    .map(drop)
}

/// A flow of a full leaf that has two packets and more than twice the bytes of every other one does not pass.
fn the_longest_flow_of_a_full_leaf_does_not_pass(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    run(core, case, &mut |world, event| {
        let Event::Arrived { .. } = event else { return Ok(()) };
        for leaf in leaves(world, false) {
            let ((pkts, limit), all) = (filled(world, leaf), flows(world, leaf));
            if limit.is_none_or(|limit| pkts < limit) {
                continue;
            }
            for (hash, (own_pkts, own)) in &all {
                let is_longest = *own_pkts > 1 && *own > 2 * longest_but(&all, *hash, 1);
                let found = asked(world, leaf, *hash);
                prop_assert!(found == Early::Long || !is_longest, "{found:?} with {own} bytes among {all:?}");
            }
        }
        Ok(())
    })
    .map(drop)
}

/// Where the hook drops because a leaf is full, the leaf refuses the packet, or drops others to make room for it.
fn a_full_leaf_drops_by_itself(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    let mut dropped_before = BTreeMap::new();
    run(core, case, &mut |world, event| {
        if let Event::Arrived { leaf, .. } = *event {
            let before = dropped_before.get(&leaf).copied().unwrap_or(0);
            let dropped = dropped_pkts(world, leaf);
            prop_assert!(world.early != Early::Full || dropped > before, "leaf {leaf} has taken the packet");
        }
        if !matches!(event, Event::Dropped { .. }) {
            for leaf in world.nodes.keys().copied().filter(|node| *node < LINK) {
                dropped_before.insert(leaf, dropped_pkts(world, leaf));
            }
        }
        Ok(())
    })
    .map(drop)
}

/// When slots run out, a hook drops packets of leaves that have at least a quarter of the packets that any leaf has, and of no others; and those of a
/// leaf with one queue that has twice as many as every other leaf.
fn the_largest_leaves_drop_when_slots_run_out(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    run(core, case, &mut |world, event| {
        let Event::Arrived { .. } = event else { return Ok(()) };
        let (pkts, room) = (world.tree.state().pkts, world.tree.state().room_from_pkts);
        let queued = |leaf: u32| world.queued(leaf).count();
        let all: BTreeMap<u32, usize> =
            [true, false].into_iter().flat_map(|kind| leaves(world, kind)).map(|leaf| (leaf, queued(leaf))).collect();
        for (leaf, own) in &all {
            let hash = flows(world, *leaf).keys().next().copied().unwrap_or(SILENT);
            let found = asked(world, *leaf, hash);
            let largest = all.iter().filter(|(other, _)| *other != leaf).map(|(_, pkts)| *pkts).max().unwrap_or(0);
            let from = if world.has_one_queue(*leaf) { room } else { room - room / 8 };
            prop_assert!(found == Early::Passes || pkts >= from, "{found:?} with {pkts} of {room} packets");
            prop_assert!(found == Early::Passes || 4 * own >= largest, "{found:?}: {own} packets beside {largest}");
            let gives = world.has_one_queue(*leaf) && pkts >= room && *own >= 4 && *own > 2 * largest;
            prop_assert!(!gives || found == Early::Full, "{found:?}: {own} packets beside {largest}");
        }
        Ok(())
    })
    .map(drop)
}

/// Packets that a leaf has refused or dropped.
fn dropped_pkts(world: &World, leaf: u32) -> u32 {
    world.tree.leaf(leaf).dropped_pkts.iter().sum()
}
