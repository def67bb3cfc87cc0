//! An instance: a processor that polls its receive ring, runs a scheduler of pipes, and posts packets to the card.
//!
//! A turn has three steps, and the time that each takes passes before the next: packets are taken out of the receive ring; they come to the scheduler,
//! and others leave it; these are posted to the card.

use super::{Fate, Frame, Outcome, Setting, Way, arrivals::Arrivals};
use crate::card::Card;
use sluice_core::{
    backpressure::{Backpressure, Lists},
    pipes::{ALL_CLASSES, Packet, Pipe, Pipes, Port, Profile, Subport},
};
use std::collections::VecDeque;

/// Packets that a step handles at most.
const BATCH: usize = 64;
/// Packets that a scheduler holds at most.
const SLOTS: u32 = 200_000;
const NO_PACKET: Packet = Packet { queue: 0, slot: 0, len_bytes: 0 };

/// The step that comes next.
enum Step {
    Receive,
    Schedule,
    Post,
}

pub(super) struct Instance {
    arrivals: Arrivals,
    /// The receive ring.
    ring: VecDeque<Frame>,
    /// Packets that were taken out of it.
    received: Vec<Frame>,
    pipes: Pipes,
    /// Packets that came to the scheduler, by their slots.
    slots: Vec<Frame>,
    lists: Option<Backpressure>,
    /// Packets that have left the scheduler, if there are no lists.
    left: Vec<Frame>,
    step: Step,
}

impl Instance {
    pub(super) fn new(setting: &Setting, arrivals: Arrivals, now_ns: u64) -> Instance {
        let mut pipes = Pipes::default();
        let overhead_bytes = setting.card.overhead_bytes as i32;
        pipes.set_up(&Port { slots: SLOTS, overhead_bytes, mpu_bytes: 0, rate: None }, now_ns);
        let count = arrivals.pipes.1;
        let mut profile = Profile::of(setting.queue_pkts);
        profile.limit_pkts[setting.classes as usize - 1] = setting.last_queue_pkts;
        let configured = pipes
            .set_subport(0, &Subport::of(0, count.next_multiple_of(64)), now_ns)
            .and_then(|()| pipes.set_profile(1, &profile))
            .and_then(|()| {
                let pipe = Pipe { profile: 1, bits_per_second: None, burst_ns: 0 };
                (0..count).try_for_each(|number| pipes.configure(number, &pipe, now_ns))
            });
        assert_eq!(configured, Ok(()), "an empty scheduler takes up to 32,768 pipes");
        let lists = match setting.way {
            Way::Alone => None,
            Way::Backpressure { pending_pkts, burst_pkts } => {
                Some(Backpressure::new(&Lists { room_pkts: [pending_pkts; 13], burst_pkts }))
            }
        };
        let (ring, received, left) = (VecDeque::new(), Vec::new(), Vec::new());
        let slots = vec![Frame::default(); SLOTS as usize];
        Instance { arrivals, ring, received, pipes, slots, lists, left, step: Step::Receive }
    }

    /// Its next step. When the one after that is due.
    pub(super) fn step(&mut self, setting: &Setting, card: &mut Card<Frame>, now_ns: u64, seen: &mut Outcome) -> u64 {
        match self.step {
            Step::Receive => self.receive(setting, now_ns, seen),
            Step::Schedule => {
                self.step = Step::Post;
                now_ns + setting.send_ns * self.schedule(card, now_ns, seen)
            }
            Step::Post => {
                self.post(card, now_ns, seen);
                self.receive(setting, now_ns, seen)
            }
        }
    }

    fn receive(&mut self, setting: &Setting, now_ns: u64, seen: &mut Outcome) -> u64 {
        while let Some(mut frame) = self.arrivals.next(now_ns) {
            seen.came(&mut frame);
            if self.ring.len() < setting.receive_pkts {
                self.ring.push_back(frame);
            } else {
                seen.lost(&frame, Fate::LostOnArrival);
            }
        }
        let count = self.ring.len().min(BATCH);
        self.received.extend(self.ring.drain(..count));
        self.step = Step::Schedule;
        now_ns + setting.turn_ns + setting.receive_ns * count as u64
    }

    /// Packets come to the scheduler, and others leave it. How many left.
    fn schedule(&mut self, card: &mut Card<Frame>, now_ns: u64, seen: &mut Outcome) -> u64 {
        let mut packets = [NO_PACKET; BATCH];
        for (packet, frame) in packets.iter_mut().zip(&self.received) {
            *packet = Packet { queue: frame.queue, slot: 0, len_bytes: frame.bytes };
        }
        let count = self.received.len();
        let refused = if count > 0 { self.pipes.enqueue(&mut packets[..count], now_ns) } else { 0 };
        for (n, frame) in self.received.drain(..).enumerate() {
            if refused >> n & 1 == 1 {
                seen.lost(&frame, Fate::LostInScheduler);
            } else {
                self.slots[packets[n].slot as usize] = frame;
            }
        }
        if self.lists.is_some() {
            self.offer(card, now_ns);
        }
        if let Some(lists) = &mut self.lists {
            return u64::from(lists.dequeue(&mut self.pipes, BATCH as u32, ALL_CLASSES, now_ns));
        }
        let got = self.pipes.dequeue(&mut packets, ALL_CLASSES, None, now_ns);
        self.left.extend(packets[..got].iter().map(|packet| self.slots[packet.slot as usize]));
        got as u64
    }

    fn post(&mut self, card: &mut Card<Frame>, now_ns: u64, seen: &mut Outcome) {
        if self.lists.is_some() {
            return self.offer(card, now_ns);
        }
        let taken = card.post(now_ns, 0, self.left.iter().map(|frame| (frame.bytes, *frame)));
        self.left.drain(..).skip(taken).for_each(|frame| seen.lost(&frame, Fate::LostAtCard));
    }

    /// The card is offered what the lists hold.
    fn offer(&mut self, card: &mut Card<Frame>, now_ns: u64) {
        let Some(lists) = &mut self.lists else { return };
        let mut held = lists.held();
        while held != 0 {
            let class = held.trailing_zeros();
            held &= held - 1;
            let slots = &self.slots;
            let [first, rest] = lists.offered(class);
            let packets = first.iter().chain(rest).map(|packet| &slots[packet.slot as usize]);
            let taken = card.post(now_ns, class as usize, packets.map(|frame| (frame.bytes, *frame)));
            lists.taken(&mut self.pipes, class, taken as u32);
        }
    }
}
