//! Nothing is lost, nothing is made, order is kept, and lists keep within their room.

use crate::{laws, traces, traces::Case, world::run};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_core::level_backpressure::LevelCore;
use std::collections::BTreeMap;

laws! {
    nothing_is_lost: traces::of(150).edits().ceilings().guarantees().limits();
    classes_keep_their_order: traces::of(150).ceilings().guarantees();
    lists_keep_within_their_room: traces::of(150).edits().ceilings().guarantees();
    refusals_are_counted: traces::of(150).edits().ceilings();
}

/// A packet that comes leaves by the port once or is dropped by the scheduler, which counts it; and nothing waits for ever.
fn nothing_is_lost(core: &'static LevelCore, case: &Case) -> TestCaseResult {
    let world = run(core, case, &mut |_, _, _| Ok(()))?;
    let mut numbers: Vec<u64> = world.sent.iter().map(|(_, frame)| frame.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    prop_assert_eq!(numbers.len(), world.sent.len(), "a packet is sent twice");
    prop_assert_eq!(numbers.len() as u64 + world.dropped, world.came);
    let state = world.scheduler.state();
    prop_assert_eq!(state.backlog_pkts, 0);
    let dropped: u64 = state.classes.iter().flat_map(|class| class.dropped_pkts).sum();
    prop_assert_eq!(dropped, world.dropped, "drops are counted");
    let taken: u64 = world.backpressure.state().lists.taken_pkts.iter().sum();
    prop_assert_eq!(taken, world.sent.len() as u64, "what the port takes is counted");
    Ok(())
}

/// The port has the packets of a class with one queue in the order in which they came.
fn classes_keep_their_order(core: &'static LevelCore, case: &Case) -> TestCaseResult {
    let world = run(core, case, &mut |_, _, _| Ok(()))?;
    let mut last = BTreeMap::new();
    for frame in world.taken.iter().filter(|frame| case.classes[frame.queue as usize].flows == 0) {
        let before = last.insert(frame.queue, frame.number);
        prop_assert!(before < Some(frame.number), "{:?} before {} of {}", before, frame.number, frame.queue);
    }
    Ok(())
}

/// In a dequeue, no more comes to a list than the room in it and a burst.
fn lists_keep_within_their_room(core: &'static LevelCore, case: &Case) -> TestCaseResult {
    run(core, case, &mut |world, count, before| {
        prop_assert!(before.got <= count);
        let lists = &world.backpressure.state().lists;
        for (list, held) in before.held.iter().enumerate() {
            let came = lists.pkts[list] - held;
            let room = if list < before.lists.lists as usize { before.lists.room_pkts } else { 0 };
            let most = room.saturating_sub(*held).min(before.lists.burst_pkts);
            prop_assert!(came <= most, "{} packets come to list {}, and {} may", came, list, most);
            prop_assert_eq!(lists.came_pkts[list], came);
        }
        prop_assert_eq!(lists.came_pkts.iter().sum::<u32>(), before.got);
        Ok(())
    })?;
    Ok(())
}

/// Packets that the port was offered and has not taken count as refused.
fn refusals_are_counted(core: &'static LevelCore, case: &Case) -> TestCaseResult {
    let mut refused = [0; 16];
    run(core, case, &mut |world, _, before| {
        // The port has just refused the packets that a list held before the dequeue.
        for (list, refused) in refused.iter_mut().enumerate() {
            let now = world.backpressure.state().lists.refused_pkts[list];
            prop_assert!(now >= *refused + u64::from(before.held[list]), "refusals of list {}", list);
            *refused = now;
        }
        Ok(())
    })?;
    Ok(())
}
