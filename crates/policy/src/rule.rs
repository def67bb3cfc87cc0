//! Rules as in a policy's file: what a packet must be for a class.

use crate::class_id::ClassId;
use ipnet::IpNet;
use std::fmt;

/// One value of a rule's condition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Term<T> {
    /// A value.
    Is(T),
    /// The values of the named set.
    In(String),
}

/// The values of a rule's condition. An empty list is no condition.
pub type Terms<T> = Vec<Term<T>>;

/// An ICMP type: its numbers in ICMP and ICMPv6, which have the same meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IcmpType {
    /// The number in ICMP.
    pub v4: Option<u8>,
    /// The number in ICMPv6.
    pub v6: Option<u8>,
}

/// TCP flags as the low byte of RFC 9293's control bits: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpFlags {
    /// Flags that are set.
    pub set: u8,
    /// Flags that are not set.
    pub clear: u8,
}

/// One rule: all of its fields must match.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The rule's name, 1 to 63 bytes.
    pub name: Option<String>,
    /// The rule's place: the matching rule with the lowest number wins. Unique.
    pub priority: u32,
    /// Source prefixes. Empty: any address of either family. `0.0.0.0/0` and `::/0` here mean any of their family.
    pub src: Terms<IpNet>,
    /// Destination prefixes, with the same meanings as in `src`.
    pub dst: Terms<IpNet>,
    /// First and last source ports. A condition on ports matches only protocols with ports: TCP, UDP, DCCP, SCTP, UDP-Lite.
    pub src_ports: Terms<(u16, u16)>,
    /// First and last destination ports, with the same restriction.
    pub dst_ports: Terms<(u16, u16)>,
    /// Protocol.
    pub protocol: Protocol,
    /// DSCP, 0 to 63.
    pub dscp: Option<u8>,
    /// VLAN id of the outer tag, 1 to 4094.
    pub vlan: Option<u16>,
    /// Priority code point of the outer tag, 0 to 7.
    pub pcp: Option<u8>,
    /// ICMP type. With this condition only ICMP and ICMPv6 match.
    pub icmp: Option<IcmpType>,
    /// TCP flags. With this condition only TCP matches.
    pub tcp_flags: Option<TcpFlags>,
    /// Least and greatest length of the packet from its IP header on, bytes. With this condition only IP matches.
    pub length: Option<(u16, u16)>,
    /// Name of the interface on which the packet arrived. Packets of this host have none.
    pub in_interface: Option<String>,
    /// Firewall mark. Packets without a mark have 0.
    pub mark: Option<u32>,
    /// The class of matching packets.
    pub class: ClassId,
    /// The line of the file it starts on, from 1; 0 if it came from no file. Not part of equality.
    pub line: u32,
}

impl Rule {
    /// A rule that matches every packet.
    pub fn new(priority: u32, class: ClassId) -> Rule {
        Rule {
            name: None,
            priority,
            src: Vec::new(),
            dst: Vec::new(),
            src_ports: Vec::new(),
            dst_ports: Vec::new(),
            protocol: Protocol::Any,
            dscp: None,
            vlan: None,
            pcp: None,
            icmp: None,
            tcp_flags: None,
            length: None,
            in_interface: None,
            mark: None,
            class,
            line: 0,
        }
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Rule) -> bool {
        // All fields are listed so that a new one cannot be forgotten.
        let Rule { name, priority, src, dst, src_ports, dst_ports, protocol, dscp, vlan, .. } = self;
        let Rule { pcp, icmp, tcp_flags, length, in_interface, mark, class, line: _, .. } = self;
        *name == other.name
            && *priority == other.priority
            && *src == other.src
            && *dst == other.dst
            && *src_ports == other.src_ports
            && *dst_ports == other.dst_ports
            && *protocol == other.protocol
            && *dscp == other.dscp
            && *vlan == other.vlan
            && *pcp == other.pcp
            && *icmp == other.icmp
            && *tcp_flags == other.tcp_flags
            && *length == other.length
            && *in_interface == other.in_interface
            && *mark == other.mark
            && *class == other.class
    }
}

/// The protocol a rule asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Any protocol, and other than IP if no other condition needs IP.
    Any,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP or ICMPv6.
    Icmp,
    /// An IP protocol number; never 6 or 17, which are `Tcp` and `Udp`.
    Number(u8),
}

impl Protocol {
    /// The named protocols with their names in policy files.
    pub const NAMES: &[(&str, Protocol)] =
        &[("any", Protocol::Any), ("tcp", Protocol::Tcp), ("udp", Protocol::Udp), ("icmp", Protocol::Icmp)];

    /// The protocol of an IP protocol number.
    pub fn from_number(number: u8) -> Protocol {
        match number {
            6 => Protocol::Tcp,
            17 => Protocol::Udp,
            number => Protocol::Number(number),
        }
    }

    /// Whether packets of the protocol can have ports: TCP, UDP, DCCP, SCTP, UDP-Lite, and any.
    pub fn can_have_ports(self) -> bool {
        match self {
            Protocol::Any | Protocol::Tcp | Protocol::Udp => true,
            Protocol::Icmp => false,
            Protocol::Number(number) => [33, 132, 136].contains(&number),
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Protocol::Number(number) => number.fmt(f),
            named => f.pad(Protocol::NAMES.iter().find(|(_, p)| p == named).map_or("", |(name, _)| name)),
        }
    }
}
