//! A port that refuses packets of one level delays no other level, and changes nothing between the classes of a level.

use crate::{
    laws,
    port::Frame,
    traces,
    traces::{Case, Step},
    world::World,
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_core::{
    Packet, Scheduler, Verdict,
    level_backpressure::{LevelCore, Next},
};

laws! {
    lower_levels_do_not_delay: traces::of(150).strict();
    a_level_with_room_is_served: traces::of(150).ceilings().guarantees();
    a_level_keeps_the_order_of_the_scheduler: traces::of(60);
    a_wait_is_not_too_long: traces::of(100).ceilings();
}

/// Plays the arrivals of a case, with rounds after each arrival and each departure. `comes`: the classes that have packets.
fn play(
    core: &'static LevelCore,
    case: &Case,
    comes: &dyn Fn(&World, usize) -> bool,
    look: &mut dyn FnMut(&World, &Next) -> TestCaseResult,
) -> Result<Vec<(u64, Frame)>, TestCaseError> {
    let mut world = World::new(core, case);
    for (gap_ns, step) in &case.steps {
        world.advance(world.now_ns + gap_ns, true)?;
        let Step::Arrive { class, bytes } = step else { continue };
        if comes(&world, *class) {
            for bytes in bytes {
                world.arrive(*class, *bytes)?;
            }
        }
        let end = world.rounds()?;
        look(&world, &end)?;
    }
    world.drain()?;
    Ok(world.sent)
}

/// The packets of a list and of those before it are sent when they would be sent without the later ones, if each list has a queue with a rate of its own
/// at the port; if queues of the port go first in their order, the packet that is being sent may delay them.
fn lower_levels_do_not_delay(core: &'static LevelCore, case: &Case) -> TestCaseResult {
    let last = case.seed % case.lists.lists;
    let look: &mut dyn FnMut(&World, &Next) -> TestCaseResult = &mut |_, _| Ok(());
    let all = play(core, case, &|_, _| true, look)?;
    let alone = play(core, case, &|world, class| world.list_of(class) <= last, look)?;
    case.port.shaper.delays_no_more_than_a_packet(last, &all, &alone)
}

/// When rounds have ended, a level that has packets in the scheduler, and no ceiling that holds them, has a full list, and the port has no room for it.
fn a_level_with_room_is_served(core: &'static LevelCore, case: &Case) -> TestCaseResult {
    play(core, case, &|_, _| true, &mut |world, _| {
        let lists = &world.backpressure.state().lists;
        for frame in world.queued.values() {
            let class = frame.queue as usize;
            let list = world.list_of(class) as usize;
            prop_assert!(
                case.classes[class].ceiling.is_some() || lists.pkts[list] == case.lists.room_pkts,
                "packets of class {} wait, and list {} has {}",
                class,
                list,
                lists.pkts[list]
            );
        }
        for (list, pkts) in lists.pkts.iter().enumerate().take(case.lists.lists as usize) {
            prop_assert!(*pkts == 0 || world.port.room(list as u32) == 0, "the port has room for {}", list);
        }
        Ok(())
    })?;
    Ok(())
}

/// All packets have come. The port has those of a list in the order in which the scheduler alone would send them: its refusals take no class's turn.
fn a_level_keeps_the_order_of_the_scheduler(core: &'static LevelCore, case: &Case) -> TestCaseResult {
    let mut world = World::new(core, case);
    let mut plain = Scheduler::of(core.core(), &case.conf(&case.classes), world.now_ns);
    for (_, step) in &case.steps {
        let Step::Arrive { class, bytes } = step else { continue };
        for len_bytes in bytes {
            // In one flow, so that both have the same packets in the same order.
            let packet = Packet { class: *class as u32, len_bytes: *len_bytes, segments: 1, ..Packet::default() };
            let slot = world.scheduler.enqueue_packet(&packet, world.now_ns);
            prop_assert_eq!(plain.enqueue_packet(&packet, world.now_ns), slot);
            let slot = slot.map_err(|_| TestCaseError::reject("the scheduler is full"))?;
            let number = world.came;
            let frame = Frame { queue: *class as u32, class: 0, number, bytes: *len_bytes, arrived_ns: world.now_ns };
            world.queued.insert(slot, frame);
            world.came += 1;
        }
    }
    let mut expected = vec![Vec::new(); case.lists.lists as usize];
    while let Verdict::Send { class, len_bytes, .. } = plain.dequeue(world.now_ns) {
        expected[world.list_of(class as usize) as usize].push((class, len_bytes));
    }
    world.drain()?;
    for (list, expected) in expected.iter().enumerate() {
        let taken: Vec<(u32, u32)> = world
            .taken
            .iter()
            .filter(|frame| frame.class as usize == list)
            .map(|frame| (frame.queue, frame.bytes))
            .collect();
        prop_assert_eq!(&taken, expected, "list {}", list);
    }
    Ok(())
}

/// When rounds have ended and packets wait for a ceiling while their list has room, one of them leaves after a few waits that the scheduler tells: a ceiling
/// that opens may be that of a class whose list is full, but each opens once.
fn a_wait_is_not_too_long(core: &'static LevelCore, case: &Case) -> TestCaseResult {
    let mut world = World::new(core, case);
    for (gap_ns, step) in &case.steps {
        world.advance(world.now_ns + gap_ns, true)?;
        let Step::Arrive { class, bytes } = step else { continue };
        for bytes in bytes {
            world.arrive(*class, *bytes)?;
        }
        let mut end = world.rounds()?;
        let mut vain = 0;
        for _ in 0..10 {
            let lists = &world.backpressure.state().lists;
            let may = |frame: &Frame| lists.pkts[world.list_of(frame.queue as usize) as usize] < case.lists.room_pkts;
            let waits = world.queued.values().any(may);
            // As long as the port takes nothing, only waiting helps.
            match end {
                Next::Wait(Some(at_ns)) if at_ns < world.port.next_ns().unwrap_or(u64::MAX) => {
                    let before = world.queued.len();
                    world.now_ns = at_ns;
                    end = world.rounds()?;
                    vain = if world.queued.len() < before || !waits { 0 } else { vain + 1 };
                    prop_assert!(vain < case.classes.len(), "nothing leaves at {}", at_ns);
                }
                Next::Wait(None) | Next::Idle => {
                    prop_assert!(!waits, "packets wait, and no time is told");
                    break;
                }
                _ => break,
            }
        }
    }
    Ok(())
}
