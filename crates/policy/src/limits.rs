//! The packet limits of all classes, which together must fit the scheduler's slots.

use crate::bytes::{Bytes, FRAME_BYTES};
use crate::limit::Limit;
use crate::policy::MAX_QUEUED_PKTS;
use crate::rate::Rate;

/// The queue of a class that sets no limit, as time at its rate, ns.
const DEFAULT_TIME_NS: u64 = 100_000_000;
/// The shortest and the longest queue of a class that sets no limit, packets.
const DEFAULT_PKTS: std::ops::RangeInclusive<u32> = 64..=1000;
/// The smallest packet on Ethernet, bytes: it gives the most packets that a limit in bytes may hold.
const SMALLEST_BYTES: u64 = 64;

/// The packets and bytes that a class asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Demand {
    /// Packets that the class must get.
    pub least_pkts: u64,
    /// Packets that the class gets if there is room for them.
    pub wanted_pkts: u64,
    /// Bytes that the class may queue at most.
    pub bytes: Option<Bytes>,
    /// Whether the limit is a time at an unknown rate.
    pub rate_missing: bool,
    /// Whether the class may use all packet slots: other classes still get theirs, since an overflow drops from the longest
    /// flow.
    pub all: bool,
}

/// The demand of a class with this limit that sends at most at `rate`. `kept_short`: the class queues by flow with CoDel, so
/// its queue stays short without a limit.
pub(crate) fn demand(limit: Option<Limit>, rate: Option<Rate>, kept_short: bool) -> Demand {
    let (shortest, longest) = (u64::from(*DEFAULT_PKTS.start()), u64::from(*DEFAULT_PKTS.end()));
    let plain = |least_pkts, wanted_pkts, rate_missing| Demand {
        least_pkts,
        wanted_pkts,
        bytes: None,
        rate_missing,
        all: false,
    };
    let all = |rate_missing| Demand { all: true, ..plain(shortest, MAX_QUEUED_PKTS.into(), rate_missing) };
    match (limit, rate) {
        (Some(Limit::Pkts(pkts)), _) => plain(pkts.into(), pkts.into(), false),
        (Some(Limit::Bytes(bytes)), _) => by_bytes(bytes, longest),
        (Some(Limit::TimeNs(ns)), Some(rate)) => {
            // A limit below a frame would never admit one.
            let bytes = Bytes(rate.bytes_in_ns(ns).max(FRAME_BYTES.into()));
            let demand = by_bytes(bytes, longest);
            // A limit in time follows the rate, so that a policy does not become invalid on a faster link: only limits in
            // packets and bytes are required.
            let wanted_pkts = demand.wanted_pkts.min(MAX_QUEUED_PKTS.into());
            Demand { least_pkts: demand.least_pkts.min(shortest), wanted_pkts, ..demand }
        }
        (Some(Limit::TimeNs(_)), None) if kept_short => all(true),
        (Some(Limit::TimeNs(_)), None) => plain(shortest, longest, true),
        (None, _) if kept_short => all(false),
        (None, Some(rate)) => {
            let pkts = rate.bytes_in_ns(DEFAULT_TIME_NS).div_ceil(FRAME_BYTES.into()).clamp(shortest, longest);
            plain(shortest, pkts, false)
        }
        (None, None) => plain(shortest, longest, false),
    }
}

/// The demand of a limit in bytes: its packets must hold as many full frames, and should hold as many small packets.
fn by_bytes(bytes: Bytes, longest: u64) -> Demand {
    let least_pkts = bytes.0.div_ceil(FRAME_BYTES.into());
    let wanted_pkts = bytes.0.div_ceil(SMALLEST_BYTES).min(longest).max(least_pkts);
    Demand { least_pkts, wanted_pkts, bytes: Some(bytes), rate_missing: false, all: false }
}

