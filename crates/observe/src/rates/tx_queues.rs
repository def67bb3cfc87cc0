//! The rates of tx queues that have a scheduler each.

use super::Earlier;
use serde::Serialize;
use sluice_kernel::status::{Count, DirectionStatus, TxQueueStatus};

/// The rates of the scheduler of one tx queue.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TxQueueRates {
    /// Number of the tx queue, from 0.
    pub queue: u16,
    /// Sending rate, bits per second.
    pub sent_bps: f64,
    /// Sending rate, packets per second.
    pub sent_pps: f64,
    /// Drop rate, packets per second.
    pub dropped_pps: f64,
    /// Packets and bytes now queued.
    pub backlog: Count,
}

/// The rates of the tx queues of a direction.
pub(super) fn rates(now: &DirectionStatus, earlier: Earlier<&DirectionStatus>, span_s: f64) -> Vec<TxQueueRates> {
    let per_second = |count: u64| if span_s > 0.0 { count as f64 / span_s } else { 0.0 };
    let one = |one: &TxQueueStatus| {
        let then = earlier.of(|then| then.tx_queues.iter().find(|other| other.queue == one.queue));
        let counted = |of: fn(&TxQueueStatus) -> u64| per_second(then.of(|then| Some(of(then))).until(of(one)));
        TxQueueRates {
            queue: one.queue,
            sent_bps: counted(|one| one.sent.bytes) * 8.0,
            sent_pps: counted(|one| one.sent.pkts),
            dropped_pps: counted(|one| one.dropped.pkts),
            backlog: one.backlog,
        }
    };
    now.tx_queues.iter().map(one).collect()
}
