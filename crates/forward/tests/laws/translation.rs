//! Laws of translation between IPv4 and IPv6.

use crate::laws;
use proptest::prelude::*;
use sluice_forward::{Functions, Icmp};

laws! {
    errors_are_those_of_the_rfc;
    mtus_differ_by_the_headers: 0u32..=65_535;
}

/// Types and codes are those of RFC 7915, 4.2 and 5.2; what has no counterpart has none.
fn errors_are_those_of_the_rfc(functions: &'static Functions) {
    let to = |to_ipv6, kind, code| functions.translate(Icmp { kind, code, mtu: 0 }, to_ipv6).map(|e| (e.kind, e.code));
    for code in 0..=255 {
        let expected = match code {
            0 | 1 | 5 | 6 | 7 | 8 | 11 | 12 => Some((1, 0)),
            2 => Some((4, 1)),
            3 => Some((1, 4)),
            4 => Some((2, 0)),
            9 | 10 | 13 | 15 => Some((1, 1)),
            _ => None,
        };
        assert_eq!(to(true, 3, code), expected, "unreachable, code {code}");
        let expected = match code {
            0 | 2 | 3 => Some((3, 1)),
            1 => Some((3, 10)),
            4 => Some((3, 3)),
            _ => None,
        };
        assert_eq!(to(false, 1, code), expected, "unreachable of IPv6, code {code}");
        assert_eq!(to(true, 12, code), None, "parameter problem, code {code}");
        assert_eq!(to(false, 4, code), (code == 1).then_some((3, 2)), "parameter problem of IPv6, code {code}");
    }
    for code in 0..=1 {
        assert_eq!((to(true, 11, code), to(false, 3, code)), (Some((3, code)), Some((11, code))), "time exceeded");
    }
    let pointer = functions.translate(Icmp { kind: 3, code: 2, mtu: 0 }, true).map(|e| e.mtu);
    assert_eq!(pointer, Some(6), "the next header is the seventh byte");
    for kind in (0..=255).filter(|kind| ![1, 2, 3, 4].contains(kind)) {
        assert_eq!(to(false, kind, 0), None, "type {kind} of IPv6");
        assert!(matches!(kind, 11) || to(true, kind, 0).is_none(), "type {kind}");
    }
}

/// A packet that fits what the other family's router has said is as long, but for the difference of the headers; no IPv6 host is told of less than 1,280.
fn mtus_differ_by_the_headers(functions: &'static Functions, mtu: u32) -> Result<(), TestCaseError> {
    let mtu_of = |to_ipv6, kind, code| functions.translate(Icmp { kind, code, mtu }, to_ipv6).map(|e| e.mtu);
    prop_assert_eq!(mtu_of(true, 3, 4), Some((mtu + 20).max(1_280)));
    prop_assert_eq!(mtu_of(false, 2, 0), Some(mtu.max(1_280) - 20));
    let longest = functions.translate(Icmp { kind: 2, code: 0, mtu: u32::MAX - mtu }, false).map(|e| e.mtu);
    prop_assert_eq!(longest, Some(65_515), "it has 16 bits in IPv4");
    Ok(())
}
