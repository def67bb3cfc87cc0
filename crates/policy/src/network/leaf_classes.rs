//! The classes inside subscribers and hosts, with every value chosen.

use super::leaf_queues::{Queues, Wanted};
use super::{
    BURST_TIMES_NS, Burst, EachWay, MAX_PLAN_CLASSES, NetworkPolicy, NodeScheduler, Order, Plan, PlanClass, default_of,
};
use crate::bytes::Bytes;
use crate::ceiling::default_burst;
use crate::class_id::ClassId;
use crate::rate::Rate;
use std::collections::HashMap;
use std::sync::Arc;

type Rates = EachWay<Option<Rate>>;

/// The classes inside a subscriber. Subscribers of a plan with one rate have the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeafClasses {
    /// How they share what their guarantees leave.
    pub scheduler: NodeScheduler,
    /// The classes, in the order of the plan.
    pub classes: Vec<LeafClass>,
    /// The index of the class of packets that no rule gives to another one of these.
    pub default: usize,
}

/// A class inside a subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeafClass {
    /// Its number, by which rules name it.
    pub id: ClassId,
    /// Its name.
    pub name: String,
    /// Its share beside the other classes, 1 to [`super::MAX_NODE_WEIGHT`].
    pub weight: u32,
    /// Its urgency with [`NodeScheduler::StrictPriority`], 0 to 15; 0 goes first.
    pub priority: u8,
    /// The request below EEVDF, or the latency budget below a PIFO.
    pub order: Order,
    /// Its guarantee inside the subscriber, bits per second.
    pub rate: Rates,
    /// Its ceiling, bits per second.
    pub ceil: Rates,
    /// The most that passes at once after a pause, if there is a ceiling.
    pub burst: EachWay<Option<Bytes>>,
    /// The index of its queue in [`Network::queues`].
    pub queue: EachWay<usize>,
}

impl LeafClasses {
    /// The index of the class that packets get of a class of rules, or of none.
    pub fn of(&self, class: Option<ClassId>) -> usize {
        let own = class.and_then(|class| self.classes.iter().position(|own| own.id == class));
        own.unwrap_or(self.default)
    }

    /// The index of the class of packets by the number that engines know it by: the last of them is that of packets without one.
    pub fn by_number(&self) -> [usize; MAX_PLAN_CLASSES + 1] {
        std::array::from_fn(|number| self.of((number < MAX_PLAN_CLASSES).then_some(ClassId(number as u8))))
    }
}

/// The burst of a ceiling. One in bytes is cut to what a node can have, for a subscriber may have a slower ceiling than its plan.
pub(super) fn burst_at(ceil: Rate, burst: Option<Burst>) -> Bytes {
    match burst {
        None => default_burst(ceil),
        Some(Burst::Bytes(bytes)) => bytes.min(Bytes(ceil.bytes_in_ns(*BURST_TIMES_NS.end()))),
        Some(Burst::TimeNs(ns)) => Bytes(ceil.bytes_in_ns(ns)),
    }
}

/// The classes of subscribers by the index of their plan and the rates at which they send.
#[derive(Default)]
pub(super) struct Known(HashMap<(Option<usize>, Rates), Arc<LeafClasses>>);

impl Known {
    /// The classes inside a subscriber of a plan, by its index, that sends at these rates.
    pub fn of(
        &mut self,
        policy: &NetworkPolicy,
        index: Option<usize>,
        sends_at: Rates,
        queues: &mut Queues,
    ) -> Arc<LeafClasses> {
        let plan = index.and_then(|index| policy.plans.get(index));
        let make = || Arc::new(plan.map_or(LeafClasses::default(), |plan| classes(policy, plan, &sends_at, queues)));
        Arc::clone(self.0.entry((index, sends_at)).or_insert_with(make))
    }
}

/// The classes inside a subscriber of a plan that sends at these rates.
fn classes(policy: &NetworkPolicy, plan: &Plan, sends_at: &Rates, queues: &mut Queues) -> LeafClasses {
    let class = |own: &PlanClass| {
        // A class sends no faster than its subscriber.
        let least = |own: Option<Rate>, whole: Option<Rate>| {
            own.map_or(whole, |own| Some(whole.map_or(own, |whole| own.min(whole))))
        };
        let at = EachWay { down: least(own.ceil.down, sends_at.down), up: least(own.ceil.up, sends_at.up) };
        LeafClass {
            id: own.id,
            name: own.name.clone(),
            weight: own.weight,
            priority: own.priority,
            order: own.order,
            rate: own.rate,
            ceil: own.ceil,
            burst: own.ceil.zip(&own.burst).map(|(ceil, burst)| ceil.map(|ceil| burst_at(ceil, *burst))),
            queue: queues.of(Wanted { queue: own.queue, codel: own.codel, limit: own.limit }, at),
        }
    };
    LeafClasses {
        scheduler: plan.scheduler,
        classes: plan.classes.iter().map(class).collect(),
        default: default_of(plan, policy.classification.default_class).unwrap_or_default(),
    }
}
