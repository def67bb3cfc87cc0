//! Edits of the subscribers that a policy lists.

use super::list::{Item, edited, property, with_list, written};
use jsonc_parser::ast::{Object, Value as Node};
use jsonc_parser::common::Ranged;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fmt;

/// A change of one subscriber.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

/// Why subscribers cannot be edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubscriberEditError {
    /// The text is no policy, or lists no subscribers.
    NoList,
    /// No subscriber has this key.
    NotThere(String),
    /// Another subscriber has this key already.
    There(String),
}

impl fmt::Display for SubscriberEditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SubscriberEditError::NoList => write!(f, "the policy lists no subscribers"),
            SubscriberEditError::NotThere(name) => write!(f, "there is no subscriber \"{}\"", name.escape_debug()),
            SubscriberEditError::There(name) => {
                write!(f, "there is a subscriber \"{}\" already", name.escape_debug())
            }
        }
    }
}

impl std::error::Error for SubscriberEditError {}

/// The text with these changes, made one after the other. Whatever they do not touch stays as it is, comments included.
///
/// # Errors
/// The text lists no subscribers, or a change names one that is not there.
pub fn with_subscribers(text: &str, changes: &[SubscriberChange]) -> Result<String, SubscriberEditError> {
    let root = super::parsed(text).ok_or(SubscriberEditError::NoList)?;
    // A policy with groups of hosts alone gets a list.
    if let Some(own) = root.as_object().filter(|own| own.get("subscribers").is_none() && own.get("each_host").is_some())
    {
        let items: Vec<Item> = own.properties.iter().map(|property| Item::kept(text, property)).collect();
        let added = [property("subscribers", &Value::Array(Vec::new()))];
        return with_subscribers(&with_list(text, own, &items, &added), changes);
    }
    let list = root.as_object().and_then(|own| own.get_array("subscribers")).ok_or(SubscriberEditError::NoList)?;
    let mut entries: Vec<Entry<'_>> = list.elements.iter().map(Entry::there).collect();
    let mut known: HashMap<String, usize> =
        entries.iter().enumerate().filter_map(|(place, entry)| Some((entry.key()?, place))).collect();
    for change in changes {
        let place = |name: &String| known.get(name).copied().ok_or_else(|| SubscriberEditError::NotThere(name.clone()));
        match change {
            SubscriberChange::Set { name, values } => {
                let place = place(name)?;
                entries[place].values.extend(values.clone());
                known.remove(name);
                know(&mut known, entries[place].key(), place)?;
            }
            SubscriberChange::Add(values) => {
                let added = Entry { there: None, values: values.clone(), gone: false };
                know(&mut known, added.key(), entries.len())?;
                entries.push(added);
            }
            SubscriberChange::Remove { name } => {
                entries[place(name)?].gone = true;
                known.remove(name);
            }
        }
    }
    let (old, new) = entries.split_at(list.elements.len());
    let items = old.iter().zip(&list.elements).map(|(entry, node)| {
        let own = (!entry.gone).then(|| entry.edited(text));
        Item { place: node.start()..node.end(), text: own }
    });
    let added = new.iter().filter(|entry| !entry.gone).map(|entry| {
        let values = entry.values.iter().filter(|(_, value)| !value.is_null());
        written(&Value::Object(values.map(|(name, value)| (name.clone(), value.clone())).collect()))
    });
    Ok(with_list(text, list, &items.collect::<Vec<_>>(), &added.collect::<Vec<_>>()))
}

/// A policy's text, taken apart: the list of its subscribers, and what stands before and behind it.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// The text up to the list's bracket, which is included.
    pub before: &'a str,
    /// The text from the list's closing bracket on.
    pub behind: &'a str,
}

impl Frame<'_> {
    /// The text of a policy that has these subscribers only.
    pub fn around<'b>(&self, subscribers: impl IntoIterator<Item = &'b str>) -> String {
        let subscribers: Vec<&str> = subscribers.into_iter().collect();
        format!("{}{}{}", self.before, subscribers.join(", "), self.behind)
    }
}

/// Takes a policy's text apart: its frame, and each subscriber's key and text. None: it lists no subscribers, or one of them has no key.
pub fn taken_apart(text: &str) -> Option<(Frame<'_>, Vec<(String, &str)>)> {
    let root = super::parsed(text)?;
    let list = root.as_object()?.get_array("subscribers")?;
    let frame = Frame { before: &text[..=list.start()], behind: &text[list.end() - 1..] };
    let own = |node| Some((Entry::there(node).key()?, &text[node.start()..node.end()]));
    Some((frame, list.elements.iter().map(own).collect::<Option<_>>()?))
}

/// Notes the key of an entry.
fn know(known: &mut HashMap<String, usize>, key: Option<String>, place: usize) -> Result<(), SubscriberEditError> {
    match key {
        Some(key) if known.contains_key(&key) => Err(SubscriberEditError::There(key)),
        Some(key) => {
            known.insert(key, place);
            Ok(())
        }
        None => Ok(()),
    }
}

