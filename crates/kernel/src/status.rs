//! The status of an interface: counters and state of its queues and hooks, from the pinned maps, and for engine `tc` from tc.

mod counts;
mod forwards;
mod framing;
mod leaves;
mod pinned;
mod policers;
mod schedulers;
mod search;
mod shared_link;
mod sojourn;
mod state;
pub(crate) mod tree;

pub use crate::engine::forwarding::{ForwardWay, SharedWay};
pub use crate::record::count::Count;
pub(crate) use counts::{BUILTIN, class_counts};
pub use forwards::ForwardStatus;
pub use framing::Framing;
pub(crate) use pinned::Pinned;
pub use search::SubscriberSearch;
pub use sluice_policy::network::{Address, Way};
pub use sojourn::Sojourn;
pub use state::{ClassState, FlowQueues, SchedulerState, Turn};
pub use tree::{LeafClassStatus, LeafCounts, QueueStatus, SiteStatus, SubscriberStatus, TreeStatus};

use crate::record::{Engine, Phase};
use serde::Serialize;
use std::collections::BTreeMap;

/// A managed interface at one moment.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// Name of the interface.
    pub interface: String,
    /// Number of the interface.
    pub ifindex: u32,
    /// Progress of the last command.
    pub phase: Phase,
    /// Engine that queues: qdisc, tc or none.
    pub engine: Engine,
    /// Hook that classifies on arrival.
    pub classifier: crate::record::Hook,
    /// Type of the root qdisc, with engine `qdisc`.
    pub qdisc: String,
    /// Whether the queues, devices and hooks are still in place; something else may have removed or replaced them.
    pub in_place: bool,
    /// Parts that are not in place, in words.
    pub missing: Vec<String>,
    /// Whether the programs are of another version than this command.
    pub outdated: bool,
    /// The policy in force.
    pub policy: PolicyStatus,
    /// Time left and former policy, if the policy in force must be confirmed.
    pub unconfirmed: Option<UnconfirmedStatus>,
    /// Rate that departures are shaped to, bits per second.
    pub rate_bps: Option<u64>,
    /// Rate that arrivals are shaped to, bits per second.
    pub ingress_rate_bps: Option<u64>,
    /// The interfaces whose arrivals a group queues now. None: this is no group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals_of: Option<Vec<String>>,
    /// Whether super-packets are split on their way out.
    pub split: bool,
    /// Number of queues with a scheduler each: tx queues, or of a wire the receive queues, each with a worker. 0: one scheduler, or engine `tc`, serves all
    /// tx queues, or nothing is queued.
    pub queues: u32,
    /// Departures, and arrivals where they are queued or counted.
    pub directions: Vec<DirectionStatus>,
    /// Rules in the order in which they are asked, with their counts.
    pub rules: Vec<RuleStatus>,
    /// Packets and bytes that matched no rule.
    pub unmatched: Count,
    /// Forwards by name, with their counts.
    pub forwards: Vec<ForwardStatus>,
    /// Sites and subscribers, of a policy that has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeStatus>,
}

/// The policy in force.
#[derive(Debug, Clone, Serialize)]
pub struct PolicyStatus {
    /// Name of the policy.
    pub name: String,
    /// Source of the policy's text, such as a path.
    pub source: String,
    /// Discipline of the policy; `tree` where it has subscribers.
    pub scheduler: String,
    /// Number of the configuration.
    pub generation: u32,
    /// Time at which the policy was applied, seconds since 1970.
    pub applied_s: u64,
}

/// State of a policy in force that waits to be confirmed.
#[derive(Debug, Clone, Serialize)]
pub struct UnconfirmedStatus {
    /// Time until the policy is taken back, seconds.
    pub left_s: u64,
    /// Name of the policy that is brought back then.
    pub former: String,
}

/// The count of dropped packets.
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
    /// Adds packets whose bytes are known.
    pub(crate) fn add(&mut self, count: Count) {
        self.pkts += count.pkts;
        self.bytes = self.bytes.map(|bytes| bytes + count.bytes);
    }

    /// Adds packets whose bytes were not counted.
    pub(crate) fn add_pkts(&mut self, pkts: u64) {
        self.pkts += pkts;
        self.bytes = None;
    }
}

/// A count of packets without bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Packets {
    /// Packets.
    pub pkts: u64,
}

/// The status of one direction.
#[derive(Debug, Clone, Serialize)]
pub struct DirectionStatus {
    /// Name of the direction: egress or ingress.
    pub direction: &'static str,
    /// Whether packets are queued; else only counted.
    pub queued: bool,
    /// Rate that the direction is shaped to, bits per second.
    pub rate_bps: Option<u64>,
    /// Framing of the link below, if the direction is shaped.
    pub framing: Option<Framing>,
    /// Fill level of the link's token bucket, 0 to 1, with engine `qdisc`.
    pub link_fill: Option<f64>,
    /// Rate limit of the interface before the queues (`limits`), bits per second.
    pub limit_bps: Option<u64>,
    /// Fill level of that limit's token bucket, 0 to 1.
    pub limit_fill: Option<f64>,
    /// The discipline's own state.
    pub scheduler: Option<SchedulerState>,
    /// Classes by id.
    pub classes: Vec<ClassStatus>,
    /// Packets by the outcome of parsing, where the hooks have seen them.
    pub parsed: BTreeMap<&'static str, Count>,
    /// The tx queues by number, where each has a scheduler, or the workers of a wire, if it has several; what they count is in the classes, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tx_queues: Vec<TxQueueStatus>,
    /// Packets that a wire took from the kernel and could neither queue nor send: those that workers held when they hung or were killed, and those for a link
    /// that was down. None: this is no wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<Packets>,
    /// The interface by which a wire sends what arrives here. None: this is no wire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<PortStatus>,
}

