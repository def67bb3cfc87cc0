//! The scheduler beside a slow model of its queues, to which a trace is played. Order within a queue, slots and lengths are checked here, for
//! every law.

use crate::traces::{self, Case, PIPES, SECOND, Step};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::pipes::{
    ALL_CLASSES, Packet, Pipe, Pipes, PipesCore, Port, Profile, RawAllowance, Refusal, Subport, queue_number,
};
use std::collections::{BTreeMap, HashSet, VecDeque};

/// The granularity of the wheels, ns.
pub const TICK_NS: u64 = 1 << abi::SL_WHEEL_TICK_BITS;

#[derive(Debug)]
pub enum Event<'a> {
    /// A packet came to this queue, or was refused.
    Arrived { queue: u32, taken: bool, slots_left: bool },
    /// A packet left. The call's classes that may still send, and its allowance before this packet.
    Sent { queue: u32, bytes: u32, classes: u32, allowance: &'a [u32] },
    /// A call ended with less than was asked for, though the call was repeated as long as it had not finished; these classes might have sent.
    Ended { classes: u32 },
    /// A pipe was configured.
    Configured { pipe: u32 },
    /// The profile of a pipe has changed.
    Profiled { pipe: u32 },
    /// A packet of this queue was dropped with its pipe.
    Dropped { queue: u32 },
}

#[derive(Debug, Clone, Copy)]
pub struct Queued {
    pub slot: u32,
    pub bytes: u32,
}

pub struct World {
    pub pipes: Pipes,
    pub now_ns: u64,
    /// By number of queue.
    pub queues: BTreeMap<u32, VecDeque<Queued>>,
    /// Configurations of pipes, by their number.
    pub conf: BTreeMap<u32, Pipe>,
    pub profiles: Vec<Profile>,
    slots: u32,
    taken: HashSet<u32>,
}

/// The findings of a law on an event.
pub type Observer<'a> = dyn FnMut(&World, &Event<'_>) -> TestCaseResult + 'a;

/// The class of a queue, by the number of either.
pub fn class_of(queue: u32) -> u32 {
    (queue % abi::SL_PIPE_QUEUES).min(abi::SL_PIPE_BEST_EFFORT)
}

pub fn pipe_of(queue: u32) -> u32 {
    queue / abi::SL_PIPE_QUEUES
}

/// Whether a pipe is in the second subport.
pub fn is_second(pipe: u32) -> bool {
    pipe >= SECOND.0
}

impl World {
    pub fn new(core: &'static PipesCore, case: &Case) -> World {
        let now_ns = 1_000_000_000;
        let mut world = World {
            pipes: Pipes::of(core),
            now_ns,
            queues: BTreeMap::new(),
            conf: BTreeMap::new(),
            profiles: case.profiles.clone(),
            slots: case.slots,
            taken: HashSet::new(),
        };
        let port = Port { slots: case.slots, overhead_bytes: traces::OVERHEAD as i32, mpu_bytes: 0, rate: case.port };
        world.pipes.set_up(&port, now_ns);
        for (number, range) in [(3, (0, SECOND.0)), (0, (SECOND.0, SECOND.1 - SECOND.0))] {
            let first = number == 3;
            let subport = Subport {
                rate: case.subports[usize::from(!first)],
                classes: if first { case.subport_classes } else { Subport::of(0, 0).classes },
                class_burst_ns: 1_000_000,
                ..Subport::of(range.0, range.1)
            };
            world.pipes.set_subport(number, &subport, now_ns).expect("pipes of no other");
        }
        for (number, profile) in (1..).zip(&case.profiles) {
            world.pipes.set_profile(number, profile).expect("a number of a profile");
        }
        for (number, (rate, profile)) in PIPES.iter().zip(&case.pipes) {
            let pipe = traces::pipe(*rate, *profile);
            world.pipes.configure(*number, &pipe, now_ns).expect("it is in a subport");
            world.conf.insert(*number, pipe);
        }
        world
    }

    /// The profile of a pipe.
    pub fn profile(&self, pipe: u32) -> &Profile {
        &self.profiles[self.conf[&pipe].profile as usize - 1]
    }

