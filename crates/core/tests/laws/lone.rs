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
    flows_may_be_told_late: traces::of(traces::KINDS).by_flow().ceilings().guarantees().policing().framing().changes().worn().absent();
}

/// A core in which every packet takes the long way.
fn long_way() -> &'static Core {
    static CORE: OnceLock<&'static Core> = OnceLock::new();
    let line =
        "return !(s->backlog_pkts | s->dropped_slots) && s->free_count && len_bytes <= k->lone_bytes;";
    CORE.get_or_init(|| builds::build(&[Edit { header: "lone.h", line, instead: "return 0;" }]))
}

/// A core that is told the flow of a lone packet when it asks for it, as engine `qdisc` tells it.
fn told_late() -> &'static Core {
    const WAITS: Edit = Edit {
        header: "core.h",
        line: "slot_identify(sl_at(s->slot, slot), p);\n\treturn slot;",
        instead: "*sl_late() = *p;\n\treturn slot;",
    };
    const BEFORE_ANOTHER: Edit = Edit {
        header: "core.h",
        line: "/* sl_enqueue of a packet that cannot take the fast path. */\nSL_FN s32 sl_enqueue_queued(struct sl_sched *s, const struct sl_packet *p, u64 now_ns)\n{",
        instead: "static struct sl_packet *sl_late(void)\n{\n\tstatic _Thread_local struct sl_packet late;\n\n\treturn &late;\n}\n\n\
                  static void sl_tell(struct sl_sched *s)\n{\n\tif (sl_lone_of_flow(s) != SL_NO_SLOT)\n\t\t\
                  slot_identify(sl_at(s->slot, sl_lone_of_flow(s)), sl_late());\n}\n\n\
                  SL_FN s32 sl_enqueue_queued(struct sl_sched *s, const struct sl_packet *p, u64 now_ns)\n{\n\tsl_tell(s);",
    };
    const BEFORE_A_CHANGE: Edit = Edit {
        header: "core.h",
        line: "int stays = flow_stays(s, f);",
        instead: "int stays = (sl_tell(s), flow_stays(s, f));",
    };
    static CORE: OnceLock<&'static Core> = OnceLock::new();
    CORE.get_or_init(|| builds::build(&[WAITS, BEFORE_ANOTHER, BEFORE_A_CHANGE]))
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
    same_events(core, long_way(), case)
}

/// The flow of a lone packet matters only once another one comes, or another configuration.
fn flows_may_be_told_late(core: &'static Core, case: &Case) -> TestCaseResult {
    same_events(core, told_late(), case)
}

fn same_events(core: &'static Core, other: &'static Core, case: &Case) -> TestCaseResult {
    let (short, long) = (events(core, case)?, events(other, case)?);
    for (number, (short, long)) in short.iter().zip(&long).enumerate() {
        prop_assert_eq!(short, long, "event {}", number);
    }
    prop_assert_eq!(short.len(), long.len(), "events");
    Ok(())
}
