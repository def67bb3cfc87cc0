//! Overload at the scale of the published evaluation: 8 classes, a port of 25 Gbit/s that shapes, and 110 % of that offered. Time is
//! simulated, so figures are the same in each run.
//!
//! Software alone does not know what the port refuses: it sends whatever is there, all classes share one ring of the port in the order in which
//! they come, and what the ring has no room for is lost. With backpressure the port has a queue for each class, which go first in their order.
//! The ring has 4,096 places, and a queue has 64: software that is told what is refused needs no longer ones. That a ring as short as all queues
//! together has less latency and more loss is looked at too.

use crate::{
    port::{Shape, Shaper},
    traces::CLASSES,
    world::World,
};
use sluice_core::{
    backpressure::{BackpressureCore, Lists},
    pipes::{ALL_CLASSES, Packet, Profile, queue_number},
};
use std::collections::VecDeque;

/// The classes that have packets.
const OFFERED: u32 = 8;
const BYTES: u32 = 1400;
/// The time that the port takes for a packet of `BYTES`: 25 Gbit/s.
const PACKET_NS: u64 = 448;
/// The offered load, in hundredths of the rate of the port.
const LOAD: u64 = 110;
/// The time that a turn of the engine takes.
const POLL_NS: u64 = 2000;

#[derive(Debug, Default, Clone, Copy)]
struct Account {
    came: u64,
    sent: u64,
    wait_ns: u64,
}

impl Account {
    fn lost(&self) -> u64 {
        self.came - self.sent
    }
}

#[derive(Debug)]
struct Outcome {
    classes: [Account; OFFERED as usize],
    /// Bytes of each pipe.
    pipes: Vec<u64>,
}

impl Outcome {
    fn new(pipes: u32) -> Outcome {
        Outcome { classes: [Account::default(); OFFERED as usize], pipes: vec![0; pipes as usize] }
    }

    fn sent(&mut self, queue: u32, class: u32, wait_ns: u64) {
        let account = &mut self.classes[class as usize];
        account.sent += 1;
        account.wait_ns += wait_ns;
        self.pipes[(queue / 16) as usize] += u64::from(BYTES);
    }

    /// The mean latency of the first so many classes, us.
    fn mean_us(&self, classes: usize) -> f64 {
        let (sent, wait_ns) =
            self.classes[..classes].iter().fold((0, 0), |(sent, ns), of| (sent + of.sent, ns + of.wait_ns));
        wait_ns as f64 / sent as f64 / 1000.0
    }

    /// Jain's index of the bytes of pipes.
    fn fairness(&self) -> f64 {
        let sum: f64 = self.pipes.iter().map(|bytes| *bytes as f64).sum();
        let squares: f64 = self.pipes.iter().map(|bytes| (*bytes as f64).powi(2)).sum();
        sum * sum / squares / self.pipes.len() as f64
    }

    /// Loss of each class, in hundredths of what came.
    fn loss(&self) -> [f64; OFFERED as usize] {
        self.classes.map(|of| 100.0 * of.lost() as f64 / of.came as f64)
    }
}

/// Arrivals: pipes have a packet each in turn, in a scrambled order, which changes from round to round. Classes are random, and so is the time between
/// two packets, which is up to twice its mean.
struct Arrivals {
    pipes: u32,
    number: u64,
    next_ps: u64,
    random: u64,
}

impl Arrivals {
    fn new(pipes: u32, now_ns: u64) -> Arrivals {
        Arrivals { pipes, number: 0, next_ps: now_ns * 1000, random: 1 }
    }

    /// The queue and the class of the next packet, if it has come by this time.
    fn next(&mut self, until_ns: u64) -> Option<(u32, u32, u64)> {
        let at_ns = self.next_ps / 1000;
        if at_ns > until_ns {
            return None;
        }
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mean_ps = PACKET_NS * 1000 * 100 / LOAD;
        self.next_ps += ((self.random >> 40) * 2 * mean_ps) >> 24;
        let pipes = u64::from(self.pipes);
        let (round, place) = (self.number / pipes, self.number % pipes);
        // A prime that no number of pipes here is a multiple of.
        let pipe = ((place * 7919 + round * 101) % pipes) as u32;
        let class = (self.random >> 32) as u32 % OFFERED;
        self.number += 1;
        Some((pipe, class, at_ns))
    }
}

/// Queues of the last class that has packets hold so many of them, and those of the others 64.
fn profile(last_pkts: u32) -> Profile {
    let mut profile = Profile::of(64);
    profile.limit_pkts[OFFERED as usize - 1] = last_pkts;
    profile
}

fn world(pipes: u32, last_pkts: u32) -> World {
    let port = Shape { room_pkts: [64; CLASSES], shaper: Shaper::Strict(PACKET_NS) };
    let lists = Lists { room_pkts: [32; CLASSES], burst_pkts: 32 };
    let numbers: Vec<u32> = (0..pipes).collect();
    World::of(BackpressureCore::built_in(), &lists, port, &numbers, &profile(last_pkts))
}

