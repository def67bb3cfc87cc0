//! Flow queues inside a class: order, fairness between flows and between hosts, privilege and its end, overflow.

use crate::{
    cases::{Arrival, Case, ClassPolicy, Flow, Flows, Phase, Policy, Rate},
    laws, traces,
    world::{CLASSES, Event, Packet, World, run},
};
use proptest::{collection::vec, prelude::*, sample::select, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::Core;
use std::collections::{BTreeMap, HashMap};

/// A PIFO does not queue by flow.
const KINDS: std::ops::Range<u32> = 0..abi::SL_PIFO;

laws! {
    a_flow_stays_in_order: traces::of(KINDS).by_flow().ceilings().guarantees().limits().changes();
    bulk_flows_share: Bulk;
    hosts_share: Hosts;
    hosts_know_their_bulk_flows: traces::of(KINDS).by_flow().ceilings().limits().changes();
    privilege_is_bounded: traces::of(KINDS).by_flow().ceilings().limits();
    the_privileged_go_first: traces::of(KINDS).by_flow().ceilings().limits();
    the_privileged_take_turns: traces::of(KINDS).by_flow().ceilings().limits();
    who_rests_is_forgiven: traces::of(KINDS).by_flow().ceilings().lulls();
    a_flood_starves_no_light_flow: Flood;
    the_longest_gives_way: traces::of(KINDS).by_flow().ceilings().policing().limits();
    a_purse_has_a_bottom: Openers;
}

/// The queue of a packet's flow, in the core's table.
fn queue_of(world: &World, packet: &Packet) -> usize {
    let state = world.core.state();
    let (base, mask) = (state.classes[packet.class].flow_base, state.classes[packet.class].flow_mask);
    let (hash, ways) = (packet.flow.hash, u32::from(mask).min(abi::SL_FLOW_WAYS - 1));
    let way = |n: u32| usize::from(base) + ((hash & u32::from(mask) & !ways) | (hash.wrapping_add(n) & ways)) as usize;
    (0..=ways).map(way).find(|&queue| state.flow[queue].hash == hash).unwrap_or(way(0))
}

fn flows_of<'a>(world: &World<'a>, class: usize) -> Option<&'a Flows> {
    world.policy.classes.get(class).and_then(|class| class.flows.as_ref())
}

/// What the core takes for the quantum, and for the allowance.
fn terms(flows: &Flows) -> (i128, i128) {
    let quantum = flows.quantum.clamp(1, 1 << 24);
    (quantum.into(), flows.allowance.clamp(quantum, 1 << 26).into())
}

/// The packets of a flow leave in the order in which they came, whether they are sent or dropped; also when another policy
/// takes force, as long as their class queues by flow.
fn a_flow_stays_in_order(core: &'static Core, case: &Case) -> TestCaseResult {
    let mut last: HashMap<(usize, u32), u64> = HashMap::new();
    // Of each class: whether it queues by flow, and the last packet that came while it did not.
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

/// Of the classes that queue by flow, the flow queues that have packets: class, number, and place (`enum sl_flow_place`).
fn standing(world: &World) -> Vec<(usize, usize, u32)> {
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

/// Whether the packet that a class has stands in no flow: it goes ahead of nobody.
fn is_alone(world: &World, class: usize) -> bool {
    world.core.state().fair[class].alone != 0
}

/// Who has packets has a place, and it is counted: express and swift flows, and the bulk flows of each host. But a packet may stand
/// alone while its class has no other.
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
            match place {
                abi::SL_FLOW_EXPRESS => ahead[class].0 += 1,
                abi::SL_FLOW_SWIFT => ahead[class].1 += 1,
                abi::SL_FLOW_BULK => {
                    src[usize::from(flow.src_host)] += 1;
                    dst[usize::from(flow.dst_host)] += 1;
                }
                _ => return Err(TestCaseError::fail(format!("flow queue {queue} stands nowhere"))),
            }
        }
        for (class, ahead) in ahead.into_iter().enumerate() {
            let fair = &state.fair[class];
            prop_assert_eq!((fair.express_flows, fair.swift_flows), ahead, "express and swift of class {}", class);
        }
        for host in 0..abi::SL_HOSTS as usize {
            let counted = (state.src_host[host].bulk_flows, state.dst_host[host].bulk_flows);
            prop_assert_eq!(counted, (src[host], dst[host]), "bulk flows of source and destination {}", host);
        }
        Ok(())
    })
}

