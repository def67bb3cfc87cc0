//! `arrivals_of`: the interfaces whose arrivals are queued together.

use super::object::{Object, Reader};
use super::rule::check_interface;
use crate::diagnostic::{Diagnostic, Kind};
use crate::excerpt::excerpt;
use crate::policy::{MAX_INTERFACES, Mode};
use crate::source::Span;

const HELP: &str = "write the names of interfaces, as in `\"arrivals_of\": [\"eth1\", \"eth2\"]`";

/// Keys that say something about departures, which a device for arrivals has none of.
const OF_DEPARTURES: &[(&str, &str)] =
    &[("link", "rate"), ("link", "burst"), ("link", "split_gso"), ("link", "queues"), ("limits", "egress")];

pub(super) fn read(reader: &mut Reader, object: &Object, mode: Option<Mode>) -> Vec<String> {
    let Some(field) = object.get("arrivals_of") else { return Vec::new() };
    let fields = reader.list(field, HELP);
    if fields.is_empty() && matches!(field.value, jsonc_parser::ast::Value::Array(_)) {
        let finding = Diagnostic::error(Kind::Empty, "\"arrivals_of\" names no interface");
        reader.report(finding.at(field.span(), "an empty list").help(HELP));
    }
    if fields.len() > MAX_INTERFACES {
        let finding = Diagnostic::error(Kind::TooMany, format!("\"arrivals_of\" has {} interfaces", fields.len()))
            .at(fields[MAX_INTERFACES].span(), "one too many");
        reader.report(finding.help(format!("{MAX_INTERFACES} are the most")));
    }
    let mut members: Vec<(String, Span)> = Vec::new();
    for field in fields.iter().take(MAX_INTERFACES) {
        let Some(name) = reader.string(field, HELP) else { continue };
        if !check_interface(reader, "arrivals_of", name, field.span()) {
            continue;
        }
        if let Some((_, first)) = members.iter().find(|(known, _)| known == name) {
            let title = format!("\"arrivals_of\" has {} twice", excerpt(name));
            let finding = Diagnostic::error(Kind::DuplicateName, title).at(field.span(), "the second time");
            reader.report(finding.at(first.clone(), "the first time").help("remove one of them"));
            continue;
        }
        members.push((name.to_owned(), field.span()));
    }
    check_rest(reader, object, mode, &field.key_span);
    members.into_iter().map(|(name, _)| name).collect()
}

/// Checks that the other keys are about arrivals that are queued.
fn check_rest(reader: &mut Reader, object: &Object, mode: Option<Mode>, place: &Span) {
    if mode == Some(Mode::ClassifyOnly) {
        let title = "\"arrivals_of\" in a policy that only classifies";
        let finding = Diagnostic::error(Kind::Conflict, title).at(place.clone(), "arrivals are queued here");
        reader.report(finding.help("remove \"mode\": \"classify_only\", or \"arrivals_of\""));
    }
    for (of, key) in OF_DEPARTURES {
        let there = object.get(of).and_then(|field| reader.spans.get(&format!("{}/{key}", field.path)).cloned());
        if let Some(there) = there {
            let title = format!("\"{key}\" of \"{of}\" in a policy for arrivals");
            let cure = match *key {
                "rate" => "write \"ingress_rate\", what arrivals are shaped to",
                "egress" => "write \"ingress\", or the limit into the policy of the interface by which packets leave",
                _ => "remove it, or write it into the policy of the interface by which packets leave",
            };
            let finding = Diagnostic::error(Kind::Conflict, title).at(there, "about departures");
            reader.report(finding.at(place.clone(), "this policy is for arrivals").help(cure));
        }
    }
    if let Some(forwards) = object.get("forwards") {
        let finding = Diagnostic::error(Kind::Conflict, "\"forwards\" in a policy for arrivals of several interfaces");
        let finding = finding.at(forwards.key_span.clone(), "forwards are of one interface");
        reader.report(finding.help("write them into the policy of the interface at which connections arrive"));
    }
}
