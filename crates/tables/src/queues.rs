//! The scheduler's configuration: its discipline, limits, levels, shares, buckets.

use crate::levels::Levels;
use crate::{Context, bucket, shared};
use sluice_abi as abi;
use sluice_policy::{Bytes, Cells, Exceed, Hosts, Rate, Resolved, ResolvedClass};

/// Quantum of a class that only drains.
const FRAME_BYTES: u32 = 1514;

/// The configuration of the queues of one direction (`enum sl_direction`).
pub(crate) fn conf(policy: &Resolved, context: &Context, direction: u32) -> Box<abi::sl_sched_conf> {
    let mut conf = abi::boxed_zeroed::<abi::sl_sched_conf>();
    let link_rate = if direction == abi::SL_EGRESS { context.egress_rate } else { context.ingress_rate };
    conf.kind = policy.scheduler.number();
    conf.rank = policy.rank.number();
    conf.rank_shift = sluice_policy::rank_shift(policy);
    conf.generation = context.generation;
    conf.slots = abi::SL_SLOTS;
    conf.overhead_bytes = policy.framing.overhead_bytes - context.header_bytes as i32;
    conf.mpu_bytes = policy.framing.mpu_bytes;
    conf.cells = cells(policy.framing.cells);
    if let Some(rate) = link_rate {
        conf.link_cost = bucket::cost(rate);
        conf.link_burst_ns = bucket::link_burst_ns(policy.link_burst, rate);
    }
    let levels = Levels::of(policy);
    // A removed class drains beside the default class.
    let default = policy.class(policy.default_class);
    for to in &mut conf.classes {
        to.level = default.map_or(0, |class| levels.level(class));
        to.quantum_bytes = FRAME_BYTES;
        to.weight = default.map_or(1, |class| class.weight);
        to.budget_ns = default.and_then(|class| class.latency_budget_ns).unwrap_or(0);
    }
    for class in &policy.classes {
        let to = &mut conf.classes[usize::from(class.id.0)];
        fill(to, class, levels.level(class), direction);
        fill_queue(to, class, link_rate);
    }
    if shared::rate(policy, context, direction).is_some() {
        shared::leave_out_rates(&mut conf);
    }
    conf
}

/// `enum sl_cells`.
pub(crate) fn cells(cells: Cells) -> u32 {
    match cells {
        Cells::None => abi::SL_CELLS_NONE,
        Cells::Atm => abi::SL_CELLS_ATM,
        Cells::Ptm => abi::SL_CELLS_PTM,
    }
}

/// Bits of `enum sl_hosts`.
pub(crate) fn hosts(hosts: Hosts) -> u32 {
    match hosts {
        Hosts::Both => abi::SL_HOSTS_SOURCE | abi::SL_HOSTS_DESTINATION,
        Hosts::Source => abi::SL_HOSTS_SOURCE,
        Hosts::Destination => abi::SL_HOSTS_DESTINATION,
        Hosts::None => abi::SL_HOSTS_NONE,
    }
}

/// Fills in the queue of a class and its CoDel. The target is that of the rate at which this direction sends.
fn fill_queue(to: &mut abi::sl_class_conf, class: &ResolvedClass, link_rate: Option<Rate>) {
    if let Some(own) = class.queue.flows() {
        to.flows = abi::SL_CLASS_FLOWS; // the core divides what there are
        to.hosts = hosts(own.hosts);
        to.flow_quantum_bytes = own.quantum_bytes;
        // The policy's most is far below 2^32.
        to.allowance_bytes = own.allowance.0 as u32;
    }
    if let Some(codel) = class.codel.map(|codel| codel.at_rate(link_rate)) {
        to.flows = to.flows.max(1);
        to.target_ns = codel.target_ns;
        to.interval_ns = codel.interval_ns;
    }
}

