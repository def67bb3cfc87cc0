//! Which classes are active, whichever instances join and leave at once.

use crate::{
    builds::{Call, JOIN, LEAVE, Stepped},
    cases::{self, Case, FRAME, Random, START_NS},
    laws,
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::shared_credit::{Class, Conf, Link};

laws! {
    classes_that_instances_have_are_active: cases::of(64);
}

/// When no call is under way, a class that an instance has joined is active, and has that instance as a bit.
fn classes_that_instances_have_are_active(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    const CLASSES: u64 = 3;
    let mut random = Random::new(case.seed);
    let conf = Conf::new(case.instances, case.rate, 0, FRAME, &[Class::default(); CLASSES as usize]);
    let link = Link::default();
    let n = case.instances as usize;
    let mut own: Vec<Box<abi::sl_shared_instance>> = (0..n).map(|_| abi::boxed_zeroed()).collect();
    own.iter_mut().zip(0..).for_each(|(own, number)| own.number = number);
    let mut calls: Vec<Box<Call>> = (0..n).map(|_| Box::default()).collect();
    let mut under_way = vec![false; n];
    for _ in 0..4 {
        for _ in 0..2_000 {
            let n = random.below(n as u64) as usize;
            if under_way[n] {
                under_way[n] = !stepped.calls.go_on(n);
                continue;
            }
            let class = random.below(CLASSES) as u32;
            *calls[n] = Call {
                kind: if own[n].joined >> class & 1 == 0 { JOIN } else { LEAVE },
                class,
                now: START_NS,
                own: &mut *own[n],
                link: link.as_ptr(),
                conf: conf.raw(),
                ..Call::default()
            };
            // SAFETY: all that the call points at is in boxes, and is left alone until it has ended.
            unsafe { stepped.calls.begin(n, &mut *calls[n]) };
            under_way[n] = true;
        }
        for (n, under_way) in under_way.iter_mut().enumerate() {
            while *under_way {
                *under_way = !stepped.calls.go_on(n);
            }
        }
        let words = link.words();
        for class in 0..CLASSES as usize {
            let has = (0..n).filter(|n| own[*n].joined >> class & 1 == 1).fold(0, |bits, n| bits | 1u64 << n);
            prop_assert_eq!(words.classes.share[class].instances, has);
            let active = words.classes.active.value >> class & 1 == 1;
            prop_assert!(active || has == 0, "class {} is not active, and instances {:b} have it", class, has);
        }
    }
    Ok(())
}
