//! `forwards`: the keys of each, and what several have in common.

use super::Placed;
use super::object::{Field, Object, Reader};
use super::terms;
use crate::class_id::ClassId;
use crate::diagnostic::{Diagnostic, Kind};
use crate::excerpt::excerpt;
use crate::forward::{
    Forward, ForwardSource, MAX_FORWARD_NAME_BYTES, MAX_FORWARDS, MAX_TARGET_WEIGHT, MAX_TARGETS, OldConnections,
    Ports, Target, Transport,
};
use crate::policy::MAX_CLASSES;
use crate::source::Source;
use jsonc_parser::ast::Value;
use std::collections::HashMap;
use std::net::IpAddr;

/// Every key of a forward.
pub(super) const KEYS: &[&str] =
    &["name", "protocol", "address", "port", "targets", "source", "class_id", "open_connections"];
/// Every key of a target.
pub(super) const TARGET_KEYS: &[&str] = &["address", "port", "weight"];

const PORT_HELP: &str = "write a port, 1 to 65535, or a range, as \"8000-8099\"";

/// A target as it is written: its ports may be left to the forward's.
struct Written {
    address: IpAddr,
    ports: Option<Ports>,
    weight: u32,
}

/// The valid forwards of the file, with their places.
pub(super) fn read_all(reader: &mut Reader, object: &Object, source: &Source) -> Vec<Placed<Forward>> {
    let Some(field) = object.get("forwards") else { return Vec::new() };
    let fields = reader.list(field, "write a list of forwards, `[ { ... }, ... ]`");
    if fields.len() > MAX_FORWARDS {
        let title = format!("the policy has {} forwards, more than {MAX_FORWARDS}", fields.len());
        let finding = Diagnostic::error(Kind::TooMany, title)
            .at(fields[MAX_FORWARDS].span(), "the first one too many")
            .help(format!("remove {} of them", fields.len() - MAX_FORWARDS));
        reader.report(finding);
    }
    let mut forwards = Vec::new();
    for (i, field) in fields.iter().take(MAX_FORWARDS).enumerate() {
        forwards.extend(read(reader, field, source).map(|forward| (i, forward)));
    }
    check_names(reader, &forwards);
    check_overlaps(reader, &forwards);
    forwards
}

fn read(reader: &mut Reader, field: &Field, source: &Source) -> Option<Forward> {
    let object = reader.object(field.value, &field.path, "a forward", KEYS)?;
    let name = reader
        .required(&object, "name", "name each forward: status, metrics and `sluice forward remove` use the name")
        .and_then(|field| reader.name(field, MAX_FORWARD_NAME_BYTES));
    let transport = reader
        .required(&object, "protocol", "write `\"protocol\": \"tcp\"`, \"udp\" or \"both\"")
        .and_then(|field| reader.choice(field, Transport::NAMES));
    let listen = object.get("address").map(|field| address(reader, field));
    let ports = reader.required(&object, "port", PORT_HELP).and_then(|field| ports(reader, field));
    let targets = reader
        .required(&object, "targets", "name where the packets go, as in `[\"10.0.0.5:8443\"]`")
        .map(|field| targets(reader, field, ports));
    let forward_source = object.get("source").and_then(|field| reader.choice(field, ForwardSource::NAMES));
    let class = object
        .get("class_id")
        .and_then(|field| reader.integer(field, 0..=MAX_CLASSES as i64 - 1, "the id of a class, 0 to 63"));
    let connections = object.get("open_connections").and_then(|field| reader.choice(field, OldConnections::NAMES));
    if listen == Some(None) {
        return None; // reported
    }
    let forward = Forward {
        name: name?,
        transport: transport?,
        listen: listen.flatten(),
        ports: ports?,
        targets: targets??,
        source: forward_source.unwrap_or_default(),
        class: class.map(ClassId),
        connections: connections.unwrap_or_default(),
        line: source.line(object.span.start),
    };
    (families_fit(reader, &object, &forward) && leads_elsewhere(reader, &object, &forward)).then_some(forward)
}

