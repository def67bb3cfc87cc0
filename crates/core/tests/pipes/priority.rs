//! Strict priority of the classes of a pipe, and classes that are held back.

use crate::{
    laws, traces,
    traces::Case,
    world::{Event, class_of, pipe_of, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::pipes::{PipesCore, WAYS};

laws! {
    no_class_overtakes: traces::of(150).rates().masks().edits();
    held_classes_do_not_send: traces::of(150).masks();
    vectors_find_what_the_plain_way_finds: traces::of(0);
}

/// No class of a pipe sends while one before it has packets and may send, if classes have no limits.
fn no_class_overtakes(core: &'static PipesCore, case: &Case) -> TestCaseResult {
    run(core, case, &mut |world, event| {
        let Event::Sent { queue, classes, allowance, .. } = *event else { return Ok(()) };
        let may = |class: u32| classes >> class & 1 == 1 && allowance[class as usize] > 0;
        let first =
            world.busy().filter(|busy| pipe_of(*busy) == pipe_of(queue)).map(class_of).find(|class| may(*class));
        prop_assert!(first >= Some(class_of(queue)), "queue {} sends before class {:?}", queue, first);
        Ok(())
    })?;
    Ok(())
}

/// Only classes send that are in the mask, and no more packets than their allowance.
fn held_classes_do_not_send(core: &'static PipesCore, case: &Case) -> TestCaseResult {
    run(core, case, &mut |_, event| {
        let Event::Sent { queue, classes, allowance, .. } = *event else { return Ok(()) };
        prop_assert!(classes >> class_of(queue) & 1 == 1, "queue {} sends, and {:x} may", queue, classes);
        prop_assert!(allowance[class_of(queue) as usize] > 0, "queue {} has no allowance", queue);
        Ok(())
    })?;
    Ok(())
}

/// The search of 64 pipes by the vectors of each way that this processor has finds the same as the plain one.
fn vectors_find_what_the_plain_way_finds(core: &'static PipesCore, case: &Case) -> TestCaseResult {
    let mut random = case.seed;
    let mut next = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        random >> 8
    };
    for _ in 0..100 {
        let mut elements = [0; 64];
        for element in &mut elements {
            *element = (next() & next() & next()) as u16;
        }
        let queues = next() & 0xffff & if next() & 1 == 0 { next() } else { abi::SL_PIPE_QUEUES };
        let (found, plainly) = core.in_common(&elements, queues);
        prop_assert_eq!(found, plainly, "{:x}", queues);
        for way in WAYS {
            let found = core.in_common_by(way, &elements, queues);
            prop_assert_eq!(found.unwrap_or(plainly), plainly, "{:?}, {:x}", way, queues);
        }
    }
    Ok(())
}

/// Ways that this processor has are in the build, so that the law compares them.
#[test]
fn each_way_of_this_processor_is_compared() {
    let found = |way| PipesCore::built_in().in_common_by(way, &[1; 64], 1);
    #[cfg(target_arch = "x86_64")]
    let expected = [std::is_x86_feature_detected!("avx512bw"), std::is_x86_feature_detected!("avx2"), true, false];
    #[cfg(not(target_arch = "x86_64"))]
    let expected = [false, false, false, cfg!(target_arch = "aarch64")];
    for (way, expected) in WAYS.into_iter().zip(expected) {
        assert_eq!(found(way), expected.then_some(u64::MAX), "{way:?}");
    }
}
