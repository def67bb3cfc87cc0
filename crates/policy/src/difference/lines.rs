//! A difference as lines of text.

use super::{Change, Difference, Field, NodeChange};
use std::fmt;

/// The sign at the beginning of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// `+`: an addition.
    Added,
    /// `-`: a removal.
    Removed,
    /// `~`: a change.
    Changed,
}

impl Sign {
    fn of(change: Change) -> Sign {
        match change {
            Change::Added => Sign::Added,
            Change::Removed => Sign::Removed,
            Change::Changed | Change::Moved => Sign::Changed,
        }
    }

    /// The character.
    pub fn char(self) -> char {
        match self {
            Sign::Added => '+',
            Sign::Removed => '-',
            Sign::Changed => '~',
        }
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The sign at the beginning of the line.
    pub sign: Sign,
    /// The text after the sign.
    pub text: String,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.sign.char(), self.text)
    }
}

impl Difference {
    /// A line for each setting, class, rule, forward, site and subscriber that changes.
    pub fn lines(&self) -> Vec<Line> {
        let settings = self.settings.iter().map(|field| Line { sign: Sign::Changed, text: arrow(field, "none") });
        let classes = self.classes.iter().map(|class| Line {
            sign: Sign::of(class.change),
            text: format!(
                "class {} {}: {}",
                class.id,
                class.name,
                list(class.change, &class.fields, &["id", "name"], "none")
            ),
        });
        let rules = self.rules.iter().map(|rule| {
            let name = rule.name.as_ref().map_or(String::new(), |name| format!(" {name}"));
            let moved = if rule.change == Change::Moved { "moved, " } else { "" };
            let fields = list(rule.change, &rule.fields, &["priority", "name"], "any");
            Line { sign: Sign::of(rule.change), text: format!("rule {}{name}: {moved}{fields}", rule.priority) }
        });
        let forwards = self.forwards.iter().map(|forward| {
            let fields = list(forward.change, &forward.fields, &["name"], "none");
            Line { sign: Sign::of(forward.change), text: format!("forward {}: {fields}", forward.name) }
        });
        let nodes = |what: &'static str, nodes: &'_ [NodeChange]| -> Vec<Line> {
            let line = |node: &NodeChange| {
                let fields = list(node.change, &node.fields, &["name"], "none");
                Line { sign: Sign::of(node.change), text: format!("{what} {}: {fields}", node.id) }
            };
            nodes.iter().map(line).collect()
        };
        let site = if self.is_class_tree { "class" } else { "site" };
        let tree = nodes(site, &self.sites).into_iter().chain(nodes("subscriber", &self.subscribers));
        settings.chain(classes).chain(rules).chain(forwards).chain(tree).collect()
    }

    /// The number of changes, as text.
    pub fn summary(&self) -> String {
        let count = |n: usize, one: &str, many: &str| match n {
            0 => None,
            1 => Some(format!("1 {one}")),
            n => Some(format!("{n} {many}")),
        };
        let (above, sites) = if self.is_class_tree { (self.sites.len(), 0) } else { (0, self.sites.len()) };
        let parts: Vec<String> = [
            count(self.settings.len(), "setting", "settings"),
            count(self.classes.len() + above, "class", "classes"),
            count(self.rules.len(), "rule", "rules"),
            count(self.forwards.len(), "forward", "forwards"),
            count(sites, "site", "sites"),
            count(self.subscribers.len(), "subscriber", "subscribers"),
        ]
        .into_iter()
        .flatten()
        .collect();
        if parts.is_empty() { "nothing changes".to_owned() } else { format!("{} changed", parts.join(", ")) }
    }
}

fn arrow(field: &Field, absent: &str) -> String {
    let side = |value: &Option<String>| value.clone().unwrap_or_else(|| absent.to_owned());
    format!("{} {} -> {}", field.field, side(&field.old), side(&field.new))
}

/// The changed values. An added or removed class or rule has its `title` at the beginning of the line.
fn list(change: Change, fields: &[Field], title: &[&str], absent: &str) -> String {
    let shown = |field: &Field| match change {
        Change::Added | Change::Removed if title.contains(&field.field) => None,
        Change::Added => field.new.as_ref().map(|value| format!("{} {value}", field.field)),
        Change::Removed => field.old.as_ref().map(|value| format!("{} {value}", field.field)),
        Change::Changed | Change::Moved => Some(arrow(field, absent)),
    };
    fields.iter().filter_map(shown).collect::<Vec<_>>().join(", ")
}
