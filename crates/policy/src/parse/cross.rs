//! Checks across the parts of a policy: unique ids, names and priorities, existing classes, keys that fit the mode, counts
//! within their limits.

use super::Placed;
use super::object::{Object, Reader};
use crate::class_id::ClassId;
use crate::diagnostic::{Diagnostic, Kind};
use crate::dscp;
use crate::forward::Forward;
use crate::policy::{Class, ClassFrom, MAX_CLASSES, MAX_RULES, Mode, Rule};
use crate::source::Span;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

/// The numbers of classes and rules in the file, readable or not.
pub(super) struct Counts {
    pub classes: usize,
    pub rules: usize,
}

/// The parts of the file that are valid.
#[derive(Clone, Copy)]
pub(super) struct Valid<'a> {
    pub classes: &'a [Placed<Class>],
    pub rules: &'a [Placed<Rule>],
    pub forwards: &'a [Placed<Forward>],
}

pub(super) fn check(
    reader: &mut Reader,
    object: &Object,
    counts: Counts,
    mode: Option<Mode>,
    default_class: Option<ClassId>,
    valid: Valid<'_>,
) {
    let Valid { classes, rules, forwards: _ } = valid;
    check_counts(reader, object, &counts);
    check_unique_classes(reader, classes);
    check_unique_priorities(reader, rules);
    // A class without a readable id may be the named one.
    if counts.classes > 0 && classes.len() == counts.classes {
        check_named_classes(reader, default_class, valid);
    }
    if let Some(mode) = mode {
        check_mode(reader, object, mode, classes, counts.rules);
    }
}

/// Checks the rules of a policy with subscribers against the classes of its plans. `written`: the number of rules in the file.
pub(super) fn check_rules(
    reader: &mut Reader,
    (written, default_class): (usize, Option<ClassId>),
    classes: &[(ClassId, String)],
    rules: &[Placed<Rule>],
) {
    too_many(reader, "rules", written, MAX_RULES);
    check_unique_priorities(reader, rules);
    let named = |(id, name): &(ClassId, String)| Class { name: name.clone(), ..Class::new(*id) };
    let classes: Vec<Placed<Class>> = classes.iter().map(named).enumerate().collect();
    check_named_classes(reader, default_class, Valid { classes: &classes, rules, forwards: &[] });
}

fn check_counts(reader: &mut Reader, object: &Object, counts: &Counts) {
    if let (Some(field), 0) = (object.get("classes"), counts.classes) {
        if matches!(field.value, jsonc_parser::ast::Value::Array(_)) {
            let finding = Diagnostic::error(Kind::NoClasses, "the policy has no classes")
                .at(field.span(), "an empty list")
                .help("add at least one, as in `{ \"id\": 0, \"priority\": 0 }`");
            reader.report(finding);
        }
    }
    too_many(reader, "classes", counts.classes, MAX_CLASSES);
    too_many(reader, "rules", counts.rules, MAX_RULES);
}

/// Reports a list that is too long.
fn too_many(reader: &mut Reader, key: &str, count: usize, max: usize) {
    if count > max {
        let finding = Diagnostic::error(Kind::TooMany, format!("the policy has {count} {key}, more than {max}"))
            .at(reader.spans.get(&format!("/{key}/{max}")).cloned(), "the first one too many")
            .help(format!("remove {} of them", count - max));
        reader.report(finding);
    }
}

/// Calls `report` for each item whose value was seen before, with the place in the list of both.
fn duplicates<T, K: Eq + Hash>(items: &[Placed<T>], key: impl Fn(&T) -> K, mut report: impl FnMut(usize, usize, &T)) {
    let mut first: HashMap<K, usize> = HashMap::new();
    for (place, item) in items {
        match first.get(&key(item)) {
            Some(&earlier) => report(earlier, *place, item),
            None => _ = first.insert(key(item), *place),
        }
    }
}

fn check_unique_classes(reader: &mut Reader, classes: &[Placed<Class>]) {
    duplicates(
        classes,
        |class| class.id,
        |first, second, class| {
            let free = (0..MAX_CLASSES as u8).find(|id| classes.iter().all(|(_, other)| other.id.0 != *id));
            let cure = free.map_or("remove one of them".to_string(), |id| format!("the first free id is {id}"));
            let finding = Diagnostic::error(Kind::DuplicateId, format!("two classes have the id {}", class.id))
                .at(span(reader, "classes", second, "id"), "the second class")
                .at(span(reader, "classes", first, "id"), "the first class")
                .help(cure);
            reader.report(finding);
        },
    );
    duplicates(
        classes,
        |class| class.name.clone(),
        |first, second, class| {
            // Classes with the same id get the same default name: the shared id has been reported.
            let same_id =
                classes.iter().filter(|(place, _)| [first, second].contains(place)).all(|(_, c)| c.id == class.id);
            if same_id && class.name == format!("class{}", class.id) {
                return;
            }
            let finding = Diagnostic::error(Kind::DuplicateName, format!("two classes are named \"{}\"", class.name))
                .at(span(reader, "classes", second, "name"), "the second class")
                .at(span(reader, "classes", first, "name"), "the first class")
                .help("names appear in status and metrics: give each class its own");
            reader.report(finding);
        },
    );
}

