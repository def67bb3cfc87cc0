//! The shapers that a card has itself, as netlink's families `net-shaper` (Documentation/netlink/specs/net_shaper.yaml, from Linux 6.13 on) and `devlink`
//! (Documentation/netlink/specs/devlink.yaml) tell it. Nothing is set here.

use crate::system::generic_netlink::{Family, attributes};
use crate::system::netlink::{attribute, text, word};
use std::fmt;

// include/uapi/linux/net_shaper.h
const SHAPER_CAP_GET: u8 = 5;
const CAPS_IFINDEX: u16 = 1;
const CAPS_SCOPE: u16 = 2;
/// The properties that a shaper can be given, by attribute.
const CAPS: [(u16, &str); 8] = [
    (3, "bits a second"),
    (4, "packets a second"),
    (5, "nested"),
    (6, "guarantee"),
    (7, "ceiling"),
    (8, "burst"),
    (9, "priority"),
    (10, "weight"),
];

// include/uapi/linux/devlink.h
const DEVLINK_PORT_GET: u8 = 5;
const DEVLINK_RATE_GET: u8 = 74;
const DEVLINK_BUS_NAME: u16 = 1;
const DEVLINK_DEV_NAME: u16 = 2;
const DEVLINK_PORT_NETDEV_IFINDEX: u16 = 6;
const DEVLINK_RATE_TYPE: u16 = 165;
const RATE_LEAF: u16 = 0;
const RATE_NODE: u16 = 1;

/// A place where a card has shapers: `enum net_shaper_scope`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The whole interface.
    Device,
    /// Each tx queue.
    Queue,
    /// Groups of queues.
    Node,
    /// One that is newer than this program.
    Other(u32),
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Device => f.write_str("the interface"),
            Scope::Queue => f.write_str("each tx queue"),
            Scope::Node => f.write_str("groups of queues"),
            Scope::Other(number) => write!(f, "scope {number}"),
        }
    }
}

/// The shapers of one scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shapers {
    pub(crate) scope: Scope,
    /// Words of `CAPS`.
    pub(crate) can: Vec<&'static str>,
}

/// The answer of `net-shaper` about an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NetShaper {
    /// The kernel has no such family.
    NoFamily,
    /// The driver has no shapers.
    NoShapers,
    /// It has these.
    Has(Vec<Shapers>),
}

impl NetShaper {
    /// None: the kernel refuses to tell, for another reason than that the driver has none.
    pub(crate) fn of(ifindex: u32) -> Option<NetShaper> {
        let Some(family) = Family::of("net-shaper") else { return Some(NetShaper::NoFamily) };
        match family.dump(SHAPER_CAP_GET, &attribute(CAPS_IFINDEX, &ifindex.to_ne_bytes())) {
            Ok(messages) => Some(NetShaper::read(ifindex, &messages)),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Some(NetShaper::NoShapers),
            Err(_) => None,
        }
    }

    /// Reads a dump of NET_SHAPER_CMD_CAP_GET: one message for each scope.
    fn read(ifindex: u32, messages: &[Vec<u8>]) -> NetShaper {
        let shapers: Vec<Shapers> = messages.iter().filter_map(|message| shapers_of(ifindex, message)).collect();
        if shapers.is_empty() { NetShaper::NoShapers } else { NetShaper::Has(shapers) }
    }
}

fn shapers_of(ifindex: u32, message: &[u8]) -> Option<Shapers> {
    let (mut scope, mut of, mut can) = (None, None, Vec::new());
    for attribute in attributes(message)? {
        match attribute.kind() {
            CAPS_IFINDEX => of = word(attribute.value(), 0),
            CAPS_SCOPE => {
                scope = Some(match word(attribute.value(), 0)? {
                    1 => Scope::Device,
                    2 => Scope::Queue,
                    3 => Scope::Node,
                    other => Scope::Other(other),
                });
            }
            kind => can.extend(CAPS.iter().find(|(cap, _)| *cap == kind).map(|(_, word)| *word)),
        }
    }
    (of == Some(ifindex) && !can.is_empty()).then_some(Shapers { scope: scope?, can })
}