/// An address of one host.
fn address(reader: &mut Reader, field: &Field) -> Option<IpAddr> {
    let text = reader.string(field, "write an address, as \"192.0.2.1\" or \"2001:db8::1\"")?;
    host(reader, field, text)
}

fn host(reader: &mut Reader, field: &Field, text: &str) -> Option<IpAddr> {
    let Ok(address) = text.trim().parse::<IpAddr>() else {
        let title = format!("\"{}\": \"{}\" is not an IP address", field.key, excerpt(text));
        let finding = Diagnostic::error(Kind::Address, title)
            .at(field.span(), "not an address")
            .help("write the address of one host, as \"192.0.2.1\" or \"2001:db8::1\"; names are not looked up");
        reader.report(finding);
        return None;
    };
    let why = if address.is_unspecified() {
        "means no host; leave \"address\" out for every address of the interface"
    } else if address.is_multicast() || matches!(address, IpAddr::V4(v4) if v4.is_broadcast()) {
        "is a group; connections have two ends"
    } else if address.is_loopback() {
        "is reached from this host alone; to forward to this host itself, name an address of one of its interfaces"
    } else if matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local()) {
        "means another host on each link; name a global address, or a unique local one (fd00::/8)"
    } else if matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some()) {
        "is an address of IPv4; write it as one"
    } else {
        return Some(address);
    };
    let finding = Diagnostic::error(Kind::Address, format!("\"{}\": {address} is not a host's", field.key))
        .at(field.span(), why)
        .help("write the address of one host");
    reader.report(finding);
    None
}

/// A port, or a range of them.
fn ports(reader: &mut Reader, field: &Field) -> Option<Ports> {
    if !matches!(field.value, Value::NumberLit(_) | Value::StringLit(_)) {
        reader.wrong_type(field, "a port or a text", PORT_HELP);
        return None;
    }
    let (first, last) = terms::written_ports(reader, field, PORT_HELP, PORT_HELP)?;
    if first == 0 {
        let finding = Diagnostic::error(Kind::OutOfRange, format!("\"{}\": port 0 cannot be forwarded", field.key))
            .at(field.span(), "no connection has it")
            .help(PORT_HELP);
        reader.report(finding);
        return None;
    }
    Some((first, last))
}

fn targets(reader: &mut Reader, field: &Field, ports: Option<Ports>) -> Option<Vec<Target>> {
    let fields = match field.value {
        Value::Array(_) => reader.list(field, "write a list of targets"),
        _ => vec![field.clone()],
    };
    if fields.is_empty() || fields.len() > MAX_TARGETS {
        let finding = if fields.is_empty() {
            Diagnostic::error(Kind::Empty, "a forward has no targets").at(field.span(), "an empty list")
        } else {
            let title = format!("a forward has {} targets, more than {MAX_TARGETS}", fields.len());
            Diagnostic::error(Kind::TooMany, title).at(fields[MAX_TARGETS].span(), "the first one too many")
        };
        reader.report(finding.help("name where the packets go, as in `[\"10.0.0.5:8443\"]`"));
        return None;
    }
    let read: Vec<_> = fields.iter().map(|field| target(reader, field, ports)).collect();
    read.into_iter().collect()
}

fn target(reader: &mut Reader, field: &Field, ports: Option<Ports>) -> Option<Target> {
    let written = match field.value {
        Value::StringLit(text) => short_target(reader, field, &text.value)?,
        _ => long_target(reader, field)?,
    };
    let ports = ports?;
    let own = written.ports.unwrap_or(ports);
    if own.1 - own.0 != ports.1 - ports.0 {
        let many = |ports: Ports| u32::from(ports.1 - ports.0) + 1;
        let title = format!("a forward of {} ports has a target with {}", many(ports), many(own));
        let finding = Diagnostic::error(Kind::PortRange, title)
            .at(field.span(), format!("{} to {}", own.0, own.1))
            .help("give both ranges one length, or leave the target's port out for the same ports");
        reader.report(finding);
        return None;
    }
    Some(Target { address: written.address, first_port: own.0, weight: written.weight })
}

