//! Errors of rules that do not fit the tables.

use sluice_abi as abi;
use std::fmt;

/// The reason why a set of rules has no tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatchError {
    /// More rules than there are bits in a row.
    TooManyRules,
    /// More distinct sets of rules than there are rows.
    TooManyRows,
    /// More ranges of addresses, or of lengths, than there is room for.
    TooManyRanges,
    /// More distinct firewall marks, or interfaces, than there is room for.
    TooManyKeys,
    /// A rule names an interface that the machine does not have.
    NoInterface(String),
}

impl fmt::Display for MatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MatchError::TooManyRules => write!(f, "more than {} rules", abi::SL_RULES),
            MatchError::TooManyRows => {
                write!(f, "the rules divide addresses, ports and the rest into more than {} kinds", abi::SL_ROWS)
            }
            MatchError::TooManyRanges => {
                write!(
                    f,
                    "the prefixes of the rules divide addresses into more than {} ranges; write neighbours as one prefix",
                    abi::SL_RANGES
                )
            }
            MatchError::TooManyKeys => {
                write!(f, "the rules name more than {} different firewall marks or interfaces", abi::SL_KEYS)
            }
            MatchError::NoInterface(name) => {
                write!(f, "a rule names the interface {name}, which this machine does not have")
            }
        }
    }
}

impl std::error::Error for MatchError {}
