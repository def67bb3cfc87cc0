//! The rule of a packet: each rule is asked in turn.

use crate::parse::Seen;
use sluice_abi as abi;
use sluice_policy::{IpNet, Protocol, Resolved, ResolvedRule};
use std::net::IpAddr;

/// Metadata of a packet that the host knows besides its bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Outside {
    /// Firewall mark.
    pub mark: u32,
    /// Number of the interface where the packet came in.
    pub interface: u32,
}

/// The rule's place in the order of priorities, or `enum sl_no_rule`; and the class.
pub fn choose(policy: &Resolved, interfaces: &[(String, u32)], seen: &Seen, outside: Outside) -> (u32, u8) {
    let control = control_rule(seen);
    for (place, rule) in policy.rules.iter().enumerate() {
        if asks_nothing(rule) && control != abi::SL_RULE_NONE {
            break;
        }
        if matches(rule, interfaces, seen, outside) {
            return (place as u32, rule.rule.class.0);
        }
    }
    (control, if control == abi::SL_RULE_NONE { policy.default_class.0 } else { policy.urgent_class.0 })
}

/// The built-in rule of a packet: ARP, neighbour discovery, DHCP or DHCPv6.
fn control_rule(seen: &Seen) -> u32 {
    match (seen.proto, seen.ports) {
        (abi::SL_PROTO_ARP, _) => abi::SL_RULE_ARP,
        (abi::SL_PROTO_ND, _) => abi::SL_RULE_ND,
        (17, Some((67 | 68, 67 | 68))) => abi::SL_RULE_DHCP,
        (17, Some((546 | 547, 546 | 547))) if is_on_link(seen) => abi::SL_RULE_DHCPV6,
        _ => abi::SL_RULE_NONE,
    }
}

/// Whether one of the addresses is link-local, of IPv6.
fn is_on_link(seen: &Seen) -> bool {
    let link_local = |address: IpAddr| matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    seen.addresses.is_some_and(|(src, dst)| link_local(src) || link_local(dst))
}

fn asks_nothing(rule: &ResolvedRule) -> bool {
    let blank = sluice_policy::Rule {
        name: rule.rule.name.clone(),
        ..sluice_policy::Rule::new(rule.rule.priority, rule.rule.class)
    };
    rule.rule == blank
}

fn matches(resolved: &ResolvedRule, interfaces: &[(String, u32)], seen: &Seen, outside: Outside) -> bool {
    let rule = &resolved.rule;
    let protocol = match rule.protocol {
        Protocol::Any => true,
        Protocol::Tcp => seen.proto == 6,
        Protocol::Udp => seen.proto == 17,
        Protocol::Icmp => [1, 58, abi::SL_PROTO_ND].contains(&seen.proto),
        Protocol::Number(58) => [58, abi::SL_PROTO_ND].contains(&seen.proto),
        Protocol::Number(number) => seen.proto == u32::from(number),
    };
    let inside = |nets: &[IpNet], address: Option<IpAddr>| {
        nets.is_empty() || address.is_some_and(|address| nets.iter().any(|net| net.contains(&address)))
    };
    let among = |ranges: &[(u16, u16)], port: Option<u16>| {
        ranges.is_empty() || port.is_some_and(|port| ranges.iter().any(|&(low, high)| low <= port && port <= high))
    };
    let icmp = rule.icmp.is_none_or(|asked| match seen.icmp {
        Some((false, kind)) => asked.v4 == Some(kind),
        Some((true, kind)) => asked.v6 == Some(kind),
        None => false,
    });
    let flags = rule
        .tcp_flags
        .is_none_or(|asked| seen.tcp_flags.is_some_and(|own| own & asked.set == asked.set && own & asked.clear == 0));
    let interface = rule
        .in_interface
        .as_ref()
        .is_none_or(|name| interfaces.iter().any(|(own, index)| own == name && *index == outside.interface));
    protocol
        && inside(&resolved.src, seen.addresses.map(|pair| pair.0))
        && inside(&resolved.dst, seen.addresses.map(|pair| pair.1))
        && among(&resolved.src_ports, seen.ports.map(|pair| pair.0))
        && among(&resolved.dst_ports, seen.ports.map(|pair| pair.1))
        && rule.dscp.is_none_or(|dscp| seen.dscp == Some(dscp))
        && rule.vlan.is_none_or(|vlan| seen.tag.is_some_and(|(id, _)| id == vlan))
        && rule.pcp.is_none_or(|pcp| seen.tag.is_some_and(|(_, own)| own == pcp))
        && icmp
        && flags
        && rule.length.is_none_or(|(low, high)| seen.length.is_some_and(|own| low <= own && own <= high))
        && interface
        && rule.mark.is_none_or(|mark| mark == outside.mark)
}
