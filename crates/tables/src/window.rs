//! How finely a PIFO orders.
//!
//! A PIFO (Sivaraman et al., "Programmable Packet Scheduling at Line Rate", SIGCOMM 2016) lets the packet with the smallest
//! rank leave first. Ours keeps packets in `SL_PIFO_BUCKETS` buckets of 2^shift ranks each, first in first out within
//! one (Saeed et al., "Eiffel", NSDI 2019), so it costs the same however many packets there are. It is exact to a bucket as
//! long as the ranks that are queued at one time lie within all buckets, its window. The shift is the smallest that gives a
//! window for what the policy can bring about; packets beyond it are ordered among each other by arrival.

use sluice_abi as abi;
use sluice_policy::{FRAME_BYTES, Rank, Resolved, ResolvedClass, Scheduler};

/// Of packet lengths: 16 bytes, so that 64 KiB fit.
const SHORTEST_PACKET_SHIFT: u32 = 4;
/// Of what a class has brought: 4 KiB. From 16 MiB on, all classes count alike.
const LEAST_ATTAINED_SHIFT: u32 = 12;
/// How many of the largest latency budget the window holds: packets may be that late and are still ordered.
const BUDGETS: u64 = 4;
/// The longest packet, which a queue of bytes may hold above its limit.
const LONGEST_PACKET_BYTES: u64 = 65_536;
/// A window is at most half of all ranks: they are compared by the sign of their difference.
const MOST_SHIFT: u32 = 51;
/// Virtual time is bytes of service << 32, by weight.
const VIRTUAL_SHIFT: u32 = 32;

/// `sl_sched_conf.rank_shift`: 0 where nothing is ranked.
pub(crate) fn rank_shift(policy: &Resolved) -> u32 {
    if policy.scheduler != Scheduler::Pifo {
        return 0;
    }
    match policy.rank {
        // Levels are fewer than buckets.
        Rank::Priority => 0,
        Rank::ShortestPacket => SHORTEST_PACKET_SHIFT,
        Rank::LeastAttainedService => LEAST_ATTAINED_SHIFT,
        Rank::EarliestDeadline | Rank::Slack => {
            let budgets = policy.classes.iter().filter_map(|class| class.latency_budget_ns);
            smallest_shift(BUDGETS * budgets.max().unwrap_or(0))
        }
        Rank::StartTimeFair => smallest_shift(policy.classes.iter().map(virtual_span).max().unwrap_or(0)),
    }
}

/// What the order of a policy's PIFO is exact to, for people: a time or an amount of data. None where it is exact.
pub fn rank_resolution(policy: &Resolved) -> Option<String> {
    let shift = rank_shift(policy);
    match policy.rank {
        _ if policy.scheduler != Scheduler::Pifo => None,
        Rank::Priority => None,
        Rank::ShortestPacket | Rank::LeastAttainedService => Some(format!("{} bytes", 1 << shift)),
        Rank::EarliestDeadline | Rank::Slack => Some(time(1 << shift)),
        Rank::StartTimeFair => {
            // A bucket is most bytes for the heaviest class.
            let heaviest = policy.classes.iter().map(|class| u64::from(class.weight)).max().unwrap_or(1);
            Some(format!("{} bytes", heaviest << shift >> VIRTUAL_SHIFT))
        }
    }
}

/// The smallest shift whose window covers ranks from 0 to `span`.
fn smallest_shift(span: u64) -> u32 {
    (0..MOST_SHIFT).find(|shift| u64::from(abi::SL_PIFO_BUCKETS) << shift >= span).unwrap_or(MOST_SHIFT)
}

/// How far a full queue of the class reaches in virtual time.
fn virtual_span(class: &ResolvedClass) -> u64 {
    let pkts = u64::from(class.limit_pkts) * u64::from(FRAME_BYTES);
    let bytes = class.limit_bytes.map_or(pkts, |limit| limit.0.min(pkts)) + LONGEST_PACKET_BYTES;
    (bytes << VIRTUAL_SHIFT) / u64::from(class.weight.max(1))
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
    use sluice_policy::{Context, Source};

    fn resolved(rest: &str) -> Resolved {
        let text = format!("{{ \"scheduler\": {rest} }}");
        let policy = sluice_policy::parse(&Source::new("test.json", text)).unwrap_or_else(|errors| panic!("{errors}"));
        sluice_policy::resolve(&policy, &Context::default()).unwrap_or_else(|errors| panic!("{errors}"))
    }

    /// The shift of a PIFO and its resolution.
    fn pifo(rank: &str, classes: &str) -> (u32, Option<String>) {
        let policy = resolved(&format!("\"pifo\", \"rank\": \"{rank}\", \"classes\": [{classes}]"));
        (rank_shift(&policy), rank_resolution(&policy))
    }

    fn window(shift: u32) -> u64 {
        u64::from(abi::SL_PIFO_BUCKETS) << shift
    }

    #[test]
    fn what_has_few_ranks_is_exact() {
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
    fn the_largest_shift_leaves_room_in_64_bits() {
        let (shift, _) = pifo("start_time_fair", r#"{ "id": 0, "limit": 16384 }"#);
        assert!(shift < MOST_SHIFT, "{shift}");
        assert_eq!(smallest_shift(u64::MAX), MOST_SHIFT);
        assert_eq!(window(MOST_SHIFT), 1 << 63);
    }
}
