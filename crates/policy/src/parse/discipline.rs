//! `scheduler` and `rank`, and the keys of a class that they require or exclude.

use super::object::{Field, Object, Reader};
use crate::diagnostic::{Diagnostic, Kind};
use crate::excerpt::excerpt;
use crate::rank::Rank;
use crate::scheduler::Scheduler;
use crate::suggest;

/// Reads the discipline; None if either key cannot be read.
pub(super) fn read(reader: &mut Reader, object: &Object) -> Option<(Scheduler, Rank)> {
    let scheduler = reader
        .required(object, "scheduler", &format!("add one of: {}", scheduler_names().join(", ")))
        .and_then(|field| scheduler(reader, field));
    let rank = match object.get("rank") {
        Some(field) => rank(reader, field),
        None => Some(Rank::default()),
    };
    if let (Some(scheduler), Some(field)) = (scheduler, object.get("rank")) {
        if scheduler != Scheduler::PIFO {
            report_rank_without_pifo(reader, object, field);
        }
    }
    Some((scheduler?, rank?))
}

/// Reports a `rank` beside another scheduler, or beside none.
pub(super) fn report_rank_without_pifo(reader: &mut Reader, object: &Object, field: &Field) {
    let finding = Diagnostic::error(Kind::Scheduler, "\"rank\" is for scheduler pifo only")
        .at(field.key_span.clone(), "sets the order of a PIFO")
        .at(object.get("scheduler").map(|field| field.span()), "has an order of its own")
        .help("remove it, or write `\"scheduler\": \"pifo\"`");
    reader.report(finding);
}

fn scheduler_names() -> Vec<&'static str> {
    Scheduler::all().map(Scheduler::name).collect()
}

fn scheduler(reader: &mut Reader, field: &Field) -> Option<Scheduler> {
    let known = scheduler_names();
    let text = reader.string(field, &format!("one of: {}", known.join(", ")))?;
    let scheduler = Scheduler::named(text);
    if scheduler.is_none() {
        report_unknown(reader, field, text, scheduler_suggestion(text), &known);
    }
    scheduler
}

pub(super) fn rank(reader: &mut Reader, field: &Field) -> Option<Rank> {
    let known: Vec<&str> = Rank::all().map(Rank::name).collect();
    let text = reader.string(field, &format!("one of: {}", known.join(", ")))?;
    let rank = Rank::named(text);
    if rank.is_none() {
        let near = Rank::from_alias(text).map(Rank::name).or_else(|| suggest::nearest(text, &known));
        report_unknown(reader, field, text, near.map(|near| format!("\"{near}\"")), &known);
    }
    rank
}

/// The value that this text probably stands for: a scheduler, or a rank of a PIFO.
fn scheduler_suggestion(text: &str) -> Option<String> {
    if let Some(scheduler) = Scheduler::from_alias(text) {
        return Some(format!("\"{scheduler}\""));
    }
    let rank = Rank::named(text).or_else(|| Rank::from_alias(text));
    if let Some(rank) = rank {
        return Some(format!("\"pifo\" with `\"rank\": \"{rank}\"`"));
    }
    suggest::nearest(text, &scheduler_names()).map(|near| format!("\"{near}\""))
}

fn report_unknown(reader: &mut Reader, field: &Field, text: &str, near: Option<String>, known: &[&str]) {
    let mut finding = Diagnostic::error(Kind::UnknownValue, format!("there is no {} \"{}\"", field.key, excerpt(text)))
        .at(field.span(), "not known");
    if let Some(near) = near {
        finding = finding.help(format!("did you mean {near}?"));
    }
    reader.report(finding.help(format!("one of: {}", known.join(", "))));
}

