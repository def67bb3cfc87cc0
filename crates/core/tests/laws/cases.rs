//! The events of a law's test, as plain data, so that proptest can print and shrink it.

use sluice_abi as abi;
use std::fmt;

/// Rate and depth of a token bucket, as `struct sl_sched_conf` has them.
#[derive(Clone, Copy)]
pub struct Rate {
    /// Ns for a byte, << 20.
    pub cost: u64,
    pub burst_ns: u64,
}

impl Rate {
    pub fn bps(bps: u64, burst_ns: u64) -> Rate {
        Rate { cost: (8_000_000_000 << 20) / bps, burst_ns }
    }

    /// A rate without rounding: whole ns for a byte.
    pub fn whole(ns_per_byte: u64) -> Rate {
        Rate { cost: ns_per_byte << 20, burst_ns: 0 }
    }

    /// The time of so many bytes, ns.
    pub fn time_ns(self, bytes: u64) -> u64 {
        ((u128::from(bytes) * u128::from(self.cost)) >> 20) as u64
    }
}

// Counterexamples are printed on few lines.
impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} / 2^20 ns a byte, burst {} ns", self.cost, self.burst_ns)
    }
}

/// How a class queues by flow.
#[derive(Clone, Copy)]
pub struct Flows {
    pub flows: u32,
    /// Bits of `enum sl_hosts`.
    pub hosts: u32,
    pub quantum: u32,
    pub allowance: u32,
    /// CoDel; 0: none.
    pub target_ns: u64,
    pub interval_ns: u64,
}

impl fmt::Debug for Flows {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Flows { flows, hosts, quantum, allowance, target_ns, interval_ns } = self;
        write!(f, "{flows} flows, hosts {hosts}, quantum {quantum}, allowance {allowance}, ")?;
        write!(f, "CoDel {target_ns} ns in {interval_ns}")
    }
}

#[derive(Clone, Copy)]
pub struct ClassPolicy {
    pub level: u32,
    pub weight: u32,
    pub quantum: u32,
    pub budget_ns: u64,
    pub limit_pkts: u32,
    pub limit_bytes: u32,
    pub policed: bool,
    pub ceil: Option<Rate>,
    /// The second bucket of a class with a ceiling: no slower, and mostly with a smaller burst.
    pub peak: Option<Rate>,
    /// Guarantee.
    pub rate: Option<Rate>,
    pub flows: Option<Flows>,
}

impl Default for ClassPolicy {
    fn default() -> ClassPolicy {
        ClassPolicy {
            level: 0,
            weight: 1,
            quantum: 1_500,
            budget_ns: 0,
            limit_pkts: u32::MAX,
            limit_bytes: u32::MAX,
            policed: false,
            ceil: None,
            peak: None,
            rate: None,
            flows: None,
        }
    }
}

impl fmt::Debug for ClassPolicy {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "level {}, weight {}, quantum {}, ", self.level, self.weight, self.quantum)?;
        write!(f, "budget {} ns, limits {} {}, ", self.budget_ns, self.limit_pkts, self.limit_bytes)?;
        write!(f, "policed {}, ceil {:?}, peak {:?}, rate {:?}", self.policed, self.ceil, self.peak, self.rate)?;
        self.flows.map_or(Ok(()), |flows| write!(f, ", {flows:?}"))
    }
}

#[derive(Clone, Debug)]
pub struct Policy {
    /// `enum sl_kind`, `enum sl_rank`.
    pub kind: u32,
    pub rank: u32,
    pub rank_shift: u32,
    pub slots: u32,
    pub overhead_bytes: i32,
    pub mpu_bytes: u32,
    pub cells: u32,
    pub link: Option<Rate>,
    pub classes: Vec<ClassPolicy>,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            kind: 0,
            rank: 0,
            rank_shift: 0,
            slots: abi::SL_SLOTS,
            overhead_bytes: 0,
            mpu_bytes: 0,
            cells: abi::SL_CELLS_NONE,
            link: None,
            classes: Vec::new(),
        }
    }
}

