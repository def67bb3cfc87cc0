//! `interfaces`: a set of policies in one file. A key outside it holds for each interface without the same key.

use super::object::{Field, Object, Reader};
use super::{interface_policy, rule};
use crate::ceiling::SharedCeiling;
use crate::diagnostic::{Diagnostic, Kind};
use crate::excerpt::excerpt;
use crate::policy::{MAX_INTERFACES, Policy};
use crate::set::PolicySet;
use crate::source::{Origin, Source, Span};
use crate::sums;
use std::collections::HashSet;

/// Every key of an interface.
pub(super) const KEYS: &[&str] = super::KEYS.split_at(super::KEYS_OF_FILE).1;

pub(super) fn read(reader: &mut Reader, common: &Object, field: &Field, source: &Source) -> Option<PolicySet> {
    let cure =
        "write the interface's own keys below its name, as in `{ \"eth0\": { \"link\": { \"rate\": \"19mbit\" } } }`";
    let mut policies = Vec::new();
    let mut sound = Vec::new();
    let mut known: HashSet<(Kind, String, Option<usize>)> = HashSet::new();
    let mut entries = reader.entries(field, cure);
    if entries.len() > MAX_INTERFACES {
        let title = format!("a set has {} interfaces", entries.len());
        let finding =
            Diagnostic::error(Kind::TooMany, title).at(entries[MAX_INTERFACES].key_span.clone(), "one too many");
        reader.report(finding.help(format!("{MAX_INTERFACES} are the most; write a second file")));
        entries.truncate(MAX_INTERFACES);
    }
    if entries.is_empty() {
        let finding = Diagnostic::error(Kind::Empty, "\"interfaces\" names none").at(field.span(), "nothing in here");
        reader.report(finding.help(cure));
    }
    for entry in entries {
        rule::check_interface(reader, field.key, entry.key, entry.key_span.clone());
        // Places in its policy use the pointers that a policy of its own would have.
        let mut own = Reader { spans: reader.spans.clone(), context: reader.context, ..Reader::default() };
        let read = own.object(entry.value, "", "an interface", KEYS);
        let policy = read.and_then(|object| interface_policy(&mut own, &common.with(&object), source));
        if own.findings.is_empty() {
            sound.push((entry.key, policies.len()));
        }
        for finding in own.findings {
            // A finding in a common part occurs in every interface.
            let (kind, title, start) = finding.identity();
            if known.insert((kind, title.to_owned(), start)) {
                reader.report(finding.help(format!("found in the policy for {}", excerpt(entry.key))));
            }
        }
        let origin = Origin { source: Some(source.clone()), spans: own.spans.into() };
        policies.extend(policy.map(|mut policy| {
            policy.set_origin(origin);
            (entry.key.to_owned(), policy)
        }));
    }
    check_shared(reader, &policies);
    check_members(reader, &policies);
    if !reader.findings.is_empty() {
        sound.into_iter().for_each(|(interface, place)| check_sums(reader, interface, &policies[place].1));
    }
    Some(PolicySet { policies, source: source.clone(), key: field.key_span.clone() })
}

/// Checks the sums of a valid policy, in a file with errors elsewhere.
fn check_sums(reader: &mut Reader, interface: &str, policy: &Policy) {
    let Some(context) = reader.context else { return };
    let placed: Vec<sums::Placed<'_>> = policy.classes.iter().enumerate().collect();
    for finding in sums::check(&placed, policy.link.rate, &context, |pointer| policy.origin.span(pointer)) {
        reader.report(finding.help(format!("found in the policy for {}", excerpt(interface))));
    }
}

/// Checks that the arrivals of each interface are queued in one place.
fn check_members(reader: &mut Reader, policies: &[(String, Policy)]) {
    let mut first: Vec<(&str, &str, Option<Span>)> = Vec::new();
    for (set, policy) in policies {
        for (i, member) in policy.arrivals_of.iter().enumerate() {
            let place = policy.origin.span(&format!("/arrivals_of/{i}"));
            let own = policies.iter().find(|(name, _)| name == member).map(|(_, own)| own);
            let other = if let Some((_, other, there)) = first.iter().find(|(name, ..)| name == member) {
                Some((format!("arrivals of {} are queued in {other} too", excerpt(member)), there.clone()))
            } else if let Some(own) = own.filter(|own| !own.arrivals_of.is_empty()) {
                Some((
                    format!("{} is no interface, but queues arrivals itself", excerpt(member)),
                    own.origin.span("/arrivals_of"),
                ))
            } else if let Some(own) = own.filter(|own| own.link.ingress_rate.is_some()) {
                let there = own.origin.span("/link/ingress_rate");
                Some((format!("arrivals of {} are queued by its own policy too", excerpt(member)), there))
            } else if let Some(own) = own.filter(|own| !own.forwards.is_empty()) {
                let title = format!("{} forwards ports, and so cannot be in a group", excerpt(member));
                Some((title, own.origin.span("/forwards/0")))
            } else {
                None
            };
            match other {
                Some((title, there)) => {
                    let finding = Diagnostic::error(Kind::Conflict, title).at(place, format!("queued in {set}"));
                    reader.report(finding.at(there, "and here").help("remove one of the two"));
                }
                None => first.push((member, set, place)),
            }
        }
    }
}

/// Checks that a shared name has one rate on all interfaces.
fn check_shared(reader: &mut Reader, policies: &[(String, Policy)]) {
    let mut first: Vec<(&str, &Policy, usize, &SharedCeiling)> = Vec::new();
    for (interface, policy) in policies {
        for (i, class) in policy.classes.iter().enumerate() {
            let Some(ours) = &class.shared_ceil else { continue };
            let Some((other, theirs, j, earlier)) = first.iter().find(|(.., earlier)| earlier.name == ours.name) else {
                first.push((interface, policy, i, ours));
                continue;
            };
            if ours.ceiling == earlier.ceiling {
                continue;
            }
            let place = |policy: &Policy, i: usize| policy.origin.span(&format!("/classes/{i}/shared_ceil"));
            let title = format!("\"{}\" has two rates", ours.name);
            let finding = Diagnostic::error(Kind::Conflict, title)
                .at(place(policy, i), format!("{} for {interface}", ours.ceiling.rate))
                .at(place(theirs, *j), format!("{} for {other}", earlier.ceiling.rate))
                .help("write the same rate and burst, or use two names");
            reader.report(finding);
        }
    }
}
