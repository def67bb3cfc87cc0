//! The laws of counting and sampling, as properties of random traffic. Each must hold for the functions that are built in, and fail for
//! functions that were broken on purpose in one place.

#[path = "../../core/tests/laws/edits.rs"]
mod edits;

use edits::{Edit, Sources};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use sluice_abi as abi;
use sluice_telemetry::Functions;
use std::collections::HashMap;

const SOURCES: Sources =
    Sources { native: "crates/telemetry/src/native.c", headers: "telemetry", others: &["abi", "sched"] };

type Check = fn(&Functions) -> Result<(), String>;

/// Runs a property of random cases, the same ones each time.
fn hold<S: Strategy>(cases: &S, property: impl Fn(S::Value) -> Result<(), TestCaseError>) -> Result<(), String> {
    let config = Config { failure_persistence: None, cases: 300, ..Config::default() };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    TestRunner::new_with_rng(config, random).run(cases, property).map_err(|error| error.to_string())
}

fn key(number: u16) -> abi::sl_count_key {
    let mut key = abi::boxed_zeroed::<abi::sl_heavy_set>().way[0].key;
    key.dport = number;
    key.src = [0, 0, 1, u32::from(number) << 7];
    key
}

/// Packets of 24 keys, some of which send much more than others.
fn traffic() -> impl Strategy<Value = Vec<(u16, u32, u32)>> {
    let one = (prop_oneof![3 => 0u16..4, 2 => 4u16..24], 1u32..4, 64u32..9000);
    proptest::collection::vec(one, 1..400)
}

/// Each key in the set has sent at least what was counted and at most so much more as was missed; each other key at most what has gone.
fn counts_hold_the_truth(functions: &Functions) -> Result<(), String> {
    hold(&traffic(), |packets| {
        let mut set = abi::boxed_zeroed::<abi::sl_heavy_set>();
        let mut sent: HashMap<u16, (u64, u64)> = HashMap::new();
        for (number, pkts, bytes) in packets {
            functions.count(&mut set, &key(number), pkts, bytes);
            let truth = sent.entry(number).or_default();
            *truth = (truth.0 + u64::from(pkts), truth.1 + u64::from(bytes));
        }
        for (number, (pkts, bytes)) in sent {
            let places: Vec<_> = set.way.iter().filter(|way| way.pkts > 0 && way.key.dport == number).collect();
            prop_assert!(places.len() <= 1, "key {number} has {} places", places.len());
            match places.first() {
                Some(way) => {
                    prop_assert!(way.pkts <= pkts && pkts <= way.pkts + way.pkts_missed, "{pkts} packets: {way:?}");
                    prop_assert!(way.bytes <= bytes && bytes <= way.bytes + way.bytes_missed, "{bytes} bytes: {way:?}");
                }
                None => prop_assert!(pkts <= set.pkts_gone && bytes <= set.bytes_gone, "{pkts}, {bytes} of {number}"),
            }
        }
        Ok(())
    })
}

/// Space-Saving's guarantee: what any key can have sent without being counted is at most the bytes of all, divided by the places.
fn errors_are_bounded_by_the_traffic(functions: &Functions) -> Result<(), String> {
    hold(&traffic(), |packets| {
        let mut set = abi::boxed_zeroed::<abi::sl_heavy_set>();
        let mut all = 0;
        for (number, pkts, bytes) in packets {
            functions.count(&mut set, &key(number), pkts, bytes);
            all += u64::from(bytes);
        }
        let places = set.way.len() as u64;
        prop_assert!(set.bytes_gone <= all / places, "{} gone of {all}", set.bytes_gone);
        Ok(())
    })
}

