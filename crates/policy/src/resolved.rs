//! A policy with every value chosen, and the context of the choice.

use crate::bytes::Bytes;
use crate::ceiling::{Ceiling, Limits, SharedCeiling};
use crate::class_id::ClassId;
use crate::diagnostic::Diagnostics;
use crate::engine::Engine;
use crate::forward::Forward;
use crate::link::{Framing, LinkQueues, SplitGso};
use crate::network::{Network, Way};
use crate::policy::{Exceed, Malformed, Mode, Rule};
use crate::queue::{Codel, Hosts, Queue};
use crate::rank::Rank;
use crate::rate::Rate;
use crate::scheduler::Scheduler;
use ipnet::IpNet;

/// The context of resolving a policy.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context {
    /// The link's rate from the command line (`--rate`), which overrides the file's.
    pub link_rate: Option<Rate>,
    /// The rate of arrivals from the command line (`--ingress-rate`), which overrides the file's.
    pub ingress_rate: Option<Rate>,
    /// The engine.
    pub engine: Engine,
}

/// A policy with every value chosen.
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
    /// The mode: classifying, queueing or both.
    pub mode: Mode,
    /// The rate to shape departures to, bits per second. `None`: unknown and not shaped.
    pub link_rate: Option<Rate>,
    /// The rate to shape arrivals to, bits per second. `None`: arrivals are not queued.
    pub ingress_rate: Option<Rate>,
    /// The interfaces whose arrivals are queued together; empty: those of the interface that the policy is for.
    pub arrivals_of: Vec<String>,
    /// Bytes that the link adds to a packet.
    pub framing: Framing,
    /// The burst of the link's bucket, in bytes. None: the engine's own choice.
    pub link_burst: Option<Bytes>,
    /// Whether packets larger than a frame are split before they are queued.
    pub split_gso: SplitGso,
    /// The tx queues that departures use where they are shaped.
    pub queues: LinkQueues,
    /// Ceilings of the interface, enforced by dropping, with bursts.
    pub limits: Limits,
    /// The class of packets that no rule matches.
    pub default_class: ClassId,
    /// The class of ARP, neighbour discovery and DHCP unless a rule matches them.
    pub urgent_class: ClassId,
    /// Entries of the flow table, 0 is off.
    pub flows: u32,
    /// The connections of forwards that are remembered.
    pub connections: u32,
    /// The treatment of packets with broken headers.
    pub malformed: Malformed,
    /// The classes by id.
    pub classes: Vec<ResolvedClass>,
    /// The rules in the order of evaluation: the first match counts.
    pub rules: Vec<ResolvedRule>,
    /// The forwards by name.
    pub forwards: Vec<Forward>,
    /// The subscribers, of a policy that has them.
    pub network: Option<Network>,
    /// The reason why engine `tc` cannot run the policy; `None` if it can.
    pub not_on_tc: Option<Diagnostics>,
    /// Warnings, and notes on chosen values. There are no errors.
    pub remarks: Diagnostics,
}

impl Resolved {
    /// The policy as it holds for the departures of an interface: one with subscribers has a rate for each direction.
    pub fn at(self, interface: &str) -> Resolved {
        match self.network.as_ref().map(|network| network.way(interface)) {
            Some(way) => self.departing(way),
            None => self,
        }
    }

    /// As [`Resolved::at`], of an interface that queues what has this direction.
    pub fn departing(mut self, way: Way) -> Resolved {
        if let Some(network) = &self.network {
            let rate = *network.link().ceil.of(way);
            // Only a wire queues what arrives in a tree.
            match self.ingress_rate {
                Some(_) => self.ingress_rate = rate,
                None => self.link_rate = rate,
            }
        }
        self
    }

    /// Whether the hooks before the queues may drop packets above a rate.
    pub fn polices(&self) -> bool {
        let class = |class: &ResolvedClass| {
            class.exceed == Exceed::Police || class.flow_ceil.is_some() || class.shared_ceil.is_some()
        };
        self.limits != Limits::default() || self.classes.iter().any(class)
    }

    /// Whether there are classes inside subscribers, or a class tree: then a hook before the queue tells the class of each packet.
    pub fn has_leaf_classes(&self) -> bool {
        self.network.as_ref().is_some_and(|network| !network.classes.is_empty())
    }

    /// Whether a queue may mark packets instead of dropping them. That of packets which are no subscriber's does in any case.
    pub fn marks(&self) -> bool {
        self.network.is_some() || self.classes.iter().any(|class| class.codel.is_some())
    }

    /// Whether a queue is fair between hosts.
    pub fn knows_hosts(&self) -> bool {
        let asks = |class: &ResolvedClass| class.queue.flows().is_some_and(|flows| flows.hosts != Hosts::None);
        self.classes.iter().any(asks)
    }

    /// The class with this id.
    pub fn class(&self, id: ClassId) -> Option<&ResolvedClass> {
        self.classes.iter().find(|class| class.id == id)
    }
}

/// A class with every value chosen.
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
    /// The time after its arrival by which a packet should leave, ns.
    pub latency_budget_ns: Option<u64>,
    /// Guaranteed rate, bits per second.
    pub rate: Option<Rate>,
    /// Rate never exceeded, bits per second, at most the link's. `None`: only the link limits the class.
    pub ceil: Option<Rate>,
    /// Burst of the ceiling's bucket, bytes. None without a ceiling.
    pub burst: Option<Bytes>,
    /// The peak, at most the link's rate, with its burst. None without a ceiling.
    pub peak: Option<Ceiling>,
    /// The packet limit, 1 to [`MAX_QUEUED_PKTS`].
    pub limit_pkts: u32,
    /// The byte limit. `None`: only packets count.
    pub limit_bytes: Option<Bytes>,
    /// The packet limit if the engine has only a FIFO for the class, and classes do not share their room.
    pub fifo_limit_pkts: u32,
    /// The class's queue.
    pub queue: Queue,
    /// CoDel with a target that suits the class's rate; `None` for no active queue management.
    pub codel: Option<Codel>,
    /// The treatment of packets above the ceiling.
    pub exceed: Exceed,
    /// The ceiling of each flow, with its burst.
    pub flow_ceil: Option<Ceiling>,
    /// The ceiling that the class shares with classes of other interfaces, with its burst.
    pub shared_ceil: Option<SharedCeiling>,
    /// The DSCP values of the class, in mode `schedule_only` by DSCP.
    pub dscp: Vec<u8>,
    /// The firewall marks of the class, in mode `schedule_only` by mark.
    pub marks: Vec<u32>,
}

/// A rule with the values of its sets. An empty list is no condition.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedRule {
    /// The rule as it is written.
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
