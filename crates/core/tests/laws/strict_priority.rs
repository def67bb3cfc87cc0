//! Strict priority.

use crate::{
    cases::Case,
    deficit_round_robin::{RoundFairness, waits_at_most},
    fairness::Waiting,
    laws,
    traces::{self, Greed},
    world::{Event, run, set},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::Core;

laws! {
    never_inverts: traces::of([abi::SL_STRICT_PRIORITY]).by_flow().ceilings().peaks().guarantees().policing().framing().changes().lateness();
    classes_of_a_level_do_not_starve: traces::of([abi::SL_STRICT_PRIORITY]).by_flow().ceilings().peaks().greedy(Greed::Some);
    shares_a_level_by_quantum: traces::of([abi::SL_STRICT_PRIORITY]).by_flow().ceilings().peaks().greedy(Greed::Some);
}

/// No packet is sent while a class of a lower level is ready, but by guarantee.
fn never_inverts(core: &'static Core, case: &Case) -> TestCaseResult {
    let (mut lowest, mut guaranteed) = (None, 0u64);
    run(core, case, |world, event| {
        let level = |class: usize| world.policy.classes.get(class).map_or(0, |policy| policy.level);
        match event {
            Event::Asking => {
                lowest = world.ready().map(level).min();
                let green = |&class: &usize| world.rate[class].limits() && world.rate[class].open(world.now);
                guaranteed = set(world.ready().filter(green));
            }
            Event::Sent(packet) if guaranteed >> packet.class & 1 == 0 => {
                let level = level(packet.class);
                prop_assert_eq!(Some(level), lowest, "class {} is sent, a lower level waits", packet.class);
            }
            _ => {}
        }
        Ok(())
    })
}

/// Classes of one level share it by deficit round robin, with its bound.
fn shares_a_level_by_quantum(core: &'static Core, case: &Case) -> TestCaseResult {
    let mut fairness = RoundFairness::new(case);
    run(core, case, |world, event| {
        let level = |class: usize| world.policy.classes[class].level;
        fairness.observe(world, event, |a, b| level(a) == level(b))
    })
}

/// A class waits for no more of the others of its level than in deficit round robin.
fn classes_of_a_level_do_not_starve(core: &'static Core, case: &Case) -> TestCaseResult {
    let (mut waiting, longest) = (Waiting::new(), case.longest());
    run(core, case, |world, event| {
        let level = |class: usize| world.policy.classes[class].level;
        waiting.observe(world, event, |i, j, sent| {
            let most = if level(i) == level(j) { waits_at_most(world, &longest, i, j) } else { u64::MAX };
            (sent[j], most)
        })
    })
}
