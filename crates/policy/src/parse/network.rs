//! The keys of a policy with subscribers: `subscribers`, `each_host`, `sites`, `plans`, `subscriber_side` and `oversold`.

use super::node::{Known, addresses, rates};
use super::object::{Field, Object, Reader};
use super::rule::check_interface;
use super::{About, about, cross, each_host, link, plan, rules, sets, share};
use crate::class_id::ClassId;
use crate::diagnostic::{Diagnostic, Kind};
use crate::excerpt::excerpt;
use crate::network::{
    self, Classification, MAX_PLAN_CLASSES, MAX_SITE_DEPTH, MAX_SITES, MAX_SUBSCRIBERS, NetworkLink, NetworkPolicy,
    Plan, Site, Sites, Subscriber, Subscribers, Tables, checks, names, subscriber_table,
};
use crate::policy::MAX_INTERFACES;
use crate::source::{Origin, Source, Span, Where};
use jsonc_parser::ast::Value;
use std::collections::HashMap;

/// Every key of a site.
pub(super) const SITE_KEYS: &[&str] = &["rate", "ceil", "weight", "sites"];
/// Every key of a subscriber.
pub(super) const SUBSCRIBER_KEYS: &[&str] = &["name", "id", "addresses", "plan", "site", "rate", "ceil"];

/// Keys that only a policy with subscribers has, beside those that make it one.
const OWN: &[&str] = &["sites", "plans", "subscriber_side", "oversold"];
/// Keys either of which makes a policy one with subscribers.
const MAKING: &[&str] = &["subscribers", "each_host"];
/// Keys that choose the class inside a subscriber, where plans have classes.
const CHOOSING: &[&str] = &["rules", "default_class", "address_sets", "port_sets"];
/// Keys that it has in common with others.
const COMMON: &[&str] = &["$schema", "version", "name", "description", "link"];

const SUBSCRIBERS_HELP: &str = "write the name of a table beside the policy, as \"customers.csv\", or a list, `[ { \"name\": \"a\", \"addresses\": [\"192.0.2.1\"], \"plan\": \"home\" } ]`";
const SITES_HELP: &str = "write sites by name, as `{ \"north\": { \"ceil\": \"1gbit\", \"sites\": {} } }`, or the name of LibreQoS's file beside the policy, as \"network.json\"";
const SIDE_HELP: &str =
    "write the interfaces towards the subscribers, as `\"subscriber_side\": [\"eth1\"]`; all others face the internet";

/// Whether a key is one that only a policy with subscribers has.
pub(super) fn is_of_subscribers(key: &str) -> bool {
    OWN.contains(&key)
}

/// Whether a policy has subscribers.
pub(super) fn has_subscribers(object: &Object) -> bool {
    MAKING.iter().any(|key| object.get(key).is_some())
}

/// Whether a policy is one with subscribers. Keys that are only for one and stand without them are reported.
pub(super) fn is_meant(reader: &mut Reader, object: &Object) -> bool {
    if has_subscribers(object) {
        return true;
    }
    for field in OWN.iter().filter_map(|key| object.get(key)) {
        let title = format!("\"{}\" without \"subscribers\" or \"each_host\"", field.key);
        let finding = Diagnostic::error(Kind::MissingKey, title).at(field.key_span.clone(), "there are none");
        reader.report(finding.help(SUBSCRIBERS_HELP));
    }
    false
}

