//! Rules as the tables know them: the policy's own, and the built-in ones that keep a network usable.
//!
//! ARP, neighbour discovery and DHCP go to the most urgent class unless a rule of the policy that names anything at
//! all says otherwise. So the built-in rules come after the policy's, but before a rule that matches every packet and
//! whatever follows it.

use ipnet::IpNet;
use sluice_abi as abi;
use sluice_policy::{ClassId, Protocol, Resolved};

/// What a rule asks of a packet.
#[derive(Debug, Clone)]
pub(crate) struct Match {
    pub(crate) name: String,
    pub(crate) builtin: bool,
    pub(crate) line: u32,
    pub(crate) priority: u32,
    pub(crate) class: ClassId,
    pub(crate) proto: Proto,
    pub(crate) src: Option<IpNet>,
    pub(crate) dst: Option<IpNet>,
    pub(crate) src_ports: Option<(u16, u16)>,
    pub(crate) dst_ports: Option<(u16, u16)>,
    pub(crate) dscp: Option<u8>,
    pub(crate) vlan: Option<u16>,
}

/// What a rule asks of the protocol index of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proto {
    Any,
    /// One `enum sl_proto_index`.
    Index(u32),
    /// ICMP and ICMPv6, neighbour discovery with it.
    Icmp,
}

/// Protocols that have ports where the parser reads them.
const WITH_PORTS: [u32; 5] = [6, 17, 33, 132, 136];
const ICMPV6: u32 = 58;

impl Match {
    /// Whether packets of this protocol index can match, as far as the protocol and having ports decide it.
    pub(crate) fn admits(&self, index: u32) -> bool {
        let proto = match self.proto {
            Proto::Any => true,
            Proto::Icmp => index == 1 || index == ICMPV6 || index == abi::SL_PROTO_ND,
            Proto::Index(ICMPV6) => index == ICMPV6 || index == abi::SL_PROTO_ND,
            Proto::Index(own) => index == own,
        };
        let asks_ports = self.src_ports.is_some() || self.dst_ports.is_some();
        proto && (!asks_ports || WITH_PORTS.contains(&index))
    }

    fn matches_everything(&self) -> bool {
        self.proto == Proto::Any
            && self.src.is_none()
            && self.dst.is_none()
            && self.src_ports.is_none()
            && self.dst_ports.is_none()
            && self.dscp.is_none()
            && self.vlan.is_none()
    }

    pub(crate) fn describe(&self) -> abi::sl_rule {
        abi::sl_rule {
            class: self.class.0,
            builtin: u8::from(self.builtin),
            line: u16::try_from(self.line).unwrap_or(0),
            priority: self.priority,
            name: crate::name(&self.name),
        }
    }
}

/// The rules in the order in which they are asked.
pub(crate) fn ordered(policy: &Resolved) -> Vec<Match> {
    let mut rules: Vec<Match> = policy
        .rules
        .iter()
        .map(|rule| Match {
            name: rule.name.clone().unwrap_or_default(),
            builtin: false,
            line: rule.line,
            priority: rule.priority,
            class: rule.class,
            proto: match rule.protocol {
                Protocol::Any => Proto::Any,
                Protocol::Tcp => Proto::Index(6),
                Protocol::Udp => Proto::Index(17),
                Protocol::Icmp => Proto::Icmp,
                Protocol::Number(number) => Proto::Index(u32::from(number)),
            },
            src: rule.src,
            dst: rule.dst,
            src_ports: rule.src_ports,
            dst_ports: rule.dst_ports,
            dscp: rule.dscp,
            vlan: rule.vlan,
        })
        .collect();
    let at = rules.iter().position(Match::matches_everything).unwrap_or(rules.len());
    rules.splice(at..at, builtin(policy.urgent_class));
    rules
}

fn builtin(class: ClassId) -> [Match; 4] {
    let rule = |name: &str, index: u32, dst_ports: Option<(u16, u16)>| Match {
        name: name.to_owned(),
        builtin: true,
        line: 0,
        priority: 0,
        class,
        proto: Proto::Index(index),
        src: None,
        dst: None,
        src_ports: None,
        dst_ports,
        dscp: None,
        vlan: None,
    };
    [
        rule("ARP", abi::SL_PROTO_ARP, None),
        rule("neighbour discovery", abi::SL_PROTO_ND, None),
        rule("DHCP", 17, Some((67, 68))),
        rule("DHCPv6", 17, Some((546, 547))),
    ]
}
