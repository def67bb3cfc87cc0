//! Sums over classes: guarantees against the link, queued packets against the slots.

use crate::diagnostic::{Diagnostic, Kind};
use crate::limits::{self, Demand};
use crate::policy::{Class, MAX_QUEUED_PKTS};
use crate::rate::Rate;
use crate::resolved::Context;
use crate::source::Span;

/// A class with its index in the file's list.
pub(crate) type Placed<'a> = (usize, &'a Class);

/// The sums that are too large. `at` gives the place of a JSON pointer.
pub(crate) fn check(
    classes: &[Placed<'_>],
    file_rate: Option<Rate>,
    context: &Context,
    at: impl Fn(&str) -> Option<Span>,
) -> Vec<Diagnostic> {
    let link = context.link_rate.or(file_rate);
    let demands = demands(classes, link);
    let limits = (context.engine.shares_slots() && limits::fit(&demands).is_none())
        .then(|| limits_above_slots(classes, &demands, &at));
    rates_above_link(classes, link, &at).into_iter().chain(limits).collect()
}

/// The demand of each class on the shared slots.
pub(crate) fn demands(classes: &[Placed<'_>], link: Option<Rate>) -> Vec<Demand> {
    let demand = |(_, class): &Placed<'_>| {
        let ceil = class.ceil.map(|ceil| link.map_or(ceil, |link| ceil.min(link)));
        limits::demand(class.limit, ceil.or(link), class.is_kept_short())
    };
    classes.iter().map(demand).collect()
}

/// The error of guarantees that exceed the link.
pub(crate) fn rates_above_link(
    classes: &[Placed<'_>],
    link: Option<Rate>,
    at: impl Fn(&str) -> Option<Span>,
) -> Option<Diagnostic> {
    let link = link?;
    let sum = classes.iter().filter_map(|(_, class)| class.rate).map(|rate| rate.0).sum();
    if sum <= link.0 {
        return None;
    }
    let title = format!("the guarantees come to {}, more than the link's {link}", Rate(sum));
    let mut finding = Diagnostic::error(Kind::RateSum, title);
    let mut list = Vec::new();
    for (place, class) in classes {
        if let Some(rate) = class.rate {
            finding = finding.at(at(&format!("/classes/{place}/rate")), format!("class {}", class.id));
            list.push(format!("{} {rate}", class.name));
        }
    }
    Some(finding.help(format!("lower some of: {}", list.join(", "))))
}

/// The error of limits that exceed the slots.
pub(crate) fn limits_above_slots(
    classes: &[Placed<'_>],
    demands: &[Demand],
    at: impl Fn(&str) -> Option<Span>,
) -> Diagnostic {
    let sum: u64 = demands.iter().map(|demand| demand.least_pkts).sum();
    let title = format!("the limits come to {sum} packets, more than the {MAX_QUEUED_PKTS} that all classes share");
    let mut finding = Diagnostic::error(Kind::LimitSum, title);
    for ((place, _), demand) in classes.iter().zip(demands).filter(|((_, class), _)| class.limit.is_some()) {
        let label = format!("{} packets", demand.least_pkts);
        finding = finding.at(at(&format!("/classes/{place}/limit")), label);
    }
    finding.help("lower some of them; bytes count as full frames, a class without a limit as 64 packets")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::parse::parse_file_for;
    use crate::source::Source;

    fn found(text: &str, context: &Context) -> Vec<Kind> {
        let found = parse_file_for(&Source::new("mine.json", text), context).expect_err("it has errors");
        found.iter().map(|finding| finding.kind()).collect()
    }

    const WRONG: &str = r#"{ "scheduler": "round_robin", "link": { "rate": "10mbit" }, "classes": [
        { "id": 0, "rate": "8mbit", "bogus": 1, "limit": 16000 }, { "id": 1, "rate": "8mbit", "limit": 16000 } ] }"#;

    #[test]
    fn wrong_sum_is_reported_with_other_errors() {
        let context = Context::default();
        assert_eq!(found(WRONG, &context), [Kind::RateSum, Kind::UnknownKey, Kind::LimitSum]);
        let faster = Context { link_rate: Some(Rate(20_000_000)), engine: Engine::Tc, ..Context::default() };
        assert_eq!(found(WRONG, &faster), [Kind::UnknownKey], "neither sum is wrong there");
    }

    #[test]
    fn wrong_sums_of_a_set_are_reported_with_errors_elsewhere() {
        let set = r#"{ "scheduler": "round_robin", "link": { "rate": "10mbit" }, "interfaces": {
            "eth0": { "classes": [{ "id": 0, "rate": "12mbit" }] }, "eth1": { "classes": [{ "id": 0, "bogus": 1 }] } } }"#;
        assert_eq!(found(set, &Context::default()), [Kind::RateSum, Kind::UnknownKey]);
    }
}
