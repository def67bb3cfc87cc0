//! Names of what is counted, in the order of the C enums.

use crate::generated as abi;

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
pub const DROP_REASONS: [DropReason; abi::SL_DROPS as usize] = [
    DropReason { index: abi::SL_DROP_LIMIT_PKTS, name: "limit_pkts", text: "class at its packet limit" },
    DropReason { index: abi::SL_DROP_LIMIT_BYTES, name: "limit_bytes", text: "class at its byte limit" },
    DropReason { index: abi::SL_DROP_NO_SLOT, name: "no_slot", text: "no packet slot left" },
    DropReason { index: abi::SL_DROP_POLICED, name: "policed", text: "over its rate, policed" },
    DropReason { index: abi::SL_DROP_RESET, name: "reset", text: "queue emptied" },
    DropReason { index: abi::SL_DROP_MALFORMED, name: "malformed", text: "headers do not parse" },
];

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

const fn kind(index: u32, name: &'static str, malformed: bool) -> ParseKind {
    ParseKind { index, name, malformed }
}

/// Every kind there is.
pub const PARSE_KINDS: [ParseKind; abi::SL_PARSES as usize] = [
    kind(abi::SL_PARSE_IPV4, "ipv4", false),
    kind(abi::SL_PARSE_IPV6, "ipv6", false),
    kind(abi::SL_PARSE_ARP, "arp", false),
    kind(abi::SL_PARSE_OTHER, "other", false),
    kind(abi::SL_PARSE_FRAGMENT, "fragment", false),
    kind(abi::SL_PARSE_TRUNCATED_L2, "truncated_l2", true),
    kind(abi::SL_PARSE_TRUNCATED_L3, "truncated_l3", true),
    kind(abi::SL_PARSE_TRUNCATED_L4, "truncated_l4", true),
    kind(abi::SL_PARSE_BAD_IPV4, "bad_ipv4", true),
    kind(abi::SL_PARSE_BAD_IPV6, "bad_ipv6", true),
    kind(abi::SL_PARSE_DEEP_IPV6, "deep_ipv6", true),
];

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
    fn tables_follow_their_enums() {
        assert!(DROP_REASONS.iter().enumerate().all(|(i, r)| r.index as usize == i));
        assert!(PARSE_KINDS.iter().enumerate().all(|(i, k)| k.index as usize == i));
    }

    #[test]
    fn buckets_join_without_gaps() {
        for b in 0..126 {
            assert_eq!(sojourn_bucket_ns(b).1, sojourn_bucket_ns(b + 1).0, "bucket {b}");
        }
    }
}
