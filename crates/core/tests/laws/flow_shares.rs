//! Flow queues inside a class: what flows and hosts get beside others, on traffic that is made for the question.

use crate::{
    cases::{Arrival, Case, ClassPolicy, Flow, Flows, Phase, Policy, Rate},
    flow_queues::{Credit, is_privileged, place_of, queue_of, standing, terms},
    laws,
    world::{Event, Packet, run},
};
use proptest::{collection::vec, prelude::*, sample::select, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::Core;
use std::collections::HashMap;

laws! {
    bulk_flows_share: Bulk;
    hosts_share: Hosts;
    a_flood_starves_no_light_flow: Flood;
    a_source_budget_is_bounded: Openers;
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
    // The least and the most by which the first of each bulk pair was ahead since.
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

/// The quanta that a flow has to send, if it is alone at its host.
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
                // One of this many bytes of the link is a light flow's. Its packets have half a quantum at least, and a round has two quanta of each
                // flow at most: so a round passes between two of them.
                let every = 4 * (floods + lights + 1);
                // The flood, as a multiple of the link's bytes.
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

/// A packet of a light flow is never refused or dropped, is sparse, and waits for no more than a packet of each other light flow, and
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
                prop_assert_eq!(u32::from(place), abi::SL_FLOW_SPARSE, "the place of {:?}", packet);
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
/// of another source's sparse flow waits for no more than 8 allowances and a packet of them: meanwhile no round passes.
fn a_source_budget_is_bounded(core: &'static Core, case: &Case) -> TestCaseResult {
    let (quantum, allowance) = terms(&case.policy.classes[0].flows.expect("by flow"));
    let most = 8 * allowance + i128::from(case.longest()[0]);
    let (mut before, mut credits) = (Vec::new(), HashMap::<u16, Credit>::new());
    // The bytes that openers have sent while a bystander that is sparse has waited.
    let mut waited = None;
    run(core, case, |world, event| {
        match event {
            Event::Asking => before = standing(world),
            Event::Arrived(packet, _) if packet.flow.src == BYSTANDER && waited.is_none() => {
                let place = world.core.state().flow[queue_of(world, packet)].place;
                waited = (u32::from(place) == abi::SL_FLOW_SPARSE).then_some(0);
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