/// The key that gives way is told, with its bytes: each key that was counted is in the set or has gone.
fn keys_that_give_way_are_told(functions: &Functions) -> Result<(), String> {
    hold(&traffic(), |packets| {
        let mut set = abi::boxed_zeroed::<abi::sl_heavy_set>();
        let (mut all, mut gone) = (0, 0);
        for (number, pkts, bytes) in packets {
            gone += functions.count(&mut set, &key(number), pkts, bytes);
            all += u64::from(bytes);
        }
        prop_assert_eq!(set.way.iter().map(|way| way.bytes).sum::<u64>() + gone, all);
        Ok(())
    })
}

/// A sum of weights is that of the packets on average, whatever the fill of the ring does meanwhile: within five standard deviations.
fn weights_are_unbiased(functions: &Functions) -> Result<(), String> {
    const RING: u32 = 1 << 16;
    const PACKETS: u32 = 20_000;
    hold(&(any::<u64>(), 0u32..RING), |(seed, most)| {
        let mut state = seed | 1;
        let (mut sum, mut variance, mut filled) = (0f64, 0f64, 0u64);
        for n in 0..PACKETS {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let step = functions.step(filled, RING);
            let weight = f64::from(1u32 << step);
            // What one packet adds to the variance of the sum: (1 - p) / p.
            variance += weight - 1.0;
            if functions.is_chosen((state >> 32) as u32, step) {
                sum += weight;
                filled += 512;
            }
            // The reader stalls now and then.
            if n % 64 == 0 && n / 1024 % 2 == 0 {
                filled = filled.min(u64::from(most) / 2);
            }
        }
        let error = (sum - f64::from(PACKETS)).abs();
        prop_assert!(error <= 5.0 * variance.sqrt() + 1e-9, "{sum} of {PACKETS}, deviation {}", variance.sqrt());
        Ok(())
    })
}

/// A ring that is half empty takes every packet, and the odds fall with its fill, to one in 2^15 where it is full.
fn odds_follow_the_fill(functions: &Functions) -> Result<(), String> {
    hold(&(12u32..=30, any::<u32>(), any::<u32>()), |(log, a, b)| {
        let ring = 1u32 << log;
        let (less, more) = (u64::from(a.min(b) % ring), u64::from(a.max(b)) % u64::from(ring));
        let (less, more) = (less.min(more), less.max(more));
        prop_assert!(functions.step(less, ring) <= functions.step(more, ring));
        prop_assert_eq!(functions.step(u64::from(ring) / 2, ring), 0);
        prop_assert_eq!(functions.step(u64::from(ring), ring), 15);
        prop_assert_eq!(functions.step(u64::from(ring) * 17 / 32 + 1, ring), 2);
        Ok(())
    })
}

/// One in n of the numbers that are drawn is chosen.
fn one_in_n_is_chosen(functions: &Functions) -> Result<(), String> {
    hold(&(1u32..5000, any::<u64>()), |(n, seed)| {
        const TRIES: u32 = 40_000;
        let mut state = seed;
        let mut chosen = 0;
        for _ in 0..TRIES {
            chosen += u32::from(functions.is_one_in(functions.draw(&mut state), n));
        }
        let odds = 1.0 / f64::from(n);
        let deviation = (f64::from(TRIES) * odds * (1.0 - odds)).sqrt();
        let error = (f64::from(chosen) - f64::from(TRIES) * odds).abs();
        prop_assert!(error <= 6.0 * deviation + 1.0, "{chosen} of {TRIES} with n = {n}");
        Ok(())
    })
}

/// A size is in the bin that begins at or below it, and bins follow each other; none is wider than an eighth of its sizes.
fn bins_hold_their_sizes(functions: &Functions) -> Result<(), String> {
    let sizes = (0u32..64, any::<u64>()).prop_map(|(shift, bits)| bits >> shift);
    hold(&sizes, |size| {
        let bin = functions.bin(size);
        prop_assert!(bin < 496, "{bin}");
        let first = functions.first(bin);
        prop_assert!(first <= size, "{size} in the bin from {first}");
        if bin < 495 {
            let next = functions.first(bin + 1);
            prop_assert!(size < next, "{size} in the bin below {next}");
            prop_assert!(size < 8 || (next - first) * 8 <= first, "{first} to {next}");
        }
        Ok(())
    })
}

