//! What an interface's queues and hooks have done: read from the pinned maps, and for engine `tc` from tc.

mod counts;
mod framing;
mod leaves;
mod pinned;
mod policers;
mod schedulers;
mod sojourn;
mod state;

pub use crate::record::count::Count;
pub(crate) use counts::{BUILTIN, class_counts};
pub use framing::Framing;
pub(crate) use pinned::Pinned;
pub use sojourn::Sojourn;
pub use state::{ClassState, FlowQueues, SchedulerState, Turn};

use crate::record::{Engine, Phase};
use serde::Serialize;
use std::collections::BTreeMap;

/// A managed interface at one moment.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// Name of the interface.
    pub interface: String,
    /// Its number.
    pub ifindex: u32,
    /// How far the last command came.
    pub phase: Phase,
    /// What queues: qdisc, tc or none.
    pub engine: Engine,
    /// What classifies on arrival.
    pub classifier: crate::record::Hook,
    /// Type of the root qdisc, with engine `qdisc`.
    pub qdisc: String,
    /// Whether its queues, devices and hooks are still in place; something else may have removed or replaced them.
    pub in_place: bool,
    /// What is not, in words.
    pub missing: Vec<String>,
    /// Whether its programs are of another version than this command.
    pub outdated: bool,
    /// The policy in force.
    pub policy: PolicyStatus,
    /// What happens unless it is confirmed.
    pub unconfirmed: Option<UnconfirmedStatus>,
    /// Rate that departures are shaped to, bits per second.
    pub rate_bps: Option<u64>,
    /// Rate that arrivals are shaped to, bits per second.
    pub ingress_rate_bps: Option<u64>,
    /// Whether super-packets are split on their way out.
    pub split: bool,
    /// Queues with a scheduler each; 0: one serves all.
    pub queues: u32,
    /// Departures, and arrivals where they are queued or counted.
    pub directions: Vec<DirectionStatus>,
    /// The rules in the order in which they are asked, and what matched.
    pub rules: Vec<RuleStatus>,
    /// What matched no rule.
    pub unmatched: Count,
}

/// The policy in force.
#[derive(Debug, Clone, Serialize)]
pub struct PolicyStatus {
    /// Its name.
    pub name: String,
    /// Where it was read from.
    pub source: String,
    /// The discipline.
    pub scheduler: String,
    /// Number of the configuration.
    pub generation: u32,
    /// When it was applied, seconds since 1970.
    pub applied_s: u64,
}

/// The policy in force waits to be confirmed.
#[derive(Debug, Clone, Serialize)]
pub struct UnconfirmedStatus {
    /// Time until it is taken back, seconds.
    pub left_s: u64,
    /// Name of the policy that is brought back then.
    pub former: String,
}

/// What was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// Packets.
    pub pkts: u64,
    /// Their bytes; none where the kernel's qdiscs count only packets, as below HTB.
    pub bytes: Option<u64>,
}

impl Default for Dropped {
    fn default() -> Dropped {
        Dropped { pkts: 0, bytes: Some(0) }
    }
}

impl Dropped {
    /// Packets whose bytes are known.
    pub(crate) fn add(&mut self, count: Count) {
        self.pkts += count.pkts;
        self.bytes = self.bytes.map(|bytes| bytes + count.bytes);
    }

    /// Packets whose bytes nobody has counted.
    pub(crate) fn add_pkts(&mut self, pkts: u64) {
        self.pkts += pkts;
        self.bytes = None;
    }
}

/// Packets alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Packets {
    /// Packets.
    pub pkts: u64,
}

/// One direction.
#[derive(Debug, Clone, Serialize)]
pub struct DirectionStatus {
    /// egress or ingress.
    pub direction: &'static str,
    /// Whether packets are queued; else only counted.
    pub queued: bool,
    /// Rate that it is shaped to, bits per second.
    pub rate_bps: Option<u64>,
    /// What a packet costs there, if it is shaped.
    pub framing: Option<Framing>,
    /// How full the bucket of that rate is, 0 to 1. Engine `qdisc` tells it.
    pub link_fill: Option<f64>,
    /// What the interface may not exceed before the queues (`limits`), bits per second.
    pub limit_bps: Option<u64>,
    /// How full the bucket of that is, 0 to 1.
    pub limit_fill: Option<f64>,
    /// The discipline's own state.
    pub scheduler: Option<SchedulerState>,
    /// Classes by id.
    pub classes: Vec<ClassStatus>,
    /// Packets by what the parser made of them, where it saw them.
    pub parsed: BTreeMap<&'static str, Count>,
}

