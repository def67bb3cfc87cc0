//! Order within a class.

use crate::{
    cases::Case,
    laws, traces,
    world::{CLASSES, Event, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::Core;

laws! {
    first_in_first_out: traces::of(traces::KINDS).ranks(MONOTONIC).ceilings().peaks().guarantees().policing().limits().changes();
}

/// Ranks that never decrease within a class while it has packets.
pub const MONOTONIC: [u32; 4] = [
    abi::SL_RANK_PRIORITY,
    abi::SL_RANK_EARLIEST_DEADLINE,
    abi::SL_RANK_LEAST_ATTAINED_SERVICE,
    abi::SL_RANK_START_TIME_FAIR,
];

/// The packets of a class leave in the order in which they came, also when another discipline takes over: in every
/// discipline, and in a PIFO whose ranks do not decrease within a class.
fn first_in_first_out(core: &'static Core, case: &Case) -> TestCaseResult {
    let mut last = [0; CLASSES];
    run(core, case, |_, event| {
        if let Event::Sent(packet) = event {
            prop_assert!(last[packet.class] < packet.number, "{} leaves after {}", packet.number, last[packet.class]);
            last[packet.class] = packet.number;
        }
        Ok(())
    })
}