impl Policy {
    pub fn conf(&self) -> Box<abi::sl_sched_conf> {
        let mut conf = abi::boxed_zeroed::<abi::sl_sched_conf>();
        conf.kind = self.kind;
        conf.generation = 1;
        conf.slots = self.slots;
        conf.overhead_bytes = self.overhead_bytes;
        conf.mpu_bytes = self.mpu_bytes;
        conf.cells = self.cells;
        conf.rank = self.rank;
        conf.rank_shift = self.rank_shift;
        let bucket = |rate: Option<Rate>| rate.map_or((0, 0), |rate| (rate.cost, rate.burst_ns));
        (conf.link_cost, conf.link_burst_ns) = bucket(self.link);
        for (to, from) in conf.classes.iter_mut().zip(&self.classes) {
            to.level = from.level;
            to.weight = from.weight;
            to.quantum_bytes = from.quantum;
            to.budget_ns = from.budget_ns;
            to.limit_pkts = from.limit_pkts;
            to.limit_bytes = from.limit_bytes;
            to.policed = from.policed.into();
            (to.ceil_cost, to.ceil_burst_ns) = bucket(from.ceil);
            (to.peak_cost, to.peak_burst_ns) = bucket(from.peak);
            (to.rate_cost, to.rate_burst_ns) = bucket(from.rate);
            if let Some(flows) = from.flows {
                (to.flows, to.hosts) = (flows.flows, flows.hosts);
                (to.flow_quantum_bytes, to.allowance_bytes) = (flows.quantum, flows.allowance);
                (to.target_ns, to.interval_ns) = (flows.target_ns, flows.interval_ns);
            }
        }
        conf
    }
}

/// The flow of a packet, and whether the packet can be marked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Flow {
    pub hash: u32,
    pub src: u16,
    pub dst: u16,
    pub ecn: bool,
}

/// Packets that come at one moment.
#[derive(Clone, Copy)]
pub struct Arrival {
    /// How long after those before: in per mille of the time that these bytes take at the pace of the case.
    pub gap: u32,
    pub class: u32,
    pub len: u32,
    pub segments: u32,
    pub copies: u32,
    pub flow: Flow,
}

impl Arrival {
    /// An arrival of one packet.
    pub fn of(gap: u32, class: u32, len: u32) -> Arrival {
        Arrival { gap, class, len, segments: 1, copies: 1, flow: Flow::default() }
    }
}

impl fmt::Debug for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Arrival { gap, class, len, segments, copies, flow } = self;
        write!(f, "after {gap}: class {class}, {copies} of {len} bytes in {segments}")?;
        if *flow == Flow::default() { Ok(()) } else { write!(f, ", {flow:?}") }
    }
}

/// The change of the scheduler between two phases.
#[derive(Clone, Debug, Default)]
pub enum Change {
    #[default]
    No,
    Configure(Box<Policy>),
    Clear,
}

#[derive(Clone, Debug, Default)]
pub struct Phase {
    pub before: Change,
    pub arrivals: Vec<Arrival>,
    /// Without arrivals, at the end: in packets of 1,500 bytes at the pace of the case.
    pub pause: u32,
    /// By how much a wake-up is late.
    pub late_ns: u64,
}

/// A class that always has packets, of these lengths in turns.
#[derive(Clone)]
pub struct Greedy {
    pub class: u32,
    pub lengths: Vec<u32>,
}

impl fmt::Debug for Greedy {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "class {}: {:?} bytes in turns", self.class, self.lengths)
    }
}

#[derive(Clone, Debug)]
pub struct Case {
    pub start_ns: u64,
    /// The rate of the device below; `None`: as much as is asked for.
    pub device: Option<Rate>,
    pub policy: Policy,
    /// Classes that always have packets until the last phase ends.
    pub greedy: Vec<Greedy>,
    /// Class 0, of weight 1, has sent so much before that virtual time wraps round after so many bytes.
    pub wraps_after: Option<u32>,
    /// The others have sent nothing before.
    pub absent: bool,
    pub phases: Vec<Phase>,
}

impl Case {
    /// A case without events.
    pub fn of(policy: Policy) -> Case {
        Case {
            start_ns: 0,
            device: None,
            policy,
            greedy: Vec::new(),
            wraps_after: None,
            absent: false,
            phases: Vec::new(),
        }
    }

    /// The rate that the traffic is measured against while this policy is in force.
    pub fn pace(&self, policy: &Policy) -> Rate {
        policy.link.or(self.device).unwrap_or(Rate::whole(80))
    }

    /// The longest packet of each class.
    pub fn longest(&self) -> Vec<u32> {
        let mut longest = vec![0; abi::SL_CLASSES as usize];
        let arrivals = self.phases.iter().flat_map(|phase| &phase.arrivals).map(|arrival| (arrival.class, arrival.len));
        let greedy = self.greedy.iter().flat_map(|greedy| greedy.lengths.iter().map(|&len| (greedy.class, len)));
        for (class, len) in arrivals.chain(greedy) {
            longest[class as usize] = len.max(longest[class as usize]);
        }
        longest
    }
}