/// Checks the keys of a class that the discipline requires or excludes. `class` names the class in messages.
pub(super) fn check_class(reader: &mut Reader, object: &Object, class: &str, (scheduler, rank): (Scheduler, Rank)) {
    let mut required = |key: &str, cure: String| {
        if object.get(key).is_none() {
            let finding = Diagnostic::error(Kind::MissingKey, format!("{class} has no \"{key}\""))
                .at(object.brace(), format!("\"{key}\" is missing here"))
                .help(cure);
            reader.report(finding);
        }
    };
    if scheduler == Scheduler::STRICT_PRIORITY {
        required("priority", "strict_priority orders the classes by it, 0 is the most urgent".into());
    } else if scheduler.uses_priority(rank) {
        required("priority", "pifo orders by it, 0 is the most urgent, unless \"rank\" names something else".into());
    }
    if scheduler.uses_budget(rank) {
        let cure =
            format!("rank {rank} orders by it: add how long a packet may take, as in `\"latency_budget\": \"5ms\"`");
        required("latency_budget", cure);
    }
    if scheduler == Scheduler::PIFO {
        refuse_rate(reader, object, class, rank);
        refuse_queues(reader, object, class, "a PIFO gives each packet its own place among those of all classes");
    }
}

/// Refuses a guarantee of a class under PIFO.
pub(super) fn refuse_rate(reader: &mut Reader, object: &Object, class: &str, rank: Rank) {
    let Some(field) = object.get("rate") else { return };
    let finding = Diagnostic::error(Kind::Scheduler, format!("{class} is guaranteed a rate, which pifo cannot give"))
        .at(field.span(), "a PIFO serves by rank alone")
        .help(match rank {
            Rank::PRIORITY => "remove it and give the class a lower \"priority\" number, or use another scheduler",
            Rank::EARLIEST_DEADLINE | Rank::SLACK => {
                "remove it and give the class a shorter \"latency_budget\", or use another scheduler"
            }
            Rank::START_TIME_FAIR => "remove it and give the class a larger \"weight\", or use another scheduler",
            _ => "remove it, or use another rank or scheduler",
        });
    reader.report(finding);
}

/// Refuses flow queues or CoDel of a class under PIFO, for this reason.
pub(super) fn refuse_queues(reader: &mut Reader, object: &Object, class: &str, why: &str) {
    for (key, refused, instead, what) in
        [("queue", "flows", "fifo", "queues by flow"), ("aqm", "codel", "none", "has CoDel")]
    {
        let Some(field) = object.get(key).filter(|field| field.is_text(refused)) else { continue };
        let finding = Diagnostic::error(Kind::Scheduler, format!("{class} {what}, which pifo cannot do"))
            .at(field.span(), why.to_owned())
            .help(format!("write `\"{key}\": \"{instead}\"`, or use another scheduler"));
        reader.report(finding);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheduler_aliases_are_suggested() {
        for (text, suggestion) in [
            ("wfq", "\"weighted_fair_queuing\""),
            ("wf2q", "\"weighted_fair_queuing\""),
            ("weighted_fair_queueing", "\"weighted_fair_queuing\""),
            ("pfo", "\"pifo\""),
            ("PIFO", "\"pifo\""),
            ("eedvf", "\"eevdf\""),
            ("edf", "\"pifo\" with `\"rank\": \"earliest_deadline\"`"),
            ("shortest_packet", "\"pifo\" with `\"rank\": \"shortest_packet\"`"),
            ("rr", "\"round_robin\""),
        ] {
            assert_eq!(scheduler_suggestion(text).as_deref(), Some(suggestion), "{text}");
        }
        assert_eq!(scheduler_suggestion("cake"), None);
    }

    #[test]
    fn rank_aliases_are_suggested() {
        for (text, rank) in [
            ("edf", Rank::EARLIEST_DEADLINE),
            ("sjf", Rank::SHORTEST_PACKET),
            ("srpt", Rank::SHORTEST_PACKET),
            ("las", Rank::LEAST_ATTAINED_SERVICE),
            ("STFQ", Rank::START_TIME_FAIR),
            ("sfq", Rank::START_TIME_FAIR),
            ("lstf", Rank::SLACK),
        ] {
            assert_eq!(Rank::from_alias(text), Some(rank), "{text}");
        }
    }
}
