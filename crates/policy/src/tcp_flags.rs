//! TCP flags in policies: flags that must be set, and with `!` flags that must not.

use crate::policy::TcpFlags;

/// Every flag by its bit (RFC 9293, section 3.1).
pub(crate) const NAMES: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];

/// The reason why a text gives no flags.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FlagsError<'t> {
    /// The text is empty.
    Empty,
    /// A word is not a flag.
    Unknown(&'t str),
    /// A flag is required to be set and not set.
    Contradiction(&'static str),
}

/// Flags in any order and case, between commas.
pub(crate) fn read(text: &str) -> Result<TcpFlags, FlagsError<'_>> {
    let mut flags = TcpFlags { set: 0, clear: 0 };
    for word in text.split(',').map(str::trim) {
        let (name, to) = match word.strip_prefix('!') {
            Some(name) => (name.trim_start(), &mut flags.clear),
            None => (word, &mut flags.set),
        };
        if name.is_empty() {
            return Err(FlagsError::Empty);
        }
        let bit = NAMES.iter().position(|known| known.eq_ignore_ascii_case(name));
        *to |= 1 << bit.ok_or(FlagsError::Unknown(name))?;
    }
    match (0..8).find(|bit| (flags.set & flags.clear) >> bit & 1 == 1) {
        Some(bit) => Err(FlagsError::Contradiction(NAMES[bit])),
        None => Ok(flags),
    }
}

/// The flags as policies write them.
pub(crate) fn format(flags: TcpFlags) -> String {
    let of = |bits: u8, sign: &'static str| {
        NAMES
            .iter()
            .enumerate()
            .filter(move |(bit, _)| bits >> bit & 1 == 1)
            .map(move |(_, name)| format!("{sign}{name}"))
    };
    of(flags.set, "").chain(of(flags.clear, "!")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_prints() {
        for set in 0..=255u8 {
            for clear in (0..=255u8).filter(|clear| clear & set == 0 && clear | set != 0) {
                let flags = TcpFlags { set, clear };
                assert_eq!(read(&format(flags)), Ok(flags));
            }
        }
        assert_eq!(format(TcpFlags { set: 2, clear: 16 }), "syn,!ack");
        assert_eq!(read(" !ACK , Syn"), Ok(TcpFlags { set: 2, clear: 16 }));
    }

    #[test]
    fn errors_name_the_wrong_flag() {
        assert_eq!(read(""), Err(FlagsError::Empty));
        assert_eq!(read("syn,"), Err(FlagsError::Empty));
        assert_eq!(read("syn,sync"), Err(FlagsError::Unknown("sync")));
        assert_eq!(read("syn,!syn"), Err(FlagsError::Contradiction("syn")));
    }
}
