//! The queues of leaves, as their plans and classes want them at the rates at which they send.

use super::{EachWay, Plan};
use crate::bytes::FRAME_BYTES;
use crate::limit::Limit;
use crate::limits;
use crate::queue::{Codel, Flows, Queue};
use crate::rate::Rate;
use std::collections::{HashMap, HashSet};

/// The queue of leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeafQueue {
    /// A FIFO, or by flow.
    pub queue: Queue,
    /// The active queue management, for the leaf's rate; `None` for none.
    pub codel: Option<Codel>,
    /// The most packets; `None`: as many as there is room for. A limit in bytes or time is as many full frames.
    pub limit_pkts: Option<u32>,
}

impl LeafQueue {
    /// Bytes that a flow may send in its turn.
    pub fn quantum_bytes(&self) -> u32 {
        self.queue.flows().map_or(FRAME_BYTES, |flows| flows.quantum_bytes)
    }

    /// The time of a turn at a rate, ns; without one, at 1 Gbit/s. Rounded up to a power of two, so that leaves of many rates have few kinds of queues.
    pub fn round_ns(&self, rate: Option<Rate>) -> u32 {
        let bps = u128::from(rate.map_or(1_000_000_000, |rate| rate.0).max(1));
        let ns = u128::from(self.quantum_bytes()) * 8_000_000_000 / bps;
        (ns.clamp(1, 1 << 31) as u32).next_power_of_two()
    }

    /// The kind of the queue in the tree: everything but the limit, which the tree keeps by leaf.
    fn kind(&self, rate: Option<Rate>) -> (Queue, Option<Codel>, u32) {
        (self.queue, self.codel, self.round_ns(rate))
    }
}

/// The queues of all leaves, each once.
#[derive(Default)]
pub(super) struct Queues {
    pub list: Vec<LeafQueue>,
    known: HashMap<LeafQueue, usize>,
    kinds: EachWay<HashSet<(Queue, Option<Codel>, u32)>>,
}

impl Queues {
    fn index(&mut self, queue: LeafQueue) -> usize {
        *self.known.entry(queue).or_insert_with(|| {
            self.list.push(queue);
            self.list.len() - 1
        })
    }

    /// The indices of the queues of a leaf that sends at these rates, by what it says of its queue.
    pub fn of(&mut self, wanted: Wanted, sends_at: EachWay<Option<Rate>>) -> EachWay<usize> {
        let own = sends_at.map(|rate| queue(wanted, *rate));
        self.kinds.down.insert(own.down.kind(sends_at.down));
        self.kinds.up.insert(own.up.kind(sends_at.up));
        EachWay { down: self.index(own.down), up: self.index(own.up) }
    }

    /// The kinds of queues that a tree has, of the direction that has more.
    pub fn kinds(&self) -> usize {
        self.kinds.down.len().max(self.kinds.up.len())
    }
}

/// The queue as a plan or a class writes it.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub queue: Queue,
    pub codel: Option<Codel>,
    pub limit: Option<Limit>,
}

impl Wanted {
    pub fn of_subscriber(plan: Option<&Plan>) -> Wanted {
        let queue = Queue::Flows(Flows::default());
        let default = Wanted { queue, codel: queue.default_codel(), limit: None };
        plan.map_or(default, |plan| Wanted { queue: plan.queue, codel: plan.codel, limit: plan.limit })
    }
}

/// The queue of a leaf that sends at this rate.
fn queue(Wanted { queue, codel, limit }: Wanted, rate: Option<Rate>) -> LeafQueue {
    let kept_short = queue.flows().is_some() && codel.is_some();
    let demand = limits::demand(limit, rate, kept_short);
    LeafQueue {
        queue,
        codel: codel.map(|codel| codel.at_rate(rate)),
        limit_pkts: match demand.bytes {
            Some(bytes) => Some((bytes.0 / u64::from(FRAME_BYTES)).clamp(1, u16::MAX.into()) as u32),
            None => (!demand.all).then(|| demand.wanted_pkts.min(u16::MAX.into()) as u32),
        },
    }
}
