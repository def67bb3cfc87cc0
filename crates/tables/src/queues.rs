//! The scheduler's configuration: limits, levels, buckets.

use crate::{Context, bucket};
use sluice_abi as abi;
use sluice_policy::{Bytes, Cells, Exceed, Resolved, ResolvedClass, Scheduler};

/// Burst of a shaped link where the policy names none: what makes up for a late timer, and far less than a frame at
/// the rates where a burst is felt.
const LINK_BURST_NS: u64 = 250_000;
/// Burst of a guarantee: what a class may catch up on after others' guarantees went first.
const GUARANTEE_BURST_NS: u64 = 5_000_000;
const GUARANTEE_BURST_BYTES: Bytes = Bytes(3028);
/// Quantum of a class that only drains.
const FRAME_BYTES: u32 = 1514;

/// The configuration of the queues of one direction (`enum sl_direction`).
pub(crate) fn conf(policy: &Resolved, context: &Context, direction: u32) -> Box<abi::sl_sched_conf> {
    let mut conf = abi::boxed_zeroed::<abi::sl_sched_conf>();
    let link_rate = if direction == abi::SL_EGRESS { context.egress_rate } else { context.ingress_rate };
    conf.kind = kind(policy.scheduler);
    conf.generation = context.generation;
    conf.slots = abi::SL_SLOTS;
    conf.overhead_bytes = policy.framing.overhead_bytes - context.header_bytes as i32;
    conf.mpu_bytes = policy.framing.mpu_bytes;
    conf.cells = match policy.framing.cells {
        Cells::None => abi::SL_CELLS_NONE,
        Cells::Atm => abi::SL_CELLS_ATM,
        Cells::Ptm => abi::SL_CELLS_PTM,
    };
    if let Some(rate) = link_rate {
        conf.link_cost = bucket::cost(rate);
        conf.link_burst_ns = policy.link_burst.map_or(LINK_BURST_NS, |burst| bucket::duration_ns(burst, rate));
    }
    let mut levels: Vec<u8> = policy.classes.iter().map(|class| class.priority).collect();
    levels.sort_unstable();
    levels.dedup();
    let level = |priority: u8| levels.binary_search(&priority).unwrap_or(0) as u32;
    let default_level = policy.class(policy.default_class).map_or(0, |class| level(class.priority));
    for to in &mut conf.classes {
        to.level = default_level;
        to.quantum_bytes = FRAME_BYTES;
        to.weight = 1;
    }
    for class in &policy.classes {
        fill(&mut conf.classes[usize::from(class.id.0)], class, level(class.priority), direction);
    }
    conf
}

fn fill(to: &mut abi::sl_class_conf, class: &ResolvedClass, level: u32, direction: u32) {
    to.level = level;
    to.limit_pkts = class.limit_pkts;
    to.limit_bytes = class.limit_bytes.map_or(u32::MAX, |bytes| u32::try_from(bytes.0).unwrap_or(u32::MAX));
    to.quantum_bytes = class.quantum_bytes;
    to.weight = class.weight;
    let policed = class.exceed == Exceed::Police;
    // What arrives is policed by the hook, before it is queued.
    if let (Some(ceil), false) = (class.ceil, policed && direction == abi::SL_INGRESS) {
        to.policed = u32::from(policed);
        to.ceil_cost = bucket::cost(ceil);
        to.ceil_burst_ns = bucket::duration_ns(class.burst.unwrap_or(Bytes(0)), ceil);
    }
    if let Some(rate) = class.rate {
        to.rate_cost = bucket::cost(rate);
        to.rate_burst_ns = GUARANTEE_BURST_NS.max(bucket::duration_ns(GUARANTEE_BURST_BYTES, rate));
    }
}

fn kind(scheduler: Scheduler) -> u32 {
    match scheduler {
        Scheduler::StrictPriority => abi::SL_STRICT_PRIORITY,
        Scheduler::DeficitRoundRobin => abi::SL_DEFICIT_ROUND_ROBIN,
        unbuilt => unreachable!("resolve refuses {}", unbuilt.name()),
    }
}
