//! Names of what is counted. The lists of `abi/` have them; here they are only asked for.

use crate::generated as abi;
use std::ffi::{CStr, c_char};

unsafe extern "C" {
    fn sl_drop_name(reason: u32) -> *const c_char;
    fn sl_drop_text(reason: u32) -> *const c_char;
    fn sl_limit_name(limit: u32) -> *const c_char;
    fn sl_parse_name(kind: u32) -> *const c_char;
}

fn text(name: *const c_char) -> &'static str {
    // SAFETY: the functions return string literals.
    unsafe { CStr::from_ptr(name) }.to_str().unwrap_or_default()
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

/// What each `enum sl_limit` is called in JSON and metrics.
pub fn limit_names() -> impl Iterator<Item = &'static str> {
    // SAFETY: takes a number.
    (0..abi::SL_LIMITS).map(|limit| text(unsafe { sl_limit_name(limit) }))
}

/// What the parser made of a packet: an `enum sl_parse_kind`.
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
