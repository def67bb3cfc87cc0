//! The resolution of a PIFO.
//!
//! A PIFO (Sivaraman et al., "Programmable Packet Scheduling at Line Rate", SIGCOMM 2016) lets the packet with the smallest
//! rank leave first. Ours keeps packets in [`PIFO_BUCKETS`] buckets of 2^shift ranks each, first in first out within
//! one (Saeed et al., "Eiffel", NSDI 2019), so it costs the same however many packets there are. It is exact to a bucket as
//! long as the ranks that are queued at one time lie within all buckets, its window. The shift is the smallest that gives a
//! window for what the policy can bring about; packets beyond it are ordered among each other by arrival.

use crate::bytes::FRAME_BYTES;
use crate::diagnostic::{Diagnostic, Kind, Severity};
use crate::link::SplitGso;
use crate::lint::class_span;
use crate::policy::{Class, Policy};
use crate::rank::Rank;
use crate::rate::Rate;
use crate::resolved::{Resolved, ResolvedClass};
use crate::scheduler::Scheduler;

/// Buckets of a PIFO: `SL_PIFO_BUCKETS` of the engine's.
pub const PIFO_BUCKETS: u32 = 4096;
/// The fastest link for which super-packets are split unless the policy says otherwise.
const SPLIT_BELOW: Rate = Rate(1_000_000_000);
/// The shift of packet lengths: 16 bytes, so that 64 KiB fit.
const SHORTEST_PACKET_SHIFT: u32 = 4;
/// The shift of the bytes that a class has brought: 4 KiB. From 16 MiB on, all classes count alike.
const LEAST_ATTAINED_SHIFT: u32 = 12;
/// The window as a multiple of the largest latency budget: packets that are late by less are still ordered.
const BUDGETS: u64 = 4;
/// The longest packet, which a queue of bytes may hold above its limit.
const LONGEST_PACKET_BYTES: u64 = 65_536;
/// A window is at most half of all ranks: they are compared by the sign of their difference.
const MAX_SHIFT: u32 = 51;
/// Virtual time is bytes of service << 32, by weight.
const VIRTUAL_SHIFT: u32 = 32;

/// `sl_sched_conf.rank_shift`: 0 without ranks.
pub fn rank_shift(policy: &Resolved) -> u32 {
    if policy.scheduler != Scheduler::PIFO {
        return 0;
    }
    match policy.rank {
        // There are fewer levels than buckets.
        Rank::PRIORITY => 0,
        Rank::SHORTEST_PACKET => SHORTEST_PACKET_SHIFT,
        Rank::LEAST_ATTAINED_SERVICE => LEAST_ATTAINED_SHIFT,
        Rank::EARLIEST_DEADLINE | Rank::SLACK => {
            let budgets = policy.classes.iter().filter_map(|class| class.latency_budget_ns);
            smallest_shift(BUDGETS * budgets.max().unwrap_or(0))
        }
        Rank::START_TIME_FAIR => {
            smallest_shift(policy.classes.iter().map(|class| virtual_span(class, policy)).max().unwrap_or(0))
        }
        // A rank of unknown span gets the longest window.
        _ => MAX_SHIFT,
    }
}

/// The resolution of a policy's PIFO as text: a time or an amount of data. `None` if the order is exact.
pub fn rank_resolution(policy: &Resolved) -> Option<String> {
    let shift = rank_shift(policy);
    match policy.rank {
        _ if policy.scheduler != Scheduler::PIFO => None,
        Rank::PRIORITY => None,
        Rank::SHORTEST_PACKET | Rank::LEAST_ATTAINED_SERVICE => Some(format!("{} bytes", 1 << shift)),
        Rank::EARLIEST_DEADLINE | Rank::SLACK => Some(time(1 << shift)),
        Rank::START_TIME_FAIR => {
            // A bucket is most bytes for the heaviest class.
            let heaviest = policy.classes.iter().map(|class| u64::from(class.weight)).max().unwrap_or(1);
            Some(format!("{} bytes", heaviest << shift >> VIRTUAL_SHIFT))
        }
        _ => None,
    }
}

/// The smallest shift whose window covers ranks from 0 to `span`.
fn smallest_shift(span: u64) -> u32 {
    (0..MAX_SHIFT).find(|shift| u64::from(PIFO_BUCKETS) << shift >= span).unwrap_or(MAX_SHIFT)
}

/// The distance in virtual time over a full queue of the class.
fn virtual_span(class: &ResolvedClass, policy: &Resolved) -> u64 {
    let longest = if splits(policy) { u64::from(FRAME_BYTES) } else { LONGEST_PACKET_BYTES };
    let pkts = u64::from(class.limit_pkts) * longest;
    let bytes = class.limit_bytes.map_or(pkts, |limit| limit.0.min(pkts)) + LONGEST_PACKET_BYTES;
    (bytes << VIRTUAL_SHIFT) / u64::from(class.weight.max(1))
}

