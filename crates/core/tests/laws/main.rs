//! The laws of the scheduler core: what the theory of each discipline promises, as properties of random traffic. Each
//! must hold for the core that is built in, and each must fail for a core that was broken on purpose (`mutants.rs`).
//!
//! `PROPTEST_CASES` is the number of cases of each law. A counterexample is printed with the `PROPTEST_RNG_SEED` that finds
//! it again.

mod buckets;
mod builds;
mod cases;
mod codel;
mod conservation;
mod deficit_round_robin;
mod early;
mod edits;
mod eevdf;
mod elastic_round_robin;
mod fairness;
mod flow_queues;
mod flow_shares;
mod gps;
mod holds;
mod law;
mod lone;
mod mutants;
mod order;
mod pifo;
mod priority_queue;
mod room;
mod round_robin;
mod strict_priority;
mod suite;
mod traces;
mod weighted_fair_queuing;
mod work;
mod world;

use cases::Case;
use sluice_core::Core;

/// A property that must hold of every case.
pub(crate) type Law = law::Law<Core, Case>;

pub(crate) use holds::holds;
pub(crate) use suite::laws;

/// The laws of all modules.
fn all_laws() -> impl Iterator<Item = &'static Law> {
    [
        conservation::LAWS,
        lone::LAWS,
        work::LAWS,
        order::LAWS,
        flow_queues::LAWS,
        flow_shares::LAWS,
        room::LAWS,
        early::LAWS,
        codel::LAWS,
        buckets::LAWS,
        strict_priority::LAWS,
        deficit_round_robin::LAWS,
        round_robin::LAWS,
        weighted_fair_queuing::LAWS,
        eevdf::LAWS,
        elastic_round_robin::LAWS,
        pifo::LAWS,
    ]
    .into_iter()
    .flatten()
}

fn prove(law: &Law) {
    law.prove(Core::built_in(), 100);
}
