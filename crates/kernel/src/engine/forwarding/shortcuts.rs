//! Ways out that need no queue: where nothing is scheduled, forwarded packets go into the peer of a veth at once (bpf_redirect_peer), without
//! another turn through the host.

use super::OfInterface;
use crate::bpf::hooks;
use crate::system::interface::Interface;
use crate::system::qdiscs;
use sluice_error::Result;
use sluice_policy::{Mode, Resolved};

/// Whether an interface leads into another network namespace, and nobody looks at a packet that departs there: no qdisc, no program, no policy
/// that does more than forward.
pub(super) fn leads_to_peer(interface: &Interface, interfaces: &[OfInterface]) -> Result<bool> {
    let acts = interfaces.iter().any(|one| one.ifindex == interface.ifindex && one.acts_on_departures);
    if interface.kind.as_deref() != Some("veth") || !interface.peer_elsewhere || acts {
        return Ok(false);
    }
    let queue = qdiscs::root(&interface.name)?.filter(|root| root.kind != "noqueue");
    Ok(queue.is_none() && !hooks::others_see_departures(&interface.name, interface.ifindex)?)
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
