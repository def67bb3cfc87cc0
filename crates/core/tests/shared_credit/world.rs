//! Random links and interleavings, and what runs them.

use crate::builds::{Call, DEQUEUE, RENEW, STOP, Stepped};
use proptest::{prelude::*, strategy::BoxedStrategy, test_runner::TestCaseError};
use sluice_abi as abi;
use sluice_core::shared_credit::{Class, Conf, Instance, Link};
use std::collections::VecDeque;

/// The longest frame.
pub const FRAME: u32 = 1500;
pub const START_NS: u64 = 1_000_000_000;

/// A case.
#[derive(Debug, Clone)]
pub struct Case {
    /// Instances, 1 to 64.
    pub instances: u32,
    /// The rate of the link, bit/s.
    pub rate: u64,
    /// Its burst, ns.
    pub burst_ns: u64,
    /// Weights of two classes.
    pub weights: [u32; 2],
    /// Chooses all else, and the interleaving.
    pub seed: u64,
}

/// The cases of all laws.
pub struct Cases {
    most: u32,
}

/// Cases of up to so many instances.
pub fn of(most: u32) -> Cases {
    Cases { most }
}

impl Cases {
    pub fn cases(self) -> BoxedStrategy<Case> {
        let instances = prop_oneof![1..=8u32, 1..=self.most];
        let rate =
            prop_oneof![Just(10_000_000u64), Just(1_000_000_000), Just(10_000_000_000), 1_000_000..100_000_000_000u64];
        (instances, rate, 0..2_000_000u64, [1..10u32, 1..10u32], any::<u64>())
            .prop_map(|(instances, rate, burst_ns, weights, seed)| Case {
                instances: instances.max(1),
                rate,
                burst_ns,
                weights,
                seed,
            })
            .boxed()
    }
}

/// Random numbers of a case (xorshift64*): the case shrinks by its seed, and steps are cheap.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) % n.max(1)
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// A packet that was sent: when, by which instance, its class and its bytes.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    pub at_ns: u64,
    pub instance: usize,
    pub class: u32,
    pub bytes: u32,
}

/// The configuration of the schedulers of a link with these classes.
fn schedulers(classes: &[Class]) -> Box<abi::sl_sched_conf> {
    let mut sched: Box<abi::sl_sched_conf> = abi::boxed_zeroed();
    let has_levels = classes.iter().any(|class| class.level != classes[0].level);
    sched.kind = if has_levels { abi::SL_STRICT_PRIORITY } else { abi::SL_WEIGHTED_FAIR_QUEUING };
    sched.generation = 1;
    sched.slots = 64;
    for (class, shared) in sched.classes.iter_mut().zip(classes) {
        class.limit_pkts = 1000;
        class.limit_bytes = 10_000_000;
        class.quantum_bytes = FRAME;
        class.weight = shared.weight;
        class.level = shared.level as _;
    }
    sched
}

/// Instances of a link, and their calls.
pub struct World {
    pub stepped: &'static Stepped,
    pub random: Random,
    pub conf: Conf,
    pub link: Link,
    pub instances: Vec<Instance>,
    calls: Box<[Call]>,
    under_way: Vec<usize>,
    /// When each instance is to be asked; none: when it gets packets.
    wakes_ns: Vec<Option<u64>>,
    /// Classes of which each instance always has packets, as bits, and the lengths of packets.
    backlogged: Vec<u64>,
    bytes: u32,
    pub now_ns: u64,
    pub sent: Vec<Sent>,
    /// Instances whose device takes nothing.
    pub stopped: u64,
    ready: VecDeque<usize>,
}

impl World {
    /// Instances of a link with these classes; `backlogged` has the classes of each instance as bits.
    pub fn new(stepped: &'static Stepped, case: &Case, classes: &[Class], backlogged: Vec<u64>, bytes: u32) -> World {
        let n = case.instances as usize;
        let sched = schedulers(classes);
        let mut world = World {
            stepped,
            random: Random::new(case.seed),
            conf: Conf::new(case.instances, case.rate, case.burst_ns, FRAME, classes),
            link: Link::default(),
            instances: (0..n).map(|n| Instance::new(n as u32, &sched, START_NS)).collect(),
            calls: vec![Call::default(); n].into(),
            under_way: Vec::new(),
            wakes_ns: vec![Some(START_NS); n],
            backlogged,
            bytes,
            now_ns: START_NS,
            sent: Vec::new(),
            stopped: 0,
            ready: VecDeque::new(),
        };
        for n in 0..n {
            for class in 0..64 {
                if world.backlogged[n] >> class & 1 == 1 {
                    world.enqueue(n, class);
                    world.enqueue(n, class);
                }
            }
        }
        world
    }

    fn enqueue(&mut self, n: usize, class: u32) {
        let bytes = if self.bytes == 0 { 64 + self.random.below(1437) as u32 } else { self.bytes };
        self.instances[n].scheduler().enqueue(class, bytes, 1, self.now_ns).expect("there is room");
    }

    /// An instance always has packets of these classes from now on.
    pub fn set_backlogged(&mut self, n: usize, classes: u64) {
        let more = classes & !self.backlogged[n];
        self.backlogged[n] = classes;
        if self.under_way.contains(&n) {
            // The call must end before the scheduler may be touched.
            while !self.go_on(n) {}
        }
        for class in 0..64 {
            if more >> class & 1 == 1 {
                self.enqueue(n, class);
                self.enqueue(n, class);
            }
        }
        if more != 0 {
            self.wakes_ns[n] = Some(self.now_ns);
        }
    }

