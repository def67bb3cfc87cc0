//! Virtual queues of arrivals: a bucket for each class that fills and drains as the class's queue would at the most, where no program can look
//! into the queue itself.
//!
//! A packet that meets a full virtual queue would have met a full queue: the class never gets more than its ceiling and the link let through, which
//! is what the virtual queue drains at. Where the class gets less, because others send, its queue fills first and drops the packet itself.

use crate::Context;
use crate::bucket;
use sluice_abi as abi;
use sluice_policy::{Bytes, Exceed, FRAME_BYTES, Resolved, ResolvedClass};

/// The burst that the engine allows besides the queue, as a time at the rate, ns; and at least, in bytes.
const BURST_NS: u64 = 250_000;
const LEAST_BURST_BYTES: u64 = 1600;

/// Fills the virtual queues, if there are to be any. A class that queues by flow gets none: it would drop packets of light flows.
pub(crate) fn fill(tables: &mut abi::sl_tables, policy: &Resolved, context: &Context) {
    let Some(link) = context.ingress_rate.filter(|_| context.virtual_queues) else { return };
    for class in policy.classes.iter().filter(|class| class.queue.flows().is_none()) {
        let ceil = class.ceil.filter(|_| class.exceed == Exceed::Shape);
        let rate = ceil.map_or(link, |ceil| ceil.min(link));
        let timed = Bytes(rate.bytes_in_ns(BURST_NS).max(LEAST_BURST_BYTES));
        let burst = class.burst.filter(|_| ceil.is_some()).unwrap_or(timed);
        let room = Bytes(length(class).0.saturating_add(burst.0));
        tables.virtual_queue[usize::from(class.id.0)] = bucket::police(rate, room);
    }
}

/// The bytes that the class's queue holds, full frames if its limit is in packets.
fn length(class: &ResolvedClass) -> Bytes {
    class.limit_bytes.unwrap_or(Bytes(u64::from(class.fifo_limit_pkts) * u64::from(FRAME_BYTES)))
}
