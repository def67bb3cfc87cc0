//! No node sends more than its ceiling, and the link sends no less.

use crate::{
    laws, traces,
    traces::Case,
    world::{Event, World, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi::SL_FIRST_INNER as LINK;
use sluice_core::hierarchy::TreeCore;
use std::collections::BTreeMap;

laws! {
    no_node_exceeds_its_ceiling: traces::of(200).ceilings().guarantees().disciplines().flows().framing().edits();
    the_link_is_exact: traces::of(0);
}

/// Bytes that a node has sent beyond its ceiling, and when that was.
#[derive(Default, Clone, Copy)]
struct Excess {
    bytes: f64,
    at_ns: u64,
}

/// In every window of t seconds a node sends at most ceil * t + burst + one packet. That is so if a bucket that leaks by the ceiling never
/// holds more than the burst before a packet is added. A new ceiling finds what the bucket holds.
fn no_node_exceeds_its_ceiling(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    let mut excess = BTreeMap::<u32, Excess>::new();
    let mut ceilings: BTreeMap<u32, f64> = BTreeMap::new();
    run(core, case, &mut |world, event| {
        let leak = |excess: &mut BTreeMap<u32, Excess>, ceilings: &BTreeMap<u32, f64>, node: u32| {
            let held = excess.entry(node).or_default();
            // A node without a ceiling holds nothing.
            let leaked = ceilings.get(&node).map_or(held.bytes, |ceil| (world.now_ns - held.at_ns) as f64 * ceil);
            *held = Excess { bytes: (held.bytes - leaked).max(0.0), at_ns: world.now_ns };
        };
        if let Event::Edited(node) = *event {
            leak(&mut excess, &ceilings, node);
            ceilings.remove(&node);
            if world.nodes.get(&node).is_none_or(|node| node.ceil.is_none()) {
                excess.remove(&node);
            }
        }
        for (number, node) in &world.nodes {
            match node.ceil {
                Some(ceil) => drop(ceilings.insert(*number, ceil.bits_per_second as f64 / 8e9)),
                None => drop(ceilings.remove(number)),
            }
        }
        if let Event::Sent { leaf, bytes, .. } = *event {
            for node in world.way(leaf) {
                leak(&mut excess, &ceilings, node);
                let Some(ceil) = world.nodes[&node].ceil else { continue };
                let held = excess.get_mut(&node).expect("it has leaked");
                let burst = f64::from(ceil.burst_ns) * ceilings[&node];
                prop_assert!(
                    held.bytes <= burst * 1.001 + 2.0,
                    "node {} holds {} bytes, and its burst is {burst}",
                    node,
                    held.bytes
                );
                held.bytes += f64::from(bytes + case.overhead);
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// While leaves have packets, the link sends its rate to 0.1 % over 10 seconds.
fn the_link_is_exact(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    let mut case = case.clone();
    case.link.bits_per_second /= 10;
    let mut sent = 0;
    let mut world = World::new(core, &case);
    let mut count = |_: &World, event: &Event| {
        if let Event::Sent { bytes, .. } = *event {
            sent += u64::from(bytes);
        }
        Ok(())
    };
    let leaves: Vec<u32> = case.leaves.iter().map(|(number, _)| *number).collect();
    world.keep_busy(&leaves, &mut count)?;
    world.advance(world.now_ns + 10_000_000_000, &mut count)?;
    let rate = world.nodes[&LINK].ceil.expect("links have one");
    let due = 10.0 * rate.bits_per_second as f64 / 8.0;
    let burst = f64::from(rate.burst_ns) * rate.bits_per_second as f64 / 8e9;
    let sent = sent as f64;
    prop_assert!(sent >= due * 0.999 && sent <= due * 1.001 + burst + 1514.0, "{} bytes instead of {}", sent, due);
    Ok(())
}
