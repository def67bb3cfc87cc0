//! Classes before others: a class waits for a later one no longer than for what the port holds already.

use crate::{
    laws,
    port::Frame,
    traces,
    traces::{Case, PIPES, Step},
    world::World,
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::{backpressure::BackpressureCore, pipes::queue_number};

laws! {
    later_classes_do_not_delay: traces::of(80);
    a_class_with_room_is_served: traces::of(80);
}

/// Plays the arrivals of these classes; rounds follow each event. `look` is told of the world when rounds have ended.
fn play(
    core: &'static BackpressureCore,
    case: &Case,
    classes: u32,
    look: &mut dyn FnMut(&World) -> TestCaseResult,
) -> Result<Vec<(u64, Frame)>, TestCaseError> {
    let mut world = World::new(core, &case.lists, case.port);
    for (gap_ns, step) in &case.steps {
        world.advance(world.now_ns + gap_ns, true)?;
        let Step::Arrive { pipe, queue, bytes } = step else { continue };
        if classes >> crate::world::class_of(*queue) & 1 == 1 {
            for bytes in bytes {
                world.arrive(queue_number(PIPES[*pipe], *queue), *bytes)?;
            }
        }
        world.rounds()?;
        look(&world)?;
    }
    world.drain()?;
    Ok(world.sent)
}

/// The packets of a class and of those before it are sent when they would be sent without the later ones, if each class of the port has its own
/// rate; if classes of the port go first in their order, the packet that is being sent may delay them.
fn later_classes_do_not_delay(core: &'static BackpressureCore, case: &Case) -> TestCaseResult {
    let last = case.seed % (abi::SL_PIPE_CLASSES - 1);
    let early = (2 << last) - 1;
    let nothing: &mut dyn FnMut(&World) -> TestCaseResult = &mut |_| Ok(());
    let all = play(core, case, u32::MAX, nothing)?;
    let alone = play(core, case, early, nothing)?;
    case.port.shaper.delays_no_more_than_a_packet(last, &all, &alone)
}

/// When rounds have ended, a class that has packets in the scheduler has a full list, and the port has none left for it.
fn a_class_with_room_is_served(core: &'static BackpressureCore, case: &Case) -> TestCaseResult {
    play(core, case, u32::MAX, &mut |world| {
        let state = &world.backpressure.state().lists;
        for class in 0..abi::SL_PIPE_CLASSES {
            let place = class as usize;
            let waiting = world.waiting.values().filter(|frame| frame.class == class).count();
            prop_assert!(
                waiting <= state.pkts[place] as usize || state.pkts[place] == case.lists.room_pkts[place],
                "{} packets of class {} wait, and its list has {} of {}",
                waiting,
                class,
                state.pkts[place],
                case.lists.room_pkts[place]
            );
            prop_assert!(state.pkts[place] == 0 || world.port.room(class) == 0, "the port has room for {}", class);
        }
        Ok(())
    })?;
    Ok(())
}
