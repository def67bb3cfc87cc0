//! Shares of pipes that always have packets, before a port that refuses.

use crate::{
    laws,
    port::{Shape, Shaper},
    traces,
    traces::{CLASSES, Case, LONGEST},
    world::World,
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_core::{
    backpressure::{BackpressureCore, Lists},
    pipes::{Profile, queue_number},
};
use std::collections::BTreeMap;

laws! {
    pipes_share_a_class_equally: traces::of(0);
    pipes_share_classes_equally: traces::of(0);
    visits_for_other_classes_change_shares_little: traces::of(0);
}

/// Bytes of a turn, and those of a packet on the wire.
const TURN: u64 = 1514 + LONGEST as u64 + 24;

fn lists(room: u32, burst_pkts: u32) -> Lists {
    Lists { room_pkts: [room; CLASSES], burst_pkts }
}

/// Numbers from a seed.
fn numbers(case: &Case) -> impl FnMut() -> u32 {
    let mut random = case.seed;
    move || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        random >> 8
    }
}

/// Bytes on the wire that these queues have sent, each of which always has packets, until the port has sent so many; and beside them of others, which get a packet
/// from time to time.
fn backlogged(
    core: &'static BackpressureCore,
    case: &Case,
    port: Shape,
    queues: &[u32],
    beside: &[u32],
    count: usize,
) -> Result<BTreeMap<u32, u64>, TestCaseError> {
    let mut next = numbers(case);
    let (room, burst) = (1 + next() % 8, 1 + next() % 8);
    let pipes: Vec<u32> = queues.iter().map(|queue| queue / 16).collect();
    let mut world = World::of(core, &lists(room, burst), port, &pipes, &Profile::of(10_000));
    let short = next() % 2 == 0;
    let mut bytes = move || if short { 64 } else { 64 + next() % 1451 };
    for queue in queues {
        for _ in 0..80 {
            world.arrive(*queue, bytes())?;
        }
    }
    let (mut sent, mut seen, mut beside_at) = (BTreeMap::new(), 0, 0);
    while seen < count {
        world.rounds()?;
        for at in seen..world.sent.len() {
            let queue = world.sent[at].1.queue;
            *sent.entry(queue).or_insert(0) += u64::from(world.sent[at].1.bytes + 24);
            if !beside.contains(&queue) {
                world.arrive(queue, bytes())?;
            }
        }
        if seen / 7 < world.sent.len() / 7 && !beside.is_empty() {
            beside_at += 1;
            world.arrive(beside[beside_at % beside.len()], 64)?;
        }
        seen = world.sent.len();
        let next_ns = world.port.next_ns();
        prop_assert!(next_ns.is_some(), "the port has packets");
        world.advance(next_ns.unwrap_or(0), false)?;
    }
    Ok(sent)
}

fn spread(sent: impl Iterator<Item = u64> + Clone) -> u64 {
    sent.clone().max().unwrap_or(0) - sent.min().unwrap_or(0)
}

/// So many pipes side by side, with a queue of this class each.
fn side_by_side(count: u32, queue: u32) -> Vec<u32> {
    (0..count).map(|pipe| queue_number(100 + pipe, queue)).collect()
}

/// Pipes that always have packets of one class send the same number of bytes, but for a turn and a packet each.
fn pipes_share_a_class_equally(core: &'static BackpressureCore, case: &Case) -> TestCaseResult {
    let count = 3 + case.seed % 60;
    let queues = side_by_side(count, case.seed / 64 % 16);
    let port = Shape { room_pkts: [1 + case.seed / 1024 % 4; CLASSES], shaper: Shaper::Strict(1000) };
    let sent = backlogged(core, case, port, &queues, &[], 60 * count as usize)?;
    let spread = spread(queues.iter().map(|queue| sent.get(queue).copied().unwrap_or(0)));
    prop_assert!(spread <= 2 * TURN, "pipes are {} bytes apart", spread);
    Ok(())
}

/// The same, if pipes have packets of three classes, which the port sends at different rates.
fn pipes_share_classes_equally(core: &'static BackpressureCore, case: &Case) -> TestCaseResult {
    let count = 3 + case.seed % 30;
    let classes = [case.seed / 32 % 4, 4 + case.seed / 128 % 4, 12];
    let queues: Vec<u32> = classes.iter().flat_map(|class| side_by_side(count, *class)).collect();
    let mut next = numbers(case);
    let cost_ns = [(); CLASSES].map(|()| 200 + u64::from(next() % 2000));
    let port = Shape { room_pkts: [2; CLASSES], shaper: Shaper::Classes(cost_ns) };
    let sent = backlogged(core, case, port, &queues, &[], 180 * count as usize)?;
    let of = |pipe: &u32| classes.iter().filter_map(|class| sent.get(&queue_number(100 + pipe, *class))).sum();
    let spread = spread((0..count).map(|pipe| of(&pipe)).collect::<Vec<u64>>().into_iter());
    prop_assert!(spread <= 4 * TURN, "pipes are {} bytes apart", spread);
    Ok(())
}

/// Packets of an early class that a few pipes have from time to time change little how pipes share a later one, which is held back most of the
/// time: each pipe has 60 % of what the first of them has, but for two turns, and for the bytes of the early packets.
fn visits_for_other_classes_change_shares_little(core: &'static BackpressureCore, case: &Case) -> TestCaseResult {
    let count = 8 + case.seed % 50;
    let queues = side_by_side(count, 12);
    let beside: Vec<u32> = (0..2).map(|of| queue_number(100 + (case.seed / 64 + of * 5) % count, 1)).collect();
    let port = Shape { room_pkts: [2; CLASSES], shaper: Shaper::Strict(1000) };
    let sent = backlogged(core, case, port, &queues, &beside, 80 * count as usize)?;
    let of = |queue: &u32| sent.get(queue).copied().unwrap_or(0);
    let most = queues.iter().map(of).max().unwrap_or(0);
    for queue in &queues {
        let early = of(&queue_number(queue / 16, 1));
        prop_assert!(10 * (of(queue) + early + 4 * TURN) >= 6 * most, "queue {} has {} of {}", queue, of(queue), most);
    }
    Ok(())
}
