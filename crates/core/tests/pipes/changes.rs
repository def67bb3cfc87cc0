//! Changes that cannot be made are refused, and change nothing.

use crate::{laws, traces, traces::Case, traces::PIPES, world::World};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::pipes::{ALL_CLASSES, PipesCore, Profile, Refusal, Subport, queue_number};

laws! {
    wrong_changes_are_refused: traces::of(0);
    a_faster_pipe_sends_at_once: traces::of(0);
}

/// A subport has whole words of pipes that no other has, and keeps them while one is configured; a pipe needs a subport and a profile.
fn wrong_changes_are_refused(core: &'static PipesCore, case: &Case) -> TestCaseResult {
    let mut world = World::new(core, case);
    let now_ns = world.now_ns;
    let (pick, pipe) = (case.seed, traces::pipe(None, 1));
    let pipes = &mut world.pipes;
    let mut subport = |number, first, count| pipes.set_subport(number, &Subport::of(first, count), now_ns);
    prop_assert_eq!(subport(3, 0, 64), Err(Refusal::Busy));
    prop_assert_eq!(subport(5, 64 * (pick % 128), 64), Err(Refusal::NoSubport), "another one has them");
    prop_assert_eq!(subport(5, 8192 + pick % 63 + 1, 64), Err(Refusal::NoSubport), "half a word");
    prop_assert_eq!(subport(5, 8192, abi::SL_PIPES), Err(Refusal::NoSubport), "more than there are");
    prop_assert_eq!(subport(abi::SL_PIPE_SUBPORTS + pick % 100, 8192, 64), Err(Refusal::NoSubport));
    prop_assert_eq!(subport(5, 8192, 64 * (pick % 100)), Ok(()));
    prop_assert_eq!(subport(5, 16384, 64), Ok(()), "none of its pipes is configured");
    prop_assert_eq!(pipes.configure(8192, &pipe, now_ns), Err(Refusal::NoSubport));
    prop_assert_eq!(pipes.configure(16384, &pipe, now_ns), Ok(()));
    prop_assert_eq!(pipes.configure(abi::SL_PIPES + pick % 9, &pipe, now_ns), Err(Refusal::NoPipe));
    for profile in [0, abi::SL_PIPE_PROFILES] {
        prop_assert_eq!(pipes.configure(0, &traces::pipe(None, profile), now_ns), Err(Refusal::NoProfile));
        prop_assert_eq!(pipes.set_profile(profile, &Profile::of(1)), Err(Refusal::NoProfile));
    }
    prop_assert_eq!(pipes.remove(16384), Ok(()));
    prop_assert_eq!(pipes.remove(16384), Err(Refusal::NoPipe));
    Ok(())
}

/// A pipe that waits for tokens and gets a higher rate sends when that has tokens, and not when the old one would have; also one whose class waits
/// for credit and gets another profile.
fn a_faster_pipe_sends_at_once(core: &'static PipesCore, case: &Case) -> TestCaseResult {
    let mut case = case.clone();
    let mut slow = Profile::of(100);
    slow.classes[2] = Some(100_000);
    (case.profiles[0], case.profiles[1]) = (slow, Profile::of(100));
    let (number, by_class) = (PIPES[case.seed as usize % PIPES.len()], case.seed & 1 == 1);
    let place = PIPES.iter().position(|pipe| *pipe == number).expect("listed");
    case.pipes[place] = if by_class { (None, 1) } else { (Some(1_000_000), 2) };
    let mut world = World::new(core, &case);
    let nothing: &mut crate::world::Observer<'_> = &mut |_, _| Ok(());
    world.arrive(&[(queue_number(number, 2), 1400); 5], nothing)?;
    prop_assert_eq!(world.take(5, ALL_CLASSES, None, nothing)?, 1, "the others wait");
    world.configure(number, traces::pipe(Some(10_000_000_000), 2), nothing)?;
    world.now_ns += 100_000;
    prop_assert_eq!(world.take(5, ALL_CLASSES, None, nothing)?, 4);
    Ok(())
}
