//! The conditions that interfaces and policies must meet for a wire.

use crate::engine::xsk_workers;
use crate::system::interface::{Interface, TAGGED_HEADER_BYTES};
use crate::system::iproute;
use sluice_error::{Error, Result};
use sluice_policy::network::{Address, Network, Way};
use sluice_policy::{ClassFrom, Mode, Resolved, ResolvedRule};
use sluice_xsk::FrameBytes;

/// The largest MTU of an interface whose frames a wire takes.
pub(crate) const LONGEST_MTU: u32 = FrameBytes::Small.packet_bytes() - TAGGED_HEADER_BYTES;

/// Bytes of the longest frame that an interface lets through, if a wire cannot take it.
pub(crate) fn too_long(interface: &Interface) -> Option<u32> {
    (interface.mtu_bytes > LONGEST_MTU).then(|| interface.mtu_bytes + TAGGED_HEADER_BYTES)
}

/// Checks that an interface can be one side of a wire to another one, and its policy one that a wire can keep.
///
/// # Errors
///
/// The kernel, the interface or the policy lacks what the engine needs.
pub(crate) fn check(interface: &Interface, partner: &str, policy: &Resolved) -> Result<()> {
    let name = &interface.name;
    if !sluice_xsk::is_supported() {
        return Err(Error::unsupported(
            "this kernel has no AF_XDP sockets (CONFIG_XDP_SOCKETS), which engine xsk needs",
        )
        .help("use `sluice up`, whose engines work on a router, without AF_XDP"));
    }
    if !interface.ethernet || name == "lo" {
        return Err(Error::input(format!("{name} has no Ethernet header, and a wire carries Ethernet frames"))
            .help("name two Ethernet interfaces"));
    }
    if let Some(most_bytes) = too_long(interface) {
        let what = format!(
            "frames of {name} have up to {most_bytes} bytes, and a frame of AF_XDP holds {}",
            FrameBytes::Small.packet_bytes()
        );
        return Err(
            Error::input(what).help(format!("ip link set {name} mtu {LONGEST_MTU}, on the hosts beside it as well"))
        );
    }
    if let Some(network) = &policy.network {
        check_network(network, name, partner)?;
    }
    check_policy(name, policy)
}

/// Checks that an interface can become one side of a wire to another one with this policy. Returns the number of workers. `wanted`: `--workers`.
///
/// # Errors
///
/// As of [`check`] and [`xsk_workers::choose`], and something else uses the interface.
pub(crate) fn check_new(interface: &Interface, partner: &str, policy: &Resolved, wanted: Option<u32>) -> Result<u32> {
    check(interface, partner, policy)?;
    let workers = xsk_workers::choose([interface, &Interface::find(partner)?], policy, wanted)?;
    check_unused(&interface.name)?;
    Ok(workers)
}

/// Checks that nothing else uses an interface that is to be a side of a wire: what comes for it would go to the other side.
///
/// # Errors
///
/// It has an address, or is part of another device.
fn check_unused(name: &str) -> Result<()> {
    let addresses = iproute::ip(&format!("-o addr show dev {name} scope global"))?;
    if let Some(address) = addresses.split_whitespace().nth(3) {
        return Err(Error::input(format!("{name} has the address {address}, which nobody would reach by it any more"))
            .help(format!("wire other interfaces, or remove it: ip addr flush dev {name}")));
    }
    let shown = iproute::ip(&format!("-o link show dev {name}"))?;
    let mut words = shown.split_whitespace().skip_while(|word| *word != "master");
    if let Some(master) = words.nth(1) {
        return Err(Error::input(format!("{name} is part of {master}, which would get no packets from it any more"))
            .help(format!("wire other interfaces, or take it out: ip link set dev {name} nomaster")));
    }
    Ok(())
}

fn check_policy(name: &str, policy: &Resolved) -> Result<()> {
    let cannot = [
        (policy.mode == Mode::ClassifyOnly, "\"mode\": \"classify_only\"", "a wire queues"),
        (
            policy.mode == Mode::ScheduleOnly { by: ClassFrom::Mark },
            "\"class_from\": \"mark\"",
            "packets have no marks where a wire takes them",
        ),
        (!policy.forwards.is_empty(), "\"forwards\"", "a wire has no addresses of its own"),
        (!policy.arrivals_of.is_empty(), "\"arrivals_of\"", "a wire is of two interfaces"),
    ];
    if let Some((_, key, why)) = cannot.iter().find(|(holds, _, _)| *holds) {
        return Err(Error::input(format!("{name}: the policy has {key}, and {why}")).help("remove it from the policy"));
    }
    let by_card = |one: &&ResolvedRule| one.rule.vlan.is_some() || one.rule.pcp.is_some() || one.rule.mark.is_some();
    if let Some(ResolvedRule { rule, .. }) = policy.rules.iter().find(by_card) {
        let what = format!(
            "{name}: the rule of priority {} asks for a VLAN, its priority or a mark, which XDP does not see",
            rule.priority
        );
        return Err(Error::input(what).help("remove vlan_id, pcp and mark from the rule"));
    }
    Ok(())
}

/// Checks that a network is one that the wire between two interfaces can have.
///
/// # Errors
///
/// It tells subscribers by what XDP does not see, or does not say on which side of the wire they are.
fn check_network(network: &Network, interface: &str, partner: &str) -> Result<()> {
    if let Some((address, leaf)) = network.addresses.iter().find(|(address, _)| address.prefix().is_none()) {
        let kind = if matches!(address, Address::Mark(_)) {
            "packets have no marks where a wire takes them"
        } else {
            "a card may have taken the tag out of the frame before"
        };
        let id = network.leaves.get(usize::from(*leaf)).map_or("", |leaf| &leaf.node.id);
        let what = format!("{interface}: subscriber \"{id}\" has the address {address}, and {kind}");
        return Err(Error::input(what).help("give the subscriber addresses instead, or use `sluice up` on a router"));
    }
    if network.is_class_tree() || network.way(interface) != network.way(partner) {
        return Ok(());
    }
    let (how, cure) = match network.way(interface) {
        Way::Down => ("both", format!("leave the one out that leads to the internet: {interface} or {partner}")),
        Way::Up => ("neither", format!("add the one that leads to the subscribers: {interface} or {partner}")),
    };
    Err(Error::input(format!("\"subscriber_side\" of the policy has {how} of {interface} and {partner}, and a wire has one side towards the subscribers"))
        .help(cure))
}
