//! Names of DSCP values (RFC 2474, 2597, 3246, 5865, 8622), as policies write them.

/// Every name with its value; the first name of a value is the one printed.
const NAMES: &[(&str, u8)] = &[
    ("cs0", 0),
    ("df", 0),
    ("be", 0),
    ("le", 1),
    ("cs1", 8),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("cs2", 16),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("cs3", 24),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("cs4", 32),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("cs5", 40),
    ("va", 44),
    ("ef", 46),
    ("cs6", 48),
    ("cs7", 56),
];

/// The largest DSCP value: six bits.
pub(crate) const MAX: u8 = 63;

/// The value of a name, in any case.
pub fn value(name: &str) -> Option<u8> {
    NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|&(_, value)| value)
}

/// The name of a value, if it has one.
pub fn name(value: u8) -> Option<&'static str> {
    NAMES.iter().find(|&&(_, known)| known == value).map(|&(name, _)| name)
}

/// Every name, for messages.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|&(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_agree() {
        assert_eq!(value("EF"), Some(46));
        assert_eq!(value("xx"), None);
        assert_eq!(name(0), Some("cs0"));
        assert_eq!(name(63), None);
        for known in names() {
            let v = value(known).unwrap();
            assert!(v <= MAX);
            assert_eq!(name(v).and_then(value), Some(v));
        }
    }
}