/// The rates that a device of devlink has: of its leaves, which are ports of functions, and of nodes, which are groups of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DevlinkRates {
    /// Bus and address, as `devlink` writes them: pci/0000:01:00.0.
    pub(crate) device: String,
    pub(crate) leaves: u32,
    pub(crate) nodes: u32,
}

impl DevlinkRates {
    /// None: the kernel has no devlink, no device of it has the interface as a port, or the device has no rates.
    pub(crate) fn of(ifindex: u32) -> Option<DevlinkRates> {
        let family = Family::of("devlink")?;
        let device = device_of(ifindex, &family.dump(DEVLINK_PORT_GET, &[]).ok()?)?;
        rates_of(device, &family.dump(DEVLINK_RATE_GET, &[]).ok()?)
    }
}

/// The name of the device that a message is about.
fn device(message: &[u8]) -> Option<String> {
    let (mut bus, mut name) = (None, None);
    for attribute in attributes(message)? {
        match attribute.kind() {
            DEVLINK_BUS_NAME => bus = Some(text(attribute.value())),
            DEVLINK_DEV_NAME => name = Some(text(attribute.value())),
            _ => {}
        }
    }
    Some(format!("{}/{}", bus?, name?))
}

/// The device that has the interface as a port, in a dump of DEVLINK_CMD_PORT_GET.
fn device_of(ifindex: u32, ports: &[Vec<u8>]) -> Option<String> {
    let is_it = |message: &&Vec<u8>| {
        let of = |number: &[u8]| word(number, 0) == Some(ifindex);
        attributes(message).is_some_and(|mut all| {
            all.any(|attribute| attribute.kind() == DEVLINK_PORT_NETDEV_IFINDEX && of(attribute.value()))
        })
    };
    ports.iter().find(is_it).and_then(|message| device(message))
}

