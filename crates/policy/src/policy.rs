//! The policy as in its file: typed, with every value in its range and the defaults of single keys. `resolve` chooses values
//! that depend on the machine or on other keys.

use crate::bytes::{Bytes, FRAME_BYTES};
use crate::ceiling::{Ceiling, Limits, SharedCeiling};
use crate::class_id::ClassId;
use crate::forward::Forward;
use crate::limit::Limit;
use crate::link::Link;
use crate::network::NetworkPolicy;
use crate::queue::{Codel, Queue};
use crate::rank::Rank;
use crate::rate::Rate;
pub use crate::rule::{IcmpType, Protocol, Rule, TcpFlags, Term, Terms};
use crate::scheduler::Scheduler;
use crate::source::Origin;
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The most classes a policy may have.
pub const MAX_CLASSES: usize = 64;
/// The most rules a policy may have.
pub const MAX_RULES: usize = 4_096;
/// The most interfaces that a set may have.
pub const MAX_INTERFACES: usize = 64;
/// The most packets that one class, and all classes of an interface together, may queue.
pub const MAX_QUEUED_PKTS: u32 = 16_384;
/// The heaviest weight of a class.
pub const MAX_WEIGHT: u32 = 65_535;
/// The latency budgets that a class may have, ns.
pub const LATENCY_BUDGETS_NS: RangeInclusive<u64> = 100_000..=10_000_000_000;
/// The only version of the policy format so far.
pub const FORMAT_VERSION: u32 = 1;
/// Default number of entries of the flow table.
pub const DEFAULT_FLOWS: u32 = 65_536;
/// The most entries the flow table may have.
pub const MAX_FLOWS: u32 = 1 << 20;
/// The longest name of a class, in bytes.
pub const MAX_CLASS_NAME_BYTES: usize = 31;
/// The longest name of a set, in bytes.
pub const MAX_SET_NAME_BYTES: usize = 31;
/// The longest name of a network interface, in bytes.
pub const MAX_INTERFACE_BYTES: usize = 15;
/// The longest name of a policy or a rule, in bytes.
pub const MAX_NAME_BYTES: usize = 63;

/// The content of a policy file. Policies with the same meaning are equal, whatever their text.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Format version; always [`FORMAT_VERSION`].
    pub version: u32,
    /// The policy's name, 1 to 63 bytes; by default its file's name without `.json`.
    pub name: String,
    /// The description of the policy by its author.
    pub description: Option<String>,
    /// The discipline.
    pub scheduler: Scheduler,
    /// The rank of a PIFO; the default under other disciplines.
    pub rank: Rank,
    /// The mode: classifying, queueing or both.
    pub mode: Mode,
    /// The link to shape to.
    pub link: Link,
    /// The interfaces whose arrivals are queued together, on a device of our own that the policy is for. Empty: the policy is for an
    /// interface. Up to [`MAX_INTERFACES`].
    pub arrivals_of: Vec<String>,
    /// Ceilings of the interface, enforced by dropping.
    pub limits: Limits,
    /// The class of packets that no rule matches. `None`: chosen by `resolve`.
    pub default_class: Option<ClassId>,
    /// Entries of the flow table, 0 (off) to [`MAX_FLOWS`].
    pub flows: u32,
    /// The connections of forwards that are remembered, [`crate::LEAST_CONNECTIONS`] to [`crate::MAX_CONNECTIONS`]; the next power of two is taken.
    pub connections: u32,
    /// The treatment of packets with broken headers.
    pub malformed: Malformed,
    /// Sets of addresses that rules name, by name.
    pub address_sets: BTreeMap<String, Vec<IpNet>>,
    /// Sets of ports that rules name: first and last port of each range, by name.
    pub port_sets: BTreeMap<String, Vec<(u16, u16)>>,
    /// The classes, 1 to [`MAX_CLASSES`], in the order of the file.
    pub classes: Vec<Class>,
    /// The rules, up to [`MAX_RULES`], in the order of the file. Only their priority decides.
    pub rules: Vec<Rule>,
    /// The forwards, up to [`crate::MAX_FORWARDS`], in the order of the file.
    pub forwards: Vec<Forward>,
    /// The subscribers, of a policy that has them: the tree below its only class.
    pub network: Option<Box<NetworkPolicy>>,
    /// Places of all values in the file.
    pub origin: Origin,
}

impl Policy {
    /// Says where the values stand.
    pub(crate) fn set_origin(&mut self, origin: Origin) {
        self.network.iter_mut().for_each(|network| network.origin = origin.clone());
        self.origin = origin;
    }

