//! The surroundings of a scheduler: arrivals, a device that asks for packets, and a model of the classes that have packets,
//! and of those that have tokens. The model checks no law; it tells an observer what happens.

use crate::cases::{Arrival, Case, Change, Flow, Greedy, Policy, Rate};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::{Core, Scheduler, Underway, Verdict};
use std::collections::VecDeque;

pub const CLASSES: usize = abi::SL_CLASSES as usize;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
    /// In the order of arrival.
    pub number: u64,
    pub class: usize,
    pub slot: u32,
    pub len: u32,
    pub wire: u32,
    pub arrived_ns: u64,
    pub flow: Flow,
    /// The packet left with the mark of congestion.
    pub marked: bool,
}

/// A token bucket by the generic cell rate algorithm (ITU-T I.371), in integers: it is full again at `full_ns`, and
/// 2^-20 ns are carried over from charge to charge.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tokens {
    rate: Option<Rate>,
    full_ns: u64,
    rest: u64,
}

impl Tokens {
    fn configure(&mut self, rate: Option<Rate>, now_ns: u64) {
        if let Some(old) = self.rate {
            let owed_ns = self.full_ns.saturating_sub(now_ns).min(16_000_000_000_000);
            let cost = rate.map_or(0, |rate| rate.cost);
            if owed_ns > 0 && cost != old.cost {
                // Debts are kept in bytes.
                let bytes = ((owed_ns << 20) / old.cost).min(1 << 24);
                self.full_ns = now_ns + ((bytes * cost) >> 20);
            }
        }
        self.rate = rate;
    }

    pub fn limits(&self) -> bool {
        self.rate.is_some()
    }

    /// When there is a token at the earliest.
    pub fn opens_ns(&self) -> u64 {
        self.rate.map_or(0, |rate| self.full_ns.saturating_sub(rate.burst_ns))
    }

    pub fn open(&self, now_ns: u64) -> bool {
        self.opens_ns() <= now_ns
    }

    /// Whether nothing is owed.
    pub fn full(&self, now_ns: u64) -> bool {
        self.full_ns <= now_ns
    }

    fn charge(&mut self, bytes: u32, now_ns: u64) {
        let Some(rate) = self.rate else { return };
        let sum = u64::from(bytes) * rate.cost + self.rest;
        self.full_ns = self.full_ns.max(now_ns) + (sum >> 20);
        self.rest = sum & ((1 << 20) - 1);
    }
}

/// The classes of a set.
pub fn members(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let class = set.trailing_zeros() as usize;
        set &= set.checked_sub(1)?;
        Some(class)
    })
}

/// A set of classes.
pub fn set(classes: impl Iterator<Item = usize>) -> u64 {
    classes.fold(0, |set, class| set | 1 << class)
}

/// The bytes of a packet on the link below: each of its frames has the overhead and the least length, and goes in cells (as
/// tc-cake(8) counts them).
fn wire_bytes(policy: &Policy, len: u32, segments: u32) -> u32 {
    let frame = |len: u32| {
        let frame = len.saturating_add_signed(policy.overhead_bytes).max(policy.mpu_bytes);
        match policy.cells {
            abi::SL_CELLS_ATM => frame.div_ceil(48) * 53,
            abi::SL_CELLS_PTM => frame + frame.div_ceil(64),
            _ => frame,
        }
    };
    let framed = policy.overhead_bytes != 0 || policy.mpu_bytes != 0 || policy.cells != abi::SL_CELLS_NONE;
    if framed { segments * frame(len / segments) } else { len }
}

pub struct World<'a> {
    pub now: u64,
    pub core: Scheduler,
    pub policy: &'a Policy,
    /// Packets that the core has accepted and not sent, in the order of arrival, by class.
    pub queues: Vec<VecDeque<Packet>>,
    pub link: Tokens,
    pub ceil: Vec<Tokens>,
    pub peak: Vec<Tokens>,
    pub rate: Vec<Tokens>,
    /// Classes that have packets, and tokens of their ceiling.
    pub ready: u64,
    /// Classes that have packets, and no tokens yet.
    held: u64,
    /// How often each class became ready. A class has been ready all the time while this stays.
    pub stints: Vec<u64>,
    /// Whether a hook before the queue would have dropped the packet that came last, with nothing under way.
    pub dropped_early: bool,
    arrivals: u64,
    device_free_ns: u64,
    greedy: &'a [Greedy],
    /// How many packets each of them has got.
    supplied: Vec<usize>,
    steps: u32,
}

