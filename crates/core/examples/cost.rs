//! `cost [REPEATS]`: the cost of the core natively, through the functions that the crate exports. Prints CSV: discipline, classes with packets,
//! packets queued, repeat, ns. The rows of a discipline time one enqueue and one dequeue of a packet beside a standing backlog. Those of
//! `overflow` time an arrival when all slots are taken, by number of flows (in the column of classes); those of `ceilings` a departure when
//! this many classes wait for their ceilings. The rows of `tree` time a packet of a tree with this many leaves (in the column of classes) on three
//! levels, each with a ceiling and a guarantee, by flow, with CoDel: alone; while each leaf holds a packet; and 1 or 4 of each of 4 flows.

use sluice_abi as abi;
use sluice_core::hierarchy::{Bucket, LeafQueue, Node, Tree, Verdict as Turn};
use sluice_core::{Packet, Scheduler, Verdict};
use std::time::{Duration, Instant};

const PACKETS: u32 = 1_000_000;

fn main() {
    let repeats: u32 = std::env::args().nth(1).map_or(5, |text| text.parse().expect("a number of repeats"));
    println!("discipline,classes,backlog_pkts,repeat,ns_per_packet");
    for discipline in abi::disciplines() {
        if discipline.number == abi::SL_PIFO {
            for rank in abi::rank_functions() {
                measure(&format!("{}/{}", discipline.name, rank.name), discipline.number, rank.number, repeats);
            }
        } else {
            measure(discipline.name, discipline.number, 0, repeats);
        }
    }
    for count in [16, 128, 1024] {
        for repeat in 1..=repeats {
            println!("overflow,{count},{},{repeat},{:.2}", abi::SL_SLOTS, ns_per_overflow(count));
        }
    }
    for count in [1, 8, 64] {
        for repeat in 1..=repeats {
            println!("ceilings,{count},{},{repeat},{:.2}", 64 * count, ns_per_release(count));
        }
    }
    for leaves in [64, 1_000, 10_000] {
        for backlog in [0, leaves, 4 * leaves] {
            for repeat in 1..=repeats {
                println!("tree,{leaves},{backlog},{repeat},{:.2}", ns_per_packet_of_tree(leaves, backlog));
            }
        }
    }
}

