//! The keys of a policy with a class tree: `parent` and `scheduler` of classes, and the keys that are not supported there.

use super::object::{Field, Object, Reader};
use super::{About, about, class, cross, link, network, queue, rules, sets, share};
use crate::class_id::ClassId;
use crate::diagnostic::{Diagnostic, Kind};
use crate::excerpt::excerpt;
use crate::network::names::Named;
use crate::network::{
    Burst, ClassTree, Classification, EachWay, Guarantees, MAX_SITE_DEPTH, MAX_SITES, NetworkLink, NetworkPolicy,
    NodeScheduler, Plan, Site, Sites, Subscriber, Subscribers, TreeInner, TreeLeaf, checks,
};
use crate::policy::{MAX_CLASS_NAME_BYTES, MAX_CLASSES};
use crate::source::{Origin, Source, Span, Where};
use jsonc_parser::ast::Value;
use sluice_abi as abi;
use std::collections::{HashMap, HashSet};

/// Keys of the policy that it has in common with others.
const COMMON: &[&str] = &[
    "$schema",
    "version",
    "name",
    "description",
    "scheduler",
    "rank",
    "link",
    "default_class",
    "address_sets",
    "port_sets",
    "classes",
    "rules",
];
/// Keys of both kinds of classes.
const CLASS_KEYS: &[&str] = &[
    "name",
    "parent",
    "priority",
    "weight",
    "quantum",
    "latency_budget",
    "rate",
    "ceil",
    "rate_limit_mbps",
    "burst",
    "burst_size_kb",
];
/// The keys that only inner classes have.
const INNER_KEYS: &[&str] = &["scheduler", "rank"];
/// Keys that only leaf classes have, beside those of queues.
const LEAF_KEYS: &[&str] = &["id", "limit"];

const CLASSES_HELP: &str = "list classes, as `[{ \"name\": \"office\", \"ceil\": \"50mbit\" }, { \"id\": 0, \"name\": \"calls\", \"parent\": \"office\" }]`";

/// Whether the classes of a policy form a tree: one of them has a `parent`.
pub(super) fn is_meant(object: &Object) -> bool {
    let Some(Value::Array(classes)) = object.get("classes").map(|field| field.value) else { return false };
    let has_parent = |class: &Value| match class {
        Value::Object(class) => class.properties.iter().any(|property| property.name.as_str() == "parent"),
        _ => false,
    };
    !network::has_subscribers(object) && classes.elements.iter().any(has_parent)
}

/// Reads a policy with a class tree.
pub(super) fn read(reader: &mut Reader, object: &Object, source: &Source) -> Option<NetworkPolicy> {
    refuse_others(reader, object);
    let About { name, description } = about(reader, object, source);
    let link = object.get("link").and_then(|field| link_of(reader, field)).unwrap_or_default();
    let scheduler = share::scheduler(reader, object);
    let classes = classes(reader, object);
    let before = reader.findings.len();
    let tree = Tree::of(reader, &classes, scheduler);
    let made = (reader.findings.len() == before).then(|| tree.parts(reader, &classes));
    let ids: Vec<(ClassId, String)> =
        classes.iter().filter_map(|class| Some((class.id?, class.name.clone()))).collect();
    let classification = classification(reader, object, source, &ids);
    let made = made?;
    let policy = NetworkPolicy {
        name,
        description,
        link,
        subscriber_side: Vec::new(),
        oversold: false,
        sites: Sites { sites: made.sites, source: Some(source.clone()) },
        plans: made.plans,
        classification,
        class_tree: Some(made.tree),
        subscribers: Subscribers { subscribers: made.subscribers, source: source.clone() },
        groups: Vec::new(),
        unlisted: Guarantees::default(),
        origin: Origin { source: Some(source.clone()), ..Origin::default() },
    };
    reader.findings.extend(checks::errors(&policy));
    Some(policy)
}

fn refuse_others(reader: &mut Reader, object: &Object) {
    // Keys of subscribers are reported by `network::is_meant`; "interfaces" is the key of the set that this policy is in.
    let is_told = |key: &str| network::is_of_subscribers(key) || key == "interfaces";
    for key in super::KEYS.iter().filter(|key| !COMMON.contains(key) && !is_told(key)) {
        let Some(field) = object.get(key) else { continue };
        let cure = match *key {
            "limits" => "remove it: give classes a \"ceil\"",
            _ => "remove it, or write the classes without \"parent\"",
        };
        let title = format!("\"{key}\" is not supported in a class tree");
        let finding = Diagnostic::error(Kind::Conflict, title).at(field.key_span.clone(), "for flat classes only");
        reader.report(finding.help(cure));
    }
}

