//! Work conservation: time on the link is not wasted.

use crate::{
    cases::{Case, Rate},
    laws,
    traces::{self, Greed},
    world::{CLASSES, Event, run, set},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::Core;

laws! {
    never_waits_in_vain: traces::of(traces::KINDS).by_flow().ceilings().peaks().guarantees().policing().limits().framing().changes().lateness();
    debts_to_the_others_are_bounded: traces::of(BY_DEBT).guarantees().greedy(Greed::Some);
    guarantees_go_first: traces::of(traces::KINDS).by_flow().ceilings().peaks().guarantees().policing().framing().changes().lateness();
    guarantees_hold_in_every_window: traces::of(0..abi::SL_PIFO).by_flow().guarantees().steady().greedy(Greed::First);
}

/// Disciplines that let a class go into debt to the others.
const BY_DEBT: [u32; 3] = [abi::SL_STRICT_PRIORITY, abi::SL_DEFICIT_ROUND_ROBIN, abi::SL_WEIGHTED_FAIR_QUEUING];

/// A guarantee takes a class no deeper into debt than a MiB, so that it is served again when the guarantee is used up.
fn debts_to_the_others_are_bounded(core: &'static Core, case: &Case) -> TestCaseResult {
    run(core, case, |world, event| {
        let Event::Sent(packet) = event else { return Ok(()) };
        let state = world.core.state();
        let class = &state.classes[packet.class];
        if state.kind == abi::SL_WEIGHTED_FAIR_QUEUING {
            let now = state.state_of::<abi::sl_virtual_sched>().time;
            let ahead =
                class.state_of::<abi::sl_virtual_class>().start.wrapping_sub(now) / world.virtual_cost(packet.class);
            prop_assert!(ahead <= 1 << 20, "class {} is {ahead} bytes ahead", packet.class);
        } else {
            let deficit = class.state_of::<abi::sl_drr_class>().deficit_bytes;
            prop_assert!(deficit >= -(1 << 20), "debt of class {}: {deficit}", packet.class);
        }
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
                        let opens = world.opens_ns(class);
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

/// A class that always wants more than its guarantee gets the guarantee in every window, whatever it or others sent before: in t seconds
/// at least rate * (t - burst) - 3 packets. Guarantees are half of the link in all, and their burst is what the longest packets of all
/// classes take twice.
fn guarantees_hold_in_every_window(core: &'static Core, case: &Case) -> TestCaseResult {
    let mut case = case.clone();
    let link = case.policy.link.expect("a steady link");
    let longest = case.longest();
    let burst_ns = 2 * link.time_ns(longest.iter().map(|&len| u64::from(len)).sum());
    let guaranteed = case.policy.classes.iter().skip(1).filter(|class| class.rate.is_some()).count() as u64 + 1;
    let share = Rate { cost: 2 * guaranteed * link.cost, burst_ns };
    case.policy.classes[0].rate = Some(share);
    let others = case.policy.classes.iter_mut().skip(1);
    others.for_each(|class| class.rate = class.rate.map(|_| share));

    let most = (i128::from(burst_ns) << 20) + 3 * i128::from(longest[0]) * i128::from(share.cost);
    // Time less what the class has got, in the time that it takes at its guarantee; and the least since it began to want more.
    let (mut got, mut least) = (0i128, None);
    run(core, &case, |world, event| {
        match event {
            Event::Asking if world.queues[0].is_empty() => least = None,
            Event::Asking => {
                let behind = (i128::from(world.now) << 20) - got;
                let begun = least.map_or(behind, |least: i128| least.min(behind));
                least = Some(begun);
                prop_assert!(behind - begun <= most, "{} ns behind its guarantee", (behind - begun) >> 20);
            }
            Event::Sent(packet) if packet.class == 0 => got += i128::from(packet.wire) * i128::from(share.cost),
            _ => {}
        }
        Ok(())
    })
}
