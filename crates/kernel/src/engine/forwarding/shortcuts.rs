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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Queued {
    /// It is no veth into another network namespace, so there is no other end to put packets into.
    NoPeer,
    /// A policy does more than forward there.
    Policy,
    /// A qdisc schedules there.
    Qdisc,
    /// A program or a filter sees what departs.
    Program,
    /// One of these was there when a policy last changed, and has gone since.
    Earlier,
}

/// The way by which forwarded packets leave an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Departure {
    /// Into the other end of a veth, at once.
    Peer,
    /// Through the interface's queues.
    Queues(Queued),
}

/// Chooses the way by which forwarded packets leave an interface, and says why: the first reason that is found to go through its queues, else its
/// other end. Nobody may look at a packet that departs there: no qdisc, no program, no policy that does more than forward.
pub(super) fn departure(interface: &Interface, interfaces: &[OfInterface]) -> Result<Departure> {
    if interface.kind.as_deref() != Some("veth") || !interface.peer_elsewhere {
        return Ok(Departure::Queues(Queued::NoPeer));
    }
    if interfaces.iter().any(|one| one.ifindex == interface.ifindex && one.acts_on_departures) {
        return Ok(Departure::Queues(Queued::Policy));
    }
    if qdiscs::root(&interface.name)?.is_some_and(|root| root.kind != "noqueue") {
        return Ok(Departure::Queues(Queued::Qdisc));
    }
    let seen = hooks::others_see_departures(&interface.name, interface.ifindex)?;
    Ok(if seen { Departure::Queues(Queued::Program) } else { Departure::Peer })
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
