//! The promises of the core, by example. Its promises for all traffic: laws/.

use sluice_abi as abi;
use sluice_core::{Packet, Scheduler, Verdict};

const MS: u64 = 1_000_000;
const FRAME: u32 = 1500;

fn conf(kind: u32, classes: &[(u32, u32)]) -> Box<abi::sl_sched_conf> {
    let mut conf = abi::boxed_zeroed::<abi::sl_sched_conf>();
    conf.kind = kind;
    conf.generation = 1;
    conf.slots = abi::SL_SLOTS;
    for (class, &(level, quantum)) in conf.classes.iter_mut().zip(classes) {
        class.level = level;
        class.quantum_bytes = quantum;
        class.limit_pkts = 1000;
        class.limit_bytes = u32::MAX;
    }
    conf
}

fn cost(bps: u64) -> u64 {
    (8_000_000_000u64 << 20) / bps
}

/// Bytes that each class sends if the first `classes` are never empty and the link has no limit.
fn shares(scheduler: &mut Scheduler, lengths: &[u32], packets: usize) -> Vec<u64> {
    let mut sent = vec![0; lengths.len()];
    for (class, &len) in lengths.iter().enumerate() {
        for _ in 0..20 {
            scheduler.enqueue(class as u32, len, 1, 0).expect("room");
        }
    }
    for _ in 0..packets {
        let Verdict::Send { class, len_bytes, .. } = scheduler.dequeue(0) else { panic!("idle with packets") };
        sent[class as usize] += u64::from(len_bytes);
        scheduler.enqueue(class, len_bytes, 1, 0).expect("room");
    }
    sent
}

/// Bytes that each of two classes sends in this time if both always have packets.
fn backlogged(s: &mut Scheduler, time_ns: u64) -> [u64; 2] {
    let (mut now, mut sent) = (0, [0u64; 2]);
    while now < time_ns {
        for class in 0..2 {
            while s.state().classes[class].backlog_pkts < 5 {
                s.enqueue(class as u32, FRAME, 1, now).expect("room");
            }
        }
        match s.dequeue(now) {
            Verdict::Send { class, len_bytes, .. } => sent[class as usize] += u64::from(len_bytes),
            Verdict::Wait(until) => {
                assert!(until > now, "a wait until the past");
                now = until;
            }
            Verdict::Idle => panic!("idle with packets"),
        }
    }
    sent
}

#[test]
fn strict_priority_never_inverts() {
    let mut s = Scheduler::new(&conf(abi::SL_STRICT_PRIORITY, &[(2, FRAME), (0, FRAME), (1, FRAME)]), 0);
    for class in [0, 1, 2, 0, 1, 2] {
        s.enqueue(class, FRAME, 1, 0).expect("room");
    }
    let order: Vec<u32> = std::iter::from_fn(|| match s.dequeue(0) {
        Verdict::Send { class, .. } => Some(class),
        _ => None,
    })
    .collect();
    assert_eq!(order, [1, 1, 2, 2, 0, 0]);
}

#[test]
fn equal_priorities_share_by_quantum() {
    let mut s = Scheduler::new(&conf(abi::SL_STRICT_PRIORITY, &[(1, 1500), (1, 3000), (1, 4500)]), 0);
    let sent = shares(&mut s, &[1500, 700, 300], 60_000);
    for (class, weight) in [1.0, 2.0, 3.0].iter().enumerate() {
        let share = sent[class] as f64 / sent.iter().sum::<u64>() as f64;
        assert!((share - weight / 6.0).abs() < 0.002, "class {class}: {share}");
    }
}

#[test]
fn deficit_round_robin_survives_packets_far_above_the_quantum() {
    let mut s = Scheduler::new(&conf(abi::SL_DEFICIT_ROUND_ROBIN, &[(0, 500), (0, 1000)]), 0);
    let sent = shares(&mut s, &[65_000, 1500], 200_000);
    let share = sent[0] as f64 / (sent[0] + sent[1]) as f64;
    assert!((share - 1.0 / 3.0).abs() < 0.01, "{share}");
}

