//! Warnings and notes on valid policies that are probably not as intended.

use crate::bytes::FRAME_BYTES;
use crate::diagnostic::{Diagnostic, Kind, Severity};
use crate::limit::Limit;
use crate::policy::{Class, ClassFrom, Exceed, Mode, Policy, Term, Terms};
use crate::scheduler::Scheduler;
use crate::shadow;
use crate::source::Span;
use sluice_abi as abi;
use std::collections::BTreeSet;

pub(crate) fn lint(policy: &Policy) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    findings.extend(small_quanta(policy));
    findings.extend(small_limits(policy));
    findings.extend(shadowed_rules(policy));
    findings.extend(rules_of_other_interfaces(policy));
    findings.extend(unused_sets(policy));
    findings.extend(unused_shares(policy));
    findings.extend(unused_budgets(policy));
    findings.extend(unused_bursts(policy));
    findings.extend(shaping_without_queues(policy));
    findings.extend(schedule_only_without_lists(policy));
    findings
}

/// The place of a key of this class, under any of its names.
pub(crate) fn class_span(policy: &Policy, place: usize, keys: &[&str]) -> Option<Span> {
    keys.iter().find_map(|key| policy.origin.span(&format!("/classes/{place}/{key}")))
}

/// Labels a key of each class that `chosen` picks with the class's name.
fn at_classes(policy: &Policy, mut finding: Diagnostic, keys: &[&str], chosen: impl Fn(&Class) -> bool) -> Diagnostic {
    for (place, class) in policy.classes.iter().enumerate().filter(|(_, class)| chosen(class)) {
        let label = format!("class {} \"{}\"", class.id, class.name);
        finding = finding.at(class_span(policy, place, keys), label);
    }
    finding
}

fn names(policy: &Policy, chosen: impl Fn(&Class) -> bool) -> Vec<&str> {
    policy.classes.iter().filter(|class| chosen(class)).map(|class| class.name.as_str()).collect()
}

fn small_quanta(policy: &Policy) -> Option<Diagnostic> {
    let shares_by_quantum = policy.scheduler.share() == abi::SL_SHARE_QUANTUM;
    let small = |class: &Class| class.quantum_bytes < FRAME_BYTES;
    let names = names(policy, small);
    if !shares_by_quantum || names.is_empty() {
        return None;
    }
    let title = format!("the quantum of {} is smaller than the largest frame, {FRAME_BYTES} bytes", names.join(", "));
    let finding = Diagnostic::new(Severity::Warning, Kind::SmallQuantum, title);
    let help = format!("it works, slower: a full frame waits for another round; write {FRAME_BYTES} or more");
    Some(at_classes(policy, finding, &["quantum"], small).help(help))
}

fn small_limits(policy: &Policy) -> Option<Diagnostic> {
    let small = |class: &Class| matches!(class.limit, Some(Limit::Bytes(bytes)) if bytes.0 < FRAME_BYTES.into());
    let names = names(policy, small);
    if names.is_empty() {
        return None;
    }
    let title = format!("the limit of {} is less than a full frame, {FRAME_BYTES} bytes", names.join(", "));
    let finding = Diagnostic::new(Severity::Warning, Kind::SmallLimit, title);
    let help = "every longer packet is dropped; a plain number is packets, and \"50ms\" is the bytes that the rate sends in that time";
    Some(at_classes(policy, finding, &["limit"], small).help(help))
}

/// The most shadowed rules that are reported one by one.
const MAX_SHADOWED: usize = 20;

fn shadowed_rules(policy: &Policy) -> Vec<Diagnostic> {
    let name = |place: usize| {
        let rule = &policy.rules[place];
        rule.name
            .as_ref()
            .map_or(format!("rule {}", rule.priority), |name| format!("rule {} \"{name}\"", rule.priority))
    };
    let span = |place: usize| policy.origin.span(&format!("/rules/{place}/priority"));
    let pairs = shadow::shadowed(policy);
    let finding = |&(later, earlier): &(usize, usize)| {
        let title = format!("{} never matches: {} takes everything that it would", name(later), name(earlier));
        let help = match policy.rules[later].class == policy.rules[earlier].class {
            true => "remove it: both choose the same class",
            false => "give it a lower number than the wider rule, or remove it",
        };
        Diagnostic::new(Severity::Warning, Kind::ShadowedRule, title)
            .at(span(later), "never matches")
            .at(span(earlier), "the wider rule, which wins")
            .help(help)
    };
    let mut findings: Vec<Diagnostic> = pairs.iter().take(MAX_SHADOWED).map(finding).collect();
    if let Some(&(next, _)) = pairs.get(MAX_SHADOWED) {
        let title = format!("{} more rules never match", pairs.len() - MAX_SHADOWED);
        let finding = Diagnostic::new(Severity::Warning, Kind::ShadowedRule, title).at(span(next), "the first of them");
        findings.push(finding.help("earlier rules take everything that these would"));
    }
    findings
}

