//! The fast path of a lone packet.

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
    equals_the_slow_path: traces::of(traces::KINDS).by_flow().ceilings().peaks().guarantees().policing().framing().changes().worn().absent();
    flows_may_be_set_late: traces::of(traces::KINDS).by_flow().ceilings().peaks().guarantees().policing().framing().changes().worn().absent();
}

/// A core in which every packet takes the slow path.
fn slow_path() -> &'static Core {
    static CORE: OnceLock<&'static Core> = OnceLock::new();
    let line = "return !(s->backlog_pkts | s->dropped_slots) && s->free_count && len_bytes <= k->lone_bytes;";
    CORE.get_or_init(|| builds::build(&[Edit { header: "lone.h", line, instead: "return 0;" }]))
}

/// A core that gets the flow of a lone packet before the next packet or configuration, as from engine `qdisc`.
fn flow_set_late() -> &'static Core {
    const KEEP_FLOW_ASIDE: Edit = Edit {
        header: "core.h",
        line: "slot_identify(sl_at(s->slot, slot), p);\n\treturn slot;",
        instead: "*sl_late() = *p;\n\treturn slot;",
    };
    const BEFORE_A_PACKET: Edit = Edit {
        header: "core.h",
        line: "/* sl_enqueue of a packet that cannot take the fast path. */\nSL_FN s32 sl_enqueue_queued(struct sl_sched *s, const struct sl_packet *p, u64 now_ns)\n{",
        instead: "static struct sl_packet *sl_late(void)\n{\n\tstatic _Thread_local struct sl_packet late;\n\n\treturn &late;\n}\n\n\
                  static void sl_tell(struct sl_sched *s)\n{\n\tif (sl_lone_slot_by_flow(s) != SL_NO_SLOT)\n\t\t\
                  slot_identify(sl_at(s->slot, sl_lone_slot_by_flow(s)), sl_late());\n}\n\n\
                  SL_FN s32 sl_enqueue_queued(struct sl_sched *s, const struct sl_packet *p, u64 now_ns)\n{\n\tsl_tell(s);",
    };
    const BEFORE_A_CONFIGURATION: Edit = Edit {
        header: "core.h",
        line: "int stays = flow_stays(s, f);",
        instead: "int stays = (sl_tell(s), flow_stays(s, f));",
    };
    static CORE: OnceLock<&'static Core> = OnceLock::new();
    CORE.get_or_init(|| builds::build(&[KEEP_FLOW_ASIDE, BEFORE_A_PACKET, BEFORE_A_CONFIGURATION]))
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

/// A core with the fast path does what a core without it does, to each slot and nanosecond.
fn equals_the_slow_path(core: &'static Core, case: &Case) -> TestCaseResult {
    same_events(core, slow_path(), case)
}

/// A core may get the flow of a lone packet as late as the next packet or configuration.
fn flows_may_be_set_late(core: &'static Core, case: &Case) -> TestCaseResult {
    same_events(core, flow_set_late(), case)
}

/// Both cores do the same.
fn same_events(core: &'static Core, other: &'static Core, case: &Case) -> TestCaseResult {
    let (one, two) = (events(core, case)?, events(other, case)?);
    for (number, (one, two)) in one.iter().zip(&two).enumerate() {
        prop_assert_eq!(one, two, "event {}", number);
    }
    prop_assert_eq!(one.len(), two.len(), "events");
    Ok(())
}
