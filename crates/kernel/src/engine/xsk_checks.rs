//! The conditions that interfaces and policies must meet for a wire.

use crate::engine::xsk_workers;
use crate::system::interface::{Interface, TAGGED_HEADER_BYTES};
use crate::system::{channels, iproute};
use sluice_error::{Error, Result};
use sluice_policy::network::{Address, Network, Way};
use sluice_policy::{ClassFrom, Mode, Resolved, ResolvedRule};
use sluice_xsk::FrameBytes;
use std::io;

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
    if let Some(why) = cannot_be_a_side(interface) {
        return Err(Error::input(why).help(other_interfaces()));
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

/// The reason why an interface of this kind is no side of a wire. None: it may be one.
fn cannot_be_a_side(interface: &Interface) -> Option<String> {
    let name = &interface.name;
    match interface.kind.as_deref() {
        _ if name == "lo" => {
            Some("lo carries what this host sends to itself, and a wire is between two others".to_owned())
        }
        _ if !interface.ethernet => Some(format!("{name} has no Ethernet header, and a wire carries Ethernet frames")),
        Some(kind @ ("bridge" | "ifb" | "dummy")) => {
            Some(format!("{name} is a device of kind {kind}, whose driver runs no XDP programs, and a wire needs them"))
        }
        _ => None,
    }
}

/// The cure of a name that cannot be a side: the interfaces that can, as far as their kind tells.
fn other_interfaces() -> String {
    let names = Interface::names().unwrap_or_default();
    let found = names.iter().filter_map(|name| Interface::find(name).ok());
    let can: Vec<String> =
        found.filter(|interface| cannot_be_a_side(interface).is_none()).map(|interface| interface.name).collect();
    match &can[..] {
        [] => "a wire needs two Ethernet interfaces, and there is none here".to_owned(),
        all => format!("name two Ethernet interfaces, of a bridge its ports: {}", all.join(", ")),
    }
}

/// The cure where the driver of an interface takes no XDP program.
pub(crate) fn cure_of_no_xdp(name: &str, error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) => format!("another XDP program is attached: detach it (ip link set dev {name} xdp off)"),
        Some(libc::ENOSPC) if is_veth(name) => fewer_queues_at_the_peer(name),
        Some(libc::EOPNOTSUPP) => {
            "its driver runs no XDP programs, and a wire needs one: take an interface of which `sluice doctor` says \"AF_XDP\", or use `sluice up`, \
             whose engines need none"
                .to_owned()
        }
        Some(libc::ERANGE) => format!("the frames of its other end are too long for XDP: ip link set dev {name} mtu {LONGEST_MTU}, and there as well"),
        _ => format!("if another program is attached, detach it (ip link set dev {name} xdp off); `dmesg` may say more"),
    }
}

/// Whether an interface is an end of a veth.
pub(crate) fn is_veth(name: &str) -> bool {
    Interface::find(name).is_ok_and(|interface| interface.kind.as_deref() == Some("veth"))
}

/// The cure of a veth whose other end sends by more queues than this one receives by: the kernel refuses XDP there (veth_xdp_set in drivers/net/veth.c).
pub(crate) fn fewer_queues_at_the_peer(name: &str) -> String {
    let queues = Interface::find(name).and_then(|interface| channels::receive_queues(&interface)).unwrap_or(1);
    let shown = iproute::ip(&format!("-o link show dev {name}")).unwrap_or_default();
    let (peer, there) = peer_of(&shown, name);
    let receive = xsk_workers::count(queues, "receive queue");
    format!("{name} has {receive}, and its other end sends by more: ethtool -L {peer} tx {queues}{there}")
}

/// The name of the other end of a veth, as far as `ip -o link` tells, and where it is.
fn peer_of(shown: &str, name: &str) -> (String, String) {
    let after = shown.split_once(&format!(" {name}@")).map_or("", |(_, after)| after);
    let peer = after.split(':').next().unwrap_or_default();
    match (peer.strip_prefix("if").map(str::parse::<u32>), shown.split_once("link-netns ")) {
        (Some(Ok(number)), Some((_, rest))) => {
            let namespace = rest.split_whitespace().next().unwrap_or_default();
            ("PEER".to_owned(), format!(" in the network namespace {namespace}, where PEER is interface {number}"))
        }
        (Some(Ok(number)), None) => {
            ("PEER".to_owned(), format!(", where PEER is interface {number} of another network namespace"))
        }
        _ if peer.is_empty() => ("PEER".to_owned(), format!(", where PEER is the other end of {name}")),
        _ => (peer.to_owned(), String::new()),
    }
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

#[cfg(test)]
mod tests {
    use super::peer_of;

    #[test]
    fn the_other_end_of_a_veth_is_named() {
        let of = |shown: &str| peer_of(shown, "m0");
        let here = "7: m0@n0: <BROADCAST> mtu 1500";
        assert_eq!(of(here), ("n0".to_owned(), String::new()));
        let named = "7: m0@if4: <BROADCAST> mtu 1500 link/ether 02:00 brd ff:ff link-netns near";
        let (peer, there) = of(named);
        assert_eq!(peer, "PEER");
        assert!(there.contains("namespace near") && there.contains("interface 4"), "{there}");
        let (_, there) = of("7: m0@if4: <BROADCAST> mtu 1500 link/ether 02:00 brd ff:ff link-netnsid 0");
        assert!(there.contains("interface 4 of another network namespace"), "{there}");
        let (_, there) = of("7: m0: <BROADCAST> mtu 1500");
        assert!(there.contains("the other end of m0"), "{there}");
    }
}
