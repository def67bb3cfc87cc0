//! Nothing sends more than its rate, and what always has packets reaches it.

use crate::{
    laws, traces,
    traces::{Case, LONGEST, OVERHEAD, PIPES},
    world::{Event, TICK_NS, World, class_of, is_second, pipe_of, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::pipes::{ALL_CLASSES, Bucket, PipesCore, Profile, queue_number};
use std::collections::BTreeMap;

laws! {
    nothing_exceeds_its_rate: traces::of(150).rates().masks().edits();
    no_class_exceeds_its_limit: traces::of(150).class_limits();
    pipes_reach_their_rate: traces::of(0);
    classes_reach_their_limit: traces::of(0);
    classes_of_subports_reach_their_limit: traces::of(0);
}

/// Bytes that a node has sent ahead of its rate.
#[derive(Debug, Clone, Copy)]
struct Ahead {
    bytes: f64,
    rate: u64,
    since_ns: u64,
}

impl Ahead {
    fn settle(&mut self, now_ns: u64) {
        self.bytes = (self.bytes - bytes_of(self.rate, now_ns - self.since_ns)).max(0.0);
        self.since_ns = now_ns;
    }
}

/// Nodes by a name, with what they have sent ahead of their rates.
#[derive(Default)]
struct Nodes(BTreeMap<(&'static str, u32), Ahead>);

impl Nodes {
    /// A node of this rate and burst sends a packet: it may be ahead by the burst before.
    fn sends(&mut self, name: (&'static str, u32), rate: u64, burst: f64, bytes: u32, now_ns: u64) -> TestCaseResult {
        let node = self.0.entry(name).or_insert(Ahead { bytes: 0.0, rate, since_ns: now_ns });
        node.settle(now_ns);
        // Costs are rounded to 2^-14 ns a byte, and packets to 1/64 ns.
        prop_assert!(
            node.bytes <= burst * 1.001 + 1.0,
            "{:?} is {} bytes ahead, its burst is {}",
            name,
            node.bytes,
            burst
        );
        node.bytes += f64::from(bytes);
        Ok(())
    }
}

fn bytes_of(rate: u64, ns: u64) -> f64 {
    rate as f64 / 8e9 * ns as f64
}

/// Port, subports and pipes send no more than rate * t + burst + one packet in any window, also if pipes get other rates meanwhile.
fn nothing_exceeds_its_rate(core: &'static PipesCore, case: &Case) -> TestCaseResult {
    let mut nodes = Nodes::default();
    run(core, case, &mut |world, event| {
        let (queue, bytes) = match *event {
            // Its debt stays, in bytes.
            Event::Configured { pipe } => {
                match (nodes.0.get_mut(&("pipe", pipe)), world.conf[&pipe].bits_per_second) {
                    (Some(node), Some(rate)) => {
                        node.settle(world.now_ns);
                        node.rate = rate;
                    }
                    (_, None) => drop(nodes.0.remove(&("pipe", pipe))),
                    (None, _) => {}
                }
                return Ok(());
            }
            Event::Sent { queue, bytes, .. } => (queue, bytes + OVERHEAD),
            _ => return Ok(()),
        };
        let (pipe, second) = (pipe_of(queue), is_second(pipe_of(queue)));
        let mut sends = |name, of: Option<Bucket>| match of {
            Some(Bucket { bits_per_second, burst_ns }) => {
                nodes.sends(name, bits_per_second, bytes_of(bits_per_second, burst_ns), bytes, world.now_ns)
            }
            None => Ok(()),
        };
        sends(("port", 0), case.port)?;
        sends(("subport", u32::from(second)), case.subports[usize::from(second)])?;
        let burst_ns = u64::from(world.conf[&pipe].conf().burst_ticks) << abi::SL_WHEEL_TICK_BITS;
        sends(
            ("pipe", pipe),
            world.conf[&pipe].bits_per_second.map(|bits_per_second| Bucket { bits_per_second, burst_ns }),
        )
    })?;
    Ok(())
}

/// A class of a pipe sends no more than rate * t, two periods and one packet in any window; a class of a subport no more than rate * t, its burst,
/// the advance and one packet.
fn no_class_exceeds_its_limit(core: &'static PipesCore, case: &Case) -> TestCaseResult {
    const ADVANCE: f64 = 16384.0;
    let mut nodes = Nodes::default();
    run(core, case, &mut |world, event| {
        let Event::Sent { queue, bytes, .. } = *event else { return Ok(()) };
        let (pipe, class, bytes) = (pipe_of(queue), class_of(queue), bytes + OVERHEAD);
        let profile = world.profile(pipe);
        if let Some(rate) = profile.classes[class as usize] {
            let periods = 2.0 * bytes_of(rate, 1 << profile.period_bits()) + 2.0;
            nodes.sends(("class of a pipe", queue_number(pipe, class)), rate, periods, bytes, world.now_ns)?;
        }
        match case.subport_classes[class as usize] {
            Some(rate) if !is_second(pipe) => {
                let burst = bytes_of(rate, 1_000_000) + ADVANCE;
                nodes.sends(("class of a subport", class), rate, burst, bytes, world.now_ns)
            }
            _ => Ok(()),
        }
    })?;
    Ok(())
}

/// The share by which what a pipe's queue sends differs from a rate, if it always has packets of this length. A wheel may end a period so much
/// late, ns.
fn difference(world: &mut World, queue: u32, bytes: u32, rate: u64, late_ns: u64) -> Result<f64, TestCaseError> {
    let nothing: &mut crate::world::Observer<'_> = &mut |_, _| Ok(());
    let on_wire = f64::from(bytes + OVERHEAD);
    // The burst at the beginning; then so much that lateness and a packet are no more than 0.05 %.
    let burst = 20.0 + (2.0 * bytes_of(rate, 100_000 + late_ns) / on_wire);
    let packets = 1500.0 + bytes_of(rate, 2500 * late_ns) / on_wire;
    let (mut left, mut start_ns) = (0.0, None);
    world.arrive(&[(queue, bytes); 40], nothing)?;
    let patience_ns = 1.5e9 * (burst + packets) * on_wire * 8.0 / rate as f64;
    let begin_ns = world.now_ns;
    while start_ns.is_none() || left < packets {
        prop_assert!(((world.now_ns - begin_ns) as f64) < patience_ns, "it hardly sends");
        let got = world.take(32, ALL_CLASSES, None, nothing)?;
        world.arrive(&vec![(queue, bytes); got], nothing)?;
        left += got as f64;
        if got == 32 {
            continue;
        }
        let wake_ns = world.pipes.wake_ns(ALL_CLASSES, world.now_ns);
        world.now_ns = wake_ns.ok_or_else(|| TestCaseError::fail("it waits for nothing"))?;
        if start_ns.is_none() && left >= burst {
            (start_ns, left) = (Some(world.now_ns), 0.0);
        }
    }
    let took_ns = world.now_ns - start_ns.unwrap_or(0);
    Ok((left * on_wire / bytes_of(rate, took_ns) - 1.0).abs())
}

/// A pipe that always has packets sends at its rate, to 0.1 %.
fn pipes_reach_their_rate(core: &'static PipesCore, case: &Case) -> TestCaseResult {
    let rate = 31_000 * [1, 1000, 20_000][case.seed as usize % 3] + u64::from(case.seed) * 7 % 30_000;
    let mut case = case.clone();
    (case.pipes[2], case.profiles[0]) = ((Some(rate), 1), Profile::of(100));
    let mut world = World::new(core, &case);
    let off = difference(&mut world, queue_number(PIPES[2], 5), LONGEST - case.seed / 7 % 900, rate, TICK_NS)?;
    prop_assert!(off < 0.001, "{} bit/s are missed by {}", rate, off);
    Ok(())
}

/// A class that always has packets sends at its limit, to 0.1 %, also if a period's credit is less than a packet or a byte.
fn classes_reach_their_limit(core: &'static PipesCore, case: &Case) -> TestCaseResult {
    let rate = 20_000 * [1, 200, 4000][case.seed as usize % 3] + u64::from(case.seed) * 7 % 10_000;
    let class = case.seed / 3 % abi::SL_PIPE_CLASSES;
    let mut case = case.clone();
    let mut profile = Profile::of(100);
    profile.classes[class as usize] = Some(rate);
    // Sometimes another class is far faster, so that a period is short.
    let faster = (case.seed & 64 != 0).then_some(1_000_000_000);
    profile.classes[(class as usize + 1) % profile.classes.len()] = faster;
    let period_ns = 1 << profile.period_bits();
    (case.pipes[2], case.profiles[0]) = ((None, 1), profile);
    let mut world = World::new(core, &case);
    let queue = queue_number(PIPES[2], class);
    let off = difference(&mut world, queue, LONGEST - case.seed / 7 % 900, rate, period_ns + TICK_NS)?;
    prop_assert!(off < 0.001, "{} bit/s are missed by {}", rate, off);
    Ok(())
}

/// A class of a subport that always has packets sends at its limit, to 0.1 %.
fn classes_of_subports_reach_their_limit(core: &'static PipesCore, case: &Case) -> TestCaseResult {
    let rate = 20_000 * [1, 200, 20_000][case.seed as usize % 3] + u64::from(case.seed) * 7 % 10_000;
    let class = case.seed / 3 % abi::SL_PIPE_CLASSES;
    let mut case = case.clone();
    case.subport_classes[class as usize] = Some(rate);
    (case.pipes[2], case.profiles[0]) = ((None, 1), Profile::of(100));
    let mut world = World::new(core, &case);
    let queue = queue_number(PIPES[2], class);
    let off = difference(&mut world, queue, LONGEST - case.seed / 7 % 900, rate, 1_000_000)?;
    prop_assert!(off < 0.001, "{} bit/s are missed by {}", rate, off);
    Ok(())
}
