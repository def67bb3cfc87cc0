//! The ways to targets, as the kernel's routes have them.

use super::OfInterface;
use crate::system::iproute;
use serde::Deserialize;
use sluice_error::{Error, Result};
use sluice_policy::Forward;
use sluice_tables::forward::{Route, Routed};
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

/// A route, as `ip -json route get` prints it.
#[derive(Debug, Deserialize)]
pub(super) struct Way {
    dst: IpAddr,
    /// Name of the interface.
    pub dev: String,
    prefsrc: Option<IpAddr>,
}

/// The way to each target.
pub(super) fn routes(interfaces: &[OfInterface]) -> Result<HashMap<IpAddr, Way>> {
    let forwards = interfaces.iter().flat_map(|interface| &interface.forwards);
    let targets: BTreeSet<IpAddr> =
        forwards.flat_map(|forward| &forward.targets).map(|target| target.address).collect();
    let lines: Vec<String> = targets.iter().map(|target| format!("route get {target}")).collect();
    let answers: Vec<Vec<Way>> = iproute::ip_batch(&lines)?;
    Ok(answers.into_iter().flatten().map(|way| (way.dst, way)).collect())
}

pub(super) fn ways<'a>(
    interface: &OfInterface,
    forward: &'a Forward,
    routes: &HashMap<IpAddr, Way>,
) -> Result<Routed<'a>> {
    let way = |target: &sluice_policy::Target| {
        let unreachable = || {
            Error::input(format!("forward \"{}\": there is no route to its target {}", forward.name, target.address))
                .help(format!("ip route get {} says why; give the target an address that is reached", target.address))
        };
        let way = routes.get(&target.address).ok_or_else(unreachable)?;
        Ok(Route { source: way.prefsrc.ok_or_else(unreachable)? })
    };
    let routes = forward.targets.iter().map(way).collect::<Result<_>>()?;
    Ok(Routed { ifindex: interface.ifindex, forward, routes })
}
