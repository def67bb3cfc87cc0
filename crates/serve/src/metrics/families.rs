//! The metrics, and their values from a sample. Names and units follow Prometheus' conventions: base units, `_total` for counters,
//! one meaning for all series of a name.

use super::family::{Family, Label, Value, bytes_per_second, connections, name, packets, ratio};
use super::subscribers::{of_sites, of_subscribers};
use crate::counted::Series;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use sluice_abi as abi;
use sluice_kernel::Engine;
use sluice_kernel::status::{ClassStatus, Count, DirectionStatus, ForwardStatus, RuleStatus, Status, SubscriberSearch};
use sluice_observe::Sample;

/// Every family of metrics, from a sample and from counts by key. `search`: the subscribers that get series of their own.
pub fn of(sample: &Sample, failed: bool, counted: &[Series], search: Option<&SubscriberSearch>) -> Vec<Family> {
    let mut families = of_server(sample, failed);
    families.extend(of_interfaces(sample));
    families.extend(of_policies(sample));
    families.extend(of_packets(sample));
    families.extend(of_wires(sample));
    families.extend(of_rates(sample));
    families.extend(of_waits(sample));
    families.extend(of_rules(sample));
    families.extend(of_forwards(sample));
    families.extend(of_sites(sample));
    families.extend(search.map(|search| of_subscribers(sample, search)).unwrap_or_default());
    families.extend(of_counts(counted));
    families
}

fn of_server(sample: &Sample, failed: bool) -> Vec<Family> {
    let mut build = Family::gauge("sluice_build_info", "The program, always 1", None);
    build.series = vec![(vec![("version", env!("CARGO_PKG_VERSION").to_owned())], Value::Gauge(1.0))];
    let mut success =
        Family::gauge("sluice_sample_success", "Whether the last try to read the counters succeeded", None);
    success.series = vec![(Vec::new(), Value::Gauge(f64::from(u8::from(!failed))))];
    let mut when = Family::gauge(
        "sluice_sample_timestamp",
        "Time at which the counters were read, since 1970",
        Some(Unit::Seconds),
    );
    when.series = vec![(Vec::new(), Value::Gauge(sample.at_ms as f64 / 1e3))];
    vec![build, success, when]
}

fn of_interfaces(sample: &Sample) -> Vec<Family> {
    let all = || sample.interfaces.iter();
    let info = |one: &Status| {
        let labels = vec![
            name(one),
            ("engine", one.engine.name().to_owned()),
            ("classifier", text(one.classifier)),
            ("scheduler", one.policy.scheduler.clone()),
            ("policy", one.policy.name.clone()),
        ];
        Some((labels, Value::Gauge(1.0)))
    };
    let directions = all().flat_map(|one| one.directions.iter().map(move |side| (one, side)));
    let rate = |(one, side): (&Status, &DirectionStatus)| {
        Some((vec![name(one), direction(side)], Value::Gauge(side.rate_bps? as f64 / 8.0)))
    };
    let parsed = all().flat_map(|one| {
        let kinds = move |side| move |kind: abi::ParseKind| (one, side, kind);
        one.directions.iter().flat_map(move |side| abi::parse_kinds().map(kinds(side)))
    });
    vec![
        Family::gauge("sluice_interface_info", "Engine, hook and policy of an interface, always 1", None)
            .each(all(), info),
        Family::gauge(
            "sluice_interface_in_place",
            "Whether the queues, devices and hooks of an interface are still those that sluice made",
            None,
        )
        .each(all(), gauge_of(|one| f64::from(u8::from(one.in_place)))),
        Family::gauge("sluice_interface_rate", "Rate that a direction is shaped to", bytes_per_second())
            .each(directions, rate),
        Family::counter("sluice_interface_parsed", "Packets by the parser's verdict on their headers", packets()).each(
            parsed,
            |(one, side, kind)| {
                let labels = vec![name(one), direction(side), ("kind", kind.name.to_owned())];
                Some((labels, Value::Count(side.parsed.get(kind.name).map_or(0, |count| count.pkts))))
            },
        ),
    ]
}

