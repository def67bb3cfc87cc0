//! `address_sets` and `port_sets`: lists of values that rules use by name.

use super::object::{Field, Object, Reader};
use super::terms;
use crate::diagnostic::{Diagnostic, Kind};
use crate::policy::MAX_SET_NAME_BYTES;
use crate::shown::shown;
use crate::suggest;
use ipnet::IpNet;
use std::collections::BTreeMap;

/// The sets of the file, also those of which not everything can be read.
#[derive(Default)]
pub(super) struct Sets {
    pub addresses: BTreeMap<String, Vec<IpNet>>,
    pub ports: BTreeMap<String, Vec<(u16, u16)>>,
}

pub(super) fn read(reader: &mut Reader, object: &Object) -> Sets {
    Sets {
        addresses: sets(reader, object.get("address_sets"), terms::address),
        ports: sets(reader, object.get("port_sets"), terms::port_range),
    }
}

fn sets<T>(
    reader: &mut Reader,
    field: Option<&Field>,
    read: fn(&mut Reader, &Field) -> Option<T>,
) -> BTreeMap<String, Vec<T>> {
    let Some(field) = field else { return BTreeMap::new() };
    let mut sets = BTreeMap::new();
    for entry in reader.entries(field, "write the sets with their names, as in `{ \"web\": [ ..., ... ] }`") {
        check_name(reader, &entry);
        let values = terms::listed(reader, &entry, |reader, value| terms::element(reader, value, read));
        sets.insert(entry.key.to_string(), values);
    }
    sets
}

fn check_name(reader: &mut Reader, entry: &Field) {
    let known = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let (problem, cure) = if entry.key.is_empty() {
        ("a set has no name", "name it, as in `\"lan\": [ ... ]`".to_string())
    } else if entry.key.starts_with('@') {
        let cure = format!("write \"{}\" here; only rules write the @", shown(entry.key.trim_start_matches('@')));
        ("the name of a set has no @", cure)
    } else if !entry.key.chars().all(known) {
        (
            "the name of a set has other characters than letters, digits, - and _",
            "change it here and in the rules".into(),
        )
    } else if entry.key.len() > MAX_SET_NAME_BYTES {
        ("the name of a set is too long", format!("{MAX_SET_NAME_BYTES} bytes are the most"))
    } else {
        return;
    };
    let finding = Diagnostic::error(Kind::Name, problem).at(entry.key_span.clone(), "cannot be used as a name");
    reader.report(finding.help(cure));
}

impl Sets {
    /// The name of a set of addresses that the file has.
    pub fn address_set(&self, reader: &mut Reader, field: &Field, name: &str) -> Option<String> {
        find(reader, field, name, ("address", &self.addresses), ("port", &self.ports))
    }

    /// The name of a set of ports that the file has.
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
    let title = format!("there is no {kind} set \"{}\"", shown(name));
    let mut finding = Diagnostic::error(Kind::UnknownSet, title).at(field.span(), "no set has this name");
    let known: Vec<&str> = sets.keys().map(String::as_str).collect();
    if others.contains_key(name) {
        finding = finding.help(format!("\"{name}\" is one of the {other_kind} sets"));
    } else if let Some(near) = suggest::nearest(name, &known) {
        finding = finding.help(format!("did you mean \"@{near}\"?"));
    }
    reader.report(finding.help(match known.len() {
        0 => format!("the policy has no \"{kind}_sets\": add them beside \"rules\""),
        _ => format!("the {kind} sets are: {}", listed(&known)),
    }));
    None
}

/// The first of them, and how many there are besides.
fn listed(names: &[&str]) -> String {
    const MOST: usize = 20;
    let first = names[..names.len().min(MOST)].iter().map(|name| shown(name)).collect::<Vec<_>>().join(", ");
    if names.len() > MOST { format!("{first} and {} more", names.len() - MOST) } else { first }
}
