//! Names of what is counted. The lists of `abi/` have them; here they are only asked for.

use crate::generated as abi;
use std::ffi::{CStr, c_char};

unsafe extern "C" {
    fn sl_drop_name(reason: u32) -> *const c_char;
    fn sl_drop_text(reason: u32) -> *const c_char;
    fn sl_limit_name(limit: u32) -> *const c_char;
    fn sl_parse_name(kind: u32) -> *const c_char;
    fn sl_discipline_line(kind: u32) -> *const abi::sl_discipline_line;
    fn sl_rank_line(rank: u32) -> *const abi::sl_discipline_line;
}

fn text(name: *const c_char) -> &'static str {
    // SAFETY: the functions return string literals.
    unsafe { CStr::from_ptr(name) }.to_str().unwrap_or_default()
}

/// A discipline (`enum sl_kind`) or a rank function (`enum sl_rank`), as its list in `abi/disciplines.h` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discipline {
    /// The number in a configuration.
    pub number: u32,
    /// The name in policies.
    pub name: &'static str,
    /// Keys of a class that have an effect: `SL_KEY_`.
    pub keys: u32,
    /// The measure by which classes share the link, an `enum sl_share`; unused for a rank function.
    pub share: u32,
    /// The discipline that replaces it on engine `tc`: an `enum sl_kind`.
    pub on_tc: u32,
    /// The class that a discipline sends next, or the rank that a rank function gives.
    pub text: &'static str,
}

impl Discipline {
    fn of(number: u32, line: *const abi::sl_discipline_line) -> Discipline {
        // SAFETY: it points to a constant of the program.
        let line = unsafe { &*line };
        let (keys, share, on_tc) = (line.keys, line.share, line.on_tc);
        Discipline { number, name: text(line.name), keys, share, on_tc, text: text(line.text) }
    }
}

/// The discipline of this number, below `SL_KINDS`; else it panics.
pub fn discipline(kind: u32) -> Discipline {
    assert!(kind < abi::SL_KINDS, "no discipline has number {kind}");
    // SAFETY: the number is in range.
    Discipline::of(kind, unsafe { sl_discipline_line(kind) })
}

/// The rank function of this number, below `SL_RANKS`; else it panics.
pub fn rank_function(rank: u32) -> Discipline {
    assert!(rank < abi::SL_RANKS, "no rank function has number {rank}");
    // SAFETY: the number is in range.
    Discipline::of(rank, unsafe { sl_rank_line(rank) })
}

/// Every discipline, by number.
pub fn disciplines() -> impl Iterator<Item = Discipline> {
    (0..abi::SL_KINDS).map(discipline)
}

/// Every rank function of a PIFO, by number.
pub fn rank_functions() -> impl Iterator<Item = Discipline> {
    (0..abi::SL_RANKS).map(rank_function)
}

/// Why a packet was dropped: an `enum sl_drop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropReason {
    /// Index into `dropped_pkts`.
    pub index: u32,
    /// As shown in JSON and metrics.
    pub name: &'static str,
    /// As shown to a person.
    pub text: &'static str,
}

/// Every reason there is.
pub fn drop_reasons() -> impl Iterator<Item = DropReason> {
    // SAFETY: takes a number.
    let strings = |index| unsafe { (text(sl_drop_name(index)), text(sl_drop_text(index))) };
    (0..abi::SL_DROPS).map(move |index| {
        let (name, text) = strings(index);
        DropReason { index, name, text }
    })
}

/// The names of each `enum sl_limit` in JSON and metrics.
pub fn limit_names() -> impl Iterator<Item = &'static str> {
    // SAFETY: takes a number.
    (0..abi::SL_LIMITS).map(|limit| text(unsafe { sl_limit_name(limit) }))
}

/// The name of an `enum sl_limit`.
pub fn limit_name(limit: abi::sl_limit) -> &'static str {
    // SAFETY: takes a number.
    text(unsafe { sl_limit_name(limit) })
}

