//! Why rules do not fit the tables.

use sluice_abi as abi;
use std::fmt;

/// Why a set of rules has no tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchError {
    /// More rules than there are bits in a row.
    TooManyRules,
    /// More distinct sets of rules than there are rows.
    TooManyRows,
}

impl fmt::Display for MatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MatchError::TooManyRules => write!(f, "more than {} rules, the built-in ones included", abi::SL_RULES),
            MatchError::TooManyRows => {
                write!(f, "the rules divide addresses and ports into more than {} kinds", abi::SL_ROWS)
            }
        }
    }
}

impl std::error::Error for MatchError {}