fn of_policies(sample: &Sample) -> Vec<Family> {
    let all = || sample.interfaces.iter();
    let reloads =
        |one: &Status| Some((vec![name(one)], Value::Count(u64::from(one.policy.generation.saturating_sub(1)))));
    vec![
        Family::new(
            "sluice_policy_reloads",
            "Changes of the policy since the interface was taken into management",
            None,
            MetricType::Counter,
        )
        .each(all(), reloads),
        Family::gauge(
            "sluice_policy_applied_timestamp",
            "Time at which the policy in force was applied, since 1970",
            Some(Unit::Seconds),
        )
        .each(all(), gauge_of(|one| one.policy.applied_s as f64)),
        Family::gauge(
            "sluice_policy_unconfirmed",
            "Whether the policy in force is taken back unless it is confirmed",
            None,
        )
        .each(all(), gauge_of(|one| f64::from(u8::from(one.unconfirmed.is_some())))),
    ]
}

/// Packets that a wire has lost.
fn of_wires(sample: &Sample) -> Vec<Family> {
    let sides = || sample.interfaces.iter().flat_map(|one| one.directions.iter().map(move |side| (one, side)));
    vec![
        Family::counter(
            "sluice_wire_lost",
            "Packets that a wire held when its process hung or was killed, or had for a link that was down",
            packets(),
        )
        .each(sides(), |(one, side)| Some((vec![name(one), direction(side)], Value::Count(side.lost?.pkts)))),
        Family::counter(
            "sluice_wire_port_wait",
            "Time in which packets of a wire waited since the interface that they leave by had enough to send",
            Unit::Seconds,
        )
        .each(sides(), |(one, side)| Some((vec![name(one), direction(side)], Value::Sum(side.port?.wait_s)))),
        Family::gauge(
            "sluice_wire_port_limit",
            "The most bytes that the interface by which packets of a wire leave has to send at a time, as was found",
            Some(Unit::Bytes),
        )
        .each(sides(), |(one, side)| {
            Some((vec![name(one), direction(side)], Value::Gauge(side.port?.limit_bytes? as f64)))
        }),
    ]
}

/// A gauge of an interface.
fn gauge_of(value: fn(&Status) -> f64) -> impl Fn(&Status) -> Option<(Vec<Label>, Value)> {
    move |one| Some((vec![name(one)], Value::Gauge(value(one))))
}

/// A class in a direction of an interface.
type ClassSeries<'a> = (&'a Status, &'a DirectionStatus, &'a ClassStatus);

fn classes(sample: &Sample) -> impl Iterator<Item = ClassSeries<'_>> {
    sample.interfaces.iter().flat_map(|one| {
        one.directions.iter().flat_map(move |side| side.classes.iter().map(move |class| (one, side, class)))
    })
}

/// Packets that classes have sent, dropped and marked, and those in their queues.
fn of_packets(sample: &Sample) -> Vec<Family> {
    let count =
        |value: fn(&ClassStatus) -> u64| move |place: ClassSeries| Some((labels(place), Value::Count(value(place.2))));
    let gauge = |value: fn(&ClassStatus) -> u64| {
        move |place: ClassSeries| Some((labels(place), Value::Gauge(value(place.2) as f64)))
    };
    let drops = classes(sample).flat_map(|place| reasons(place).into_iter().map(move |reason| (place, reason)));
    vec![
        Family::counter("sluice_class_sent", "Packets that left a class", packets())
            .each(classes(sample), count(|class| class.sent.pkts)),
        Family::counter("sluice_class_sent", "Bytes that left a class, link-layer headers included", Unit::Bytes)
            .each(classes(sample), count(|class| class.sent.bytes)),
        Family::counter("sluice_class_dropped", "Dropped packets, by reason", packets()).each(
            drops,
            |(place, reason)| {
                let dropped = place.2.drops.get(reason).copied().unwrap_or(0);
                let labels = [labels(place), vec![("reason", reason.to_owned())]].concat();
                Some((labels, Value::Count(dropped)))
            },
        ),
        Family::counter("sluice_class_dropped", "Dropped bytes, for any reason", Unit::Bytes)
            // A class without a count of bytes has no series, instead of a zero.
            .each(classes(sample), |place| Some((labels(place), Value::Count(place.2.dropped.bytes?)))),
        Family::counter(
            "sluice_class_marked",
            "Packets that left with congestion marked instead of being dropped",
            packets(),
        )
        .each(classes(sample), count(|class| class.marked.pkts)),
        Family::gauge("sluice_class_backlog", "Packets in the queue now", Some(packets()))
            .each(classes(sample), gauge(|class| class.backlog.pkts)),
        Family::gauge("sluice_class_backlog", "Bytes in the queue now, link-layer headers included", Some(Unit::Bytes))
            .each(classes(sample), gauge(|class| class.backlog.bytes)),
    ]
}

