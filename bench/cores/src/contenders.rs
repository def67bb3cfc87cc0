//! One and two processors that send packets natively, each as fast as it can.

use crate::processor::{pin, thread_ns};
use sluice_abi as abi;
use sluice_core::shared_credit::{Class, Conf, Instance, Link};
use sluice_core::{Scheduler, Verdict};
use std::cell::UnsafeCell;
use std::hint::{black_box, spin_loop};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The classes that packets are of, in turn.
pub const CLASSES: u32 = 8;
/// Packets that wait in each class.
const WAITING: u32 = 8;
const FRAME: u32 = 1514;
/// A rate that processors do not reach.
const RATE_BPS: u64 = 10_000_000_000_000;
/// Steps of work for a packet that processors can do at the same time.
pub const OUTSIDE: [u32; 2] = [0, 400];
/// How long a measurement takes.
const LENGTH: Duration = Duration::from_millis(150);
const LINE_LENGTH: Duration = Duration::from_millis(2);
const LINE_RUNS: u32 = 30;
/// Looks at a word before the clock is looked at.
const SPINS: u32 = 1000;
/// Packets between two looks at the clock.
const TURN: u32 = 16;

/// A scheduler that all processors use, one at a time.
struct Locked {
    taken: AtomicBool,
    scheduler: UnsafeCell<Scheduler>,
}

// SAFETY: the scheduler is used by the one who has set `taken`, alone.
unsafe impl Sync for Locked {}

impl Locked {
    fn with<T>(&self, work: impl FnOnce(&mut Scheduler) -> T) -> T {
        while self.taken.swap(true, Ordering::Acquire) {
            while self.taken.load(Ordering::Relaxed) {
                spin_loop();
            }
        }
        // SAFETY: as above.
        let done = work(unsafe { &mut *self.scheduler.get() });
        self.taken.store(false, Ordering::Release);
        done
    }
}

/// Calls `report` with the name of what was measured, its parameter, the number of processors and ns: of a processor for a packet; of a processor
/// for a change of a word that both change in turn (`line`).
pub fn measure(mut report: impl FnMut(&str, u32, u32, f64)) {
    let conf = configuration(FRAME);
    for outside in OUTSIDE {
        for processors in [1, 2] {
            let own = |_| {
                let mut scheduler = filled(&conf);
                move |now_ns| {
                    one_packet(&mut scheduler, now_ns);
                    true
                }
            };
            report("apart", outside, processors, run(processors, outside, LENGTH, own));

            let (link, classes) = (Link::default(), [Class::default(); CLASSES as usize]);
            let shared = Conf::new(processors, RATE_BPS, 0, FRAME, &classes);
            let sharing = |number| {
                let mut instance = Instance::new(number, &conf, 1);
                fill(instance.scheduler());
                let (link, shared) = (&link, &shared);
                move |now_ns| {
                    // It waits where the other processor is ahead of this one's last look at the clock.
                    let Verdict::Send { class, len_bytes, .. } = instance.dequeue(link, shared, now_ns) else {
                        return false;
                    };
                    enqueue(instance.scheduler(), class, len_bytes, now_ns);
                    true
                }
            };
            report("shared", outside, processors, run(processors, outside, LENGTH, sharing));

            let locked = Locked { taken: AtomicBool::new(false), scheduler: UnsafeCell::new(filled(&conf)) };
            let locking = |_| {
                let locked = &locked;
                move |now_ns| {
                    locked.with(|scheduler| one_packet(scheduler, now_ns));
                    true
                }
            };
            report("locked", outside, processors, run(processors, outside, LENGTH, locking));
        }
    }
    let word = AtomicU64::new(0);
    let alternating = |number| {
        let word = &word;
        move |_| {
            let is_own = || word.load(Ordering::Acquire) % 2 == u64::from(number);
            let found = (0..SPINS).any(|_| is_own());
            if found {
                word.fetch_add(1, Ordering::Release);
            }
            found
        }
    };
    // The shortest of many short times, so that what else the machine does is not in it.
    let shortest = (0..LINE_RUNS).map(|_| run(2, 0, LINE_LENGTH, alternating)).fold(f64::MAX, f64::min);
    report("line", 0, 2, shortest);
}

/// A scheduler of classes with FIFOs and equal weights, and without rates.
pub fn configuration(quantum_bytes: u32) -> Box<abi::sl_sched_conf> {
    let mut conf: Box<abi::sl_sched_conf> = abi::boxed_zeroed();
    (conf.kind, conf.generation, conf.slots) = (abi::SL_WEIGHTED_FAIR_QUEUING, 1, 4096);
    for class in &mut conf.classes {
        (class.weight, class.limit_pkts, class.limit_bytes) = (1, 1000, 10_000_000);
        class.quantum_bytes = quantum_bytes;
    }
    conf
}

fn filled(conf: &abi::sl_sched_conf) -> Scheduler {
    let mut scheduler = Scheduler::new(conf, 1);
    fill(&mut scheduler);
    scheduler
}

fn fill(scheduler: &mut Scheduler) {
    for n in 0..CLASSES * WAITING {
        enqueue(scheduler, n % CLASSES, FRAME, 1);
    }
}

fn enqueue(scheduler: &mut Scheduler, class: u32, len_bytes: u32, now_ns: u64) {
    scheduler.enqueue(class, len_bytes, 1, now_ns).expect("there is room");
}

/// A packet leaves, and another one comes.
fn one_packet(scheduler: &mut Scheduler, now_ns: u64) {
    let Verdict::Send { class, len_bytes, .. } = scheduler.dequeue(now_ns) else { panic!("there is no rate") };
    enqueue(scheduler, class, len_bytes, now_ns);
}

/// Calls `packet` again and again on so many processors, with steps of other work between. It returns whether it has sent one. Returns the processor time
/// of a packet, ns.
fn run<F: FnMut(u64) -> bool>(processors: u32, outside: u32, length: Duration, begin: impl Fn(u32) -> F + Sync) -> f64 {
    let (start, begun, stop) = (Barrier::new(processors as usize), Instant::now(), AtomicBool::new(false));
    let packets: f64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..processors)
            .map(|number| {
                let (start, begin, stop) = (&start, &begin, &stop);
                scope.spawn(move || {
                    pin(number as usize);
                    let mut packet = begin(number);
                    start.wait();
                    let (from, before_ns) = (Instant::now(), thread_ns());
                    let mut packets = 0u64;
                    while !stop.load(Ordering::Relaxed) {
                        let now_ns = begun.elapsed().as_nanos() as u64 + 1;
                        for _ in 0..TURN {
                            work(outside);
                            if !packet(now_ns) {
                                break;
                            }
                            packets += 1;
                        }
                        if from.elapsed() >= length {
                            // All end together, so that none is measured alone.
                            stop.store(true, Ordering::Relaxed);
                        }
                    }
                    packets as f64 / (thread_ns() - before_ns)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("it ends")).sum()
    });
    f64::from(processors) / packets
}

/// Work that touches no memory.
fn work(steps: u32) {
    let mut value = 1u64;
    for _ in 0..steps {
        value = black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}