/// Reads a policy with subscribers.
pub(super) fn read(reader: &mut Reader, object: &Object, source: &Source, tables: Tables<'_>) -> Option<NetworkPolicy> {
    let making = MAKING.iter().find_map(|key| object.get(key))?;
    refuse_others(reader, object, making);
    let About { name, description } = about(reader, object, source);
    let link = object.get("link").and_then(|field| link_of(reader, field)).unwrap_or_default();
    let subscriber_side = subscriber_side(reader, object);
    let oversold = object.get("oversold").and_then(|field| reader.boolean(field)).unwrap_or_default();
    let sites = match object.get("sites") {
        Some(field) => sites(reader, field, source, tables),
        None => Some(Sites::default()),
    };
    let plans = match object.get("plans") {
        Some(field) => plan::read_all(reader, field),
        None => Some(Vec::new()),
    };
    let classification = classification(reader, object, source, plans.as_deref());
    let none = Subscribers { subscribers: Vec::new(), source: source.clone() };
    let listed = match object.get("subscribers") {
        Some(field) => subscribers(reader, field, source, tables, sites.as_ref(), plans.as_deref()),
        None => Some((none.clone(), false)),
    };
    let groups = object.get("each_host").map_or(Vec::new(), |field| {
        let known = Known::of(sites.as_ref(), plans.as_deref());
        each_host::read(reader, field, &known)
    });
    let complete = sites.is_some() && plans.is_some() && listed.is_some();
    let (subscribers, libreqos) = listed.unwrap_or((none, false));
    // The parts that could be read are checked: all errors are told at once.
    let policy = NetworkPolicy {
        name,
        description,
        link,
        subscriber_side,
        oversold: oversold || libreqos,
        sites: sites.unwrap_or_default(),
        plans: plans.unwrap_or_default(),
        classification,
        class_tree: None,
        subscribers,
        groups,
        unlisted: network::Guarantees::default(),
        origin: Origin { source: Some(source.clone()), ..Origin::default() },
    };
    reader.findings.extend(checks::errors(&policy));
    complete.then_some(policy)
}

/// The subscribers of a list or of a table, and whether it is one of LibreQoS.
fn subscribers(
    reader: &mut Reader,
    field: &Field,
    source: &Source,
    tables: Tables<'_>,
    sites: Option<&Sites>,
    plans: Option<&[Plan]>,
) -> Option<(Subscribers, bool)> {
    match field.value {
        Value::StringLit(_) => {
            table(reader, field, tables).map(|table| subscriber_table::read(&table, sites, plans, &mut reader.findings))
        }
        Value::Array(_) => Some((listed(reader, field, source, sites, plans), false)),
        _ => {
            reader.wrong_type(field, "a list or the name of a table", SUBSCRIBERS_HELP);
            None
        }
    }
}

/// The rules that choose the class of a packet inside its subscriber. Reported if no plan has classes, or none has the one that is named.
fn classification(reader: &mut Reader, object: &Object, source: &Source, plans: Option<&[Plan]>) -> Classification {
    let sets = sets::read(reader, object);
    let (written, rules) = rules(reader, object, source, &sets);
    let help = "the id of the class for packets that no rule matches";
    let field = object.get("default_class");
    let default_class =
        field.and_then(|field| reader.integer(field, 0..=MAX_PLAN_CLASSES as i64 - 1, help)).map(ClassId);
    let classes = plans.map(network::classes_of);
    match &classes {
        Some(classes) if classes.is_empty() => {
            for field in CHOOSING.iter().filter_map(|key| object.get(key)) {
                let title = format!("\"{}\" in a policy with subscribers whose plans have no classes", field.key);
                let finding = Diagnostic::error(Kind::Conflict, title).at(field.key_span.clone(), "chooses nothing");
                reader.report(finding.help("give a plan \"classes\", or remove it"));
            }
        }
        Some(classes) => cross::check_rules(reader, (written, default_class), classes, &rules),
        None => {}
    }
    Classification {
        default_class,
        address_sets: sets.addresses,
        port_sets: sets.ports,
        rules: rules.into_iter().map(|(_, rule)| rule).collect(),
    }
}

/// Reports the keys that a policy with subscribers cannot have. `making`: the key that makes it one.
fn refuse_others(reader: &mut Reader, object: &Object, making: &Field) {
    for key in super::KEYS {
        let Some(field) = object.get(key) else { continue };
        if [MAKING, OWN, COMMON, CHOOSING].iter().any(|keys| keys.contains(key)) {
            continue;
        }
        let cure = match *key {
            "classes" => "write it into a plan: the classes of a subscriber are those of its plan",
            "scheduler" => "write it into a plan with \"classes\", or remove it",
            "interfaces" => "remove it: one policy is for all interfaces, and \"subscriber_side\" tells them apart",
            "limits" => "remove it: ceilings are those of \"link\", of sites and of plans",
            _ => "remove it, or the subscribers",
        };
        let finding = Diagnostic::error(Kind::Conflict, format!("\"{key}\" in a policy with subscribers"))
            .at(field.key_span.clone(), "for a policy with classes")
            .at(making.key_span.clone(), "makes this a policy with subscribers");
        reader.report(finding.help(cure));
    }
}

