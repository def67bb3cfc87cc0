//! Strict priority among the children of a node, and turns of a packet.

use crate::{
    laws, traces,
    traces::Case,
    world::{Event, World, play, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_core::hierarchy::{Discipline, Node, TreeCore};
use std::collections::BTreeMap;

laws! {
    never_inverts: traces::of(200).disciplines();
    equals_take_turns: traces::of(200).serving(&[Discipline::Priority, Discipline::RoundRobin]);
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
            if world.nodes[&chosen.parent].discipline == Discipline::Priority {
                prop_assert!(chosen.priority <= passed.priority, "leaf {} sends before leaf {}", leaf, busy);
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// Children of one priority that stay ready take turns of one packet; where priorities do not count, all children. Before, all nodes have served by elastic
/// round robin, and children are in different rounds.
fn equals_take_turns(core: &'static TreeCore, case: &Case) -> TestCaseResult {
    let mut world = World::new(core, case);
    let own = world.nodes.clone();
    for (number, node) in &own {
        let node = Node { discipline: Discipline::Elastic, ..*node };
        world.configure(*number, node, &mut |_, _| Ok(()))?;
    }
    for _ in 0..4 {
        for (leaf, _) in case.leaves.iter().skip(1) {
            world.arrive(*leaf, 1000, &mut |_, _| Ok(()))?;
        }
    }
    world.advance(world.now_ns + 1_000_000_000, &mut |_, _| Ok(()))?;
    for (number, node) in own {
        world.configure(number, node, &mut |_, _| Ok(()))?;
    }
    // By node: when it was served last, and when packets came below it that were not there before.
    let mut served = BTreeMap::<u32, u64>::new();
    let mut ready = BTreeMap::<u32, u64>::new();
    let mut clock = 0;
    play(world, case, &mut |world, event| {
        clock += 1;
        if let Event::Sent { leaf, .. } = *event {
            for child in world.way(leaf) {
                let node = &world.nodes[&child];
                let before = served.insert(child, clock).unwrap_or(0);
                if child == sluice_abi::SL_FIRST_INNER {
                    continue;
                }
                let by_priority = world.nodes[&node.parent].discipline == Discipline::Priority;
                let siblings = world.nodes.iter().filter(|(number, sibling)| {
                    **number != child
                        && **number != sluice_abi::SL_FIRST_INNER
                        && sibling.parent == node.parent
                        && (!by_priority || sibling.priority == node.priority)
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