fn check_unique_priorities(reader: &mut Reader, rules: &[Placed<Rule>]) {
    let free = free_above(rules);
    duplicates(
        rules,
        |rule| rule.priority,
        |first, second, rule| {
            let help = match free.get(&rule.priority) {
                Some(Some(free)) => format!("; the next free number is {free}"),
                _ => String::new(),
            };
            let title = format!("two rules have the priority {}", rule.priority);
            let finding = Diagnostic::error(Kind::DuplicatePriority, title)
                .at(span(reader, "rules", second, "priority"), "the second rule")
                .at(span(reader, "rules", first, "priority"), "the first rule")
                .help(format!("the lowest number that matches wins, so each needs its own{help}"));
            reader.report(finding);
        },
    );
}

/// For each priority the next free number, if there is one.
fn free_above(rules: &[Placed<Rule>]) -> HashMap<u32, Option<u32>> {
    let taken: BTreeSet<u32> = rules.iter().map(|(_, rule)| rule.priority).collect();
    let mut free: HashMap<u32, Option<u32>> = HashMap::new();
    for &number in taken.iter().rev() {
        let next = number.checked_add(1);
        let above = next.and_then(|next| free.get(&next).copied().unwrap_or(Some(next)));
        free.insert(number, above);
    }
    free
}

fn check_named_classes(reader: &mut Reader, default_class: Option<ClassId>, valid: Valid<'_>) {
    let Valid { classes, rules, forwards } = valid;
    let missing = |id: ClassId| classes.iter().all(|(_, class)| class.id != id);
    let existing = || {
        let mut list: Vec<(ClassId, &str)> = classes.iter().map(|(_, class)| (class.id, class.name.as_str())).collect();
        list.sort();
        let names: Vec<String> = list.iter().map(|(id, name)| format!("{id} ({name})")).collect();
        format!("the classes are: {}", names.join(", "))
    };
    let named_by_rules = rules.iter().map(|(place, rule)| (rule.class, format!("/rules/{place}/class_id"), "a rule"));
    let named_as_default = default_class.map(|id| (id, "/default_class".to_string(), "\"default_class\""));
    let named_by_forwards = forwards
        .iter()
        .filter_map(|(place, forward)| Some((forward.class?, format!("/forwards/{place}/class_id"), "a forward")));
    for (id, path, reference) in named_by_rules.chain(named_as_default).chain(named_by_forwards) {
        if missing(id) {
            let finding =
                Diagnostic::error(Kind::UnknownClass, format!("{reference} names class {id}, which does not exist"))
                    .at(reader.spans.get(&path).cloned(), "no class has this id")
                    .help(existing());
            reader.report(finding);
        }
    }
}

fn check_mode(reader: &mut Reader, object: &Object, mode: Mode, classes: &[Placed<Class>], rules: usize) {
    let by = match mode {
        Mode::ScheduleOnly { by } => Some(by),
        _ => None,
    };
    if let (Some(_), Some(field), true) = (by, object.get("rules"), rules > 0) {
        let finding = Diagnostic::error(Kind::Mode, "rules are not consulted in mode schedule_only")
            .at(field.key_span.clone(), "these would do nothing")
            .at(object.get("mode").map(|field| field.span()), "here the packet names its class")
            .help("remove the rules, or write `\"mode\": \"full\"`");
        reader.report(finding);
    }
    for (key, from) in [("dscp", ClassFrom::Dscp), ("mark", ClassFrom::Mark)] {
        let place = classes.iter().find_map(|(place, _)| reader.spans.get(&format!("/classes/{place}/{key}")).cloned());
        if let (Some(place), true) = (place, by != Some(from)) {
            let cure = if by.is_some() {
                format!("remove it, or write `\"class_from\": \"{key}\"`")
            } else if key == "dscp" {
                "to classify by DSCP in this mode, write rules with \"dscp\"".to_string()
            } else {
                "remove it, or write `\"mode\": \"schedule_only\", \"class_from\": \"mark\"`".to_string()
            };
            let title = format!("\"{key}\" of a class is for mode schedule_only with class_from {key}");
            reader.report(Diagnostic::error(Kind::Mode, title).at(place, "would do nothing").help(cure));
        }
    }
    check_mapping(reader, classes, "dscp", |class| class.dscp.iter().map(|&v| u32::from(v)).collect());
    check_mapping(reader, classes, "mark", |class| class.marks.clone());
}

/// Checks that each DSCP or mark belongs to one class.
fn check_mapping(reader: &mut Reader, classes: &[Placed<Class>], key: &str, values: impl Fn(&Class) -> Vec<u32>) {
    let mut seen: HashMap<u32, (usize, ClassId)> = HashMap::new();
    for (place, class) in classes {
        for value in values(class) {
            let Some(&(first, id)) = seen.get(&value) else {
                seen.insert(value, (*place, class.id));
                continue;
            };
            let shown = match dscp::name(value as u8) {
                Some(name) if key == "dscp" => format!("{name} ({value})"),
                _ => value.to_string(),
            };
            let place = span(reader, "classes", *place, key);
            let title = if id == class.id {
                format!("class {} lists {key} {shown} twice", class.id)
            } else {
                format!("{key} {shown} means both class {id} and class {}", class.id)
            };
            let mut finding = Diagnostic::error(Kind::DuplicateMapping, title).at(place.clone(), "listed here");
            if span(reader, "classes", first, key) != place {
                finding = finding.at(span(reader, "classes", first, key), "and here");
            }
            reader.report(finding.help("list it once"));
        }
    }
}

/// The place of a key of a list's element, or the element itself without the key.
fn span(reader: &Reader, list: &str, place: usize, key: &str) -> Option<Span> {
    let element = format!("/{list}/{place}");
    reader.spans.get(&format!("{element}/{key}")).or_else(|| reader.spans.get(&element)).cloned()
}
