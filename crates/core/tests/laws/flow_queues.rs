//! Flow queues inside a class: order, places, privilege and its end, overflow. The shares of flows and hosts: flow_shares.

use crate::{
    cases::{Case, Flows},
    laws, traces,
    world::{CLASSES, Event, Packet, World, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::Core;
use std::collections::{BTreeMap, HashMap};

/// A PIFO does not queue by flow.
pub const KINDS: std::ops::Range<u32> = 0..abi::SL_PIFO;

laws! {
    a_flow_stays_in_order: traces::of(KINDS).by_flow().ceilings().peaks().guarantees().limits().changes();
    hosts_know_their_bulk_flows: traces::of(KINDS).by_flow().ceilings().peaks().limits().changes();
    privilege_is_bounded: traces::of(KINDS).by_flow().ceilings().peaks().limits();
    the_privileged_go_first: traces::of(KINDS).by_flow().ceilings().peaks().limits();
    the_privileged_take_turns: traces::of(KINDS).by_flow().ceilings().peaks().limits();
    idle_time_repays_debt: traces::of(KINDS).by_flow().ceilings().peaks().lulls();
    the_longest_gives_way: traces::of(KINDS).by_flow().ceilings().policing().limits();
}

/// The queue of a packet's flow, in the core's table.
pub fn queue_of(world: &World, packet: &Packet) -> usize {
    let state = world.core.state();
    let (base, mask) = (state.classes[packet.class].flow_base, state.classes[packet.class].flow_mask);
    let (hash, ways) = (packet.flow.hash, u32::from(mask).min(abi::SL_FLOW_WAYS - 1));
    let way = |n: u32| usize::from(base) + ((hash & u32::from(mask) & !ways) | (hash.wrapping_add(n) & ways)) as usize;
    (0..=ways).map(way).find(|&queue| state.flow[queue].hash == hash).unwrap_or(way(0))
}

fn flows_of<'a>(world: &World<'a>, class: usize) -> Option<&'a Flows> {
    world.policy.classes.get(class).and_then(|class| class.flows.as_ref())
}

/// The quantum and the allowance as the core takes them.
pub fn terms(flows: &Flows) -> (i128, i128) {
    let quantum = flows.quantum.clamp(1, 1 << 24);
    (quantum.into(), flows.allowance.clamp(quantum, 1 << 26).into())
}

/// The packets of a flow leave in the order in which they came, whether they are sent or dropped; also when another policy
/// takes force, as long as their class queues by flow.
fn a_flow_stays_in_order(core: &'static Core, case: &Case) -> TestCaseResult {
    let mut last: HashMap<(usize, u32), u64> = HashMap::new();
    // Whether each class queues by flow, and the last packet that came while it did not.
    let (mut by_flow, mut strangers, mut latest) = ([false; CLASSES], [0; CLASSES], 0);
    run(core, case, |world, event| {
        let packet = match event {
            Event::Arrived(packet, _) => {
                latest = packet.number;
                by_flow[packet.class] = flows_of(world, packet.class).is_some();
                return Ok(());
            }
            Event::Configured => {
                for class in 0..CLASSES {
                    let now = flows_of(world, class).is_some();
                    if !now || !by_flow[class] {
                        strangers[class] = latest;
                    }
                    by_flow[class] = now;
                }
                return Ok(());
            }
            Event::Sent(packet) | Event::Dropped(packet, _) => packet,
            _ => return Ok(()),
        };
        if flows_of(world, packet.class).is_some() && packet.number > strangers[packet.class] {
            let last = last.entry((packet.class, packet.flow.hash)).or_default();
            prop_assert!(*last < packet.number, "{} leaves after {}: {:?}", packet.number, last, packet);
            *last = packet.number;
        }
        Ok(())
    })
}

/// The flow queues that have packets, in classes that queue by flow: class, number, and place (`enum sl_flow_place`).
pub fn standing(world: &World) -> Vec<(usize, usize, u32)> {
    let state = world.core.state();
    let with_packets =
        (0..CLASSES).filter(|&class| !world.queues[class].is_empty() && state.classes[class].by_flow != 0);
    let queues = with_packets.flat_map(|class| {
        let (base, mask) = (state.classes[class].flow_base, state.classes[class].flow_mask);
        (base..=base + mask).map(move |queue| (class, usize::from(queue)))
    });
    let some = queues.filter(|&(_, queue)| state.flow[queue].backlog_pkts > 0);
    some.map(|(class, queue)| (class, queue, state.flow[queue].place.into())).collect()
}

