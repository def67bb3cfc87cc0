//! A port with one queue and a rate, an engine that looks at it from time to time and always has packets for it, and the limit between them.

use proptest::{collection::vec, prelude::*, strategy::BoxedStrategy};
use sluice_core::port_limit::{Bounds, LimitCore, PortLimit};
use std::collections::VecDeque;

/// A time with one rate of the port and one pace of the engine.
#[derive(Debug, Clone, Copy)]
pub struct Phase {
    /// Time of the port for a byte, in 1/1024 ns; 0: it has sent a packet when it is given.
    pub byte_cost: u64,
    /// The longest time between two looks; the shortest is a quarter of it.
    pub look_ns: u64,
    /// Packets that the engine gives at a look, at most: many, or fewer than a port gets that sends at once.
    pub batch: u32,
}

#[derive(Debug, Clone)]
pub struct Case {
    pub phases: Vec<Phase>,
    /// Lengths of packets, in turn.
    pub lengths: Vec<u32>,
    pub bounds: Bounds,
    pub seed: u64,
}

impl Case {
    /// The length of the longest packet.
    pub fn longest(&self) -> u64 {
        u64::from(self.lengths.iter().copied().max().unwrap_or(0))
    }
}

/// A look of the engine: what it found, and what it did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Look {
    /// The time, ns, counted from the begin of the phase.
    pub at_ns: u64,
    /// The time since the look before.
    pub gap_ns: u64,
    /// The part of that time in which the port had nothing to send.
    pub idle_ns: u64,
    /// Bytes that came back.
    pub came_bytes: u64,
    /// The limit, when packets had come back.
    pub limit_bytes: u64,
    /// Bytes under way when it had given packets.
    pub held_bytes: u64,
    /// Bytes of the packet that was given last; 0: none.
    pub last_bytes: u64,
    /// Packets that were given.
    pub given: u32,
}

/// Cases of so many phases.
pub struct Cases {
    phases: usize,
    at_once: bool,
    narrow: bool,
}

/// Ports that need time.
pub fn slow(phases: usize) -> Cases {
    Cases { phases, at_once: false, narrow: false }
}

/// Ports that have sent a packet when they are given it.
pub fn at_once() -> Cases {
    Cases { phases: 1, at_once: true, narrow: false }
}

impl Cases {
    /// Bounds that bind.
    pub fn narrow(self) -> Cases {
        Cases { narrow: true, ..self }
    }

    pub fn cases(self) -> BoxedStrategy<Case> {
        let Cases { phases, at_once, narrow } = self;
        // From 1 Mbit/s to 1 Gbit/s, evenly by powers.
        let cost = (13u32..23).prop_flat_map(|power| (1u64 << power)..(2u64 << power));
        let cost = if at_once { Just(0).boxed() } else { cost.boxed() };
        let batch = if at_once { 64 } else { 100_000 };
        let phase =
            (cost, 10_000u64..2_000_000).prop_map(move |(byte_cost, look_ns)| Phase { byte_cost, look_ns, batch });
        let bounds = match narrow {
            true => (1u64..20_000, 0u64..100_000)
                .prop_map(|(least, more)| Bounds { least_bytes: least, most_bytes: least + more, hold_ns: 50_000_000 })
                .boxed(),
            false => Just(Bounds { least_bytes: 1514, most_bytes: u64::MAX / 4, hold_ns: 50_000_000 }).boxed(),
        };
        (vec(phase, phases), vec(64u32..=1514, 1..5), bounds, any::<u64>())
            .prop_map(|(phases, lengths, bounds, seed)| Case { phases, lengths, bounds, seed })
            .boxed()
    }
}

/// A random number below n.
fn random(seed: &mut u64, n: u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed % n.max(1)
}

/// The looks of each phase, of which each has so many.
pub fn run(core: &'static LimitCore, case: &Case, looks: usize) -> Vec<Vec<Look>> {
    let mut limit = PortLimit::of(core, &case.bounds, 0);
    let mut seed = case.seed | 1;
    // Packets at the port, and the time at which each has left, in 1/1024 ns.
    let mut port: VecDeque<(u64, u128)> = VecDeque::new();
    let (mut now_ns, mut free_at, mut number) = (0u64, 0u128, 0usize);
    let mut all = Vec::new();
    for phase in &case.phases {
        let begun_ns = now_ns;
        let mut seen = Vec::with_capacity(looks);
        for _ in 0..looks {
            let gap_ns = phase.look_ns - random(&mut seed, phase.look_ns * 3 / 4);
            now_ns += gap_ns;
            let now = u128::from(now_ns) << 10;
            let idle_ns = (now.saturating_sub(free_at) >> 10).min(u128::from(gap_ns)) as u64;
            let mut came_bytes = 0;
            while let Some((bytes, _)) = port.front().filter(|(_, at)| *at <= now) {
                came_bytes += bytes;
                port.pop_front();
            }
            limit.come_back(came_bytes, now_ns);
            let limit_bytes = limit.bytes();
            let (mut given, mut last_bytes) = (0, 0);
            while given < phase.batch && limit.has_room() {
                let bytes = case.lengths[number % case.lengths.len()];
                number += 1;
                limit.give(bytes);
                free_at = free_at.max(now) + u128::from(bytes) * u128::from(phase.byte_cost);
                port.push_back((bytes.into(), free_at));
                (given, last_bytes) = (given + 1, bytes.into());
            }
            let held_bytes = limit.under_way_bytes();
            seen.push(Look {
                at_ns: now_ns - begun_ns,
                gap_ns,
                idle_ns,
                came_bytes,
                limit_bytes,
                held_bytes,
                last_bytes,
                given,
            });
        }
        all.push(seen);
    }
    all
}
