//! Work conservation: time on the link is not wasted.

use crate::{
    cases::Case,
    laws,
    traces::{self, Greed},
    world::{CLASSES, Event, run, set},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::Core;

laws! {
    never_waits_in_vain: traces::of(traces::KINDS).by_flow().ceilings().guarantees().policing().limits().framing().changes().lateness();
    debts_to_the_others_are_bounded: traces::of(BY_DEBT).guarantees().greedy(Greed::Some);
    guarantees_go_first: traces::of(traces::KINDS).by_flow().ceilings().guarantees().policing().framing().changes().lateness();
}

/// Disciplines that let a class go into debt to the others.
const BY_DEBT: [u32; 3] = [abi::SL_STRICT_PRIORITY, abi::SL_DEFICIT_ROUND_ROBIN, abi::SL_WEIGHTED_FAIR_QUEUING];

/// A guarantee takes a class no deeper into debt than a MiB, so that it is served again when the guarantee is used up.
fn debts_to_the_others_are_bounded(core: &'static Core, case: &Case) -> TestCaseResult {
    run(core, case, |world, event| {
        let Event::Sent(packet) = event else { return Ok(()) };
        let state = world.core.state();
        let class = &state.classes[packet.class];
        prop_assert!(class.deficit_bytes >= -(1 << 20), "debt of class {}: {}", packet.class, class.deficit_bytes);
        let ahead = class.virtual_start.wrapping_sub(state.virtual_time) / world.virtual_cost(packet.class);
        prop_assert!(ahead <= 1 << 20, "class {} is {ahead} bytes ahead", packet.class);
        Ok(())
    })
}

/// Never idle with packets. It waits only while the link has no tokens, or no class with packets has any, and for no
/// longer: the time that it names is not past, and not after the first at which that changes.
fn never_waits_in_vain(core: &'static Core, case: &Case) -> TestCaseResult {
    run(core, case, |world, event| {
        let with_packets = (0..CLASSES).filter(|&class| !world.queues[class].is_empty());
        match *event {
            Event::Idle => prop_assert_eq!(with_packets.count(), 0, "idle with packets"),
            Event::Waits(until) => {
                prop_assert!(until > world.now, "at {} it waits until {}", world.now, until);
                if world.link.open(world.now) {
                    for class in with_packets {
                        prop_assert!(!world.has_tokens(class), "class {} has tokens, and it waits", class);
                        let opens = world.ceil[class].opens_ns();
                        prop_assert!(until <= opens, "waits until {}, class {} has tokens at {}", until, class, opens);
                    }
                } else {
                    prop_assert!(until <= world.link.opens_ns(), "waits until {until}, link {:?}", world.link);
                }
            }
            _ => {}
        }
        Ok(())
    })
}

/// A class that is ready and has not used up its guarantee goes before every class that has none or has used it up. A
/// PIFO knows no guarantees: there the rank decides.
fn guarantees_go_first(core: &'static Core, case: &Case) -> TestCaseResult {
    let mut first = 0u64;
    run(core, case, |world, event| {
        match event {
            Event::Asking => {
                let green = |&class: &usize| world.rate[class].limits() && world.rate[class].open(world.now);
                first = set(world.ready().filter(green));
            }
            Event::Sent(packet) if world.policy.kind != abi::SL_PIFO => {
                let allowed = first == 0 || first >> packet.class & 1 == 1;
                prop_assert!(allowed, "class {} goes before the classes {first:#x}", packet.class);
            }
            _ => {}
        }
        Ok(())
    })
}
