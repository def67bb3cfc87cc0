//! The keys of one rule.

use super::class;
use super::object::{Field, Object, Reader};
use crate::diagnostic::{Diagnostic, Kind};
use crate::policy::{ClassId, MAX_CLASSES, MAX_NAME_BYTES, Protocol, Rule};
use crate::source::Source;
use ipnet::{IpNet, Ipv4Net};
use jsonc_parser::ast::Value;
use std::net::{IpAddr, Ipv4Addr};

/// Every key of a rule.
pub(super) const KEYS: &[&str] = &[
    "name",
    "priority",
    "src_ip",
    "dst_ip",
    "src_port_min",
    "src_port_max",
    "dst_port_min",
    "dst_port_max",
    "protocol",
    "dscp",
    "vlan_id",
    "class_id",
];

const ADDRESS_HELP: &str = "write an address or a prefix, as \"10.0.0.0/8\", \"192.0.2.1\", \"2001:db8::/32\", or one of \"any\", \"ipv4\", \"ipv6\"";

/// Reads a rule; None if it lacks its class or priority.
pub(super) fn read(reader: &mut Reader, field: &Field, source: &Source) -> Option<Rule> {
    let object = reader.object(field.value, &field.path, "a rule", KEYS)?;
    let priority = reader
        .required(&object, "priority", "give each rule a number of its own; the lowest that matches wins")
        .and_then(|field| {
            reader.integer(field, 0..=i64::from(u32::MAX), "the matching rule with the lowest number wins")
        });
    let class = reader
        .required(&object, "class_id", "name the class of what matches by its id")
        .and_then(|field| reader.integer(field, 0..=MAX_CLASSES as i64 - 1, "the id of a class, 0 to 63"));
    let protocol = object.get("protocol").and_then(|field| protocol(reader, field));
    let vlan_help = "VLAN ids are 1 to 4094; leave it out to match with and without VLAN";
    let rule = Rule {
        name: object.get("name").and_then(|field| reader.name(field, MAX_NAME_BYTES)),
        priority: priority.unwrap_or(0),
        src: object.get("src_ip").and_then(|field| prefix(reader, field)),
        dst: object.get("dst_ip").and_then(|field| prefix(reader, field)),
        src_ports: ports(reader, &object, "src_port_min", "src_port_max"),
        dst_ports: ports(reader, &object, "dst_port_min", "dst_port_max"),
        protocol: protocol.unwrap_or(Protocol::Any),
        dscp: object.get("dscp").and_then(|field| class::dscp(reader, field)),
        vlan: object.get("vlan_id").and_then(|field| reader.integer(field, 1..=4094, vlan_help)),
        class: ClassId(class.unwrap_or(0)),
        line: source.line_column(object.span.start).0,
    };
    check_families(reader, &object, &rule);
    check_ports(reader, &object, &rule);
    (priority.is_some() && class.is_some()).then_some(rule)
}

fn protocol(reader: &mut Reader, field: &Field) -> Option<Protocol> {
    if matches!(field.value, Value::NumberLit(_)) {
        let meaning = "an IP protocol number, or one of \"tcp\", \"udp\", \"icmp\", \"any\"";
        return reader.integer(field, 0..=255, meaning).map(Protocol::from_number);
    }
    reader.choice(field, Protocol::NAMES)
}

/// A prefix. The published format's `0.0.0.0/0` means any address, of IPv6 too (it knew no other), as does `any`;
/// `ipv4` and `ipv6` mean any address of their family.
fn prefix(reader: &mut Reader, field: &Field) -> Option<IpNet> {
    let text = reader.string(field, ADDRESS_HELP)?;
    match text.trim() {
        "any" | "0.0.0.0/0" => return None,
        "ipv4" => return Some(IpNet::V4(Ipv4Net::default())),
        "ipv6" => return Some(IpNet::V6(Default::default())),
        _ => {}
    }
    let (address, length) = match text.trim().split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text.trim(), None),
    };
    let Ok(address) = address.parse::<IpAddr>() else {
        let title = format!("\"{}\": \"{address}\" is not an IP address", field.key);
        let mut finding = Diagnostic::error(Kind::Address, title).at(field.span(), "not an address");
        if address.chars().any(|c| c.is_ascii_alphabetic()) && !address.contains(':') {
            finding = finding.help("names are not looked up; a rule needs addresses");
        }
        reader.report(finding.help(ADDRESS_HELP));
        return None;
    };
    let Some(length) = length else { return Some(IpNet::from(address)) };
    let max = if address.is_ipv4() { 32 } else { 128 };
    let bad_length = |cure: String| {
        let title = format!("\"{}\": \"/{length}\" is not a prefix length", field.key);
        Diagnostic::error(Kind::Address, title).at(field.span(), "the part after the slash").help(cure)
    };
    let bits = match length.parse::<u8>() {
        Ok(bits) if bits <= max => bits,
        _ => {
            let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
            let cure = mask_length(address, length)
                .map_or(format!("a prefix of {family} has 0 to {max} bits"), |bits| {
                    format!("write \"{address}/{bits}\"")
                });
            reader.report(bad_length(cure));
            return None;
        }
    };
    let net = IpNet::new(address, bits).ok()?;
    if net.addr() != net.network() {
        let host_bits = format!("\"{}\": {net} has bits set beyond its {bits} bits", field.key);
        let finding = Diagnostic::error(Kind::HostBits, host_bits)
            .at(field.span(), "neither a network nor a host")
            .help(format!("write \"{}\" for the network, or \"{address}\" for the one host", net.trunc()));
        reader.report(finding);
        return None;
    }
    Some(net)
}

