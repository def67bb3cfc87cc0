//! One way between two ports: what arrives at one, its classes and their queue, and what the other one takes.

use crate::dpdk::{Packet, Port};
use sluice_abi as abi;
use sluice_classifier::Classifier;
use sluice_core::level_backpressure::{LISTS, LevelBackpressure, Lists, Next, PLACES};
use sluice_core::{Packet as Described, Scheduler, police};
use std::collections::VecDeque;

/// Packets of a turn.
const BATCH: usize = 64;
/// Packets that a list holds: what the port has refused, and as many as it may be offered at once.
const ROOM_PKTS: u32 = PLACES;
/// Packets that come to a list in a turn.
const BURST_PKTS: u32 = BATCH as u32;
const CLASSES: usize = abi::SL_CLASSES as usize;
/// Packets that are never queued, and that wait for the port.
const AHEAD_PKTS: usize = BATCH;

/// Packets and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub pkts: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Count {
    fn add(&mut self, bytes: u32) {
        self.pkts += 1;
        self.bytes += u64::from(bytes);
    }
}

/// The counts of a class that the scheduler does not keep.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClassCounts {
    /// Packets that have come.
    pub came: Count,
    /// Packets that the port has taken.
    pub taken: Count,
    /// Malformed ones that the policy has dropped.
    pub malformed_pkts: u64,
    /// Packets that are in the list of the class's level, or wait ahead of all lists.
    pub listed_pkts: u64,
    /// Packets that are never queued, and of which more came than the bucket of the built-in rules lets through.
    pub control_limited_pkts: u64,
}

/// The result of a turn.
#[derive(Debug, Clone, Copy, Default)]
pub struct Turn {
    /// Packets have come or gone.
    pub moved: bool,
    /// When the next one may leave, ns; none: when one comes, or the port takes some.
    pub wake_ns: Option<u64>,
}

/// A packet in a list.
#[derive(Clone, Copy, Default)]
struct Listed {
    class: u8,
    bytes: u32,
}

/// A packet ahead of all lists.
struct Ahead {
    packet: Option<Packet>,
    listed: Listed,
}

/// One way.
pub struct Way {
    classifier: Classifier,
    scheduler: Scheduler,
    backpressure: LevelBackpressure,
    /// The packet of each slot of the scheduler.
    held: Vec<Option<Packet>>,
    /// The packet of each place of each list.
    offered: Vec<Option<Packet>>,
    listed: Vec<Listed>,
    arrived: Vec<Option<Packet>>,
    classes: Vec<ClassCounts>,
    /// Packets that are never queued, and that the port has not taken yet.
    ahead: VecDeque<Ahead>,
    /// The bucket of the built-in rules.
    control: police::Bucket,
    /// Packets that were never queued, and that the port has taken.
    ahead_taken_pkts: u64,
}

/// The lists that a policy needs: one for each level of strict priority, else one.
pub fn lists_of(conf: &abi::sl_sched_conf, classes: u64) -> u32 {
    let levels = (0..CLASSES).filter(|class| classes >> class & 1 == 1).map(|class| conf.classes[class].level + 1);
    match conf.kind {
        abi::SL_STRICT_PRIORITY => levels.max().unwrap_or(1).clamp(1, LISTS),
        _ => 1,
    }
}

/// Whether the bucket of the built-in rules has room for a packet, which is charged to it then.
fn lets_through(control: &police::Bucket, bytes: u32, now_ns: u64) -> bool {
    let cost = police::cost(abi::SL_CONTROL_COST, bytes);
    control.take(police::time(now_ns), cost, abi::SL_CONTROL_BURST).is_some()
}

impl Way {
    /// A way whose scheduler is the classifier's, for departures, and that has so many lists.
    pub fn new(classifier: Classifier, lists: u32, now_ns: u64) -> Way {
        let scheduler = Scheduler::new(&classifier.compiled().sched[abi::SL_EGRESS as usize], now_ns);
        let sizes = Lists { lists, room_pkts: ROOM_PKTS, burst_pkts: BURST_PKTS };
        Way {
            backpressure: LevelBackpressure::new(&sizes, &scheduler),
            scheduler,
            classifier,
            held: (0..abi::SL_SLOTS).map(|_| None).collect(),
            offered: (0..LISTS * PLACES).map(|_| None).collect(),
            listed: vec![Listed::default(); (LISTS * PLACES) as usize],
            arrived: (0..BATCH).map(|_| None).collect(),
            classes: vec![ClassCounts::default(); CLASSES],
            ahead: VecDeque::with_capacity(AHEAD_PKTS),
            control: police::Bucket::default(),
            ahead_taken_pkts: 0,
        }
    }

    /// Packets come, and the port takes some.
    pub fn turn(&mut self, from: &mut Port, to: &mut Port, now_ns: u64) -> Turn {
        let came = self.take_in(from, now_ns);
        let before = self.offer(to);
        let (listed, wake_ns) = self.dequeue(now_ns);
        let after = self.offer(to);
        Turn { moved: came + before + listed + after > 0, wake_ns }
    }

