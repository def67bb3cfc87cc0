//! The key `each_host`: groups of hosts that no list names.

use super::node::{Known, addresses, rates};
use super::object::{Field, Reader};
use crate::diagnostic::{Diagnostic, Kind};
use crate::network::{DEFAULT_GROUP_HOSTS, EachWay, GROUP_HOSTS, HostGroup, MAX_HOST_GROUPS, Subscriber, names};
use crate::source::Where;
use jsonc_parser::ast::Value;

/// Every key of a group.
pub(super) const KEYS: &[&str] = &["addresses", "plan", "site", "ceil", "hosts", "ipv6_length"];

const HELP: &str =
    "write groups by name, as `{ \"guests\": { \"addresses\": [\"192.168.0.0/16\"], \"ceil\": \"20mbit\" } }`";

/// Reads the groups of a policy.
pub(super) fn read(reader: &mut Reader, field: &Field, known: &Known) -> Vec<HostGroup> {
    let entries = reader.entries(field, HELP);
    if let Some(first) = entries.get(MAX_HOST_GROUPS) {
        let finding = Diagnostic::error(Kind::TooMany, format!("there are {} groups of hosts", entries.len()));
        let finding = finding.at(first.key_span.clone(), "one too many");
        reader.report(finding.help(format!("{MAX_HOST_GROUPS} are the most")));
    }
    entries.iter().take(MAX_HOST_GROUPS).filter_map(|entry| group(reader, entry, known)).collect()
}

fn group(reader: &mut Reader, entry: &Field, known: &Known) -> Option<HostGroup> {
    if !names::can_be_name(entry.key) {
        reader.report(names::no_name("group of hosts", entry.key, entry.key_span.clone()));
    }
    let object = reader.object(entry.value, &entry.path, "a group of hosts", KEYS)?;
    let cure = "list the prefixes of all hosts, as `\"addresses\": [\"192.168.0.0/16\", \"2001:db8::/48\"]`";
    let addresses = reader.required(&object, "addresses", cure).map_or_else(Vec::new, |field| {
        if matches!(field.value, Value::Array(list) if list.elements.is_empty()) {
            let finding = Diagnostic::error(Kind::Empty, format!("\"{}\" has no addresses", entry.key));
            reader.report(finding.at(field.span(), "no host has one of these").help(cure));
        }
        addresses(reader, field)
    });
    let hosts_help = "the hosts that have a queue of their own at once";
    let most = i64::from(*GROUP_HOSTS.start())..=i64::from(*GROUP_HOSTS.end());
    let hosts = object.get("hosts").and_then(|field| reader.integer(field, most, hosts_help));
    let length_help = "the length of the IPv6 prefix that is one host: 128 for an address, 64 or 56 for a household";
    let ipv6_length = object.get("ipv6_length").and_then(|field| reader.integer(field, 0..=128, length_help));
    let each = Subscriber {
        id: entry.key.to_owned(),
        name: entry.key.to_owned(),
        parent: known.site(reader, &object),
        plan: known.plan(reader, &object),
        rate: EachWay::default(),
        ceil: rates(reader, &object, "ceil"),
        addresses,
        span: Where(entry.key_span.clone()),
    };
    let hosts = hosts.unwrap_or(DEFAULT_GROUP_HOSTS);
    Some(HostGroup { each, hosts, ipv6_length: ipv6_length.unwrap_or(128) })
}
