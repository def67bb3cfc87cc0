//! Random policies, traffic, lists and ports.

use crate::port;
use proptest::{collection::vec, option, prelude::*};
use sluice_abi as abi;
use sluice_core::level_backpressure::Lists;

/// Lists, at most: queues of the modelled port.
pub const CLASSES: usize = 13;
/// Levels of policies: more than lists in some cases.
const LEVELS: u32 = 5;

/// A class of a policy.
#[derive(Debug, Clone, Copy)]
pub struct Class {
    pub level: u32,
    pub quantum_bytes: u32,
    pub weight: u32,
    /// Its ceiling: ns for a byte, and burst in ns.
    pub ceiling: Option<(u64, u64)>,
    /// A guarantee: ns for a byte.
    pub guarantee: Option<u64>,
    pub limit_pkts: u32,
    /// Queues of its flows; 0: one queue.
    pub flows: u32,
}

#[derive(Debug, Clone)]
pub enum Step {
    /// Packets of these lengths for this class.
    Arrive { class: usize, bytes: Vec<u32> },
    /// A round, in which so many packets may come to the lists.
    Round { count: u32 },
    /// Classes have these levels and other values from now on.
    Configure { classes: Vec<Class> },
}

#[derive(Debug, Clone)]
pub struct Case {
    /// `enum sl_kind`.
    pub kind: u32,
    pub classes: Vec<Class>,
    pub lists: Lists,
    pub port: port::Shape,
    /// The step, so many ns after the step before.
    pub steps: Vec<(u64, Step)>,
    pub seed: u32,
}

impl Case {
    /// The configuration of the scheduler with these classes.
    pub fn conf(&self, classes: &[Class]) -> Box<abi::sl_sched_conf> {
        let mut conf = abi::boxed_zeroed::<abi::sl_sched_conf>();
        (conf.kind, conf.generation, conf.slots) = (self.kind, 1, abi::SL_SLOTS);
        for (to, from) in conf.classes.iter_mut().zip(classes) {
            (to.level, to.quantum_bytes, to.weight) = (from.level, from.quantum_bytes, from.weight);
            (to.limit_pkts, to.limit_bytes) = (from.limit_pkts, u32::MAX);
            if let Some((ns_per_byte, burst_ns)) = from.ceiling {
                (to.ceil_cost, to.ceil_burst_ns) = (ns_per_byte << 20, burst_ns);
            }
            if let Some(ns_per_byte) = from.guarantee {
                (to.rate_cost, to.rate_burst_ns) = (ns_per_byte << 20, ns_per_byte * 3000);
            }
            (to.flows, to.flow_quantum_bytes, to.allowance_bytes) = (from.flows, 1514, 1514);
        }
        conf
    }
}

/// Cases of so many steps at most.
pub fn of(steps: usize) -> Traces {
    Traces { steps, strict: false, ceilings: false, guarantees: false, edits: false, limits: false }
}

#[derive(Debug, Clone, Copy)]
pub struct Traces {
    steps: usize,
    strict: bool,
    ceilings: bool,
    guarantees: bool,
    edits: bool,
    limits: bool,
}

impl Traces {
    /// The discipline is strict priority.
    pub fn strict(self) -> Traces {
        Traces { strict: true, ..self }
    }

    /// Some classes have ceilings.
    pub fn ceilings(self) -> Traces {
        Traces { ceilings: true, ..self }
    }

    /// Some classes have guarantees.
    pub fn guarantees(self) -> Traces {
        Traces { guarantees: true, ..self }
    }

    /// Other policies take force.
    pub fn edits(self) -> Traces {
        Traces { edits: true, ..self }
    }

    /// Queues are short.
    pub fn limits(self) -> Traces {
        Traces { limits: true, ..self }
    }

    pub fn cases(self) -> BoxedStrategy<Case> {
        let kind = if self.strict {
            Just(abi::SL_STRICT_PRIORITY).boxed()
        } else {
            prop_oneof![1 => Just(abi::SL_STRICT_PRIORITY), 1 => 0..abi::SL_KINDS].boxed()
        };
        let lists = (1..=LEVELS, prop_oneof![1..4u32, 1..16u32], 1..12u32)
            .prop_map(|(lists, room_pkts, burst_pkts)| Lists { lists, room_pkts, burst_pkts });
        (2..8usize)
            .prop_flat_map(move |count| {
                let steps = vec((gap(), self.step(count)), 0..=self.steps);
                (kind.clone(), self.classes(count), lists.clone(), port::shapes(), steps, any::<u32>())
            })
            .prop_map(|(kind, classes, lists, port, steps, seed)| Case { kind, classes, lists, port, steps, seed })
            .boxed()
    }

    fn classes(self, count: usize) -> BoxedStrategy<Vec<Class>> {
        let ceiling = sometimes(self.ceilings, (1..200u64, 0..100_000u64));
        let guarantee = sometimes(self.guarantees, 1..200u64);
        let limit_pkts = if self.limits { prop_oneof![1..20u32, Just(1000)].boxed() } else { Just(u32::MAX).boxed() };
        let class =
            (0..LEVELS, 300..3000u32, 1..5u32, ceiling, guarantee, limit_pkts, prop_oneof![Just(0), Just(8u32)]);
        vec(class, count)
            .prop_map(|classes| {
                let class = |(level, quantum_bytes, weight, ceiling, guarantee, limit_pkts, flows)| Class {
                    level,
                    quantum_bytes,
                    weight,
                    ceiling,
                    guarantee,
                    limit_pkts,
                    flows,
                };
                classes.into_iter().map(class).collect()
            })
            .boxed()
    }

    fn step(self, count: usize) -> BoxedStrategy<Step> {
        let bytes = prop_oneof![1 => vec(64..=1514u32, 1), 1 => vec(64..=1514u32, 1..10)];
        let arrive = (0..count, bytes).prop_map(|(class, bytes)| Step::Arrive { class, bytes });
        let round = (0..=64u32).prop_map(|count| Step::Round { count });
        if !self.edits {
            return prop_oneof![1 => arrive, 1 => round].boxed();
        }
        let configure = self.classes(count).prop_map(|classes| Step::Configure { classes });
        prop_oneof![10 => arrive, 10 => round, 1 => configure].boxed()
    }
}

fn sometimes<S: Strategy + 'static>(really: bool, of: S) -> BoxedStrategy<Option<S::Value>>
where
    S::Value: Clone,
{
    if really { option::weighted(0.4, of).boxed() } else { Just(None).boxed() }
}

/// Most steps follow each other soon.
fn gap() -> BoxedStrategy<u64> {
    prop_oneof![6 => 0..2_000u64, 3 => 0..30_000u64].boxed()
}
