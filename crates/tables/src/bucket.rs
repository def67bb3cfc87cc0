//! Rates and bursts as token buckets hold them: time per byte, and time.

use sluice_abi as abi;
use sluice_policy::{Bytes, Rate};

const NS_PER_S: u128 = 1_000_000_000;
/// Bound of a cost, so that its product with a packet of up to 256 KiB fits 64 bits. Rates below 120 bit/s count as that.
const MAX_COST: u64 = 1 << 46;

/// Nanoseconds per byte at this rate, times 2^20, rounded to the nearest: `struct sl_bucket.cost`.
pub fn cost(rate: Rate) -> u64 {
    per_byte(rate, 1 << 20)
}

/// The duration of this many bytes at this rate, ns.
pub fn duration_ns(bytes: Bytes, rate: Rate) -> u64 {
    scaled(u128::from(bytes.0) * 8 * NS_PER_S, rate)
}

/// Burst of a shaped link where the policy names none: it makes up for a late timer, and is far less than a frame at the rates
/// where a burst is felt.
const LINK_BURST_NS: u64 = 250_000;
/// Burst of a guarantee: the amount that a class may catch up after other classes' guarantees went first.
const GUARANTEE_BURST_NS: u64 = 5_000_000;
const GUARANTEE_BURST_BYTES: Bytes = Bytes(3028);

/// Burst of a shaped link, ns at its rate.
pub(crate) fn link_burst_ns(told: Option<Bytes>, rate: Rate) -> u64 {
    told.map_or(LINK_BURST_NS, |burst| duration_ns(burst, rate))
}

/// Burst of a guarantee, ns at its rate.
pub(crate) fn guarantee_burst_ns(rate: Rate) -> u64 {
    GUARANTEE_BURST_NS.max(duration_ns(GUARANTEE_BURST_BYTES, rate))
}

/// A policer's bucket: burst in 1/16 ns, cost of a byte in 2^-20 ns. Costs round up, bursts down.
pub(crate) fn police(rate: Rate, burst: Bytes) -> abi::sl_police_conf {
    let bps = u128::from(rate.0.max(1));
    let per_byte = (8 * NS_PER_S * (16 << 16)).div_ceil(bps);
    let burst = u128::from(burst.0) * 8 * NS_PER_S * 16 / bps;
    abi::sl_police_conf {
        cost: u64::try_from(per_byte).unwrap_or(u64::MAX).min(MAX_COST),
        burst: u64::try_from(burst).unwrap_or(u64::MAX),
    }
}

fn per_byte(rate: Rate, factor: u128) -> u64 {
    scaled(8 * NS_PER_S * factor, rate).clamp(1, MAX_COST)
}

fn scaled(amount: u128, rate: Rate) -> u64 {
    let bps = u128::from(rate.0.max(1));
    u64::try_from((amount + bps / 2) / bps).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_megabit_takes_8_us_a_byte() {
        assert_eq!(cost(Rate(1_000_000)), 8000 << 20);
        assert_eq!(duration_ns(Bytes(125_000), Rate(1_000_000)), 1_000_000_000);
        let bucket = police(Rate(1_000_000), Bytes(1000));
        assert_eq!((bucket.cost, bucket.burst), ((8000 * 16) << 16, 8_000_000 * 16));
    }

    #[test]
    fn costs_are_exact_to_a_millionth_up_to_10_gbit() {
        for bps in [64_000, 19_000_000, 997_000_000, 10_000_000_000] {
            let exact = 8e9 * f64::from(1 << 20) / bps as f64;
            assert!((cost(Rate(bps)) as f64 / exact - 1.0).abs() < 1e-6, "{bps}");
        }
    }
}