fn link_of(reader: &mut Reader, field: &Field) -> Option<NetworkLink> {
    let object = reader.object(field.value, &field.path, "the link", link::KEYS)?;
    if let Some(field) = object.get("ingress_rate") {
        let finding = Diagnostic::error(Kind::Conflict, "\"ingress_rate\" in a policy with subscribers");
        let finding = finding.at(field.key_span.clone(), "each direction is shaped where it departs");
        reader.report(finding.help("write `\"rate\": { \"down\": \"1gbit\", \"up\": \"200mbit\" }`"));
    }
    let rest = link::rest(reader, &object);
    Some(NetworkLink {
        rate: rates(reader, &object, "rate"),
        framing: rest.framing,
        burst: rest.burst,
        split_gso: rest.split_gso,
        queues: link::queues(reader, &object),
    })
}

fn subscriber_side(reader: &mut Reader, object: &Object) -> Vec<String> {
    let Some(field) = reader.required(object, "subscriber_side", SIDE_HELP) else { return Vec::new() };
    let fields = reader.list(field, SIDE_HELP);
    if fields.is_empty() && matches!(field.value, Value::Array(_)) {
        let finding = Diagnostic::error(Kind::Empty, "\"subscriber_side\" names no interface");
        reader.report(finding.at(field.span(), "an empty list").help(SIDE_HELP));
    }
    if let Some(first) = fields.get(MAX_INTERFACES) {
        let title = format!("\"subscriber_side\" has {} interfaces", fields.len());
        let finding = Diagnostic::error(Kind::TooMany, title).at(first.span(), "one too many");
        reader.report(finding.help(format!("{MAX_INTERFACES} are the most")));
    }
    let mut names: Vec<(String, Span)> = Vec::new();
    for field in fields.iter().take(MAX_INTERFACES) {
        let Some(name) = reader.string(field, SIDE_HELP) else { continue };
        if !check_interface(reader, "subscriber_side", name, field.span()) {
            continue;
        }
        if let Some((_, first)) = names.iter().find(|(known, _)| known == name) {
            let title = format!("\"subscriber_side\" has {} twice", excerpt(name));
            let finding = Diagnostic::error(Kind::DuplicateName, title).at(field.span(), "the second time");
            reader.report(finding.at(first.clone(), "the first time").help("remove one of them"));
            continue;
        }
        names.push((name.to_owned(), field.span()));
    }
    names.into_iter().map(|(name, _)| name).collect()
}

/// The text of a table that a key names.
fn table(reader: &mut Reader, field: &Field, tables: Tables<'_>) -> Option<Source> {
    let path = reader.string(field, "write the name of a file beside the policy")?;
    let read = if path.is_empty() || path.contains(char::is_control) {
        Err(network::Unreadable {
            cause: format!("\"{}\" is no name of a file", excerpt(path)),
            cure: "write the name of a file beside the policy".to_owned(),
        })
    } else {
        tables(path)
    };
    let report = |error: network::Unreadable| {
        let title = format!("\"{}\" cannot be read: {}", field.key, error.cause);
        reader.report(Diagnostic::error(Kind::Table, title).at(field.span(), "named here").help(error.cure));
    };
    read.map_err(report).ok()
}

/// The sites; `None` if they are not known as a whole.
fn sites(reader: &mut Reader, field: &Field, source: &Source, tables: Tables<'_>) -> Option<Sites> {
    match field.value {
        Value::StringLit(_) => {
            let table = table(reader, field, tables)?;
            network::sites(&table, &mut reader.findings)
        }
        Value::Object(_) => {
            let before = reader.findings.len();
            let mut tree = Tree::default();
            tree.level(reader, field, None, 1);
            (reader.findings.len() == before).then(|| Sites { sites: tree.sites, source: Some(source.clone()) })
        }
        _ => {
            reader.wrong_type(field, "an object or the name of a file", SITES_HELP);
            None
        }
    }
}

/// Sites of the policy itself.
#[derive(Default)]
struct Tree {
    sites: Vec<Site>,
    /// The place of each name.
    known: HashMap<String, Span>,
    too_many: bool,
}

