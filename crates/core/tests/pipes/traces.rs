//! Random pipes and traffic.

use proptest::{collection::vec, option, prelude::*};
use sluice_abi::{SL_PIPE_BATCH, SL_PIPE_CLASSES, SL_PIPE_QUEUES};
use sluice_core::pipes::{ALL_CLASSES, Bucket, Pipe, Profile};

/// The longest packet, bytes.
pub const LONGEST: u32 = 1514;
/// Bytes that the link adds to each packet.
pub const OVERHEAD: u32 = 24;
/// Pipes of a case: in two subports, in the first and in the last word of each.
pub const PIPES: [u32; 12] = [0, 1, 63, 64, 65, 127, 128, 130, 4095, 4096, 4100, 8191];
/// The first pipe of the second subport, and the end of its pipes.
pub const SECOND: (u32, u32) = (128, 8192);
const CLASSES: usize = SL_PIPE_CLASSES as usize;

#[derive(Debug, Clone)]
pub enum Step {
    /// Packets for the queue of this pipe, by its index, one after the other.
    Arrive { pipe: usize, queue: u32, bytes: Vec<u32> },
    /// So many packets of these classes may leave, and no more of each than its allowance.
    Take { count: usize, classes: u32, allowance: Option<Vec<u32>> },
    /// A pipe gets another rate and another of the two profiles.
    Configure { pipe: usize, rate: Option<u64>, profile: u32 },
    /// A profile changes.
    Profile { number: u32, profile: Box<Profile> },
    /// A pipe is emptied, removed, and added again.
    Renew { pipe: usize },
}

#[derive(Debug, Clone)]
pub struct Case {
    pub port: Option<Bucket>,
    pub subports: Vec<Option<Bucket>>,
    /// The rates of the classes of the first subport.
    pub subport_classes: [Option<u64>; CLASSES],
    /// Pipes by their index: a rate, and one of two profiles.
    pub pipes: Vec<(Option<u64>, u32)>,
    pub profiles: Vec<Profile>,
    pub slots: u32,
    /// The event, so many ns after the step before.
    pub steps: Vec<(u64, Step)>,
    pub seed: u32,
}

/// The properties of a kind of cases.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traces {
    rates: bool,
    class_limits: bool,
    masks: bool,
    small_limits: bool,
    edits: bool,
    steps: usize,
}

/// Cases without limits, of so many steps at most.
pub const fn of(steps: usize) -> Traces {
    Traces { rates: false, class_limits: false, masks: false, small_limits: false, edits: false, steps }
}

impl Traces {
    /// Port, subports and pipes have rates.
    pub const fn rates(self) -> Traces {
        Traces { rates: true, ..self }
    }

    /// Classes of pipes and of a subport have limits.
    pub const fn class_limits(self) -> Traces {
        Traces { class_limits: true, ..self }
    }

    /// Some classes are held back, or have an allowance.
    pub const fn masks(self) -> Traces {
        Traces { masks: true, ..self }
    }

    /// Queues hold few packets or bytes, and slots are few.
    pub const fn small_limits(self) -> Traces {
        Traces { small_limits: true, ..self }
    }

    /// Pipes and profiles change.
    pub const fn edits(self) -> Traces {
        Traces { edits: true, ..self }
    }

    pub fn cases(self) -> BoxedStrategy<Case> {
        let nodes = (self.bucket(50_000..2_000_000), vec(self.bucket(20_000..1_000_000), 2), self.class_rates());
        let pipes = vec((self.pipe_rate(), 1..3u32), PIPES.len());
        let profiles = vec(self.profile(), 2);
        let slots = if self.small_limits { (8..64u32).boxed() } else { Just(100_000).boxed() };
        let steps = vec((gap(), self.step()), 0..=self.steps);
        (nodes, pipes, profiles, slots, steps, any::<u32>())
            .prop_map(|((port, subports, subport_classes), pipes, profiles, slots, steps, seed)| Case {
                port,
                subports,
                subport_classes,
                pipes,
                profiles,
                slots,
                steps,
                seed,
            })
            .boxed()
    }

    fn bucket(self, kbit: std::ops::Range<u64>) -> BoxedStrategy<Option<Bucket>> {
        if !self.rates {
            return Just(None).boxed();
        }
        let bucket =
            (kbit, 0..5_000_000u64).prop_map(|(kbit, burst_ns)| Bucket { bits_per_second: kbit * 1000, burst_ns });
        option::of(bucket).boxed()
    }

    fn pipe_rate(self) -> BoxedStrategy<Option<u64>> {
        if self.rates {
            option::of((1_000..200_000u64).prop_map(|kbit| kbit * 1000)).boxed()
        } else {
            Just(None).boxed()
        }
    }

    fn class_rates(self) -> BoxedStrategy<[Option<u64>; CLASSES]> {
        if !self.class_limits {
            return Just([None; CLASSES]).boxed();
        }
        vec(option::of((500..400_000u64).prop_map(|kbit| kbit * 1000)), CLASSES)
            .prop_map(|rates| rates.try_into().expect("as many"))
            .boxed()
    }

    fn profile(self) -> BoxedStrategy<Profile> {
        let limits = if self.small_limits { (1..8u32, 500..8000u32).boxed() } else { Just((5000, u32::MAX)).boxed() };
        (limits, self.class_rates(), proptest::array::uniform4(1..20u32))
            .prop_map(|((pkts, bytes), classes, weights)| Profile {
                limit_bytes: [bytes; SL_PIPE_QUEUES as usize],
                classes,
                weights,
                ..Profile::of(pkts)
            })
            .boxed()
    }

    fn step(self) -> BoxedStrategy<Step> {
        let queue = prop_oneof![2 => 0..SL_PIPE_QUEUES, 1 => 12..SL_PIPE_QUEUES, 1 => 0..2u32];
        let arrive = (prop_oneof![any::<usize>(), 0..3usize], queue, vec(64..=LONGEST, 1..6))
            .prop_map(|(pipe, queue, bytes)| Step::Arrive { pipe, queue, bytes });
        let mask = if self.masks {
            prop_oneof![Just(ALL_CLASSES), 0..=ALL_CLASSES].boxed()
        } else {
            Just(ALL_CLASSES).boxed()
        };
        let allowance = if self.masks { option::of(vec(0..4u32, CLASSES)).boxed() } else { Just(None).boxed() };
        let take = (0..=SL_PIPE_BATCH as usize, mask, allowance).prop_map(|(count, classes, allowance)| Step::Take {
            count,
            classes,
            allowance,
        });
        if !self.edits {
            return prop_oneof![3 => arrive, 2 => take].boxed();
        }
        prop_oneof![
            18 => arrive,
            12 => take,
            2 => (any::<usize>(), self.pipe_rate(), 1..3u32)
                .prop_map(|(pipe, rate, profile)| Step::Configure { pipe, rate, profile }),
            1 => (1..3u32, self.profile())
                .prop_map(|(number, profile)| Step::Profile { number, profile: Box::new(profile) }),
            1 => any::<usize>().prop_map(|pipe| Step::Renew { pipe }),
        ]
        .boxed()
    }
}

/// Most steps follow each other soon.
fn gap() -> BoxedStrategy<u64> {
    prop_oneof![6 => 0..2_000u64, 3 => 0..300_000u64, 1 => 0..100_000_000u64].boxed()
}

/// A pipe as the tests configure it: with a burst of 50 us.
pub fn pipe(rate: Option<u64>, profile: u32) -> Pipe {
    Pipe { profile, bits_per_second: rate, burst_ns: 50_000 }
}