/// The place of the flow whose packet is sent, before it is.
fn place_of(world: &World, before: &[(usize, usize, u32)], packet: &Packet) -> u32 {
    let queue = queue_of(world, packet);
    before.iter().find(|&&(_, of, _)| of == queue).map_or(abi::SL_FLOW_ABSENT, |&(.., place)| place)
}

/// While a flow of the class is express, an express flow is served; else, while one is swift, a swift one.
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

/// While a flow stays express, or swift, every other flow of its class sends no more than one packet in the same place.
fn the_privileged_take_turns(core: &'static Core, case: &Case) -> TestCaseResult {
    let mut before = Vec::new();
    // Of each flow queue that waits: since when it stands where it does, who has sent from there.
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
/// flow is express again when its class has rested for as long as it takes to pay back the allowance and a packet, and the rounds
/// that its turn may be ahead.
fn who_rests_is_forgiven(core: &'static Core, case: &Case) -> TestCaseResult {
    let longest = case.longest();
    // Of each class: since when it rests, and the rounds that had passed; and the packet that is alone there.
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
                    let due = if fits { abi::SL_FLOW_EXPRESS } else { abi::SL_FLOW_SWIFT };
                    let place = u32::from(state.flow[queue_of(world, &first)].place);
                    prop_assert_eq!(place, due, "after {} rounds, of {:?}", passed, first);
                }
            }
            _ => {}
        }
        Ok(())
    })
}

/// Whether who stands there goes ahead of turns.
fn is_privileged(place: u32) -> bool {
    matches!(place, abi::SL_FLOW_EXPRESS | abi::SL_FLOW_SWIFT)
}

/// What has gone ahead of turns, and what rounds have given back for it: over every window at most so much.
#[derive(Default)]
struct Credit {
    taken: i128,
    least: i128,
}

impl Credit {
    fn takes(&mut self, len: u32, given: i128, most: i128) -> TestCaseResult {
        self.least = self.least.min(self.taken - given);
        self.taken += i128::from(len);
        let used = self.taken - given - self.least;
        prop_assert!(used <= most, "{} bytes ahead of turns, not {} at most", used, most);
        Ok(())
    }
}

/// In any time, what a flow sends while it is express or swift is at most allowance + quantum * rounds + a packet; but for what is alone
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

/// One class that queues by flow, on a link of constant rate.
fn one_class(flows: Flows, limit_pkts: u32, link: u64) -> Policy {
    let class = ClassPolicy { flows: Some(flows), limit_pkts, ..ClassPolicy::default() };
    Policy { link: Some(Rate::whole(link)), classes: vec![class], ..Policy::default() }
}

fn plain(quantum: u32, allowance: u32, hosts: u32) -> Flows {
    Flows { flows: abi::SL_CLASS_FLOWS, hosts, quantum, allowance, target_ns: 0, interval_ns: 0 }
}

/// So many packets of a flow.
fn packets(gap: u32, flow: Flow, len: u32, copies: u32) -> Arrival {
    Arrival { flow, copies, ..Arrival::of(gap, 0, len) }
}

/// Few flows that soon are bulk, of packets that may be longer than the quantum.
struct Bulk;

