//! Addresses and ports, of a rule or of a set: one or a list, with the names of sets among them.

use super::object::{Field, Object, Reader};
use super::set_names::Sets;
use crate::diagnostic::{Diagnostic, Kind};
use crate::excerpt::excerpt;
use crate::policy::{Term, Terms};
use ipnet::{IpNet, Ipv4Net};
use jsonc_parser::ast::Value;
use std::net::{IpAddr, Ipv4Addr};

const ADDRESS_HELP: &str = "write an address or a prefix, as \"10.0.0.0/8\", \"192.0.2.1\", \"2001:db8::/32\", or one of \"any\", \"ipv4\", \"ipv6\"";
const ADDRESSES_HELP: &str = "write an address, a prefix or a set, as \"10.0.0.0/8\" or \"@lan\", or a list of them, `[\"10.0.0.0/8\", \"@lan\"]`";
const PORT_HELP: &str = "write a port (443), a range (\"8000-8999\") or a set (\"@web\"), or a list of them";

/// The addresses that a text stands for.
enum AddressRange {
    /// Any address of either family: no condition.
    Everything,
    Net(IpNet),
}

/// The addresses of a rule by one of its keys.
pub(super) fn addresses(reader: &mut Reader, object: &Object, key: &str, sets: &Sets) -> Terms<IpNet> {
    let Some(field) = object.get(key) else { return Vec::new() };
    match field.value {
        Value::Array(_) => listed(reader, field, |reader, field| address_term(reader, field, sets)),
        Value::StringLit(text) => match set_name(&text.value) {
            Some(name) => sets.address_set(reader, field, name).map(Term::In).into_iter().collect(),
            None => match address_range(reader, field) {
                Some(AddressRange::Net(net)) => vec![Term::Is(net)],
                Some(AddressRange::Everything) | None => Vec::new(),
            },
        },
        _ => {
            reader.wrong_type(field, "a text or a list", ADDRESSES_HELP);
            Vec::new()
        }
    }
}

/// The ports of a rule by one of its keys.
pub(super) fn ports(reader: &mut Reader, object: &Object, key: &str, sets: &Sets) -> Terms<(u16, u16)> {
    let Some(field) = object.get(key) else { return Vec::new() };
    match field.value {
        Value::Array(_) => listed(reader, field, |reader, field| port_term(reader, field, sets)),
        Value::NumberLit(_) | Value::StringLit(_) => port_term(reader, field, sets).into_iter().collect(),
        _ => {
            reader.wrong_type(field, "a port, a text or a list", PORT_HELP);
            Vec::new()
        }
    }
}

/// The elements of a list that must not be empty.
pub(super) fn listed<T>(reader: &mut Reader, field: &Field, read: impl Fn(&mut Reader, &Field) -> Option<T>) -> Vec<T> {
    let elements = reader.list(field, "write a list, `[ ..., ... ]`");
    if elements.is_empty() && matches!(field.value, Value::Array(_)) {
        let finding = Diagnostic::error(Kind::Empty, format!("\"{}\" is empty", field.key))
            .at(field.span(), "nothing is in it, so nothing would match")
            .help("add at least one value, or remove it");
        reader.report(finding);
    }
    elements.iter().filter_map(|element| read(reader, element)).collect()
}

/// The name of a set, if the text is one.
fn set_name(text: &str) -> Option<&str> {
    text.trim().strip_prefix('@')
}

fn address_term(reader: &mut Reader, field: &Field, sets: &Sets) -> Option<Term<IpNet>> {
    match field.value {
        Value::StringLit(text) if set_name(&text.value).is_some() => {
            sets.address_set(reader, field, set_name(&text.value)?).map(Term::In)
        }
        _ => address(reader, field).map(Term::Is),
    }
}

fn port_term(reader: &mut Reader, field: &Field, sets: &Sets) -> Option<Term<(u16, u16)>> {
    match field.value {
        Value::StringLit(text) if set_name(&text.value).is_some() => {
            sets.port_set(reader, field, set_name(&text.value)?).map(Term::In)
        }
        _ => port_range(reader, field).map(Term::Is),
    }
}

/// A value of a set. Sets do not nest, so that a set is complete where it is defined.
pub(super) fn element<T>(
    reader: &mut Reader,
    field: &Field,
    read: impl Fn(&mut Reader, &Field) -> Option<T>,
) -> Option<T> {
    if let Value::StringLit(text) = field.value {
        if let Some(name) = set_name(&text.value) {
            let title = format!("the set \"{}\" cannot hold the set \"{}\"", field.key, excerpt(name));
            let finding = Diagnostic::error(Kind::NestedSet, title)
                .at(field.span(), "a set holds values only")
                .help("list its values here, or name both sets in the rule, as in `[\"@one\", \"@other\"]`");
            reader.report(finding);
            return None;
        }
    }
    read(reader, field)
}

