//! The classes inside subscribers: those of a plan, and the rules that choose one for a packet.

use super::{Burst, EachWay, Plan};
use crate::bytes::FRAME_BYTES;
use crate::class_id::ClassId;
use crate::limit::Limit;
use crate::queue::{Codel, Queue};
use crate::rank::Rank;
use crate::rate::Rate;
use crate::rule::Rule;
use crate::source::Where;
use crate::time;
use ipnet::IpNet;
use sluice_abi as abi;
use std::collections::BTreeMap;

/// The most classes of a plan, 15, which are numbered from 0.
pub const MAX_PLAN_CLASSES: usize = abi::SL_PART_CLASSES as usize - 1;

/// How the classes of a subscriber, or those below a class, share what their guarantees leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum NodeScheduler {
    /// By weight.
    #[default]
    ElasticRoundRobin,
    /// The most urgent first.
    StrictPriority,
    /// In turn, with one packet each.
    RoundRobin,
    /// In turn, with a quantum of bytes each. The core serves so by elastic round robin, with the quantum as the weight: after a packet that is longer
    /// than a quantum, the next turns of the others are several quanta long.
    DeficitRoundRobin,
    /// By weight, fair at every moment to a packet of each.
    WeightedFairQueuing,
    /// By weight, and those with a small quantum wait less: earliest eligible virtual deadline first.
    Eevdf,
    /// The class whose first packet has the smallest rank.
    Pifo(Rank),
}

impl NodeScheduler {
    /// Every choice with its name in policy files. The rank of a PIFO is a key of its own.
    pub const NAMES: &[(&str, NodeScheduler)] = &[
        NodeScheduler::ElasticRoundRobin.named(),
        NodeScheduler::StrictPriority.named(),
        NodeScheduler::RoundRobin.named(),
        NodeScheduler::DeficitRoundRobin.named(),
        NodeScheduler::WeightedFairQueuing.named(),
        NodeScheduler::Eevdf.named(),
        NodeScheduler::Pifo(Rank::PRIORITY).named(),
    ];

    const fn named(self) -> (&'static str, NodeScheduler) {
        (self.name(), self)
    }

    /// The name, as policies have it.
    pub const fn name(self) -> &'static str {
        match self {
            NodeScheduler::ElasticRoundRobin => "elastic_round_robin",
            NodeScheduler::StrictPriority => "strict_priority",
            NodeScheduler::RoundRobin => "round_robin",
            NodeScheduler::DeficitRoundRobin => "deficit_round_robin",
            NodeScheduler::WeightedFairQueuing => "weighted_fair_queuing",
            NodeScheduler::Eevdf => "eevdf",
            NodeScheduler::Pifo(_) => "pifo",
        }
    }

    /// The rank function of a PIFO.
    pub fn rank(self) -> Option<Rank> {
        match self {
            NodeScheduler::Pifo(rank) => Some(rank),
            _ => None,
        }
    }

    /// The name, of a PIFO with its rank function.
    pub fn words(self) -> String {
        match self.rank() {
            Some(rank) => format!("pifo by {rank}"),
            None => self.name().to_owned(),
        }
    }

    /// The keys of a class by which it orders or shares. None: all are alike, or packets alone decide.
    pub fn keys(self) -> Vec<ShareKey> {
        match self {
            NodeScheduler::ElasticRoundRobin | NodeScheduler::WeightedFairQueuing => vec![ShareKey::Weight],
            NodeScheduler::StrictPriority => vec![ShareKey::Priority],
            NodeScheduler::DeficitRoundRobin => vec![ShareKey::Quantum],
            NodeScheduler::RoundRobin => Vec::new(),
            NodeScheduler::Eevdf => vec![ShareKey::Weight, ShareKey::Quantum],
            NodeScheduler::Pifo(rank) => ShareKey::ALL.into_iter().filter(|key| rank.keys() & key.bit() != 0).collect(),
        }
    }

    /// Those keys and their values, of a class with this weight, which may be a quantum, this priority and this order.
    pub fn values(self, weight: u32, priority: u8, order: Order) -> Vec<(ShareKey, u64)> {
        let value = |key| match key {
            ShareKey::Priority => priority.into(),
            ShareKey::LatencyBudget => order.latency_budget_ns,
            ShareKey::Quantum if self == NodeScheduler::Eevdf => order.quantum_bytes.into(),
            ShareKey::Quantum | ShareKey::Weight => weight.into(),
        };
        self.keys().into_iter().map(|key| (key, value(key))).collect()
    }

    /// The share of such a class, in words.
    pub fn share(self, weight: u32, priority: u8, order: Order) -> String {
        let named = self.values(weight, priority, order);
        let named: Vec<String> = named
            .into_iter()
            .map(|(key, value)| format!("{} {}", key.name().replace('_', " "), key.text(value)))
            .collect();
        match self {
            NodeScheduler::Pifo(rank) if named.is_empty() => format!("ranked by {rank}"),
            _ if named.is_empty() => "a packet each".to_owned(),
            _ => named.join(", "),
        }
    }
}

/// The values of a class that only EEVDF and a PIFO look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Order {
    /// The bytes of a request, below a parent that serves by EEVDF; else 0.
    pub quantum_bytes: u32,
    /// The time that a packet may take, ns, below a PIFO that ranks by it; else 0.
    pub latency_budget_ns: u64,
}

