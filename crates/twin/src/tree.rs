//! Random trees, which change while packets are queued: nodes all over the range of numbers, limits that bind and limits that don't, both
//! disciplines, leaves that queue by flow, few slots and many, overload and draining.

use rand::Rng;
use rand::rngs::SmallRng;
use sluice_abi as abi;

/// As many nodes as a trace is about.
const LEAVES: u32 = 300;
const INNERS: u32 = 40;
/// The leaves that traces divide in nine of ten cases.
const WHOLES: std::ops::Range<u32> = 8..14;
/// Spreads them over all numbers.
const LEAF_STRIDE: u32 = abi::SL_FIRST_INNER / LEAVES;
const INNER_STRIDE: u32 = abi::SL_INNERS / INNERS;
/// Ways in which leaves queue by flow.
const QUEUES: u32 = 16;

/// Operations, one batch after the other.
pub struct Source {
    random: SmallRng,
    now_ns: u64,
    /// Arrivals in 100 operations, at present.
    arrivals: u32,
    /// Nodes that are yet to be configured before packets come: the inner ones from the link down, then leaves.
    to_configure: u32,
    /// Queues that are yet to be.
    to_set: u32,
    /// Whether the tree has slots.
    is_set_up: bool,
    /// Packets that may have been dropped are reaped next.
    reaps: u32,
}

impl Source {
    pub fn new(random: SmallRng) -> Source {
        Source {
            random,
            now_ns: 1_000_000_000,
            arrivals: 50,
            to_configure: INNERS + LEAVES,
            to_set: QUEUES,
            is_set_up: false,
            reaps: 0,
        }
    }

    pub fn batch(&mut self) -> Box<abi::sl_tree_trace> {
        let mut trace = abi::boxed_zeroed::<abi::sl_tree_trace>();
        trace.count = abi::SL_TREE_TRACE_OPS;
        for op in &mut trace.op {
            *op = self.operation();
        }
        trace
    }

    fn leaf(&mut self) -> u32 {
        // Some are busier than others.
        let most = if self.random.random_bool(0.5) { LEAVES } else { 8 };
        self.random.random_range(0..most) * LEAF_STRIDE
    }

    /// One of the leaves that are divided in nine of ten cases.
    fn whole(&mut self) -> u32 {
        self.random.random_range(WHOLES) * LEAF_STRIDE
    }

    fn inner(&mut self) -> u32 {
        abi::SL_FIRST_INNER + self.random.random_range(0..INNERS) * INNER_STRIDE
    }

    fn operation(&mut self) -> abi::sl_tree_op {
        let mut op = *abi::boxed_zeroed::<abi::sl_tree_op>();
        self.now_ns += self.random.random_range(0..2000);
        if self.random.random_ratio(1, 10_000) {
            // Longer than a wheel, now and then.
            self.now_ns += self.random.random_range(0..200_000_000);
        }
        if self.random.random_ratio(1, 3000) {
            self.arrivals = [35, 50, 65, 80][self.random.random_range(0..4)];
        }
        op.now_ns = self.now_ns;
        if self.reaps > 0 {
            self.reaps -= 1;
            op.kind = abi::SL_TREE_OP_REAP;
            return op;
        }
        if self.to_set > 0 {
            self.to_set -= 1;
            op.kind = abi::SL_TREE_OP_SET_QUEUE;
            op.node = self.to_set;
            op.queue = self.queue();
            return op;
        }
        if self.to_configure == INNERS + LEAVES && (!self.is_set_up || self.random.random_bool(0.5)) {
            self.is_set_up = true;
            op.kind = abi::SL_TREE_OP_SET_UP;
            op.tree = self.set_up();
            return op;
        }
        if self.to_configure > 0 {
            let done = INNERS + LEAVES - self.to_configure;
            self.to_configure -= 1;
            op.kind = abi::SL_TREE_OP_CONFIGURE;
            op.node = match done.checked_sub(INNERS) {
                Some(leaf) => leaf * LEAF_STRIDE,
                None => abi::SL_FIRST_INNER + done * INNER_STRIDE,
            };
            op.conf = self.conf(op.node);
            return op;
        }
        let rare = self.random.random_range(0..1000);
        if rare < 3 {
            op.kind = abi::SL_TREE_OP_CONFIGURE;
            // And numbers that no node has.
            op.node = match self.random.random_range(0..20) {
                0 => self.random.random(),
                1..8 => self.inner(),
                _ => self.leaf(),
            };
            op.conf = self.conf(op.node);
        } else if rare < 5 {
            op.kind = abi::SL_TREE_OP_REMOVE;
            op.node = if self.random.random_ratio(1, 5) { self.inner() } else { self.leaf() };
            // What was removed comes back.
            self.to_configure = u32::from(self.random.random_ratio(1, 50)) * (INNERS + LEAVES);
        } else if rare < 6 {
            op.kind = abi::SL_TREE_OP_SET_QUEUE;
            op.node = self.random.random_range(0..QUEUES);
            op.queue = self.queue();
        } else if rare < 7 {
            op.kind = abi::SL_TREE_OP_SET_PARTS;
            op.node = self.whole();
            for part in &mut op.parts.of_class {
                // Leaves that are parts of this one or are not, and none.
                *part = if self.random.random_bool(0.9) { 1 + self.leaf() as u16 } else { 0 };
            }
        } else if rare < 13 {
            // Most are reaped at once; these also come late.
            self.reaps = self.random.random_range(1..100);
            op.kind = abi::SL_TREE_OP_REAP;
        } else if rare < 23 {
            op.kind = abi::SL_TREE_OP_DROP;
            op.node = self.leaf();
        } else if self.random.random_range(0..100) < self.arrivals {
            op.kind = abi::SL_TREE_OP_ENQUEUE;
            op.node = if self.random.random_ratio(1, 1000) { self.random.random() } else { self.leaf() };
            if self.random.random_ratio(1, 4) {
                op.kind = abi::SL_TREE_OP_ENQUEUE_CLASS;
                op.node = self.whole();
                op.class = self.random.random_range(0..abi::SL_PART_CLASSES);
            }
            op.len_bytes = if self.random.random_ratio(1, 300) { 65_535 } else { self.random.random_range(40..1515) };
            op.segments = 1 + op.len_bytes / 1515;
            // Half are of few flows, of which some have the same chain.
            op.flow_hash = match self.random.random_range(0..4) {
                0 | 1 => self.random.random_range(0..6),
                2 => self.random.random_range(0..6) << 16,
                _ => self.random.random_range(0..100_000),
            };
            op.src_host = self.random.random_range(0..4);
            op.dst_host = self.random.random_range(0..300);
            op.ecn = u32::from(self.random.random_bool(0.3));
            self.reaps = if self.random.random_bool(0.1) { 8 } else { 0 };
        } else {
            op.kind = abi::SL_TREE_OP_DEQUEUE;
        }
        op
    }