/// The classes' guarantees, ceilings and buckets.
fn of_rates(sample: &Sample) -> Vec<Family> {
    let fills = classes(sample).flat_map(|place| {
        let class = place.2;
        let own = [
            ("ceil", class.ceil_fill),
            ("peak", class.peak_fill),
            ("rate", class.rate_fill),
            ("shared_ceil", class.shared_ceil_fill),
        ];
        own.into_iter().filter_map(move |(bucket, fill)| Some((place, bucket, fill?)))
    });
    let per_byte = |rate: Option<u64>| rate.map(|bps| bps as f64 / 8.0);
    vec![
        Family::gauge("sluice_class_guarantee", "Rate that a class is guaranteed", bytes_per_second())
            .each(classes(sample), move |place| Some((labels(place), Value::Gauge(per_byte(place.2.rate_bps)?)))),
        Family::gauge("sluice_class_ceiling", "Rate that a class may not exceed", bytes_per_second())
            .each(classes(sample), move |place| Some((labels(place), Value::Gauge(per_byte(place.2.ceil_bps)?)))),
        Family::gauge("sluice_class_peak", "Rate at which the burst of a class's ceiling passes", bytes_per_second())
            .each(classes(sample), move |place| Some((labels(place), Value::Gauge(per_byte(place.2.peak_bps)?)))),
        Family::gauge(
            "sluice_class_bucket_fill",
            "Fill level of a class's token buckets, 0 to 1; at 0 the class waits or drops",
            Some(ratio()),
        )
        .each(fills, |(place, bucket, fill)| {
            Some(([labels(place), vec![("bucket", bucket.to_owned())]].concat(), Value::Gauge(fill)))
        }),
    ]
}

fn of_waits(sample: &Sample) -> Vec<Family> {
    vec![
        Family::new(
            "sluice_class_sojourn",
            "Time in the queue of packets that left; the sum is right to 12.5 %. Only with engine qdisc",
            Some(Unit::Seconds),
            MetricType::Histogram,
        )
        .each(classes(sample), |place| Some((labels(place), Value::Histogram(place.2.sojourn.as_ref()?.into())))),
    ]
}

fn of_rules(sample: &Sample) -> Vec<Family> {
    let all = || sample.interfaces.iter().flat_map(|one| one.rules.iter().map(move |rule| (one, rule)));
    let count = |value: fn(&RuleStatus) -> u64| {
        move |(one, rule): (&Status, &RuleStatus)| {
            let labels = vec![
                name(one),
                ("rule", rule.name.clone()),
                ("priority", rule.priority.map_or(String::new(), |priority| priority.to_string())),
                ("class", class_name(one, rule.class)),
            ];
            Some((labels, Value::Count(value(rule))))
        }
    };
    let unmatched = |value: fn(&Status) -> u64| move |one: &Status| Some((vec![name(one)], Value::Count(value(one))));
    let interfaces = || sample.interfaces.iter();
    vec![
        Family::counter("sluice_rule_matched", "Packets that a rule has matched, in both directions", packets())
            .each(all(), count(|rule| rule.matched.pkts)),
        Family::counter(
            "sluice_rule_matched",
            "Bytes that a rule has matched, link-layer headers included",
            Unit::Bytes,
        )
        .each(all(), count(|rule| rule.matched.bytes)),
        Family::counter("sluice_unmatched", "Packets that no rule has matched, in both directions", packets())
            .each(interfaces(), unmatched(|one| one.unmatched.pkts)),
        Family::counter("sluice_unmatched", "Bytes that no rule has matched, link-layer headers included", Unit::Bytes)
            .each(interfaces(), unmatched(|one| one.unmatched.bytes)),
    ]
}