impl Bulk {
    fn cases(self) -> BoxedStrategy<Case> {
        let terms = (200u32..3_000, 0u32..2_000, 1u64..100);
        (terms, 2u32..6, select(vec![0u32, 1_514, 9_000]))
            .prop_flat_map(|((quantum, more, link), flows, most)| {
                let most = if most == 0 { quantum } else { most };
                let len = prop_oneof![40u32.min(most)..=most, Just(most)];
                let gap = prop_oneof![8 => Just(0u32), 1 => 0u32..3_000];
                let arrival = (gap, 0..flows, len, 1u32..20);
                (Just((quantum, quantum + more, link)), vec(arrival, 10..80))
            })
            .prop_map(|((quantum, allowance, link), arrivals)| {
                let policy = one_class(plain(quantum, allowance, abi::SL_HOSTS_NONE), u32::MAX, link);
                let of = |(gap, hash, len, copies)| packets(gap, Flow { hash, ..Flow::default() }, len, copies);
                let arrivals = arrivals.into_iter().map(of).collect();
                Case { phases: vec![Phase { arrivals, ..Phase::default() }], ..Case::of(policy) }
            })
            .boxed()
    }
}

/// Over every interval in which two flows stay bulk, what they send differs by the quantum and a packet of each at most; by
/// another quantum where packets are longer than it, since a flow that sits out a round comes before or after others then.
fn bulk_flows_share(core: &'static Core, case: &Case) -> TestCaseResult {
    let quantum = case.policy.classes[0].flows.expect("by flow").quantum;
    let mut longest = [0u32; 8];
    for arrival in case.phases.iter().flat_map(|phase| &phase.arrivals) {
        let longest = &mut longest[arrival.flow.hash as usize];
        *longest = arrival.len.max(*longest);
    }
    let mut bulk = Vec::new();
    // Of each pair that is bulk: the least and the most by which the first was ahead since.
    let mut seen: HashMap<(usize, usize), (i64, i64, i64)> = HashMap::new();
    run(core, case, |world, event| {
        match event {
            Event::Asking => {
                let is_bulk = |&(.., place): &(usize, usize, u32)| place == abi::SL_FLOW_BULK;
                bulk = standing(world).into_iter().filter(is_bulk).map(|(_, queue, _)| queue).collect();
                seen.retain(|(one, other), _| bulk.contains(one) && bulk.contains(other));
            }
            Event::Sent(packet) => {
                let sender = packet.flow.hash as usize;
                if !bulk.contains(&sender) {
                    return Ok(());
                }
                for &other in bulk.iter().filter(|&&other| other != sender) {
                    let (ahead, least, most) = seen.entry((sender.min(other), sender.max(other))).or_default();
                    *ahead += if sender < other { i64::from(packet.len) } else { -i64::from(packet.len) };
                    (*least, *most) = (*ahead.min(least), *ahead.max(most));
                    let quanta = if longest[sender].max(longest[other]) > quantum { 2 } else { 1 };
                    let bound = i64::from(quanta * quantum + longest[sender] + longest[other]);
                    let range = *most - *least;
                    prop_assert!(range <= bound, "flows {} and {}: {}, not {}", sender, other, range, bound);
                }
            }
            _ => {}
        }
        Ok(())
    })
}

/// Two hosts that send as much as they can, by different numbers of flows, and have come before.
struct Hosts;

/// That a flow's turns give it, if it is alone at its host.
const ROUNDS: u32 = 150;

impl Hosts {
    fn cases(self) -> BoxedStrategy<Case> {
        let counts = (1usize..=3, 1usize..=8);
        (counts, 300u32..2_000, 0u32..4, vec(500u32..=1_000, 16), 1u64..100)
            .prop_map(|(counts, quantum, hosts, lengths, link)| {
                let policy = one_class(plain(quantum, quantum, hosts), u32::MAX, link);
                let flow = |host: usize, n: usize| {
                    let (host, other) = (host as u16, (16 * host + n) as u16);
                    let (src, dst) = if hosts == abi::SL_HOSTS_DESTINATION { (other, host) } else { (host, other) };
                    Flow { hash: (16 * host + other % 16).into(), src, dst, ecn: false }
                };
                let flows = (0..counts.0).map(|n| (0, n)).chain((0..counts.1).map(|n| (1, n)));
                let bytes = |host| ROUNDS * quantum / if hosts == 0 { 1 } else { [counts.0, counts.1][host] as u32 };
                let supply = |((host, n), share): ((usize, usize), u32)| {
                    let len = (quantum * share / 1_000).max(40);
                    packets(0, flow(host, n), len, bytes(host) / len + 4)
                };
                let before = Phase {
                    arrivals: (0..2).map(|host| packets(0, flow(host, 15), quantum, 8)).collect(),
                    pause: 40,
                    ..Phase::default()
                };
                let both = Phase { arrivals: flows.zip(lengths).map(supply).collect(), ..Phase::default() };
                Case { phases: vec![before, both], ..Case::of(policy) }
            })
            .boxed()
    }
}

