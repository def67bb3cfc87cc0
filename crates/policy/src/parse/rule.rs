//! The keys of one rule.

use super::class;
use super::object::{Field, Object, Reader};
use super::set_names::Sets;
use super::terms;
use crate::class_id::ClassId;
use crate::diagnostic::{Diagnostic, Kind};
use crate::excerpt::excerpt;
use crate::icmp;
use crate::mark;
use crate::policy::{
    IcmpType, MAX_CLASSES, MAX_INTERFACE_BYTES, MAX_NAME_BYTES, Protocol, Rule, TcpFlags, Term, Terms,
};
use crate::source::{Source, Span};
use crate::tcp_flags::{self, FlagsError};
use ipnet::IpNet;
use jsonc_parser::ast::Value;

/// Every key of a rule.
pub(super) const KEYS: &[&str] = &[
    "name",
    "priority",
    "src_ip",
    "dst_ip",
    "src_port",
    "dst_port",
    "src_port_min",
    "src_port_max",
    "dst_port_min",
    "dst_port_max",
    "protocol",
    "dscp",
    "vlan_id",
    "pcp",
    "icmp_type",
    "tcp_flags",
    "length_min",
    "length_max",
    "in_interface",
    "mark",
    "class_id",
];

/// Reads a rule; `None` if it has no readable class or priority.
pub(super) fn read(reader: &mut Reader, field: &Field, source: &Source, sets: &Sets) -> Option<Rule> {
    let object = reader.object(field.value, &field.path, "a rule", KEYS)?;
    let priority = reader
        .required(&object, "priority", "give each rule a number of its own; the lowest that matches wins")
        .and_then(|field| {
            reader.integer(field, 0..=i64::from(u32::MAX), "the matching rule with the lowest number wins")
        });
    let class = reader
        .required(&object, "class_id", "name the class of matching packets by its id")
        .and_then(|field| reader.integer(field, 0..=MAX_CLASSES as i64 - 1, "the id of a class, 0 to 63"));
    let protocol = object.get("protocol").and_then(|field| protocol(reader, field)).unwrap_or(Protocol::Any);
    let vlan_help = "VLAN ids are 1 to 4094; leave it out to match with and without VLAN";
    let pcp_help = "the priority of the outer VLAN tag is 0 to 7";
    let rule = Rule {
        name: object.get("name").and_then(|field| reader.name(field, MAX_NAME_BYTES)),
        priority: priority.unwrap_or(0),
        src: terms::addresses(reader, &object, "src_ip", sets),
        dst: terms::addresses(reader, &object, "dst_ip", sets),
        src_ports: ports(reader, &object, ["src_port", "src_port_min", "src_port_max"], sets),
        dst_ports: ports(reader, &object, ["dst_port", "dst_port_min", "dst_port_max"], sets),
        protocol,
        dscp: object.get("dscp").and_then(|field| class::dscp(reader, field)),
        vlan: object.get("vlan_id").and_then(|field| reader.integer(field, 1..=4094, vlan_help)),
        pcp: object.get("pcp").and_then(|field| reader.integer(field, 0..=7, pcp_help)),
        icmp: object.get("icmp_type").and_then(|field| icmp_type(reader, &object, field, protocol)),
        tcp_flags: object.get("tcp_flags").and_then(|field| flags(reader, &object, field, protocol)),
        length: length(reader, &object),
        in_interface: object.get("in_interface").and_then(|field| interface(reader, field)),
        mark: object.get("mark").and_then(|field| mark(reader, field)),
        class: ClassId(class.unwrap_or(0)),
        line: source.line(object.span.start),
    };
    check_families(reader, &object, &rule, sets);
    check_ports(reader, &object, &rule);
    check_contradictions(reader, &object, &rule);
    (priority.is_some() && class.is_some()).then_some(rule)
}

fn protocol(reader: &mut Reader, field: &Field) -> Option<Protocol> {
    if matches!(field.value, Value::NumberLit(_)) {
        let meaning = "an IP protocol number, or one of \"tcp\", \"udp\", \"icmp\", \"any\"";
        return reader.integer(field, 0..=255, meaning).map(Protocol::from_number);
    }
    reader.choice(field, Protocol::NAMES)
}