#[test]
fn a_ceiling_holds_its_class_alone() {
    let mut conf = conf(abi::SL_STRICT_PRIORITY, &[(0, FRAME), (1, FRAME)]);
    conf.classes[0].ceil_cost = cost(1_000_000);
    conf.classes[0].ceil_burst_ns = 12 * MS; // one frame
    conf.link_cost = cost(10_000_000);
    let mut s = Scheduler::new(&conf, 0);
    let sent = backlogged(&mut s, 2_000 * MS);
    let bps = |bytes: u64| bytes as f64 * 8.0 / 2.0;
    assert!((bps(sent[0]) / 1e6 - 1.0).abs() < 0.02, "{}", bps(sent[0]));
    assert!((bps(sent[0] + sent[1]) / 10e6 - 1.0).abs() < 0.002, "{}", bps(sent[0] + sent[1]));
}

/// A class that was idle sends its ceiling's burst at the peak, and then the average; what it owes survives another peak.
#[test]
fn a_burst_goes_at_the_peak_and_then_the_average() {
    let of_peak = |bps: u64| {
        let mut conf = conf(abi::SL_DEFICIT_ROUND_ROBIN, &[(0, FRAME)]);
        conf.classes[0].ceil_cost = cost(1_000_000);
        conf.classes[0].ceil_burst_ns = 1_000 * MS; // 125,000 bytes
        conf.classes[0].peak_cost = cost(bps);
        conf.classes[0].peak_burst_ns = 0;
        conf
    };
    let mut s = Scheduler::new(&of_peak(8_000_000), 0);
    (0..300).for_each(|_| assert!(s.enqueue(0, 1_000, 1, 0).is_ok()));
    let mut now = 0;
    let mut next = |s: &mut Scheduler| loop {
        match s.dequeue(now) {
            Verdict::Send { .. } => return now,
            Verdict::Wait(until) => now = until,
            Verdict::Idle => panic!("it has packets"),
        }
    };
    // At 8 Mbit/s a packet takes 1 ms, of which an eighth is refilled: 143 of them use the burst up.
    let sent: Vec<u64> = (0..160).map(|_| next(&mut s)).collect();
    assert!(sent[..143].iter().enumerate().all(|(i, &at)| at == i as u64 * MS), "{sent:?}");
    assert!(sent[145..].windows(2).all(|two| two[1] - two[0] == 8 * MS), "{sent:?}");
    // The packet that has just gone is owed at a peak of 2 Mbit/s, and in bytes: 4 ms, and 8 ms of the ceiling.
    let mut s = Scheduler::new(&of_peak(8_000_000), 0);
    (0..4).for_each(|_| assert!(s.enqueue(0, 1_000, 1, 0).is_ok()));
    assert!(matches!(s.dequeue(0), Verdict::Send { .. }));
    s.configure(&of_peak(2_000_000), 0);
    assert_eq!(s.dequeue(0), Verdict::Wait(4 * MS));
    let mut none = of_peak(2_000_000);
    none.classes[0].peak_cost = 0;
    s.configure(&none, 0);
    assert!(matches!(s.dequeue(0), Verdict::Send { .. }), "without a peak the burst goes at once");
}

#[test]
fn rates_are_exact_in_the_long_run() {
    for (bps, len) in [(64_000, 1500), (20_000_000, 64), (1_000_000_000, 64), (10_000_000_000, 1500)] {
        let mut conf = conf(abi::SL_STRICT_PRIORITY, &[(0, FRAME)]);
        conf.link_cost = cost(bps);
        let mut s = Scheduler::new(&conf, 0);
        let (mut now, mut sent) = (0, 0u64);
        for _ in 0..100_000 {
            s.enqueue(0, len, 1, now).expect("room");
            loop {
                match s.dequeue(now) {
                    Verdict::Wait(until) => now = until,
                    Verdict::Send { len_bytes, .. } => break sent += u64::from(len_bytes),
                    Verdict::Idle => panic!("idle with a packet"),
                }
            }
        }
        let got = sent as f64 * 8e9 / now as f64;
        assert!((got / bps as f64 - 1.0).abs() < 1e-4, "{bps} bit/s, {len} bytes: {got}");
    }
}