/// The length of a netmask that stands where a length should.
fn mask_length(address: IpAddr, mask: &str) -> Option<u8> {
    let mask: Ipv4Addr = mask.parse().ok()?;
    match address {
        IpAddr::V4(address) => Ipv4Net::with_netmask(address, mask).ok().map(|net| net.prefix_len()),
        IpAddr::V6(_) => None,
    }
}

/// A range of ports; 0 for both, or neither key, is any port, and only the first is that one port.
fn ports(reader: &mut Reader, object: &Object, min_key: &str, max_key: &str) -> Option<(u16, u16)> {
    let meaning = "a port is 0 to 65535; 0 for both ends is any port";
    let min_field = object.get(min_key);
    let max_field = object.get(max_key);
    let min = min_field.and_then(|field| reader.integer::<u16>(field, 0..=65_535, meaning));
    let max = max_field.and_then(|field| reader.integer::<u16>(field, 0..=65_535, meaning));
    match (min_field, max_field) {
        (None, None) => None,
        (Some(_), None) => min.filter(|&port| port > 0).map(|port| (port, port)),
        (None, Some(field)) => {
            if let Some(max) = max.filter(|&port| port > 0) {
                let finding =
                    Diagnostic::error(Kind::PortRange, format!("a rule has \"{max_key}\" but no \"{min_key}\""))
                        .at(field.key_span.clone(), "the end of a range without a beginning")
                        .help(format!("add `\"{min_key}\": {max}` for this one port, or the first port of the range"));
                reader.report(finding);
            }
            None
        }
        (Some(_), Some(field)) => {
            let (min, max) = (min?, max?);
            if min > max {
                let cure =
                    if max == 0 { format!("leave \"{max_key}\" out for port {min} alone") } else { "swap them".into() };
                let title = format!("a rule's ports run backwards: \"{min_key}\" {min} is above \"{max_key}\" {max}");
                let finding = Diagnostic::error(Kind::PortRange, title)
                    .at(field.span(), "the last port")
                    .at(min_field.map(|field| field.span()), "the first port")
                    .help(cure);
                reader.report(finding);
                return None;
            }
            (max > 0).then_some((min, max))
        }
    }
}

fn check_families(reader: &mut Reader, object: &Object, rule: &Rule) {
    let (Some(src), Some(dst)) = (rule.src, rule.dst) else { return };
    if src.addr().is_ipv4() != dst.addr().is_ipv4() {
        let family = |net: IpNet| if net.addr().is_ipv4() { "IPv4" } else { "IPv6" };
        let title = format!("a rule goes from {} to {}, so no packet matches", family(src), family(dst));
        let finding = Diagnostic::error(Kind::AddressFamily, title)
            .at(object.get("dst_ip").map(|field| field.span()), family(dst))
            .at(object.get("src_ip").map(|field| field.span()), family(src))
            .help("use one family; write a second rule for the other");
        reader.report(finding);
    }
}

fn check_ports(reader: &mut Reader, object: &Object, rule: &Rule) {
    if rule.protocol.can_have_ports() || (rule.src_ports.is_none() && rule.dst_ports.is_none()) {
        return;
    }
    let key = if rule.src_ports.is_some() { "src_port_min" } else { "dst_port_min" };
    let protocol = match rule.protocol {
        Protocol::Number(number) => format!("protocol {number}"),
        _ => "icmp".into(),
    };
    let finding =
        Diagnostic::error(Kind::PortsWithoutProtocol, format!("a rule asks for ports, but {protocol} has none"))
            .at(object.get(key).map(|field| field.key_span.clone()), "ports")
            .at(object.get("protocol").map(|field| field.span()), "has no ports")
            .help("remove the ports, or write \"tcp\", \"udp\" or \"any\" (every protocol that has ports)");
    reader.report(finding);
}