/// `10.0.0.5`, `10.0.0.5:8443`, `10.0.0.5:8000-8099`, `2001:db8::5`, `[2001:db8::5]:8443`.
fn short_target(reader: &mut Reader, field: &Field, text: &str) -> Option<Written> {
    let text = text.trim();
    if let Ok(address) = text.parse::<IpAddr>() {
        host(reader, field, text)?;
        return Some(Written { address, ports: None, weight: 1 });
    }
    let (address, port) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once("]:").unwrap_or((text, "")),
        None => text.rsplit_once(':').unwrap_or((text, "")),
    };
    let address = host(reader, field, address)?;
    let read = |text: &str| text.trim().parse::<u16>().ok().filter(|&port| port > 0);
    let ports = match port.split_once('-') {
        Some((first, last)) => read(first).zip(read(last)).filter(|(first, last)| first <= last),
        None => read(port).map(|port| (port, port)),
    };
    if ports.is_none() {
        let finding = Diagnostic::error(Kind::OutOfRange, format!("\"{}\" is not a port of a target", excerpt(port)))
            .at(field.span(), "cannot be used")
            .help("write a target as \"10.0.0.5:8443\", \"[2001:db8::5]:8443\", or without a port for the same one");
        reader.report(finding);
    }
    Some(Written { address, ports: Some(ports?), weight: 1 })
}

fn long_target(reader: &mut Reader, field: &Field) -> Option<Written> {
    let object = reader.object(field.value, &field.path, "a target", TARGET_KEYS)?;
    let own = reader
        .required(&object, "address", "write the target's address, as \"10.0.0.5\"")
        .and_then(|field| address(reader, field));
    let own_ports = object.get("port").map(|field| ports(reader, field));
    let weight_help = "its share of new connections; 1 is the default";
    let weight = object
        .get("weight")
        .map_or(Some(1), |field| reader.integer(field, 1..=i64::from(MAX_TARGET_WEIGHT), weight_help));
    Some(Written { address: own?, ports: own_ports.map_or(Some(None), |ports| ports.map(Some))?, weight: weight? })
}

/// Whether all addresses of the forward are of one family, or it can translate between both.
fn families_fit(reader: &mut Reader, object: &Object, forward: &Forward) -> bool {
    let family = |address: IpAddr| if address.is_ipv4() { "IPv4" } else { "IPv6" };
    let first = forward.listen.unwrap_or(forward.targets[0].address);
    let Some(other) = forward.targets.iter().find(|target| family(target.address) != family(first)) else {
        return true;
    };
    if forward.listen.is_some() && forward.source == ForwardSource::Masquerade {
        return true;
    }
    let title = format!("forward \"{}\" goes from {} to {}", forward.name, family(first), family(other.address));
    let help = if forward.listen.is_some() {
        "write `\"source\": \"masquerade\"`, for a target sees no client's address of the other family; or give each family a \
         forward of its own"
    } else {
        "name the \"address\" that clients use, and write `\"source\": \"masquerade\"`; or give each family a forward of its own"
    };
    let finding = Diagnostic::error(Kind::AddressFamily, title)
        .at(object.get("targets").map(|field| field.span()), format!("{} is {}", other.address, family(other.address)))
        .at(object.get("address").map(|field| field.span()), family(first))
        .help(help);
    reader.report(finding);
    false
}

