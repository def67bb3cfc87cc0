//! Addresses of subscribers: prefixes, of which no two may overlap.

use super::Address;
use super::rows::Field;
use crate::diagnostic::{Diagnostic, Kind};
use crate::excerpt::excerpt;
use crate::source::{Span, Where};
use ipnet::IpNet;
use std::net::IpAddr;

/// The prefixes that a field lists, between commas or spaces. Texts that are none are reported.
pub(super) fn read(field: &Field, text: &str, findings: &mut Vec<Diagnostic>) -> Vec<Address> {
    let mut addresses = Vec::new();
    let mut at = field.span.start;
    for word in text[field.span.clone()].split_inclusive(|c: char| c == ',' || c.is_whitespace()) {
        let own = word.trim_end_matches(|c: char| c == ',' || c.is_whitespace());
        if !own.is_empty() {
            match one(own, at..at + own.len()) {
                Ok(address) => addresses.push(address),
                Err(finding) => findings.push(finding),
            }
        }
        at += word.len();
    }
    addresses
}

/// The prefix of a text at this place.
pub(crate) fn one(word: &str, place: Span) -> Result<Address, Diagnostic> {
    match prefix(word) {
        Some(prefix) if mapped(&prefix).is_some() => {
            let title = format!("{} is an address of IPv4 in the form of one of IPv6", excerpt(word));
            let finding = Diagnostic::error(Kind::Address, title).at(place, "no packet has it");
            Err(finding.help(format!("write {}", mapped(&prefix).unwrap_or_default())))
        }
        Some(prefix) if prefix.trunc() == prefix => Ok(Address { prefix, span: Where(place) }),
        Some(prefix) => {
            let title = format!("{} has bits beyond its length", excerpt(word));
            let finding = Diagnostic::error(Kind::HostBits, title).at(place, "which addresses are meant?");
            Err(finding.help(format!("write {} for all of them, or {} for one", prefix.trunc(), prefix.addr())))
        }
        None => {
            let finding = Diagnostic::error(Kind::Address, format!("`{}` is no address", excerpt(word)));
            let help = "write addresses or prefixes between commas, as in \"192.0.2.1, 2001:db8::/56\"";
            Err(finding.at(place, "cannot be read").help(help))
        }
    }
}

/// The IPv4 address or prefix that is written as `::ffff:a.b.c.d`, if it is one.
fn mapped(prefix: &IpNet) -> Option<String> {
    let IpNet::V6(prefix) = prefix else { return None };
    let address = prefix.addr().to_ipv4_mapped().filter(|_| prefix.prefix_len() >= 96)?;
    Some(format!("{address}/{}", prefix.prefix_len() - 96))
}

fn prefix(word: &str) -> Option<IpNet> {
    word.parse().ok().or_else(|| word.parse::<IpAddr>().ok().map(IpNet::from))
}

/// The pairs of overlapping prefixes among these, as indices, each with the narrower one first: for each prefix the next wider one that holds
/// it, which is all that must be told. In time n log n.
pub(super) fn overlaps(prefixes: &[&IpNet]) -> Vec<(usize, usize)> {
    let mut order: Vec<usize> = (0..prefixes.len()).collect();
    // A wider prefix comes before those that it holds; of equal ones, the first of the table.
    order.sort_by_key(|&i| (prefixes[i].network(), prefixes[i].prefix_len(), i));
    let (mut pairs, mut around): (Vec<(usize, usize)>, Vec<usize>) = (Vec::new(), Vec::new());
    for i in order {
        while around.last().is_some_and(|&wide| !prefixes[wide].contains(prefixes[i])) {
            around.pop();
        }
        pairs.extend(around.last().map(|&wide| (i, wide)));
        around.push(i);
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_overlap_is_found(words in prop::collection::vec((0u32..16, 24u8..=32, any::<bool>()), 0..30)) {
            let prefixes: Vec<IpNet> = words
                .iter()
                .map(|&(low, length, v6)| {
                    let address = if v6 {
                        IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, low as u16])
                    } else {
                        IpAddr::from((0xc000_0200u32 | low << 2).to_be_bytes())
                    };
                    IpNet::new(address, if v6 { length + 96 } else { length }).expect("a length").trunc()
                })
                .collect();
            let named: Vec<&IpNet> = prefixes.iter().collect();
            let found = overlaps(&named);
            for &(narrow, wide) in &found {
                prop_assert!(prefixes[wide].contains(&prefixes[narrow]) && narrow != wide);
            }
            for (i, one) in prefixes.iter().enumerate() {
                let slow = prefixes.iter().enumerate().any(|(j, other)| {
                    j != i && other.contains(one) && (other != one || j < i)
                });
                prop_assert_eq!(found.iter().any(|&(narrow, _)| narrow == i), slow, "{}", one);
            }
        }
    }
}
