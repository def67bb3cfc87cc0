//! Laws of early drop: a hook before the queue drops what the queue would drop, and no packet of a light flow.

use crate::{
    cases::Case,
    flow_queues::{KINDS as BY_FLOW, queue_of},
    laws,
    traces::{self, KINDS},
    world::{Event, Packet, World, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::{Core, Underway};
use std::collections::BTreeMap;

laws! {
    one_queue_drops_what_it_would_refuse: traces::of(KINDS).ceilings().peaks().policing().limits();
    a_batch_passes_as_far_as_there_is_room: traces::of(KINDS).ceilings().peaks().limits();
    light_flows_pass: traces::of(BY_FLOW).by_flow().ceilings().peaks().limits();
    the_longest_flow_of_a_full_class_does_not_pass: traces::of(BY_FLOW).by_flow().ceilings().peaks().limits();
}

/// Packets of one batch.
const BATCH: u32 = 150;

/// With nothing under way, the hook drops a packet of a class with one queue exactly if that queue is full.
fn one_queue_drops_what_it_would_refuse(core: &'static Core, case: &Case) -> TestCaseResult {
    run(core, case, |world, event| {
        let Event::Arrived(packet, answer) = event else { return Ok(()) };
        let Some(class) = world.policy.classes.get(packet.class) else { return Ok(()) };
        if class.flows.is_some() || class.limit_pkts == 0 {
            return Ok(());
        }
        let full = matches!(answer, Err(abi::SL_DROP_LIMIT_PKTS | abi::SL_DROP_LIMIT_BYTES));
        prop_assert!(!full || world.dropped_early, "the hook passes what the full queue refuses: {packet:?}");
        prop_assert!(!world.dropped_early || answer.is_err(), "the hook drops what the queue takes: {packet:?}");
        Ok(())
    })
}

/// Of packets that come to the hook before any of them comes to the queue, as many pass as there is room for.
fn a_batch_passes_as_far_as_there_is_room(core: &'static Core, case: &Case) -> TestCaseResult {
    run(core, case, |world, event| {
        let Event::Arrived(packet, _) = event else { return Ok(()) };
        let Some(class) = world.policy.classes.get(packet.class).filter(|class| class.limit_pkts > 0) else {
            return Ok(());
        };
        let (pkts, bytes) = of_class(world, packet.class);
        let room = u64::from(class.limit_pkts).saturating_sub(pkts);
        let room_bytes = u64::from(class.limit_bytes).saturating_sub(bytes);
        let fits = room.min(room_bytes / u64::from(packet.len));
        // With more room nothing is counted; and where slots run out first, their number counts.
        if fits >= u64::from(BATCH) || slots_left(world) < room {
            return Ok(());
        }
        let mut underway = Underway::default();
        let next = sluice_core::Packet {
            class: packet.class as u32,
            len_bytes: packet.len,
            segments: 1,
            ..sluice_core::Packet::default()
        };
        let passed = (0..BATCH).filter(|_| !world.core.drops_early(&mut underway, &next, world.now)).count() as u64;
        prop_assert!(passed == fits || passed == u64::from(BATCH) && fits >= 128, "{passed} pass into room for {fits}");
        Ok(())
    })
}

/// The packets that come until slots run out.
fn slots_left(world: &World) -> u64 {
    let all: usize = world.queues.iter().map(|queue| queue.len()).sum();
    let slots = u64::from(world.policy.slots);
    (slots - (slots / 4).min(64)).saturating_sub(all as u64)
}

/// The packets and bytes of a class in the model.
fn of_class(world: &World, class: usize) -> (u64, u64) {
    let queue = &world.queues[class];
    (queue.len() as u64, queue.iter().map(|packet| u64::from(packet.len)).sum())
}

/// A packet of a class that queues by flow, when it comes.
struct Seen {
    /// Whether the hook drops it.
    dropped: bool,
    /// Whether the class is full, and whether nearly so.
    full: bool,
    nearly: bool,
    /// Whether its flow has a queue of its own.
    known: bool,
    /// Packets and bytes of the queue of its flow.
    own: (u64, u64),
    /// Those of the other flows.
    others: Vec<(u64, u64)>,
}

impl Seen {
    /// The bytes of the longest other flow of so many packets; 0: there is none.
    fn longest(&self, pkts: u64) -> u64 {
        self.others.iter().filter(|other| other.0 >= pkts).map(|other| other.1).max().unwrap_or(0)
    }
}

/// Tells the observer of each packet of a class that queues by flow.
fn watch(core: &'static Core, case: &Case, mut observer: impl FnMut(&Seen) -> TestCaseResult) -> TestCaseResult {
    let mut dropped: Vec<Packet> = Vec::new();
    run(core, case, |world, event| {
        let (packet, taken) = match event {
            Event::Arriving(_) => {
                dropped.clear();
                return Ok(());
            }
            Event::Dropped(packet, _) => {
                dropped.push(*packet);
                return Ok(());
            }
            Event::Arrived(packet, answer) => (packet, u64::from(answer.is_ok())),
            _ => return Ok(()),
        };
        let Some(class) = world.policy.classes.get(packet.class).filter(|class| class.flows.is_some()) else {
            return Ok(());
        };
        if class.limit_pkts == 0 {
            return Ok(());
        }
        // As it was before the packet came.
        let queued = world.queues[packet.class].iter().filter(|queued| queued.number != packet.number);
        let before: Vec<&Packet> = queued.chain(dropped.iter().filter(|gone| gone.class == packet.class)).collect();
        let bytes: u64 = before.iter().map(|packet| u64::from(packet.len)).sum();
        let pkts = before.len() as u64;
        let within = |of: fn(u64) -> u64| {
            pkts < of(class.limit_pkts.into()) && bytes + u64::from(packet.len) <= of(class.limit_bytes.into())
        };
        let left = (slots_left(world) + taken).saturating_sub(dropped.len() as u64);
        let short = left <= u64::from(world.policy.slots) / 8;
        let (full, nearly) = (!within(|limit| limit), short || !within(|limit| limit - limit / 8));
        let mut flows: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
        for queued in before {
            let flow = flows.entry(queue_of(world, queued)).or_default();
            *flow = (flow.0 + 1, flow.1 + u64::from(queued.len));
        }
        let queue = queue_of(world, packet);
        let known = world.core.state().flow[queue].hash == packet.flow.hash;
        let own = flows.remove(&queue).unwrap_or_default();
        let others = flows.into_values().collect();
        observer(&Seen { dropped: world.dropped_early, full, nearly, known, own, others })
    })
}

/// A flow that has less than a quarter of the bytes of another one, of two packets and 4 KiB or more, passes; and all flows of a class that is not
/// nearly full.
fn light_flows_pass(core: &'static Core, case: &Case) -> TestCaseResult {
    watch(core, case, |seen| {
        prop_assert!(!seen.dropped || seen.nearly, "dropped, though there is room");
        let (own, longest) = (seen.own.1, seen.longest(2));
        prop_assert!(
            !seen.dropped || 4 * own >= longest || longest < 4096,
            "dropped with {own} bytes beside {longest}"
        );
        Ok(())
    })
}

/// A flow of a full class that has two packets and more than twice the bytes of every other one does not pass.
fn the_longest_flow_of_a_full_class_does_not_pass(core: &'static Core, case: &Case) -> TestCaseResult {
    watch(core, case, |seen| {
        let ((pkts, own), longest) = (seen.own, seen.longest(1));
        // Flows of less than 4 KiB are of one size.
        let is_longest = seen.known && pkts > 1 && own > 2 * longest.max(4096);
        prop_assert!(seen.dropped || !seen.full || !is_longest, "passes with {own} bytes beside {longest}");
        Ok(())
    })
}
