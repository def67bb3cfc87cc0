//! Sums of guarantees, bits per second, and how grave it is that one does not fit.

use super::{EachWay, NetworkPolicy};
use crate::diagnostic::Severity;
use crate::rate::Rate;

/// The severity of guarantees that come to more than there is.
pub(super) fn severity(policy: &NetworkPolicy) -> Severity {
    if policy.oversold { Severity::Warning } else { Severity::Error }
}

/// A sum of rates as a rate; beyond the largest number, that number.
pub(super) fn shown(sum: u128) -> Rate {
    Rate(u64::try_from(sum).unwrap_or(u64::MAX))
}

/// The rates, or 0 where there are none.
pub(super) fn bits(rates: &EachWay<Option<Rate>>) -> EachWay<u128> {
    rates.map(|rate| rate.map_or(0, |rate| rate.0.into()))
}

pub(super) fn add(sum: &mut EachWay<u128>, more: EachWay<u128>) {
    sum.down += more.down;
    sum.up += more.up;
}
