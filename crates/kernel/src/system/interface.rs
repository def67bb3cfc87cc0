//! The properties of an interface that engines need.

use crate::system::netlink;
use sluice_error::{Error, Result};
use std::net::IpAddr;

/// Bytes of an Ethernet header with two VLAN tags.
pub(crate) const TAGGED_HEADER_BYTES: u32 = 14 + 2 * 4;

/// Prefixes of the names of our own devices, before the number of the interface that they serve (`Record::ingress_device`,
/// `Record::split_device`).
const OWN_DEVICES: [&str; 2] = ["sluice-in", "sluice-sp"];

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Name of the interface.
    pub name: String,
    /// Number of the interface in its namespace.
    pub ifindex: u32,
    /// Largest network-layer packet, bytes.
    pub mtu_bytes: u32,
    /// Whether the interface's packets start with an Ethernet header.
    pub ethernet: bool,
    /// Whether the interface is up.
    pub up: bool,
    /// Transmit queues.
    pub tx_queues: u32,
    /// Receive queues that it can have; see [`crate::system::channels`] for those in use.
    pub rx_queues: u32,
    /// Kind of a virtual device (veth, bridge, bond, vlan ...); none for a real one.
    pub kind: Option<String>,
    /// Whether an XDP program is attached.
    pub has_xdp: bool,
    /// Whether the interface's other end is in another network namespace.
    pub peer_elsewhere: bool,
}

/// Name and number of every interface of the process's namespace.
pub fn indices() -> Result<Vec<(String, u32)>> {
    let all = nix::net::if_::if_nameindex().map_err(|error| Error::system(format!("listing interfaces: {error}")))?;
    Ok(all.iter().map(|one| (one.name().to_string_lossy().into_owned(), one.index())).collect())
}

/// The addresses of all interfaces of this network namespace, with the name of the interface.
pub fn addresses() -> Result<Vec<(String, IpAddr)>> {
    let all = nix::ifaddrs::getifaddrs().map_err(|error| Error::system(format!("listing addresses: {error}")))?;
    let address = |one: nix::ifaddrs::InterfaceAddress| {
        let address = one.address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        let found = v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))?;
        Some((one.interface_name, found))
    };
    Ok(all.filter_map(address).collect())
}

/// Whether an interface can have this name. Input is checked so before it becomes part of a path or a command line.
pub fn can_be_named(name: &str) -> bool {
    // The kernel puts a number in the place of %d.
    let wrong = |c: char| matches!(c, '/' | ':' | '%') || c.is_whitespace() || c.is_control();
    // Below /proc/sys/net two names mean all interfaces, and those to come.
    let taken = [".", "..", "all", "default"].contains(&name);
    (1..=15).contains(&name.len()) && !taken && !name.starts_with('-') && !name.contains(wrong)
}

/// The error of a name that no interface has.
pub fn no_such(name: &str) -> Error {
    let names: Vec<String> = Interface::names().unwrap_or_default();
    let names: Vec<String> = names.iter().map(|name| name.escape_debug().to_string()).collect();
    Error::input(format!("there is no interface `{}`", name.escape_debug()))
        .help(format!("the interfaces here are: {}", names.join(", ")))
}

/// Whether a device is one that we make for another interface's queues, by its name.
pub(crate) fn is_own_device(name: &str) -> bool {
    let number = OWN_DEVICES.iter().find_map(|prefix| name.strip_prefix(prefix));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

impl Interface {
    /// An Ethernet interface with one queue, for tests.
    #[cfg(test)]
    pub(crate) fn example() -> Interface {
        Interface {
            name: "eth0".to_owned(),
            ifindex: 2,
            mtu_bytes: 1500,
            ethernet: true,
            up: true,
            tx_queues: 1,
            rx_queues: 1,
            kind: None,
            has_xdp: false,
            peer_elsewhere: false,
        }
    }

    /// The interface of this name in the process's namespace.
    pub fn find(name: &str) -> Result<Interface> {
        let ifindex = if can_be_named(name) { nix::net::if_::if_nametoindex(name).unwrap_or(0) } else { 0 };
        let link = if ifindex == 0 { None } else { netlink::link(ifindex)? };
        if name.contains('#') {
            return Err(Error::input(format!(
                "an interface named `{name}` cannot be managed: tc reads # as a comment"
            ))
            .help("rename it: ip link set dev NAME name OTHER"));
        }
        if is_own_device(name) {
            return Err(Error::input(format!("`{name}` is a device of sluice itself"))
                .help("name the interface that it serves; `sluice status` lists those that are managed"));
        }
        let Some(link) = link.filter(|link| link.name == name) else { return Err(no_such(name)) };
        Ok(Interface {
            name: link.name,
            ifindex,
            mtu_bytes: link.mtu_bytes,
            ethernet: matches!(link.hardware, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK),
            up: link.flags & libc::IFF_UP as u32 != 0,
            tx_queues: link.tx_queues.max(1),
            rx_queues: link.rx_queues.max(1),
            kind: link.kind,
            has_xdp: link.has_xdp,
            peer_elsewhere: link.peer_elsewhere,
        })
    }

    /// The names of the interfaces in the process's namespace that can be managed: our own devices cannot.
    pub fn names() -> Result<Vec<String>> {
        Ok(indices()?.into_iter().map(|(name, _)| name).filter(|name| !is_own_device(name)).collect())
    }

    /// The name of the interface of a number, in the process's namespace.
    pub fn name_of(ifindex: u32) -> Option<String> {
        let name = nix::net::if_::if_indextoname(ifindex).ok()?.to_string_lossy().into_owned();
        // nix returns an empty name for a number that no interface has.
        (!name.is_empty()).then_some(name)
    }

    /// Whether an interface of this name and number is there.
    pub fn is_there(name: &str, ifindex: u32) -> bool {
        nix::net::if_::if_nametoindex(name).is_ok_and(|found| found == ifindex)
    }

    /// Bytes of link-layer header that the host counts in a packet's length.
    pub fn header_bytes(&self) -> u32 {
        if self.ethernet { 14 } else { 0 }
    }
}

/// The fate of an interface that had this name and number, as a sentence; None: it still has both.
pub fn fate(name: &str, ifindex: u32) -> Option<String> {
    if Interface::is_there(name, ifindex) {
        return None;
    }
    Some(match nix::net::if_::if_indextoname(ifindex) {
        // While the kernel removes a device, its number has an empty name.
        Ok(now) if !now.is_empty() => format!("{name} is called {} now", now.to_string_lossy()),
        _ => format!("{name} was removed"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_the_kernel_takes() {
        for name in ["eth0", "br-lan", "ppp0.35", "a@b", "wlan0", "fifteen-letters", "..."] {
            assert!(can_be_named(name), "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            "../../etc",
            "a/b",
            "a:1",
            "a b",
            "-rf",
            "g%d",
            "all",
            "default",
            "a\u{85}b",
            "sixteen-letters-",
        ] {
            assert!(!can_be_named(name), "{name:?}");
        }
    }

    #[test]
    fn our_own_devices_are_known_by_their_names() {
        for name in ["sluice-in3", "sluice-sp12"] {
            assert!(is_own_device(name), "{name}");
        }
        for name in ["sluice-in", "sluice-in3x", "sluice-lan", "eth0", "sluice0"] {
            assert!(!is_own_device(name), "{name}");
        }
    }
}
