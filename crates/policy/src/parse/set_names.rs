//! Names of sets in rules.

use super::object::{Field, Reader};
use crate::diagnostic::{Diagnostic, Kind};
use crate::excerpt::excerpt;
use crate::suggest;
use ipnet::IpNet;
use std::collections::BTreeMap;

/// The sets of the file, including partly readable ones.
#[derive(Default)]
pub(super) struct Sets {
    pub addresses: BTreeMap<String, Vec<IpNet>>,
    pub ports: BTreeMap<String, Vec<(u16, u16)>>,
}

impl Sets {
    /// The name of an existing set of addresses.
    pub fn address_set(&self, reader: &mut Reader, field: &Field, name: &str) -> Option<String> {
        find(reader, field, name, ("address", &self.addresses), ("port", &self.ports))
    }

    /// The name of an existing set of ports.
    pub fn port_set(&self, reader: &mut Reader, field: &Field, name: &str) -> Option<String> {
        find(reader, field, name, ("port", &self.ports), ("address", &self.addresses))
    }
}

fn find<T, U>(
    reader: &mut Reader,
    field: &Field,
    name: &str,
    (kind, sets): (&str, &BTreeMap<String, Vec<T>>),
    (other_kind, others): (&str, &BTreeMap<String, Vec<U>>),
) -> Option<String> {
    if sets.contains_key(name) {
        return Some(name.to_string());
    }
    let title = format!("there is no {kind} set \"{}\"", excerpt(name));
    let mut finding = Diagnostic::error(Kind::UnknownSet, title).at(field.span(), "no set has this name");
    let known: Vec<&str> = sets.keys().map(String::as_str).collect();
    if others.contains_key(name) {
        finding = finding.help(format!("\"{name}\" is one of the {other_kind} sets"));
    } else if let Some(near) = suggest::nearest(name, &known) {
        finding = finding.help(format!("did you mean \"@{near}\"?"));
    }
    reader.report(finding.help(match known.len() {
        0 => format!("the policy has no \"{kind}_sets\": add them next to \"rules\""),
        _ => format!("the {kind} sets are: {}", listed(&known)),
    }));
    None
}

/// The first names, and the number of the others.
fn listed(names: &[&str]) -> String {
    const MAX_NAMES: usize = 20;
    let first = names[..names.len().min(MAX_NAMES)].iter().map(|name| excerpt(name)).collect::<Vec<_>>().join(", ");
    if names.len() > MAX_NAMES { format!("{first} and {} more", names.len() - MAX_NAMES) } else { first }
}