/// The time for which packets of a wire have waited for the interface that sends them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct PortStatus {
    /// Time in which packets waited since the interface had enough to send, seconds; the sum over workers.
    pub wait_s: f64,
    /// Bytes that it may have to send, as was found; the sum over workers. None: a number of packets was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
}

/// The status of the scheduler of one tx queue, or of one worker of a wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TxQueueStatus {
    /// Number of the tx queue, or of the receive queue of a worker, from 0.
    pub queue: u16,
    /// Packets and bytes that left.
    pub sent: Count,
    /// Packets and bytes that were dropped.
    pub dropped: Count,
    /// Packets and bytes now queued.
    pub backlog: Count,
    /// Packets that the worker of a wire has lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<Packets>,
}

/// The status of one class in one direction.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ClassStatus {
    /// Number of the class.
    pub id: u8,
    /// Name of the class.
    pub name: String,
    /// Packets and bytes that left.
    pub sent: Count,
    /// Packets and bytes that were dropped.
    pub dropped: Dropped,
    /// Dropped packets by reason.
    pub drops: BTreeMap<&'static str, u64>,
    /// Packets that left with congestion marked, instead of being dropped.
    pub marked: Packets,
    /// Packets and bytes now in the queue.
    pub backlog: Count,
    /// The most bytes that were ever in the queue.
    pub peak_backlog_bytes: Option<u64>,
    /// Median time in the queue, microseconds, to 12.5 %.
    pub sojourn_p50_us: Option<f64>,
    /// 99th percentile of the time in the queue, microseconds, to 12.5 %.
    pub sojourn_p99_us: Option<f64>,
    /// Histogram of the times in the queue. JSON has the percentiles instead.
    #[serde(skip)]
    pub sojourn: Option<Sojourn>,
    /// Deficit round robin's credit, bytes; negative: debt.
    pub deficit_bytes: Option<i64>,
    /// Ceiling of the class, bits per second.
    pub ceil_bps: Option<u64>,
    /// Guarantee of the class, bits per second.
    pub rate_bps: Option<u64>,
    /// Fill level of the ceiling's token bucket, 0 to 1: at 0 the class waits, or drops if it is policed. With engine `tc`, known
    /// only of a policed class.
    pub ceil_fill: Option<f64>,
    /// Peak of the class, bits per second: the rate at which the ceiling's burst passes.
    pub peak_bps: Option<u64>,
    /// Fill level of the peak's token bucket, 0 to 1: at 0 the class waits, or drops if it is policed. With engine `tc`, known
    /// only of a policed class.
    pub peak_fill: Option<f64>,
    /// Fill level of the guarantee's token bucket, 0 to 1: at 0 the class has had its guarantee, and takes its turn like others.
    pub rate_fill: Option<f64>,
    /// Ceiling of each flow of the class, bits per second.
    pub flow_ceil_bps: Option<u64>,
    /// Ceiling that the class shares with others, bits per second.
    pub shared_ceil_bps: Option<u64>,
    /// Fill level of the shared ceiling's token bucket, 0 to 1: at 0 packets are dropped.
    pub shared_ceil_fill: Option<f64>,
    /// Urgency in the policy, 0 is the most urgent, where the discipline uses it.
    pub priority: Option<u8>,
    /// Weight in the policy, where the discipline uses it.
    pub weight: Option<u32>,
    /// Bytes of a turn or a request, where the discipline uses them.
    pub quantum_bytes: Option<u32>,
    /// Share of the interface that the class has while every class wants more, 0 to 1. None: the discipline promises none.
    pub share: Option<f64>,
    /// Whether the class is for little, urgent traffic: it goes before others, or its packets have deadlines.
    pub urgent: bool,
    /// Kind of the class's qdisc, with engine `tc`: fq_codel, codel, pfifo or bfifo.
    pub queue: Option<String>,
    /// The most packets that the class may queue.
    pub limit_pkts: Option<u32>,
    /// The most bytes that the class may queue.
    pub limit_bytes: Option<u64>,
    /// CoDel's target: the wait up to which it does not act, microseconds.
    pub target_us: Option<f64>,
    /// State that the discipline keeps of the class.
    pub state: Option<ClassState>,
    /// Number of flow queues in each state, of a class that queues by flow.
    pub flow_queues: Option<FlowQueues>,
}

impl ClassStatus {
    /// Fill level of the emptiest bucket of the class: ceiling, peak, guarantee, shared ceiling. None: it has none, or they are not known.
    pub fn bucket_fill(&self) -> Option<f64> {
        [self.ceil_fill, self.peak_fill, self.rate_fill, self.shared_ceil_fill].into_iter().flatten().reduce(f64::min)
    }
}

/// A rule and its count.
#[derive(Debug, Clone, Serialize)]
pub struct RuleStatus {
    /// Name of the rule, if it has one.
    pub name: String,
    /// Priority of the rule; built-in rules have none.
    pub priority: Option<u32>,
    /// Line of the rule in the policy file.
    pub line: Option<u16>,
    /// Conditions of the rule, in the keys of policy files; empty for built-in rules.
    pub matches: String,
    /// Class of the rule.
    pub class: u8,
    /// Packets and bytes that the rule has matched since it came: the count goes on when other rules or their order change.
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
