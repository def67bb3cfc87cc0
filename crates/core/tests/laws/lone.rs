//! The short way of a lone packet.

use crate::{
    builds::{self, Edit},
    cases::Case,
    laws, traces,
    world::run,
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_core::Core;
use std::sync::OnceLock;

laws! {
    equals_the_long_way: traces::of(traces::KINDS).by_flow().ceilings().guarantees().policing().framing().changes().worn().absent();
}

/// A core in which every packet takes the long way.
fn long_way() -> &'static Core {
    static CORE: OnceLock<&'static Core> = OnceLock::new();
    let line = "return !(s->backlog_pkts | s->dropped_slots) && k->lone == way && s->free_count && len_bytes <= k->limit_bytes;";
    CORE.get_or_init(|| builds::build(&[Edit { header: "lone.h", line, instead: "return 0;" }]))
}

/// The slots, packets, waits and drops of a case, in their order.
fn events(core: &'static Core, case: &Case) -> Result<Vec<String>, TestCaseError> {
    let mut events = Vec::new();
    run(core, case, |_, event| {
        events.push(format!("{event:?}"));
        Ok(())
    })?;
    Ok(events)
}

/// A core with the short way does what one without it does, to each slot and nanosecond.
fn equals_the_long_way(core: &'static Core, case: &Case) -> TestCaseResult {
    let (short, long) = (events(core, case)?, events(long_way(), case)?);
    for (number, (short, long)) in short.iter().zip(&long).enumerate() {
        prop_assert_eq!(short, long, "event {}", number);
    }
    prop_assert_eq!(short.len(), long.len(), "events");
    Ok(())
}