fn fill(to: &mut abi::sl_class_conf, class: &ResolvedClass, level: u32, direction: u32) {
    to.level = level;
    to.limit_pkts = class.limit_pkts;
    to.limit_bytes = class.limit_bytes.map_or(u32::MAX, |bytes| u32::try_from(bytes.0).unwrap_or(u32::MAX));
    to.quantum_bytes = class.quantum_bytes;
    to.weight = class.weight;
    to.budget_ns = class.latency_budget_ns.unwrap_or(0);
    let policed = class.exceed == Exceed::Police;
    // Arrivals are policed by the hook, before they are queued.
    if let (Some(ceil), false) = (class.ceil, policed && direction == abi::SL_INGRESS) {
        to.policed = u32::from(policed);
        to.ceil_cost = bucket::cost(ceil);
        to.ceil_burst_ns = bucket::duration_ns(class.burst.unwrap_or(Bytes(0)), ceil);
        if let Some(peak) = class.peak {
            to.peak_cost = bucket::cost(peak.rate);
            to.peak_burst_ns = bucket::duration_ns(peak.burst(), peak.rate);
        }
    }
    if let Some(rate) = class.rate {
        to.rate_cost = bucket::cost(rate);
        to.rate_burst_ns = bucket::guarantee_burst_ns(rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn compiled(text: &str) -> Box<abi::sl_sched_conf> {
        compiled_for(text, abi::SL_EGRESS, None)
    }

    fn compiled_for(text: &str, direction: u32, ingress_rate: Option<Rate>) -> Box<abi::sl_sched_conf> {
        let (resolved, context) = testing::resolved(text);
        let context = Context { ingress_rate, ..context };
        conf(&resolved, &context, direction)
    }

    #[test]
    fn every_discipline_has_its_number() {
        for abi::Discipline { number, name, .. } in abi::disciplines() {
            let text = format!(r#"{{ "scheduler": "{name}", "classes": [{{ "id": 0, "priority": 0 }}] }}"#);
            assert_eq!(compiled(&text).kind, number, "{name}");
        }
        for abi::Discipline { number, name, .. } in abi::rank_functions() {
            let class = r#"{ "id": 0, "priority": 0, "latency_budget": "1ms" }"#;
            let text = format!(r#"{{ "scheduler": "pifo", "rank": "{name}", "classes": [{class}] }}"#);
            assert_eq!(compiled(&text).rank, number, "{name}");
        }
    }

    #[test]
    fn classes_have_their_shares_and_budgets() {
        let conf = compiled(
            r#"{ "scheduler": "pifo", "rank": "slack", "default_class": 7, "classes": [
                { "id": 2, "weight": 3, "quantum": 300, "latency_budget": "1ms" },
                { "id": 7, "weight": 5, "latency_budget": "50ms" } ] }"#,
        );
        let of = |id: usize| {
            let class = conf.classes[id];
            (class.weight, class.quantum_bytes, class.budget_ns, class.limit_pkts > 0)
        };
        assert_eq!(conf.rank_shift, 16);
        assert_eq!(of(2), (3, 300, 1_000_000, true));
        assert_eq!(of(7), (5, 1514, 50_000_000, true));
        assert_eq!(of(0), (5, 1514, 50_000_000, false), "what is gone drains beside the default class");
    }

    #[test]
    fn classes_queue_as_the_policy_says() {
        let text = r#"{ "scheduler": "round_robin", "default_class": 2, "link": { "rate": "20mbit" }, "classes": [
            { "id": 0, "aqm": "codel", "target": "1ms", "interval": "20ms" }, { "id": 1 },
            { "id": 2, "queue": "flows" },
            { "id": 3, "queue": "flows", "hosts": "source", "flow_quantum": 300, "allowance": "16kb" },
            { "id": 4, "queue": "flows", "hosts": "none", "aqm": "none" },
            { "id": 5, "queue": "flows", "hosts": "destination", "target": "10ms" } ] }"#;
        let shown = |conf: &abi::sl_sched_conf, id: usize| {
            let class = conf.classes[id];
            let flows = (class.flows, class.hosts, class.flow_quantum_bytes, class.allowance_bytes);
            (flows, class.target_ns, class.interval_ns)
        };
        let conf = compiled(text);
        // A frame and a half takes 0.909 ms at 20 Mbit/s.
        assert_eq!(shown(&conf, 0), ((1, 0, 0, 0), 1_000_000, 20_000_000));
        assert_eq!(shown(&conf, 1), ((0, 0, 0, 0), 0, 0));
        assert_eq!(shown(&conf, 2), ((1024, 3, 1514, 48_448), 5_000_000, 100_000_000));
        assert_eq!(shown(&conf, 3), ((1024, 1, 300, 16_384), 5_000_000, 100_000_000));
        assert_eq!(shown(&conf, 4), ((1024, 0, 1514, 48_448), 0, 0));
        assert_eq!(shown(&conf, 5), ((1024, 2, 1514, 48_448), 10_000_000, 100_000_000));
        assert_eq!(shown(&conf, 6), ((0, 0, 0, 0), 0, 0), "what is gone has no queues by flow");
        let slow = compiled_for(text, abi::SL_INGRESS, Some(Rate(2_000_000)));
        assert_eq!(shown(&slow, 0), ((1, 0, 0, 0), 9_084_000, 28_084_000), "arrivals have a rate of their own");
        assert_eq!(shown(&slow, 5).1, 10_000_000);
    }
}
