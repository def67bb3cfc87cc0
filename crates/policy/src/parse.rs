//! Policy text to a typed [`Policy`], or every error in it at once.

mod arrivals;
mod ceiling;
mod class;
mod class_tree;
mod cross;
mod discipline;
mod each_host;
mod forward;
mod interfaces;
mod link;
mod network;
mod node;
mod object;
mod peak;
mod plan;
pub(crate) mod pointer;
mod queue;
mod rule;
mod set_names;
mod sets;
mod share;
pub(crate) mod syntax;
mod terms;
mod tokens;

use crate::class_id::ClassId;
use crate::diagnostic::{Diagnostic, Diagnostics, Kind};
use crate::forward::{DEFAULT_CONNECTIONS, LEAST_CONNECTIONS, MAX_CONNECTIONS};
use crate::network::{Tables, no_tables};
use crate::policy::*;
use crate::rank::Rank;
use crate::resolved::Context;
use crate::scheduler::Scheduler;
use crate::set::PolicyFile;
use crate::source::{Origin, Source};
use crate::sums;
use object::{Field, Object, Reader};
use set_names::Sets;
use std::collections::HashSet;

/// Every key of a policy; the first few are valid only in the file's own object, not in one of `interfaces`.
const KEYS: &[&str] = &[
    "$schema",
    "version",
    "interfaces",
    "subscribers",
    "each_host",
    "sites",
    "plans",
    "subscriber_side",
    "oversold",
    "name",
    "description",
    "scheduler",
    "rank",
    "mode",
    "class_from",
    "link",
    "arrivals_of",
    "limits",
    "default_class",
    "flow_table",
    "connection_table",
    "malformed",
    "address_sets",
    "port_sets",
    "classes",
    "rules",
    "forwards",
];
const KEYS_OF_FILE: usize = 9;

/// Every key of every object of the format, by the object it belongs to: for tests of the schema and for completion.
pub const ALL_KEYS: &[(&str, &[&str])] = &[
    ("policy", KEYS),
    ("interface", interfaces::KEYS),
    ("link", link::KEYS),
    ("class", class::KEYS),
    ("rule", rule::KEYS),
    ("forward", forward::KEYS),
    ("target", forward::TARGET_KEYS),
    ("limits", ceiling::LIMITS_KEYS),
    ("shared_ceil", ceiling::SHARED_KEYS),
    ("site", network::SITE_KEYS),
    ("plan", plan::KEYS),
    ("plan_class", plan::CLASS_KEYS),
    ("subscriber", network::SUBSCRIBER_KEYS),
    ("host_group", each_host::KEYS),
    ("each_way", node::WAYS),
];

/// A class or rule with its index in the file's list, which differs from that in the policy if others are broken.
type Placed<T> = (usize, T);

/// Reads a policy for one interface. The file is checked as far as possible by itself; [`crate::resolve`] checks the rest.
pub fn parse(source: &Source) -> Result<Policy, Diagnostics> {
    parse_file(source)?.one()
}

/// Reads a policy file with one policy or a set.
pub fn parse_file(source: &Source) -> Result<PolicyFile, Diagnostics> {
    read_file(source, None, &no_tables)
}

/// Reads a policy file for a link and an engine: if it has errors, those that only [`crate::resolve`] would find, since
/// they depend on these, are among them.
pub fn parse_file_for(source: &Source, context: &Context) -> Result<PolicyFile, Diagnostics> {
    read_file(source, Some(*context), &no_tables)
}

/// Reads a policy file as [`parse_file_for`] does, if there is a context, and the tables that it names by a reader of them.
pub fn parse_file_with(
    source: &Source,
    context: Option<&Context>,
    tables: Tables<'_>,
) -> Result<PolicyFile, Diagnostics> {
    read_file(source, context.copied(), tables)
}

