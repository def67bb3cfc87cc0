//! Early drop beside dropping at the queue: the same arrivals, the same policy, and who loses how much.

use sluice_abi as abi;
use sluice_core::{Packet, Scheduler, Underway, Verdict};
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;
const FRAME: u32 = 1500;
/// Bit/s of the link.
const LINK: u64 = 10_000_000;
const TIME_NS: u64 = 2_000 * MS;

/// A sender: a class, a flow, the time between two of its packets, and the length of each.
#[derive(Clone, Copy)]
struct Sender {
    class: u32,
    flow: u32,
    gap_ns: u64,
    len_bytes: u32,
}

/// How packets come to the queue: so many at once, as a driver hands them over, and past a hook that drops early, or not.
#[derive(Clone, Copy)]
struct Way {
    batch: u64,
    early: bool,
}

struct Outcome {
    /// Bytes that were sent, by class and flow.
    sent: BTreeMap<(u32, u32), u64>,
    /// Packets that came to the queue.
    at_queue: u64,
}

fn conf(flows: u32) -> Box<abi::sl_sched_conf> {
    let mut conf = abi::boxed_zeroed::<abi::sl_sched_conf>();
    conf.kind = abi::SL_DEFICIT_ROUND_ROBIN;
    conf.generation = 1;
    conf.slots = abi::SL_SLOTS;
    conf.link_cost = (8_000_000_000u64 << 20) / LINK;
    for class in &mut conf.classes[..2] {
        class.quantum_bytes = FRAME;
        class.limit_pkts = 100;
        class.limit_bytes = u32::MAX;
        class.flows = flows;
        class.flow_quantum_bytes = FRAME;
        class.allowance_bytes = 2 * FRAME;
    }
    conf
}

fn play(flows: u32, senders: &[Sender], way: Way) -> Outcome {
    let mut scheduler = Scheduler::new(&conf(flows), 0);
    let mut outcome = Outcome { sent: BTreeMap::new(), at_queue: 0 };
    let mut underway = [Underway::default(); 2];
    let mut next: Vec<u64> = senders.iter().map(|sender| sender.gap_ns / 3).collect();
    let mut ring: Vec<(Packet, u32)> = Vec::new();
    let (mut flow_of, mut wake_ns) = (BTreeMap::new(), 0);
    let mut now = 0;
    while now < TIME_NS {
        let (at, sender) = (0..senders.len()).map(|n| (next[n], n)).min().expect("a sender");
        if wake_ns <= at {
            now = wake_ns.max(now);
            wake_ns = match scheduler.dequeue(now) {
                Verdict::Send { slot, class, len_bytes, .. } => {
                    *outcome.sent.entry((class, flow_of[&slot])).or_default() += u64::from(len_bytes);
                    now
                }
                Verdict::Wait(until) => until,
                Verdict::Idle => u64::MAX,
            };
            while scheduler.reap().is_some() {}
            continue;
        }
        now = at;
        let Sender { class, flow, gap_ns, len_bytes } = senders[sender];
        next[sender] += gap_ns;
        let flow_hash = flow.wrapping_mul(0x9e37_79b9);
        ring.push((Packet { class, len_bytes, segments: 1, flow_hash, ..Packet::default() }, flow));
        if ring.len() as u64 >= way.batch {
            // The hook sees all of a batch before the queue does.
            ring.retain(|(packet, _)| {
                !way.early || !scheduler.drops_early(&mut underway[packet.class as usize], packet, now)
            });
            for (packet, flow) in ring.drain(..) {
                outcome.at_queue += 1;
                if let Ok(slot) = scheduler.enqueue_packet(&packet, now) {
                    flow_of.insert(slot, flow);
                }
                while scheduler.reap().is_some() {}
            }
            wake_ns = wake_ns.min(now);
        }
    }
    outcome
}

/// One flow at so many times the link's rate, and one at a tenth of it.
fn overload(times: u64, light_class: u32) -> Vec<Sender> {
    let gap = |bps: u64| u64::from(FRAME) * 8 * 1_000_000_000 / bps;
    let light = Sender { class: light_class, flow: 2, gap_ns: gap(LINK / 10), len_bytes: FRAME };
    vec![Sender { class: 0, flow: 1, gap_ns: gap(LINK * times), len_bytes: FRAME }, light]
}

/// Asserts that each class and flow sends within `percent` of what it sends without early drop, and gives the packets that came to the queue
/// for each that was sent.
fn compare(flows: u32, senders: &[Sender], batch: u64, percent: f64) -> f64 {
    let [early, late] = [true, false].map(|early| play(flows, senders, Way { batch, early }));
    assert_eq!(early.sent.keys().collect::<Vec<_>>(), late.sent.keys().collect::<Vec<_>>());
    for (who, bytes) in &late.sent {
        let off = (early.sent[who] as f64 / *bytes as f64 - 1.0).abs() * 100.0;
        assert!(off <= percent, "class {}, flow {}: {} bytes, and {bytes} without", who.0, who.1, early.sent[who]);
    }
    let sent: u64 = early.sent.values().sum();
    early.at_queue as f64 / (sent / u64::from(FRAME)) as f64
}

#[test]
fn one_queue_loses_the_same() {
    for times in [1, 2, 5, 10] {
        // Without batches nothing is under way: the very same packets are sent.
        let passed = compare(0, &overload(times, 1), 1, 0.0);
        assert!(passed < 1.2, "{passed:.2} packets come to the queue for each that is sent, at {times} times the rate");
        compare(0, &overload(times, 1), 64, 1.0);
    }
}

#[test]
fn flows_lose_the_same() {
    for times in [2, 5, 10] {
        for batch in [1, 64] {
            let passed = compare(256, &overload(times, 0), batch, 2.0);
            assert!(
                passed < 1.2,
                "{passed:.2} packets come to the queue for each that is sent, at {times} times the rate"
            );
        }
    }
}

/// However many packets a batch has, those that come to the queue are about as many as it sends: so their cost follows the link's rate.
#[test]
fn the_link_sets_the_number_that_passes() {
    let at_queue = |times| play(0, &overload(times, 1), Way { batch: 64, early: true }).at_queue as f64;
    let (few, many) = (at_queue(2), at_queue(50));
    assert!(many < 1.1 * few, "{few} packets come to the queue at twice the rate, {many} at 50 times");
}

/// A flow that sends a tenth of the link loses nothing beside one that sends ten times the link, in one class that is full all the time.
#[test]
fn a_light_flow_loses_nothing() {
    let outcome = play(256, &overload(10, 0), Way { batch: 64, early: true });
    let offered = TIME_NS / 1_000 * (LINK / 10 / 8) / 1_000_000;
    let sent = outcome.sent[&(0, 2)];
    assert!(sent + 3 * u64::from(FRAME) >= offered, "{sent} bytes of {offered}");
}

/// Packets that something else takes away between hook and queue are forgotten after a millisecond.
#[test]
fn packets_that_never_come_are_forgotten() {
    let scheduler = Scheduler::new(&conf(0), 0);
    let mut underway = Underway::default();
    let packet = Packet { class: 0, len_bytes: FRAME, segments: 1, ..Packet::default() };
    let mut passed = |now_ns: u64| (0..300).filter(|_| !scheduler.drops_early(&mut underway, &packet, now_ns)).count();
    assert_eq!([5 * MS, 5 * MS + MS / 2, 7 * MS].map(&mut passed), [100, 0, 100]);
}