/// Time of an arrival and a departure, of any leaf, beside so many packets: four of each leaf are of four flows.
fn ns_per_packet_of_tree(leaves: u32, backlog: u32) -> f64 {
    const LINK: u32 = abi::SL_FIRST_INNER;
    let mut tree = Tree::default();
    let codel = (5_000_000, 100_000_000);
    tree.set_queue(0, &LeafQueue { target_ns: codel.0, interval_ns: codel.1, ..LeafQueue::by_flow() });
    let share = |of: u32| Some(Bucket { bits_per_second: 40_000_000_000 / u64::from(of), burst_ns: 10_000_000 });
    let sites = leaves / 32;
    let node = |of: u32, parent| Node { ceil: share(1), rate: share(4 * of), ..Node::below(parent) };
    for site in 1..=sites {
        tree.configure(LINK + site, &node(sites, LINK), 1).expect("the link is there");
    }
    for leaf in 0..leaves {
        tree.configure(leaf, &node(leaves, LINK + 1 + leaf % sites), 1).expect("sites are there");
    }
    let packet = |n: u32| Packet {
        class: n.wrapping_mul(7919) % leaves,
        len_bytes: 64 + n * 7919 % 1450,
        segments: 1,
        flow_hash: (n / leaves % 4).wrapping_mul(0x9e37_79b9),
        ..Packet::default()
    };
    for n in 0..backlog {
        tree.enqueue_packet(&packet(n), 1).expect("room");
    }
    let start = Instant::now();
    for n in 0..PACKETS {
        let now_ns = u64::from(n) * 1000;
        tree.enqueue_packet(&packet(backlog + n), now_ns).expect("room");
        assert!(matches!(tree.dequeue(now_ns), Turn::Send { .. }), "no ceiling is reached");
        while tree.reap().is_some() {}
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(PACKETS)
}

/// Time of an arrival of a class that has this many flows and all slots, each flow as long as any other: the longest flow drops first.
fn ns_per_overflow(flows: u32) -> f64 {
    let mut conf = configuration(abi::SL_STRICT_PRIORITY, 0);
    let class = &mut conf.classes[0];
    (class.flows, class.flow_quantum_bytes, class.allowance_bytes) = (abi::SL_CLASS_FLOWS, 1514, 10_000);
    let mut s = Scheduler::new(&conf, 1);
    let packet = |n: u32| Packet {
        len_bytes: 64 + n * 7919 % 1450,
        segments: 1,
        flow_hash: (n % flows).wrapping_mul(0x9e37_79b9),
        ..Packet::default()
    };
    let mut arrive = |n: u32| {
        s.enqueue_packet(&packet(n), 1).expect("room is made");
        while s.reap().is_some() {}
    };
    (0..2 * abi::SL_SLOTS).for_each(&mut arrive);
    let start = Instant::now();
    (0..PACKETS).for_each(&mut arrive);
    start.elapsed().as_secs_f64() * 1e9 / f64::from(PACKETS)
}

/// Time of an arrival and a departure while each of this many classes waits for its ceiling of 1 Mbit/s.
fn ns_per_release(classes: u32) -> f64 {
    const FRAME_BYTES: u32 = 1000;
    let mut conf = configuration(abi::SL_STRICT_PRIORITY, 0);
    for class in &mut conf.classes {
        class.ceil_cost = 8_000 << 20;
    }
    let mut s = Scheduler::new(&conf, 1);
    for n in 0..64 * classes {
        s.enqueue(n % classes, FRAME_BYTES, 1, 1).expect("room");
    }
    let (mut now_ns, mut spent) = (1, Duration::ZERO);
    for _ in 0..PACKETS {
        let start = Instant::now();
        let verdict = s.dequeue(now_ns);
        if let Verdict::Send { class, .. } = verdict {
            s.enqueue(class, FRAME_BYTES, 1, now_ns).expect("room");
        }
        spent += start.elapsed();
        now_ns = match verdict {
            Verdict::Wait(until_ns) => until_ns,
            _ => now_ns,
        };
    }
    spent.as_secs_f64() * 1e9 / f64::from(PACKETS)
}

fn measure(name: &str, kind: u32, rank: u32, repeats: u32) {
    for (classes, backlog) in [(1, 0), (8, 1024), (64, 1024), (64, 10_000)] {
        for repeat in 1..=repeats {
            println!("{name},{classes},{backlog},{repeat},{:.2}", ns_per_packet(kind, rank, classes, backlog));
        }
    }
}

fn ns_per_packet(kind: u32, rank: u32, classes: u32, backlog: u32) -> f64 {
    let mut s = Scheduler::new(&configuration(kind, rank), 1);
    let length = |n: u32| 64 + n * 7919 % 1450;
    for n in 0..backlog {
        s.enqueue(n % classes, length(n), 1, 1).expect("room");
    }
    let start = Instant::now();
    for n in 0..PACKETS {
        let now_ns = u64::from(n) * 1000;
        s.enqueue(n % classes, length(n), 1, now_ns).expect("room");
        assert!(matches!(s.dequeue(now_ns), Verdict::Send { .. }), "nothing limits");
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(PACKETS)
}

fn configuration(kind: u32, rank: u32) -> Box<abi::sl_sched_conf> {
    let mut conf = abi::boxed_zeroed::<abi::sl_sched_conf>();
    (conf.kind, conf.rank, conf.generation, conf.slots) = (kind, rank, 1, abi::SL_SLOTS);
    conf.rank_shift = match rank {
        abi::SL_RANK_PRIORITY => 0,
        abi::SL_RANK_SHORTEST_PACKET => 4,
        abi::SL_RANK_LEAST_ATTAINED_SERVICE => 12,
        abi::SL_RANK_START_TIME_FAIR => 44,
        _ => 16,
    };
    for (n, class) in (0..).zip(&mut conf.classes) {
        (class.level, class.quantum_bytes, class.weight) = (n, 1514, n + 1);
        (class.limit_pkts, class.limit_bytes) = (abi::SL_SLOTS, u32::MAX);
        class.budget_ns = u64::from(n + 1) * 1_000_000;
    }
    conf
}
