//! Names of ICMP types (RFC 792, 1256, 4443, 4861, 2710, 3810), as policies write them.

use crate::policy::{IcmpType, Protocol};

/// Every name with its number in ICMP and in ICMPv6.
const NAMES: &[(&str, Option<u8>, Option<u8>)] = &[
    ("echo-request", Some(8), Some(128)),
    ("echo-reply", Some(0), Some(129)),
    ("destination-unreachable", Some(3), Some(1)),
    ("packet-too-big", None, Some(2)),
    ("time-exceeded", Some(11), Some(3)),
    ("parameter-problem", Some(12), Some(4)),
    ("redirect", Some(5), Some(137)),
    ("router-solicitation", Some(10), Some(133)),
    ("router-advertisement", Some(9), Some(134)),
    ("neighbor-solicitation", None, Some(135)),
    ("neighbor-advertisement", None, Some(136)),
    ("timestamp-request", Some(13), None),
    ("timestamp-reply", Some(14), None),
    ("mld-query", None, Some(130)),
    ("mld-report", None, Some(131)),
    ("mld-done", None, Some(132)),
    ("mld2-report", None, Some(143)),
];

/// The protocol numbers of the two families.
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// Every name, for messages.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|&(name, ..)| name)
}

/// The type of a name in any case.
pub(crate) fn by_name(name: &str) -> Option<IcmpType> {
    let found = NAMES.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name));
    found.map(|&(_, v4, v6)| IcmpType { v4, v6 })
}

/// The type of a number, which is the same in both families.
pub(crate) fn by_number(number: u8) -> IcmpType {
    IcmpType { v4: Some(number), v6: Some(number) }
}

/// The part of a type that packets of this protocol can have, if there is one.
pub(crate) fn within(kind: IcmpType, protocol: Protocol) -> Option<IcmpType> {
    let kind = match protocol {
        Protocol::Any | Protocol::Icmp => kind,
        Protocol::Number(ICMP) => IcmpType { v6: None, ..kind },
        Protocol::Number(ICMPV6) => IcmpType { v4: None, ..kind },
        Protocol::Tcp | Protocol::Udp | Protocol::Number(_) => return None,
    };
    (kind.v4.is_some() || kind.v6.is_some()).then_some(kind)
}

/// Whether packets of the protocol have types.
pub(crate) fn has_types(protocol: Protocol) -> bool {
    within(by_number(0), protocol).is_some()
}

/// The name of a type of this protocol, or its number.
pub(crate) fn name(kind: IcmpType, protocol: Protocol) -> Result<&'static str, u8> {
    let is = |&&(_, v4, v6): &&(&str, Option<u8>, Option<u8>)| within(IcmpType { v4, v6 }, protocol) == Some(kind);
    match NAMES.iter().find(is) {
        Some(&(name, ..)) => Ok(name),
        None => Err(kind.v4.or(kind.v6).unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_types_agree() {
        for known in names() {
            let kind = by_name(known).unwrap();
            assert_eq!(name(kind, Protocol::Icmp), Ok(known));
            assert_ne!(kind.v4, kind.v6, "a number for both families means another type");
        }
        assert_eq!(by_name("Echo-Request"), Some(IcmpType { v4: Some(8), v6: Some(128) }));
        assert_eq!(by_name("ping"), None);
    }

    #[test]
    fn the_protocol_narrows_a_type() {
        let echo = by_name("echo-request").unwrap();
        assert_eq!(within(echo, Protocol::Any), Some(echo));
        assert_eq!(within(echo, Protocol::Number(1)), Some(IcmpType { v4: Some(8), v6: None }));
        assert_eq!(within(echo, Protocol::Number(58)), Some(IcmpType { v4: None, v6: Some(128) }));
        assert_eq!(within(by_name("packet-too-big").unwrap(), Protocol::Number(1)), None);
        assert_eq!(within(echo, Protocol::Udp), None);
        assert_eq!(name(IcmpType { v4: Some(8), v6: None }, Protocol::Number(1)), Ok("echo-request"));
        assert_eq!(name(by_number(8), Protocol::Icmp), Err(8), "8 is something else in ICMPv6");
        assert_eq!(name(by_number(200), Protocol::Any), Err(200));
    }
}