/// While all flows are bulk, hosts send the same, or without regard to hosts, flows do; within twice a quantum and a packet
/// for each flow, and a byte for each turn, which is rounded.
fn hosts_share(core: &'static Core, case: &Case) -> TestCaseResult {
    let flows = case.policy.classes[0].flows.expect("by flow");
    let arrivals = &case.phases[1].arrivals;
    let of = |host| arrivals.iter().filter(|arrival| arrival.flow.hash / 16 == host).count() as i64;
    let counts = [of(0), of(1)];
    let shares = if flows.hosts == abi::SL_HOSTS_NONE { counts } else { [1, 1] };
    let each = 2 * i64::from(flows.quantum + case.longest()[0]);
    let (mut measuring, mut over, mut sent, mut turns) = (false, false, [0, 0], 0);
    run(core, case, |world, event| {
        match event {
            Event::Asking => {
                let bulk = standing(world).iter().filter(|&&(.., place)| place == abi::SL_FLOW_BULK).count();
                let all = bulk as i64 == counts[0] + counts[1] && world.now > 0;
                over |= measuring && !all;
                measuring = all && !over;
            }
            Event::Sent(packet) if measuring => {
                sent[packet.flow.hash as usize / 16] += i64::from(packet.len);
                turns += 1;
                let ahead = sent[0] * shares[1] - sent[1] * shares[0];
                let bound = (counts[0] * shares[1] + counts[1] * shares[0]) * each + turns * shares[0].max(shares[1]);
                prop_assert!(ahead.abs() <= bound, "{:?} bytes by {:?} flows, bound {}", sent, counts, bound);
            }
            _ => {}
        }
        Ok(())
    })
}

/// Flows that send more than the link carries, until the class is full; and light ones, of other hosts, each of which sends
/// less than a quantum while the link sends twice as many quanta as there are flows.
struct Flood;

/// Light flows: from this hash on.
const LIGHT: u32 = 100;

impl Flood {
    fn cases(self) -> BoxedStrategy<Case> {
        let terms = (300u32..3_000, 1u32..8, 0u32..4, any::<bool>(), any::<bool>());
        let counts = (1u32..=6, 1u32..=4);
        let light = (500u32..=1_000, 10u32..60, 1u64..100);
        (terms, counts, light, vec(125u32..=1_000, 6))
            .prop_map(|((quantum, quanta, hosts, one_host, full), (floods, lights), (share, steps, link), lengths)| {
                let (allowance, len) = (quanta * quantum, quantum * share / 1_000);
                let flood = |n: u32| {
                    let host = if one_host { 0 } else { n as u16 };
                    (Flow { hash: n, src: host, dst: host, ecn: false }, quantum * lengths[n as usize] / 1_000)
                };
                let first = |(flow, len)| packets(0, flow, len, (2 * allowance + 14 * quantum + 6_000) / len);
                let arrivals: Vec<_> = (0..floods).map(flood).map(first).collect();
                let queued: u32 = arrivals.iter().map(|arrival| arrival.copies).sum();
                let pause = floods * (allowance + 2 * quantum) / 1_500 + 3;
                let before = Phase { arrivals, pause, ..Phase::default() };
                // Of the link's bytes, one of this many is a light flow's.
                let every = 2 * (floods + lights) + 2;
                // The flood, in what the link carries.
                let times = if full { 8 } else { 2 };
                let step = |n: u32| {
                    let host = (LIGHT + n % lights) as u16;
                    let flow = Flow { hash: host.into(), src: host, dst: host, ecn: false };
                    let time = (1_000 * every * len).div_ceil(lights);
                    let more = move |(flow, of)| packets(0, flow, of, times * every * len / (lights * floods * of) + 2);
                    let mut step: Vec<_> = (0..floods).map(flood).map(more).collect();
                    step[0].gap = time.div_ceil(step[0].len * step[0].copies);
                    step.push(packets(0, flow, len, 1));
                    step
                };
                let beside = Phase { arrivals: (0..steps).flat_map(step).collect(), ..Phase::default() };
                let limit = if full { queued + 50 } else { 2_000 };
                let policy = one_class(plain(quantum, allowance, hosts), limit.max(60 * floods), link);
                Case { phases: vec![before, beside], ..Case::of(policy) }
            })
            .boxed()
    }
}

