//! Shares of what always has packets.

use crate::{
    laws, traces,
    traces::{Case, LONGEST, OVERHEAD, PIPES},
    world::{Event, World, is_second, pipe_of},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::pipes::{ALL_CLASSES, PipesCore, Profile, queue_number};
use std::collections::BTreeMap;

laws! {
    pipes_share_equally: traces::of(0);
    subports_share_equally: traces::of(0);
    best_effort_shares_by_weight: traces::of(0);
}

const LONGEST_ON_WIRE: u64 = (LONGEST + OVERHEAD) as u64;

/// Bytes on the wire that queues have sent, of which each gets a packet for each that leaves. `number`: of packets that leave.
fn backlogged(
    core: &'static PipesCore,
    case: &Case,
    queues: &[u32],
    number: usize,
    length: &mut dyn FnMut(u32) -> u32,
) -> Result<BTreeMap<u32, u64>, TestCaseError> {
    let mut world = World::new(core, case);
    let nothing: &mut crate::world::Observer<'_> = &mut |_, _| Ok(());
    for queue in queues {
        for _ in 0..40 {
            world.arrive(&[(*queue, length(*queue))], nothing)?;
        }
    }
    let (mut sent, mut left) = (BTreeMap::new(), 0);
    let batch = 1 + case.seed as usize % 40;
    while left < number {
        world.now_ns += 1000;
        let mut gone = Vec::new();
        world.take(batch, ALL_CLASSES, None, &mut |_, event| {
            if let Event::Sent { queue, bytes, .. } = *event {
                gone.push(queue);
                *sent.entry(queue).or_insert(0) += u64::from(bytes + OVERHEAD);
            }
            Ok(())
        })?;
        prop_assert_eq!(gone.len(), batch, "nothing has a limit");
        left += gone.len();
        for queue in gone {
            world.arrive(&[(queue, length(queue))], nothing)?;
        }
    }
    Ok(sent)
}

/// Lengths by a seed: each queue has its own.
fn lengths(case: &Case) -> impl FnMut(u32) -> u32 {
    let mut random = case.seed;
    move |queue| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if queue & 64 == 0 { 64 + (random >> 8) % 200 } else { 64 + (random >> 8) % 1451 }
    }
}

fn spread(sent: impl Iterator<Item = u64> + Clone) -> u64 {
    sent.clone().max().unwrap_or(0) - sent.min().unwrap_or(0)
}

/// Pipes of a subport that always have packets send the same number of bytes, but for a turn and a packet each.
fn pipes_share_equally(core: &'static PipesCore, case: &Case) -> TestCaseResult {
    const TURN: u64 = 1514;
    let queues: Vec<u32> =
        PIPES.iter().filter(|pipe| is_second(**pipe)).map(|pipe| queue_number(*pipe, pipe % 16)).collect();
    let sent = backlogged(core, case, &queues, 3000, &mut lengths(case))?;
    let spread = spread(queues.iter().map(|queue| sent.get(queue).copied().unwrap_or(0)));
    prop_assert!(spread <= 2 * (TURN + LONGEST_ON_WIRE), "pipes are {} bytes apart", spread);
    Ok(())
}

/// Subports that always have packets send the same number of bytes, but for a turn and a packet each.
fn subports_share_equally(core: &'static PipesCore, case: &Case) -> TestCaseResult {
    const TURN: u64 = 32 * 1514;
    let queues: Vec<u32> = PIPES[5..9].iter().map(|pipe| queue_number(*pipe, 2)).collect();
    let sent = backlogged(core, case, &queues, 3000, &mut lengths(case))?;
    let of =
        |second| sent.iter().filter(|(queue, _)| is_second(pipe_of(**queue)) == second).map(|(_, bytes)| bytes).sum();
    let spread = spread([of(false), of(true)].into_iter());
    prop_assert!(spread <= 2 * (TURN + LONGEST_ON_WIRE), "subports are {} bytes apart", spread);
    Ok(())
}

/// Queues of best effort that always have packets share by weight, but for two packets, and for 1 % since costs are rounded.
fn best_effort_shares_by_weight(core: &'static PipesCore, case: &Case) -> TestCaseResult {
    let mut case = case.clone();
    let mut profile = Profile::of(100);
    for (place, weight) in profile.weights.iter_mut().enumerate() {
        *weight = 1 + (case.seed >> (4 * place)) % 16;
    }
    (case.pipes[3], case.profiles[0]) = ((None, 1), profile);
    let queues: Vec<u32> = (12..16).map(|queue| queue_number(PIPES[3], queue)).collect();
    // One of the queues has short packets, another one long ones.
    let mut random = lengths(&case);
    let sent = backlogged(core, &case, &queues, 4000, &mut |queue| match queue % abi::SL_PIPE_QUEUES {
        12 => 64,
        13 => LONGEST,
        _ => random(64),
    })?;
    let each = |queue: &u32| {
        let weight = f64::from(profile.weights[(queue % 4) as usize]);
        (sent.get(queue).copied().unwrap_or(0) as f64 / weight, LONGEST_ON_WIRE as f64 / weight)
    };
    for (first, second) in queues.iter().flat_map(|first| queues.iter().map(move |second| (first, second))) {
        let ((sent, packet), (other, other_packet)) = (each(first), each(second));
        prop_assert!(
            (sent - other).abs() <= 2.0 * (packet + other_packet) + 0.01 * sent.max(other),
            "queues {} and {} have {} and {} bytes for a weight of 1",
            first,
            second,
            sent,
            other
        );
    }
    Ok(())
}
