//! Work conservation: time on the link is not wasted.

use crate::{
    laws,
    traces::{self, Case},
    world::{CLASSES, Event, run, set},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_core::Core;

laws! {
    never_waits_in_vain: traces::of(traces::KINDS).ceilings().guarantees().policing().limits().framing().changes().lateness();
    guarantees_go_first: traces::of(traces::KINDS).ceilings().guarantees().policing().framing().changes().lateness();
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
            Event::Sent(packet) if world.policy.kind != sluice_abi::SL_PIFO => {
                let allowed = first == 0 || first >> packet.class & 1 == 1;
                prop_assert!(allowed, "class {} goes before the classes {first:#x}", packet.class);
            }
            _ => {}
        }
        Ok(())
    })
}