/// A packet of a light flow is never refused or dropped, is express, and waits for no more than a packet of each other light flow, and
/// for the one that the link is busy with.
fn a_flood_starves_no_light_flow(core: &'static Core, case: &Case) -> TestCaseResult {
    let arrivals = case.phases.iter().flat_map(|phase| &phase.arrivals);
    let lights = arrivals.map(|arrival| arrival.flow.hash).max().map_or(0, |hash| hash.saturating_sub(LIGHT) + 1);
    // Light packets that wait, and how many others have been sent since.
    let mut waiting: Vec<(Packet, u32)> = Vec::new();
    run(core, case, |world, event| {
        match event {
            Event::Arrived(packet, answer) if packet.flow.hash >= LIGHT => {
                prop_assert_eq!(*answer, Ok(()), "of {:?}", packet);
                let place = world.core.state().flow[queue_of(world, packet)].place;
                prop_assert_eq!(u32::from(place), abi::SL_FLOW_EXPRESS, "the place of {:?}", packet);
                waiting.push((*packet, 0));
            }
            Event::Dropped(packet, _) => prop_assert!(packet.flow.hash < LIGHT, "dropped: {:?}", packet),
            Event::Sent(packet) => {
                waiting.retain(|(light, _)| light.number != packet.number);
                for (light, others) in &mut waiting {
                    *others += 1;
                    prop_assert!(*others < lights, "{} have gone before {:?}", others, light);
                }
            }
            _ => {}
        }
        Ok(())
    })
}