/// Whether no target is what the forward itself listens on.
fn leads_elsewhere(reader: &mut Reader, object: &Object, forward: &Forward) -> bool {
    let last = |target: &Target| target.first_port.saturating_add(forward.ports.1 - forward.ports.0);
    let back = |target: &&Target| {
        Some(target.address) == forward.listen
            && target.first_port <= forward.ports.1
            && forward.ports.0 <= last(target)
    };
    let Some(target) = forward.targets.iter().find(back) else { return true };
    let title = format!("forward \"{}\" leads to itself", forward.name);
    let finding = Diagnostic::error(Kind::ForwardLoop, title)
        .at(object.get("targets").map(|field| field.span()), format!("{} is where it listens", target.address))
        .at(object.get("port").map(|field| field.span()), "these ports")
        .help("name another host, or other ports of this one");
    reader.report(finding);
    false
}

fn check_names(reader: &mut Reader, forwards: &[Placed<Forward>]) {
    let mut first: HashMap<&str, usize> = HashMap::new();
    for (place, forward) in forwards {
        let Some(&earlier) = first.get(forward.name.as_str()) else {
            first.insert(&forward.name, *place);
            continue;
        };
        let span = |place| reader.spans.get(&format!("/forwards/{place}/name")).cloned();
        let finding = Diagnostic::error(Kind::DuplicateName, format!("two forwards are named \"{}\"", forward.name))
            .at(span(*place), "the second forward")
            .at(span(earlier), "the first forward")
            .help("names appear in status and metrics: give each forward its own");
        reader.report(finding);
    }
}

/// Forwards overlap if they share the protocol, the family, and the address unless one has none.
type Listening = (u8, bool, Option<IpAddr>);

/// Reports each forward whose ports another one takes, with one that does.
fn check_overlaps(reader: &mut Reader, forwards: &[Placed<Forward>]) {
    let mut by_address: HashMap<Listening, Vec<&Placed<Forward>>> = HashMap::new();
    for placed in forwards {
        for &protocol in placed.1.transport.protocols() {
            by_address.entry((protocol, placed.1.is_ipv4(), placed.1.listen)).or_default().push(placed);
        }
    }
    let mut found: HashMap<usize, usize> = HashMap::new();
    for listening in by_address.values_mut() {
        listening.sort_by_key(|(place, forward)| (forward.ports.0, *place));
        let mut widest: Option<&Placed<Forward>> = None;
        for placed in listening.iter() {
            match widest {
                Some(before) if before.1.ports.1 >= placed.1.ports.0 => {
                    found.entry(before.0.max(placed.0)).or_insert(before.0.min(placed.0));
                }
                _ => {}
            }
            if widest.is_none_or(|before| before.1.ports.1 < placed.1.ports.1) {
                widest = Some(placed);
            }
        }
    }
    for (&(protocol, ipv4, address), listening) in &by_address {
        let Some(everywhere) = address.and(by_address.get(&(protocol, ipv4, None))) else { continue };
        for placed in listening {
            let after = everywhere.partition_point(|(_, forward)| forward.ports.0 <= placed.1.ports.1);
            // Those of one list overlap only where that is reported: the last that begins before is the one that counts.
            if let Some(other) = everywhere[..after].last().filter(|(_, other)| other.overlaps(&placed.1)) {
                found.entry(other.0.max(placed.0)).or_insert(other.0.min(placed.0));
            }
        }
    }
    let mut found: Vec<(usize, usize)> = found.into_iter().collect();
    found.sort_unstable();
    let by_place: HashMap<usize, &Forward> = forwards.iter().map(|(place, forward)| (*place, forward)).collect();
    for (place, earlier) in found {
        let (second, first) = (by_place[&place], by_place[&earlier]);
        let span = |place| reader.spans.get(&format!("/forwards/{place}/port")).cloned();
        let title = format!("forwards \"{}\" and \"{}\" listen on the same port", first.name, second.name);
        let finding = Diagnostic::error(Kind::ForwardOverlap, title)
            .at(span(place), "the second forward")
            .at(span(earlier), "the first forward")
            .help("give one of them other ports or another \"address\", or make them one with both targets");
        reader.report(finding);
    }
}
