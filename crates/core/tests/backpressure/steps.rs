//! A round takes few steps, however many pipes have packets that are held back.

use crate::{
    laws,
    port::{Shape, Shaper},
    traces,
    traces::{CLASSES, Case},
    world::World,
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_core::{
    backpressure::{BackpressureCore, Lists},
    pipes::{ALL_CLASSES, Packet, Profile, queue_number},
};

laws! {
    a_round_takes_few_steps: traces::of(0);
}

/// Words that are searched and pipes that do not send; pipes whose turn begins; packets that are put into a list, and those that are taken out of it, before
/// and after a dequeue of 64.
const MOST: u64 = 128 + (64 + 128 / 4 + 16) + 64 + (64 + CLASSES as u64 * 32);

/// So many that their words are more than a call searches.
const PIPES: u32 = 20_000;

/// 20,000 pipes have packets of classes that the port takes none of, and a few have others. All rounds are bounded, and when it is known which classes are
/// held back, a round in which nothing may leave takes next to no step.
fn a_round_takes_few_steps(core: &'static BackpressureCore, case: &Case) -> TestCaseResult {
    let pipes: Vec<u32> = (0..PIPES).collect();
    let mut port = Shape { room_pkts: [1 << 20; CLASSES], shaper: Shaper::Strict(1000) };
    port.room_pkts[5..].fill(0);
    let lists = Lists { room_pkts: [16 + case.seed % 16; CLASSES], burst_pkts: 8 + case.seed / 16 % 16 };
    let mut world = World::of(core, &lists, port, &pipes, &Profile::of(10));
    for chunk in pipes.chunks(64) {
        let mut packets: Vec<Packet> = chunk
            .iter()
            .map(|pipe| Packet {
                queue: queue_number(*pipe, 5 + case.seed.wrapping_add(*pipe) % 3),
                slot: 0,
                len_bytes: 200,
            })
            .collect();
        world.pipes.enqueue(&mut packets, world.now_ns);
    }
    let steps = |world: &mut World, got: &mut u32| -> Result<u64, TestCaseError> {
        let before = core.pipes().steps();
        *got = world.round(64, ALL_CLASSES)?;
        Ok(core.pipes().steps() - before)
    };
    let mut got = 0;
    // Until the lists of all held classes are full.
    for _ in 0..600 {
        let taken = steps(&mut world, &mut got)?;
        prop_assert!(got == 0 || taken > 0, "steps are not counted");
        prop_assert!(taken <= MOST, "a round takes {} steps", taken);
        world.now_ns += 1000;
    }
    prop_assert_eq!(got, 0);
    let vain = steps(&mut world, &mut got)?;
    prop_assert!(vain <= 4, "a round without anything to send takes {} steps", vain);
    for visit in 0..20 {
        let pipe = pipes[(case.seed.wrapping_mul(visit + 1) % PIPES) as usize];
        prop_assert!(world.arrive(queue_number(pipe, visit % 5), 200)?);
        let before = world.taken.len();
        let taken = steps(&mut world, &mut got)?;
        prop_assert!(taken <= 32, "a round with one packet takes {} steps", taken);
        prop_assert_eq!(world.taken.len(), before + 1, "the port has it at once");
    }
    // Turns of all pipes pause, as their late packets are held back; and those of some, as a class has used up its allowance.
    for chunk in pipes.chunks(64) {
        for pipe in chunk.iter().chain(chunk) {
            prop_assert!(world.arrive(queue_number(*pipe, 1), 200)?);
        }
        for _ in 0..16 {
            let taken = steps(&mut world, &mut got)?;
            prop_assert!(taken <= MOST, "a round takes {} steps", taken);
        }
    }
    // A pipe has more packets than may leave in a call.
    let pipe = PIPES - 1 - case.seed % 64;
    while world.arrive(queue_number(pipe, 1), 200)? {}
    for _ in 0..400 {
        steps(&mut world, &mut got)?;
    }
    prop_assert!(world.waiting.is_empty(), "{} packets never leave", world.waiting.len());
    Ok(())
}
