//! The flat scheduler, its lists and a port, to which a trace is played.

use crate::{
    port::{Frame, Port},
    traces::{Case, Class, Step},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::{
    Packet, Scheduler,
    level_backpressure::{LevelBackpressure, LevelCore, Lists, Next},
};
use std::collections::BTreeMap;

pub const START_NS: u64 = 1_000_000_000;

pub struct World<'a> {
    case: &'a Case,
    pub classes: Vec<Class>,
    pub scheduler: Scheduler,
    pub backpressure: LevelBackpressure,
    pub port: Port,
    pub now_ns: u64,
    /// Packets in the scheduler, by their slots.
    pub queued: BTreeMap<u32, Frame>,
    /// Packets in lists, by list and place.
    pub listed: BTreeMap<(u32, u32), Frame>,
    /// Packets that the port has taken, in order; their class is the list.
    pub taken: Vec<Frame>,
    /// Packets that the port has sent, with the times.
    pub sent: Vec<(u64, Frame)>,
    pub came: u64,
    /// Those that the scheduler has refused or dropped.
    pub dropped: u64,
}

/// The answer of a round.
pub struct Round {
    pub got: u32,
    /// The answer that ended it, if not the number of packets did.
    pub end: Option<Next>,
}

/// The flow of a packet, in classes that queue by flow.
fn flow(number: u64) -> u32 {
    (number as u32 % 3).wrapping_mul(0x9e37_79b9)
}