/// Rules about arrivals at an interface that is not in the group.
fn rules_of_other_interfaces(policy: &Policy) -> Option<Diagnostic> {
    let elsewhere = |interface: &String| !policy.arrivals_of.is_empty() && !policy.arrivals_of.contains(interface);
    let rules: Vec<usize> =
        (0..policy.rules.len()).filter(|&i| policy.rules[i].in_interface.as_ref().is_some_and(elsewhere)).collect();
    let first = policy.rules.get(*rules.first()?)?.in_interface.as_ref()?;
    let title = match rules.len() {
        1 => format!("a rule never matches: {first} is not in \"arrivals_of\""),
        many => format!("{many} rules never match: {first} and others are not in \"arrivals_of\""),
    };
    let mut finding = Diagnostic::new(Severity::Warning, Kind::NoEffect, title);
    for rule in rules.iter().take(MAX_SHADOWED) {
        finding = finding
            .at(policy.origin.span(&format!("/rules/{rule}/in_interface")), "no packet of the group arrives there");
    }
    Some(
        finding
            .at(policy.origin.span("/arrivals_of"), "where packets of the group arrive")
            .help("add the interface there, or remove the rule"),
    )
}

fn unused_sets(policy: &Policy) -> Vec<Diagnostic> {
    fn named<'p, T>(terms: impl Iterator<Item = &'p Terms<T>>) -> BTreeSet<&'p str>
    where
        T: 'p,
    {
        let set = |term: &'p Term<T>| match term {
            Term::In(set) => Some(set.as_str()),
            Term::Is(_) => None,
        };
        terms.flatten().filter_map(set).collect()
    }
    let addresses = named(policy.rules.iter().flat_map(|rule| [&rule.src, &rule.dst]));
    let ports = named(policy.rules.iter().flat_map(|rule| [&rule.src_ports, &rule.dst_ports]));
    let unused = |key: &'static str, name: &String| {
        Diagnostic::new(Severity::Warning, Kind::UnusedSet, format!("no rule uses the set \"{name}\""))
            .at(policy.origin.span(&format!("/{key}/{name}")), "does nothing")
            .help(format!("name it in a rule as \"@{name}\", or remove it"))
    };
    let of_addresses = policy.address_sets.keys().filter(|name| !addresses.contains(name.as_str()));
    let of_ports = policy.port_sets.keys().filter(|name| !ports.contains(name.as_str()));
    let of_addresses = of_addresses.map(|name| unused("address_sets", name));
    of_addresses.chain(of_ports.map(|name| unused("port_sets", name))).collect()
}

