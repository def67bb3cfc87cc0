//! Strict priority among the children of a node.

use crate::{
    laws, traces,
    traces::Case,
    world::{Event, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_core::hierarchy::TreeCore;
use std::collections::BTreeMap;

laws! {
    never_inverts: traces::of(200).priorities();
    equals_take_turns: traces::of(200).priorities();
}

/// Where a node serves by priority, no child sends while a sibling of a higher priority has packets below it.
fn never_inverts(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    run(core, case, &mut |world, event| {
        let Event::Sent { leaf, .. } = *event else { return Ok(()) };
        let way = world.way(leaf);
        for busy in world.busy() {
            let other = world.way(busy);
            // The two children at which the ways part.
            let Some((chosen, passed)) = way.iter().rev().zip(other.iter().rev()).find(|(a, b)| a != b) else {
                continue;
            };
            let (chosen, passed) = (&world.nodes[chosen], &world.nodes[passed]);
            if world.nodes[&chosen.parent].serves_by_priority {
                prop_assert!(chosen.priority <= passed.priority, "leaf {} sends before leaf {}", leaf, busy);
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// Children of one priority that stay ready take turns of one packet.
fn equals_take_turns(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    // By node: when it was served last, and when packets came below it that were not there before.
    let mut served = BTreeMap::<u32, u64>::new();
    let mut ready = BTreeMap::<u32, u64>::new();
    let mut clock = 0;
    run(core, case, &mut |world, event| {
        clock += 1;
        if let Event::Sent { leaf, .. } = *event {
            for child in world.way(leaf) {
                let node = &world.nodes[&child];
                let before = served.insert(child, clock).unwrap_or(0);
                if child == sluice_abi::SL_FIRST_INNER || !world.nodes[&node.parent].serves_by_priority {
                    continue;
                }
                let siblings = world.nodes.iter().filter(|(number, sibling)| {
                    **number != child
                        && **number != sluice_abi::SL_FIRST_INNER
                        && sibling.parent == node.parent
                        && sibling.priority == node.priority
                });
                for (sibling, _) in siblings {
                    let waits = ready.get(sibling).is_some_and(|since| *since < before);
                    let last = served.get(sibling).copied().unwrap_or(0);
                    prop_assert!(
                        before == 0 || !waits || last > before,
                        "node {} has a turn before node {}",
                        child,
                        sibling
                    );
                }
            }
        }
        let busy: Vec<u32> = world.busy().flat_map(|leaf| world.way(leaf)).collect();
        ready.retain(|node, _| busy.contains(node));
        for node in busy {
            ready.entry(node).or_insert(clock);
        }
        Ok(())
    })?;
    Ok(())
}