fn link_of(reader: &mut Reader, field: &Field) -> Option<NetworkLink> {
    let own = link::read(reader, field)?;
    if own.ingress_rate.is_some() {
        let title = "\"ingress_rate\" is not supported in a class tree";
        let place = reader.spans.get(&format!("{}/ingress_rate", field.path)).cloned();
        let finding = Diagnostic::error(Kind::Conflict, title).at(place, "a class tree queues departures only");
        reader.report(finding.help("remove it, or write the classes without \"parent\""));
    }
    Some(NetworkLink {
        rate: EachWay::both(own.rate),
        framing: own.framing,
        burst: own.burst,
        split_gso: own.split_gso,
        queues: own.queues,
    })
}

fn classification(reader: &mut Reader, object: &Object, source: &Source, ids: &[(ClassId, String)]) -> Classification {
    let sets = sets::read(reader, object);
    let (written, rules) = rules(reader, object, source, &sets);
    let help = "the id of the class for packets that no rule matches";
    let field = object.get("default_class");
    let default_class = field.and_then(|field| reader.integer(field, 0..=MAX_CLASSES as i64 - 1, help)).map(ClassId);
    cross::check_rules(reader, (written, default_class), ids, &rules);
    // Priorities of classes below different parents say nothing about each other.
    let last = ids.iter().map(|(id, _)| *id).max();
    Classification {
        default_class: default_class.or(last),
        address_sets: sets.addresses,
        port_sets: sets.ports,
        rules: rules.into_iter().map(|(_, rule)| rule).collect(),
    }
}

/// A class as it is written.
struct Written<'t> {
    object: Object<'t>,
    span: Span,
    /// Its number. None: it is an inner class.
    id: Option<ClassId>,
    name: String,
    /// The name of its parent, and the place of that.
    parent: Option<(String, Span)>,
    /// Whether it is an inner class: others name it as their parent.
    is_parent: bool,
}

/// The classes with their names and numbers, each of which one class has.
fn classes<'t>(reader: &mut Reader, object: &Object<'t>) -> Vec<Written<'t>> {
    let Some(field) = object.get("classes") else { return Vec::new() };
    let elements = reader.list(field, CLASSES_HELP);
    let most = MAX_SITES + MAX_CLASSES;
    if let Some(first) = elements.get(most) {
        let title = format!("the policy has {} classes", elements.len());
        let finding = Diagnostic::error(Kind::TooMany, title).at(first.span(), "one too many");
        reader.report(finding.help(format!("{most} are the most, {MAX_CLASSES} of them leaf classes")));
    }
    let mut parents: HashSet<&str> = HashSet::new();
    for element in &elements {
        let Value::Object(class) = element.value else { continue };
        for property in class.properties.iter().filter(|property| property.name.as_str() == "parent") {
            if let Value::StringLit(text) = &property.value {
                parents.insert(&text.value);
            }
        }
    }
    let mut written: Vec<Written<'t>> = Vec::new();
    let mut names: HashMap<String, Span> = HashMap::new();
    let mut ids: HashMap<u8, Span> = HashMap::new();
    for element in elements.iter().take(most) {
        let Some(class) = class_of(reader, element, &parents) else { continue };
        let help = "give each its own: rules, counters and `parent` name it";
        if let Some(first) = names.insert(class.name.clone(), class.span.clone()) {
            let title = format!("two classes are named \"{}\"", excerpt(&class.name));
            let finding = Diagnostic::error(Kind::DuplicateName, title).at(class.span.clone(), "the second class");
            reader.report(finding.at(first, "the first class").help(help));
            continue;
        }
        if let Some((id, first)) = class.id.and_then(|id| Some((id, ids.insert(id.0, class.span.clone())?))) {
            let finding = Diagnostic::error(Kind::DuplicateId, format!("two classes have the id {id}"));
            let finding = finding.at(class.span.clone(), "the second class").at(first, "the first class");
            reader.report(finding.help(help));
            continue;
        }
        written.push(class);
    }
    written
}