/// Whether the packet that a class has stands in no flow: it goes ahead of no other.
fn is_alone(world: &World, class: usize) -> bool {
    let state = world.core.state();
    let is_lone = state.lone != 0 && usize::from(state.slot[usize::from(state.free)].class) == class;
    is_lone || state.fair[class].alone != 0
}

/// Every flow with packets has a place, and is counted: sparse and swift flows, and the bulk flows of each host. But a packet may
/// stand alone while its class has no other.
fn hosts_know_their_bulk_flows(core: &'static Core, case: &Case) -> TestCaseResult {
    run(core, case, |world, event| {
        if !matches!(event, Event::Asking) {
            return Ok(());
        }
        let state = world.core.state();
        let (mut src, mut dst) = ([0u16; abi::SL_HOSTS as usize], [0u16; abi::SL_HOSTS as usize]);
        let mut ahead = [(0u16, 0u16); CLASSES];
        for class in (0..CLASSES).filter(|&class| is_alone(world, class)) {
            prop_assert_eq!(world.queues[class].len(), 1, "class {} has a packet that stands alone", class);
        }
        for (class, queue, place) in standing(world) {
            let flow = &state.flow[queue];
            let hosts = flows_of(world, class).map_or(0, |flows| flows.hosts);
            match place {
                abi::SL_FLOW_SPARSE => ahead[class].0 += 1,
                abi::SL_FLOW_SWIFT => ahead[class].1 += 1,
                abi::SL_FLOW_BULK => {
                    src[usize::from(flow.src_host)] += u16::from(hosts & abi::SL_HOSTS_SOURCE != 0);
                    dst[usize::from(flow.dst_host)] += u16::from(hosts & abi::SL_HOSTS_DESTINATION != 0);
                }
                _ => return Err(TestCaseError::fail(format!("flow queue {queue} stands nowhere"))),
            }
        }
        for (class, ahead) in ahead.into_iter().enumerate() {
            let fair = &state.fair[class];
            prop_assert_eq!((fair.sparse_flows, fair.swift_flows), ahead, "sparse and swift of class {}", class);
        }
        for host in 0..abi::SL_HOSTS as usize {
            let counted = (state.src_hosts.host[host].bulk_flows, state.dst_hosts.host[host].bulk_flows);
            prop_assert_eq!(counted, (src[host], dst[host]), "bulk flows of source and destination {}", host);
        }
        Ok(())
    })
}

/// The place of the flow whose packet is sent, before it is.
pub fn place_of(world: &World, before: &[(usize, usize, u32)], packet: &Packet) -> u32 {
    let queue = queue_of(world, packet);
    before.iter().find(|&&(_, of, _)| of == queue).map_or(abi::SL_FLOW_ABSENT, |&(.., place)| place)
}

/// While a flow of the class is sparse, an sparse flow is served; else, while one is swift, a swift one.
fn the_privileged_go_first(core: &'static Core, case: &Case) -> TestCaseResult {
    let (mut before, mut alone) = (Vec::new(), Vec::new());
    run(core, case, |world, event| {
        match event {
            Event::Asking => {
                before = standing(world);
                alone = (0..CLASSES).filter(|&class| is_alone(world, class)).collect();
            }
            Event::Sent(packet) if flows_of(world, packet.class).is_some() && !alone.contains(&packet.class) => {
                let first = before.iter().filter(|&&(class, ..)| class == packet.class).map(|&(.., place)| place).min();
                prop_assert_eq!(Some(place_of(world, &before, packet)), first, "places of who is served, of the first");
            }
            _ => {}
        }
        Ok(())
    })
}

/// While a flow stays sparse, or swift, every other flow of its class sends no more than one packet in the same place.
fn the_privileged_take_turns(core: &'static Core, case: &Case) -> TestCaseResult {
    let mut before = Vec::new();
    // Since when each waiting flow queue stands where it does, and the queues that have sent from there.
    let mut waits: HashMap<usize, (u32, Vec<usize>)> = HashMap::new();
    run(core, case, |world, event| {
        match event {
            Event::Asking => {
                before = standing(world);
                before.retain(|&(.., place)| place != abi::SL_FLOW_BULK);
                waits.retain(|&queue, (place, _)| before.iter().any(|&(_, of, now)| (of, now) == (queue, *place)));
            }
            Event::Sent(packet) if flows_of(world, packet.class).is_some() => {
                let (sender, place) = (queue_of(world, packet), place_of(world, &before, packet));
                for &(class, queue, its) in &before {
                    if class == packet.class && its == place && queue != sender {
                        let (_, senders) = waits.entry(queue).or_insert_with(|| (place, Vec::new()));
                        prop_assert!(!senders.contains(&sender), "flow {} sends twice before {}", sender, queue);
                        senders.push(sender);
                    }
                }
                waits.remove(&sender);
            }
            _ => {}
        }
        Ok(())
    })
}

