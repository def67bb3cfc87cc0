//! Random configurations and operations: every class, limits that bind and limits that don't, bursts, pauses, overload
//! and draining, long packets, and now and then another discipline under full queues.

use rand::Rng;
use rand::rngs::SmallRng;
use sluice_abi as abi;

fn cost(random: &mut SmallRng, least_bps: u64, most_bps: u64) -> u64 {
    (8_000_000_000 << 20) / random.random_range(least_bps..=most_bps)
}

/// The configurations from which a trace may choose.
pub fn configurations(random: &mut SmallRng, kind: Option<u32>) -> Vec<abi::sl_sched_conf> {
    (0..abi::SL_TRACE_CONFS).map(|n| configuration(random, n, kind)).collect()
}

fn configuration(random: &mut SmallRng, number: u32, kind: Option<u32>) -> abi::sl_sched_conf {
    let mut conf = *abi::boxed_zeroed::<abi::sl_sched_conf>();
    let other = number % 4 == 3;
    conf.kind = kind.filter(|_| !other).unwrap_or_else(|| random.random_range(0..abi::SL_KINDS));
    conf.rank = number % abi::SL_RANKS;
    conf.rank_shift = match conf.rank {
        abi::SL_RANK_PRIORITY => 0,
        abi::SL_RANK_SHORTEST_PACKET => random.random_range(2..6),
        abi::SL_RANK_LEAST_ATTAINED_SERVICE => random.random_range(4..14),
        abi::SL_RANK_START_TIME_FAIR => random.random_range(38..=51),
        _ => random.random_range(12..20),
    };
    conf.generation = number + 1;
    conf.slots = random.random_range(100..4000);
    if random.random_bool(0.7) {
        conf.link_cost = cost(random, 3_000_000_000, 12_000_000_000);
        conf.link_burst_ns = random.random_range(0..100_000);
    }
    if random.random_bool(0.3) {
        conf.overhead_bytes = random.random_range(-14..50);
        conf.mpu_bytes = random.random_range(0..100);
        conf.cells = random.random_range(0..3);
    }
    for class in &mut conf.classes {
        class.level = random.random_range(0..64);
        class.limit_pkts = if random.random_bool(0.05) { 0 } else { random.random_range(1..300) };
        class.limit_bytes = if random.random_bool(0.5) { u32::MAX } else { random.random_range(1000..400_000) };
        class.quantum_bytes = random.random_range(1..5000);
        class.weight =
            if random.random_bool(0.9) { random.random_range(1..100) } else { random.random_range(1..65536) };
        class.budget_ns = random.random_range(0..100_000_000);
        if random.random_bool(0.3) {
            class.ceil_cost = cost(random, 50_000_000, 800_000_000);
            class.ceil_burst_ns = random.random_range(0..1_000_000);
            class.policed = u32::from(random.random_bool(0.3));
            if random.random_bool(0.5) {
                class.peak_cost = class.ceil_cost / random.random_range(1..10);
                class.peak_burst_ns = random.random_range(0..100_000);
            }
        }
        if random.random_bool(0.4) {
            class.flows = [1, 16, 1024][random.random_range(0..3)];
            class.hosts = random.random_range(0..4);
            class.flow_quantum_bytes = random.random_range(300..3000);
            class.allowance_bytes = random.random_range(0..30_000);
            if random.random_bool(0.8) {
                class.target_ns = random.random_range(1_000..100_000);
                class.interval_ns = class.target_ns * random.random_range(1..30);
            }
        }
        if random.random_bool(0.1) {
            class.rate_cost = cost(random, 1_000_000, 300_000_000);
            class.rate_burst_ns = random.random_range(0..5_000_000);
        }
    }
    conf
}

/// Operations, one batch after the other.
pub struct Source {
    random: SmallRng,
    now_ns: u64,
    /// Arrivals in 100 operations, at present.
    arrivals: u32,
    started: bool,
}

impl Source {
    pub fn new(random: SmallRng) -> Source {
        Source { random, now_ns: 1_000_000_000, arrivals: 50, started: false }
    }

    pub fn batch(&mut self) -> Box<abi::sl_trace> {
        let mut trace = abi::boxed_zeroed::<abi::sl_trace>();
        trace.count = abi::SL_TRACE_OPS;
        for op in &mut trace.op {
            *op = self.operation();
        }
        trace
    }

    fn operation(&mut self) -> abi::sl_op {
        let random = &mut self.random;
        let mut op = *abi::boxed_zeroed::<abi::sl_op>();
        if random.random_ratio(1, 3000) {
            self.arrivals = [35, 50, 65, 80][random.random_range(0..4)];
        }
        self.now_ns += random.random_range(0..2000);
        if random.random_ratio(1, 10_000) {
            self.now_ns += random.random_range(0..50_000_000);
        }
        op.now_ns = self.now_ns;
        let rare = random.random_range(0..20_000);
        if !self.started || rare < 8 {
            self.started = true;
            op.kind = abi::SL_OP_CONFIGURE;
            op.class = random.random_range(0..abi::SL_TRACE_CONFS);
        } else if rare == 8 {
            op.kind = abi::SL_OP_CLEAR;
        } else if rare == 9 && random.random_ratio(1, 4) {
            op.kind = abi::SL_OP_WIPE;
            self.started = false;
        } else if random.random_ratio(1, 10) {
            op.kind = abi::SL_OP_REAP;
        } else if random.random_range(0..100) < self.arrivals {
            op.kind = abi::SL_OP_ENQUEUE;
            // A few flows that send much, and many that send little.
            op.flow_hash = if random.random_bool(0.7) { random.random_range(0..8) } else { random.random() };
            op.src_host = random.random_range(0..4);
            op.dst_host = random.random();
            op.ecn = u32::from(random.random_ratio(1, 4));
            let classes = if random.random_bool(0.5) { abi::SL_CLASSES } else { 5 };
            op.class = random.random_range(0..classes);
            op.len_bytes = random.random_range(40..1515);
            op.segments = 1;
            if random.random_ratio(1, 300) {
                op.len_bytes = 65_535;
                op.segments = 44;
            }
        } else {
            op.kind = abi::SL_OP_DEQUEUE;
        }
        op
    }
}
