//! Instances of the scheduler of pipes before one card that shapes, in simulated time and from one seed: the load, the processors and the card are
//! modelled, and scheduler and backpressure are those of `sched/`.
//!
//! ```text
//! arrivals -> receive ring -> scheduler of pipes -> lists -> card        instances share its queues, descriptors and rate
//! ```
//!
//! Each instance has its own share of the pipes, and a processor that takes some time for each packet.

mod arrivals;
mod instance;
mod outcome;

use crate::{
    card::{Card, CardConf},
    events::Events,
};
use arrivals::Arrivals;
use instance::Instance;
pub use outcome::{Fate, Outcome, Record};

/// Simulated time begins here: in the core, 0 is a time that has not been.
const START_NS: u64 = 1_000_000_000;
/// A run ends at the latest when so many windows have passed since its window ended.
const PATIENCE: u64 = 10;

/// A packet on its way from the receive ring to the card.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Frame {
    arrived_ns: u64,
    /// Its queue in the scheduler.
    queue: u32,
    /// Its pipe, among those of all instances.
    pipe: u32,
    bytes: u32,
    /// The number of its record.
    number: u32,
    class: u8,
}

impl Frame {
    /// The number of a packet without a record.
    const UNCOUNTED: u32 = u32::MAX;
}

/// The knowledge that an instance has of the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Nothing: packets that leave the scheduler go into the card's first queue, whatever their class, and are lost if it is full.
    Alone,
    /// The packets that the card refuses, by class: `sched/backpressure.h`. Class n has the card's queue n.
    Backpressure {
        /// Packets of a class that an instance keeps for the card.
        pending_pkts: u32,
        /// Packets of a class that leave the scheduler at once.
        burst_pkts: u32,
    },
}

/// A run.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The card.
    pub card: CardConf,
    /// The knowledge that instances have of it.
    pub way: Way,
    /// Instances, 1 or more.
    pub instances: u32,
    /// Pipes of all instances, at least one each, and at most 32,768 each.
    pub pipes: u32,
    /// Classes that have packets, 1 to 12, the most urgent first. Each has as many packets.
    pub classes: u32,
    /// Lengths of packets: from the first to the second, each equally often.
    pub bytes: (u32, u32),
    /// The offered load, as a share of the rate of the port.
    pub load: f64,
    /// Packets that a queue of the scheduler holds.
    pub queue_pkts: u32,
    /// The same, of the last class.
    pub last_queue_pkts: u32,
    /// Packets that a receive ring holds.
    pub receive_pkts: usize,
    /// The time of a turn of an instance, without packets; 1 ns or more.
    pub turn_ns: u64,
    /// The time for each packet that comes to the scheduler.
    pub receive_ns: u64,
    /// The time for each packet that leaves it.
    pub send_ns: u64,
    /// The time before the window.
    pub warm_ns: u64,
    /// The length of the window: packets that come in it are counted. The run goes on, with the same load, until it is known what became of them.
    pub window_ns: u64,
    /// All randomness comes from it.
    pub seed: u64,
}

/// Runs it.
pub fn run(setting: &Setting) -> Outcome {
    assert!(setting.turn_ns > 0 && setting.instances > 0 && setting.instances <= setting.pipes, "time goes on");
    assert!((1..=12).contains(&setting.classes), "classes 0 to 11 have one queue each");
    let (from_ns, to_ns) = (START_NS + setting.warm_ns, START_NS + setting.warm_ns + setting.window_ns);
    let mut seen = Outcome::new(setting.pipes, (from_ns, to_ns));
    let mut card: Card<Frame> = Card::new(&setting.card);
    let mut events = Events::default();
    let mut instances: Vec<Instance> =
        (0..setting.instances).map(|number| Instance::new(setting, arrivals(setting, number), START_NS)).collect();
    (0..instances.len()).for_each(|number| events.add(START_NS, number));
    let end_ns = to_ns + PATIENCE * setting.window_ns;
    while let Some((now_ns, number)) = events.next_until(end_ns) {
        while let Some(done) = card.completed(now_ns) {
            seen.sent(&done.packet, done.at_ns, done.bytes + setting.card.overhead_bytes);
        }
        if now_ns >= to_ns && seen.open == 0 {
            break;
        }
        let next_ns = instances[number].step(setting, &mut card, now_ns, &mut seen);
        events.add(next_ns, number);
    }
    seen
}

/// The packets that come to an instance.
fn arrivals(setting: &Setting, number: u32) -> Arrivals {
    let share = |n: u32| (u64::from(setting.pipes) * u64::from(n) / u64::from(setting.instances)) as u32;
    let (first, count) = (share(number), share(number + 1) - share(number));
    let mean_bytes = f64::from(setting.bytes.0 + setting.bytes.1) / 2.0 + f64::from(setting.card.overhead_bytes);
    let own = setting.load * f64::from(count) / f64::from(setting.pipes);
    let mean_ps = mean_bytes * 8e12 / setting.card.bits_per_second as f64 / own;
    let seed = (setting.seed, u64::from(number));
    Arrivals::new((first, count), setting.classes, setting.bytes, mean_ps.round() as u64, START_NS, seed)
}
