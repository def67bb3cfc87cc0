//! A call takes few steps, however many pipes there are.

use crate::{laws, traces, traces::Case, traces::SECOND};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_core::pipes::{ALL_CLASSES, Packet, Pipe, Pipes, PipesCore, Port, Profile, Subport, queue_number};

laws! {
    each_call_takes_few_steps: traces::of(0);
    a_search_is_finished_by_later_calls: traces::of(0);
}

/// Packets of a call.
const BATCH: usize = 32;
/// Pipes of each wheel whose waiting ends; words that are searched; pipes whose turn begins: one for each packet, and of those that do not send
/// a quarter as many as words, and a group more.
const MOST: u64 = 2 * 64 + 128 + (BATCH as u64 + 128 / 4 + 16);

/// 8,064 pipes with different rates and class limits take few steps in a call: when all are due at once, when packets have come to all of them
/// while none has tokens, and when all but a few are held back.
fn each_call_takes_few_steps(core: &'static PipesCore, case: &Case) -> TestCaseResult {
    let mut now_ns = 1_000_000_000;
    let mut pipes = Pipes::of(core);
    let mut profile = Profile::of(10);
    profile.classes[3] = (case.seed & 1 == 1).then_some(400_000);
    pipes.set_up(&Port { slots: 100_000, overhead_bytes: 0, mpu_bytes: 0, rate: None }, now_ns);
    pipes.set_subport(1, &Subport::of(SECOND.0, SECOND.1 - SECOND.0), now_ns).expect("no other has the pipes");
    pipes.set_profile(1, &profile).expect("a number of a profile");
    let rate = (case.seed & 2 == 2).then_some(1_000_000 + u64::from(case.seed % 1000) * 1000);
    for pipe in SECOND.0..SECOND.1 {
        let conf = Pipe { profile: 1, bits_per_second: rate, burst_ns: 40_000 };
        pipes.configure(pipe, &conf, now_ns).expect("it is in a subport");
    }
    let all: Vec<u32> = (SECOND.0..SECOND.1).collect();
    let (mut sent, mut vain) = (0, 0);
    for round in 0..4 {
        // Two packets to each pipe: of a class that may be held back, and of one with a limit.
        for chunk in all.chunks(BATCH / 2) {
            let mut packets: Vec<Packet> = chunk
                .iter()
                .flat_map(|pipe| {
                    [3, 7].map(|queue| Packet { queue: queue_number(*pipe, queue), slot: 0, len_bytes: 1000 })
                })
                .collect();
            let before = core.steps();
            pipes.enqueue(&mut packets, now_ns);
            prop_assert_eq!(core.steps(), before, "an arrival looks at no pipe");
        }
        let classes = if round % 2 == 0 && case.seed & 4 == 4 { 1 << 9 } else { ALL_CLASSES };
        let mut out = [Packet { queue: 0, slot: 0, len_bytes: 0 }; BATCH];
        for _ in 0..3 * all.len() / BATCH {
            let before = core.steps();
            let got = pipes.dequeue(&mut out, classes, None, now_ns);
            let steps = core.steps() - before;
            prop_assert!(got == 0 || steps > 0, "steps are not counted");
            prop_assert!(steps <= MOST, "a call takes {} steps", steps);
            sent += got;
            if got == 0 && pipes.wake_ns(classes, now_ns) == Some(now_ns) {
                vain += 1;
            }
            now_ns += 300;
        }
        // Everything is due at once.
        now_ns += 60_000_000;
    }
    prop_assert!(sent > all.len(), "{} packets left", sent);
    prop_assert!(vain < all.len(), "{} calls did not finish and gave nothing", vain);
    Ok(())
}

/// A call that meets many pipes without tokens says that it has not finished; later ones find the pipes behind them that may send. What was found
/// to be held back is not searched again.
fn a_search_is_finished_by_later_calls(core: &'static PipesCore, case: &Case) -> TestCaseResult {
    let count = 300 + case.seed % 1000;
    // Wherever the search begins, one of them is far away.
    let unlimited = [0, count / 2, count];
    let mut now_ns = 1_000_000_000;
    let mut pipes = Pipes::of(core);
    pipes.set_up(&Port { slots: 10_000, overhead_bytes: 0, mpu_bytes: 0, rate: None }, now_ns);
    pipes.set_subport(0, &Subport::of(0, 2048), now_ns).expect("no other has the pipes");
    pipes.set_profile(1, &Profile::of(10)).expect("a number of a profile");
    for pipe in 0..=count {
        let bits_per_second = (!unlimited.contains(&pipe)).then_some(100_000);
        pipes.configure(pipe, &Pipe { profile: 1, bits_per_second, burst_ns: 0 }, now_ns).expect("it is in a subport");
    }
    let mut out = [Packet { queue: 0, slot: 0, len_bytes: 0 }; 64];
    let arrive = |pipes: &mut Pipes, pipe, class, now_ns| {
        pipes.enqueue(&mut [Packet { queue: queue_number(pipe, class), slot: 0, len_bytes: 1000 }], now_ns)
    };
    // All others send a packet, and have another one without tokens for it.
    let limited = (0..count).filter(|pipe| !unlimited.contains(pipe));
    for pipe in limited.clone() {
        arrive(&mut pipes, pipe, 9, now_ns);
    }
    while pipes.dequeue(&mut out, ALL_CLASSES, None, now_ns) > 0 {}
    now_ns += 1000;
    for pipe in limited {
        arrive(&mut pipes, pipe, 3, now_ns);
    }
    // Nothing of class 9 is there: the first calls find out, and the next one knows.
    for call in 0..10 {
        let before = core.steps();
        prop_assert_eq!(pipes.dequeue(&mut out, 1 << 9, None, now_ns), 0);
        prop_assert!(call < 5 || core.steps() - before < 4, "{} steps", core.steps() - before);
    }
    for pipe in unlimited {
        arrive(&mut pipes, pipe, 3, now_ns);
    }
    let (mut sent, mut calls) = (0, 0);
    loop {
        let before = core.steps();
        sent += pipes.dequeue(&mut out, ALL_CLASSES, None, now_ns);
        prop_assert!(core.steps() - before <= MOST, "a call takes {} steps", core.steps() - before);
        calls += 1;
        if pipes.wake_ns(ALL_CLASSES, now_ns) != Some(now_ns) {
            break;
        }
        prop_assert!(calls < 100, "calls never finish");
    }
    prop_assert_eq!(sent, 3, "after {} calls", calls);
    Ok(())
}