/// A class with the keys that one of its kind has.
fn class_of<'t>(reader: &mut Reader, element: &Field<'t>, parents: &HashSet<&str>) -> Option<Written<'t>> {
    let object = reader.object(element.value, &element.path, "a class", class::KEYS)?;
    let name = object.get("name").and_then(|field| reader.name(field, MAX_CLASS_NAME_BYTES));
    let is_parent = name.as_deref().is_some_and(|name| parents.contains(name));
    let range = 0..=MAX_CLASSES as i64 - 1;
    let help = "classes are numbered 0 to 63, gaps are fine; an inner class has no number";
    let id = match is_parent {
        true => None,
        false => {
            let help = "number it from 0, for rules to name; or let classes name it as their \"parent\"";
            reader.required(&object, "id", help)
        }
    };
    let is_numbered = id.is_some();
    let id = id.and_then(|field| reader.integer(field, range, help)).map(ClassId);
    if is_numbered && id.is_none() {
        return None;
    }
    let parent = object.get("parent").and_then(|field| {
        let text = reader.string(field, "write the name of the class above in double quotes")?;
        Some((text.to_owned(), field.span()))
    });
    let name = name.or(id.map(|id| format!("class{id}")))?;
    for key in class::KEYS {
        let Some(field) = object.get(key) else { continue };
        let is_of_leaf = LEAF_KEYS.contains(key) || queue::KEYS.contains(key);
        let known = CLASS_KEYS.contains(key) || if is_parent { INNER_KEYS.contains(key) } else { is_of_leaf };
        if known {
            continue;
        }
        let (label, cure) = match (*key, is_parent) {
            ("id", true) => {
                ("an inner class queues no packets", "remove it: rules name leaf classes, which have ids".to_owned())
            }
            ("scheduler" | "rank", false) => (
                "no class names this one as its \"parent\"",
                "remove it, or let classes name this one as their \"parent\"".to_owned(),
            ),
            (_, true) if is_of_leaf => {
                ("an inner class queues no packets", format!("write \"{key}\" into the classes below it"))
            }
            _ => (
                "for flat classes only",
                format!("remove it: \"{key}\" is of a policy whose classes have no \"parent\""),
            ),
        };
        let title = match is_parent {
            true => format!("the inner class {} cannot have \"{key}\"", excerpt(&name)),
            false => format!("\"{key}\" of the class {} is not supported in a class tree", excerpt(&name)),
        };
        reader.report(Diagnostic::error(Kind::Conflict, title).at(field.key_span.clone(), label).help(cure));
    }
    Some(Written { span: element.span(), id, name, parent, is_parent, object })
}

/// The places of classes among each other, by their index in the list.
struct Tree {
    scheduler: NodeScheduler,
    /// The class above each, by its index.
    parents: Vec<Option<usize>>,
    /// The inner classes, each behind its parent.
    inner: Vec<usize>,
}

/// The parts of a policy with a class tree.
struct Parts {
    sites: Vec<Site>,
    plans: Vec<Plan>,
    subscribers: Vec<Subscriber>,
    tree: ClassTree,
}