/// When the class is full, packets of its longest flow make room: half of them from its head, rounded up, and 64 at most;
/// when the slots are about to be used up, of the class that has the most. A flow keeps its only packet. Nobody else is
/// dropped, nor at any other time. For want of packets a newcomer is refused only if every flow has one at most.
fn the_longest_gives_way(core: &'static Core, case: &Case) -> TestCaseResult {
    let (mut open, mut dropped) = (true, Vec::new());
    run(core, case, |world, event| {
        let (packet, answer) = match event {
            Event::Arriving(class) => {
                open = world.ceil[*class].open(world.now);
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
            queued.chain(gone).copied().collect::<Vec<_>>()
        };
        let bytes = |packets: &[Packet]| packets.iter().map(|packet| u64::from(packet.len)).sum::<u64>();
        let class = packet.class;
        let (policy, own) = (&world.policy.classes[class], of(class));
        let full = own.len() as u64 >= policy.limit_pkts.into()
            || bytes(&own) + u64::from(packet.len) > policy.limit_bytes.into();
        let all: usize = world.queues.iter().map(|queue| queue.len()).sum::<usize>() + dropped.len();
        let short = all - usize::from(answer.is_ok()) + 64 >= world.policy.slots as usize;
        let victim = if flows_of(world, class).is_none() || (policy.policed && !open) {
            None
        } else if full {
            Some(own)
        } else if short {
            let by_flow = (0..CLASSES).rev().filter(|&class| flows_of(world, class).is_some());
            by_flow.map(of).max_by_key(|packets| bytes(packets))
        } else {
            None
        };
        let mut flows: BTreeMap<usize, Vec<Packet>> = BTreeMap::new();
        for packet in victim.into_iter().flatten() {
            flows.entry(queue_of(world, &packet)).or_default().push(packet);
        }
        let longer = flows.into_values().rev().filter(|packets| packets.len() > 1);
        let mut longest = longer.max_by_key(|packets| bytes(packets)).unwrap_or_default();
        longest.sort_by_key(|packet| packet.number);
        let half = longest.len().div_ceil(2).min(64).min(longest.len().saturating_sub(1));
        prop_assert_eq!(&dropped, &longest[..half], "dropped for {:?}", packet);
        if *answer == Err(abi::SL_DROP_LIMIT_PKTS) && flows_of(world, class).is_some() {
            prop_assert!(dropped.is_empty(), "refused, and others were dropped: {:?}", packet);
        }
        Ok(())
    })
}

/// A source that opens a flow for each packet, one that sends little, and one that sends all the time.
struct Openers;

const OPENER: u16 = 1;
const BYSTANDER: u16 = 2;
const SENDER: u16 = 3;

impl Openers {
    fn cases(self) -> BoxedStrategy<Case> {
        let terms = (300u32..2_000, 1u32..6, any::<bool>(), 1u64..100);
        let opens = (0u32..5_000, Just(OPENER), prop_oneof![1u32..5, 1u32..150], 40u32..=1_514);
        let others = (0u32..5_000, select(vec![BYSTANDER, SENDER]), 1u32..4, 40u32..=1_514);
        (terms, vec(prop_oneof![opens, others], 10..60))
            .prop_map(|((quantum, times, both, link), sends)| {
                let hosts = if both { 3 } else { abi::SL_HOSTS_SOURCE };
                let policy = one_class(plain(quantum, times * quantum, hosts), u32::MAX, link);
                let mut opened = 0;
                let mut arrivals = vec![packets(0, Flow { hash: 1_001, src: SENDER, dst: 7, ecn: false }, 1_514, 20)];
                for (gap, src, count, len) in sends {
                    let flow = Flow { hash: 1_000, src, dst: src, ecn: false };
                    match src {
                        OPENER => arrivals.extend((0..count).map(|n| {
                            opened = (opened + 1) % 900;
                            packets(if n == 0 { gap } else { 0 }, Flow { hash: opened, ..flow }, len, 1)
                        })),
                        SENDER => arrivals.push(packets(gap / 10, Flow { hash: 1_001, ..flow }, len, 3 * count)),
                        _ => arrivals.push(packets(gap, flow, len, 1)),
                    }
                }
                Case { phases: vec![Phase { arrivals, ..Phase::default() }], ..Case::of(policy) }
            })
            .boxed()
    }
}

/// In any time, all flows of a source send at most 8 allowances + 8 quanta * rounds + a packet ahead of turns. So a packet
/// of another source's express flow waits for no more than 8 allowances and a packet of them: meanwhile no round passes.
fn a_purse_has_a_bottom(core: &'static Core, case: &Case) -> TestCaseResult {
    let (quantum, allowance) = terms(&case.policy.classes[0].flows.expect("by flow"));
    let most = 8 * allowance + i128::from(case.longest()[0]);
    let (mut before, mut credits) = (Vec::new(), HashMap::<u16, Credit>::new());
    // What openers have sent while a bystander that is express has waited.
    let mut waited = None;
    run(core, case, |world, event| {
        match event {
            Event::Asking => before = standing(world),
            Event::Arrived(packet, _) if packet.flow.src == BYSTANDER && waited.is_none() => {
                let place = world.core.state().flow[queue_of(world, packet)].place;
                waited = (u32::from(place) == abi::SL_FLOW_EXPRESS).then_some(0);
            }
            Event::Sent(packet) => {
                if is_privileged(place_of(world, &before, packet)) {
                    let given = 8 * quantum * i128::from(world.core.state().fair[0].round);
                    credits.entry(packet.flow.src).or_default().takes(packet.len, given, most)?;
                }
                match packet.flow.src {
                    BYSTANDER => waited = None,
                    OPENER => waited = waited.map(|bytes: i128| bytes + i128::from(packet.len)),
                    _ => {}
                }
                prop_assert!(waited.is_none_or(|bytes| bytes <= most), "{:?} bytes go before, not {}", waited, most);
            }
            _ => {}
        }
        Ok(())
    })
}