/// An address or a prefix in a list, in which "any" would make the others pointless.
pub(super) fn address(reader: &mut Reader, field: &Field) -> Option<IpNet> {
    match address_range(reader, field)? {
        AddressRange::Net(net) => Some(net),
        AddressRange::Everything => {
            let finding = Diagnostic::error(Kind::Address, format!("\"{}\" lists any address", field.key))
                .at(field.span(), "any address of either family")
                .help("write \"ipv4\" or \"ipv6\" for any of one family; for any at all leave the key out of the rule");
            reader.report(finding);
            None
        }
    }
}

/// A port of a rule, or a range of them.
pub(super) fn port_range(reader: &mut Reader, field: &Field) -> Option<(u16, u16)> {
    written_ports(reader, field, PORT_HELP, "leave the key out for any port")
}

/// A port or a range of them, as a number or a text. help: how to write them; without_port: what stands for any port.
pub(super) fn written_ports(reader: &mut Reader, field: &Field, help: &str, without_port: &str) -> Option<(u16, u16)> {
    let Value::StringLit(text) = field.value else {
        return reader.integer(field, 1..=65_535, help).map(|port| (port, port));
    };
    let mut refuse = |what: &str, cure: &str| {
        let title = format!("\"{}\": \"{}\" {what}", field.key, excerpt(&text.value));
        reader.report(Diagnostic::error(Kind::PortRange, title).at(field.span(), "cannot be used").help(cure));
    };
    let (min, max) = text.value.split_once('-').unwrap_or((&text.value, &text.value));
    let port = |text: &str| Some(text.trim()).filter(|text| !text.starts_with('+')).and_then(|text| text.parse().ok());
    match (port(min), port(max)) {
        (Some(0), Some(0)) => refuse("is no port", without_port),
        (Some(min), Some(max)) if min > max => refuse("runs backwards", &format!("write \"{max}-{min}\"")),
        (Some(min), Some(max)) => return Some((min, max)),
        _ if text.value.contains(|c: char| c.is_ascii_alphabetic()) => {
            refuse("is not a port", &format!("names of services are not looked up; {help}"));
        }
        _ => refuse("is not a port or a range of ports", help),
    }
    None
}

/// The published format's `0.0.0.0/0` means any address, also of IPv6 (which that format did not have), as does `any`; `ipv4`
/// and `ipv6` mean any address of their family.
fn address_range(reader: &mut Reader, field: &Field) -> Option<AddressRange> {
    let text = reader.string(field, ADDRESS_HELP)?.trim();
    match text {
        "any" | "0.0.0.0/0" => return Some(AddressRange::Everything),
        "ipv4" => return Some(AddressRange::Net(IpNet::V4(Ipv4Net::default()))),
        "ipv6" => return Some(AddressRange::Net(IpNet::V6(Default::default()))),
        _ => {}
    }
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let Ok(address) = address.parse::<IpAddr>() else {
        report_address(reader, field, address);
        return None;
    };
    let net = match length {
        None => IpNet::from(address),
        Some(length) => IpNet::new(address, prefix_length(reader, field, address, length)?).ok()?,
    };
    if net.addr() != net.network() {
        let title = format!("\"{}\": {net} has bits set beyond its {} bits", field.key, net.prefix_len());
        let finding = Diagnostic::error(Kind::HostBits, title)
            .at(field.span(), "neither a network nor a host")
            .help(format!("write \"{}\" for the network, or \"{address}\" for the one host", net.trunc()));
        reader.report(finding);
        return None;
    }
    Some(AddressRange::Net(net))
}

fn report_address(reader: &mut Reader, field: &Field, address: &str) {
    let title = format!("\"{}\": \"{}\" is not an IP address", field.key, excerpt(address));
    let mut finding = Diagnostic::error(Kind::Address, title).at(field.span(), "not an address");
    if address.chars().any(|c| c.is_ascii_alphabetic()) && !address.contains(':') {
        finding = finding.help("names are not looked up; a rule needs addresses, or a set, as in \"@lan\"");
    }
    reader.report(finding.help(ADDRESS_HELP));
}

fn prefix_length(reader: &mut Reader, field: &Field, address: IpAddr, length: &str) -> Option<u8> {
    let (max, family) = if address.is_ipv4() { (32, "IPv4") } else { (128, "IPv6") };
    if let Some(bits) = length.parse().ok().filter(|bits| *bits <= max) {
        return Some(bits);
    }
    let cure = match mask_length(address, length) {
        Some(bits) => format!("write \"{address}/{bits}\""),
        None => format!("a prefix of {family} has 0 to {max} bits"),
    };
    let title = format!("\"{}\": \"/{}\" is not a prefix length", field.key, excerpt(length));
    reader.report(Diagnostic::error(Kind::Address, title).at(field.span(), "the part after the slash").help(cure));
    None
}

/// The prefix length of a netmask that was written in place of a length.
fn mask_length(address: IpAddr, mask: &str) -> Option<u8> {
    let mask: Ipv4Addr = mask.parse().ok()?;
    match address {
        IpAddr::V4(address) => Ipv4Net::with_netmask(address, mask).ok().map(|net| net.prefix_len()),
        IpAddr::V6(_) => None,
    }
}