/// An event that the model has taken note of already.
#[derive(Debug)]
pub enum Event {
    /// A packet of this class comes.
    Arriving(usize),
    /// The packet came, and is queued, or refused for this reason. Its slot counts only if it is queued.
    Arrived(Packet, Result<(), u32>),
    /// The core is about to be asked for a packet. Classes that have tokens again are ready.
    Asking,
    Sent(Packet),
    /// The packet was queued, and is gone for this reason. It is told before its cause: a packet that comes or is sent.
    Dropped(Packet, u32),
    Waits(u64),
    Idle,
    /// Another policy is in force.
    Configured,
    /// These packets are gone.
    Cleared(Vec<VecDeque<Packet>>),
}

/// The observer of events, which may object.
type Observer<'o> = &'o mut dyn FnMut(&World, &Event) -> TestCaseResult;

/// More steps than any case takes; a case that needs more runs in circles.
const MOST_STEPS: u32 = 400_000;

impl<'a> World<'a> {
    fn new(core: &'static Core, case: &'a Case) -> Result<World<'a>, TestCaseError> {
        let mut world = World {
            now: case.start_ns,
            core: Scheduler::of(core, &case.policy.conf(), case.start_ns),
            policy: &case.policy,
            queues: vec![VecDeque::new(); CLASSES],
            link: Tokens::default(),
            ceil: vec![Tokens::default(); CLASSES],
            peak: vec![Tokens::default(); CLASSES],
            rate: vec![Tokens::default(); CLASSES],
            ready: 0,
            held: 0,
            stints: vec![0; CLASSES],
            dropped_early: false,
            arrivals: 0,
            device_free_ns: 0,
            greedy: &case.greedy,
            supplied: vec![0; case.greedy.len()],
            steps: 0,
        };
        world.configure(&case.policy);
        if let Some(bytes) = case.wraps_after {
            world.wear(bytes, case.absent)?;
        }
        Ok(world)
    }

    /// Class 0, of weight 1, sends until virtual time is so many bytes short of wrapping round. Then the others send a
    /// packet each, unless they are `absent`.
    fn wear(&mut self, short: u32, absent: bool) -> TestCaseResult {
        let observer: Observer = &mut |_, _| Ok(());
        // The last are short, so that no class stands far ahead.
        let mut left = u32::MAX - short;
        while left > 0 {
            let len = if left > 80 { (left - 80).min(1_000_000) } else { left.min(40) };
            self.arrive(&Arrival::of(0, 0, len), observer)?;
            self.drain(observer)?;
            left -= len;
        }
        if !absent {
            let classes = 1..self.policy.classes.len() as u32;
            classes.map(|class| Arrival::of(0, class, 40)).try_for_each(|packet| self.arrive(&packet, observer))?;
            self.drain(observer)?;
        }
        Ok(())
    }

    fn configure(&mut self, policy: &'a Policy) {
        self.policy = policy;
        self.link.configure(policy.link, self.now);
        (self.ready, self.held) = (0, 0);
        for class in 0..CLASSES {
            let new = policy.classes.get(class);
            self.ceil[class].configure(new.and_then(|class| class.ceil), self.now);
            self.peak[class].configure(new.and_then(|class| class.peak), self.now);
            self.rate[class].configure(new.and_then(|class| class.rate), self.now);
            if !self.queues[class].is_empty() {
                self.offer(class);
            }
        }
    }

    pub fn policed(&self, class: usize) -> bool {
        self.policy.classes.get(class).is_some_and(|class| class.policed)
    }

    pub fn is_ready(&self, class: usize) -> bool {
        self.ready >> class & 1 == 1
    }

    pub fn ready(&self) -> impl Iterator<Item = usize> {
        members(self.ready)
    }

    /// Whether the class would be ready now if it had packets.
    pub fn has_tokens(&self, class: usize) -> bool {
        self.policed(class) || self.opens_ns(class) <= self.now
    }

    /// When the ceiling of the class has tokens, and its peak.
    pub fn opens_ns(&self, class: usize) -> u64 {
        self.ceil[class].opens_ns().max(self.peak[class].opens_ns())
    }

    /// The class sends, or is let in with, so many bytes.
    fn charge(&mut self, class: usize, wire: u32) {
        self.ceil[class].charge(wire, self.now);
        self.peak[class].charge(wire, self.now);
    }

    /// The virtual time that a byte adds to this class: 2^32 / weight, as the core rounds it.
    pub fn virtual_cost(&self, class: usize) -> u64 {
        (1 << 32) / u64::from(self.policy.classes.get(class).map_or(1, |class| class.weight).max(1))
    }

    /// The class, which has packets and is not ready, is ready if it has tokens.
    fn offer(&mut self, class: usize) {
        if self.has_tokens(class) {
            self.ready |= 1 << class;
            self.held &= !(1 << class);
            self.stints[class] += 1;
        } else {
            self.held |= 1 << class;
        }
    }

    /// The core is asked for packets that it has dropped.
    fn reap(&mut self, reason: u32, observer: Observer) -> TestCaseResult {
        while let Some(slot) = self.core.reap() {
            let mut queues = self.queues.iter_mut();
            let found = queues.find_map(|queue| Some((queue.iter().position(|packet| packet.slot == slot)?, queue)));
            let Some(packet) = found.and_then(|(at, queue)| queue.remove(at)) else {
                return Err(TestCaseError::fail(format!("slot {slot} is dropped, and holds no packet")));
            };
            prop_assert!(!self.queues[packet.class].is_empty(), "its last packet is dropped: {:?}", packet);
            observer(self, &Event::Dropped(packet, reason))?;
        }
        Ok(())
    }

    /// One packet, whatever its copies.
    fn arrive(&mut self, arrival: &Arrival, observer: Observer) -> TestCaseResult {
        let Arrival { len, segments, flow, .. } = *arrival;
        let class = arrival.class as usize;
        observer(self, &Event::Arriving(class))?;
        self.arrivals += 1;
        let wire = wire_bytes(self.policy, len, segments);
        let packet = sluice_core::Packet {
            class: arrival.class,
            len_bytes: len,
            segments,
            flow_hash: flow.hash,
            src_host: flow.src,
            dst_host: flow.dst,
            ecn: flow.ecn.into(),
        };
        self.dropped_early = self.core.drops_early(&mut Underway::default(), &packet, self.now);
        let answer = self.core.enqueue_packet(&packet, self.now);
        self.reap(abi::SL_DROP_OVERFLOW, observer)?;
        let slot = answer.unwrap_or(u32::MAX);
        let packet =
            Packet { number: self.arrivals, class, slot, len, wire, arrived_ns: self.now, flow, marked: false };
        if self.policed(class) && answer.is_ok() {
            self.charge(class, wire);
        }
        if answer.is_ok() {
            self.queues[class].push_back(packet);
            // A class that waits for tokens is looked at when the core is asked for a packet.
            if self.queues[class].len() == 1 {
                self.offer(class);
            }
        }
        observer(self, &Event::Arrived(packet, answer.map(|_| ())))
    }

    fn top_up(&mut self, observer: Observer) -> TestCaseResult {
        for (turn, Greedy { class, lengths }) in self.greedy.iter().enumerate() {
            for _ in self.queues[*class as usize].len()..2 {
                let len = lengths[self.supplied[turn] % lengths.len()];
                self.supplied[turn] += 1;
                self.arrive(&Arrival::of(0, *class, len), observer)?;
            }
        }
        Ok(())
    }

    fn ask(&mut self, observer: Observer) -> Result<Answer, TestCaseError> {
        self.steps += 1;
        prop_assert!(self.steps < MOST_STEPS, "the case does not come to an end");
        if self.link.open(self.now) {
            members(self.held).for_each(|class| self.offer(class));
        }
        observer(self, &Event::Asking)?;
        let verdict = self.core.dequeue(self.now);
        self.reap(abi::SL_DROP_AQM, observer)?;
        match verdict {
            Verdict::Send { slot, class, len_bytes, mark } => {
                let queue = self.queues.get_mut(class as usize);
                let found = queue.and_then(|queue| Some((queue.iter().position(|packet| packet.slot == slot)?, queue)));
                let Some(mut packet) = found.and_then(|(at, queue)| queue.remove(at)) else {
                    return Err(TestCaseError::fail(format!("slot {slot} holds no packet of class {class}")));
                };
                prop_assert!(packet.flow.ecn || !mark, "it cannot be marked: {:?}", packet);
                packet.marked = mark;
                prop_assert_eq!(packet.len, len_bytes, "of {:?}", packet);
                let class = packet.class;
                self.link.charge(packet.wire, self.now);
                // Bytes beyond the guarantee are borrowed, and a PIFO knows no guarantees.
                if self.policy.kind != abi::SL_PIFO && self.rate[class].open(self.now) {
                    self.rate[class].charge(packet.wire, self.now);
                }
                if !self.policed(class) {
                    self.charge(class, packet.wire);
                }
                if self.queues[class].is_empty() || !self.has_tokens(class) {
                    self.ready &= !(1 << class);
                    self.held |= u64::from(!self.queues[class].is_empty()) << class;
                }
                observer(self, &Event::Sent(packet))?;
                Ok(Answer::Sent(packet.wire))
            }
            Verdict::Wait(until) => {
                observer(self, &Event::Waits(until))?;
                prop_assert!(until > self.now, "at {} it waits until {until}", self.now);
                Ok(Answer::Waits(until))
            }
            Verdict::Idle => {
                observer(self, &Event::Idle)?;
                Ok(Answer::Idle)
            }
        }
    }

    /// The device takes packets until this time.
    fn serve(&mut self, case: &Case, end: u64, late_ns: u64, observer: Observer) -> TestCaseResult {
        loop {
            self.top_up(observer)?;
            let next = if self.now < self.device_free_ns {
                self.device_free_ns
            } else {
                match self.ask(observer)? {
                    Answer::Sent(wire) => {
                        self.device_free_ns = self.now + case.device.map_or(0, |rate| rate.time_ns(wire.into()));
                        continue;
                    }
                    Answer::Waits(until) => until.saturating_add(late_ns),
                    Answer::Idle => end,
                }
            };
            self.now = next.min(end);
            if self.now == end {
                return Ok(());
            }
        }
    }

    /// The device takes all that is left.
    fn drain(&mut self, observer: Observer) -> TestCaseResult {
        loop {
            match self.ask(observer)? {
                Answer::Sent(_) => {}
                Answer::Waits(until) => self.now = until,
                Answer::Idle => return Ok(()),
            }
        }
    }
}

