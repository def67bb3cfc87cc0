//! Edits of a list in a text, the elements of an array or the properties of an object, that leave everything else as it is.

use jsonc_parser::common::Ranged;
use serde_json::Value;
use std::ops::Range;

/// An item that stands in the text.
pub(super) struct Item {
    /// The first byte of the item, and the one behind its last.
    pub place: Range<usize>,
    /// The new text of the item; none: the item goes, with what is between it and the next one.
    pub text: Option<String>,
}

impl Item {
    /// An item as it stands.
    pub fn kept(text: &str, item: &impl Ranged) -> Item {
        let place = item.start()..item.end();
        Item { text: Some(text[place.clone()].to_owned()), place }
    }

    /// An item that goes.
    pub fn gone(item: &impl Ranged) -> Item {
        Item { place: item.start()..item.end(), text: None }
    }
}

/// The whole text once the list that stands at `list` is as [`edited`] says.
pub(super) fn with_list(text: &str, list: &impl Ranged, items: &[Item], added: &[String]) -> String {
    let place = list.start()..list.end();
    text[..place.start].to_owned() + &edited(text, place.clone(), items, added) + &text[place.end..]
}

/// A value as a person would write it, on one line.
pub(super) fn written(value: &Value) -> String {
    match value {
        Value::Array(values) => format!("[{}]", values.iter().map(written).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) if !fields.is_empty() => {
            let fields: Vec<String> = fields.iter().map(|(name, value)| property(name, value)).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        other => other.to_string(),
    }
}

/// A property of an object, as [`written`] has it.
pub(super) fn property(name: &str, value: &Value) -> String {
    format!("{}: {}", Value::from(name), written(value))
}

/// The text of the list that stands at `list`, brackets included, once it has these items and then those that are `added`.
pub(super) fn edited(text: &str, list: Range<usize>, items: &[Item], added: &[String]) -> String {
    let inside = list.start + 1..list.end - 1;
    let before = &text[inside.start..items.first().map_or(inside.start, |first| first.place.start)];
    // Another item stands like the first: on a line of its own, or not.
    let between = if before.trim().is_empty() && !before.is_empty() { before } else { " " };
    let mut out = text[list.start..inside.start].to_owned() + before;
    let kept: Vec<(usize, &String)> =
        items.iter().enumerate().filter_map(|(place, item)| Some((place, item.text.as_ref()?))).collect();
    for (nth, (place, own)) in kept.iter().enumerate() {
        out += own;
        if nth + 1 < kept.len() {
            out += &text[items[*place].place.end..items[place + 1].place.start];
        }
    }
    for (nth, own) in added.iter().enumerate() {
        if nth > 0 || !kept.is_empty() {
            out.push(',');
            out += between;
        }
        out += own;
    }
    let is_empty = kept.is_empty() && added.is_empty();
    let from = items.last().filter(|_| !is_empty).map_or(inside.end, |last| last.place.end);
    // A comment of an empty list stays in it.
    let rest = if items.is_empty() { &text[inside.clone()] } else { "" };
    out + rest + &text[from..list.end]
}