fn read_file(source: &Source, context: Option<Context>, tables: Tables<'_>) -> Result<PolicyFile, Diagnostics> {
    let (tree, syntax_errors) = syntax::tree(source.text());
    let mut reader = Reader { context, ..Reader::default() };
    let file = tree.as_ref().and_then(|tree| {
        let object = reader.object(tree, "", "the policy", KEYS)?;
        if network::is_meant(&mut reader, &object) {
            let network = network::read(&mut reader, &object, source, tables)?;
            return Some(PolicyFile::One(Box::new(network.into())));
        }
        match object.get("interfaces") {
            Some(field) => interfaces::read(&mut reader, &object, field, source).map(PolicyFile::Set),
            None => interface_policy(&mut reader, &object, source).map(|policy| PolicyFile::One(Box::new(policy))),
        }
    });
    // Findings at the place of a syntax error are dropped.
    let broken: HashSet<Option<usize>> = syntax_errors.iter().map(Diagnostic::start).collect();
    reader.findings.retain(|finding| !broken.contains(&finding.start()));
    reader.findings.extend(syntax_errors);
    match file {
        Some(mut file) if reader.findings.is_empty() => {
            let origin = Origin { source: Some(source.clone()), spans: reader.spans.into() };
            match &mut file {
                PolicyFile::One(policy) => policy.set_origin(origin),
                PolicyFile::Set(_) => {}
            }
            Ok(file)
        }
        _ => Err(Diagnostics::new(Some(source.clone()), reader.findings)),
    }
}

/// Reads the policy of an interface, with flat classes or a class tree.
fn interface_policy(reader: &mut Reader, object: &Object, source: &Source) -> Option<Policy> {
    if class_tree::is_meant(object) {
        return class_tree::read(reader, object, source).map(Policy::from);
    }
    policy(reader, object, source)
}

fn policy(reader: &mut Reader, object: &Object, source: &Source) -> Option<Policy> {
    let About { name, description } = about(reader, object, source);
    let discipline = discipline::read(reader, object);
    let mode = mode(reader, object);
    let link = object.get("link").and_then(|field| link::read(reader, field));
    let limits = object.get("limits").and_then(|field| ceiling::limits(reader, field));
    let arrivals_of = arrivals::read(reader, object, mode);
    let default_help = "the id of the class for packets that no rule matches";
    let default_class =
        object.get("default_class").and_then(|field| reader.integer(field, 0..=MAX_CLASSES as i64 - 1, default_help));
    let flows_help = "entries of the flow table, 0 turns it off";
    let flows = object.get("flow_table").and_then(|field| reader.integer(field, 0..=i64::from(MAX_FLOWS), flows_help));
    let connections_help = "connections of forwards that are remembered, 1024 to 1048576";
    let connections = object
        .get("connection_table")
        .and_then(|field| reader.integer(field, LEAST_CONNECTIONS.into()..=MAX_CONNECTIONS.into(), connections_help));
    let malformed = object.get("malformed").and_then(|field| reader.choice(field, Malformed::NAMES));

    let (class_count, classes) = classes(reader, object, discipline);
    let sets = sets::read(reader, object);
    let (rule_count, rules) = rules(reader, object, source, &sets);
    let forwards = forward::read_all(reader, object, source);

    let counts = cross::Counts { classes: class_count, rules: rule_count };
    let valid = cross::Valid { classes: &classes, rules: &rules, forwards: &forwards };
    cross::check(reader, object, counts, mode, default_class.map(ClassId), valid);
    ceiling::check(reader, object, flows, &classes);
    if !reader.findings.is_empty() {
        let placed: Vec<sums::Placed<'_>> = classes.iter().map(|(place, class)| (*place, class)).collect();
        reader.check_sums(&placed, link.as_ref().and_then(|link| link.rate));
    }
    let (scheduler, rank) = discipline?;
    Some(Policy {
        version: FORMAT_VERSION,
        name,
        description,
        scheduler,
        rank,
        mode: mode?,
        link: link.unwrap_or_default(),
        arrivals_of,
        limits: limits.unwrap_or_default(),
        default_class: default_class.map(ClassId),
        flows: flows.unwrap_or(DEFAULT_FLOWS),
        connections: connections.unwrap_or(DEFAULT_CONNECTIONS),
        malformed: malformed.unwrap_or_default(),
        address_sets: sets.addresses,
        port_sets: sets.ports,
        classes: classes.into_iter().map(|(_, class)| class).collect(),
        rules: rules.into_iter().map(|(_, rule)| rule).collect(),
        forwards: forwards.into_iter().map(|(_, forward)| forward).collect(),
        network: None,
        origin: Origin::default(),
    })
}

/// The name and the description of a policy.
struct About {
    name: String,
    description: Option<String>,
}