impl<'a> World<'a> {
    pub fn new(core: &'static LevelCore, case: &'a Case) -> World<'a> {
        let scheduler = Scheduler::of(core.core(), &case.conf(&case.classes), START_NS);
        let backpressure = LevelBackpressure::of(core, &case.lists, &scheduler);
        World {
            case,
            classes: case.classes.clone(),
            scheduler,
            backpressure,
            port: Port::new(case.port, START_NS),
            now_ns: START_NS,
            queued: BTreeMap::new(),
            listed: BTreeMap::new(),
            taken: Vec::new(),
            sent: Vec::new(),
            came: 0,
            dropped: 0,
        }
    }

    /// The list of a class.
    pub fn list_of(&self, class: usize) -> u32 {
        match self.case.kind {
            abi::SL_STRICT_PRIORITY => self.classes[class].level.min(self.case.lists.lists - 1),
            _ => 0,
        }
    }

    /// A packet comes.
    pub fn arrive(&mut self, class: usize, bytes: u32) -> TestCaseResult {
        let number = self.came;
        self.came += 1;
        let packet =
            Packet { class: class as u32, len_bytes: bytes, segments: 1, flow_hash: flow(number), ..Packet::default() };
        let arrived = self.scheduler.enqueue_packet(&packet, self.now_ns);
        match arrived {
            Ok(slot) => {
                let frame = Frame { queue: class as u32, class: 0, number, bytes, arrived_ns: self.now_ns };
                prop_assert!(self.queued.insert(slot, frame).is_none(), "slot {} is given twice", slot);
            }
            Err(_) => self.dropped += 1,
        }
        self.reap()
    }

    fn reap(&mut self) -> TestCaseResult {
        while let Some(slot) = self.scheduler.reap() {
            prop_assert!(self.queued.remove(&slot).is_some(), "nothing is in slot {}", slot);
            self.dropped += 1;
        }
        Ok(())
    }

    /// The port is offered what the lists hold.
    pub fn offer(&mut self) -> TestCaseResult {
        for list in 0..abi::SL_BACKPRESSURE_LISTS {
            let places: Vec<u32> = self.backpressure.offered(list).into_iter().flatten().collect();
            prop_assert_eq!(places.len(), self.backpressure.state().lists.pkts[list as usize] as usize);
            if places.is_empty() {
                continue;
            }
            let count = self.port.room(list).min(places.len());
            for place in &places[..count] {
                let frame = self.listed.remove(&(list, *place));
                let frame = frame.ok_or_else(|| TestCaseError::fail(format!("list {list} has nothing at {place}")))?;
                self.port.take(frame);
                self.taken.push(frame);
            }
            self.backpressure.taken(list, count as u32);
        }
        Ok(())
    }

    /// A dequeue of so many packets.
    pub fn dequeue(&mut self, count: u32) -> Result<Round, TestCaseError> {
        self.backpressure.begin();
        for got in 0..count {
            match self.backpressure.dequeue(&mut self.scheduler, self.now_ns) {
                Next::Listed { slot, class, len_bytes, list, place, .. } => {
                    let frame = self.queued.remove(&slot);
                    let frame = frame.ok_or_else(|| TestCaseError::fail(format!("nothing is in slot {slot}")))?;
                    prop_assert_eq!((frame.queue, frame.bytes), (class, len_bytes));
                    prop_assert_eq!(list, self.list_of(class as usize), "the list of class {}", class);
                    let before = self.listed.insert((list, place), Frame { class: list, ..frame });
                    prop_assert!(before.is_none(), "place {} of list {} is given twice", place, list);
                }
                end => {
                    self.reap()?;
                    return Ok(Round { got, end: Some(end) });
                }
            }
            self.reap()?;
        }
        Ok(Round { got: count, end: None })
    }

    /// Rounds, until nothing more comes to the lists. Their last answer.
    pub fn rounds(&mut self) -> Result<Next, TestCaseError> {
        for _ in 0..10_000 {
            self.offer()?;
            let round = self.dequeue(64)?;
            self.offer()?;
            if let (0, Some(end)) = (round.got, round.end) {
                return Ok(end);
            }
        }
        Err(TestCaseError::fail("rounds never end"))
    }

    /// Time goes on, and the port sends. `eager`: rounds follow each packet that it has sent.
    pub fn advance(&mut self, now_ns: u64, eager: bool) -> TestCaseResult {
        while let Some((at, frame)) = self.port.sent(now_ns) {
            self.sent.push((at, frame));
            self.now_ns = at;
            if eager {
                self.rounds()?;
            }
        }
        self.now_ns = now_ns;
        Ok(())
    }

    /// Everything leaves, though no packet comes: the scheduler is asked again when it said, or when the port has sent.
    pub fn drain(&mut self) -> TestCaseResult {
        for _ in 0..100_000 {
            let wake_ns = match self.rounds()? {
                Next::Wait(Some(at_ns)) => {
                    prop_assert!(at_ns > self.now_ns, "told to wait until now");
                    Some(at_ns)
                }
                _ => None,
            };
            let Some(next_ns) = [wake_ns, self.port.next_ns()].into_iter().flatten().min() else {
                let left = self.queued.len() + self.listed.len();
                prop_assert!(left == 0, "{} packets never leave", left);
                return Ok(());
            };
            self.advance(next_ns, false)?;
        }
        Err(TestCaseError::fail("packets leave for ever"))
    }
}

/// The state before a dequeue, and its result.
pub struct Dequeue {
    pub lists: Lists,
    /// Packets of each list before it.
    pub held: [u32; 16],
    pub got: u32,
}

/// Plays a trace: rounds are those of the trace, and in the end everything leaves. `look` is told of each dequeue.
pub fn run<'a>(
    core: &'static LevelCore,
    case: &'a Case,
    look: &mut dyn FnMut(&World, u32, &Dequeue) -> TestCaseResult,
) -> Result<World<'a>, TestCaseError> {
    let mut world = World::new(core, case);
    for (gap_ns, step) in &case.steps {
        world.advance(world.now_ns + gap_ns, false)?;
        match step {
            Step::Arrive { class, bytes } => {
                for bytes in bytes {
                    world.arrive(*class, *bytes)?;
                }
            }
            Step::Round { count } => {
                world.offer()?;
                let held = world.backpressure.state().lists.pkts;
                let got = world.dequeue(*count)?.got;
                look(&world, *count, &Dequeue { lists: case.lists, held, got })?;
                world.offer()?;
            }
            Step::Configure { classes } => {
                world.scheduler.configure(&case.conf(classes), world.now_ns);
                world.backpressure.follow(&world.scheduler);
                world.classes.clone_from(classes);
                world.reap()?;
            }
        }
    }
    world.drain()?;
    Ok(world)
}
