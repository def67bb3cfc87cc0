//! Ways out that need no queue: where nothing is scheduled, forwarded packets go into the peer of a veth at once (bpf_redirect_peer), without
//! another turn through the host.

use super::OfInterface;
use crate::bpf::hooks;
use crate::system::interface::Interface;
use crate::system::qdiscs;
use serde::Serialize;
use sluice_error::Result;
use sluice_policy::{Mode, Resolved};

/// Why packets leave an interface by its queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Queued {
    /// It is no veth into another network namespace, so there is no other end to put packets into.
    NoPeer,
    /// A qdisc schedules there.
    Qdisc,
    /// A program or a filter sees what departs.
    Program,
    /// A policy does more than forward there, or one of the others was there when a policy last changed.
    Policy,
}

/// Whether an interface leads into another network namespace, and nobody looks at a packet that departs there: no qdisc, no program, no policy
/// that does more than forward.
pub(super) fn leads_to_peer(interface: &Interface, interfaces: &[OfInterface]) -> Result<bool> {
    let acts = interfaces.iter().any(|one| one.ifindex == interface.ifindex && one.acts_on_departures);
    Ok(!acts && queued(interface)? == Queued::Policy)
}

/// Why packets leave an interface by its queues: the first reason that is found on it, else that a policy says so.
pub(super) fn queued(interface: &Interface) -> Result<Queued> {
    if interface.kind.as_deref() != Some("veth") || !interface.peer_elsewhere {
        return Ok(Queued::NoPeer);
    }
    if qdiscs::root(&interface.name)?.is_some_and(|root| root.kind != "noqueue") {
        return Ok(Queued::Qdisc);
    }
    let seen = hooks::others_see_departures(&interface.name, interface.ifindex)?;
    Ok(if seen { Queued::Program } else { Queued::Policy })
}

/// Whether a policy does anything with packets that depart, be it that it counts flows.
pub(super) fn acts_on_departures(policy: &Resolved) -> bool {
    let limited = |class: &sluice_policy::ResolvedClass| {
        class.ceil.is_some() || class.flow_ceil.is_some() || class.shared_ceil.is_some()
    };
    policy.mode != Mode::ClassifyOnly
        || !policy.rules.is_empty()
        || policy.flows > 0
        || policy.limits != sluice_policy::Limits::default()
        || policy.classes.iter().any(limited)
}
