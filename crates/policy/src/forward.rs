//! Forwards: ports that the interface listens on, and the targets to which their packets go on.

use crate::class_id::ClassId;
use std::fmt;
use std::net::IpAddr;

/// The most forwards that a policy may have.
pub const MAX_FORWARDS: usize = 10_000;
/// The connections of forwards that are remembered by default.
pub const DEFAULT_CONNECTIONS: u32 = 65_536;
/// The fewest connections that a policy may ask room for.
pub const LEAST_CONNECTIONS: u32 = 1_024;
/// The most connections that a policy may ask room for.
pub const MAX_CONNECTIONS: u32 = 1 << 20;
/// The most targets of one forward.
pub const MAX_TARGETS: usize = 64;
/// The heaviest weight of a target.
pub const MAX_TARGET_WEIGHT: u32 = 256;
/// The longest name of a forward, in bytes.
pub const MAX_FORWARD_NAME_BYTES: usize = 31;

/// First and last port of a range.
pub type Ports = (u16, u16);

/// One forward. What arrives at the listen address and ports goes to a target, and what the target answers comes back as from there.
#[derive(Debug, Clone)]
pub struct Forward {
    /// The forward's name, 1 to 31 bytes, unique.
    pub name: String,
    /// The protocols that are forwarded.
    pub transport: Transport,
    /// The address that clients use. `None`: every address of the interface.
    pub listen: Option<IpAddr>,
    /// The ports that clients use; never 0.
    pub ports: Ports,
    /// The targets, 1 to [`MAX_TARGETS`]. All are of the family of `listen`, or without one of one family, unless the source is masqueraded.
    pub targets: Vec<Target>,
    /// The source address that targets see.
    pub source: ForwardSource,
    /// The class of the forward's packets in both directions. `None`: the rules choose.
    pub class: Option<ClassId>,
    /// The fate of open connections when the forward is changed or removed.
    pub connections: OldConnections,
    /// The line of the file it starts on, from 1; 0 if it came from no file. Not part of equality.
    pub line: u32,
}

impl PartialEq for Forward {
    fn eq(&self, other: &Forward) -> bool {
        // All fields are listed so that a new one cannot be forgotten.
        let Forward { name, transport, listen, ports, targets, source, class, connections, line: _ } = self;
        *name == other.name
            && *transport == other.transport
            && *listen == other.listen
            && *ports == other.ports
            && *targets == other.targets
            && *source == other.source
            && *class == other.class
            && *connections == other.connections
    }
}

impl Forward {
    /// How many ports the forward has.
    pub fn port_count(&self) -> u32 {
        u32::from(self.ports.1) - u32::from(self.ports.0) + 1
    }

    /// The ports of one of its targets.
    pub fn target_ports(&self, target: &Target) -> Ports {
        (target.first_port, target.first_port + (self.ports.1 - self.ports.0))
    }

    /// Whether a packet can be for both forwards.
    pub fn overlaps(&self, other: &Forward) -> bool {
        let addresses = match (self.listen, other.listen) {
            (Some(own), Some(other)) => own == other,
            // Every address of the interface: only those of the targets' family are forwarded.
            _ => self.is_ipv4() == other.is_ipv4(),
        };
        let protocols = self.transport == other.transport
            || self.transport == Transport::Both
            || other.transport == Transport::Both;
        addresses && protocols && self.ports.0 <= other.ports.1 && other.ports.0 <= self.ports.1
    }

    /// Whether connections to a target are translated between IPv4 and IPv6.
    pub fn translates_to(&self, target: IpAddr) -> bool {
        self.is_ipv4() != target.is_ipv4()
    }

    /// Whether connections to some target are translated between IPv4 and IPv6.
    pub fn translates(&self) -> bool {
        self.targets.iter().any(|target| self.translates_to(target.address))
    }

    /// Whether clients use IPv4; else IPv6.
    pub fn is_ipv4(&self) -> bool {
        self.listen.or(self.targets.first().map(|target| target.address)).is_none_or(|address| address.is_ipv4())
    }
}

/// A place to which a forward's connections go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The target's address.
    pub address: IpAddr,
    /// The port that the first of the forward's ports goes to; the others follow.
    pub first_port: u16,
    /// The target's share of new connections, 1 to [`MAX_TARGET_WEIGHT`].
    pub weight: u32,
}

/// The protocols of a forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// TCP and UDP.
    Both,
}

impl Transport {
    /// Every choice with its name in policy files.
    pub const NAMES: &[(&str, Transport)] =
        &[("tcp", Transport::Tcp), ("udp", Transport::Udp), ("both", Transport::Both)];

    /// The numbers of the IP protocols.
    pub fn protocols(self) -> &'static [u8] {
        match self {
            Transport::Tcp => &[6],
            Transport::Udp => &[17],
            Transport::Both => &[6, 17],
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(Transport::NAMES.iter().find(|(_, transport)| transport == self).map_or("", |(name, _)| name))
    }
}

/// The source address of packets on their way to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForwardSource {
    /// The client's. The target must send its answers through this host.
    #[default]
    Keep,
    /// An address of this host on the way to the target.
    Masquerade,
}

impl ForwardSource {
    /// Every choice with its name in policy files.
    pub const NAMES: &[(&str, ForwardSource)] =
        &[("keep", ForwardSource::Keep), ("masquerade", ForwardSource::Masquerade)];
}

/// The fate of open connections when their forward is changed or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OldConnections {
    /// They stay with their target until they end.
    #[default]
    Keep,
    /// They are cut.
    Cut,
}

impl OldConnections {
    /// Every choice with its name in policy files.
    pub const NAMES: &[(&str, OldConnections)] = &[("keep", OldConnections::Keep), ("cut", OldConnections::Cut)];
}
