//! The difference between two resolved policies: every field that differs, under the name that policy files give it.

pub(crate) mod change;
mod fields;
mod lines;
mod pairs;

pub use change::{Change, Field};
pub use lines::{Line, Sign};

use crate::network::difference as network;
pub use crate::network::difference::NodeChange;
use crate::resolved::{Resolved, ResolvedClass};
use change::{Values, changed};
use serde::Serialize;
use std::collections::BTreeSet;

/// The difference of two policies. Empty if, and only if, both mean the same.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Difference {
    /// Values of the policy as a whole: its name, the scheduler, the link ...
    pub settings: Vec<Field>,
    /// Classes by id.
    pub classes: Vec<ClassChange>,
    /// Rules by priority.
    pub rules: Vec<RuleChange>,
    /// Forwards by name.
    pub forwards: Vec<ForwardChange>,
    /// Sites, those that are gone first, then in the order of the new policy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<NodeChange>,
    /// Subscribers, likewise. A plan that changes is a change of each of its subscribers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subscribers: Vec<NodeChange>,
    /// Whether the new policy is a class tree: `sites` are then its inner classes, and `classes` its leaf classes.
    #[serde(skip)]
    pub(crate) is_class_tree: bool,
}

impl Difference {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        let Difference { settings, classes, rules, forwards, sites, subscribers, is_class_tree: _ } = self;
        let of_classes = classes.is_empty() && rules.is_empty() && forwards.is_empty();
        settings.is_empty() && of_classes && sites.is_empty() && subscribers.is_empty()
    }
}

/// A class that changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassChange {
    /// The kind of change.
    pub change: Change,
    /// The class's id.
    pub id: u8,
    /// The class's name, the new one if there are two.
    pub name: String,
    /// All values of a class that is added or removed, else the changed values.
    pub fields: Vec<Field>,
}

/// A rule that changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleChange {
    /// The kind of change.
    pub change: Change,
    /// The rule's priority, the new one if there are two.
    pub priority: u32,
    /// The rule's name, the new one if there are two.
    pub name: Option<String>,
    /// All values of a rule that is added or removed, else the changed values.
    pub fields: Vec<Field>,
}

/// A forward that changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ForwardChange {
    /// The kind of change.
    pub change: Change,
    /// The forward's name.
    pub name: String,
    /// All values of a forward that is added or removed, else the changed values.
    pub fields: Vec<Field>,
}

/// The difference from `old` to `new`. Remarks and places in files are ignored.
pub fn difference(old: &Resolved, new: &Resolved) -> Difference {
    let (sites, subscribers) = network::changed_nodes(old.network.as_ref(), new.network.as_ref());
    Difference {
        settings: changed(&settings(old), &settings(new)),
        sites,
        subscribers,
        is_class_tree: new.network.as_ref().is_some_and(crate::network::Network::is_class_tree),
        classes: classes(old, new),
        rules: rules(old, new),
        forwards: forwards(old, new),
    }
}

fn settings(resolved: &Resolved) -> Values {
    resolved.network.as_ref().map_or_else(|| fields::settings(resolved), network::settings)
}

fn class_values(resolved: &Resolved, class: &ResolvedClass) -> Values {
    resolved.network.as_ref().map_or_else(|| fields::class(class), |network| network::class(network, class))
}

/// For each rule of `new`, the index of the rule of `old` that is equal except for name and priority; `None` for a new rule.
pub fn kept_rules(old: &Resolved, new: &Resolved) -> Vec<Option<usize>> {
    let mut kept = vec![None; new.rules.len()];
    for pair in pairs::of(&old.rules, &new.rules) {
        if let (Some(was), Some(is)) = pair {
            if pairs::same_conditions(&old.rules[was], &new.rules[is]) {
                kept[is] = Some(was);
            }
        }
    }
    kept
}

/// The change of a class or rule between two policies, with the changed values.
fn change(old: Option<Values>, new: Option<Values>) -> Option<(Change, Vec<Field>)> {
    let kind = match (&old, &new) {
        (None, _) => Change::Added,
        (_, None) => Change::Removed,
        _ => Change::Changed,
    };
    let fields = changed(&old.unwrap_or_default(), &new.unwrap_or_default());
    match &fields[..] {
        [] => None,
        [only] if kind == Change::Changed && only.field == fields::RULE_PLACE => Some((Change::Moved, fields)),
        _ => Some((kind, fields)),
    }
}

fn classes(old: &Resolved, new: &Resolved) -> Vec<ClassChange> {
    let mut ids: Vec<_> = old.classes.iter().chain(&new.classes).map(|class| class.id).collect();
    ids.sort_unstable();
    ids.dedup();
    let of = |id| {
        let (was, is) = (old.class(id), new.class(id));
        let (mut change, fields) =
            change(was.map(|class| class_values(old, class)), is.map(|class| class_values(new, class)))?;
        if change == Change::Moved {
            // The priority of a class is an ordinary value.
            change = Change::Changed;
        }
        let name = is.or(was).map(|class| class.name.clone()).unwrap_or_default();
        Some(ClassChange { change, id: id.0, name, fields })
    };
    ids.into_iter().filter_map(of).collect()
}

/// Changes of forwards, which are ordered by name in both policies.
fn forwards(old: &Resolved, new: &Resolved) -> Vec<ForwardChange> {
    let of = |resolved: &Resolved, name: &str| {
        let place = resolved.forwards.binary_search_by(|forward| forward.name.as_str().cmp(name));
        place.ok().map(|place| fields::forward(&resolved.forwards[place]))
    };
    let names: BTreeSet<&str> = old.forwards.iter().chain(&new.forwards).map(|forward| forward.name.as_str()).collect();
    let change = |name: &str| {
        let (change, fields) = change(of(old, name), of(new, name))?;
        Some(ForwardChange { change, name: name.to_owned(), fields })
    };
    names.into_iter().filter_map(change).collect()
}

fn rules(old: &Resolved, new: &Resolved) -> Vec<RuleChange> {
    let of = |(was, is): (Option<usize>, Option<usize>)| {
        let (was, is) = (was.map(|n| &old.rules[n]), is.map(|n| &new.rules[n]));
        let (change, fields) = change(was.map(fields::rule), is.map(fields::rule))?;
        let shown = is.or(was)?;
        Some(RuleChange { change, priority: shown.rule.priority, name: shown.rule.name.clone(), fields })
    };
    let mut changes: Vec<RuleChange> = pairs::of(&old.rules, &new.rules).into_iter().filter_map(of).collect();
    changes.sort_by_key(|change| change.priority);
    changes
}
