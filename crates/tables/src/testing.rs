//! A policy and a context for tests.

use crate::Context;
use sluice_policy::{Resolved, Source};

/// A policy, and the context of an Ethernet interface whose departures are shaped as it says, and whose arrivals are not queued.
pub(crate) fn resolved(text: &str) -> (Resolved, Context<'static>) {
    let policy = sluice_policy::parse(&Source::new("test.json", text)).unwrap_or_else(|errors| panic!("{errors}"));
    let resolved = sluice_policy::resolve(&policy, &sluice_policy::Context::default()).unwrap();
    let context = Context {
        generation: 1,
        tag: 1,
        buffer: 0,
        egress_rate: resolved.link_rate,
        ingress_rate: None,
        virtual_queues: false,
        queues: 0,
        queues_of: crate::Queues::Transmit,
        header_bytes: 14,
        mtu_bytes: 1500,
        interfaces: &[],
    };
    (resolved, context)
}