#[test]
fn a_guarantee_goes_before_a_higher_priority() {
    let mut conf = conf(abi::SL_STRICT_PRIORITY, &[(0, FRAME), (1, FRAME)]);
    conf.classes[1].rate_cost = cost(2_000_000);
    conf.classes[1].rate_burst_ns = 5 * MS;
    conf.link_cost = cost(10_000_000);
    let mut s = Scheduler::new(&conf, 0);
    let sent = backlogged(&mut s, 2_000 * MS);
    let share = sent[1] as f64 / (sent[0] + sent[1]) as f64;
    assert!((share - 0.2).abs() < 0.01, "{share}");
}

#[test]
fn a_guarantee_does_not_drown_its_class_in_debt() {
    let mut conf = conf(abi::SL_DEFICIT_ROUND_ROBIN, &[(0, FRAME), (0, FRAME)]);
    conf.classes[0].rate_cost = cost(600_000_000);
    conf.classes[0].rate_burst_ns = 5 * MS;
    conf.link_cost = cost(1_000_000_000);
    let mut s = Scheduler::new(&conf, 0);
    let sent = backlogged(&mut s, 1_000 * MS);
    assert!((sent[0] as f64 * 8.0 / 600e6 - 1.0).abs() < 0.01, "{sent:?}");
    assert!(
        s.state().classes[0].state_of::<abi::sl_drr_class>().deficit_bytes >= -(1 << 20),
        "{}",
        s.state().classes[0].state_of::<abi::sl_drr_class>().deficit_bytes
    );
}

#[test]
fn refusals_are_counted_by_reason() {
    let mut conf = conf(abi::SL_STRICT_PRIORITY, &[(0, FRAME), (0, FRAME), (0, FRAME)]);
    conf.classes[0].limit_pkts = 2;
    conf.classes[1].limit_bytes = 2000;
    conf.classes[2].policed = 1;
    conf.classes[2].ceil_cost = cost(1_000_000);
    let mut s = Scheduler::new(&conf, 0);
    let answers: Vec<_> = [0, 0, 0, 1, 1, 2, 2].iter().map(|&class| s.enqueue(class, FRAME, 1, 0).err()).collect();
    assert_eq!(
        answers,
        [
            None,
            None,
            Some(abi::SL_DROP_LIMIT_PKTS),
            None,
            Some(abi::SL_DROP_LIMIT_BYTES),
            None,
            Some(abi::SL_DROP_POLICED)
        ]
    );
    for (class, reason) in [(0, abi::SL_DROP_LIMIT_PKTS), (1, abi::SL_DROP_LIMIT_BYTES), (2, abi::SL_DROP_POLICED)] {
        assert_eq!(s.state().classes[class].dropped_pkts[reason as usize], 1);
        assert_eq!(s.state().classes[class].dropped_bytes, u64::from(FRAME));
    }
}

#[test]
fn a_new_configuration_keeps_packets_and_debts() {
    let slow = {
        let mut conf = conf(abi::SL_STRICT_PRIORITY, &[(0, FRAME), (1, FRAME)]);
        conf.link_cost = cost(64_000);
        conf
    };
    let mut s = Scheduler::new(&slow, 0);
    for class in [0, 1, 0, 1] {
        s.enqueue(class, 65_000, 1, 0).expect("room");
    }
    assert!(matches!(s.dequeue(0), Verdict::Send { class: 0, .. }));
    assert!(matches!(s.dequeue(0), Verdict::Wait(until) if until > 8_000 * MS));
    // The second class goes, the discipline changes, and so does the rate: 65,000 bytes are still owed, at 1 Gbit/s.
    let mut fast = conf(abi::SL_DEFICIT_ROUND_ROBIN, &[(0, FRAME)]);
    fast.generation = 2;
    fast.link_cost = cost(1_000_000_000);
    fast.classes[1].quantum_bytes = FRAME;
    s.configure(&fast, 0);
    let Verdict::Wait(until) = s.dequeue(0) else { panic!("the debt is gone") };
    assert!((519_000..=521_000).contains(&until), "{until}");
    assert!(s.enqueue(1, FRAME, 1, 0).is_err(), "a class that is gone takes nothing");
    let mut left = Vec::new();
    let mut now = until;
    loop {
        match s.dequeue(now) {
            Verdict::Send { class, .. } => left.push(class),
            Verdict::Wait(until) => now = until,
            Verdict::Idle => break,
        }
    }
    left.sort_unstable();
    assert_eq!(left, [0, 1, 1], "what was queued still leaves");
}

