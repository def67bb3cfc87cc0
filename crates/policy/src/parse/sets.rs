//! `address_sets` and `port_sets`: lists of values that rules use by name.

use super::object::{Field, Object, Reader};
use super::set_names::Sets;
use super::terms;
use crate::diagnostic::{Diagnostic, Kind};
use crate::excerpt::excerpt;
use crate::policy::MAX_SET_NAME_BYTES;
use std::collections::BTreeMap;

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
        let cure = format!("write \"{}\" here; only rules write the @", excerpt(entry.key.trim_start_matches('@')));
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