fn icmp_type(reader: &mut Reader, object: &Object, field: &Field, protocol: Protocol) -> Option<IcmpType> {
    let kind = match field.value {
        Value::StringLit(text) => {
            let kind = icmp::by_name(&text.value);
            if kind.is_none() {
                reader.unknown_value(field, &text.value, &icmp::names().collect::<Vec<_>>());
            }
            kind?
        }
        Value::NumberLit(_) => icmp::by_number(reader.integer(field, 0..=255, "ICMP types are 0 to 255, or a name")?),
        _ => {
            reader.wrong_type(field, "a name or a number", "write an ICMP type, as \"echo-request\" or 8");
            return None;
        }
    };
    let own = icmp::within(kind, protocol);
    if own.is_none() {
        let (what, cure) = match icmp::has_types(protocol) {
            true => ("packets of this type", "write `\"protocol\": \"icmp\"`, which is ICMP and ICMPv6"),
            false => ("ICMP types", "remove it, or write `\"protocol\": \"icmp\"`"),
        };
        wrong_protocol(reader, object, field, protocol, what, cure);
    }
    own
}

fn flags(reader: &mut Reader, object: &Object, field: &Field, protocol: Protocol) -> Option<TcpFlags> {
    let text = reader.string(field, "write flags between commas, as \"syn,!ack\": set, and with ! not set")?;
    if !matches!(protocol, Protocol::Any | Protocol::Tcp) {
        wrong_protocol(reader, object, field, protocol, "TCP flags", "remove them, or write `\"protocol\": \"tcp\"`");
        return None;
    }
    let (title, cure) = match tcp_flags::read(text) {
        Ok(flags) => return Some(flags),
        Err(FlagsError::Unknown(name)) => {
            reader.unknown_value(field, name, &tcp_flags::NAMES);
            return None;
        }
        Err(FlagsError::Empty) => {
            ("\"tcp_flags\" names no flag".to_string(), "write flags between commas, as \"syn,!ack\", or remove it")
        }
        Err(FlagsError::Contradiction(flag)) => {
            (format!("\"tcp_flags\" asks for {flag} set and not set"), "keep one of the two")
        }
    };
    reader.report(Diagnostic::error(Kind::TcpFlags, title).at(field.span(), "matches nothing").help(cure));
    None
}

fn wrong_protocol(reader: &mut Reader, object: &Object, field: &Field, protocol: Protocol, what: &str, cure: &str) {
    let title = format!("a rule asks for {what}, but {} has none", protocol_name(protocol));
    let finding = Diagnostic::error(Kind::WrongProtocol, title)
        .at(field.key_span.clone(), "asks for it")
        .at(object.get("protocol").map(|field| field.span()), "has none")
        .help(cure);
    reader.report(finding);
}

fn protocol_name(protocol: Protocol) -> String {
    match protocol {
        Protocol::Number(number) => format!("protocol {number}"),
        named => named.to_string(),
    }
}

/// Least and greatest length; either may be left out.
fn length(reader: &mut Reader, object: &Object) -> Option<(u16, u16)> {
    let meaning = "bytes of the packet from its IP header on, 0 to 65535";
    let mut end = |key| {
        let field = object.get(key)?;
        Some((field.span(), reader.integer::<u16>(field, 0..=65_535, meaning)?))
    };
    let (min, max) = (end("length_min"), end("length_max"));
    let value = |end: &Option<(_, u16)>| end.as_ref().map(|&(_, value)| value);
    if let (Some((min_span, min)), Some((max_span, max))) = (&min, &max) {
        if min > max {
            let title = format!("\"length_min\" {min} is above \"length_max\" {max}, so no packet matches");
            let finding = Diagnostic::error(Kind::LengthRange, title)
                .at(max_span.clone(), "the greatest length")
                .at(min_span.clone(), "the least length")
                .help("swap them");
            reader.report(finding);
        }
    }
    (min.is_some() || max.is_some()).then(|| (value(&min).unwrap_or(0), value(&max).unwrap_or(u16::MAX)))
}

/// Reads the name of an interface.
fn interface(reader: &mut Reader, field: &Field) -> Option<String> {
    let name = reader.name(field, MAX_INTERFACE_BYTES)?;
    check_interface(reader, field.key, &name, field.span()).then_some(name)
}

/// Whether Linux accepts the name for an interface.
pub(super) fn check_interface(reader: &mut Reader, key: &str, name: &str, span: Span) -> bool {
    let refused = |c: char| matches!(c, '/' | ':' | '%') || c.is_whitespace() || c.is_control();
    let known = !name.contains(refused)
        && !name.starts_with('-')
        && ![".", "..", ""].contains(&name)
        && name.len() <= MAX_INTERFACE_BYTES;
    if !known {
        let title = format!("\"{key}\": \"{}\" cannot be the name of an interface", excerpt(name));
        let finding = Diagnostic::error(Kind::Name, title)
            .at(span, "not a name that Linux takes")
            .help("write it as `ip link` shows it, as in \"eth0\"");
        reader.report(finding);
    }
    known
}