impl Tree {
    /// Adds the sites of an object, `depth` levels below the link.
    fn level(&mut self, reader: &mut Reader, field: &Field, parent: Option<usize>, depth: usize) {
        for entry in reader.entries(field, SITES_HELP) {
            let place = entry.key_span.clone();
            if depth > MAX_SITE_DEPTH {
                let title = format!("the site \"{}\" has {} sites above it", excerpt(entry.key), depth - 1);
                let finding = Diagnostic::error(Kind::TooMany, title).at(place, "too deep");
                reader.report(finding.help(format!("{MAX_SITE_DEPTH} levels of sites are the most")));
                continue;
            }
            if self.sites.len() == MAX_SITES {
                if !self.too_many {
                    let finding = Diagnostic::error(Kind::TooMany, format!("there are more than {MAX_SITES} sites"));
                    reader.report(finding.at(place, "one too many").help("leave some out"));
                }
                self.too_many = true;
                return;
            }
            if !self.can_be_named(reader, entry.key, &place) {
                continue;
            }
            let Some(object) = reader.object(entry.value, &entry.path, "a site", SITE_KEYS) else { continue };
            let (rate, ceil) = (rates(reader, &object, "rate"), rates(reader, &object, "ceil"));
            let weight = share::weight(reader, &object);
            let index = self.sites.len();
            self.known.insert(entry.key.to_owned(), place.clone());
            self.sites.push(Site { name: entry.key.to_owned(), parent, rate, ceil, weight, span: Where(place) });
            if let Some(below) = object.get("sites") {
                self.level(reader, below, Some(index), depth + 1);
            }
        }
    }

    fn can_be_named(&mut self, reader: &mut Reader, name: &str, place: &Span) -> bool {
        if !names::can_be_name(name) {
            reader.report(names::no_name("site", name, place.clone()));
            return false;
        }
        if let Some(first) = self.known.get(name) {
            let finding = Diagnostic::error(Kind::DuplicateName, format!("two sites are called \"{}\"", excerpt(name)))
                .at(place.clone(), "the second one")
                .at(first.clone(), "the first one");
            reader.report(finding.help("subscribers name their site: give each a name of its own"));
            return false;
        }
        true
    }
}

/// The subscribers of a list in the policy itself. Each has its place.
fn listed(
    reader: &mut Reader,
    field: &Field,
    source: &Source,
    sites: Option<&Sites>,
    plans: Option<&[Plan]>,
) -> Subscribers {
    let known = Known::of(sites, plans);
    let mut subscribers = Vec::new();
    reader.without_places(|reader| {
        for (i, element) in reader.list(field, SUBSCRIBERS_HELP).into_iter().enumerate() {
            if i == MAX_SUBSCRIBERS {
                reader.report(checks::too_many(element.span()));
                break;
            }
            subscribers.extend(subscriber(reader, &element, &known));
        }
    });
    Subscribers { subscribers, source: source.clone() }
}

fn subscriber(reader: &mut Reader, element: &Field, known: &Known) -> Option<Subscriber> {
    let object = reader.object(element.value, &element.path, "a subscriber", SUBSCRIBER_KEYS)?;
    let field = reader.required(&object, "name", "name it: commands and messages call it so");
    let name = field.and_then(|field| name(reader, field));
    let id = match object.get("id") {
        Some(field) => self::name(reader, field),
        None => name.clone(),
    };
    let addresses = reader
        .required(&object, "addresses", "list its addresses, as `\"addresses\": [\"192.0.2.1\", \"2001:db8::/56\"]`")
        .map_or_else(Vec::new, |field| addresses(reader, field));
    let (plan, parent) = (known.plan(reader, &object), known.site(reader, &object));
    let (rate, ceil) = (rates(reader, &object, "rate"), rates(reader, &object, "ceil"));
    Some(Subscriber { id: id?, name: name?, parent, plan, rate, ceil, addresses, span: Where(element.span()) })
}

fn name(reader: &mut Reader, field: &Field) -> Option<String> {
    let text = reader.string(field, "write a name in double quotes")?;
    if names::can_be_name(text) {
        return Some(text.to_owned());
    }
    reader.report(names::no_name("subscriber", text, field.span()));
    None
}
