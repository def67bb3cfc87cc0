//! The scheduler of pipes, its lists and a port, to which a trace is played.

use crate::{
    port::{Frame, Port, Shape},
    traces::{COUNT, Case, PIPES, Step},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::{
    backpressure::{Backpressure, BackpressureCore, Lists},
    pipes::{ALL_CLASSES, Packet, Pipe, Pipes, Port as PipesPort, Profile, Subport, queue_number},
};
use std::collections::BTreeMap;

pub const START_NS: u64 = 1_000_000_000;

pub struct World {
    pub pipes: Pipes,
    pub backpressure: Backpressure,
    pub port: Port,
    pub now_ns: u64,
    /// Packets that came, by their slots, until the port has them.
    pub waiting: BTreeMap<u32, Frame>,
    /// Packets that the port has taken, in order.
    pub taken: Vec<Frame>,
    /// Packets that the port has sent, with the times.
    pub sent: Vec<(u64, Frame)>,
    pub came: u64,
}

pub fn class_of(queue: u32) -> u32 {
    (queue % abi::SL_PIPE_QUEUES).min(abi::SL_PIPE_BEST_EFFORT)
}

impl World {
    /// Pipes of `PIPES`, without limits.
    pub fn new(core: &'static BackpressureCore, lists: &Lists, port: Shape) -> World {
        World::of(core, lists, port, &PIPES, &Profile::of(100_000))
    }

    pub fn of(
        core: &'static BackpressureCore,
        lists: &Lists,
        port: Shape,
        numbers: &[u32],
        profile: &Profile,
    ) -> World {
        let mut pipes = Pipes::of(core.pipes());
        pipes.set_up(&PipesPort { slots: 200_000, overhead_bytes: 24, mpu_bytes: 0, rate: None }, START_NS);
        let count = numbers.iter().max().map_or(COUNT, |last| COUNT.max(last / 64 * 64 + 64));
        pipes.set_subport(0, &Subport::of(0, count), START_NS).expect("no other has the pipes");
        pipes.set_profile(1, profile).expect("a number of a profile");
        for number in numbers {
            let pipe = Pipe { profile: 1, bits_per_second: None, burst_ns: 0 };
            pipes.configure(*number, &pipe, START_NS).expect("it is in a subport");
        }
        World {
            pipes,
            backpressure: Backpressure::of(core, lists),
            port: Port::new(port, START_NS),
            now_ns: START_NS,
            waiting: BTreeMap::new(),
            taken: Vec::new(),
            sent: Vec::new(),
            came: 0,
        }
    }

    /// A packet comes. Whether the scheduler has room for it.
    pub fn arrive(&mut self, queue: u32, bytes: u32) -> Result<bool, TestCaseError> {
        let mut packet = [Packet { queue, slot: 0, len_bytes: bytes }];
        if self.pipes.enqueue(&mut packet, self.now_ns) != 0 {
            return Ok(false);
        }
        let frame = Frame { queue, class: class_of(queue), number: self.came, bytes, arrived_ns: self.now_ns };
        self.came += 1;
        let before = self.waiting.insert(packet[0].slot, frame);
        prop_assert!(before.is_none(), "slot {} is given twice", packet[0].slot);
        Ok(true)
    }

    /// The port is offered what the lists hold.
    pub fn offer(&mut self) -> TestCaseResult {
        let held = self.backpressure.held();
        for class in (0..abi::SL_PIPE_CLASSES).filter(|class| held >> class & 1 == 1) {
            let [first, rest] = self.backpressure.offered(class);
            let offered: Vec<Packet> = first.iter().chain(rest).copied().collect();
            prop_assert_eq!(offered.len(), self.backpressure.state().lists.pkts[class as usize] as usize);
            let count = self.port.room(class).min(offered.len());
            for packet in &offered[..count] {
                let frame = self.waiting.remove(&packet.slot);
                let frame = frame.ok_or_else(|| TestCaseError::fail(format!("nothing is in slot {}", packet.slot)))?;
                prop_assert_eq!((frame.queue, frame.bytes), (packet.queue, packet.len_bytes));
                prop_assert_eq!(frame.class, class, "lists are by class");
                self.port.take(frame);
                self.taken.push(frame);
            }
            self.backpressure.taken(&mut self.pipes, class, count as u32);
        }
        Ok(())
    }

    /// A round, in which up to so many packets of these classes come to the lists. How many came.
    pub fn round(&mut self, count: u32, classes: u32) -> Result<u32, TestCaseError> {
        self.offer()?;
        let got = self.backpressure.dequeue(&mut self.pipes, count, classes, self.now_ns);
        self.offer()?;
        Ok(got)
    }

    /// Rounds, until nothing more comes to the lists.
    pub fn rounds(&mut self) -> TestCaseResult {
        for _ in 0..10_000 {
            let got = self.round(64, ALL_CLASSES)?;
            let wake_ns = self.backpressure.wake_ns(&mut self.pipes, ALL_CLASSES, self.now_ns);
            if got == 0 && wake_ns != Some(self.now_ns) {
                return Ok(());
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

    /// Everything leaves.
    pub fn drain(&mut self) -> TestCaseResult {
        self.rounds()?;
        while let Some(next_ns) = self.port.next_ns() {
            self.advance(next_ns, true)?;
        }
        prop_assert!(self.waiting.is_empty(), "{} packets never leave", self.waiting.len());
        Ok(())
    }
}

/// Plays a trace: rounds are those of the trace, and in the end everything leaves. `look` is told of each step.
pub fn run(
    core: &'static BackpressureCore,
    case: &Case,
    look: &mut dyn FnMut(&World, &Step, &Dequeue) -> TestCaseResult,
) -> Result<World, TestCaseError> {
    let mut world = play(World::new(core, &case.lists, case.port), case, look)?;
    world.drain()?;
    Ok(world)
}

/// Plays a trace in a world. Packets stay in the end.
pub fn play(
    mut world: World,
    case: &Case,
    look: &mut dyn FnMut(&World, &Step, &Dequeue) -> TestCaseResult,
) -> Result<World, TestCaseError> {
    let mut lists = case.lists;
    for (gap_ns, step) in &case.steps {
        world.advance(world.now_ns + gap_ns, false)?;
        let mut before = Dequeue { lists, held: [0; 16], got: 0 };
        match step {
            Step::Arrive { pipe, queue, bytes } => {
                for bytes in bytes {
                    let taken = world.arrive(queue_number(PIPES[*pipe], *queue), *bytes)?;
                    prop_assert!(taken, "there is room");
                }
            }
            Step::Round { count, classes } => {
                world.offer()?;
                before.held = world.backpressure.state().lists.pkts;
                before.got = world.backpressure.dequeue(&mut world.pipes, *count, *classes, world.now_ns);
                look(&world, step, &before)?;
                world.offer()?;
            }
            Step::Configure { lists: others } => {
                lists = *others;
                world.backpressure.configure(others);
            }
        }
    }
    Ok(world)
}

/// The state before a dequeue, and its result.
pub struct Dequeue {
    pub lists: Lists,
    /// Packets of each list before it.
    pub held: [u32; 16],
    pub got: u32,
}
