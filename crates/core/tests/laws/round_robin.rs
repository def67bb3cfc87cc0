//! Round robin.

use crate::{
    cases::Case,
    laws,
    traces::{self, Greed},
    world::{CLASSES, Event, members, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::Core;

laws! {
    each_other_class_once: traces::of([abi::SL_ROUND_ROBIN]).by_flow().ceilings().peaks().policing().changes().greedy(Greed::Some);
    classes_do_not_starve: traces::of([abi::SL_ROUND_ROBIN]).by_flow().ceilings().peaks().policing().greedy(Greed::Some);
}

/// Between two turns of a class that stays ready, every other class that stays ready has exactly one, and no class has two
/// (Nagle, RFC 970).
fn each_other_class_once(core: &'static Core, case: &Case) -> TestCaseResult {
    // The stints of all classes at each class's last turn, and the turns of all since.
    let mut stints = vec![vec![0; CLASSES]; CLASSES];
    let mut turns = vec![[0; CLASSES]; CLASSES];
    let mut asked = 0u64;
    run(core, case, |world, event| {
        match event {
            Event::Asking => asked = world.ready,
            Event::Sent(packet) => {
                let class = packet.class;
                if stints[class][class] == world.stints[class] {
                    for other in (0..CLASSES).filter(|&other| other != class) {
                        let (count, stayed) = (turns[class][other], asked >> other & 1 == 1);
                        prop_assert!(count <= 1, "class {other} has {count} turns within a round of {class}");
                        if stayed && stints[class][other] == world.stints[other] {
                            prop_assert_eq!(count, 1, "turns of {} within a round of {}", other, class);
                        }
                    }
                }
                turns.iter_mut().for_each(|turns| turns[class] += 1);
                turns[class] = [0; CLASSES];
                for (other, stint) in stints[class].iter_mut().enumerate() {
                    // A class that is not ready now has not been so all the time.
                    *stint = if asked >> other & 1 == 1 { world.stints[other] } else { u64::MAX };
                }
            }
            _ => {}
        }
        Ok(())
    })
}

/// A class that is ready waits for one packet of each other class at most.
fn classes_do_not_starve(core: &'static Core, case: &Case) -> TestCaseResult {
    let (mut asked, mut since, mut waits) = (0u64, [0; CLASSES], [0; CLASSES]);
    run(core, case, |world, event| {
        match event {
            Event::Asking => {
                asked = world.ready;
                for class in world.ready() {
                    if since[class] != world.stints[class] {
                        (since[class], waits[class]) = (world.stints[class], 0);
                    }
                }
            }
            Event::Sent(packet) => {
                for class in members(asked) {
                    waits[class] = if class == packet.class { 0 } else { waits[class] + 1 };
                    let others = world.policy.classes.len() - 1;
                    prop_assert!(waits[class] <= others, "class {class} waits for {} packets", waits[class]);
                }
            }
            _ => {}
        }
        Ok(())
    })
}