/// Packets for each demand so that their sum fits: all wanted packets if possible; otherwise each gets its least, and the rest
/// is shared in proportion to the wanted packets beyond it. A class that may use all slots gets all, and takes only its least
/// from the others. `None` if not even the least fits.
pub(crate) fn fit(demands: &[Demand]) -> Option<Vec<u32>> {
    let least: u64 = demands.iter().map(|d| d.least_pkts).sum();
    let wanted: u64 = demands.iter().map(|d| if d.all { d.least_pkts } else { d.wanted_pkts }).sum();
    let left = u64::from(MAX_QUEUED_PKTS).checked_sub(least)?;
    let beyond = (wanted - least).max(1);
    let share = |d: &Demand| match d.all {
        true => d.wanted_pkts,
        false => d.least_pkts + (d.wanted_pkts - d.least_pkts) * left.min(beyond) / beyond,
    };
    // Each value is at most the whole, which is far below 2^32.
    Some(demands.iter().map(|d| share(d) as u32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MBIT: u64 = 1_000_000;

    #[test]
    fn default_limit_is_a_tenth_of_a_second_within_bounds() {
        let pkts = |mbit| demand(None, Some(Rate(mbit * MBIT)), false).wanted_pkts;
        assert_eq!(pkts(1), 64);
        assert_eq!(pkts(20), 166);
        assert_eq!(pkts(1000), 1000);
        assert_eq!(demand(None, None, false).wanted_pkts, 1000);
    }

    #[test]
    fn time_and_bytes_hold_full_frames() {
        let d = demand(Some(Limit::TimeNs(50_000_000)), Some(Rate(20 * MBIT)), false);
        assert_eq!((d.least_pkts, d.wanted_pkts, d.bytes), (64, 1000, Some(Bytes(125_000))));
        let d = demand(Some(Limit::TimeNs(50_000_000)), Some(Rate(100_000 * MBIT)), false);
        assert_eq!((d.least_pkts, d.wanted_pkts), (64, 16_384), "no rate makes it impossible");
        let d = demand(Some(Limit::Bytes(Bytes(100_000))), None, false);
        assert_eq!((d.least_pkts, d.wanted_pkts), (67, 1000));
        let d = demand(Some(Limit::Bytes(Bytes(100))), None, false);
        assert_eq!((d.least_pkts, d.wanted_pkts), (1, 2));
        assert!(demand(Some(Limit::TimeNs(1)), None, false).rate_missing);
        assert_eq!(demand(Some(Limit::TimeNs(1000)), Some(Rate(8)), false).bytes, Some(Bytes(1514)));
    }

    #[test]
    fn many_defaults_shrink_until_they_fit() {
        let set = demand(Some(Limit::Pkts(8000)), None, false);
        let mut demands = vec![demand(None, None, false); 63];
        demands.push(set);
        let pkts = fit(&demands).unwrap();
        assert_eq!(pkts[63], 8000, "what the policy sets is kept");
        assert!(pkts[..63].iter().all(|&p| (64..1000).contains(&p)));
        assert!(pkts.iter().sum::<u32>() <= MAX_QUEUED_PKTS);
        assert_eq!(fit(&[demand(None, None, false); 2]), Some(vec![1000, 1000]));
        assert_eq!(fit(&[set, set, set]), None);
    }

    #[test]
    fn flow_classes_may_use_all_slots() {
        let flows = demand(None, Some(Rate(20 * MBIT)), true);
        assert_eq!((flows.least_pkts, flows.wanted_pkts, flows.rate_missing), (64, 16_384, false));
        let missing = demand(Some(Limit::TimeNs(1_000_000)), None, true);
        assert_eq!((missing.wanted_pkts, missing.rate_missing), (16_384, true));
        assert!(!demand(Some(Limit::Pkts(500)), None, true).all, "what the policy says counts");
        let (fifo, set) = (demand(None, None, false), demand(Some(Limit::Pkts(15_000)), None, false));
        assert_eq!(fit(&[flows, fifo, flows]), Some(vec![16_384, 1000, 16_384]));
        assert_eq!(fit(&[flows, set, fifo]), Some(vec![16_384, 15_000, 1000]));
        assert_eq!(fit(&[flows, set, set]), None);
    }
}