#[test]
fn clear_counts_what_it_drops_and_wipe_forgets() {
    let mut s = Scheduler::new(&conf(abi::SL_STRICT_PRIORITY, &[(0, FRAME)]), 0);
    for _ in 0..3 {
        s.enqueue(0, FRAME, 1, 0).expect("room");
    }
    s.clear();
    assert_eq!(s.dequeue(0), Verdict::Idle);
    assert_eq!(s.state().classes[0].dropped_pkts[abi::SL_DROP_RESET as usize], 3);
    assert_eq!(s.enqueue(0, FRAME, 1, 0), Ok(0), "the slots are free again");
    s.wipe();
    assert_eq!((s.state().generation, s.state().classes[0].dropped_bytes), (0, 0));
}

#[test]
fn frames_on_the_wire() {
    let wire = |overhead: i32, mpu: u32, cells: u32, len: u32, segments: u32| {
        let mut conf = conf(abi::SL_STRICT_PRIORITY, &[(0, FRAME)]);
        (conf.overhead_bytes, conf.mpu_bytes, conf.cells) = (overhead, mpu, cells);
        Scheduler::new(&conf, 0).wire_bytes(len, segments)
    };
    // Length includes 14 bytes of Ethernet; the presets count from the IP packet, so overhead is less by 14.
    assert_eq!(wire(0, 0, abi::SL_CELLS_NONE, 1514, 1), 1514);
    assert_eq!(wire(24, 84, abi::SL_CELLS_NONE, 1514, 1), 1538);
    assert_eq!(wire(24, 84, abi::SL_CELLS_NONE, 42, 1), 84);
    assert_eq!(wire(24, 84, abi::SL_CELLS_NONE, 3028, 2), 3076);
    assert_eq!(wire(26, 0, abi::SL_CELLS_ATM, 1514, 1), 33 * 53);
    assert_eq!(wire(26, 0, abi::SL_CELLS_ATM, 42, 1), 2 * 53);
    assert_eq!(wire(16, 0, abi::SL_CELLS_PTM, 1008, 1), 1024 + 16);
    assert_eq!(wire(-14, 0, abi::SL_CELLS_NONE, 1514, 1), 1500);
}

#[test]
fn every_time_falls_into_the_bucket_that_names_it() {
    for exponent in 0..50 {
        for ns in [(1u64 << exponent) - 1, 1 << exponent, (1 << exponent) + (1 << exponent >> 1)] {
            let (from, to) = abi::sojourn_bucket_ns(sluice_core::sojourn_bucket(ns));
            let clamped = ns.min((u64::from(u32::MAX)) << 10);
            assert!((from..to).contains(&clamped), "{ns} ns in [{from}, {to})");
        }
    }
}

/// A packet may come by one CPU and leave by another whose clock is behind.
#[test]
fn a_wait_below_zero_is_none() {
    for ns in [1u64, 10, 1 << 20, 1 << 40] {
        assert_eq!(sluice_core::sojourn_bucket(0u64.wrapping_sub(ns)), 0, "-{ns} ns");
    }
}

#[test]
fn classes_divide_the_flow_queues() {
    let divided = |by_flow: usize, single: usize| {
        let mut conf = conf(abi::SL_ROUND_ROBIN, &vec![(0, FRAME); by_flow + single]);
        for (n, class) in conf.classes[..by_flow + single].iter_mut().enumerate() {
            class.flows = if n < by_flow { abi::SL_CLASS_FLOWS } else { 1 };
        }
        let scheduler = Scheduler::new(&conf, 0);
        let ranges = scheduler.state().classes[..by_flow + single].iter();
        let mut ranges: Vec<(u32, u32)> =
            ranges.map(|class| (class.flow_base.into(), u32::from(class.flow_mask) + 1)).collect();
        let first = ranges[0].1;
        ranges.push((abi::SL_FLOW_QUEUES, 0));
        assert!(ranges.windows(2).all(|two| two[0].0 + two[0].1 <= two[1].0), "nobody stands in another's: {ranges:?}");
        first
    };
    assert_eq!([divided(1, 0), divided(4, 0), divided(1, 3)], [abi::SL_CLASS_FLOWS; 3]);
    assert_eq!([divided(4, 1), divided(8, 0), divided(9, 0), divided(64, 0)], [512, 512, 256, 64]);
    assert_eq!([divided(0, 64), divided(1, 63)], [1, 64]);
}

