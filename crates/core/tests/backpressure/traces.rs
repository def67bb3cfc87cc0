//! Random traffic, lists and ports.

use crate::port;
use proptest::{collection::vec, prelude::*};
use sluice_abi::{SL_PIPE_CLASSES, SL_PIPE_QUEUES};
use sluice_core::backpressure::Lists;

/// Pipes of a case, in different words of the bitmaps.
pub const PIPES: [u32; 8] = [0, 1, 63, 64, 130, 1000, 4096, 8191];
/// The number of pipes of the subport.
pub const COUNT: u32 = 8192;
/// The longest packet, bytes.
pub const LONGEST: u32 = 1514;
pub const CLASSES: usize = SL_PIPE_CLASSES as usize;

#[derive(Debug, Clone)]
pub enum Step {
    /// Packets of these lengths for the queue of this pipe, by its index.
    Arrive { pipe: usize, queue: u32, bytes: Vec<u32> },
    /// A round, in which so many packets of these classes may come to the lists.
    Round { count: u32, classes: u32 },
    /// Lists have other sizes.
    Configure { lists: Lists },
}

#[derive(Debug, Clone)]
pub struct Case {
    pub lists: Lists,
    pub port: port::Shape,
    /// The step, so many ns after the step before.
    pub steps: Vec<(u64, Step)>,
    pub seed: u32,
}

/// Cases of so many steps at most.
pub fn of(steps: usize) -> Traces {
    Traces { steps, edits: false }
}

#[derive(Debug, Clone, Copy)]
pub struct Traces {
    steps: usize,
    edits: bool,
}

impl Traces {
    /// Lists change their sizes.
    pub fn edits(self) -> Traces {
        Traces { edits: true, ..self }
    }

    pub fn cases(self) -> BoxedStrategy<Case> {
        let steps = vec((gap(), self.step()), 0..=self.steps);
        (lists(), port::shapes(), steps, any::<u32>())
            .prop_map(|(lists, port, steps, seed)| Case { lists, port, steps, seed })
            .boxed()
    }

    fn step(self) -> BoxedStrategy<Step> {
        let queue = prop_oneof![2 => 0..SL_PIPE_QUEUES, 1 => 11..SL_PIPE_QUEUES, 1 => 0..2u32];
        let arrive = (0..PIPES.len(), queue, vec(64..=LONGEST, 1..10)).prop_map(|(pipe, queue, bytes)| Step::Arrive {
            pipe,
            queue,
            bytes,
        });
        let classes = prop_oneof![4 => Just(ALL), 1 => 0..=ALL];
        let round = (0..=64u32, classes).prop_map(|(count, classes)| Step::Round { count, classes });
        if !self.edits {
            return prop_oneof![1 => arrive, 1 => round].boxed();
        }
        prop_oneof![10 => arrive, 10 => round, 1 => lists().prop_map(|lists| Step::Configure { lists })].boxed()
    }
}

const ALL: u32 = sluice_core::pipes::ALL_CLASSES;

fn lists() -> BoxedStrategy<Lists> {
    (proptest::array::uniform13(1..16u32), 1..12u32)
        .prop_map(|(room_pkts, burst_pkts)| Lists { room_pkts, burst_pkts })
        .boxed()
}

/// Most steps follow each other soon.
fn gap() -> BoxedStrategy<u64> {
    prop_oneof![6 => 0..2_000u64, 3 => 0..30_000u64].boxed()
}
