//! Edits of a policy's text that keep the rest of it as its author wrote it, comments included.

mod list;
mod subscribers;

pub use subscribers::{SubscriberChange, SubscriberEditError, with_subscribers};

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstRootNode};
use serde_json::Value;

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
