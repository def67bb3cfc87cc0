//! A policer compiled from a policy, in simulated time: passed bits at rates from 64 kbit/s to 100 Gbit/s.

use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use sluice_abi as abi;
use sluice_core::police::{Bucket, cost, time};
use sluice_policy::{Context, Source};

const BURST: u64 = 256 * 1024;
const PEAK_BURST: u64 = 3028;
const NS_PER_S: u128 = 1_000_000_000;
const PACKETS: u32 = 20_000;
/// Most packets at once: while the largest packets arrive at twice the rate, the refill always fits the bucket.
const MAX_AT_ONCE: u32 = 7;

/// The bucket of an interface that is limited to a rate.
fn bucket_of(bps: u64) -> abi::sl_police_conf {
    let text = format!(
        r#"{{ "scheduler": "round_robin", "classes": [{{ "id": 0 }}],
              "limits": {{ "ingress": "{bps}bit", "ingress_burst": "256kb" }} }}"#
    );
    tables_of(text).interface_police[abi::SL_INGRESS as usize]
}

/// The buckets of a policed class: of its ceiling and of its peak.
fn buckets_of(ceil: u64, peak: u64) -> [abi::sl_police_conf; 2] {
    let text = format!(
        r#"{{ "scheduler": "round_robin", "classes": [{{ "id": 3, "police": true, "ceil": "{ceil}bit", "burst": "256kb",
              "peak": "{peak}bit", "peak_burst": {PEAK_BURST} }}] }}"#
    );
    let tables = tables_of(text);
    for (direction, limited) in tables.limited.iter().enumerate() {
        assert_eq!((*limited, tables.police[direction][3].cost > 0), (1 << 3, true), "in both directions");
    }
    [tables.police[abi::SL_EGRESS as usize][3], tables.peak_police[3]]
}

fn tables_of(text: String) -> Box<abi::sl_tables> {
    let policy = sluice_policy::parse(&Source::new("policing", text)).expect("valid");
    let resolved = sluice_policy::resolve(&policy, &Context::default()).expect("resolves");
    let context = sluice_tables::Context::ethernet(&[]);
    sluice_tables::compile(&resolved, &context).expect("compiles").tables
}

/// The packets that passed.
struct Passed {
    bits: u128,
    time_ns: u64,
}

/// Offers packets of these sizes in bunches, at twice the rate. In any window no more passes than the rate, the burst and one
/// packet.
fn offer(bps: u64, sizes: &[u32], bunches: &[u32]) -> Result<Passed, TestCaseError> {
    let (bucket, conf) = (Bucket::default(), bucket_of(bps));
    let (start_ns, mut bits) = (3_000_000_000_u64, 0_u128);
    // Offered bits, times 1e9; and bits above the rate in the window with the most of them, times 1e9.
    let (mut offered, mut beyond, mut before_ns, mut now_ns) = (0_u128, 0_u128, start_ns, start_ns);
    let (mut sizes, mut bunches) = (sizes.iter().cycle(), bunches.iter().cycle());
    let mut left = 0;
    for _ in 0..PACKETS {
        let bytes = *sizes.next().unwrap_or(&64);
        if left == 0 {
            left = *bunches.next().unwrap_or(&1);
            now_ns = start_ns + (offered / (2 * u128::from(bps))) as u64;
        }
        left -= 1;
        let size = u128::from(bytes) * 8;
        offered += size * NS_PER_S;
        if bucket.take(time(now_ns), cost(conf.cost, bytes), conf.burst).is_none() {
            continue;
        }
        bits += size;
        beyond = beyond.saturating_sub(u128::from(bps) * u128::from(now_ns - before_ns)) + size * NS_PER_S;
        before_ns = now_ns;
        prop_assert!(
            beyond <= (u128::from(BURST) * 8 + size) * NS_PER_S,
            "{} bits beyond {bps} bit/s and a burst, at {now_ns}",
            beyond / NS_PER_S - u128::from(BURST) * 8
        );
    }
    Ok(Passed { bits, time_ns: now_ns - start_ns })
}

/// A bucket, and how much more than its rate has passed in the window with the most of it, times 1e9.
struct Watched {
    bucket: Bucket,
    conf: abi::sl_police_conf,
    bps: u64,
    burst: u64,
    beyond: u128,
}

impl Watched {
    fn of(conf: abi::sl_police_conf, bps: u64, burst: u64) -> Watched {
        Watched { bucket: Bucket::default(), conf, bps, burst, beyond: 0 }
    }

    fn is_open(&self, now_ns: u64) -> bool {
        self.bucket.full() <= time(now_ns) + self.conf.burst
    }

