//! The link that the schedulers of several queues share: its rate, and the ceilings, guarantees and weights of classes over all of them.

use crate::levels::Levels;
use crate::{Context, Queues, bucket};
use sluice_abi as abi;
use sluice_core::shared_credit::{Class, Conf};
use sluice_policy::{Bytes, Framing, Rate, Resolved, ResolvedClass, Scheduler};

/// Weights are numbers of 16 bits.
const MOST_WEIGHT: u32 = u16::MAX as u32;

/// The rate that the schedulers of this direction share, if they share one.
pub(crate) fn rate(policy: &Resolved, context: &Context, direction: u32) -> Option<Rate> {
    // Trees have the rate in their own nodes.
    if policy.network.is_some() || context.queues == 0 || direction != context.queues_of.direction() {
        return None;
    }
    let (rate, needs_one) = match context.queues_of {
        Queues::Transmit => (context.egress_rate, policy.needs_one_queue()),
        Queues::Receive => (context.ingress_rate, policy.needs_one_worker()),
    };
    rate.filter(|_| needs_one.is_none())
}

/// A scheduler of one queue of several has no rates of its own.
pub(crate) fn leave_out_rates(conf: &mut abi::sl_sched_conf) {
    (conf.link_cost, conf.link_burst_ns) = (0, 0);
    for class in &mut conf.classes {
        (class.ceil_cost, class.ceil_burst_ns, class.peak_cost, class.peak_burst_ns) = (0, 0, 0, 0);
        (class.rate_cost, class.rate_burst_ns) = (0, 0);
    }
}

/// The configuration of the link that schedulers share; zeroes if they share none.
pub(crate) fn conf(policy: &Resolved, context: &Context) -> Box<abi::sl_shared_conf> {
    let Some(rate) = rate(policy, context, context.queues_of.direction()) else { return abi::boxed_zeroed() };
    let burst_ns = bucket::link_burst_ns(policy.link_burst, rate);
    let weights = Weights::of(policy);
    let mut classes = [Class::default(); abi::SL_CLASSES as usize];
    // A removed class drains with the weight and the level of the default class, as in `queues`.
    let levels = Levels::of(policy);
    let level = |class| if policy.scheduler == Scheduler::STRICT_PRIORITY { levels.level(class) } else { 0 };
    if let Some(default) = policy.class(policy.default_class) {
        let (weight, level) = (weights.weight(default), level(default));
        classes.iter_mut().for_each(|class| (class.weight, class.level) = (weight, level));
    }
    for class in &policy.classes {
        classes[usize::from(class.id.0)] = Class {
            weight: weights.weight(class),
            level: level(class),
            ceiling: class.ceil.map(|ceil| ceil.0),
            ceiling_burst_ns: class.ceil.map_or(0, |ceil| bucket::duration_ns(class.burst.unwrap_or(Bytes(0)), ceil)),
            guarantee: class.rate.map(|rate| rate.0),
            guarantee_burst_ns: class.rate.map_or(0, bucket::guarantee_burst_ns),
        };
    }
    Conf::new(context.queues, rate.0, burst_ns, frame_bytes(&policy.framing, context.mtu_bytes), &classes).into_raw()
}

/// The longest frame as the link counts it, without cells: a fragment of the last cell makes it no more than a tenth longer.
pub fn frame_bytes(framing: &Framing, mtu_bytes: u32) -> u32 {
    let whole = i64::from(mtu_bytes) + i64::from(framing.overhead_bytes);
    whole.clamp(i64::from(framing.mpu_bytes.max(64)), 1 << 16) as u32
}

/// The weights of a policy's classes: their weights, or the quanta of a discipline that shares by these.
struct Weights<'a> {
    policy: &'a Resolved,
    most_quantum: u32,
}