    fn set_up(&mut self) -> abi::sl_tree_conf {
        let random = &mut self.random;
        let framed = random.random_bool(0.5);
        abi::sl_tree_conf {
            slots: [500, 5_000, abi::SL_TREE_PKTS, u32::MAX][random.random_range(0..4)],
            mpu_bytes: if framed { random.random_range(0..100) } else { 0 },
            overhead_bytes: if framed { random.random_range(-14..50) } else { 0 },
            cells: if framed { random.random_range(0..3) } else { 0 },
        }
    }

    fn queue(&mut self) -> abi::sl_leaf_queue {
        let random = &mut self.random;
        let mut queue = *abi::boxed_zeroed::<abi::sl_leaf_queue>();
        queue.flow_quantum_bytes = random.random_range(300..3000);
        queue.allowance_bytes = random.random_range(0..30_000);
        queue.round_ns = random.random_range(1..100_000);
        queue.hosts = random.random_range(0..4);
        queue.one_flow = u8::from(random.random_bool(0.2));
        if random.random_bool(0.7) {
            queue.target_ns = random.random_range(1_000..1_000_000);
            queue.interval_ns = queue.target_ns * random.random_range(1..30);
        }
        queue
    }

    fn conf(&mut self, node: u32) -> abi::sl_node_conf {
        let is_link = node == abi::SL_FIRST_INNER;
        // An ancestor of a smaller number: few trees are refused. Some hang below the link.
        let below = node.checked_sub(abi::SL_FIRST_INNER).map_or(INNERS, |inner| inner / INNER_STRIDE);
        let parent =
            self.random.random_range(0..below.clamp(1, INNERS).isqrt().max(1) * 2).min(below.saturating_sub(1));
        let is_leaf = node < abi::SL_FIRST_INNER;
        let is_whole = is_leaf && WHOLES.contains(&(node / LEAF_STRIDE)) && self.random.random_bool(0.9);
        let is_part = is_leaf && !is_whole && self.random.random_bool(0.3);
        let whole = self.whole();
        let random = &mut self.random;
        let mut cost = |least_bps: u64, most_bps: u64, chance: f64| {
            let bps = random.random_range(least_bps..=most_bps);
            if random.random_bool(chance) { ((8_000_000_000 << abi::SL_NODE_COST_BITS) / bps) as u32 } else { 0 }
        };
        let ceil_cost =
            if is_link { cost(3_000_000_000, 12_000_000_000, 0.9) } else { cost(20_000_000, 3_000_000_000, 0.5) };
        let rate_cost = cost(1_000_000, 100_000_000, if is_link { 0.0 } else { 0.3 });
        abi::sl_node_conf {
            parent: if is_part { whole } else { abi::SL_FIRST_INNER + parent * INNER_STRIDE },
            weight: if random.random_bool(0.9) { random.random_range(1..100) } else { random.random_range(1..20_000) },
            priority: random.random_range(0..abi::SL_TREE_PRIORITIES),
            discipline: random.random_range(0..abi::SL_TREE_DISCIPLINES),
            ceil_cost,
            ceil_burst_ns: random.random_range(0..1_000_000),
            rate_cost,
            rate_burst_ns: random.random_range(0..5_000_000),
            limit_pkts: if random.random_bool(0.2) { 0 } else { random.random_range(1..300) },
            queue: if is_whole { abi::SL_LEAF_DIVIDED } else { random.random_range(0..QUEUES) },
            request: random.random_range(0..40_000),
            rank: random.random_range(0..abi::SL_RANKS),
        }
    }
}
