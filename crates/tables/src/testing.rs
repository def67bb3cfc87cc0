//! A policy and a context for tests.

use crate::Context;
use sluice_policy::{Resolved, Source};

/// A policy, and the context of an Ethernet interface whose departures are shaped as it says, and whose arrivals are not queued.
pub(crate) fn resolved(text: &str) -> (Resolved, Context<'static>) {
    let policy = sluice_policy::parse(&Source::new("test.json", text)).unwrap_or_else(|errors| panic!("{errors}"));
    let resolved = sluice_policy::resolve(&policy, &sluice_policy::Context::default()).unwrap();
    let context = Context { egress_rate: resolved.link_rate, ..Context::ethernet(&[]) };
    (resolved, context)
}