/// Whether super-packets are queued as frames.
fn splits(policy: &Resolved) -> bool {
    match policy.split_gso {
        SplitGso::On => true,
        SplitGso::Off => false,
        SplitGso::Auto => policy.link_rate.is_some_and(|rate| rate <= SPLIT_BELOW),
    }
}

/// Findings on a policy whose order the PIFO is too coarse for.
pub(crate) fn remarks(policy: &Policy, resolved: &Resolved) -> Vec<Diagnostic> {
    if policy.scheduler != Scheduler::PIFO {
        return Vec::new();
    }
    match policy.rank {
        Rank::EARLIEST_DEADLINE => coarse_deadlines(policy, resolved).into_iter().collect(),
        Rank::SLACK => {
            coarse_deadlines(policy, resolved).into_iter().chain(slack_without_rate(policy, resolved)).collect()
        }
        Rank::START_TIME_FAIR => coarse_shares(policy, resolved).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn coarse_deadlines(policy: &Policy, resolved: &Resolved) -> Option<Diagnostic> {
    let budgets = || policy.classes.iter().enumerate().filter_map(|(place, c)| Some((c.latency_budget_ns?, place)));
    let ((least, tight), (_, loose)) = (budgets().min()?, budgets().max()?);
    if 1 << rank_shift(resolved) <= least {
        return None;
    }
    // The coarsest buckets that still distinguish the smallest budget.
    let most = (u64::from(PIFO_BUCKETS) << least.ilog2()) / BUDGETS;
    let name = |place: usize| &policy.classes[place].name;
    let title = format!(
        "the order is exact to {}, which is more than the latency budget of {}, {}",
        rank_resolution(resolved)?,
        name(tight),
        time(least)
    );
    let finding = Diagnostic::new(Severity::Warning, Kind::CoarseRank, title)
        .at(class_span(policy, tight, &["latency_budget"]), "cannot be distinguished from a smaller budget")
        .at(class_span(policy, loose, &["latency_budget"]), "the largest budget decides how fine the order is");
    Some(finding.help(format!("lower the budget of {} to {} or less", name(loose), time(most))))
}

fn slack_without_rate(policy: &Policy, resolved: &Resolved) -> Option<Diagnostic> {
    if resolved.link_rate.is_some() {
        return None;
    }
    let title = "without the link's rate, rank slack is the same as earliest_deadline";
    let finding = Diagnostic::new(Severity::Note, Kind::LinkRateUnknown, title)
        .at(policy.origin.span("/rank"), "how long a packet takes to send is not known");
    Some(finding.help("give `--rate`, or write it in the policy, as in `\"link\": { \"rate\": \"20mbit\" }`"))
}

fn coarse_shares(policy: &Policy, resolved: &Resolved) -> Option<Diagnostic> {
    let heaviest = resolved.classes.iter().map(|class| u64::from(class.weight)).max()?;
    if heaviest << rank_shift(resolved) >> VIRTUAL_SHIFT <= 2 * u64::from(FRAME_BYTES) {
        return None;
    }
    let longest = resolved.classes.iter().max_by_key(|class| virtual_span(class, resolved))?;
    let own = |class: &&Class| class.id == longest.id;
    let place = policy.classes.iter().position(|class| own(&class))?;
    let title = format!(
        "shares are exact to {}, which is more than two full frames: the queue of {} may be that long",
        rank_resolution(resolved)?,
        longest.name
    );
    let finding = Diagnostic::new(Severity::Warning, Kind::CoarseRank, title)
        .at(class_span(policy, place, &["limit", "weight", "id"]), format!("up to {} packets", longest.limit_pkts));
    let help =
        "give the classes limits in bytes, as in `\"limit\": \"256kb\"`, or use weighted_fair_queuing, which is exact";
    let finding = finding.help(help);
    Some(match splits(resolved) {
        true => finding,
        false => finding.help("super-packets are not split here, so each packet may be one of 64 KiB"),
    })
}

fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.0} us", ns as f64 / 1e3),
        _ => format!("{:.0} ms", ns as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolved::Context;
    use crate::source::Source;

    fn resolved(rest: &str) -> Resolved {
        at_rate(rest, Some(Rate(20_000_000)))
    }

    fn at_rate(rest: &str, link_rate: Option<Rate>) -> Resolved {
        let text = format!("{{ \"scheduler\": {rest} }}");
        let policy = crate::parse(&Source::new("test.json", text)).unwrap_or_else(|errors| panic!("{errors}"));
        crate::resolve(&policy, &Context { link_rate, ..Context::default() })
            .unwrap_or_else(|errors| panic!("{errors}"))
    }

    /// The shift of a PIFO and its resolution.
    fn pifo(rank: &str, classes: &str) -> (u32, Option<String>) {
        let policy = resolved(&format!("\"pifo\", \"rank\": \"{rank}\", \"classes\": [{classes}]"));
        (rank_shift(&policy), rank_resolution(&policy))
    }

    fn window(shift: u32) -> u64 {
        u64::from(PIFO_BUCKETS) << shift
    }

    #[test]
    fn few_ranks_are_exact() {
        assert_eq!(pifo("priority", r#"{ "id": 0, "priority": 7 }"#), (0, None));
        let fair = resolved(r#""weighted_fair_queuing", "classes": [{ "id": 0 }]"#);
        assert_eq!((rank_shift(&fair), rank_resolution(&fair)), (0, None), "nothing is ranked");
    }

    #[test]
    fn lengths_and_amounts_have_fixed_windows() {
        assert_eq!(pifo("shortest_packet", r#"{ "id": 0 }"#), (4, Some("16 bytes".into())));
        assert_eq!(window(4), 65_536);
        assert_eq!(pifo("least_attained_service", r#"{ "id": 0 }"#), (12, Some("4096 bytes".into())));
        assert_eq!(window(12), 16 << 20);
    }

    #[test]
    fn deadlines_fit_four_times_the_largest_budget() {
        for rank in ["earliest_deadline", "slack"] {
            for (budget, ns, shift, resolution) in [
                ("100us", 100_000, 7, "128 ns"),
                ("1ms", 1_000_000, 10, "1 us"),
                ("50ms", 50_000_000, 16, "66 us"),
                ("10s", 10_000_000_000, 24, "17 ms"),
            ] {
                let classes =
                    format!(r#"{{ "id": 0, "latency_budget": "100us" }}, {{ "id": 1, "latency_budget": "{budget}" }}"#);
                assert_eq!(pifo(rank, &classes), (shift, Some(resolution.into())), "{budget}");
                assert!(window(shift) >= 4 * ns && window(shift - 1) < 4 * ns);
            }
        }
    }

    #[test]
    fn virtual_time_fits_the_longest_queue() {
        // 100 packets of 1514 bytes and one of 64 KiB make 216,936 bytes, of which a 4,096th is 53.
        assert_eq!(pifo("start_time_fair", r#"{ "id": 0, "limit": 100 }"#), (32 + 6, Some("64 bytes".into())));
        // Bytes decide where they are fewer.
        assert_eq!(
            pifo("start_time_fair", r#"{ "id": 0, "limit": "60kb" }"#),
            (32 + 5, Some("32 bytes".into())),
            "126,976 bytes"
        );
        // Three times the weight is three times the bytes in a bucket, and a third of the way in virtual time.
        let classes = r#"{ "id": 0, "limit": 100 }, { "id": 1, "limit": 100, "weight": 3 }"#;
        assert_eq!(pifo("start_time_fair", classes), (32 + 6, Some("192 bytes".into())));
        assert_eq!(
            pifo("start_time_fair", r#"{ "id": 0, "limit": 1, "weight": 65535 }"#),
            (21, Some("31 bytes".into())),
            "far less than a byte for each unit of weight"
        );
    }

    #[test]
    fn super_packets_fit_where_they_are_not_split() {
        let span = |rest: &str, rate: Option<u64>| {
            let classes = r#""classes": [{ "id": 0, "limit": 100 }, { "id": 1, "limit": "64kb" }]"#;
            let policy = at_rate(&format!(r#""pifo", "rank": "start_time_fair", {rest} {classes}"#), rate.map(Rate));
            [0, 1].map(|class| virtual_span(&policy.classes[class], &policy) >> VIRTUAL_SHIFT)
        };
        let (frames, whole, bytes) = (100 * 1514 + 65_536, 101 * 65_536, 2 * 65_536);
        assert_eq!(span("", Some(1_000_000_000)), [frames, bytes]);
        assert_eq!(span("", Some(1_000_000_001)), [whole, bytes]);
        assert_eq!(span("", None), [whole, bytes]);
        assert_eq!(span(r#""link": { "split_gso": "off" },"#, Some(20_000_000)), [whole, bytes]);
        assert_eq!(span(r#""link": { "split_gso": "on" },"#, None), [frames, bytes]);
    }

    #[test]
    fn the_largest_shift_leaves_room_in_64_bits() {
        let (shift, _) = pifo("start_time_fair", r#"{ "id": 0, "limit": 16384 }"#);
        assert!(shift < MAX_SHIFT, "{shift}");
        assert_eq!(smallest_shift(u64::MAX), MAX_SHIFT);
        assert_eq!(window(MAX_SHIFT), 1 << 63);
    }
}
