//! Schedulers of flat classes that share a link.

use crate::builds::{Call, DEQUEUE, RENEW, STOP, Stepped};
use crate::cases::{Case, FRAME, Random, START_NS};
use crate::interleaving::{self, Instances};
use sluice_abi as abi;
use sluice_core::shared_credit::{Class, Conf, Instance, Link};

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

/// Schedulers of flat classes that share a link.
pub struct Flat {
    pub conf: Conf,
    pub link: Link,
    pub instances: Vec<Instance>,
    /// Classes of which each instance always has packets, as bits, and the lengths of packets.
    backlogged: Vec<u64>,
    bytes: u32,
    pub sent: Vec<Sent>,
}

/// Schedulers of flat classes, and their calls.
pub type World = interleaving::World<Flat>;

impl Instances for Flat {
    fn count(&self) -> usize {
        self.instances.len()
    }

    fn call(&mut self, n: usize, kind: u32, now_ns: u64) -> Call {
        let (sched, own) = self.instances[n].as_ptrs();
        Call { kind, now: now_ns, sched, own, link: self.link.as_ptr(), conf: self.conf.raw(), ..Call::default() }
    }

    fn ended(&mut self, n: usize, call: &Call, now_ns: u64, random: &mut Random) -> Option<u64> {
        let verdict = call.verdict;
        match verdict.action {
            2 => {
                self.sent.push(Sent { at_ns: now_ns, instance: n, class: verdict.class, bytes: verdict.len_bytes });
                if self.backlogged[n] >> verdict.class & 1 == 1 {
                    self.enqueue(n, verdict.class, now_ns, random);
                }
                Some(now_ns)
            }
            1 => Some(verdict.wake_ns.max(now_ns + 1)),
            _ => None,
        }
    }
}

impl Flat {
    fn enqueue(&mut self, n: usize, class: u32, now_ns: u64, random: &mut Random) {
        let bytes = if self.bytes == 0 { 64 + random.below(1437) as u32 } else { self.bytes };
        self.instances[n].scheduler().enqueue(class, bytes, 1, now_ns).expect("there is room");
    }

    /// Two packets of each of these classes.
    fn begin_backlog(&mut self, n: usize, classes: u64, now_ns: u64, random: &mut Random) {
        for class in (0..64).filter(|class| classes >> class & 1 == 1) {
            self.enqueue(n, class, now_ns, random);
            self.enqueue(n, class, now_ns, random);
        }
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

impl World {
    /// Instances of a link with these classes; `backlogged` has the classes of each instance as bits.
    pub fn new(stepped: &'static Stepped, case: &Case, classes: &[Class], backlogged: Vec<u64>, bytes: u32) -> World {
        let n = case.instances as usize;
        let sched = schedulers(classes);
        let mut random = Random::new(case.seed);
        let mut flat = Flat {
            conf: Conf::new(case.instances, case.rate, case.burst_ns, FRAME, classes),
            link: Link::default(),
            instances: (0..n).map(|n| Instance::new(n as u32, &sched, START_NS)).collect(),
            backlogged,
            bytes,
            sent: Vec::new(),
        };
        (0..n).for_each(|n| flat.begin_backlog(n, flat.backlogged[n], START_NS, &mut random));
        World::of(stepped, flat, DEQUEUE, random)
    }

    /// An instance always has packets of these classes from now on.
    pub fn set_backlogged(&mut self, n: usize, classes: u64) {
        let more = classes & !self.backlogged[n];
        self.backlogged[n] = classes;
        // The call must end before the scheduler may be touched.
        self.finish(n);
        let now_ns = self.now_ns;
        self.touch(|flat, random| flat.begin_backlog(n, more, now_ns, random));
        if more != 0 {
            self.wake(n);
        }
    }

    /// All instances end, interleaved at random.
    pub fn stop_all(&mut self) {
        self.call_all(STOP);
    }

    /// Another configuration takes force in all instances.
    pub fn renew_all(&mut self, rate: u64, burst_ns: u64, classes: &[Class]) {
        self.conf = Conf::new(self.instances.len() as u32, rate, burst_ns, FRAME, classes);
        self.call_all(RENEW);
        let (sched, now_ns) = (schedulers(classes), self.now_ns);
        for n in 0..self.instances.len() {
            self.instances[n].scheduler().configure(&sched, now_ns);
            self.wake(n);
        }
    }
}
