//! The ways to targets, as the kernel's routes have them.

use super::OfInterface;
use crate::system::interface::Interface;
use crate::system::iproute;
use serde::Deserialize;
use sluice_error::{Error, Result};
use sluice_policy::Forward;
use sluice_tables::forward::{Route, Routed};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::net::IpAddr;

/// A route, as `ip -json route get` prints it.
#[derive(Debug, Deserialize)]
pub(super) struct Way {
    dst: IpAddr,
    /// Name of the interface.
    pub dev: String,
    prefsrc: Option<IpAddr>,
    /// `local`: the address is this host's.
    #[serde(rename = "type")]
    kind: Option<String>,
}

impl Way {
    /// Whether the address is this host's.
    pub(super) fn is_local(&self) -> bool {
        self.kind.as_deref() == Some("local")
    }
}

/// The way to each target.
pub(super) fn routes(interfaces: &[OfInterface]) -> Result<HashMap<IpAddr, Way>> {
    let forwards = interfaces.iter().flat_map(|interface| &interface.forwards);
    ways_to(&forwards.flat_map(|forward| &forward.targets).map(|target| target.address).collect())
}

/// The way to each of these addresses that has one.
pub(super) fn ways_to(targets: &BTreeSet<IpAddr>) -> Result<HashMap<IpAddr, Way>> {
    let lines: Vec<String> = targets.iter().map(|target| format!("route get {target}")).collect();
    let answers: Vec<Vec<Way>> = iproute::ip_batch(&lines)?;
    Ok(answers.into_iter().flatten().map(|way| (way.dst, way)).collect())
}

/// The error of a target that no route leads to.
fn unreachable(forward: &Forward, target: IpAddr) -> Error {
    Error::input(format!("forward \"{}\": there is no route to its target {target}", forward.name))
        .help(format!("ip route get {target} says why; give the target an address that is reached"))
}

/// The error of a target on this host whose sockets would have to see a client's address of the other family.
fn translated_here(forward: &Forward, target: IpAddr) -> Error {
    let (own, other) = if target.is_ipv4() { ("IPv4", "IPv6") } else { ("IPv6", "IPv4") };
    Error::input(format!("forward \"{}\": its target {target} is this host's, and of {own}", forward.name))
        .help(format!("{other} goes on as {own} to other hosts alone: name an {other} address of this host"))
}

/// The first target of these forwards that no route leads to, or that cannot be one, as an error.
pub(super) fn require(forwards: &[&Forward]) -> Result<()> {
    let all =
        || forwards.iter().flat_map(|forward| forward.targets.iter().map(move |target| (forward, target.address)));
    let routes = ways_to(&all().map(|(_, target)| target).collect())?;
    let reached = |target| routes.get(&target).is_some_and(|way| way.is_local() || way.prefsrc.is_some());
    if let Some((forward, target)) = all().find(|(_, target)| !reached(*target)) {
        return Err(unreachable(forward, target));
    }
    let is_local = |target| routes.get(&target).is_some_and(Way::is_local);
    let here = all().find(|(forward, target)| forward.translates_to(*target) && is_local(*target));
    here.map_or(Ok(()), |(forward, target)| Err(translated_here(forward, target)))
}

/// The kernel's setting by which a host forwards packets of a family, as routers do.
pub(super) fn sysctl(ipv4: bool) -> &'static str {
    if ipv4 { "net.ipv4.ip_forward" } else { "net.ipv6.conf.all.forwarding" }
}

/// Whether this host forwards packets, by such a setting.
pub(super) fn is_router(sysctl: &str) -> bool {
    let path = format!("/proc/sys/{}", sysctl.replace('.', "/"));
    fs::read_to_string(path).is_ok_and(|value| value.trim() != "0")
}

pub(super) fn ways<'a>(
    interface: &OfInterface,
    forward: &'a Forward,
    routes: &HashMap<IpAddr, Way>,
) -> Result<Routed<'a>> {
    let way = |target: &sluice_policy::Target| {
        let unreachable = || unreachable(forward, target.address);
        let way = routes.get(&target.address).ok_or_else(unreachable)?;
        if way.is_local() && forward.translates_to(target.address) {
            return Err(translated_here(forward, target.address));
        }
        Ok(Route { source: if way.is_local() { None } else { Some(way.prefsrc.ok_or_else(unreachable)?) } })
    };
    let routes = forward.targets.iter().map(way).collect::<Result<_>>()?;
    Ok(Routed {
        ifindex: interface.ifindex,
        forward,
        routes,
        strict: forward.is_ipv4() && is_strict(interface.ifindex),
    })
}

/// Whether the kernel asks of packets that arrive here that their sources lead back by this interface (`rp_filter`; RFC 3704, 2.2).
fn is_strict(ifindex: u32) -> bool {
    let Some(name) = Interface::name_of(ifindex) else { return false };
    let modes = ["all", &name].map(|of| fs::read_to_string(format!("/proc/sys/net/ipv4/conf/{of}/rp_filter")));
    // 2 is the looser mode, and the greater of both numbers counts.
    modes.iter().flatten().filter_map(|mode| mode.trim().parse::<u32>().ok()).max() == Some(1)
}
