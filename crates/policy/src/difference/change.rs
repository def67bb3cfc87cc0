//! Changes of values, whatever they are values of.

use serde::Serialize;

/// Names and values. A value that is not set is absent.
pub(crate) type Values = Vec<(&'static str, String)>;

/// A value that changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Field {
    /// The field's name in policy files, `link.rate` for the `rate` of `link`.
    pub field: &'static str,
    /// The former value; none if it was not set.
    pub old: Option<String>,
    /// The new value; none if it is not set.
    pub new: Option<String>,
}

/// The change of a class or a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The class or rule is new.
    Added,
    /// The class or rule is removed.
    Removed,
    /// Some of its values change.
    Changed,
    /// A rule moves to another place and is otherwise the same.
    Moved,
}

/// The values that differ.
pub(crate) fn changed(old: &Values, new: &Values) -> Vec<Field> {
    let value = |of: &Values, key: &str| of.iter().find(|(name, _)| *name == key).map(|(_, value)| value.clone());
    let keys = old.iter().chain(new.iter().filter(|(key, _)| value(old, key).is_none()));
    keys.map(|(field, _)| Field { field, old: value(old, field), new: value(new, field) })
        .filter(|field| field.old != field.new)
        .collect()
}
