//! Edits of a policy's text that keep the rest of it as its author wrote it, comments included.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The text with another forward at the end of its list. `None`: the text is no policy.
pub fn with_forward(text: &str, forward: &Value) -> Option<String> {
    let root = CstRootNode::parse(text, &ParseOptions::default()).ok()?;
    let list = root.object_value()?.array_value_or_create("forwards")?;
    list.append(input(forward));
    list.ensure_multiline();
    Some(root.to_string())
}

/// The text without the forward of this name. `None`: there is none.
pub fn without_forward(text: &str, name: &str) -> Option<String> {
    let root = CstRootNode::parse(text, &ParseOptions::default()).ok()?;
    let list: CstArray = root.object_value()?.array_value("forwards")?;
    let named = |node: &CstNode| {
        let value = node.as_object()?.get("name")?.value()?;
        value.as_string_lit()?.decoded_value().ok()
    };
    list.elements().into_iter().find(|node| named(node).as_deref() == Some(name))?.remove();
    Some(root.to_string())
}

/// A change of one subscriber.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubscriberChange {
    /// Other values of the subscriber with this key; null removes one.
    Set {
        /// The key.
        name: String,
        /// Values, in the keys of policies.
        values: Map<String, Value>,
    },
    /// Another subscriber, in the keys of policies.
    Add(Map<String, Value>),
    /// The subscriber with this key goes.
    Remove {
        /// The key.
        name: String,
    },
}

/// The text with these changes, made one after the other.
///
/// # Errors
/// The key of a subscriber that is not there; none: the text lists no subscribers.
pub fn with_subscribers(text: &str, changes: &[SubscriberChange]) -> Result<String, Option<String>> {
    let root = CstRootNode::parse(text, &ParseOptions::default()).map_err(|_| None)?;
    let list = root.object_value().and_then(|own| own.array_value("subscribers")).ok_or(None)?;
    let objects = list.elements().into_iter().filter_map(|node| node.as_object());
    let mut known: HashMap<String, CstObject> = objects.filter_map(|own| Some((key(&own)?, own))).collect();
    for change in changes {
        match change {
            SubscriberChange::Set { name, values } => {
                let own = known.get(name).ok_or_else(|| Some(name.clone()))?;
                set(own, values);
            }
            SubscriberChange::Add(values) => {
                let added = list.append(input(&Value::Object(values.clone())));
                list.ensure_multiline();
                known.extend(added.as_object().and_then(|own| Some((key(&own)?, own))));
            }
            SubscriberChange::Remove { name } => known.remove(name).ok_or_else(|| Some(name.clone()))?.remove(),
        }
    }
    Ok(root.to_string())
}

fn set(subscriber: &CstObject, values: &Map<String, Value>) {
    for (name, value) in values {
        match (subscriber.get(name), value) {
            (Some(there), Value::Null) => there.remove(),
            (None, Value::Null) => {}
            (Some(there), value) => there.set_value(input(value)),
            (None, value) => drop(subscriber.append(name, input(value))),
        }
    }
}

/// The key of a subscriber: its id, or its name if it has no id.
fn key(subscriber: &CstObject) -> Option<String> {
    let value = |name: &str| subscriber.get(name)?.value()?.as_string_lit()?.decoded_value().ok();
    value("id").or_else(|| value("name"))
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        // The editor escapes quotation marks alone.
        Value::String(text) => CstInputValue::String(text.replace('\\', "\\\\")),
        Value::Array(values) => CstInputValue::Array(values.iter().map(input).collect()),
        Value::Object(fields) => {
            CstInputValue::Object(fields.iter().map(|(key, value)| (key.clone(), input(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, parse};
    use serde_json::json;

    const TEXT: &str =
        "{\n  // the office\n  \"scheduler\": \"round_robin\", \"classes\": [{ \"id\": 0 }], // one\n}\n";

    fn names(text: &str) -> Vec<String> {
        let policy = parse(&Source::new("edited", text)).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        policy.forwards.into_iter().map(|forward| forward.name).collect()
    }

    #[test]
    fn subscribers_are_edited_where_they_stand() {
        let text = r#"{ // ours
  "subscriber_side": ["eth1"], "plans": { "home": {} },
  "subscribers": [
    { "name": "a", "addresses": ["192.0.2.1"], "plan": "home" }, // the first
    { "name": "B", "id": "b", "addresses": ["192.0.2.2"] }
  ] }"#;
        let read = |text: &str| {
            let policy = parse(&Source::new("edited", text)).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
            let all = policy.network.expect("a network").subscribers.subscribers;
            all.into_iter().map(|one| (one.id, one.plan, one.rate.down)).collect::<Vec<_>>()
        };
        let change = |change: Value| vec![serde_json::from_value::<SubscriberChange>(change).expect("a change")];
        let edited = with_subscribers(
            text,
            &change(json!({ "set": { "name": "a", "values": { "plan": null, "rate": "5mbit" } } })),
        );
        let edited = edited.expect("it is there");
        let rate = Some(crate::Rate(5_000_000));
        assert_eq!(read(&edited), [("a".to_owned(), None, rate), ("b".to_owned(), None, None)]);
        assert!(edited.contains("// ours") && edited.contains("// the first"), "{edited}");
        let changes = [
            change(json!({ "set": { "name": "b", "values": { "plan": "home" } } })),
            change(json!({ "add": { "name": "c", "addresses": ["2001:db8::/56"] } })),
            change(json!({ "set": { "name": "c", "values": { "rate": "5mbit" } } })),
            change(json!({ "remove": { "name": "a" } })),
        ];
        let left = with_subscribers(&edited, &changes.concat()).expect("they are there");
        assert_eq!(read(&left), [("b".to_owned(), Some(0), None), ("c".to_owned(), None, rate)]);
        let absent = with_subscribers(&left, &change(json!({ "remove": { "name": "B" } })));
        assert_eq!(absent, Err(Some("B".to_owned())), "b has a key of its own");
        assert_eq!(with_subscribers(TEXT, &[]), Err(None));
    }

    #[test]
    fn backslashes_are_escaped() {
        for name in ["a\\b", "a\\", "\\\"", "we\"b", "\\u0041"] {
            let forward = json!({ "name": name, "protocol": "tcp", "port": 1, "targets": ["10.0.0.1"] });
            let edited = with_forward(TEXT, &forward).expect("a policy");
            assert_eq!(names(&edited), [name], "{edited}");
            assert_eq!(names(&without_forward(&edited, name).expect("it is there")), [""; 0]);
        }
    }

    #[test]
    fn comments_stay() {
        let forward =
            |name: &str, port: u16| json!({ "name": name, "protocol": "tcp", "port": port, "targets": ["10.0.0.1"] });
        let one = with_forward(TEXT, &forward("one", 1)).expect("a policy");
        let two = with_forward(&one, &forward("two", 2)).expect("a policy");
        assert_eq!(names(&two), ["one", "two"]);
        assert!(two.contains("// the office") && two.contains("// one"), "{two}");
        let left = without_forward(&two, "one").expect("it was there");
        assert_eq!(names(&left), ["two"]);
        assert!(left.contains("// the office"), "{left}");
        assert_eq!(without_forward(&left, "one"), None);
        assert_eq!(without_forward(TEXT, "one"), None);
    }
}