/// One class in one direction.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ClassStatus {
    /// Its number.
    pub id: u8,
    /// Its name.
    pub name: String,
    /// What left.
    pub sent: Count,
    /// What was dropped.
    pub dropped: Dropped,
    /// Of that, packets by reason.
    pub drops: BTreeMap<&'static str, u64>,
    /// What left with congestion marked, instead of being dropped.
    pub marked: Packets,
    /// Now in the queue.
    pub backlog: Count,
    /// The most bytes that were ever in the queue.
    pub peak_backlog_bytes: Option<u64>,
    /// Median time in the queue, microseconds, to 25 %.
    pub sojourn_p50_us: Option<f64>,
    /// 99th percentile of it.
    pub sojourn_p99_us: Option<f64>,
    /// How long packets were in the queue. Not in JSON: the percentiles are.
    #[serde(skip)]
    pub sojourn: Option<Sojourn>,
    /// Deficit round robin's credit, bytes; negative: debt.
    pub deficit_bytes: Option<i64>,
    /// What the class may not exceed, bits per second.
    pub ceil_bps: Option<u64>,
    /// What the class is guaranteed, bits per second.
    pub rate_bps: Option<u64>,
    /// How full the bucket of its ceiling is, 0 to 1: empty, the class waits, or drops if it is policed. Engine `tc` tells it only of
    /// one that is policed.
    pub ceil_fill: Option<f64>,
    /// Likewise of its guarantee: empty, the class has had it, and takes its turn like others.
    pub rate_fill: Option<f64>,
    /// What each of its flows may not exceed, bits per second.
    pub flow_ceil_bps: Option<u64>,
    /// What it may not exceed together with those that share the rate, bits per second.
    pub shared_ceil_bps: Option<u64>,
    /// How full the bucket of that rate is, 0 to 1: empty, packets are dropped.
    pub shared_ceil_fill: Option<f64>,
    /// Urgency in the policy, 0 is the most urgent, where the discipline asks.
    pub priority: Option<u8>,
    /// Weight in the policy, where the discipline asks.
    pub weight: Option<u32>,
    /// Bytes of a turn or a request, where the discipline asks.
    pub quantum_bytes: Option<u32>,
    /// The part of the interface that it has while every class wants more, 0 to 1. None: the discipline promises none.
    pub share: Option<f64>,
    /// Whether it is there for little that must not wait: it goes before others, or its packets have deadlines.
    pub urgent: bool,
    /// What its packets stand in, where that is a qdisc of the kernel's: fq_codel, codel, pfifo or bfifo.
    pub queue: Option<String>,
    /// The most packets that it may queue.
    pub limit_pkts: Option<u32>,
    /// The most bytes that it may queue.
    pub limit_bytes: Option<u64>,
    /// The wait that CoDel takes for no cause for action, microseconds.
    pub target_us: Option<f64>,
    /// What the discipline keeps of the class.
    pub state: Option<ClassState>,
    /// How many flow queues stand where, of a class that queues by flow.
    pub flow_queues: Option<FlowQueues>,
}

impl ClassStatus {
    /// How full the emptiest of its buckets is: ceiling, guarantee, the rate that it shares. None: it has none, or they are not known.
    pub fn bucket_fill(&self) -> Option<f64> {
        [self.ceil_fill, self.rate_fill, self.shared_ceil_fill].into_iter().flatten().reduce(f64::min)
    }
}

/// A rule and what it matched.
#[derive(Debug, Clone, Serialize)]
pub struct RuleStatus {
    /// Its name, if it has one.
    pub name: String,
    /// Its priority; built-in rules have none.
    pub priority: Option<u32>,
    /// Its line in the policy file.
    pub line: Option<u16>,
    /// What it asks of a packet, in the keys of policy files; empty for those that are built in.
    pub matches: String,
    /// Its class.
    pub class: u8,
    /// What it matched since it came: with other rules, or by another order of them, it goes on.
    pub matched: Count,
}

fn add_drops(class: &mut ClassStatus, reason: &'static str, pkts: u64) {
    if pkts > 0 {
        *class.drops.entry(reason).or_default() += pkts;
    }
}

pub(crate) fn text(name: &[std::ffi::c_char]) -> String {
    let bytes: Vec<u8> = name.iter().take_while(|c| **c != 0).map(|c| *c as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
