//! A policy with every value chosen, and what the choice depends on.

use crate::bytes::Bytes;
use crate::ceiling::{Ceiling, Limits, SharedCeiling};
use crate::diagnostic::Diagnostics;
use crate::engine::Engine;
use crate::link::{Framing, SplitGso};
use crate::policy::{ClassId, Exceed, Malformed, Mode, Rule};
use crate::queue::{Codel, Hosts, Queue};
use crate::rank::Rank;
use crate::rate::Rate;
use crate::scheduler::Scheduler;
use ipnet::IpNet;

/// The circumstances that a policy is resolved for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context {
    /// The link's rate from the command line (`--rate`), which overrides the file's.
    pub link_rate: Option<Rate>,
    /// The rate of arrivals from the command line (`--ingress-rate`), which overrides the file's.
    pub ingress_rate: Option<Rate>,
    /// The engine it is for.
    pub engine: Engine,
}

/// A policy with everything chosen.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The policy's name.
    pub name: String,
    /// The policy's purpose, as its author wrote it.
    pub description: Option<String>,
    /// The discipline.
    pub scheduler: Scheduler,
    /// The rank function of a PIFO; the default under other disciplines.
    pub rank: Rank,
    /// Which of classifying and queueing is done.
    pub mode: Mode,
    /// The rate to shape the link to, bits per second. None: it is not known and not shaped.
    pub link_rate: Option<Rate>,
    /// The rate to shape arrivals to, bits per second. None: they are not queued.
    pub ingress_rate: Option<Rate>,
    /// Bytes that the link adds to a packet.
    pub framing: Framing,
    /// The burst of the link's bucket, in bytes. None: the engine's own choice.
    pub link_burst: Option<Bytes>,
    /// Whether packets larger than a frame are split before they are queued.
    pub split_gso: SplitGso,
    /// Rates of the interface, kept by dropping; bursts are chosen.
    pub limits: Limits,
    /// Where a packet goes that no rule matches.
    pub default_class: ClassId,
    /// Where ARP, neighbour discovery and DHCP go unless a rule says otherwise.
    pub urgent_class: ClassId,
    /// Entries of the flow table, 0 is off.
    pub flows: u32,
    /// The treatment of packets with broken headers.
    pub malformed: Malformed,
    /// The classes by id.
    pub classes: Vec<ResolvedClass>,
    /// The rules in the order they are asked: the first that matches wins.
    pub rules: Vec<ResolvedRule>,
    /// Why engine `tc` cannot have it; None if it can.
    pub not_on_tc: Option<Diagnostics>,
    /// Warnings, and notes on what was chosen. No errors.
    pub remarks: Diagnostics,
}

impl Resolved {
    /// Whether the hooks before the queues may drop packets for their rate.
    pub fn polices(&self) -> bool {
        let class = |class: &ResolvedClass| {
            class.exceed == Exceed::Police || class.flow_ceil.is_some() || class.shared_ceil.is_some()
        };
        self.limits != Limits::default() || self.classes.iter().any(class)
    }

    /// Whether a queue may mark packets instead of dropping them.
    pub fn marks(&self) -> bool {
        self.classes.iter().any(|class| class.codel.is_some())
    }

    /// Whether a queue asks between which hosts packets pass.
    pub fn knows_hosts(&self) -> bool {
        let asks = |class: &ResolvedClass| class.queue.flows().is_some_and(|flows| flows.hosts != Hosts::None);
        self.classes.iter().any(asks)
    }

    /// The class with this id.
    pub fn class(&self, id: ClassId) -> Option<&ResolvedClass> {
        self.classes.iter().find(|class| class.id == id)
    }
}

/// A class with everything chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedClass {
    /// The class's number.
    pub id: ClassId,
    /// The class's name.
    pub name: String,
    /// Urgency, 0 is the most urgent.
    pub priority: u8,
    /// Share under disciplines that have weights.
    pub weight: u32,
    /// Bytes per round of deficit round robin, and of a request of EEVDF.
    pub quantum_bytes: u32,
    /// How long after its arrival a packet should have left, ns.
    pub latency_budget_ns: Option<u64>,
    /// Guaranteed rate, bits per second.
    pub rate: Option<Rate>,
    /// Rate never exceeded, bits per second, at most the link's. None: only the link limits it.
    pub ceil: Option<Rate>,
    /// Burst of the ceiling's bucket, bytes. None without a ceiling.
    pub burst: Option<Bytes>,
    /// The most packets it may queue, 1 to [`MAX_QUEUED_PKTS`].
    pub limit_pkts: u32,
    /// The most bytes it may queue. None: only packets count.
    pub limit_bytes: Option<Bytes>,
    /// The most packets it may queue where the engine has only one line for it: what `limit_pkts` is for a FIFO of an
    /// engine whose classes do not share their room.
    pub fifo_limit_pkts: u32,
    /// The class's queue.
    pub queue: Queue,
    /// CoDel with a target that suits the class's rate; none: it does not act.
    pub codel: Option<Codel>,
    /// The treatment of packets above the ceiling.
    pub exceed: Exceed,
    /// The ceiling of each of its flows; the burst is chosen.
    pub flow_ceil: Option<Ceiling>,
    /// The ceiling that it has together with classes of other interfaces; the burst is chosen.
    pub shared_ceil: Option<SharedCeiling>,
    /// The DSCP values that mean it, in mode `schedule_only` by DSCP.
    pub dscp: Vec<u8>,
    /// The firewall marks that mean it, in mode `schedule_only` by mark.
    pub marks: Vec<u32>,
}

/// A rule with its sets spelled out. Empty lists: the rule does not ask.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedRule {
    /// As it is written.
    pub rule: Rule,
    /// Source prefixes.
    pub src: Vec<IpNet>,
    /// Destination prefixes.
    pub dst: Vec<IpNet>,
    /// First and last source ports.
    pub src_ports: Vec<(u16, u16)>,
    /// First and last destination ports.
    pub dst_ports: Vec<(u16, u16)>,
}