/// The names of each `enum sl_refusal` but the first, which is none.
pub fn refusal_names() -> impl Iterator<Item = &'static str> {
    drop_reasons().map(|reason| reason.name).chain(limit_names())
}

/// The name of an `enum sl_verdict`: unknown, passed, or that of the refusal.
pub fn verdict_name(verdict: u8) -> &'static str {
    match u32::from(verdict) {
        abi::SL_VERDICT_UNKNOWN => "unknown",
        abi::SL_VERDICT_PASSED => "passed",
        refused => {
            let place = refused.checked_sub(abi::SL_VERDICT_REFUSED + 1);
            place.and_then(|place| refusal_names().nth(place as usize)).unwrap_or("refused")
        }
    }
}

/// The name of an `enum sl_proto_index`: of an IP protocol, or its number; of neighbour discovery, of ARP, or of what is neither.
pub fn protocol_name(number: u16) -> String {
    match number {
        1 => "icmp".to_owned(),
        2 => "igmp".to_owned(),
        6 => "tcp".to_owned(),
        17 => "udp".to_owned(),
        33 => "dccp".to_owned(),
        41 => "ipv6".to_owned(),
        47 => "gre".to_owned(),
        50 => "esp".to_owned(),
        51 => "ah".to_owned(),
        58 => "icmpv6".to_owned(),
        132 => "sctp".to_owned(),
        256 => "nd".to_owned(),
        257 => "arp".to_owned(),
        258 => "other".to_owned(),
        number => number.to_string(),
    }
}

/// The kind of a parsed packet: an `enum sl_parse_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseKind {
    /// Index into the counters of a direction.
    pub index: u32,
    /// As shown in JSON and metrics.
    pub name: &'static str,
    /// Whether the headers were malformed or truncated.
    pub malformed: bool,
}

/// Every kind there is.
pub fn parse_kinds() -> impl Iterator<Item = ParseKind> {
    (0..abi::SL_PARSES).map(|index| ParseKind {
        index,
        // SAFETY: takes a number.
        name: text(unsafe { sl_parse_name(index) }),
        malformed: abi::SL_MALFORMED >> index & 1 == 1,
    })
}

/// The times that bucket `b` of a sojourn histogram holds: from, and up to but not including, in ns.
pub fn sojourn_bucket_ns(b: usize) -> (u64, u64) {
    let low = |b: u64| if b < 4 { b } else { (4 + b % 4) << (b / 4 - 1) };
    let b = b as u64;
    (low(b) << 10, low(b + 1) << 10)
}

/// The middle of the bucket of a sojourn histogram in which a quantile (0 to 1) lies, microseconds: right to 12.5 %. None: the histogram is empty.
pub fn sojourn_quantile_us(count: &[u64], quantile: f64) -> Option<f64> {
    let rank = ((count.iter().sum::<u64>() as f64 * quantile).ceil() as u64).max(1);
    let mut seen = 0;
    count.iter().enumerate().find_map(|(bucket, count)| {
        seen += count;
        let (from, to) = sojourn_bucket_ns(bucket);
        (*count > 0 && seen >= rank).then_some((from + to) as f64 / 2e3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_and_kind_has_a_name_of_its_own() {
        let names: Vec<&str> =
            drop_reasons().map(|reason| reason.name).chain(parse_kinds().map(|kind| kind.name)).collect();
        assert!(
            names
                .iter()
                .enumerate()
                .all(|(i, name)| !name.is_empty() && !names[..i].contains(name) || *name == "malformed")
        );
        assert!(drop_reasons().all(|reason| !reason.text.is_empty()));
    }

    #[test]
    fn what_ends_early_is_malformed() {
        assert!(parse_kinds().all(|kind| kind.malformed == kind.name.starts_with(['t', 'b', 'd'])));
    }

    #[test]
    fn buckets_join_without_gaps() {
        for b in 0..126 {
            assert_eq!(sojourn_bucket_ns(b).1, sojourn_bucket_ns(b + 1).0, "bucket {b}");
        }
    }
}