/// A key of a class that says what it gets beside others below the same parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareKey {
    /// A share in proportion.
    Weight,
    /// The bytes of a turn, or of a request.
    Quantum,
    /// The order.
    Priority,
    /// The time that a packet may take.
    LatencyBudget,
}

impl ShareKey {
    /// All of them.
    pub(crate) const ALL: [ShareKey; 4] =
        [ShareKey::Weight, ShareKey::Quantum, ShareKey::Priority, ShareKey::LatencyBudget];

    /// The name, as policies have it.
    pub fn name(self) -> &'static str {
        match self {
            ShareKey::Weight => "weight",
            ShareKey::Quantum => "quantum",
            ShareKey::Priority => "priority",
            ShareKey::LatencyBudget => "latency_budget",
        }
    }

    /// Its `SL_KEY_`.
    fn bit(self) -> u32 {
        match self {
            ShareKey::Weight => abi::SL_KEY_WEIGHT,
            ShareKey::Quantum => abi::SL_KEY_QUANTUM,
            ShareKey::Priority => abi::SL_KEY_PRIORITY,
            ShareKey::LatencyBudget => abi::SL_KEY_LATENCY_BUDGET,
        }
    }

    /// A value as text.
    pub fn text(self, value: u64) -> String {
        if self == ShareKey::LatencyBudget { time::format(value) } else { value.to_string() }
    }

    /// The value where a policy names none. None: it must.
    pub(crate) fn default_value(self) -> Option<u32> {
        match self {
            ShareKey::Weight => Some(1),
            ShareKey::Quantum => Some(FRAME_BYTES),
            ShareKey::Priority | ShareKey::LatencyBudget => None,
        }
    }

    /// A scheduler that looks at it, for cures.
    pub(crate) fn scheduler(self) -> NodeScheduler {
        match self {
            ShareKey::Weight => NodeScheduler::ElasticRoundRobin,
            ShareKey::Quantum => NodeScheduler::DeficitRoundRobin,
            ShareKey::Priority => NodeScheduler::StrictPriority,
            ShareKey::LatencyBudget => NodeScheduler::Pifo(Rank::EARLIEST_DEADLINE),
        }
    }
}

/// A class inside the subscribers of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanClass {
    /// Its number, below [`MAX_PLAN_CLASSES`], which no other class of the plan has. Rules name it.
    pub id: ClassId,
    /// Its name, which no other class of the plan has; `class<id>` by default.
    pub name: String,
    /// The guarantee inside the subscriber: what the class sends before what is shared.
    pub rate: EachWay<Option<Rate>>,
    /// The ceiling.
    pub ceil: EachWay<Option<Rate>>,
    /// The most that passes at once after a pause. `None`: as for a plan.
    pub burst: EachWay<Option<Burst>>,
    /// Its share beside the other classes, 1 to [`super::MAX_NODE_WEIGHT`]; with [`NodeScheduler::DeficitRoundRobin`] its quantum, bytes.
    pub weight: u32,
    /// Its urgency with [`NodeScheduler::StrictPriority`], or as a rank, 0 to 15; 0 goes first.
    pub priority: u8,
    /// The request below EEVDF, or the latency budget below a PIFO.
    pub order: Order,
    /// The queue.
    pub queue: Queue,
    /// The active queue management; `None` for none.
    pub codel: Option<Codel>,
    /// The limit of the queue. `None`: chosen by `resolve`.
    pub limit: Option<Limit>,
    /// Its place in the policy's file.
    pub(crate) span: Where,
}

/// The choice of a class for a packet, for all subscribers alike.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Classification {
    /// The class of packets that no rule matches. `None`, or none of the plan: its least urgent class, or the one with the largest id.
    pub default_class: Option<ClassId>,
    /// Sets of addresses that rules name, by name.
    pub address_sets: BTreeMap<String, Vec<IpNet>>,
    /// Sets of ports that rules name: first and last port of each range, by name.
    pub port_sets: BTreeMap<String, Vec<(u16, u16)>>,
    /// The rules, in the order of the file. Only their priority decides.
    pub rules: Vec<Rule>,
}

/// The ids and the names of the classes of all plans, each once, by id. Empty: no plan has classes.
pub(crate) fn classes_of(plans: &[Plan]) -> Vec<(ClassId, String)> {
    let mut all: BTreeMap<ClassId, &str> = BTreeMap::new();
    for class in plans.iter().flat_map(|plan| &plan.classes) {
        all.entry(class.id).or_insert(&class.name);
    }
    all.into_iter().map(|(id, name)| (id, name.to_owned())).collect()
}

/// The index of the class of a plan whose packets no rule gives to another class of it. None: it has no classes.
pub(crate) fn default_of(plan: &Plan, default_class: Option<ClassId>) -> Option<usize> {
    let named = plan.classes.iter().position(|class| Some(class.id) == default_class);
    let least_urgent = plan
        .classes
        .iter()
        .enumerate()
        .max_by_key(|(_, class)| (class.priority, class.order.latency_budget_ns, class.id));
    named.or(least_urgent.map(|(index, _)| index))
}