/// The use of a flow is remembered across a new rate, and forgotten where its terms change.
#[test]
fn flows_stay_while_their_terms_do() {
    let mut policy = conf(abi::SL_STRICT_PRIORITY, &[(0, FRAME)]);
    let class = &mut policy.classes[0];
    (class.flows, class.flow_quantum_bytes, class.allowance_bytes) = (16, 1_514, 3_028);
    let mut s = Scheduler::new(&policy, 0);
    let packet = |flow_hash| Packet { class: 0, len_bytes: FRAME, segments: 1, flow_hash, ..Packet::default() };
    for _ in 0..6 {
        s.enqueue_packet(&packet(1), 0).expect("room");
    }
    for _ in 0..4 {
        assert!(matches!(s.dequeue(0), Verdict::Send { .. }));
    }
    let of_one = |s: &Scheduler| (u32::from(s.state().flow[1].place), s.state().flow[1].used_bytes);
    let before = of_one(&s);
    assert_eq!(before.0, abi::SL_FLOW_BULK);

    policy.generation = 2;
    policy.link_cost = cost(1_000_000);
    s.configure(&policy, 0);
    assert_eq!(of_one(&s), before, "another rate");

    policy.generation = 3;
    policy.classes[0].allowance_bytes = 6_056;
    s.configure(&policy, 0);
    assert_eq!(of_one(&s), (abi::SL_FLOW_SPARSE, 0), "another allowance");
}

/// Frames that the first of two hosts gets of a link, if it has one download and the other has sixty; their addresses have these hashes.
fn share_of_one_download(hosts: [u16; 2]) -> f64 {
    const FLOWS: usize = 61;
    let mut conf = conf(abi::SL_STRICT_PRIORITY, &[(0, 1514)]);
    (conf.link_cost, conf.link_burst_ns) = (cost(20_000_000), MS / 4);
    let class = &mut conf.classes[0];
    (class.flows, class.hosts, class.flow_quantum_bytes, class.allowance_bytes) = (1024, 3, 1514, 48_448);
    let mut s = Scheduler::new(&conf, MS);
    let (mut now, mut queued, mut sent) = (MS, [0; FLOWS], [0u64; FLOWS]);
    let mut flow_of_slot = vec![0; abi::SL_SLOTS as usize];
    while now < 12_000 * MS {
        for (flow, queued) in queued.iter_mut().enumerate() {
            while *queued < 4 {
                let hash = (flow as u32 + 1).wrapping_mul(2_654_435_761);
                let (src_host, dst_host) = (500 + flow as u16, hosts[usize::from(flow > 0)]);
                let packet =
                    Packet { len_bytes: FRAME, segments: 1, flow_hash: hash, src_host, dst_host, ..Packet::default() };
                flow_of_slot[s.enqueue_packet(&packet, now).expect("room") as usize] = flow;
                *queued += 1;
            }
        }
        match s.dequeue(now) {
            Verdict::Send { slot, .. } => {
                let flow = flow_of_slot[slot as usize];
                queued[flow] -= 1;
                // Until then, flows use up their allowances.
                sent[flow] += u64::from(now > 6_000 * MS);
            }
            Verdict::Wait(until) => now = until,
            Verdict::Idle => panic!("idle with packets"),
        }
    }
    sent[0] as f64 / sent.iter().sum::<u64>() as f64
}