fn mark(reader: &mut Reader, field: &Field) -> Option<u32> {
    let meaning = "a firewall mark is a number of 32 bits, as 7 or \"0x7\"";
    let Value::StringLit(text) = field.value else {
        return reader.integer(field, 0..=i64::from(u32::MAX), meaning);
    };
    let value = mark::hexadecimal(text.value.trim());
    if value.is_none() {
        let title = format!("\"{}\": \"{}\" is not a firewall mark", field.key, excerpt(&text.value));
        reader.report(Diagnostic::error(Kind::OutOfRange, title).at(field.span(), "cannot be used").help(meaning));
    }
    value
}

/// The ports of one side, by the key for lists or by the published keys.
fn ports(reader: &mut Reader, object: &Object, [key, min_key, max_key]: [&str; 3], sets: &Sets) -> Terms<(u16, u16)> {
    for other in [min_key, max_key] {
        let cure = "keep one of the two forms";
        reader.exclude(object, key, other, "the same ports in the published form", cure);
    }
    if object.get(key).is_some() {
        return terms::ports(reader, object, key, sets);
    }
    port_range(reader, object, min_key, max_key).map(Term::Is).into_iter().collect()
}

/// A range of ports: 0 for both, or neither key, is any port; the first alone is that one port.
fn port_range(reader: &mut Reader, object: &Object, min_key: &str, max_key: &str) -> Option<(u16, u16)> {
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

/// Checks that some packet can have both addresses.
fn check_families(reader: &mut Reader, object: &Object, rule: &Rule, sets: &Sets) {
    let (Some(src), Some(dst)) = (family(&rule.src, sets), family(&rule.dst, sets)) else { return };
    if src != dst {
        let title = format!("a rule goes from {src} to {dst}, so no packet matches");
        let finding = Diagnostic::error(Kind::AddressFamily, title)
            .at(object.get("dst_ip").map(|field| field.span()), dst)
            .at(object.get("src_ip").map(|field| field.span()), src)
            .help("use one family; write a second rule for the other");
        reader.report(finding);
    }
}

/// The family of all addresses; `None` for both, or without a readable one.
fn family(terms: &Terms<IpNet>, sets: &Sets) -> Option<&'static str> {
    let nets = terms.iter().flat_map(|term| match term {
        Term::Is(net) => std::slice::from_ref(net),
        Term::In(set) => sets.addresses.get(set).map_or(&[][..], Vec::as_slice),
    });
    let mut families = nets.map(|net| if net.addr().is_ipv4() { "IPv4" } else { "IPv6" });
    let first = families.next()?;
    families.all(|family| family == first).then_some(first)
}

fn asks_ports(rule: &Rule) -> bool {
    !rule.src_ports.is_empty() || !rule.dst_ports.is_empty()
}

/// The first condition of a rule on ports.
fn ports_key<'o, 't>(object: &'o Object<'t>) -> Option<&'o Field<'t>> {
    ["src_port", "src_port_min", "dst_port", "dst_port_min"].iter().find_map(|key| object.get(key))
}

fn check_ports(reader: &mut Reader, object: &Object, rule: &Rule) {
    if rule.protocol.can_have_ports() || !asks_ports(rule) {
        return;
    }
    let title = format!("a rule asks for ports, but {} has none", protocol_name(rule.protocol));
    let finding = Diagnostic::error(Kind::PortsWithoutProtocol, title)
        .at(ports_key(object).map(|field| field.key_span.clone()), "ports")
        .at(object.get("protocol").map(|field| field.span()), "has no ports")
        .help("remove the ports, or write \"tcp\", \"udp\" or \"any\" (every protocol that has ports)");
    reader.report(finding);
}

/// Refuses conditions that no packet meets together. Conditions that the protocol excludes are reported before.
fn check_contradictions(reader: &mut Reader, object: &Object, rule: &Rule) {
    let (Some(_), Some(icmp)) = (rule.icmp, object.get("icmp_type")) else { return };
    let other = match object.get("tcp_flags") {
        Some(field) if rule.tcp_flags.is_some() => Some((field, "TCP flags")),
        _ if rule.protocol == Protocol::Any && asks_ports(rule) => ports_key(object).map(|field| (field, "ports")),
        _ => None,
    };
    if let Some((field, what)) = other {
        let title = format!("a rule asks for an ICMP type and for {what}, so no packet matches");
        let finding = Diagnostic::error(Kind::WrongProtocol, title)
            .at(icmp.key_span.clone(), "only ICMP has types")
            .at(field.key_span.clone(), format!("ICMP has no {what}"))
            .help("keep one of them, and write a second rule for the other");
        reader.report(finding);
    }
}
