//! A packet leaves when it may.

use crate::{
    laws, traces,
    traces::Case,
    world::{Event, TICK_NS, World, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_core::hierarchy::TreeCore;

laws! {
    never_waits_in_vain: traces::of(200).ceilings().guarantees().disciplines().flows().edits();
}

/// When the ceiling of a node has tokens.
fn opens_ns(world: &World, node: u32) -> u64 {
    let ceil = &world.tree.state().node[node as usize].bucket[0];
    ceil.tat_64ths.div_ceil(64).saturating_sub(u64::from(ceil.burst_ns))
}

/// The device waits no longer than until every node on the way of some packet has tokens, and a bucket of the wheel. So whenever a leaf with
/// packets has had tokens on its whole way for that long, a packet leaves. Where more nodes are due than a call wakes, it is to call again.
fn never_waits_in_vain(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    let mut again = 0;
    run(core, case, &mut |world, event| {
        let Event::Waits(wake_ns) = *event else { return Ok(()) };
        again = if wake_ns == world.now_ns + 1 { again + 1 } else { 0 };
        prop_assert!(again <= 3, "called again {} times", again);
        for leaf in world.busy() {
            let open_ns = world.way(leaf).iter().map(|node| opens_ns(world, *node)).max().expect("the link");
            let latest_ns = (open_ns + TICK_NS).max(world.now_ns + 1);
            prop_assert!(
                wake_ns <= latest_ns,
                "waits until {} at {}, and leaf {} may send at {}",
                wake_ns,
                world.now_ns,
                leaf,
                open_ns
            );
        }
        Ok(())
    })?;
    Ok(())
}