    /// A packet passes, and the hook charges it. In no window does more pass than the rate, the burst and a packet.
    fn passes(&mut self, bytes: u32, now_ns: u64, since_ns: u64, is_charged: bool) -> TestCaseResult {
        if is_charged {
            let taken = self.bucket.take(time(now_ns), cost(self.conf.cost, bytes), self.conf.burst);
            prop_assert!(taken.is_some(), "it was open");
        }
        let bits = u128::from(bytes) * 8;
        self.beyond = self.beyond.saturating_sub(u128::from(self.bps) * u128::from(since_ns)) + bits * NS_PER_S;
        let most = (u128::from(self.burst) * 8 + bits) * NS_PER_S;
        prop_assert!(self.beyond <= most, "{} beyond {} bit/s, {most} may, at {now_ns}", self.beyond, self.bps);
        Ok(())
    }
}

/// Offers packets to a policed class at twice its peak. What passes is within both buckets in every window, and over the whole time
/// 99 % of what both allow. `charged`: whether a packet is charged to the ceiling, and to the peak.
fn offer_to_class(ceil: u64, times: u64, sizes: &[u32], charged: [bool; 2]) -> TestCaseResult {
    let peak = ceil * times;
    let [of_ceil, of_peak] = buckets_of(ceil, peak);
    let (mut ceil, mut peak) = (Watched::of(of_ceil, ceil, BURST), Watched::of(of_peak, peak, PEAK_BURST));
    let (start_ns, mut offered, mut passed, mut last_ns) = (3_000_000_000_u64, 0_u128, 0_u128, 3_000_000_000_u64);
    let (mut refused, mut now_ns) = ([0; 2], start_ns);
    for bytes in sizes.iter().cycle().take(PACKETS as usize) {
        now_ns = start_ns + (offered / (2 * u128::from(peak.bps))) as u64;
        offered += u128::from(*bytes) * 8 * NS_PER_S;
        if !ceil.is_open(now_ns) || !peak.is_open(now_ns) {
            refused[usize::from(ceil.is_open(now_ns))] += 1;
            continue;
        }
        ceil.passes(*bytes, now_ns, now_ns - last_ns, charged[0])?;
        peak.passes(*bytes, now_ns, now_ns - last_ns, charged[1])?;
        (last_ns, passed) = (now_ns, passed + u128::from(*bytes) * 8);
    }
    let in_time =
        |of: &Watched| u128::from(of.bps) * u128::from(now_ns - start_ns) / NS_PER_S + u128::from(of.burst) * 8;
    let due = in_time(&ceil).min(in_time(&peak));
    prop_assert!(passed * 100 + 100 * 12_112 >= due * 99, "{passed} bits of {due} passed; refused {refused:?}");
    prop_assert!(refused[1] > 0, "the peak refused nothing");
    prop_assert!(times > 1 || refused[0] == 0, "a peak of the ceiling's rate and a smaller burst is the only limit");
    Ok(())
}

/// Under overload the rate passes to 0.1 %.
fn most_of_it_passes(bps: u64, passed: &Passed, largest: u32) -> Result<(), TestCaseError> {
    let due = u128::from(bps) * u128::from(passed.time_ns) / NS_PER_S + u128::from(BURST) * 8;
    // Tokens left at the end were not asked for yet, or do not suffice for the next packet.
    let slack = 64 * 8 * u128::from(largest);
    prop_assert!((passed.bits + slack) * 1000 >= due * 999, "{} bits of {due} passed at {bps} bit/s", passed.bits);
    Ok(())
}

const RATES: [u64; 10] = [
    64_000,
    999_983,
    1_000_000,
    8_388_608,
    100_000_000,
    1_000_000_000,
    1_234_567_891,
    2_500_000_000,
    10_000_000_000,
    100_000_000_000,
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_window_and_the_long_run(
        sizes in prop::collection::vec(64..=65_535_u32, 1..200),
        bunches in prop::collection::vec(1..=MAX_AT_ONCE, 1..50),
    ) {
        for bps in RATES {
            let passed = offer(bps, &sizes, &bunches)?;
            most_of_it_passes(bps, &passed, 65_535)?;
        }
    }

    #[test]
    fn a_class_keeps_to_its_ceiling_and_its_peak(sizes in prop::collection::vec(64..=1_514_u32, 1..200), times in 1..20_u64) {
        for bps in [64_000, 8_388_608, 100_000_000, 1_234_567_891] {
            offer_to_class(bps, times, &sizes, [true; 2])?;
        }
    }

    /// A policer that charges one of the two buckets alone is found out.
    #[test]
    fn a_packet_is_charged_to_both(sizes in prop::collection::vec(64..=1_514_u32, 1..200), times in 2..20_u64) {
        for charged in [[true, false], [false, true]] {
            prop_assert!(offer_to_class(8_388_608, times, &sizes, charged).is_err(), "{charged:?}");
        }
    }

    /// The cost of a packet is whole sixteenths of a nanosecond, of which 64 bytes take 820 at 10 Gbit/s, and 82 at 100.
    #[test]
    fn small_packets(
        sizes in prop::collection::vec(64..=128_u32, 1..200),
        bunches in prop::collection::vec(1..=MAX_AT_ONCE, 1..50),
    ) {
        for bps in RATES {
            let passed = offer(bps, &sizes, &bunches)?;
            if bps <= 10_000_000_000 {
                most_of_it_passes(bps, &passed, 128)?;
            }
        }
    }
}
