//! A packet leaves when it may.

use crate::{
    laws, traces,
    traces::{Case, LONGEST, OVERHEAD},
    world::{Event, TICK_NS, World, class_of, is_second, pipe_of, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::pipes::{ALL_CLASSES, PipesCore};
use std::collections::BTreeMap;

laws! {
    never_idles: traces::of(150).rates().class_limits().masks().edits();
    wakes_in_time: traces::of(100).rates().class_limits();
}

/// The length of a wheel.
const WHEEL_NS: u64 = abi::SL_WHEEL_BUCKETS as u64 * TICK_NS;

/// Since when a bucket of the core has tokens.
fn opens_ns(bucket: &abi::sl_bucket) -> u64 {
    bucket.tat_ns.saturating_sub(bucket.burst_ns)
}

/// Whether a queue's packets may not leave yet, by the buckets of everything above it, and by when classes of pipes have sent last.
fn is_held_up(world: &World, queue: u32, last_ns: &BTreeMap<(u32, u32), u64>) -> bool {
    let (state, pipe, class) = (world.pipes.state(), pipe_of(queue), class_of(queue) as usize);
    let subport = &state.subport[if is_second(pipe) { 0 } else { 3 }];
    let k = &state.pipe[pipe as usize];
    let pipe_opens_ns = k.tat_64ths.div_ceil(64).saturating_sub(u64::from(k.burst_ticks) << abi::SL_WHEEL_TICK_BITS);
    // A class has credit again when its last packet and a period are paid.
    let profile = world.profile(pipe);
    let limit_ends_ns = profile.classes[class].map_or(0, |rate| {
        let packet_ns = u64::from(LONGEST + OVERHEAD) * 8_000_000_000 / rate;
        last_ns
            .get(&(pipe, class as u32))
            .map_or(0, |last| last + packet_ns + (2 << profile.period_bits()) + 2 * TICK_NS)
    });
    opens_ns(&state.bucket) > world.now_ns
        || opens_ns(&subport.bucket) > world.now_ns
        || (subport.limited >> (queue % abi::SL_PIPE_QUEUES) & 1 == 1
            && subport.class_left[class] <= 0
            && opens_ns(&subport.class_bucket[class]) + 1000 > world.now_ns)
        || pipe_opens_ns + TICK_NS > world.now_ns
        || limit_ends_ns > world.now_ns
}

/// A call that has finished, and gave less than was asked for, leaves no packet behind of a class that may send, unless something above it has no
/// tokens; what waits in a wheel may be a bucket of it late.
fn never_idles(core: &'static PipesCore, case: &Case) -> TestCaseResult {
    // When classes of pipes have sent last, or were configured.
    let (mut last_ns, mut profiled_ns) = (BTreeMap::new(), BTreeMap::new());
    run(core, case, &mut |world, event| {
        match *event {
            Event::Sent { queue, .. } => {
                last_ns.insert((pipe_of(queue), class_of(queue)), world.now_ns);
            }
            // Pipes that wait for the old limits look at the new ones when the wheel is round.
            Event::Profiled { pipe } => {
                profiled_ns.insert(pipe, world.now_ns + WHEEL_NS);
            }
            Event::Configured { pipe } => {
                for class in 0..abi::SL_PIPE_CLASSES {
                    last_ns.insert((pipe, class), world.now_ns);
                }
            }
            Event::Ended { classes } => {
                for queue in world.busy().filter(|queue| classes >> class_of(*queue) & 1 == 1) {
                    if profiled_ns.get(&pipe_of(queue)) > Some(&world.now_ns) {
                        continue;
                    }
                    prop_assert!(
                        is_held_up(world, queue, &last_ns),
                        "at {} queue {} might have sent, of {:x}",
                        world.now_ns,
                        queue,
                        classes
                    );
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(())
}

/// The time to call again is early enough: nothing may leave before it, and a packet leaves soon after it.
fn wakes_in_time(core: &'static PipesCore, case: &Case) -> TestCaseResult {
    let nothing: &mut crate::world::Observer<'_> = &mut |_, _| Ok(());
    let mut world = World::new(core, case);
    let mut vain = 0;
    for (index, (gap_ns, step)) in case.steps.iter().enumerate() {
        if let traces::Step::Arrive { pipe, queue, bytes } = step {
            let queue = traces::PIPES[pipe % traces::PIPES.len()] * abi::SL_PIPE_QUEUES + queue;
            world.arrive(&bytes.iter().map(|bytes| (queue, *bytes)).collect::<Vec<_>>(), nothing)?;
        }
        let until_ns = world.now_ns + gap_ns;
        loop {
            let got = world.take(64, ALL_CLASSES, None, nothing)?;
            vain = if got == 0 { vain + 1 } else { 0 };
            prop_assert!(vain < 2000 + index, "it is called again and again for nothing");
            if got == 64 {
                continue;
            }
            let wake_ns = world.pipes.wake_ns(ALL_CLASSES, world.now_ns);
            if let Some(wake_ns) = wake_ns {
                prop_assert!(wake_ns > world.now_ns, "the call had finished");
                // In between, nothing may leave.
                let now_ns = world.now_ns;
                world.now_ns = now_ns + (wake_ns - now_ns) / 2;
                let early = world.take(1, ALL_CLASSES, None, nothing)?;
                prop_assert_eq!(early, 0, "a packet leaves at {}, and {} was said", world.now_ns, wake_ns);
                if wake_ns < until_ns {
                    world.now_ns = wake_ns;
                    continue;
                }
            } else {
                prop_assert!(world.busy().next().is_none(), "it waits for nothing, and has packets");
            }
            break;
        }
        world.now_ns = world.now_ns.max(until_ns);
    }
    Ok(())
}
