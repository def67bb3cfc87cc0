//! The limit keeps a port busy, and its queue short.

use crate::{
    laws,
    world::{self, Case, Look, Phase, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_core::port_limit::LimitCore;

laws! {
    a_slow_port_is_busy: world::slow(3);
    a_slow_port_has_little: world::slow(3);
    a_port_that_sends_at_once_gets_whole_batches: world::at_once();
}

/// Looks of a phase: the limit may fall several times in it.
const LOOKS: usize = 2000;

/// The looks of a phase behind those in which the limit finds the new rate, if the hold is over several times in these.
fn settled<'a>(case: &Case, phase: &Phase, looks: &'a [Look]) -> &'a [Look] {
    let packet_ns = (case.longest() * phase.byte_cost) >> 10;
    let from_ns = looks.last().map_or(0, |look| look.at_ns) / 2;
    let enough = from_ns > 6 * case.bounds.hold_ns + 50 * packet_ns;
    // Packets that were given at the rate before are sent first, at that rate.
    let drained = looks.partition_point(|look| look.held_bytes > look.limit_bytes + case.longest());
    let from = looks.partition_point(|look| look.at_ns < from_ns);
    if enough && drained < from / 2 { &looks[from..] } else { &[] }
}

/// Once it has found the rate, the port has nothing to send in 0.4 % of the time at most, whatever the rate was before.
fn a_slow_port_is_busy(core: &'static LimitCore, case: &Case) -> TestCaseResult {
    for (phase, looks) in case.phases.iter().zip(&run(core, case, LOOKS)) {
        let looks = settled(case, phase, looks);
        let sum = |of: fn(&Look) -> u64| looks.iter().map(of).sum::<u64>();
        let (idle_ns, all_ns) = (sum(|look| look.idle_ns), sum(|look| look.gap_ns));
        prop_assert!(idle_ns * 250 <= all_ns, "idle for {idle_ns} of {all_ns} ns in {phase:?}");
    }
    Ok(())
}

/// Once it has found the rate, the port has at most what it sends in twice the longest time between two looks, or the least limit, and four packets more.
fn a_slow_port_has_little(core: &'static LimitCore, case: &Case) -> TestCaseResult {
    for (phase, looks) in case.phases.iter().zip(&run(core, case, LOOKS)) {
        let packet_ns = (case.longest() * phase.byte_cost) >> 10;
        // A packet that is longer than a look comes back in one.
        let look_bytes = (phase.look_ns.max(packet_ns) << 10).div_ceil(phase.byte_cost);
        let most = (2 * look_bytes).max(case.bounds.least_bytes) + 4 * case.longest();
        for look in settled(case, phase, looks) {
            prop_assert!(look.held_bytes <= most, "more than {most}: {look:?} in {phase:?}");
        }
    }
    Ok(())
}

/// A port that has sent what it was given before the next look soon gets as much as the engine gives at a time.
fn a_port_that_sends_at_once_gets_whole_batches(core: &'static LimitCore, case: &Case) -> TestCaseResult {
    let looks = &run(core, case, 100)[0];
    let first = looks.iter().position(|look| look.given == 64);
    prop_assert!(first.is_some_and(|first| first <= 12), "{first:?}");
    prop_assert!(looks[12..].iter().all(|look| look.given == 64));
    Ok(())
}
