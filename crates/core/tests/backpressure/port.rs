//! A port with a finite queue for each class, and a shaper of its own.

use crate::traces::CLASSES;
use proptest::{array::uniform13, prelude::*, test_runner::TestCaseResult};
use std::collections::VecDeque;

/// A packet at the port: its queue in the scheduler, and its number in order of arrival there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    pub queue: u32,
    pub class: u32,
    pub number: u64,
    pub bytes: u32,
    pub arrived_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shaper {
    /// Each class has a rate of its own: ns for a packet.
    Classes([u64; CLASSES]),
    /// The first class that has packets sends: ns for a packet of any class.
    Strict(u64),
}

impl Shaper {
    /// Checks that packets of the classes up to one, which were sent `beside` others at these times, were sent no later than `alone`, but for the packet that
    /// a port with one rate is sending.
    pub fn delays_no_more_than_a_packet(
        self,
        last: u32,
        beside: &[(u64, Frame)],
        alone: &[(u64, Frame)],
    ) -> TestCaseResult {
        let times = |sent: &[(u64, Frame)]| -> Vec<u64> {
            sent.iter().filter(|(_, frame)| frame.class <= last).map(|(at, _)| *at).collect()
        };
        let (beside, alone) = (times(beside), times(alone));
        prop_assert_eq!(beside.len(), alone.len());
        let packet_ns = if let Shaper::Strict(cost_ns) = self { cost_ns } else { 0 };
        for (index, (beside, alone)) in beside.iter().zip(&alone).enumerate() {
            prop_assert!(*beside <= alone + packet_ns, "packet {} waits from {} to {}", index, alone, beside);
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// The packets that the queue of each class holds.
    pub room_pkts: [u32; CLASSES],
    pub shaper: Shaper,
}

pub struct Port {
    shape: Shape,
    queues: Vec<VecDeque<Frame>>,
    /// The packet that is being sent, of each class or of the first place, and when it has been sent.
    sending: Vec<Option<(u64, Frame)>>,
    now_ns: u64,
}

impl Port {
    pub fn new(shape: Shape, now_ns: u64) -> Port {
        Port { shape, queues: vec![VecDeque::new(); CLASSES], sending: vec![None; CLASSES], now_ns }
    }

    /// The number of packets of a class that it takes now.
    pub fn room(&self, class: u32) -> usize {
        let held = self.queues[class as usize].len();
        (self.shape.room_pkts[class as usize] as usize).saturating_sub(held)
    }

    pub fn take(&mut self, frame: Frame) {
        assert!(self.room(frame.class) > 0, "the caller has asked");
        self.queues[frame.class as usize].push_back(frame);
        self.begin();
    }

    /// When the next packet will have been sent.
    pub fn next_ns(&self) -> Option<u64> {
        self.sending.iter().flatten().map(|(at, _)| *at).min()
    }

    /// The next packet that has been sent by this time, and when.
    pub fn sent(&mut self, until_ns: u64) -> Option<(u64, Frame)> {
        let first = (0..CLASSES).filter(|place| self.sending[*place].is_some_and(|(at, _)| at <= until_ns));
        let Some(place) = first.min_by_key(|place| self.sending[*place].map(|(at, _)| at)) else {
            self.now_ns = until_ns;
            return None;
        };
        let sent = self.sending[place].take();
        self.now_ns = sent.map_or(until_ns, |(at, _)| at);
        self.begin();
        sent
    }

    /// The port begins to send what it may.
    fn begin(&mut self) {
        match self.shape.shaper {
            Shaper::Classes(cost_ns) => {
                for (place, cost_ns) in cost_ns.into_iter().enumerate() {
                    if self.sending[place].is_none() {
                        self.sending[place] =
                            self.queues[place].pop_front().map(|frame| (self.now_ns + cost_ns, frame));
                    }
                }
            }
            Shaper::Strict(cost_ns) => {
                if self.sending[0].is_none() {
                    let frame = self.queues.iter_mut().find_map(VecDeque::pop_front);
                    self.sending[0] = frame.map(|frame| (self.now_ns + cost_ns, frame));
                }
            }
        }
    }
}

pub fn shapes() -> BoxedStrategy<Shape> {
    let cost_ns = || prop_oneof![1 => 1..100u64, 3 => 100..20_000u64];
    let shaper = prop_oneof![uniform13(cost_ns()).prop_map(Shaper::Classes), cost_ns().prop_map(Shaper::Strict)];
    (uniform13(1..12u32), shaper).prop_map(|(room_pkts, shaper)| Shape { room_pkts, shaper }).boxed()
}