/// The rates of a device, in a dump of DEVLINK_CMD_RATE_GET.
fn rates_of(of: String, rates: &[Vec<u8>]) -> Option<DevlinkRates> {
    let kind = |message: &Vec<u8>| {
        let kind = attributes(message)?.find(|attribute| attribute.kind() == DEVLINK_RATE_TYPE)?;
        kind.value().get(..2)?.try_into().ok().map(u16::from_ne_bytes)
    };
    let own: Vec<u16> = rates.iter().filter(|message| device(message).as_ref() == Some(&of)).filter_map(kind).collect();
    let count = |wanted| own.iter().filter(|kind| **kind == wanted).count() as u32;
    let (leaves, nodes) = (count(RATE_LEAF), count(RATE_NODE));
    (leaves + nodes > 0).then_some(DevlinkRates { device: of, leaves, nodes })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of a family with these attributes. No card that answers was at hand: the bytes are those that the specifications give.
    fn message(command: u8, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![command, 1, 0, 0];
        attributes.iter().for_each(|(kind, value)| bytes.extend(attribute(*kind, value)));
        bytes
    }

    #[test]
    fn a_message_is_as_the_kernel_writes_it() {
        // genlmsghdr; u32 ifindex 7; u32 scope 2 (queue); flags bps, bw-max and weight, without a value.
        #[cfg(target_endian = "little")]
        assert_eq!(
            message(5, &[(1, &7u32.to_ne_bytes()), (2, &2u32.to_ne_bytes()), (3, &[]), (7, &[]), (10, &[])]),
            [5, 1, 0, 0, 8, 0, 1, 0, 7, 0, 0, 0, 8, 0, 2, 0, 2, 0, 0, 0, 4, 0, 3, 0, 4, 0, 7, 0, 4, 0, 10, 0]
        );
    }

    fn caps(ifindex: u32, scope: u32, flags: &[u16]) -> Vec<u8> {
        let (ifindex, scope) = (ifindex.to_ne_bytes(), scope.to_ne_bytes());
        let mut all: Vec<(u16, &[u8])> = vec![(CAPS_IFINDEX, &ifindex), (CAPS_SCOPE, &scope)];
        all.extend(flags.iter().map(|flag| (*flag, &[][..])));
        message(SHAPER_CAP_GET, &all)
    }

    #[test]
    fn shapers_are_told_by_their_scopes() {
        let messages = [caps(7, 1, &[3, 7]), caps(7, 2, &[3, 6, 7, 10]), caps(7, 3, &[3, 5, 7, 9, 10])];
        let has = |scope, can: &[&'static str]| Shapers { scope, can: can.to_vec() };
        assert_eq!(
            NetShaper::read(7, &messages),
            NetShaper::Has(vec![
                has(Scope::Device, &["bits a second", "ceiling"]),
                has(Scope::Queue, &["bits a second", "guarantee", "ceiling", "weight"]),
                has(Scope::Node, &["bits a second", "nested", "ceiling", "priority", "weight"]),
            ])
        );
    }

    #[test]
    fn other_interfaces_newer_scopes_and_flags_do_no_harm() {
        let messages = [caps(8, 1, &[3, 7]), caps(7, 9, &[3, 77]), caps(7, 2, &[])];
        let newer = Shapers { scope: Scope::Other(9), can: vec!["bits a second"] };
        assert_eq!(NetShaper::read(7, &messages), NetShaper::Has(vec![newer]));
        assert_eq!(NetShaper::read(7, &[]), NetShaper::NoShapers);
        let whole = caps(7, 1, &[3, 7]);
        for length in 0..20 {
            assert_eq!(NetShaper::read(7, &[whole[..length].to_vec()]), NetShaper::NoShapers, "{length}");
        }
    }

    fn rate(device: &str, kind: u16) -> Vec<u8> {
        let (device, kind) = ([device.as_bytes(), &[0]].concat(), kind.to_ne_bytes());
        message(76, &[(DEVLINK_BUS_NAME, b"pci\0"), (DEVLINK_DEV_NAME, &device), (DEVLINK_RATE_TYPE, &kind)])
    }

    #[test]
    fn leaves_and_nodes_of_the_device_of_a_port_are_counted() {
        let port = |device: &str, ifindex: u32| {
            let (device, ifindex) = ([device.as_bytes(), &[0]].concat(), ifindex.to_ne_bytes());
            let own: [(u16, &[u8]); 3] =
                [(DEVLINK_BUS_NAME, b"pci\0"), (DEVLINK_DEV_NAME, &device), (DEVLINK_PORT_NETDEV_IFINDEX, &ifindex)];
            message(7, &own)
        };
        let ports = [port("0000:01:00.0", 4), port("0000:01:00.1", 5)];
        assert_eq!(device_of(5, &ports).as_deref(), Some("pci/0000:01:00.1"));
        assert_eq!(device_of(6, &ports), None);
        let rates = [
            rate("0000:01:00.0", RATE_NODE),
            rate("0000:01:00.1", RATE_NODE),
            rate("0000:01:00.1", RATE_LEAF),
            rate("0000:01:00.1", RATE_LEAF),
        ];
        let own = DevlinkRates { device: "pci/0000:01:00.1".to_owned(), leaves: 2, nodes: 1 };
        assert_eq!(rates_of("pci/0000:01:00.1".to_owned(), &rates), Some(own));
        assert_eq!(rates_of("pci/0000:01:00.2".to_owned(), &rates), None);
        for length in 0..24 {
            assert_eq!(rates_of("pci/0000:01:00.1".to_owned(), &[rates[1][..length].to_vec()]), None, "{length}");
        }
    }

    #[test]
    fn the_loopback_interface_has_no_shapers() {
        let lo = nix::net::if_::if_nametoindex("lo").expect("every namespace has one");
        let told = NetShaper::of(lo);
        assert!(matches!(told, Some(NetShaper::NoFamily | NetShaper::NoShapers)), "{told:?}");
        assert_eq!(DevlinkRates::of(lo), None);
    }
}
