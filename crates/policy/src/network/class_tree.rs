//! Class trees: inner classes, which others name as their `parent`, and leaf classes, which queue packets. They are stored as sites and subscribers
//! are; the class of a packet alone chooses its leaf.

use super::{NetworkPolicy, NodeScheduler, Order};
use crate::bytes::Bytes;
use crate::class_id::ClassId;
use crate::diagnostic::{Diagnostic, Kind, Severity};
use crate::excerpt::excerpt;
use crate::rate::Rate;
use crate::source::Where;

/// The values of a class tree for which subscribers, plans and sites have no place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassTree {
    /// How the classes right below the link share it.
    pub scheduler: NodeScheduler,
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
    /// The request below EEVDF, or the latency budget below a PIFO.
    pub order: Order,
}

/// An inner class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeInner {
    /// Its urgency among the classes below the same parent, if that serves them by priority: 0 goes first.
    pub priority: u8,
    /// The request below EEVDF, or the latency budget below a PIFO.
    pub order: Order,
    /// How the classes below it share what their guarantees leave.
    pub scheduler: NodeScheduler,
    /// The most that passes at once after a pause, if there is a ceiling.
    pub burst: Option<Bytes>,
}

impl ClassTree {
    /// The leaf of packets that no rule gives to another one, by its index.
    pub(super) fn default_leaf(&self, default_class: Option<ClassId>) -> usize {
        self.leaves.iter().position(|leaf| Some(leaf.id) == default_class).unwrap_or_default()
    }
}

impl NetworkPolicy {
    /// The word for a site or a plan in messages: a class tree has neither.
    pub(super) fn word(&self, of_subscribers: &'static str) -> &'static str {
        if self.class_tree.is_some() { "class" } else { of_subscribers }
    }

    /// The name of a direction in messages, with the space before it. A class tree has one direction, whose name is empty; `None` for the other one,
    /// which has the same values.
    pub(super) fn way_name(&self, way: &str) -> Option<&'static str> {
        match (way, &self.class_tree) {
            ("down", None) => Some(" down"),
            (_, None) => Some(" up"),
            ("down", Some(_)) => Some(""),
            (_, Some(_)) => None,
        }
    }
}

/// The notes on ceilings of a class tree that are above those of an inner class or of the link above.
pub(super) fn out_of_reach(policy: &NetworkPolicy, link: Option<Rate>) -> Vec<Diagnostic> {
    if policy.class_tree.is_none() {
        return Vec::new();
    }
    let sites = &policy.sites.sites;
    // The lowest ceiling above a class, and the name of its owner.
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