macro_rules! laws {
    ($($name:ident)*) => {
        mod hold_for_the_source {
            $(#[test]
            fn $name() {
                super::$name(super::Functions::own()).unwrap_or_else(|broken| panic!("{broken}"));
            })*
        }
    };
}

laws! {
    counts_hold_the_truth
    errors_are_bounded_by_the_traffic
    keys_that_give_way_are_told
    weights_are_unbiased
    odds_follow_the_fill
    one_in_n_is_chosen
    bins_hold_their_sizes
}

/// A test for each mutant: a header, a text in it, what takes its place, and the law that must fail.
macro_rules! mutants {
    ($($name:ident breaks $law:ident: $header:literal, $line:literal => $instead:literal;)*) => {
        mod are_found_out {
            $(#[test]
            fn $name() {
                super::breaks(&super::Edit { header: $header, line: $line, instead: $instead }, super::$law);
            })*
        }
    };
}

fn breaks(edit: &Edit, law: Check) {
    // SAFETY: the object runs nothing when it is loaded, and its table is a `Functions`: the compiler saw the same `native.c`.
    let functions: &Functions = unsafe { edits::table(&SOURCES, &[*edit], "sl_telemetry_functions") };
    assert!(law(functions).is_err(), "the law holds for {edit:?}");
}

mutants! {
    newcomers_take_over_counts breaks counts_hold_the_truth:
        "heavy.h", "h->pkts = h->bytes = 0;" => "";
    newcomers_have_missed_nothing breaks counts_hold_the_truth:
        "heavy.h", "h->bytes_missed = set->bytes_gone;" => "h->bytes_missed = 0;";
    packets_that_have_gone_are_forgotten breaks counts_hold_the_truth:
        "heavy.h", "set->pkts_gone = sl_max(set->pkts_gone, h->pkts + h->pkts_missed);" =>
        "set->pkts_gone = h->pkts;";
    any_key_gives_way breaks errors_are_bounded_by_the_traffic:
        "heavy.h", "if (most < least) {" => "if (most >= least || i == 0) {";
    keys_are_known_by_their_ports breaks counts_hold_the_truth:
        "heavy.h", "(x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3]) | (x[4] ^ y[4]) | (x[5] ^ y[5])" =>
        "(x[4] ^ y[4]) >> 28";
    who_gives_way_is_not_told breaks keys_that_give_way_are_told:
        "heavy.h", "gone = h->bytes;" => "gone = h->bytes_missed;";
    weights_are_too_low breaks weights_are_unbiased:
        "sample.h", "return !(random & ((1u << (step & 31)) - 1));" => "return !(random & ((2u << (step & 31)) - 1));";
    full_rings_take_all breaks odds_follow_the_fill:
        "sample.h", "filled_bytes <= half || !each" => "filled_bytes >= half || !each";
    odds_fall_late breaks odds_follow_the_fill:
        "sample.h", "ring_bytes / 32;" => "ring_bytes / 16;";
    one_more_is_chosen breaks one_in_n_is_chosen:
        "sample.h", "(u32)((u64)random * n >> 32) == 0" => "(u32)((u64)random * n >> 32) <= 1";
    draws_are_low breaks one_in_n_is_chosen:
        "sample.h", "return (u32)(*state >> 32);" => "return (u32)(*state >> 33);";
    bins_are_wide breaks bins_hold_their_sizes:
        "bins.h", "((u32)(size >> (power - 3)) & 7)" => "((u32)(size >> (power - 3)) & 6)";
    long_sizes_lose_their_low_bits breaks bins_hold_their_sizes:
        "bins.h", "n >> 32 ? 32 + sl_log2((u32)(n >> 32))" => "n >> 32 ? 31 + sl_log2((u32)(n >> 32))";
}
