//! Ways out that need no queue: where nothing is scheduled, forwarded packets go into the peer of a veth at once (bpf_redirect_peer), without
//! another turn through the host.

use super::OfInterface;
use crate::bpf::hooks;
use crate::system::interface::Interface;
use crate::system::qdiscs;
use sluice_error::Result;
use sluice_policy::{Mode, Resolved};
use std::collections::BTreeSet;

/// Those of these interfaces that lead into another network namespace, and where nobody looks at a packet that departs: no qdisc, no program, no
/// policy that does more than forward.
pub(super) fn shortcuts(devices: &BTreeSet<&str>, interfaces: &[OfInterface]) -> Result<BTreeSet<u32>> {
    let mut found = BTreeSet::new();
    let listening = interfaces.iter().filter_map(|interface| Interface::name_of(interface.ifindex));
    let all: BTreeSet<String> = devices.iter().map(|device| (*device).to_owned()).chain(listening).collect();
    for name in all {
        let interface = Interface::find(&name)?;
        let acts = interfaces.iter().any(|one| one.ifindex == interface.ifindex && one.acts_on_departures);
        let queue = qdiscs::root(&name)?.filter(|root| root.kind != "noqueue");
        let is_way = interface.kind.as_deref() == Some("veth") && interface.peer_elsewhere;
        if is_way && !acts && queue.is_none() && !hooks::others_see_departures(&name, interface.ifindex)? {
            found.insert(interface.ifindex);
        }
    }
    Ok(found)
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
