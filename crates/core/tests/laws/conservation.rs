//! Nothing is lost and nothing is made: what comes in leaves, is dropped and counted, or is queued.

use crate::{
    laws,
    traces::{self, Case},
    world::{CLASSES, Event, World, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::Core;

laws! {
    nothing_is_lost: traces::of(traces::KINDS).ceilings().guarantees().policing().limits().framing().changes().lateness();
    every_refusal_has_its_reason: traces::of(traces::KINDS).ceilings().policing().limits().framing().changes();
}

#[derive(Clone, Copy, Default, Debug, PartialEq)]
struct Count {
    pkts: u64,
    bytes: u64,
}

impl Count {
    fn add(&mut self, len: u32) {
        self.pkts += 1;
        self.bytes += u64::from(len);
    }
}

/// In = sent + dropped + queued, in packets and in bytes, for each class, whatever policy takes force while packets are
/// queued, and when the queues are cleared. No slot is given twice. In the end all of it has left.
fn nothing_is_lost(core: &'static Core, case: &Case) -> TestCaseResult {
    let (mut enqueued, mut sent, mut dropped) =
        ([Count::default(); CLASSES], [Count::default(); CLASSES], [Count::default(); CLASSES]);
    run(core, case, |world, event| {
        match event {
            Event::Arrived(packet, Ok(())) => {
                enqueued[packet.class].add(packet.len);
                let taken = world.queues.iter().flatten().filter(|queued| queued.slot == packet.slot).count();
                prop_assert_eq!(taken, 1, "packets in slot {}", packet.slot);
                prop_assert!(packet.slot < abi::SL_SLOTS);
                // Other events change no class but this one and that which sends.
                return agrees(world, packet.class, &enqueued, &sent, &dropped);
            }
            Event::Arrived(packet, Err(_)) => {
                dropped[packet.class].add(packet.len);
                return agrees(world, packet.class, &enqueued, &sent, &dropped);
            }
            Event::Sent(packet) => {
                sent[packet.class].add(packet.len);
                return agrees(world, packet.class, &enqueued, &sent, &dropped);
            }
            Event::Cleared(queues) => {
                queues.iter().flatten().for_each(|packet| dropped[packet.class].add(packet.len));
            }
            Event::Idle => prop_assert!(world.queues.iter().all(|queue| queue.is_empty()), "idle with packets"),
            Event::Configured => {}
            Event::Arriving(_) | Event::Asking | Event::Waits(_) => return Ok(()),
        }
        (0..CLASSES).try_for_each(|class| agrees(world, class, &enqueued, &sent, &dropped))?;
        let queued: usize = world.queues.iter().map(|queue| queue.len()).sum();
        prop_assert_eq!(world.core.state().backlog_pkts as usize, queued);
        Ok(())
    })
}

fn agrees(
    world: &World,
    class: usize,
    enqueued: &[Count; CLASSES],
    sent: &[Count; CLASSES],
    dropped: &[Count; CLASSES],
) -> TestCaseResult {
    let state = &world.core.state().classes[class];
    let mut queued = Count::default();
    world.queues[class].iter().for_each(|packet| queued.add(packet.len));
    let backlog = Count { pkts: state.backlog_pkts.into(), bytes: state.backlog_bytes.into() };
    prop_assert_eq!(backlog, queued, "queued of class {}", class);
    let counted = Count { pkts: state.enqueued_pkts, bytes: state.enqueued_bytes };
    prop_assert_eq!(counted, enqueued[class], "accepted of class {}", class);
    prop_assert_eq!(Count { pkts: state.sent_pkts, bytes: state.sent_bytes }, sent[class], "sent of class {}", class);
    let counted = Count { pkts: state.dropped_pkts.iter().sum(), bytes: state.dropped_bytes };
    prop_assert_eq!(counted, dropped[class], "dropped of class {}", class);
    let times: u64 = world.core.state().sojourn[class].count.iter().sum();
    prop_assert_eq!(times, sent[class].pkts, "times in queue of class {}", class);
    Ok(())
}

/// A packet is refused if its class is policed and has no tokens, holds as many packets or bytes as it may, or no slot is
/// free; for the first reason that applies, and never without.
fn every_refusal_has_its_reason(core: &'static Core, case: &Case) -> TestCaseResult {
    // Whether the class had tokens before its packet came.
    let mut open = true;
    run(core, case, |world, event| {
        let (packet, answer) = match event {
            Event::Arriving(class) => {
                open = world.ceil[*class].open(world.now);
                return Ok(());
            }
            Event::Arrived(packet, answer) => (packet, answer),
            _ => return Ok(()),
        };
        let class = packet.class;
        let (limit_pkts, limit_bytes) =
            world.policy.classes.get(class).map_or((0, 0), |policy| (policy.limit_pkts, policy.limit_bytes));
        // The world has queued the packet already if it was accepted.
        let others = world.queues[class].iter().filter(|queued| queued.number != packet.number);
        let (pkts, bytes) = others.fold((0, 0), |(pkts, bytes), queued| (pkts + 1, bytes + u64::from(queued.len)));
        let taken = world.queues.iter().flatten().filter(|queued| queued.number != packet.number).count();
        let expected = if world.policed(class) && !open {
            Err(abi::SL_DROP_POLICED)
        } else if pkts >= limit_pkts {
            Err(abi::SL_DROP_LIMIT_PKTS)
        } else if bytes + u64::from(packet.len) > limit_bytes.into() {
            Err(abi::SL_DROP_LIMIT_BYTES)
        } else if taken >= world.policy.slots as usize {
            Err(abi::SL_DROP_NO_SLOT)
        } else {
            Ok(())
        };
        // Slots beyond a limit that has become smaller may be used while they last.
        if expected != Err(abi::SL_DROP_NO_SLOT) || answer.is_err() {
            prop_assert_eq!(*answer, expected, "of {:?}", packet);
        }
        Ok(())
    })
}