/// While a class rests, which it does while it has no more than one packet, the time that a quantum takes on its link is a round. So a
/// flow is sparse again when its class has rested for as long as it takes to pay back the allowance and a packet, and the rounds
/// that its turn may be ahead.
fn idle_time_repays_debt(core: &'static Core, case: &Case) -> TestCaseResult {
    let longest = case.longest();
    // Since when each class rests, and the rounds that had passed; and the packet that is alone there.
    let (mut rests, mut alone) = ([(0, 0u32); CLASSES], [const { None }; CLASSES]);
    run(core, case, |world, event| {
        match event {
            Event::Sent(packet) if world.queues[packet.class].is_empty() => {
                let class = packet.class;
                if alone[class].take().is_none() {
                    rests[class] = (world.now, world.core.state().fair[class].round);
                }
            }
            Event::Arrived(packet, Ok(())) if flows_of(world, packet.class).is_some() => {
                let class = packet.class;
                if world.queues[class].len() == 1 {
                    prop_assert!(is_alone(world, class), "{:?} comes to an empty class", packet);
                    alone[class] = Some(*packet);
                    return Ok(());
                }
                let (Some(first), Some(flows)) = (alone[class].take(), flows_of(world, class)) else { return Ok(()) };
                let ((quantum, allowance), (since, round)) = (terms(flows), rests[class]);
                let rates = world.policy.link.into_iter().chain(world.policy.classes[class].ceil);
                let slowest = rates.map(|rate| rate.time_ns(quantum as u64).max(1)).max().unwrap_or(12_112);
                let passed = ((world.now - since) / slowest).min(1 << 20) as u32;
                let state = world.core.state();
                prop_assert_eq!(state.fair[class].round - round, passed, "rounds while class {} rests", class);
                let due = 64 + (allowance + i128::from(longest[class])) / quantum + 1;
                if i128::from(passed) >= due {
                    let fits = i128::from(first.len) <= quantum;
                    let due = if fits { abi::SL_FLOW_SPARSE } else { abi::SL_FLOW_SWIFT };
                    let place = u32::from(state.flow[queue_of(world, &first)].place);
                    prop_assert_eq!(place, due, "after {} rounds, of {:?}", passed, first);
                }
            }
            _ => {}
        }
        Ok(())
    })
}

/// Whether flows at this place go ahead of turns.
pub fn is_privileged(place: u32) -> bool {
    matches!(place, abi::SL_FLOW_SPARSE | abi::SL_FLOW_SWIFT)
}

/// The bytes that went ahead of turns, less those that rounds have given back: over every window at most so much.
#[derive(Default)]
pub struct Credit {
    taken: i128,
    least: i128,
}

impl Credit {
    pub fn takes(&mut self, len: u32, given: i128, most: i128) -> TestCaseResult {
        self.least = self.least.min(self.taken - given);
        self.taken += i128::from(len);
        let used = self.taken - given - self.least;
        prop_assert!(used <= most, "{} bytes ahead of turns, not {} at most", used, most);
        Ok(())
    }
}

/// In any time, what a flow sends while it is sparse or swift is at most allowance + quantum * rounds + a packet; but for what is alone
/// in its class until it is sent. Debts of more than 63 rounds are forgiven, so a round is worth no less than the 63rd part of a packet. A flow is one as long as its
/// queue is not given to another.
fn privilege_is_bounded(core: &'static Core, case: &Case) -> TestCaseResult {
    let longest = case.longest();
    let mut before = Vec::new();
    let mut credits: HashMap<usize, (u32, Credit)> = HashMap::new();
    run(core, case, |world, event| {
        match event {
            Event::Asking => before = standing(world),
            Event::Sent(packet) => {
                let Some(flows) = flows_of(world, packet.class) else { return Ok(()) };
                if !is_privileged(place_of(world, &before, packet)) {
                    return Ok(());
                }
                let longest = i128::from(longest[packet.class]);
                let (quantum, allowance) = terms(flows);
                let given = quantum.max(longest / 63 + 1) * i128::from(world.core.state().fair[packet.class].round);
                let queue = queue_of(world, packet);
                let owner = world.core.state().flow[queue].hash;
                let (of, credit) = credits.entry(queue).or_default();
                if *of != owner {
                    (*of, *credit) = (owner, Credit::default());
                }
                credit.takes(packet.len, given, allowance + longest)?;
            }
            _ => {}
        }
        Ok(())
    })
}

