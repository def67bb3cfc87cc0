//! Class trees: inner classes, which others name as their `parent`, and leaf classes, which queue packets. They are stored as sites and subscribers
//! are; the class of a packet alone chooses its leaf.

use super::{NetworkPolicy, PlanScheduler};
use crate::bytes::Bytes;
use crate::class_id::ClassId;
use crate::diagnostic::{Diagnostic, Kind, Severity};
use crate::excerpt::excerpt;
use crate::rate::Rate;
use crate::source::Where;

/// What classes have beside the values of subscribers, plans and sites, which stand for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassTree {
    /// How the classes right below the link share it.
    pub scheduler: PlanScheduler,
    /// The leaf classes, in the order of the subscribers that they are stored as.
    pub leaves: Vec<TreeLeaf>,
    /// The inner classes, in the order of the sites that they are stored as.
    pub inner: Vec<TreeInner>,
}

/// A leaf class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeLeaf {
    /// Its number, by which rules name it.
    pub id: ClassId,
    /// Its urgency among the classes below the same parent, if that serves them by priority: 0 goes first.
    pub priority: u8,
}

/// An inner class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeInner {
    /// Its urgency among the classes below the same parent, if that serves them by priority: 0 goes first.
    pub priority: u8,
    /// How the classes below it share what their guarantees leave.
    pub scheduler: PlanScheduler,
    /// The most that passes at once after a pause, if there is a ceiling.
    pub burst: Option<Bytes>,
}

impl ClassTree {
    /// The leaf of packets that no rule gives to another one, by its index.
    pub(super) fn default_leaf(&self, default_class: Option<ClassId>) -> usize {
        self.leaves.iter().position(|leaf| Some(leaf.id) == default_class).unwrap_or_default()
    }
}

/// The words for the parts of a tree in messages.
pub(super) struct Words {
    pub site: &'static str,
    pub plan: &'static str,
}

impl NetworkPolicy {
    /// The words for the parts of this tree.
    pub(super) fn words(&self) -> Words {
        match self.class_tree {
            Some(_) => Words { site: "class", plan: "class" },
            None => Words { site: "site", plan: "plan" },
        }
    }

    /// The names of directions in messages, with the space before them. A class tree has one direction, so its name is empty.
    pub(super) fn way_names(&self) -> &'static [(&'static str, &'static str)] {
        if self.class_tree.is_some() { &[("down", "")] } else { &[("down", " down"), ("up", " up")] }
    }

    /// The name of a direction in messages, with the space before it. `None`: the direction is not told on its own.
    pub(super) fn way_name(&self, way: &str) -> Option<&'static str> {
        self.way_names().iter().find(|(own, _)| *own == way).map(|(_, name)| *name)
    }
}

/// The notes on ceilings of a class tree that are above those of an inner class or of the link above.
pub(super) fn out_of_reach(policy: &NetworkPolicy, link: Option<Rate>) -> Vec<Diagnostic> {
    if policy.class_tree.is_none() {
        return Vec::new();
    }
    let sites = &policy.sites.sites;
    // What passes at most above a class, and the name of where.
    let above = |parent: Option<usize>| {
        let own = std::iter::successors(parent, |&site| sites[site].parent);
        let own = own.filter_map(|site| Some((sites[site].ceil.down?, excerpt(&sites[site].name))));
        own.chain(link.map(|rate| (rate, "the link".into()))).min_by_key(|(ceil, _)| *ceil)
    };
    let inner = sites.iter().map(|site| (&site.name, site.parent, site.ceil.down, &site.span));
    let leaves = policy.subscribers.subscribers.iter();
    let leaves = leaves.map(|leaf| (&leaf.name, leaf.parent, policy.ceil(leaf).down, &leaf.span));
    let finding = |(name, parent, ceil, span): (&String, Option<usize>, Option<Rate>, &Where)| {
        let (ceil, (most, what)) = (ceil?, above(parent)?);
        let title = format!("the ceiling of the class {}, {ceil}, has no effect: {what} has {most}", excerpt(name));
        let finding = Diagnostic::new(Severity::Note, Kind::CeilClamped, title).at(span.0.clone(), "of this class");
        let finding = finding.help(format!("write {most} or less, or leave \"ceil\" out"));
        (ceil > most).then(|| policy.origin.source().into_iter().fold(finding, Diagnostic::of))
    };
    inner.chain(leaves).filter_map(finding).collect()
}