/// A forward of an interface.
type ForwardSeries<'a> = (&'a Status, &'a ForwardStatus);

fn of_forwards(sample: &Sample) -> Vec<Family> {
    let all = || sample.interfaces.iter().flat_map(|one| one.forwards.iter().map(move |forward| (one, forward)));
    let labels = |(one, forward): ForwardSeries| vec![name(one), ("forward", forward.name.clone())];
    let sides = || {
        all().flat_map(|place| {
            [("clients", place.1.from_clients), ("targets", place.1.from_targets)]
                .map(|(from, count)| (place, from, count))
        })
    };
    let passed = |value: fn(Count) -> u64| {
        move |(place, from, count): (ForwardSeries, &str, Count)| {
            Some(([labels(place), vec![("from", from.to_owned())]].concat(), Value::Count(value(count))))
        }
    };
    let refused = all().flat_map(|place| ForwardStatus::REASONS.iter().map(move |reason| (place, *reason)));
    vec![
        Family::counter("sluice_forward_opened", "Connections that a forward has passed on", connections())
            .each(all(), |place| Some((labels(place), Value::Count(place.1.opened)))),
        Family::gauge("sluice_forward_open", "Connections of a forward that are open now", Some(connections()))
            .each(all(), |place| Some((labels(place), Value::Gauge(place.1.open as f64)))),
        Family::counter(
            "sluice_forward_passed",
            "Packets that a forward has passed on, by the side they came from",
            packets(),
        )
        .each(sides(), passed(|count| count.pkts)),
        Family::counter(
            "sluice_forward_passed",
            "Bytes that a forward has passed on, by the side they came from, link-layer headers included",
            Unit::Bytes,
        )
        .each(sides(), passed(|count| count.bytes)),
        Family::counter("sluice_forward_refused", "Packets that a forward has not passed on, by reason", packets())
            .each(refused, |(place, reason)| {
                let count = place.1.refused.get(reason).copied().unwrap_or(0);
                Some(([labels(place), vec![("reason", reason.to_owned())]].concat(), Value::Count(count)))
            }),
    ]
}

/// Counts by the key that `--count` names. There are none without that option.
fn of_counts(counted: &[Series]) -> Vec<Family> {
    let count = |value: fn(&Series) -> u64| move |one: &Series| Some((one.labels.clone(), Value::Count(value(one))));
    if counted.is_empty() {
        return Vec::new();
    }
    vec![
        Family::counter("sluice_counted", "Packets that arrived, by the key of --count", packets())
            .each(counted.iter(), count(|one| one.pkts)),
        Family::counter(
            "sluice_counted",
            "Bytes that arrived, by the key of --count, link-layer headers included",
            Unit::Bytes,
        )
        .each(counted.iter(), count(|one| one.bytes)),
    ]
}

/// The reasons for which a class can drop: each has a series from the beginning, so that its first drop is seen as a change.
fn reasons((one, side, class): ClassSeries) -> Vec<&'static str> {
    let queue: Vec<&'static str> = match one.engine {
        Engine::Qdisc | Engine::Xsk if side.queued => abi::drop_reasons().map(|reason| reason.name).collect(),
        Engine::Tc if side.queued => vec!["queue"],
        _ => Vec::new(),
    };
    let mut all: Vec<&'static str> = queue.into_iter().chain(abi::limit_names()).chain(["malformed"]).collect();
    all.extend(class.drops.keys());
    all.sort_unstable();
    all.dedup();
    all
}

fn labels((one, side, class): ClassSeries) -> Vec<Label> {
    vec![name(one), direction(side), ("class", class.name.clone())]
}

fn direction(side: &DirectionStatus) -> Label {
    ("direction", side.direction.to_owned())
}

fn class_name(one: &Status, id: u8) -> String {
    let classes = one.directions.iter().flat_map(|side| &side.classes);
    classes.into_iter().find(|class| class.id == id).map_or_else(|| id.to_string(), |class| class.name.clone())
}

/// The text of a value that is a string in JSON.
fn text(of: impl serde::Serialize) -> String {
    serde_json::to_value(of).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