    /// Queues what has arrived. How many packets.
    fn take_in(&mut self, from: &mut Port, now_ns: u64) -> usize {
        let count = from.receive(&mut self.arrived);
        for place in 0..count {
            let Some(mut packet) = self.arrived[place].take() else { continue };
            let bytes = packet.length();
            let found = self.classifier.classify(packet.bytes(), 0);
            let counts = &mut self.classes[found.class as usize % CLASSES];
            counts.came.add(bytes);
            if found.is_to_be_dropped() {
                counts.malformed_pkts += 1;
                continue;
            }
            if found.is_never_queued() {
                if self.ahead.len() < AHEAD_PKTS && lets_through(&self.control, bytes, now_ns) {
                    let listed = Listed { class: found.class as u8, bytes };
                    self.ahead.push_back(Ahead { packet: Some(packet), listed });
                    counts.listed_pkts += 1;
                    continue;
                }
                if found.is_control() {
                    counts.control_limited_pkts += 1;
                    continue;
                }
            }
            let described = Described {
                class: found.class,
                len_bytes: bytes,
                segments: 1,
                flow_hash: found.flow_hash,
                src_host: found.src_host,
                dst_host: found.dst_host,
                ecn: found.can_be_marked().into(),
            };
            // The scheduler counts a packet that it refuses.
            if let Ok(slot) = self.scheduler.enqueue_packet(&described, now_ns) {
                self.held[slot as usize] = Some(packet);
            }
            self.drop_listed();
        }
        count
    }

    /// The packets that the scheduler has dropped from within.
    fn drop_listed(&mut self) {
        while let Some(slot) = self.scheduler.reap() {
            self.held[slot as usize] = None;
        }
    }

    /// Packets leave the scheduler for the lists. How many, and when others may leave, ns.
    fn dequeue(&mut self, now_ns: u64) -> (usize, Option<u64>) {
        self.backpressure.begin();
        let mut wake_ns = Some(now_ns);
        let mut count = 0;
        while count < BATCH {
            match self.backpressure.dequeue(&mut self.scheduler, now_ns) {
                Next::Listed { slot, class, len_bytes, mark, list, place } => {
                    let mut packet = self.held[slot as usize].take();
                    if let Some(packet) = packet.as_mut().filter(|_| mark) {
                        sluice_ecn::mark(packet.bytes());
                    }
                    let at = (list * PLACES + place) as usize;
                    self.listed[at] = Listed { class: class as u8, bytes: len_bytes };
                    self.offered[at] = packet;
                    self.classes[class as usize].listed_pkts += 1;
                    count += 1;
                }
                Next::Wait(until_ns) => {
                    wake_ns = until_ns;
                    break;
                }
                Next::Idle => {
                    wake_ns = None;
                    break;
                }
            }
        }
        self.drop_listed();
        (count, wake_ns)
    }

    /// Offers the port what the lists hold, the most urgent level first. How many packets it has taken.
    fn offer(&mut self, to: &mut Port) -> usize {
        let mut all = self.offer_ahead(to);
        // With a queue for each level, a full queue does not stop the others.
        let own_queue = u32::from(to.tx_queues) >= self.list_count();
        if !own_queue && !self.ahead.is_empty() {
            return all;
        }
        for list in 0..self.list_count() {
            let queue = if own_queue { list as u16 } else { 0 };
            let [first, rest] = self.backpressure.offered(list);
            let offered = (first.len() + rest.len()) as u32;
            if offered == 0 {
                continue;
            }
            let mut taken = 0;
            for part in [first, rest] {
                let places = (list * PLACES + part.start) as usize..(list * PLACES + part.end) as usize;
                let count = if places.is_empty() { 0 } else { to.send(queue, &mut self.offered[places.clone()]) };
                for listed in &self.listed[places.start..places.start + count] {
                    let counts = &mut self.classes[usize::from(listed.class)];
                    counts.taken.add(listed.bytes);
                    counts.listed_pkts -= 1;
                }
                taken += count as u32;
                if count < places.len() {
                    break;
                }
            }
            self.backpressure.taken(list, taken);
            all += taken as usize;
            if taken < offered && !own_queue {
                // The next free places of the shared queue are for this level.
                break;
            }
        }
        all
    }

    /// Offers the port the packets that are never queued, by its first queue, whatever waits in lists. How many it has taken.
    fn offer_ahead(&mut self, to: &mut Port) -> usize {
        let mut all = 0;
        while let Some(first) = self.ahead.front_mut() {
            if to.send(0, std::slice::from_mut(&mut first.packet)) == 0 {
                break;
            }
            let counts = &mut self.classes[usize::from(first.listed.class)];
            counts.taken.add(first.listed.bytes);
            counts.listed_pkts -= 1;
            self.ahead.pop_front();
            all += 1;
        }
        self.ahead_taken_pkts += all as u64;
        all
    }

    /// Packets that were never queued, and that the port has taken.
    pub fn ahead_taken_pkts(&self) -> u64 {
        self.ahead_taken_pkts
    }

    /// The counts of each class.
    pub fn classes(&self) -> &[ClassCounts] {
        &self.classes
    }

    /// The state of the scheduler, with what it has counted.
    pub fn scheduler(&self) -> &abi::sl_sched {
        self.scheduler.state()
    }

    /// The state of the lists.
    pub fn lists(&self) -> &abi::sl_port_lists {
        &self.backpressure.state().lists
    }

    /// The list of a class.
    pub fn list_of(&self, class: u32) -> u32 {
        let classes = &self.backpressure.state().classes;
        classes.iter().position(|own| own >> class & 1 == 1).unwrap_or_default() as u32
    }

    /// The lists in use.
    pub fn list_count(&self) -> u32 {
        self.backpressure.state().used
    }
}
