//! PIFO (Sivaraman et al., SIGCOMM 2016), and its rank functions.

use crate::{
    cases::{Arrival, Case, ClassPolicy, Phase, Policy, Rate},
    laws,
    order::MONOTONIC,
    priority_queue::{PriorityQueue, Ranked, is_aside},
    traces,
    world::{CLASSES, Event, Packet, World, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::Core;

const KIND: [u32; 1] = [abi::SL_PIFO];
const MOSTLY: [u32; 4] = [abi::SL_PIFO, abi::SL_PIFO, abi::SL_PIFO, abi::SL_ROUND_ROBIN];

laws! {
    leaves_by_rank: traces::of(KIND).ceilings().peaks().policing().framing().lateness().worn();
    takes_over_what_is_queued: traces::of(MOSTLY).ranks(MONOTONIC).ceilings().peaks().policing().framing().changes();
    heavy_classes_move_on: Heavy;
    is_a_stable_priority_queue: traces::of(KIND).ceilings().peaks().policing().framing().lateness().worn();
}

/// Runs a case beside a model of the queue. `leaves` sees each packet that leaves a PIFO, while the model still holds it.
fn beside_a_queue(
    core: &'static Core,
    case: &Case,
    mut leaves: impl FnMut(&World, &PriorityQueue, Ranked) -> TestCaseResult,
) -> TestCaseResult {
    let mut model = None;
    run(core, case, |world, event| {
        let queue = model.get_or_insert_with(|| PriorityQueue::new(world));
        if world.policy.kind != abi::SL_PIFO {
            return Ok(());
        }
        match event {
            Event::Arrived(packet, Ok(())) if !is_aside(world.policy, packet.class) => queue.push(world, packet),
            Event::Arrived(packet, Ok(())) => rank_head(world, queue, packet.class),
            // Classes that have tokens again.
            Event::Asking => (0..CLASSES).for_each(|class| rank_head(world, queue, class)),
            Event::Sent(packet) => {
                let Packet { class, number, .. } = *packet;
                let Some(ranked) = queue.find(number) else {
                    return Err(TestCaseError::fail(format!("{packet:?} leaves, and may not yet")));
                };
                if queue.determined {
                    leaves(world, queue, ranked)?;
                }
                queue.take(ranked, world.queues[class].is_empty());
                rank_head(world, queue, class);
            }
            Event::Cleared(_) => queue.clear(),
            Event::Configured => {
                // All are ranked once more, class by class.
                queue.clear();
                for class in (0..CLASSES).filter(|&class| !is_aside(world.policy, class)) {
                    world.queues[class].iter().for_each(|packet| queue.push(world, packet));
                }
                (0..CLASSES).for_each(|class| rank_head(world, queue, class));
            }
            _ => {}
        }
        Ok(())
    })
}

/// The first packet of a class with a ceiling is ranked when there are tokens for it.
fn rank_head(world: &World, queue: &mut PriorityQueue, class: usize) {
    if is_aside(world.policy, class) && world.is_ready(class) && !queue.stands(class) {
        queue.push(world, &world.queues[class][0]);
    }
}

/// Whenever a packet of rank r leaves, no packet that is ranked has a rank of r - 2^rank_shift or less, as long as the
/// ranks that are queued at one time span less than the ring.
fn leaves_by_rank(core: &'static Core, case: &Case) -> TestCaseResult {
    beside_a_queue(core, case, |world, queue, leaving| {
        for other in queue.ranked().filter(|_| queue.fits) {
            let before = leaving.rank.wrapping_sub(other.rank) as i64;
            prop_assert!(before < 1 << world.policy.rank_shift, "{leaving:?} leaves before {other:?}");
        }
        Ok(())
    })
}

/// The packet that leaves is the first of an exact priority queue over buckets of 2^rank_shift ranks: first in first out within
/// a bucket. A rank that is beyond the ring goes to its end; one that is before it, to its beginning.
fn is_a_stable_priority_queue(core: &'static Core, case: &Case) -> TestCaseResult {
    beside_a_queue(core, case, |_, queue, leaving| {
        let first = queue.first().expect("one leaves");
        prop_assert_eq!(leaving.number, first.number, "{:?} leaves before {:?}", leaving, first);
        Ok(())
    })
}

/// The same where policies change while packets are queued: those that are there are ranked by the new one, in the order
/// of their classes' FIFOs. (That is the order of arrival, for ranks that do not decrease within a class.)
fn takes_over_what_is_queued(core: &'static Core, case: &Case) -> TestCaseResult {
    is_a_stable_priority_queue(core, case)
}

/// Class 0, of weight 1, has a queue. Class 1, of great weight, comes back whenever its packet has just left, so it never
/// has a queue.
struct Heavy;

impl Heavy {
    fn cases(self) -> BoxedStrategy<Case> {
        let weights = (2_000u32..20_000, 1_000u32..=65_000);
        (weights, prop::collection::vec(1_000u32..9_000, 2..10))
            .prop_map(|((weight, len), queue)| {
                let of = |weight| ClassPolicy { weight, ..ClassPolicy::default() };
                let policy = Policy {
                    kind: abi::SL_PIFO,
                    rank: abi::SL_RANK_START_TIME_FAIR,
                    // 4 KiB of class 0 in a bucket: the window holds a queue of 10,000 packets.
                    rank_shift: 44,
                    link: Some(Rate::whole(8)),
                    classes: vec![of(1), of(weight)],
                    ..Policy::default()
                };
                let waits = queue.into_iter().map(|len| Arrival::of(0, 0, len));
                let comes = Arrival::of(1_000, 1, len);
                let arrivals = waits.chain(std::iter::repeat_n(comes, 2_000)).collect();
                Case { phases: vec![Phase { arrivals, ..Phase::default() }], ..Case::of(policy) }
            })
            .boxed()
    }
}

/// The same where a bucket holds far more virtual time than a MiB of a heavy class: it does not stay in a bucket, but gets
/// on by what it sends.
fn heavy_classes_move_on(core: &'static Core, case: &Case) -> TestCaseResult {
    is_a_stable_priority_queue(core, case)
}