fn about(reader: &mut Reader, object: &Object, source: &Source) -> About {
    if let Some(field) = object.get("$schema") {
        reader.string(field, "write the address of the schema in double quotes");
    }
    if let Some(field) = object.get("version") {
        version(reader, field);
    }
    let name = object.get("name").and_then(|field| reader.name(field, MAX_NAME_BYTES));
    let description = object.get("description").and_then(|field| reader.string(field, "write a text in double quotes"));
    About { name: name.unwrap_or_else(|| default_name(source)), description: description.map(String::from) }
}

/// The number of classes in the file, and those that are valid. Classes beyond the most are counted, not read.
fn classes(reader: &mut Reader, object: &Object, discipline: Option<(Scheduler, Rank)>) -> (usize, Vec<Placed<Class>>) {
    let fields = reader
        .required(object, "classes", "add a list of classes, as `\"classes\": [{ \"id\": 0, \"priority\": 0 }]`")
        .map(|field| reader.list(field, "write a list of classes, `[ { ... }, ... ]`"))
        .unwrap_or_default();
    let mut classes = Vec::new();
    for (i, field) in fields.iter().take(MAX_CLASSES).enumerate() {
        classes.extend(class::read(reader, field, discipline).map(|class| (i, class)));
    }
    (fields.len(), classes)
}

/// The number of rules in the file, and those that are valid. Rules beyond the most are counted, not read.
fn rules(reader: &mut Reader, object: &Object, source: &Source, sets: &Sets) -> (usize, Vec<Placed<Rule>>) {
    let fields = object.get("rules").map(|field| reader.list(field, "write a list of rules, `[ { ... }, ... ]`"));
    let fields = fields.unwrap_or_default();
    let mut rules = Vec::new();
    for (i, field) in fields.iter().take(MAX_RULES).enumerate() {
        rules.extend(rule::read(reader, field, source, sets).map(|rule| (i, rule)));
    }
    (fields.len(), rules)
}

/// The file's name without `.json`, cut to the longest name of a policy.
fn default_name(source: &Source) -> String {
    let mut name: String = source.stem().chars().filter(|c| !c.is_control()).collect();
    while name.len() > MAX_NAME_BYTES {
        name.pop();
    }
    if name.is_empty() { "unnamed".into() } else { name }
}

fn version(reader: &mut Reader, field: &Field) {
    let Some(version) = reader.integer::<i64>(field, i64::MIN..=i64::MAX, "write 1, the version of this format") else {
        return;
    };
    if version != i64::from(FORMAT_VERSION) {
        let finding = Diagnostic::error(Kind::Version, format!("the format's version {version} is not known"))
            .at(field.span(), format!("this program reads version {FORMAT_VERSION}"))
            .help("write 1, or use the version of Sluice that the file was written for");
        reader.report(finding);
    }
}

fn mode(reader: &mut Reader, object: &Object) -> Option<Mode> {
    #[derive(Clone, Copy)]
    enum ModeName {
        Full,
        ClassifyOnly,
        ScheduleOnly,
    }
    let words = [
        ("full", ModeName::Full),
        ("classify_only", ModeName::ClassifyOnly),
        ("schedule_only", ModeName::ScheduleOnly),
    ];
    let word = match object.get("mode") {
        Some(field) => reader.choice(field, &words)?,
        None => ModeName::Full,
    };
    let from = object.get("class_from");
    let by = from.map(|field| reader.choice(field, ClassFrom::NAMES));
    match (word, by) {
        (ModeName::ScheduleOnly, Some(by)) => by.map(|by| Mode::ScheduleOnly { by }),
        (ModeName::ScheduleOnly, None) => {
            let finding = Diagnostic::error(Kind::MissingKey, "mode schedule_only needs \"class_from\"")
                .at(object.get("mode").map(|field| field.span()), "says that the packet names its class")
                .help("add `\"class_from\": \"dscp\"` or `\"class_from\": \"mark\"`");
            reader.report(finding);
            None
        }
        (word, by) => {
            if let (Some(field), Some(_)) = (from, by) {
                let finding = Diagnostic::error(Kind::Mode, "\"class_from\" is for mode schedule_only")
                    .at(field.key_span.clone(), "not consulted: rules choose the class")
                    .help("remove it, or write `\"mode\": \"schedule_only\"`");
                reader.report(finding);
            }
            Some(if matches!(word, ModeName::ClassifyOnly) { Mode::ClassifyOnly } else { Mode::Full })
        }
    }
}
