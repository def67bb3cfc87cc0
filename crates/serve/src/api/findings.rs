//! The findings in a policy, as JSON.

use serde_json::{Value, json};
use sluice_policy::{Diagnostic, Diagnostics, Place, Severity, pointers};

/// The most findings that are listed.
const MAX_FINDINGS: usize = 200;
/// The most places that a finding is said to relate to.
const MAX_RELATED: usize = 8;

/// A list of the first findings, errors first. Lines and columns are from 1; a column counts characters. Pointers are given
/// only where all findings are listed, since each is looked for among all values.
pub fn list(found: &Diagnostics) -> Value {
    let pointers = if left_out(found) == 0 { pointers(found) } else { vec![None; MAX_FINDINGS] };
    found.iter().zip(pointers).map(|(item, pointer)| one(found, item, pointer.as_deref())).collect()
}

/// The number of findings that are not listed.
pub fn left_out(found: &Diagnostics) -> usize {
    found.len().saturating_sub(MAX_FINDINGS)
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
        "related": places.take(MAX_RELATED).map(|related| place(&related)).collect::<Vec<_>>(),
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