/// An element of the list.
struct Entry<'a> {
    /// The element in the text; none: it is added.
    there: Option<&'a Node<'a>>,
    /// The values that it gets; null: it loses them.
    values: Map<String, Value>,
    gone: bool,
}

impl<'a> Entry<'a> {
    fn there(node: &'a Node<'a>) -> Entry<'a> {
        Entry { there: Some(node), values: Map::new(), gone: false }
    }

    fn object(&self) -> Option<&'a Object<'a>> {
        self.there?.as_object()
    }

    fn text_of(&self, name: &str) -> Option<String> {
        match self.values.get(name) {
            Some(value) => value.as_str().map(str::to_owned),
            None => self.object()?.get_string(name).map(|own| own.value.to_string()),
        }
    }

    /// The key of a subscriber: its id, or its name if it has no id.
    fn key(&self) -> Option<String> {
        self.text_of("id").or_else(|| self.text_of("name"))
    }

    /// The text of an element that is there, with its new values.
    fn edited(&self, text: &str) -> String {
        let (Some(node), Some(object)) = (self.there, self.object()) else {
            return self.there.map(|node| text[node.start()..node.end()].to_owned()).unwrap_or_default();
        };
        let own = node.start()..node.end();
        if self.values.is_empty() {
            return text[own].to_owned();
        }
        let items: Vec<Item> = object
            .properties
            .iter()
            .map(|property| match self.values.get(property.name.as_str()) {
                None => Item::kept(text, property),
                Some(Value::Null) => Item::gone(property),
                Some(value) => {
                    let name = &text[property.start()..property.value.start()];
                    Item { place: property.start()..property.end(), text: Some(name.to_owned() + &written(value)) }
                }
            })
            .collect();
        let is_there = |name: &str| object.get(name).is_some();
        let added: Vec<String> = self
            .values
            .iter()
            .filter(|(name, value)| !value.is_null() && !is_there(name))
            .map(|(name, value)| property(name, value))
            .collect();
        edited(text, own, &items, &added)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, parse};
    use jsonc_parser::ParseOptions;
    use serde_json::json;

    fn change(change: Value) -> SubscriberChange {
        serde_json::from_value(change).expect("a change")
    }

    fn made(text: &str, changes: &[Value]) -> Result<String, SubscriberEditError> {
        with_subscribers(text, &changes.iter().cloned().map(change).collect::<Vec<_>>())
    }

    /// The subscribers of a text, as values.
    fn listed(text: &str) -> Vec<Value> {
        let value = jsonc_parser::parse_to_serde_value(text, &ParseOptions::default());
        let value = value.unwrap_or_else(|error| panic!("{error}\n{text}")).expect("a value");
        value["subscribers"].as_array().expect("a list").clone()
    }

    const TEXT: &str = r#"{ // ours
  "subscriber_side": ["eth1"], "plans": { "home": {} },
  "subscribers": [
    { "name": "a", "addresses": ["192.0.2.1"], "plan": "home" }, // the first
    { "name": "B", "id": "b", "addresses": ["192.0.2.2"] }
  ] }"#;

    #[test]
    fn they_are_edited_where_they_stand() {
        let read = |text: &str| {
            let policy = parse(&Source::new("edited", text)).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
            let all = policy.network.expect("a network").subscribers.subscribers;
            all.into_iter().map(|one| (one.id, one.plan, one.rate.down)).collect::<Vec<_>>()
        };
        let edited = made(TEXT, &[json!({ "set": { "name": "a", "values": { "plan": null, "rate": "5mbit" } } })]);
        let edited = edited.expect("it is there");
        let rate = Some(crate::Rate(5_000_000));
        assert_eq!(read(&edited), [("a".to_owned(), None, rate), ("b".to_owned(), None, None)]);
        assert!(edited.contains("// ours") && edited.contains("// the first"), "{edited}");
        let changes = [
            json!({ "set": { "name": "b", "values": { "plan": "home" } } }),
            json!({ "add": { "name": "c", "addresses": ["2001:db8::/56"] } }),
            json!({ "set": { "name": "c", "values": { "rate": "5mbit" } } }),
            json!({ "remove": { "name": "a" } }),
        ];
        let left = made(&edited, &changes).expect("they are there");
        assert_eq!(read(&left), [("b".to_owned(), Some(0), None), ("c".to_owned(), None, rate)]);
        let absent = made(&left, &[json!({ "remove": { "name": "B" } })]);
        assert_eq!(absent, Err(SubscriberEditError::NotThere("B".to_owned())), "b has a key of its own");
        assert_eq!(made("{}", &[]), Err(SubscriberEditError::NoList));
        assert_eq!(made("{", &[]), Err(SubscriberEditError::NoList));
    }

    #[test]
    fn a_part_stands_in_the_frame() {
        let (frame, all) = taken_apart(TEXT).expect("a list");
        let keys: Vec<&str> = all.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["a", "b"]);
        assert_eq!(listed(&frame.around([])), [""; 0]);
        for part in [&all[..1], &all[1..], &all[..]] {
            let text = frame.around(part.iter().map(|(_, own)| *own));
            let read = parse(&Source::new("part", text.as_str())).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
            let read = read.network.expect("a network").subscribers.subscribers;
            assert_eq!(read.len(), part.len());
            assert!(read.iter().zip(part).all(|(one, (key, _))| one.id == *key), "{text}");
        }
        assert!(taken_apart("{}").is_none() && taken_apart("{").is_none());
        assert!(taken_apart(r#"{ "subscribers": [{}] }"#).is_none(), "without a key");
    }

    #[test]
    fn a_policy_with_groups_alone_gets_a_list() {
        let text = "{ // ours\n  \"subscriber_side\": [\"eth1\"],\n  \"each_host\": { \"g\": { \"addresses\": [\"10.0.0.0/8\"] } } // all\n}";
        let added = made(text, &[json!({ "add": { "name": "a", "addresses": ["10.0.0.1"] } })]).expect("it gets one");
        assert_eq!(listed(&added), [json!({ "name": "a", "addresses": ["10.0.0.1"] })]);
        assert!(added.contains("// ours") && added.contains("// all"), "{added}");
        parse(&Source::new("edited", added.as_str())).unwrap_or_else(|errors| panic!("{errors}\n{added}"));
        let gone = made(text, &[json!({ "remove": { "name": "a" } })]);
        assert_eq!(gone, Err(SubscriberEditError::NotThere("a".to_owned())));
    }

    #[test]
    fn a_changed_key_is_followed() {
        let renamed = json!({ "set": { "name": "a", "values": { "name": "z" } } });
        let by_former = made(TEXT, &[renamed.clone(), json!({ "remove": { "name": "a" } })]);
        assert_eq!(by_former, Err(SubscriberEditError::NotThere("a".to_owned())));
        let by_new = made(TEXT, &[renamed, json!({ "remove": { "name": "z" } })]).expect("it is there");
        assert_eq!(listed(&by_new).len(), 1);
        let taken = made(TEXT, &[json!({ "set": { "name": "a", "values": { "name": "b" } } })]);
        assert_eq!(taken, Err(SubscriberEditError::There("b".to_owned())));
        assert_eq!(made(TEXT, &[json!({ "add": { "name": "a" } })]), Err(SubscriberEditError::There("a".to_owned())));
        let without_id = json!({ "set": { "name": "b", "values": { "id": null } } });
        let left = made(TEXT, &[without_id, json!({ "remove": { "name": "B" } })]).expect("the name is the key now");
        assert_eq!(listed(&left).len(), 1);
    }

    #[test]
    fn keys_and_values_are_escaped() {
        for name in ["a\\", "\\\"", "we\"b", "a\": 1, \"b", "a\nb", "\u{7}", "é\u{1f600}"] {
            let added = made(TEXT, &[json!({ "add": { name: name, "name": name } })]).expect("a list");
            assert_eq!(listed(&added)[2], json!({ name: name, "name": name }), "{added}");
            let set = made(TEXT, &[json!({ "set": { "name": "a", "values": { name: [name] } } })]).expect("a list");
            assert_eq!(listed(&set)[0][name], json!([name]), "{set}");
        }
    }

    /// Lists in every layout, changed in every way, are lists of what the changes say.
    #[test]
    fn the_list_has_what_the_changes_say() {
        let lists = [
            "[]",
            "[ ]",
            "[ // none\n ]",
            "[{ \"name\": \"a\" }]",
            "[ { \"name\": \"a\" }, /* two */ { \"name\": \"b\" }, ]",
            "[\n  // first\n  { \"name\": \"a\", }, // a\n  { /* x */ \"name\": \"b\" } // b\n  , { \"name\": \"c\", \"plan\": \"p\" } // c\n]",
        ];
        let name = |number: usize| ["a", "b", "c", "d", "e"][number % 5];
        for list in lists {
            let text = format!("{{ \"subscribers\": {list} }}");
            for mut seed in 0..400_usize {
                let (mut model, mut changes) = (listed(&text), Vec::new());
                while seed > 0 {
                    let (kind, who) = (seed % 4, name(seed / 4));
                    seed /= 7;
                    let at = model.iter().position(|one| one["name"] == who);
                    match (kind, at) {
                        (0, Some(at)) => {
                            model.remove(at);
                            changes.push(json!({ "remove": { "name": who } }));
                        }
                        (1, Some(at)) => {
                            model[at]["rate"] = json!("1mbit");
                            model[at].as_object_mut().expect("an object").remove("plan");
                            let values = json!({ "rate": "1mbit", "plan": null });
                            changes.push(json!({ "set": { "name": who, "values": values } }));
                        }
                        (2 | 3, None) => {
                            model.push(json!({ "name": who }));
                            changes.push(json!({ "add": { "name": who } }));
                        }
                        _ => {}
                    }
                }
                let made = made(&text, &changes).expect("they are there");
                assert_eq!(listed(&made), model, "{text}\n{changes:?}\n{made}");
            }
        }
    }
}