enum Answer {
    Sent(u32),
    Waits(u64),
    Idle,
}

/// Runs a case, and tells the observer of all that happens, until it objects.
pub fn run(
    core: &'static Core,
    case: &Case,
    mut observer: impl FnMut(&World, &Event) -> TestCaseResult,
) -> TestCaseResult {
    let observer: Observer = &mut observer;
    let mut world = World::new(core, case)?;
    for phase in &case.phases {
        match &phase.before {
            Change::No => {}
            Change::Configure(policy) => {
                world.core.configure(&policy.conf(), world.now);
                world.configure(policy);
                observer(&world, &Event::Configured)?;
            }
            Change::Clear => {
                world.core.clear();
                (world.ready, world.held) = (0, 0);
                let dropped = world.queues.iter_mut().map(std::mem::take).collect();
                observer(&world, &Event::Cleared(dropped))?;
            }
        }
        let pace = case.pace(world.policy);
        for arrival in &phase.arrivals {
            let bytes = u64::from(arrival.len) * u64::from(arrival.copies);
            let idle = bytes * u64::from(arrival.gap) / 1000;
            // Greedy classes use all of it.
            let gap = pace.time_ns(if case.greedy.is_empty() { idle } else { idle.min(100_000) });
            world.serve(case, world.now + gap, phase.late_ns, observer)?;
            for _ in 0..arrival.copies {
                world.arrive(arrival, observer)?;
            }
        }
        world.serve(case, world.now + pace.time_ns(1_500 * u64::from(phase.pause)), phase.late_ns, observer)?;
    }
    world.drain(observer)
}