/// With backpressure, for a time in ms, of which the first fifth is not counted.
fn with_backpressure(pipes: u32, last_pkts: u32, ms: u64) -> Outcome {
    let mut world = world(pipes, last_pkts);
    let begin_ns = world.now_ns;
    let (count_ns, end_ns) = (begin_ns + ms * 200_000, begin_ns + ms * 1_000_000);
    let mut arrivals = Arrivals::new(pipes, begin_ns);
    let mut outcome = Outcome::new(pipes);
    while world.now_ns < end_ns {
        let now_ns = world.now_ns + POLL_NS;
        world.advance(now_ns, false).expect("slots are right");
        while let Some((pipe, class, _)) = arrivals.next(now_ns) {
            world.arrive(queue_number(pipe, class), BYTES).expect("slots are right");
            if now_ns >= count_ns {
                outcome.classes[class as usize].came += 1;
            }
        }
        world.rounds().expect("rounds end");
        for (at_ns, frame) in world.sent.drain(..) {
            if frame.arrived_ns >= count_ns {
                outcome.sent(frame.queue, frame.class, at_ns - frame.arrived_ns);
            }
        }
        world.taken.clear();
    }
    // Packets that still wait are not lost.
    for frame in world.waiting.values().filter(|frame| frame.arrived_ns >= count_ns) {
        outcome.classes[frame.class as usize].came -= 1;
    }
    while let Some((at_ns, frame)) = world.port.sent(u64::MAX) {
        if frame.arrived_ns >= count_ns {
            outcome.sent(frame.queue, frame.class, at_ns - frame.arrived_ns);
        }
    }
    outcome
}

/// Software alone, before a port with one ring of so many places.
fn alone(pipes: u32, last_pkts: u32, ms: u64, ring_pkts: usize) -> Outcome {
    let mut world = world(pipes, last_pkts);
    let begin_ns = world.now_ns;
    let (count_ns, end_ns) = (begin_ns + ms * 200_000, begin_ns + ms * 1_000_000);
    let mut arrivals = Arrivals::new(pipes, begin_ns);
    let mut outcome = Outcome::new(pipes);
    let mut arrived_ns = vec![0; 1 << 20];
    let mut ring: VecDeque<(u32, u64)> = VecDeque::new();
    let mut free_ns = begin_ns;
    let mut now_ns = begin_ns;
    let mut out = [Packet { queue: 0, slot: 0, len_bytes: 0 }; 64];
    while now_ns < end_ns || !ring.is_empty() {
        now_ns += POLL_NS;
        while let Some((queue, came_ns)) = ring.front().copied().filter(|_| free_ns + PACKET_NS <= now_ns) {
            ring.pop_front();
            free_ns = free_ns.max(came_ns) + PACKET_NS;
            if came_ns >= count_ns {
                outcome.sent(queue, queue % 16, free_ns - came_ns);
            }
        }
        if ring.is_empty() {
            free_ns = free_ns.max(now_ns - PACKET_NS);
        }
        if now_ns >= end_ns {
            continue;
        }
        while let Some((pipe, class, _)) = arrivals.next(now_ns) {
            let queue = queue_number(pipe, class);
            let mut packet = [Packet { queue, slot: 0, len_bytes: BYTES }];
            if now_ns >= count_ns {
                outcome.classes[class as usize].came += 1;
            }
            if world.pipes.enqueue(&mut packet, now_ns) == 0 {
                arrived_ns[packet[0].slot as usize] = now_ns;
            }
        }
        loop {
            let got = world.pipes.dequeue(&mut out, ALL_CLASSES, None, now_ns);
            for packet in &out[..got] {
                if ring.len() < ring_pkts {
                    ring.push_back((packet.queue, arrived_ns[packet.slot as usize]));
                }
            }
            if got == 0 {
                break;
            }
        }
    }
    outcome
}

fn show(name: &str, pipes: u32, outcome: &Outcome) {
    println!(
        "{pipes} pipes, {name}: mean of all {:.1} us, of all but the last {:.1} us; fairness {:.5}; loss {:.2?} %",
        outcome.mean_us(OFFERED as usize),
        outcome.mean_us(OFFERED as usize - 1),
        outcome.fairness(),
        outcome.loss()
    );
}

/// Runs both, and checks what holds at any scale: latency of all classes but the last, loss, and fairness.
fn compare(pipes: u32, last_pkts: u32, ms: u64) -> (Outcome, Outcome) {
    let alone = alone(pipes, last_pkts, ms, 4096);
    let with = with_backpressure(pipes, last_pkts, ms);
    show("software alone", pipes, &alone);
    show("with backpressure", pipes, &with);
    let early = OFFERED as usize - 1;
    assert!(20.0 * with.mean_us(early) <= alone.mean_us(early), "latency of all classes but the last");
    assert!(
        with.classes[..early].iter().all(|class| class.lost() == 0),
        "only the last class loses: {:?}",
        with.loss()
    );
    assert!(with.classes[early].lost() > 0, "there is overload");
    assert!(alone.classes.iter().all(|class| class.lost() > 0), "software alone loses of all: {:?}", alone.loss());
    assert!(with.fairness() >= 0.99 * alone.fairness().max(0.99), "{} and {}", with.fairness(), alone.fairness());
    (alone, with)
}

/// 200 pipes, whose queues of the last class hold a packet: the mean latency of all packets is at most 1/11.
#[test]
fn few_pipes_wait_an_eleventh() {
    let (alone, with) = compare(200, 1, 200);
    let all = OFFERED as usize;
    assert!(11.0 * with.mean_us(all) <= alone.mean_us(all), "{} and {}", with.mean_us(all), alone.mean_us(all));
    let sent = |of: &Outcome| of.classes.iter().map(|class| class.sent).sum::<u64>() as f64;
    assert!((sent(&with) / sent(&alone) - 1.0).abs() < 0.01, "the port is as busy");
    // A short ring is no way out: latency is lower, and each class loses.
    let short = self::alone(200, 1, 200, 512);
    show("software alone, a ring of 512", 200, &short);
    assert!(short.classes.iter().all(|class| class.lost() > 0));
    assert!(short.mean_us(all - 1) > 5.0 * with.mean_us(all - 1));
}

/// 32,000 pipes, as many as in the published evaluation. Each has a packet of the last class in the scheduler, so the mean of all packets is that
/// of this backlog, and is not compared.
#[test]
fn many_pipes_lose_of_the_last_class_only() {
    compare(32_000, 1, 300);
}
