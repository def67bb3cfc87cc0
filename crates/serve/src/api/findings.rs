//! What was found in a policy, as JSON.

use serde_json::{Value, json};
use sluice_policy::{Diagnostic, Diagnostics, Place, Severity};

/// A list, errors first. Lines and columns are from 1; a column counts characters.
pub fn list(found: &Diagnostics) -> Value {
    found.iter().zip(found.pointers()).map(|(item, pointer)| one(found, item, pointer.as_deref())).collect()
}

fn one(found: &Diagnostics, item: &Diagnostic, pointer: Option<&str>) -> Value {
    let severity = match item.severity() {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let mut places = found.places(item).into_iter();
    let first = places.next();
    json!({
        "severity": severity,
        "kind": item.kind().slug(),
        "title": item.title(),
        "pointer": pointer,
        "place": first.as_ref().map(place),
        "related": places.map(|related| place(&related)).collect::<Vec<_>>(),
        "cures": item.cures().collect::<Vec<_>>(),
    })
}

fn place(place: &Place) -> Value {
    json!({
        "line": place.from.0,
        "column": place.from.1,
        "end_line": place.to.0,
        "end_column": place.to.1,
        "text": place.text,
    })
}
