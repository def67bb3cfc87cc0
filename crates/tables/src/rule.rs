//! Rules in the form that the tables need.
//!
//! ARP, neighbour discovery and DHCP go to the most urgent class unless a rule of the policy that names anything at
//! all says otherwise. So the built-in rules come after the policy's, but before a rule that matches every packet and
//! all rules after it: bpf/lib/choose.h asks them there.

use crate::Context;
use crate::bitmap::RuleSet;
use crate::error::MatchError;
use ipnet::IpNet;
use sluice_abi as abi;
use sluice_policy::{ClassId, IcmpType, Protocol, Resolved, TcpFlags};

/// The conditions of a rule. An empty list is no condition.
#[derive(Debug, Clone)]
pub(crate) struct Match {
    pub(crate) name: String,
    pub(crate) line: u32,
    pub(crate) priority: u32,
    pub(crate) class: ClassId,
    pub(crate) proto: Proto,
    pub(crate) src: Vec<IpNet>,
    pub(crate) dst: Vec<IpNet>,
    pub(crate) src_ports: Vec<(u16, u16)>,
    pub(crate) dst_ports: Vec<(u16, u16)>,
    pub(crate) dscp: Option<u8>,
    pub(crate) vlan: Option<u16>,
    pub(crate) pcp: Option<u8>,
    pub(crate) icmp: Option<IcmpType>,
    pub(crate) tcp_flags: Option<TcpFlags>,
    pub(crate) length: Option<(u16, u16)>,
    pub(crate) interface: Option<u32>,
    pub(crate) mark: Option<u32>,
}

/// The condition of a rule on the protocol index of a packet.
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
const ICMP: u32 = 1;
const ICMPV6: u32 = 58;

impl Match {
    /// The protocol indices of packets that can match, as far as the protocol and having ports decide it.
    pub(crate) fn protos(&self) -> Vec<usize> {
        let admits = |index: &u32| {
            let proto = match self.proto {
                Proto::Any => true,
                Proto::Icmp => [ICMP, ICMPV6, abi::SL_PROTO_ND].contains(index),
                Proto::Index(ICMPV6) => [ICMPV6, abi::SL_PROTO_ND].contains(index),
                Proto::Index(own) => *index == own,
            };
            proto && (!self.asks_ports() || WITH_PORTS.contains(index))
        };
        (0..=abi::SL_PROTO_OTHER).filter(admits).map(|index| index as usize).collect()
    }

    pub(crate) fn asks_ports(&self) -> bool {
        !self.src_ports.is_empty() || !self.dst_ports.is_empty()
    }

    /// The flag bytes of TCP headers that match.
    pub(crate) fn tcp_flag_bytes(&self) -> Vec<usize> {
        let Some(TcpFlags { set, clear }) = self.tcp_flags else { return Vec::new() };
        (0..=255u8).filter(|flags| flags & set == set && flags & clear == 0).map(usize::from).collect()
    }

    /// The ICMP types that match, those of ICMPv6 256 higher.
    pub(crate) fn icmp_types(&self) -> Vec<usize> {
        let Some(IcmpType { v4, v6 }) = self.icmp else { return Vec::new() };
        v4.map(usize::from).into_iter().chain(v6.map(|v6| 256 + usize::from(v6))).collect()
    }

    pub(crate) fn matches_everything(&self) -> bool {
        let Match { name: _, line: _, priority: _, class: _, proto, src, dst, src_ports, dst_ports, .. } = self;
        let Match { dscp, vlan, pcp, icmp, tcp_flags, length, interface, mark, .. } = self;
        *proto == Proto::Any
            && src.is_empty()
            && dst.is_empty()
            && src_ports.is_empty()
            && dst_ports.is_empty()
            && dscp.is_none()
            && vlan.is_none()
            && pcp.is_none()
            && icmp.is_none()
            && tcp_flags.is_none()
            && length.is_none()
            && interface.is_none()
            && mark.is_none()
    }

    pub(crate) fn describe(&self) -> abi::sl_rule {
        abi::sl_rule {
            class: self.class.0,
            pad: 0,
            line: u16::try_from(self.line).unwrap_or(0),
            priority: self.priority,
            name: crate::name(&self.name),
        }
    }
}

/// The rules in the order in which they are asked.
pub(crate) fn ordered(policy: &Resolved, context: &Context) -> Result<Vec<Match>, MatchError> {
    let index_of = |name: &String| {
        let found = context.interfaces.iter().find(|(own, _)| own == name);
        found.map(|&(_, index)| index).ok_or_else(|| MatchError::NoInterface(name.clone()))
    };
    let rules = policy.rules.iter().map(|resolved| {
        let rule = &resolved.rule;
        Ok(Match {
            name: rule.name.clone().unwrap_or_default(),
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
            src: resolved.src.clone(),
            dst: resolved.dst.clone(),
            src_ports: resolved.src_ports.clone(),
            dst_ports: resolved.dst_ports.clone(),
            dscp: rule.dscp,
            vlan: rule.vlan,
            pcp: rule.pcp,
            icmp: rule.icmp,
            tcp_flags: rule.tcp_flags,
            length: rule.length,
            interface: rule.in_interface.as_ref().map(index_of).transpose()?,
            mark: rule.mark,
        })
    });
    rules.collect()
}

/// The rules for which `asks` is false.
pub(crate) fn rules_without(rules: &[Match], asks: impl Fn(&Match) -> bool) -> RuleSet {
    rules.iter().enumerate().filter(|(_, rule)| !asks(rule)).map(|(i, _)| i).collect()
}
