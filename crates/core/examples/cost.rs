//! `cost [REPEATS]`: what the core costs natively, for each discipline: one enqueue and one dequeue of a packet beside a standing backlog,
//! through the functions that the crate exports. Prints CSV: discipline, classes with packets, packets queued, repeat, ns.

use sluice_abi as abi;
use sluice_core::{Scheduler, Verdict};
use std::time::Instant;

const PACKETS: u32 = 1_000_000;
const RANKS: [&str; abi::SL_RANKS as usize] =
    ["priority", "earliest_deadline", "shortest_packet", "least_attained_service", "start_time_fair", "slack"];
const KINDS: [&str; abi::SL_KINDS as usize] =
    ["strict_priority", "deficit_round_robin", "round_robin", "weighted_fair_queuing", "eevdf", "pifo"];

fn main() {
    let repeats: u32 = std::env::args().nth(1).map_or(5, |text| text.parse().expect("a number of repeats"));
    println!("discipline,classes,backlog_pkts,repeat,ns_per_packet");
    for (kind, name) in (0..).zip(KINDS) {
        if kind == abi::SL_PIFO {
            for (rank, rank_name) in (0..).zip(RANKS) {
                measure(&format!("{name}/{rank_name}"), kind, rank, repeats);
            }
        } else {
            measure(name, kind, 0, repeats);
        }
    }
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
        abi::SL_RANK_LEAST_ATTAINED => 12,
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
