//! The counters of both ways, as text and as JSON.

use crate::dpdk::Counts;
use crate::way::Way;
use serde_json::{Map, Value, json};
use sluice_abi as abi;
use sluice_policy::Resolved;
use std::fmt::Write;

/// One way, with the names of its ports.
pub struct Reported<'a> {
    /// The port at which packets arrive.
    pub from: &'a str,
    /// The port that takes them.
    pub to: &'a str,
    /// Its policy.
    pub policy: &'a Resolved,
    /// The way, with its counters.
    pub way: &'a Way,
    /// The counters of the first port's driver.
    pub received: Counts,
    /// The counters of the second port's driver.
    pub sent: Counts,
}

/// The drops of a class, by reason.
fn dropped(way: &Way, class: usize) -> Vec<(&'static str, u64)> {
    let of_scheduler = &way.scheduler().classes[class].dropped_pkts;
    let malformed = way.classes()[class].malformed_pkts;
    let count = |reason: abi::DropReason| {
        let own = if reason.index == abi::SL_DROP_MALFORMED { malformed } else { 0 };
        (reason.name, of_scheduler[reason.index as usize] + own)
    };
    let control = way.classes()[class].control_limited_pkts;
    abi::drop_reasons().map(count).chain([(abi::limit_name(abi::SL_LIMIT_CONTROL), control)]).collect()
}

/// Everything, as JSON.
pub fn json(ways: &[Reported<'_>]) -> Value {
    let port = |counts: &Counts| {
        json!({
            "received_packets": counts.received_pkts, "sent_packets": counts.sent_pkts,
            "missed_packets": counts.missed_pkts, "receive_errors": counts.receive_errors,
            "send_errors": counts.send_errors, "without_memory": counts.without_memory,
        })
    };
    let way = |reported: &Reported<'_>| {
        let way = reported.way;
        let class = |class: &sluice_policy::ResolvedClass| {
            let id = usize::from(class.id.0);
            let (own, of_scheduler) = (&way.classes()[id], &way.scheduler().classes[id]);
            let drops: Map<String, Value> =
                dropped(way, id).into_iter().map(|(name, n)| (name.into(), n.into())).collect();
            let sojourn = &way.scheduler().sojourn[id];
            json!({
                "id": id, "name": class.name, "list": way.list_of(id as u32),
                "arrived_packets": own.came.pkts, "arrived_bytes": own.came.bytes,
                "packets": own.taken.pkts, "bytes": own.taken.bytes, "marked_packets": of_scheduler.marked_pkts,
                "dropped_packets": drops,
                "queued_packets": of_scheduler.backlog_pkts, "waiting_for_port_packets": own.listed_pkts,
                "waited_p50_us": abi::sojourn_quantile_us(&sojourn.count, 0.5), "waited_p99_us": abi::sojourn_quantile_us(&sojourn.count, 0.99),
            })
        };
        let list = |list: u32| {
            let (lists, at) = (way.lists(), list as usize);
            json!({ "taken_packets": lists.taken_pkts[at], "refused_by_port": lists.refused_pkts[at] })
        };
        json!({
            "from": reported.from, "to": reported.to,
            "rate_bits_per_s": reported.policy.link_rate.map(|rate| rate.0),
            "classes": reported.policy.classes.iter().map(class).collect::<Vec<_>>(),
            "never_queued": { "taken_packets": way.ahead_taken_pkts() },
            "lists": (0..way.list_count()).map(list).collect::<Vec<_>>(),
            "from_port": port(&reported.received), "to_port": port(&reported.sent),
        })
    };
    json!({ "ways": ways.iter().map(way).collect::<Vec<_>>() })
}

/// Everything, as tables.
pub fn text(ways: &[Reported<'_>]) -> String {
    let mut out = String::new();
    for Reported { from, to, policy, way, received, sent } in ways {
        let rate = policy.link_rate.map_or("the port's own rate".to_owned(), |rate| rate.to_string());
        let _ = writeln!(out, "{from} to {to}, {rate}:");
        let _ = writeln!(
            out,
            "  {:<20}{:>12}{:>12}{:>15}{:>10}{:>9}{:>11}{:>11}{:>11}",
            "class", "arrived", "packets", "bytes", "dropped", "waiting", "p50 us", "p99 us", "refused"
        );
        for class in &policy.classes {
            let id = usize::from(class.id.0);
            let own = &way.classes()[id];
            let drops: u64 = dropped(way, id).iter().map(|(_, pkts)| pkts).sum();
            let waiting = u64::from(way.scheduler().classes[id].backlog_pkts) + own.listed_pkts;
            let sojourn = &way.scheduler().sojourn[id];
            let time = |quantile| {
                abi::sojourn_quantile_us(&sojourn.count, quantile).map_or("-".to_owned(), |us| format!("{us:.0}"))
            };
            let refused = way.lists().refused_pkts[way.list_of(id as u32) as usize];
            let _ = writeln!(
                out,
                "  {:<20}{:>12}{:>12}{:>15}{:>10}{:>9}{:>11}{:>11}{:>11}",
                class.name,
                own.came.pkts,
                own.taken.pkts,
                own.taken.bytes,
                drops,
                waiting,
                time(0.5),
                time(0.99),
                refused
            );
        }
        for (port, what, pkts) in [
            (from, "had no room for", received.missed_pkts),
            (from, "had no memory for", received.without_memory),
            (from, "received with errors", received.receive_errors),
            (to, "took and did not send", sent.send_errors),
        ] {
            if pkts > 0 {
                let _ = writeln!(out, "  {port} {what} {pkts} packets");
            }
        }
    }
    out
}

/// One line for each way: what has come and gone since the line before.
pub fn line(ways: &[Reported<'_>], before: &mut Vec<(u64, u64)>) -> String {
    before.resize(ways.len(), (0, 0));
    let of_way = |(reported, before): (&Reported<'_>, &mut (u64, u64))| {
        let classes = reported.way.classes();
        let now: (u64, u64) = (classes.iter().map(|c| c.came.pkts).sum(), classes.iter().map(|c| c.taken.pkts).sum());
        let listed: u64 = classes.iter().map(|class| class.listed_pkts).sum();
        let waiting = u64::from(reported.way.scheduler().backlog_pkts) + listed;
        let (came, gone) = (now.0 - before.0, now.1 - before.1);
        *before = now;
        format!("{} to {}: {came} came, {gone} went, {waiting} wait", reported.from, reported.to)
    };
    ways.iter().zip(before.iter_mut()).map(of_way).collect::<Vec<_>>().join("; ")
}
