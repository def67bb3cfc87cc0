//! The classes inside subscribers: those of a plan, and the rules that choose one for a packet.

use super::{Burst, EachWay, Plan};
use crate::bytes::FRAME_BYTES;
use crate::class_id::ClassId;
use crate::limit::Limit;
use crate::queue::{Codel, Queue};
use crate::rate::Rate;
use crate::rule::Rule;
use crate::source::Where;
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
}

impl NodeScheduler {
    /// Every choice with its name in policy files.
    pub const NAMES: &[(&str, NodeScheduler)] = &[
        NodeScheduler::ElasticRoundRobin.named(),
        NodeScheduler::StrictPriority.named(),
        NodeScheduler::RoundRobin.named(),
        NodeScheduler::DeficitRoundRobin.named(),
        NodeScheduler::WeightedFairQueuing.named(),
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
        }
    }

    /// The key of a class by which it orders or shares. None: all are alike.
    pub fn key(self) -> Option<ShareKey> {
        match self {
            NodeScheduler::ElasticRoundRobin | NodeScheduler::WeightedFairQueuing => Some(ShareKey::Weight),
            NodeScheduler::StrictPriority => Some(ShareKey::Priority),
            NodeScheduler::DeficitRoundRobin => Some(ShareKey::Quantum),
            NodeScheduler::RoundRobin => None,
        }
    }

    /// The name and the value of that key, of a class with this weight, which may be a quantum, and this priority.
    pub fn value(self, weight: u32, priority: u8) -> Option<(&'static str, u32)> {
        self.key().map(|key| (key.name(), if key == ShareKey::Priority { priority.into() } else { weight }))
    }

    /// The share of such a class, in words.
    pub fn share(self, weight: u32, priority: u8) -> String {
        let named = self.value(weight, priority);
        named.map_or("a packet each".to_owned(), |(key, value)| format!("{key} {value}"))
    }
}

/// A key of a class that says what it gets beside others below the same parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareKey {
    /// A share in proportion.
    Weight,
    /// The bytes of a turn.
    Quantum,
    /// The order.
    Priority,
}

impl ShareKey {
    /// All of them.
    pub(crate) const ALL: [ShareKey; 3] = [ShareKey::Weight, ShareKey::Quantum, ShareKey::Priority];

    /// The name, as policies have it.
    pub fn name(self) -> &'static str {
        match self {
            ShareKey::Weight => "weight",
            ShareKey::Quantum => "quantum",
            ShareKey::Priority => "priority",
        }
    }

    /// The value where a policy names none. None: it must.
    pub(crate) fn default_value(self) -> Option<u32> {
        match self {
            ShareKey::Weight => Some(1),
            ShareKey::Quantum => Some(FRAME_BYTES),
            ShareKey::Priority => None,
        }
    }

    /// A scheduler that looks at it, for cures.
    pub(crate) fn scheduler(self) -> NodeScheduler {
        match self {
            ShareKey::Weight => NodeScheduler::ElasticRoundRobin,
            ShareKey::Quantum => NodeScheduler::DeficitRoundRobin,
            ShareKey::Priority => NodeScheduler::StrictPriority,
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
    /// Its urgency with [`NodeScheduler::StrictPriority`], 0 to 15; 0 goes first.
    pub priority: u8,
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
    let least_urgent = plan.classes.iter().enumerate().max_by_key(|(_, class)| (class.priority, class.id));
    named.or(least_urgent.map(|(index, _)| index))
}
