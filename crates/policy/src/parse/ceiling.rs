//! Ceilings beside that of a class: `flow_ceil`, `shared_ceil` and `limits`.

use super::Placed;
use super::object::{Field, Object, Reader};
use crate::ceiling::{Ceiling, Limits, SharedCeiling};
use crate::diagnostic::{Diagnostic, Kind};
use crate::policy::Class;
use std::collections::HashMap;

/// Every key of `limits`.
pub(super) const LIMITS_KEYS: &[&str] = &["ingress", "ingress_burst", "egress", "egress_burst"];
/// Every key of `shared_ceil`.
pub(super) const SHARED_KEYS: &[&str] = &["name", "rate", "burst"];

/// A rate and its burst, under these keys of an object.
pub(super) fn read(reader: &mut Reader, object: &Object, rate_key: &str, burst_key: &str) -> Option<Ceiling> {
    let burst = object.get(burst_key).and_then(|field| reader.bytes(field));
    let Some(field) = object.get(rate_key) else {
        if let Some(field) = object.get(burst_key) {
            let title = format!("\"{burst_key}\" without \"{rate_key}\"");
            let finding = Diagnostic::error(Kind::MissingKey, title)
                .at(field.key_span.clone(), "a burst of no rate")
                .help(format!("add the rate, as in `\"{rate_key}\": \"10mbit\"`, or remove it"));
            reader.report(finding);
        }
        return None;
    };
    reader.rate(field).map(|rate| Ceiling { rate, burst })
}

pub(super) fn limits(reader: &mut Reader, field: &Field) -> Option<Limits> {
    let object = reader.object(field.value, &field.path, "\"limits\"", LIMITS_KEYS)?;
    Some(Limits {
        ingress: read(reader, &object, "ingress", "ingress_burst"),
        egress: read(reader, &object, "egress", "egress_burst"),
    })
}

pub(super) fn shared(reader: &mut Reader, field: &Field) -> Option<SharedCeiling> {
    let object = reader.object(field.value, &field.path, "\"shared_ceil\"", SHARED_KEYS)?;
    let name = reader
        .required(&object, "name", "name it: the classes of all interfaces that name it share the rate")
        .and_then(|field| shared_name(reader, field));
    reader.required(&object, "rate", "add the rate that they share, as in `\"rate\": \"50mbit\"`")?;
    let ceiling = read(reader, &object, "rate", "burst")?;
    Some(SharedCeiling { name: name?, ceiling })
}

fn shared_name(reader: &mut Reader, field: &Field) -> Option<String> {
    let name = reader.name(field, SharedCeiling::MAX_NAME_BYTES)?;
    if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
        return Some(name);
    }
    let title = "the name of a shared ceiling has other characters than letters, digits, - and _";
    let finding = Diagnostic::error(Kind::Name, title).at(field.span(), "cannot be used as a name");
    reader.report(finding.help("change it here and on the other interfaces"));
    None
}

/// Checks that flow ceilings have a flow table, and that each shared name has one rate.
pub(super) fn check(reader: &mut Reader, object: &Object, flows: Option<u32>, classes: &[Placed<Class>]) {
    if flows == Some(0) {
        for (place, class) in classes.iter().filter(|(_, class)| class.flow_ceil.is_some()) {
            let title = format!("class {} \"{}\" limits its flows, but there is no flow table", class.id, class.name);
            let finding = Diagnostic::error(Kind::Conflict, title)
                .at(
                    reader.spans.get(&format!("/classes/{place}/flow_ceil")).cloned(),
                    "kept for each flow in the table",
                )
                .at(object.get("flow_table").map(|field| field.span()), "no entries")
                .help("leave \"flow_table\" out, or remove \"flow_ceil\"");
            reader.report(finding);
        }
    }
    let mut first: HashMap<&str, (usize, &SharedCeiling)> = HashMap::new();
    for (place, class) in classes {
        let Some(shared) = &class.shared_ceil else { continue };
        let (earlier, same) = *first.entry(&shared.name).or_insert((*place, shared));
        if same.resolved() == shared.resolved() {
            continue;
        }
        let span = |place| reader.spans.get(&format!("/classes/{place}/shared_ceil")).cloned();
        let finding = Diagnostic::error(Kind::Conflict, format!("\"{}\" is shared at two rates", shared.name))
            .at(span(*place), "the second one")
            .at(span(earlier), "the first one")
            .help("write the same \"rate\" and \"burst\" in both, or use another name");
        reader.report(finding);
    }
}