impl Tree {
    /// Builds the tree; reports unknown parents, cycles and too many levels.
    fn of(reader: &mut Reader, classes: &[Written<'_>], scheduler: NodeScheduler) -> Tree {
        let by_name: HashMap<&str, usize> =
            classes.iter().enumerate().map(|(index, class)| (class.name.as_str(), index)).collect();
        let parents: Vec<Option<usize>> = classes
            .iter()
            .map(|class| {
                let (text, place) = class.parent.as_ref()?;
                Named { what: "class", text, place: place.clone() }.find(&by_name, &mut reader.findings)
            })
            .collect();
        let mut in_cycles: HashSet<usize> = HashSet::new();
        let mut depths = vec![0; classes.len()];
        for index in 0..classes.len() {
            let above = std::iter::successors(parents[index], |&at| parents[at]);
            let above: Vec<usize> = above.take(classes.len() + 1).collect();
            depths[index] = above.len();
            if above.len() > classes.len() {
                Tree::report_cycle(reader, classes, &parents, index, &mut in_cycles);
            } else if above.len() > MAX_SITE_DEPTH {
                let title =
                    format!("the class {} has {} inner classes above it", excerpt(&classes[index].name), above.len());
                let finding = Diagnostic::error(Kind::TooMany, title).at(classes[index].span.clone(), "too deep");
                reader.report(finding.help(format!("{MAX_SITE_DEPTH} levels above a class are the most")));
            }
        }
        let mut inner: Vec<usize> = (0..classes.len()).filter(|&index| classes[index].is_parent).collect();
        inner.sort_by_key(|&index| depths[index]);
        Tree { scheduler, parents, inner }
    }

    /// Reports the cycle that the parents of a class lead into, once.
    fn report_cycle(
        reader: &mut Reader,
        classes: &[Written<'_>],
        parents: &[Option<usize>],
        from: usize,
        told: &mut HashSet<usize>,
    ) {
        // After as many steps as there are classes, one stands in the cycle.
        let step = |at: usize| parents[at].unwrap_or(at);
        let inside = (0..classes.len()).fold(from, |at, _| step(at));
        if !told.insert(inside) {
            return;
        }
        let mut round = vec![inside];
        let mut at = step(inside);
        while at != inside {
            told.insert(at);
            round.push(at);
            at = step(at);
        }
        round.push(inside);
        let names: Vec<String> = round.iter().take(8).map(|&at| excerpt(&classes[at].name).into_owned()).collect();
        let title = format!("\"parent\" forms a cycle: {}", names.join(" below "));
        let place = classes[inside].parent.as_ref().map(|(_, place)| place.clone());
        let finding = Diagnostic::error(Kind::Conflict, title).at(place, "closes the cycle");
        reader.report(finding.help("let one of them have no \"parent\": it is then right below the link"));
    }

    fn parts(&self, reader: &mut Reader, classes: &[Written<'_>]) -> Parts {
        let place_of: HashMap<usize, usize> =
            self.inner.iter().enumerate().map(|(place, index)| (*index, place)).collect();
        let above = |index: usize| self.parents[index].and_then(|parent| place_of.get(&parent).copied());
        let mut tree = ClassTree { scheduler: self.scheduler, ..ClassTree::default() };
        let (mut sites, mut plans, mut subscribers) = (Vec::new(), Vec::new(), Vec::new());
        for &index in &self.inner {
            let class = &classes[index];
            let parent = above(index);
            let orders = parent.map_or(tree.scheduler, |parent: usize| tree.inner[parent].scheduler);
            let (rate, ceil) = limits(reader, &class.object);
            // Below a PIFO, an inner class is a mistake of its own.
            let orders = if orders.rank().is_some() { NodeScheduler::default() } else { orders };
            let share = share_of(reader, class, orders);
            sites.push(Site {
                name: class.name.clone(),
                parent,
                rate,
                ceil,
                weight: share.weight,
                span: Where(class.span.clone()),
            });
            tree.inner.push(TreeInner {
                priority: share.priority,
                order: share.order,
                scheduler: share::scheduler(reader, &class.object),
                burst: class::burst(reader, &class.object),
            });
        }
        for (index, class) in classes.iter().enumerate().filter(|(_, class)| !class.is_parent) {
            let Some(id) = class.id else { continue };
            let parent = above(index);
            let orders = parent.map_or(tree.scheduler, |parent| tree.inner[parent].scheduler);
            let mut plan = Plan::new(&class.name, Where(class.span.clone()));
            (plan.rate, plan.ceil) = limits(reader, &class.object);
            plan.burst = EachWay::both(class::burst(reader, &class.object).map(Burst::Bytes));
            let share = share_of(reader, class, orders);
            plan.weight = share.weight;
            plan.limit = class.object.get("limit").and_then(|field| class::limit(reader, field));
            (plan.queue, plan.codel) = queue::read(reader, &class.object, queue::Default::Fifo);
            subscribers.push(Subscriber {
                id: class.name.clone(),
                name: class.name.clone(),
                parent,
                plan: Some(plans.len()),
                rate: EachWay::default(),
                ceil: EachWay::default(),
                addresses: Vec::new(),
                span: Where(class.span.clone()),
            });
            plans.push(plan);
            tree.leaves.push(TreeLeaf { id, priority: share.priority, order: share.order });
        }
        self.check_pifos(reader, classes, &tree, &sites);
        Parts { sites, plans, subscribers, tree }
    }

    /// Reports inner classes below a PIFO.
    fn check_pifos(&self, reader: &mut Reader, classes: &[Written<'_>], tree: &ClassTree, sites: &[Site]) {
        for (site, &index) in sites.iter().zip(&self.inner) {
            let above = site.parent.map_or(tree.scheduler, |parent| tree.inner[parent].scheduler);
            if above.rank().is_none() {
                continue;
            }
            let word = match site.parent {
                Some(parent) => format!("the class {}", excerpt(&sites[parent].name)),
                None => "the policy".to_owned(),
            };
            let title = format!("the inner class {} is below a PIFO, which ranks packets", excerpt(&site.name));
            let finding =
                Diagnostic::error(Kind::Scheduler, title).at(classes[index].span.clone(), "queues no packets");
            let help = format!("give {word} another \"scheduler\", or let only leaf classes be right below it");
            reader.report(finding.help(help));
        }
    }
}

/// The guarantee and the ceiling of a class.
fn limits(
    reader: &mut Reader,
    object: &Object,
) -> (EachWay<Option<crate::rate::Rate>>, EachWay<Option<crate::rate::Rate>>) {
    let rate = object.get("rate").and_then(|field| reader.rate(field));
    (EachWay::both(rate), EachWay::both(class::ceil(reader, object)))
}

/// The share of a class below a parent with this scheduler.
fn share_of(reader: &mut Reader, class: &Written<'_>, scheduler: NodeScheduler) -> share::Share {
    let place = share::Place {
        scheduler,
        most_priority: abi::SL_TREE_PRIORITIES - 1,
        class: &format!("the class {}", excerpt(&class.name)),
        parent: "its parent, or the policy,",
        above: "the class above or the policy",
    };
    share::read(reader, &class.object, &place)
}
