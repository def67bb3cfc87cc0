//! JSON pointers (RFC 6901) of the values at places in a text.

use super::syntax;
use crate::diagnostic::{Diagnostic, Diagnostics};
use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;

/// For each finding, in order, the pointer of its value; for a missing key that of its object. `None` if the finding has no
/// place in the file, or the file is too broken.
pub fn pointers(found: &Diagnostics) -> Vec<Option<String>> {
    match found.source() {
        Some(source) => of(source.text(), found.iter().map(Diagnostic::start)),
        None => vec![None; found.iter().count()],
    }
}

/// For each byte offset, the pointer of the value or key there. `None` if the text is far from JSON.
fn of(text: &str, offsets: impl Iterator<Item = Option<usize>>) -> Vec<Option<String>> {
    let (tree, _) = syntax::tree(text);
    offsets.map(|offset| Some(descend(tree.as_ref()?, offset?))).collect()
}

fn descend(root: &Value<'_>, offset: usize) -> String {
    let holds = |of: &dyn Ranged| (of.range().start..of.range().end).contains(&offset);
    let mut pointer = String::new();
    let mut value = root;
    loop {
        value = match value {
            Value::Object(object) => {
                let behind = object.properties.partition_point(|property| property.range().end <= offset);
                let Some(property) = object.properties.get(behind).filter(|property| holds(*property)) else { break };
                pointer += &format!("/{}", property.name.as_str().replace('~', "~0").replace('/', "~1"));
                &property.value
            }
            Value::Array(array) => {
                let place = array.elements.partition_point(|element| element.range().end <= offset);
                let Some(element) = array.elements.get(place).filter(|element| holds(*element)) else { break };
                pointer += &format!("/{place}");
                element
            }
            _ => break,
        };
        if !holds(value) {
            break;
        }
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_have_one_pointer() {
        let text = r#"{ "a": [1, { "b/c": 2, "~": [3] }], // so
            "d": "text" }"#;
        let at = |what: &str| of(text, std::iter::once(text.find(what))).remove(0);
        for (what, pointer) in [
            ("{", ""),
            ("\"a\"", "/a"),
            ("1", "/a/0"),
            (",", "/a"),
            ("{ \"b", "/a/1"),
            ("b/c", "/a/1/b~1c"),
            ("2", "/a/1/b~1c"),
            ("3", "/a/1/~0/0"),
            ("// so", ""),
            ("text", "/d"),
        ] {
            assert_eq!(at(what).as_deref(), Some(pointer), "{what}");
        }
        assert_eq!(of("{ [", [Some(0)].into_iter()), [None], "no tree, no pointer");
        assert_eq!(of(text, [None].into_iter()), [None]);
    }
}
