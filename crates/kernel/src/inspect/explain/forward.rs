//! The forward that takes a packet.

use super::Fields;
use crate::engine::forwarding::{self, Leaving};
use crate::record::Record;
use serde::Serialize;
use sluice_error::Result;
use sluice_policy::{Forward, ForwardSource, Resolved};
use std::net::{IpAddr, SocketAddr};

/// A forward that listens where a packet goes.
#[derive(Debug, Clone, Serialize)]
pub struct ForwardFound {
    /// Name of the forward.
    pub name: String,
    /// Whether it takes the packet: it takes those that arrive.
    pub takes: bool,
    /// Whether the destination must be an address of this host, which is not known: the policy alone was asked.
    pub if_local: bool,
    /// Where a new connection goes; if there are several, one is chosen by the client's address and port.
    pub targets: Vec<TargetFound>,
    /// Source that the target sees: keep (the client's) or masquerade (one of this host).
    pub source: &'static str,
    /// Class of its packets when they leave. None: the rules choose.
    pub class: Option<u8>,
    /// Name of that class.
    pub class_name: Option<String>,
}

/// A target for the packet's port.
#[derive(Debug, Clone, Serialize)]
pub struct TargetFound {
    /// Address and port.
    pub to: SocketAddr,
    /// Whether packets are translated between IPv4 and IPv6.
    pub translated: bool,
    /// Share of new connections.
    pub weight: u32,
    /// The way by which packets leave to it. None: it was not looked for.
    pub way: Option<Leaving>,
}

/// Looks for the ways to the targets of a forward of a managed interface.
pub(super) fn find_ways(forward: &mut ForwardFound, record: &Record, policy: &Resolved) -> Result<()> {
    let targets: Vec<IpAddr> = forward.targets.iter().map(|target| target.to.ip()).collect();
    let from_ipv4 = forward.targets.iter().any(|target| target.to.is_ipv4() != target.translated);
    let ways = forwarding::leaving(record, policy, from_ipv4, &targets)?;
    for (target, way) in forward.targets.iter_mut().zip(ways) {
        target.way = Some(way);
    }
    Ok(())
}

/// The forward for a packet with these fields. `is_local` tells addresses of this host. None: it is not known.
pub(super) fn of(
    policy: &Resolved,
    fields: &Fields,
    arrives: bool,
    is_local: Option<&dyn Fn(IpAddr) -> bool>,
) -> Option<ForwardFound> {
    let (dst, port) = (fields.dst?, fields.dst_port?);
    // The ports of other packets are not those of a forward, or not looked for.
    if fields.fragment != "whole" || fields.vlan.is_some() {
        return None;
    }
    let listens = |forward: &&Forward| {
        (forward.ports.0..=forward.ports.1).contains(&port)
            && forward.transport.protocols().iter().any(|protocol| u16::from(*protocol) == fields.protocol)
            && match forward.listen {
                Some(address) => address == dst,
                None => forward.is_ipv4() == dst.is_ipv4() && is_local.is_none_or(|is_local| is_local(dst)),
            }
    };
    let forward = policy.forwards.iter().find(listens)?;
    let target = |target: &sluice_policy::Target| TargetFound {
        to: SocketAddr::new(target.address, target.first_port + (port - forward.ports.0)),
        translated: forward.translates_to(target.address),
        weight: target.weight,
        way: None,
    };
    let class = policy.classes.iter().find(|class| Some(class.id) == forward.class);
    Some(ForwardFound {
        name: forward.name.clone(),
        takes: arrives,
        if_local: forward.listen.is_none() && is_local.is_none(),
        targets: forward.targets.iter().map(target).collect(),
        source: ForwardSource::NAMES.iter().find(|(_, source)| *source == forward.source).map_or("", |(name, _)| name),
        class: forward.class.map(|class| class.0),
        class_name: class.map(|class| class.name.clone()),
    })
}