/// Hosts of one set have records of their own: before, they were one host.
#[test]
fn hosts_whose_records_are_neighbours_share_the_link() {
    for hosts in [[7, 8], [7, 7 + 1024], [7, 7 + 63 * 1024]] {
        let share = share_of_one_download(hosts);
        assert!((0.47..0.53).contains(&share), "{share} of the link for {hosts:?}");
    }
}

/// The clocks of two CPUs may differ: a packet that leaves before it came has not waited for an hour.
#[test]
fn a_clock_that_steps_back_is_no_wait() {
    let mut s = Scheduler::new(&conf(abi::SL_STRICT_PRIORITY, &[(0, 1514)]), 0);
    s.enqueue(0, 100, 1, MS).expect("room");
    assert!(matches!(s.dequeue(MS - 10), Verdict::Send { .. }));
    assert_eq!(s.state().sojourn[0].count[0], 1);
}

/// CoDel drops as many packets as it may at once, and the one behind them leaves the queue empty. Packets pass one by one then, and the
/// next burst waits for an interval before it loses one.
#[test]
fn an_empty_queue_ends_dropping() {
    const LONG: u32 = 2_000; // one that is left behind is more than a frame
    const MOST: u32 = 64;
    let mut policy = conf(abi::SL_STRICT_PRIORITY, &[(0, FRAME)]);
    let class = &mut policy.classes[0];
    (class.flows, class.flow_quantum_bytes, class.allowance_bytes) = (1, 1_514, 3_028);
    (class.target_ns, class.interval_ns) = (5 * MS, 100 * MS);
    let mut s = Scheduler::new(&policy, 0);
    let lost = |s: &Scheduler| s.state().classes[0].dropped_pkts[abi::SL_DROP_AQM as usize];
    let next = |s: &mut Scheduler, now: u64| {
        assert!(matches!(s.dequeue(now), Verdict::Send { .. }));
        while s.reap().is_some() {}
    };
    let fill = |s: &mut Scheduler, pkts: u32, now: u64| {
        while s.state().backlog_pkts < pkts {
            s.enqueue(0, LONG, 1, now).expect("room");
        }
    };
    // A packet each 12 ms: the wait is above the target for longer than the interval.
    let mut now = 0;
    fill(&mut s, MOST + 1, now);
    while lost(&s) == 0 {
        now += 12 * MS;
        next(&mut s, now);
    }
    fill(&mut s, MOST + 1, now);
    now += 100_000 * MS;
    let before = lost(&s);
    next(&mut s, now);
    assert_eq!((lost(&s) - before, s.state().backlog_pkts), (MOST.into(), 0));
    for _ in 0..3 {
        now += MS;
        fill(&mut s, 1, now);
        next(&mut s, now);
    }
    fill(&mut s, MOST + 1, now);
    let before = lost(&s);
    now += 12 * MS;
    next(&mut s, now);
    assert_eq!(lost(&s), before, "the wait was not above the target for an interval");
}

/// A packet meets an empty scheduler while slots of dropped packets are yet to be reaped. They come free meanwhile, and the packet that is
/// sent is still the one that came.
#[test]
fn reaping_does_not_disturb_a_lone_packet() {
    const LONG: u32 = 2_000;
    let mut policy = conf(abi::SL_STRICT_PRIORITY, &[(0, FRAME), (1, FRAME)]);
    let class = &mut policy.classes[0];
    (class.flows, class.flow_quantum_bytes, class.allowance_bytes) = (1, 1_514, 3_028);
    (class.target_ns, class.interval_ns) = (5 * MS, 100 * MS);
    let mut s = Scheduler::new(&policy, 0);
    let mut now = 0;
    (0..64).for_each(|_| _ = s.enqueue(0, LONG, 1, now).expect("room"));
    while s.state().backlog_pkts > 0 {
        now += 12_000 * MS;
        assert!(matches!(s.dequeue(now), Verdict::Send { .. }));
    }
    assert!(s.state().dropped_slots > 0, "CoDel has dropped packets, and none is reaped");
    let came = s.enqueue(1, 100, 1, now).expect("room");
    assert!(s.reap().is_some());
    let Verdict::Send { slot, class, .. } = s.dequeue(now) else { panic!("nothing is sent") };
    assert_eq!((slot, class), (came, 1));
}