impl Weights<'_> {
    fn of(policy: &Resolved) -> Weights<'_> {
        let most_quantum = policy.classes.iter().map(|class| class.quantum_bytes).max().unwrap_or(1);
        Weights { policy, most_quantum }
    }

    fn weight(&self, class: &ResolvedClass) -> u32 {
        if self.policy.scheduler.uses_weight(self.policy.rank) {
            return class.weight.clamp(1, MOST_WEIGHT);
        }
        if !self.policy.scheduler.uses_quantum(self.policy.rank) {
            return 1;
        }
        let quantum = u64::from(class.quantum_bytes);
        let scaled = match self.most_quantum > MOST_WEIGHT {
            true => quantum * u64::from(MOST_WEIGHT) / u64::from(self.most_quantum),
            false => quantum,
        };
        (scaled as u32).clamp(1, MOST_WEIGHT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use crate::{Compiled, compile};
    use sluice_policy::Rate;

    fn compiled(text: &str, queues: u32) -> Compiled {
        let (resolved, context) = testing::resolved(text);
        let context = Context { ingress_rate: Some(Rate(1_000_000)), queues, ..context };
        compile(&resolved, &context).unwrap()
    }

    const POLICY: &str = r#"{ "scheduler": "weighted_fair_queuing", "default_class": 2,
        "link": { "rate": "10gbit", "overhead": "ethernet" }, "classes": [
        { "id": 0, "weight": 3, "rate": "1gbit" }, { "id": 1, "ceil": "2gbit", "burst": "1mb" }, { "id": 2, "weight": 7 } ] }"#;

    #[test]
    fn the_link_has_the_rates_and_schedulers_have_none() {
        let shared = compiled(POLICY, 8);
        let conf = &shared.shared_link;
        assert_eq!(conf.instances, 8);
        assert_eq!(conf.link.cost, (8u64 << 20) / 10 + 1, "0.8 ns a byte, rounded up");
        assert_eq!(conf.link.frame_bytes, 1538);
        assert_eq!(conf.link.batch_bytes, 64 * 1538);
        assert_eq!((conf.ceilings, conf.guarantees), (0b10, 0b1));
        assert_eq!(conf.classes[1].ceiling.burst, 64 * (8 << 20) / 2, "a MiB at 2 Gbit/s, in 1/64 ns");
        assert_eq!([0, 1, 2, 40].map(|class| conf.classes[class].weight), [3, 1, 7, 7]);
        let egress = &shared.sched[abi::SL_EGRESS as usize];
        assert_eq!(egress.link_cost, 0);
        assert!(egress.classes.iter().all(|class| class.ceil_cost == 0 && class.rate_cost == 0));
        assert!(egress.classes[2].limit_pkts > 0 && egress.classes[2].weight == 7);
        assert!(shared.sched[abi::SL_INGRESS as usize].link_cost > 0, "arrivals have one queue");
    }

    #[test]
    fn workers_of_a_wire_share_the_rate_of_arrivals() {
        let (resolved, context) = testing::resolved(POLICY);
        let resolved = sluice_policy::Resolved { link_rate: None, ingress_rate: Some(Rate(2_000_000_000)), ..resolved };
        let context = Context {
            egress_rate: None,
            ingress_rate: resolved.ingress_rate,
            queues: 4,
            queues_of: Queues::Receive,
            ..context
        };
        let on_a_wire = compile(&resolved, &context).unwrap();
        let conf = &on_a_wire.shared_link;
        assert_eq!(conf.instances, 4);
        assert_eq!(conf.link.cost, 4 << 20, "4 ns a byte");
        assert_eq!([0, 1, 2].map(|class| conf.classes[class].weight), [3, 1, 7]);
        let ingress = &on_a_wire.sched[abi::SL_INGRESS as usize];
        assert!(
            ingress.link_cost == 0 && ingress.classes.iter().all(|class| class.ceil_cost == 0 && class.rate_cost == 0)
        );
        assert!(ingress.classes[2].limit_pkts > 0);
        let one = compile(&resolved, &Context { queues: 0, ..context }).unwrap();
        assert_eq!(one.shared_link.link.cost, 0);
        assert!(one.sched[abi::SL_INGRESS as usize].link_cost > 0, "one worker has the rate");
    }

    #[test]
    fn urgent_classes_have_lower_levels() {
        let text = r#"{ "scheduler": "strict_priority", "default_class": 1, "link": { "rate": "10gbit" },
            "classes": [{ "id": 0, "priority": 9 }, { "id": 1, "priority": 5 }, { "id": 2, "priority": 9 }] }"#;
        let levels = |text| {
            let conf = compiled(text, 4).shared_link;
            [0, 1, 2, 40].map(|class| conf.classes[class].level)
        };
        assert_eq!(levels(text), [1, 0, 1, 0]);
        assert_eq!(levels(POLICY), [0; 4], "another discipline has none");
    }

    #[test]
    fn one_queue_keeps_its_rates() {
        let single = compiled(POLICY, 0);
        assert_eq!((single.shared_link.link.cost, single.shared_link.instances), (0, 0));
        let egress = &single.sched[abi::SL_EGRESS as usize];
        assert!(egress.link_cost > 0 && egress.classes[1].ceil_cost > 0 && egress.classes[0].rate_cost > 0);
        let unshaped = compiled(r#"{ "scheduler": "round_robin", "classes": [{ "id": 0 }] }"#, 8);
        assert_eq!(unshaped.shared_link.link.cost, 0);
    }

    #[test]
    fn quanta_are_weights_of_disciplines_that_share_by_them() {
        let of = |first: u32| {
            let text = format!(
                r#"{{ "scheduler": "deficit_round_robin", "default_class": 1, "link": {{ "rate": "10gbit" }},
                "classes": [{{ "id": 0, "quantum": {first} }}, {{ "id": 1, "quantum": 3000 }}] }}"#
            );
            let conf = compiled(&text, 4).shared_link;
            [0, 1].map(|class| conf.classes[class].weight)
        };
        assert_eq!(of(1500), [1500, 3000]);
        let [most, other] = of(1_000_000);
        assert_eq!((most, other), (65535, 196), "scaled down together");
    }
}