/// Weights or quanta that the discipline does not use. Files of other programs carry both in every class: equal values, and
/// values in proportion to the used ones, are not reported.
fn unused_shares(policy: &Policy) -> Vec<Diagnostic> {
    let Some(first) = policy.classes.first() else { return Vec::new() };
    let (scheduler, rank) = (policy.scheduler, policy.rank);
    let (by_weight, by_quantum) = (scheduler.uses_weight(rank), scheduler.uses_quantum(rank));
    let weight = |class: &Class| u64::from(class.weight);
    let quantum = |class: &Class| u64::from(class.quantum_bytes);
    let differ = |share: &dyn Fn(&Class) -> u64| policy.classes.iter().any(|class| share(class) != share(first));
    let proportional =
        policy.classes.iter().all(|class| quantum(class) * weight(first) == quantum(first) * weight(class));
    let by_quanta = "make the quanta proportional to the shares wanted";
    let by_weights = "make the weights proportional to the shares wanted";
    let (how, cure) = match scheduler.share() {
        _ if by_weight => ("which shares by weight", by_weights),
        abi::SL_SHARE_QUANTUM if scheduler.uses_priority(rank) => {
            ("which shares among equal priorities by quantum", by_quanta)
        }
        abi::SL_SHARE_QUANTUM => ("which shares by quantum", by_quanta),
        abi::SL_SHARE_PACKETS => (
            "which sends a packet of each class in turn",
            "for shares, use weighted_fair_queuing or deficit_round_robin",
        ),
        _ => ("which serves by rank alone", "for shares, use rank start_time_fair or another scheduler"),
    };
    let finding = |what: &str, key: &str| {
        let title = format!("{what} do nothing under {}, {how}", discipline(policy));
        let finding = Diagnostic::new(Severity::Note, Kind::NoEffect, title);
        at_classes(policy, finding, &[key], |_| true).help(cure)
    };
    let weights_mislead = !by_weight && differ(&weight) && !(by_quantum && proportional);
    let quanta_mislead = !by_quantum && differ(&quantum) && !(by_weight && proportional);
    let weights = weights_mislead.then(|| finding("weights", "weight"));
    let quanta = quanta_mislead.then(|| finding("quanta", "quantum"));
    weights.into_iter().chain(quanta).collect()
}

/// The scheduler, and the rank if it has one.
fn discipline(policy: &Policy) -> String {
    match policy.scheduler {
        Scheduler::PIFO => format!("pifo by {}", policy.rank),
        scheduler => scheduler.to_string(),
    }
}

fn unused_budgets(policy: &Policy) -> Option<Diagnostic> {
    let unused = |class: &Class| class.latency_budget_ns.is_some();
    let names = names(policy, unused);
    if policy.scheduler.uses_budget(policy.rank) || names.is_empty() {
        return None;
    }
    let title = format!("the latency budget of {} does nothing under {}", names.join(", "), discipline(policy));
    let finding = Diagnostic::new(Severity::Warning, Kind::NoEffect, title);
    let help = "remove it, or write `\"scheduler\": \"pifo\", \"rank\": \"earliest_deadline\"`";
    Some(at_classes(policy, finding, &["latency_budget"], unused).help(help))
}

fn unused_bursts(policy: &Policy) -> Option<Diagnostic> {
    let unused = |class: &Class| class.burst.is_some() && class.ceil.is_none();
    let names = names(policy, unused);
    if names.is_empty() {
        return None;
    }
    let title = format!("the burst of {} does nothing without a ceiling", names.join(", "));
    let finding = Diagnostic::new(Severity::Note, Kind::NoEffect, title);
    Some(at_classes(policy, finding, &["burst", "burst_size_kb"], unused).help("add \"ceil\", or remove the burst"))
}

fn shaping_without_queues(policy: &Policy) -> Option<Diagnostic> {
    let shaped = |class: &Class| class.ceil.is_some() && class.exceed == Exceed::Shape;
    let names = names(policy, shaped);
    if policy.mode != Mode::ClassifyOnly || names.is_empty() {
        return None;
    }
    let title = format!("the ceiling of {} does nothing in mode classify_only, which has no queues", names.join(", "));
    let finding = Diagnostic::new(Severity::Warning, Kind::NoEffect, title);
    let keys = ["ceil", "rate_limit_mbps"];
    Some(at_classes(policy, finding, &keys, shaped).help("add `\"police\": true` to drop above the ceiling"))
}

fn schedule_only_without_lists(policy: &Policy) -> Option<Diagnostic> {
    let Mode::ScheduleOnly { by } = policy.mode else { return None };
    let (key, listed) = match by {
        ClassFrom::Dscp => ("dscp", policy.classes.iter().any(|class| !class.dscp.is_empty())),
        ClassFrom::Mark => ("mark", policy.classes.iter().any(|class| !class.marks.is_empty())),
    };
    if listed {
        return None;
    }
    let title = format!("no class lists a {key}, so every packet gets the default class");
    let example = if key == "dscp" { "[\"ef\"]" } else { "[1]" };
    Some(
        Diagnostic::new(Severity::Warning, Kind::NoEffect, title)
            .at(policy.origin.span("/class_from"), "chooses the class")
            .help(format!("add lists to the classes, as in `\"{key}\": {example}`")),
    )
}
