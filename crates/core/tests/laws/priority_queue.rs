//! The model of a PIFO: a stable priority queue over ranks. The rank functions are written here once more, from their
//! definitions.

use crate::{
    cases::Policy,
    world::{CLASSES, Packet, World},
};
use sluice_abi as abi;
use std::collections::BTreeMap;

/// A packet that is queued by its rank.
#[derive(Clone, Copy, Debug)]
pub struct Ranked {
    pub number: u64,
    pub class: usize,
    pub rank: u64,
    /// The first rank of the bucket that it is in.
    pub bucket: u64,
}

/// An exact priority queue, first in first out within a bucket of 2^rank_shift ranks. Ranks are kept within a ring of
/// buckets: a rank too far behind the first, or before the last, is as far from it as the ring allows.
pub struct PriorityQueue {
    /// By bucket and order of ranking. Buckets are seen from `origin`, since ranks may wrap round.
    ranked: BTreeMap<(u64, u64), Ranked>,
    origin: u64,
    count: u64,
    /// For each class: packets that are ranked, bytes brought since it was last empty, virtual end of its last packet.
    standing: [u64; CLASSES],
    attained: [u64; CLASSES],
    ends: [u64; CLASSES],
    /// The greatest of all ends, so far.
    end: u64,
    virtual_time: u64,
    /// Whether no rank of those queued has been moved to keep it within the ring.
    pub fits: bool,
    /// Whether all ranks are what they must be.
    pub determined: bool,
}

/// Whether a packet of the class is ranked only when the class has tokens and it is the first.
pub fn is_aside(policy: &Policy, class: usize) -> bool {
    policy.classes.get(class).is_some_and(|class| class.ceil.is_some() && !class.policed)
}

impl PriorityQueue {
    /// An empty one that continues where the core's virtual times are.
    pub fn new(world: &World) -> PriorityQueue {
        let state = world.core.state();
        let mut ends = [0; CLASSES];
        ends.iter_mut()
            .zip(&state.classes)
            .for_each(|(end, class)| *end = class.state_of::<abi::sl_virtual_class>().start);
        PriorityQueue {
            ranked: BTreeMap::new(),
            origin: 0,
            count: 0,
            standing: [0; CLASSES],
            attained: [0; CLASSES],
            ends,
            end: state.state_of::<abi::sl_virtual_sched>().end,
            virtual_time: state.state_of::<abi::sl_virtual_sched>().time,
            fits: true,
            determined: true,
        }
    }

    fn rank(&mut self, world: &World, packet: &Packet) -> u64 {
        let (policy, class) = (world.policy, packet.class);
        let own = &policy.classes[class];
        let most = (u64::from(abi::SL_PIFO_BUCKETS) - 1) << policy.rank_shift;
        let (len, deadline) = (u64::from(packet.len), packet.arrived_ns.wrapping_add(own.budget_ns));
        match policy.rank {
            abi::SL_RANK_PRIORITY => own.level.into(),
            abi::SL_RANK_EARLIEST_DEADLINE => deadline,
            // Lengths beyond the ring count alike.
            abi::SL_RANK_SHORTEST_PACKET => len.min(most),
            abi::SL_RANK_LEAST_ATTAINED_SERVICE => {
                self.attained[class] += len;
                (self.attained[class] - len).min(most)
            }
            abi::SL_RANK_START_TIME_FAIR => {
                // A busy period has ended: no packet waits, and the link has sent everything.
                if self.ranked.is_empty() && world.link.full(packet.arrived_ns) {
                    self.virtual_time = self.end;
                }
                let end = self.ends[class];
                let (ahead, queued) = (end.wrapping_sub(self.virtual_time) as i64, self.standing[class] > 0);
                // A class that has nothing queued starts now, unless its last packet ends later: by a packet at most,
                // and a bucket, to which the virtual time is known. One that has starts where its last packet ends.
                let start = if queued || ahead > 0 { end } else { self.virtual_time };
                // Where ranks were moved, virtual time may be anywhere. A class far from it may be forgiven then.
                let most = (world.virtual_cost(class) << 20) + (1 << policy.rank_shift);
                self.determined &= if queued { ahead >= 0 } else { ahead <= most as i64 };
                self.ends[class] = start.wrapping_add(len * world.virtual_cost(class));
                if (self.ends[class].wrapping_sub(self.end) as i64) > 0 {
                    self.end = self.ends[class];
                }
                start
            }
            abi::SL_RANK_SLACK => {
                let sending = policy.link.map_or(0, |link| link.time_ns(packet.wire.into()));
                deadline.wrapping_sub(sending)
            }
            other => unreachable!("rank function {other}"),
        }
    }

    pub fn push(&mut self, world: &World, packet: &Packet) {
        let shift = world.policy.rank_shift;
        let most = (u64::from(abi::SL_PIFO_BUCKETS) - 1) << shift;
        let rank = self.rank(world, packet);
        let mut bucket = rank >> shift << shift;
        if self.ranked.is_empty() {
            self.origin = bucket.wrapping_sub(1 << 63);
            self.fits = true;
        }
        if let (Some(first), Some(last)) = (self.ranked.first_key_value(), self.ranked.last_key_value()) {
            let seen = bucket.wrapping_sub(self.origin);
            let kept = seen.min(first.0.0 + most).max(last.0.0 - most);
            self.fits &= kept == seen;
            bucket = kept.wrapping_add(self.origin);
        }
        self.count += 1;
        self.standing[packet.class] += 1;
        let ranked = Ranked { number: packet.number, class: packet.class, rank, bucket };
        self.ranked.insert((bucket.wrapping_sub(self.origin), self.count), ranked);
    }

    /// The packet that must leave next.
    pub fn first(&self) -> Option<Ranked> {
        self.ranked.values().next().copied()
    }

    pub fn find(&self, number: u64) -> Option<Ranked> {
        self.ranked.values().copied().find(|ranked| ranked.number == number)
    }

    pub fn ranked(&self) -> impl Iterator<Item = &Ranked> {
        self.ranked.values()
    }

    /// This one leaves. `empty`: its class has no packets left.
    pub fn take(&mut self, ranked: Ranked, empty: bool) {
        self.ranked.retain(|_, other| other.number != ranked.number);
        self.standing[ranked.class] -= 1;
        if (ranked.bucket.wrapping_sub(self.virtual_time) as i64) > 0 {
            self.virtual_time = ranked.bucket;
        }
        if empty {
            self.attained[ranked.class] = 0;
        }
    }

    pub fn stands(&self, class: usize) -> bool {
        self.standing[class] > 0
    }

    /// No packet is left, and no class has brought anything.
    pub fn clear(&mut self) {
        self.ranked.clear();
        self.standing = [0; CLASSES];
        self.attained = [0; CLASSES];
        self.ends = [0; CLASSES];
        self.end = 0;
        self.virtual_time = 0;
        (self.fits, self.determined) = (true, true);
    }
}
