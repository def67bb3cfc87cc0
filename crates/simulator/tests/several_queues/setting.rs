//! A port of several tx queues, as the tests have it.

use sluice_abi as abi;
use sluice_core::shared_credit::{Class, Conf, Instance};
use sluice_simulator::{Delivery, Link, Port, SECOND_NS, Simulation, Source};

/// The longest frame.
pub const FRAME: u32 = 1500;
/// The rates that figures are told for.
pub const RATES: [u64; 3] = [10_000_000, 1_000_000_000, 10_000_000_000];
/// From here on runs are measured: the bursts at the beginning are over.
pub const WARM_NS: u64 = 50_000_000;

/// A scheduler without rates: weighted fair queuing of classes with FIFOs, or strict priority if they have levels.
pub fn scheduler(classes: &[Class]) -> Box<abi::sl_sched_conf> {
    let mut conf: Box<abi::sl_sched_conf> = abi::boxed_zeroed();
    let has_levels = classes.iter().any(|class| class.level != classes[0].level);
    conf.kind = if has_levels { abi::SL_STRICT_PRIORITY } else { abi::SL_WEIGHTED_FAIR_QUEUING };
    conf.generation = 1;
    conf.slots = 4096;
    for (class, shared) in conf.classes.iter_mut().zip(classes) {
        class.weight = shared.weight;
        class.level = shared.level as _;
        class.limit_pkts = 1000;
        class.limit_bytes = 10_000_000;
        class.quantum_bytes = FRAME;
    }
    conf
}

/// So many tx queues that share a rate; the device is ten times as fast.
pub fn simulation(queues: u32, rate: u64, classes: &[Class], sources: Vec<Source>, seed: u64) -> Simulation {
    let conf = Conf::new(queues, rate, 0, FRAME, classes);
    let port = Port {
        link: Link { bits_per_second: 10 * rate, delay_ns: 5_000 },
        ring_packets: 64,
        timer_late_ns: (conf.raw().link.batch >> 6) / 4,
    };
    let scheduler = scheduler(classes);
    let instances = (0..queues).map(|n| Instance::new(n, &scheduler, 0)).collect();
    Simulation::new(port, instances, conf, sources, seed)
}

/// How long a run takes so that a packet more or less is less than a part in 5,000 of it, or a bit more at 10 Mbit/s.
pub fn run_ns(rate: u64) -> u64 {
    if rate < 100_000_000 { 10 * SECOND_NS } else { SECOND_NS * 4 / 10 }
}

/// Bytes from one time to another that a condition holds for.
pub fn bytes(deliveries: &[Delivery], from_ns: u64, to_ns: u64, holds: impl Fn(&Delivery) -> bool) -> u64 {
    let first = deliveries.partition_point(|delivery| delivery.at_ns < from_ns);
    let last = deliveries.partition_point(|delivery| delivery.at_ns < to_ns);
    deliveries[first..last]
        .iter()
        .filter(|delivery| holds(delivery))
        .map(|delivery| u64::from(delivery.packet.bytes))
        .sum()
}

/// The rate of so many bytes, bit/s.
pub fn rate_of(bytes: u64, ns: u64) -> f64 {
    bytes as f64 * 8e9 / ns as f64
}

/// The furthest that the share of a class in any window of this length is from what it should be, of 1.
pub fn share_error(deliveries: &[Delivery], to_ns: u64, window_ns: u64, class: u32, share: f64) -> f64 {
    let (mut first, mut last, mut own, mut all, mut worst) = (0, 0, 0u64, 0u64, 0.0f64);
    let count = |n: usize| {
        let packet = deliveries[n].packet;
        (u64::from(packet.bytes), if packet.class == class { u64::from(packet.bytes) } else { 0 })
    };
    let mut from_ns = WARM_NS;
    while first < deliveries.len() && deliveries[first].at_ns < from_ns {
        first += 1;
        last = first;
    }
    // A window begins at each packet.
    while from_ns + window_ns <= to_ns && first < deliveries.len() {
        while last < deliveries.len() && deliveries[last].at_ns < from_ns + window_ns {
            let (bytes, of_class) = count(last);
            (all, own, last) = (all + bytes, own + of_class, last + 1);
        }
        worst = worst.max((own as f64 / all as f64 - share).abs());
        let (bytes, of_class) = count(first);
        (all, own, first) = (all - bytes, own - of_class, first + 1);
        from_ns = deliveries.get(first).map_or(u64::MAX - window_ns, |delivery| delivery.at_ns);
    }
    worst
}

/// How often instances have gone to shared words, for each packet.
pub fn draws_per_packet(simulation: &Simulation, queues: usize) -> f64 {
    let draws: u64 = (0..queues).map(|queue| simulation.instance(queue).own().draws).sum();
    draws as f64 / simulation.deliveries().len() as f64
}