/// When a class that queues by flow is full, a long flow of it makes room; when the slots are about to run out, a long flow of a
/// large class that queues by flow, or the packet behind the head of a large class that does not. A flow gives half of its packets
/// from its head, rounded up, and 64 at most, and keeps its only packet. No other packet is dropped, nor at any other time. A long
/// flow has at least a quarter of the bytes of the longest of its class, a large class at least a quarter of the packets of the
/// largest that could give. For want of packets a newcomer is refused only if every flow of its class has one at most (or so many
/// had more before that it takes a while to see).
pub fn the_longest_gives_way(core: &'static Core, case: &Case) -> TestCaseResult {
    let (mut open, mut dropped) = (true, Vec::new());
    run(core, case, |world, event| {
        let (packet, answer) = match event {
            Event::Arriving(class) => {
                open = world.opens_ns(*class) <= world.now;
                dropped.clear();
                return Ok(());
            }
            Event::Dropped(packet, _) => {
                dropped.push(*packet);
                return Ok(());
            }
            Event::Arrived(packet, answer) => (packet, answer),
            _ => return Ok(()),
        };
        // As it was before.
        let of = |class: usize| {
            let queued = world.queues[class].iter().filter(|queued| queued.number != packet.number);
            let gone = dropped.iter().filter(move |gone| gone.class == class);
            let mut all = queued.chain(gone).copied().collect::<Vec<_>>();
            all.sort_by_key(|packet| packet.number);
            all
        };
        let bytes = |packets: &[Packet]| packets.iter().map(|packet| u64::from(packet.len)).sum::<u64>();
        // Flows of two packets and more.
        let flows = |packets: Vec<Packet>| {
            let mut flows: BTreeMap<usize, Vec<Packet>> = BTreeMap::new();
            for packet in packets {
                flows.entry(queue_of(world, &packet)).or_default().push(packet);
            }
            let singles = flows.values().filter(|packets| packets.len() < 2).count();
            flows.retain(|_, packets| packets.len() > 1);
            (flows, singles)
        };
        let class = packet.class;
        let (policy, own) = (&world.policy.classes[class], of(class));
        let by_flow = |class: usize| flows_of(world, class).is_some();
        let full = own.len() as u64 >= policy.limit_pkts.into()
            || bytes(&own) + u64::from(packet.len) > policy.limit_bytes.into();
        let all: usize = world.queues.iter().map(|queue| queue.len()).sum::<usize>() + dropped.len();
        let spare = (world.policy.slots as usize / 4).min(64);
        let short = all - usize::from(answer.is_ok()) + spare >= world.policy.slots as usize;
        let Some(giver) = dropped.first().map(|packet| packet.class) else {
            let (longer, singles) = flows(own);
            if full && by_flow(class) && (!policy.policed || open) {
                prop_assert!(longer.is_empty() || singles >= 16, "nothing gives way to {:?}", packet);
            }
            return Ok(());
        };
        prop_assert!(!policy.policed || open, "dropped for one that is refused anyway: {:?}", packet);
        if full {
            prop_assert!(by_flow(class) && giver == class, "class {} gives way to {:?}", giver, packet);
        } else {
            prop_assert!(short, "dropped while there is room: {:?}", dropped);
            let can_give = |class: usize| of(class).len() >= 64 || (by_flow(class) && !flows(of(class)).0.is_empty());
            let most = (0..CLASSES).filter(|&class| can_give(class)).map(|class| of(class).len()).max();
            let given = of(giver).len();
            // Classes with few packets are taken to be of one size.
            prop_assert!(4 * given.max(64) >= most.unwrap_or(0), "class {} has {} of {:?}", giver, given, most);
        }
        if !by_flow(giver) {
            prop_assert!(giver != class && dropped == of(giver)[1..2], "dropped for {:?}: {:?}", packet, dropped);
            return Ok(());
        }
        let (flows, _) = flows(of(giver));
        let longest = flows.values().map(|packets| bytes(packets)).max().unwrap_or(0);
        let chosen = flows.get(&queue_of(world, &dropped[0])).map_or(&[][..], |packets| packets);
        prop_assert!(4 * bytes(chosen) >= longest, "{} bytes give way, not {}", bytes(chosen), longest);
        let half = chosen.len().div_ceil(2).min(64).min(chosen.len().saturating_sub(1));
        prop_assert_eq!(&dropped, &chosen[..half], "dropped for {:?}", packet);
        if *answer == Err(abi::SL_DROP_LIMIT_PKTS) {
            return Err(TestCaseError::fail(format!("refused, and others were dropped: {packet:?}")));
        }
        Ok(())
    })
}
