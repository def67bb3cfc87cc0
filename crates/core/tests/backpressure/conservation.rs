//! Nothing is lost, nothing is made, order is kept, and lists keep within their room.

use crate::{
    laws, traces,
    traces::{Case, PIPES, Step},
    world::{World, play, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_core::{backpressure::BackpressureCore, pipes::Pipe};
use std::collections::BTreeMap;

laws! {
    nothing_is_lost: traces::of(150).edits();
    flows_keep_their_order: traces::of(150).edits();
    lists_keep_within_their_room: traces::of(150).edits();
    a_dequeue_says_what_came: traces::of(150).edits();
    pipes_that_are_owed_a_turn_are_found: traces::of(150).edits();
}

/// A packet that comes leaves by the port once, and then all slots are free.
fn nothing_is_lost(core: &'static BackpressureCore, case: &Case) -> TestCaseResult {
    let world = run(core, case, &mut |_, _, _| Ok(()))?;
    let mut numbers: Vec<u64> = world.sent.iter().map(|(_, frame)| frame.number).collect();
    numbers.sort_unstable();
    prop_assert_eq!(numbers, (0..world.came).collect::<Vec<_>>());
    let state = world.pipes.state();
    prop_assert_eq!(state.free_count, state.fresh, "slots that were used are free again");
    prop_assert_eq!(state.pkts, 0);
    let taken: u64 = world.backpressure.state().lists.taken_pkts.iter().sum();
    prop_assert_eq!(taken, world.came, "what the port takes is counted");
    Ok(())
}

/// The port has the packets of a queue in the order in which they came.
fn flows_keep_their_order(core: &'static BackpressureCore, case: &Case) -> TestCaseResult {
    let world = run(core, case, &mut |_, _, _| Ok(()))?;
    let mut last = BTreeMap::new();
    for frame in &world.taken {
        let before = last.insert(frame.queue, frame.number);
        prop_assert!(
            before < Some(frame.number),
            "{:?} comes before {} of queue {}",
            before,
            frame.number,
            frame.queue
        );
    }
    Ok(())
}

/// In a dequeue, a class sends no more than the room in its list and a burst; a class that has none sends nothing, nor does one that is not
/// asked for.
fn lists_keep_within_their_room(core: &'static BackpressureCore, case: &Case) -> TestCaseResult {
    run(core, case, &mut |world, step, before| {
        let Step::Round { count, classes } = *step else { return Ok(()) };
        prop_assert!(before.got <= count);
        for (class, room) in before.lists.room_pkts.iter().enumerate() {
            let (held, now) = (before.held[class], world.backpressure.state().lists.pkts[class]);
            let most = room.saturating_sub(held).min(before.lists.burst_pkts);
            let most = if classes >> class & 1 == 1 { most } else { 0 };
            prop_assert!(now - held <= most, "{} packets of class {} come, and {} may", now - held, class, most);
        }
        Ok(())
    })?;
    Ok(())
}

/// Packets are grouped by class, and the number of each group that came, that was refused and that was taken is said.
fn a_dequeue_says_what_came(core: &'static BackpressureCore, case: &Case) -> TestCaseResult {
    let mut refused = [0; 16];
    let world = run(core, case, &mut |world, _, before| {
        let state = &world.backpressure.state().lists;
        let came: Vec<u32> = state.pkts.iter().zip(before.held).map(|(now, held)| now - held).collect();
        prop_assert_eq!(&state.came_pkts[..], &came[..]);
        prop_assert_eq!(came.iter().sum::<u32>(), before.got);
        let held = (0..16).filter(|class| state.pkts[*class] > 0).fold(0, |held, class| held | 1 << class);
        prop_assert_eq!(world.backpressure.held(), held);
        // The port has just refused the packets that a list held before the dequeue.
        for (class, refused) in refused.iter_mut().enumerate() {
            let now = state.refused_pkts[class];
            prop_assert!(now >= *refused + u64::from(before.held[class]), "refusals of class {}", class);
            *refused = now;
        }
        Ok(())
    })?;
    prop_assert_eq!(world.backpressure.held(), 0);
    Ok(())
}

/// A pipe that is owed a turn and has packets is found by the search for such pipes, also if it was waiting for tokens or stood in a group when that
/// search came by. Half of the pipes have a rate.
fn pipes_that_are_owed_a_turn_are_found(core: &'static BackpressureCore, case: &Case) -> TestCaseResult {
    let mut world = World::new(core, &case.lists, case.port);
    for number in PIPES.iter().step_by(2) {
        let rate = 20_000_000 + u64::from(case.seed % 1000) * 1_000_000;
        let pipe = Pipe { profile: 1, bits_per_second: Some(rate), burst_ns: 100_000 };
        prop_assert_eq!(world.pipes.configure(*number, &pipe, world.now_ns), Ok(()));
    }
    // The queues for which each pipe is owed a turn, as far as they have been ready ever since. One that got ready later is found in turn.
    let mut since = PIPES.map(|_| u32::MAX);
    play(world, case, &mut |world, _, _| {
        let state = world.pipes.state();
        for (pipe, since) in PIPES.map(|pipe| pipe as usize).into_iter().zip(&mut since) {
            let word = pipe / 64;
            if state.owed[word] >> (pipe % 64) & 1 == 0 {
                *since = u32::MAX;
                continue;
            }
            let ready = u32::from(state.ready[pipe]);
            if *since == u32::MAX {
                *since = u32::from(state.owed_any[word]);
            }
            *since &= ready;
            if *since == 0 {
                continue;
            }
            let among = state.owed_summary[word / 64] >> (word % 64) & 1;
            let found_for = u32::from(state.owed_any[word]) & state.subport[0].owed & ready;
            prop_assert!(among == 1 && found_for != 0, "pipe {} with queues {:#x} is owed a turn", pipe, ready);
        }
        Ok(())
    })?;
    Ok(())
}
