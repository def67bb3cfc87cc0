//! The counters and the state of the schedulers of engine `qdisc`, read while they run.

use super::state::{self, Head, SchedulerState};
use super::{ClassStatus, Count, TxQueueStatus, add_drops};
use crate::bpf::mapped::Mapped;
use crate::system::clock;
use sluice_abi as abi;

/// The state of a direction's schedulers, beside their classes.
#[derive(Default)]
pub(super) struct Totals {
    /// Fill level of the link's token bucket, 0 to 1; of several schedulers, the lowest.
    pub link_fill: Option<f64>,
    /// State of the scheduler, if there is only one.
    pub state: Option<SchedulerState>,
    /// Each of several schedulers.
    pub tx_queues: Vec<TxQueueStatus>,
}

/// Adds the counters of the schedulers of a device: one, or one for each of its queues.
pub(super) fn add(classes: &mut [ClassStatus], instances: &Mapped<abi::sl_instance>, ifindex: u32) -> Totals {
    // SAFETY: `instance` points into the mapping; only an address is taken.
    let schedulers = instances.values().map(|instance| unsafe { std::ptr::addr_of!((*instance).sched) });
    // SAFETY: `sched` points at a whole scheduler, mapped as long as `instances` is borrowed.
    let number = |sched: &*const abi::sl_sched| unsafe { std::ptr::addr_of!((**sched).ifindex).read_volatile() };
    let own: Vec<*const abi::sl_sched> = schedulers.filter(|sched| ifindex != 0 && number(sched) == ifindex).collect();
    let mut totals = Totals::default();
    for sched in &own {
        // SAFETY: the pointer is to a whole scheduler, mapped as long as `instances` is borrowed.
        let head = unsafe { Head::read(*sched) };
        let now_ns = clock::monotonic().as_nanos() as u64;
        least(&mut totals.link_fill, fill(&head.link, now_ns));
        for class in classes.iter_mut() {
            // SAFETY: the pointer is to a whole scheduler, mapped as long as `instances` is borrowed.
            unsafe { add_class(class, *sched, &head, now_ns) };
        }
        if own.len() > 1 {
            totals.tx_queues.push(tx_queue(&head));
        }
        if own.len() == 1 {
            totals.state = Some(state::of_scheduler(&head, classes.iter().map(|class| class.id)));
            for class in classes.iter_mut() {
                class.state = Some(state::of_class(head.kind, &head.classes[usize::from(class.id)]));
            }
        }
    }
    totals.tx_queues.sort_by_key(|one| one.queue);
    for class in classes {
        class.sojourn_p50_us = class.sojourn.as_ref().and_then(|waits| waits.quantile_us(0.50));
        class.sojourn_p99_us = class.sojourn.as_ref().and_then(|waits| waits.quantile_us(0.99));
    }
    totals
}

/// The sums of a scheduler over all of its classes.
fn tx_queue(head: &Head) -> TxQueueStatus {
    let mut own = TxQueueStatus { queue: head.tx_queue, ..TxQueueStatus::default() };
    for class in head.classes.iter() {
        own.sent.add(Count { pkts: class.sent_pkts, bytes: class.sent_bytes });
        own.dropped.add(Count { pkts: class.dropped_pkts.iter().sum(), bytes: class.dropped_bytes });
        own.backlog.add(Count { pkts: class.backlog_pkts.into(), bytes: class.backlog_bytes.into() });
    }
    own
}

/// # Safety
/// `sched` points at a whole scheduler that stays readable meanwhile.
unsafe fn add_class(class: &mut ClassStatus, sched: *const abi::sl_sched, head: &Head, now_ns: u64) {
    let id = usize::from(class.id);
    let own = &head.classes[id];
    class.sent.add(Count { pkts: own.sent_pkts, bytes: own.sent_bytes });
    class.backlog.add(Count { pkts: own.backlog_pkts.into(), bytes: own.backlog_bytes.into() });
    class.dropped.add(Count { pkts: own.dropped_pkts.iter().sum(), bytes: own.dropped_bytes });
    for reason in abi::drop_reasons() {
        add_drops(class, reason.name, own.dropped_pkts[reason.index as usize]);
    }
    class.marked.pkts += own.marked_pkts;
    class.peak_backlog_bytes = Some(class.peak_backlog_bytes.unwrap_or(0).max(own.peak_backlog_bytes));
    class.deficit_bytes = Some(state::of_class(head.kind, own).deficit_bytes);
    least(&mut class.ceil_fill, fill(&own.ceil, now_ns));
    least(&mut class.peak_fill, fill(&own.peak, now_ns));
    least(&mut class.rate_fill, fill(&own.rate, now_ns));
    // SAFETY: a field of the scheduler, which the caller guarantees to be readable.
    let waits = unsafe { std::ptr::addr_of!((*sched).sojourn[id].count).read_volatile() };
    class.sojourn.get_or_insert_default().add(&waits);
    if own.by_flow != 0 && own.flow_mask > 0 {
        let queues = class.flow_queues.get_or_insert_default();
        queues.queues += u32::from(own.flow_mask) + 1;
        if own.backlog_pkts > 0 {
            let first = usize::from(own.flow_base);
            let last = (first + usize::from(own.flow_mask)).min(abi::SL_FLOW_QUEUES as usize - 1);
            for n in first..=last {
                // SAFETY: a field of the same scheduler, and the index is within the array.
                queues.add(unsafe { std::ptr::addr_of!((*sched).flow[n].place).read_volatile() });
            }
        }
    }
}

/// Fill level of a bucket: 1 is full, 0 is empty or in debt. None: the bucket limits nothing.
fn fill(bucket: &abi::sl_bucket, now_ns: u64) -> Option<f64> {
    if bucket.cost == 0 {
        return None;
    }
    let owed_ns = bucket.tat_ns.saturating_sub(now_ns);
    if bucket.burst_ns == 0 {
        return Some(if owed_ns == 0 { 1.0 } else { 0.0 });
    }
    Some((1.0 - owed_ns as f64 / bucket.burst_ns as f64).max(0.0))
}

/// Keeps the smaller of two fill levels.
fn least(so_far: &mut Option<f64>, other: Option<f64>) {
    if let Some(other) = other {
        *so_far = Some(so_far.map_or(other, |known| known.min(other)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_full_when_its_time_has_come() {
        let bucket = |tat_ns| abi::sl_bucket { tat_ns, cost: 1, burst_ns: 1000, frac: 0 };
        let fills: Vec<Option<f64>> = [0, 5000, 5250, 6000, 9000].map(|tat| fill(&bucket(tat), 5000)).to_vec();
        assert_eq!(fills, [Some(1.0), Some(1.0), Some(0.75), Some(0.0), Some(0.0)]);
        assert_eq!(fill(&abi::sl_bucket { cost: 0, ..bucket(9000) }, 0), None);
    }
}