    /// The class with this id.
    pub fn class(&self, id: ClassId) -> Option<&Class> {
        self.classes.iter().find(|class| class.id == id)
    }
}

/// The mode of a policy: classifying, queueing or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Rules choose the class, the scheduler queues.
    #[default]
    Full,
    /// Rules choose the class, packets are counted and policed, nothing is queued.
    ClassifyOnly,
    /// The packet says its class, the scheduler queues; rules are not consulted.
    ScheduleOnly {
        /// The field of the packet that gives the class.
        by: ClassFrom,
    },
}

impl Mode {
    /// The value of `mode` in policy files.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Full => "full",
            Mode::ClassifyOnly => "classify_only",
            Mode::ScheduleOnly { .. } => "schedule_only",
        }
    }
}

/// The field of a packet that gives its class if rules are not evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassFrom {
    /// The DSCP, by the lists `dscp` of the classes.
    Dscp,
    /// The firewall mark, by the lists `mark` of the classes.
    Mark,
}

impl ClassFrom {
    /// Every choice with its name in policy files.
    pub const NAMES: &[(&str, ClassFrom)] = &[("dscp", ClassFrom::Dscp), ("mark", ClassFrom::Mark)];
}

/// The treatment of packets with broken headers. They are counted either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Malformed {
    /// The packets are classified by the headers that can be read.
    #[default]
    Pass,
    /// The packets are dropped.
    Drop,
}

impl Malformed {
    /// Every choice with its name in policy files.
    pub const NAMES: &[(&str, Malformed)] = &[("pass", Malformed::Pass), ("drop", Malformed::Drop)];
}

/// One class of traffic.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// The class's number.
    pub id: ClassId,
    /// The class's name, 1 to 31 bytes without control characters, unique; `class<id>` by default.
    pub name: String,
    /// Urgency, 0 to 255, 0 is the most urgent. Orders the classes under strict priority and a PIFO by priority; under
    /// every discipline it chooses the default class and the urgent one.
    pub priority: u8,
    /// Share under disciplines that have weights, 1 to 65,535.
    pub weight: u32,
    /// Bytes per round of deficit round robin, and of a request of EEVDF, 1 to 16 MiB.
    pub quantum_bytes: u32,
    /// The time after its arrival by which a packet should leave, ns, within [`LATENCY_BUDGETS_NS`].
    pub latency_budget_ns: Option<u64>,
    /// Guaranteed rate, bits per second.
    pub rate: Option<Rate>,
    /// Rate never exceeded, bits per second. None: the link's.
    pub ceil: Option<Rate>,
    /// Burst of the ceiling's bucket, in bytes; may be less than a frame, a packet then sends into debt.
    pub burst: Option<Bytes>,
    /// Rate not exceeded while the ceiling's burst is used up, bits per second, and the burst of this second bucket. Only with a
    /// ceiling, and no less than it. A burst of `None` is chosen by `resolve`.
    pub peak: Option<Ceiling>,
    /// The limit of its queue. `None`: chosen by `resolve`.
    pub limit: Option<Limit>,
    /// The queue of the class's packets.
    pub queue: Queue,
    /// The active queue management; `None` for none.
    pub codel: Option<Codel>,
    /// The treatment of packets above the ceiling.
    pub exceed: Exceed,
    /// The ceiling of each flow of the class, enforced by dropping.
    pub flow_ceil: Option<Ceiling>,
    /// The ceiling that the class shares with classes of other interfaces, enforced by dropping.
    pub shared_ceil: Option<SharedCeiling>,
    /// The DSCP values (0 to 63) that mean this class, in mode `schedule_only` by DSCP.
    pub dscp: Vec<u8>,
    /// The firewall marks that mean this class, in mode `schedule_only` by mark.
    pub marks: Vec<u32>,
}

impl Class {
    /// A class with every key but its id left at the default.
    pub fn new(id: ClassId) -> Class {
        Class {
            id,
            name: format!("class{id}"),
            priority: 0,
            weight: 1,
            quantum_bytes: FRAME_BYTES,
            latency_budget_ns: None,
            rate: None,
            ceil: None,
            burst: None,
            peak: None,
            limit: None,
            queue: Queue::Fifo,
            codel: None,
            exceed: Exceed::Shape,
            flow_ceil: None,
            shared_ceil: None,
            dscp: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// Whether the queue stays short without a limit: CoDel acts on each flow, and an overflow drops from the longest.
    pub(crate) fn is_kept_short(&self) -> bool {
        self.queue.flows().is_some() && self.codel.is_some()
    }
}

/// The treatment of a class's packets above its ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Exceed {
    /// The packets wait.
    #[default]
    Shape,
    /// The packets are dropped.
    Police,
}