    /// Queues that hold packets.
    pub fn busy(&self) -> impl Iterator<Item = u32> + '_ {
        self.queues.iter().filter(|(_, queue)| !queue.is_empty()).map(|(number, _)| *number)
    }

    pub fn arrive(&mut self, packets: &[(u32, u32)], observer: &mut Observer<'_>) -> TestCaseResult {
        let mut raw: Vec<Packet> =
            packets.iter().map(|(queue, bytes)| Packet { queue: *queue, slot: 0, len_bytes: *bytes }).collect();
        let refused = self.pipes.enqueue(&mut raw, self.now_ns);
        for (bit, packet) in raw.iter().enumerate() {
            let taken = refused >> bit & 1 == 0;
            prop_assert_eq!(taken, packet.slot != abi::SL_PIPE_NO_SLOT);
            let slots_left = self.taken.len() < self.slots as usize;
            observer(self, &Event::Arrived { queue: packet.queue, taken, slots_left })?;
            if taken {
                prop_assert!(self.taken.insert(packet.slot), "slot {} was given twice", packet.slot);
                let queued = Queued { slot: packet.slot, bytes: packet.len_bytes };
                self.queues.entry(packet.queue).or_default().push_back(queued);
            }
        }
        Ok(())
    }

    /// The first packet of this queue is gone, from this slot.
    fn leaves(&mut self, queue: u32, slot: u32) -> Result<Queued, TestCaseError> {
        let first = self.queues.get_mut(&queue).and_then(VecDeque::pop_front);
        let first = first.ok_or_else(|| TestCaseError::fail(format!("queue {queue} is empty")))?;
        prop_assert_eq!(first.slot, slot, "order in queue {}", queue);
        self.taken.remove(&slot);
        Ok(first)
    }

    /// Up to so many packets leave; the call is repeated while it has not finished. How many left.
    pub fn take(
        &mut self,
        count: usize,
        mut classes: u32,
        allowance: Option<&[u32]>,
        observer: &mut Observer<'_>,
    ) -> Result<usize, TestCaseError> {
        let mut raw_allowance = RawAllowance { pkts: [u32::MAX; abi::SL_PIPE_PLACES as usize] };
        if let Some(allowance) = allowance {
            raw_allowance.pkts[..allowance.len()].copy_from_slice(allowance);
        }
        let (mut left, mut calls) = (0, 0);
        while left < count {
            let mut out = vec![Packet { queue: 0, slot: 0, len_bytes: 0 }; count - left];
            let mut expected = raw_allowance.pkts;
            let given = allowance.is_some().then_some(&mut raw_allowance);
            let got = self.pipes.dequeue(&mut out, classes, given, self.now_ns);
            for packet in &out[..got] {
                let class = class_of(packet.queue);
                observer(
                    self,
                    &Event::Sent { queue: packet.queue, bytes: packet.len_bytes, classes, allowance: &expected },
                )?;
                let first = self.leaves(packet.queue, packet.slot)?;
                prop_assert_eq!(first.bytes, packet.len_bytes);
                if allowance.is_some() {
                    expected[class as usize] = expected[class as usize].wrapping_sub(1);
                    if expected[class as usize] == 0 {
                        classes &= !(1 << class);
                    }
                }
            }
            prop_assert_eq!(expected, raw_allowance.pkts, "the allowance is counted down");
            prop_assert!(self.pipes.reap().is_none(), "no queue has CoDel");
            left += got;
            calls += 1;
            prop_assert!(calls < 200, "calls never finish");
            // Classes without an allowance do not wait for a time.
            let held = (0..abi::SL_PIPE_CLASSES).filter(|class| raw_allowance.pkts[*class as usize] == 0);
            let classes = held.fold(classes, |classes, class| classes & !(1 << class));
            if left < count && self.pipes.wake_ns(classes, self.now_ns) != Some(self.now_ns) {
                observer(self, &Event::Ended { classes })?;
                break;
            }
        }
        Ok(left)
    }

    pub fn configure(&mut self, number: u32, pipe: Pipe, observer: &mut Observer<'_>) -> TestCaseResult {
        prop_assert_eq!(self.pipes.configure(number, &pipe, self.now_ns), Ok(()));
        self.conf.insert(number, pipe);
        observer(self, &Event::Configured { pipe: number })
    }

    /// A pipe is emptied, removed, and added again.
    fn renew(&mut self, number: u32, observer: &mut Observer<'_>) -> TestCaseResult {
        let has_packets = self.busy().any(|queue| pipe_of(queue) == number);
        if has_packets {
            prop_assert_eq!(self.pipes.remove(number), Err(Refusal::Busy));
        }
        while let Some(slot) = self.pipes.drop_next(number) {
            let of = self.queues.iter().find(|(_, queue)| queue.front().is_some_and(|first| first.slot == slot));
            let queue = of.map(|(queue, _)| *queue).ok_or_else(|| TestCaseError::fail("dropped out of order"))?;
            prop_assert_eq!(pipe_of(queue), number);
            self.leaves(queue, slot)?;
            observer(self, &Event::Dropped { queue })?;
        }
        prop_assert!(!self.busy().any(|queue| pipe_of(queue) == number), "pipe {} is not emptied", number);
        prop_assert_eq!(self.pipes.remove(number), Ok(()));
        prop_assert_eq!(self.pipes.remove(number), Err(Refusal::NoPipe));
        let mut packet = [Packet { queue: queue_number(number, 0), slot: 0, len_bytes: 64 }];
        prop_assert_eq!(self.pipes.enqueue(&mut packet, self.now_ns), 1, "a removed pipe takes a packet");
        observer(self, &Event::Arrived { queue: packet[0].queue, taken: false, slots_left: false })?;
        self.configure(number, self.conf[&number], observer)
    }

    fn step(&mut self, step: &Step, observer: &mut Observer<'_>) -> TestCaseResult {
        let number = |pick: usize| PIPES[pick % PIPES.len()];
        match step {
            Step::Arrive { pipe, queue, bytes } => {
                let queue = queue_number(number(*pipe), *queue);
                let packets: Vec<(u32, u32)> = bytes.iter().map(|bytes| (queue, *bytes)).collect();
                self.arrive(&packets, observer)
            }
            Step::Take { count, classes, allowance } => {
                self.take(*count, *classes, allowance.as_deref(), observer).map(|_| ())
            }
            Step::Configure { pipe, rate, profile } => {
                self.configure(number(*pipe), traces::pipe(*rate, *profile), observer)
            }
            Step::Profile { number, profile } => {
                prop_assert_eq!(self.pipes.set_profile(*number, profile), Ok(()));
                self.profiles[*number as usize - 1] = **profile;
                for pipe in PIPES {
                    if self.conf[&pipe].profile == *number {
                        observer(self, &Event::Profiled { pipe })?;
                    }
                }
                Ok(())
            }
            Step::Renew { pipe } => self.renew(number(*pipe), observer),
        }
    }

    /// Packets leave as soon as they may, until none is left.
    pub fn drain(&mut self, observer: &mut Observer<'_>) -> TestCaseResult {
        for _ in 0..100_000 {
            // A call that gave all that was asked for says nothing of what is left.
            if self.take(abi::SL_PIPE_BATCH as usize, ALL_CLASSES, None, observer)? == abi::SL_PIPE_BATCH as usize {
                continue;
            }
            let Some(wake_ns) = self.pipes.wake_ns(ALL_CLASSES, self.now_ns) else { break };
            self.now_ns = self.now_ns.max(wake_ns);
        }
        prop_assert!(self.busy().next().is_none(), "packets never leave: {:?}", self.busy().collect::<Vec<_>>());
        prop_assert_eq!(self.pipes.state().pkts, 0);
        Ok(())
    }
}

/// Plays the trace of a case, and takes packets until none is left.
pub fn run(core: &'static PipesCore, case: &Case, observer: &mut Observer<'_>) -> Result<World, TestCaseError> {
    let mut world = World::new(core, case);
    for (gap_ns, step) in &case.steps {
        world.now_ns += gap_ns;
        world.step(step, observer)?;
    }
    world.drain(observer)?;
    Ok(world)
}