    /// The call of an instance goes on by one access to a shared word. Whether it has ended.
    fn go_on(&mut self, n: usize) -> bool {
        if !self.stepped.go_on(n) {
            return false;
        }
        self.under_way.retain(|other| *other != n);
        let verdict = self.calls[n].verdict;
        match verdict.action {
            2 => {
                self.sent.push(Sent {
                    at_ns: self.now_ns,
                    instance: n,
                    class: verdict.class,
                    bytes: verdict.len_bytes,
                });
                if self.backlogged[n] >> verdict.class & 1 == 1 {
                    self.enqueue(n, verdict.class);
                }
                self.wakes_ns[n] = Some(self.now_ns);
            }
            1 => self.wakes_ns[n] = Some(verdict.wake_ns.max(self.now_ns + 1)),
            _ => self.wakes_ns[n] = None,
        }
        true
    }

    /// All instances end, interleaved at random.
    pub fn stop_all(&mut self) {
        self.call_all(STOP);
    }

    /// Another configuration takes force in all instances.
    pub fn renew_all(&mut self, rate: u64, burst_ns: u64, classes: &[Class]) {
        self.conf = Conf::new(self.instances.len() as u32, rate, burst_ns, FRAME, classes);
        self.call_all(RENEW);
        let sched = schedulers(classes);
        for n in 0..self.instances.len() {
            self.instances[n].scheduler().configure(&sched, self.now_ns);
            self.wakes_ns[n] = Some(self.now_ns);
        }
    }

    fn call_all(&mut self, kind: u32) {
        (0..self.instances.len()).for_each(|n| self.begin(n, kind));
        while !self.under_way.is_empty() {
            let n = self.under_way[self.random.below(self.under_way.len() as u64) as usize];
            if self.stepped.go_on(n) {
                self.under_way.retain(|other| *other != n);
            }
        }
    }

    fn begin(&mut self, n: usize, kind: u32) {
        let (sched, own) = self.instances[n].as_ptrs();
        let call = &mut self.calls[n];
        *call = Call {
            kind,
            now: self.now_ns,
            sched,
            own,
            link: self.link.as_ptr(),
            conf: self.conf.raw(),
            ..Call::default()
        };
        // SAFETY: calls, instances, link and configuration are in boxes, and are left alone until the call has ended.
        unsafe { self.stepped.begin(n, call) };
        self.under_way.push(n);
        self.wakes_ns[n] = None;
    }

    /// Runs until this time: calls of instances that are due are interleaved at random, and time goes on at random.
    pub fn run_until(&mut self, until_ns: u64) -> Result<(), TestCaseError> {
        let mut idle_rounds = 0;
        while self.now_ns < until_ns {
            self.ready.clear();
            for n in 0..self.instances.len() {
                let due = self.wakes_ns[n].is_some_and(|at| at <= self.now_ns) && self.stopped >> n & 1 == 0;
                if due && !self.under_way.contains(&n) {
                    self.ready.push_back(n);
                }
            }
            let choices = self.ready.len() + self.under_way.len();
            if choices == 0 {
                let wakes = (0..self.instances.len()).filter(|n| self.stopped >> n & 1 == 0);
                let next = wakes.filter_map(|n| self.wakes_ns[n]).min().unwrap_or(until_ns);
                self.now_ns = next.clamp(self.now_ns + 1, until_ns);
                continue;
            }
            let choice = self.random.below(choices as u64) as usize;
            if choice < self.ready.len() {
                self.begin(self.ready[choice], DEQUEUE);
            } else {
                let n = self.under_way[choice - self.ready.len()];
                // Often several steps of one, so that calls end while others stand still.
                for _ in 0..=self.random.below(12) {
                    if self.go_on(n) {
                        break;
                    }
                }
            }
            // A clock goes on while calls are under way.
            if self.random.one_in(16) {
                self.now_ns += self.random.below(500);
            }
            idle_rounds += 1;
            prop_assert!(idle_rounds < 20_000_000, "calls do not end");
        }
        while let Some(n) = self.under_way.first().copied() {
            while !self.go_on(n) {}
        }
        Ok(())
    }

    /// Bytes of a class that were sent from a time on.
    pub fn bytes_of(&self, class: u32, from_ns: u64) -> u64 {
        let sent = self.sent.iter().filter(|sent| sent.class == class && sent.at_ns >= from_ns);
        sent.map(|sent| u64::from(sent.bytes)).sum()
    }

    /// How often instances have gone to shared words.
    pub fn draws(&self) -> u64 {
        self.instances.iter().map(|instance| instance.own().draws).sum()
    }
}

/// The most by which charges (time in ns, bytes) exceed a rate in any window.
pub fn most_ahead(charges: impl Iterator<Item = (u64, u32)>, rate: u64) -> f64 {
    let (mut ahead, mut most, mut last) = (0.0f64, 0.0f64, 0);
    for (at_ns, bytes) in charges {
        ahead = (ahead - rate as f64 / 8e9 * at_ns.saturating_sub(last) as f64).max(0.0) + f64::from(bytes);
        last = last.max(at_ns);
        most = most.max(ahead);
    }
    most
}
