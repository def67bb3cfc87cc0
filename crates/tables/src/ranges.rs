//! Numbers of 128 bits, divided by the rules that ask for them into ranges that have a row each.

use crate::bitmap::{Rows, RuleSet};
use crate::error::MatchError;
use ipnet::IpNet;
use sluice_abi as abi;
use std::ops::RangeInclusive;

/// The range of IPv4 addresses among those of IPv6, as the parser maps them: `::ffff:0:0/96`.
const IPV4: RangeInclusive<u128> = 0xffff_0000_0000..=0xffff_ffff_ffff;

/// A range of numbers that a rule asks for.
pub(crate) struct Span {
    pub(crate) rule: usize,
    pub(crate) numbers: RangeInclusive<u128>,
}

/// The addresses of a prefix. IPv4 is no part of a prefix of IPv6, though it lies within `::/0`.
pub(crate) fn addresses(net: IpNet) -> impl Iterator<Item = RangeInclusive<u128>> {
    let whole = match net {
        IpNet::V4(net) => {
            let ipv4 = |addr: std::net::Ipv4Addr| IPV4.start() | u128::from(u32::from(addr));
            return [Some(ipv4(net.network())..=ipv4(net.broadcast())), None].into_iter().flatten();
        }
        IpNet::V6(net) => u128::from(net.network())..=u128::from(net.broadcast()),
    };
    let parts = if whole.contains(IPV4.start()) && whole.contains(IPV4.end()) {
        let below = (whole.start() < IPV4.start()).then(|| *whole.start()..=IPV4.start() - 1);
        let above = (whole.end() > IPV4.end()).then(|| IPV4.end() + 1..=*whole.end());
        [below, above]
    } else {
        [Some(whole), None]
    };
    parts.into_iter().flatten()
}

/// Begins of ranges, and the row of each. `indifferent` holds the rules without a condition on the field.
pub(crate) fn sweep(
    spans: impl Iterator<Item = Span>,
    indifferent: &RuleSet,
    rows: &mut Rows,
) -> Result<Vec<(u128, u16)>, MatchError> {
    // At each number: the rules whose spans begin there, and those whose spans ended just before.
    let mut ends: Vec<(u128, usize, bool)> = Vec::new();
    for Span { rule, numbers } in spans {
        ends.push((*numbers.start(), rule, true));
        if let Some(after) = numbers.end().checked_add(1) {
            ends.push((after, rule, false));
        }
    }
    ends.sort_unstable();
    let mut set = indifferent.clone();
    // The spans of one rule may overlap.
    let mut open = vec![0u32; abi::SL_RULES as usize];
    let mut ranges = Vec::new();
    let mut at = 0;
    let mut next = ends.into_iter().peekable();
    loop {
        while let Some((_, rule, begins)) = next.next_if(|end| end.0 == at) {
            if begins {
                open[rule] += 1;
                set.insert(rule);
            } else {
                open[rule] -= 1;
                if open[rule] == 0 {
                    set.remove(rule);
                }
            }
        }
        let row = rows.of(&set)?;
        if ranges.last().is_none_or(|&(_, last)| last != row) {
            ranges.push((at, row));
        }
        match next.peek() {
            Some(&(number, ..)) => at = number,
            None => return Ok(ranges),
        }
    }
}

/// The search table of the classifier.
pub(crate) fn search_table(ranges: &[(u128, u16)]) -> Result<Box<abi::sl_ranges>, MatchError> {
    let mut table = abi::boxed_zeroed::<abi::sl_ranges>();
    if ranges.len() > table.row.len() {
        return Err(MatchError::TooManyRanges);
    }
    table.last = ranges.len() as u32 - 1;
    for (i, &(start, row)) in ranges.iter().enumerate() {
        (table.high[i], table.low[i]) = ((start >> 64) as u64, start as u64);
        table.row[i] = row;
    }
    for (block, range) in table.ipv4.iter_mut().enumerate() {
        let lowest = IPV4.start() | (block as u128) << 16;
        *range = (ranges.partition_point(|&(start, _)| start <= lowest) - 1) as u16;
    }
    Ok(table)
}
