//! Edits of a policy's text that keep the rest of it as its author wrote it, comments included.

mod list;
mod subscribers;

pub use subscribers::{Frame, SubscriberChange, SubscriberEditError, taken_apart, with_subscribers};

use jsonc_parser::ast::{Array, Value as Node};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use list::{Item, property, with_list, written};
use serde_json::{Value, json};

/// The key of the forwards.
const FORWARDS: &str = "forwards";

/// The text with another forward at the end of its list. `None`: the text is no policy.
pub fn with_forward(text: &str, forward: &Value) -> Option<String> {
    let root = parsed(text)?;
    let root = root.as_object()?;
    let Some(there) = root.get(FORWARDS) else {
        let items: Vec<Item> = root.properties.iter().map(|own| Item::kept(text, own)).collect();
        return Some(with_list(text, root, &items, &[property(FORWARDS, &json!([forward]))]));
    };
    let list = there.value.as_array()?;
    let items: Vec<Item> = list.elements.iter().map(|own| Item::kept(text, own)).collect();
    Some(with_list(text, list, &items, &[written(forward)]))
}

/// The text without the forward of this name. `None`: there is none.
pub fn without_forward(text: &str, name: &str) -> Option<String> {
    let root = parsed(text)?;
    let list: &Array<'_> = root.as_object()?.get_array(FORWARDS)?;
    let is_named =
        |node: &Node<'_>| node.as_object().and_then(|own| own.get_string("name")).is_some_and(|own| own.value == name);
    let gone = list.elements.iter().position(is_named)?;
    let item = |(place, own)| if place == gone { Item::gone(own) } else { Item::kept(text, own) };
    let items: Vec<Item> = list.elements.iter().enumerate().map(item).collect();
    Some(with_list(text, list, &items, &[]))
}

fn parsed(text: &str) -> Option<Node<'_>> {
    parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default()).ok()?.value
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
