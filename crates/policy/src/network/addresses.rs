//! Addresses of subscribers as tables have them. No two may overlap.

use super::address::NoAddress;
use super::rows::Field;
use super::{Address, WrittenAddress};
use crate::diagnostic::{Diagnostic, Kind};
use crate::excerpt::excerpt;
use crate::source::{Span, Where};
use ipnet::IpNet;

/// The addresses that a field lists, between commas or spaces. Texts that are none are reported.
pub(super) fn read(field: &Field, text: &str, findings: &mut Vec<Diagnostic>) -> Vec<WrittenAddress> {
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

/// The address of a text at this place.
pub(crate) fn one(word: &str, place: Span) -> Result<WrittenAddress, Diagnostic> {
    let written = |address| WrittenAddress { address, span: Where(place.clone()) };
    match word.parse() {
        Ok(Address::Prefix(prefix)) if mapped(&prefix).is_some() => {
            let title = format!("{} is an address of IPv4 in the form of one of IPv6", excerpt(word));
            let finding = Diagnostic::error(Kind::Address, title).at(place, "no packet has it");
            Err(finding.help(format!("write {}", mapped(&prefix).unwrap_or_default())))
        }
        Ok(Address::Prefix(prefix)) if prefix.trunc() != prefix => {
            let title = format!("{} has bits beyond its length", excerpt(word));
            let finding = Diagnostic::error(Kind::HostBits, title).at(place, "which addresses are meant?");
            Err(finding.help(format!("write {} for all of them, or {} for one", prefix.trunc(), prefix.addr())))
        }
        Ok(address) => Ok(written(address)),
        Err(reason) => {
            let (what, help) = match reason {
                NoAddress::Unknown => (
                    "address",
                    "write addresses or prefixes, as 192.0.2.1 or 2001:db8::/56, or a VLAN, as vlan:100, or a mark, as mark:7",
                ),
                NoAddress::Vlan => ("VLAN", "VLANs have numbers from 1 to 4094, as in \"vlan:100\""),
                NoAddress::Mark => {
                    ("firewall mark", "a mark is a number of 32 bits but 0, as in \"mark:7\" or \"mark:0x7\"")
                }
            };
            let finding = Diagnostic::error(Kind::Address, format!("`{}` is no {what}", excerpt(word)));
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

/// The pairs of overlapping addresses among these, as indices, each with the narrower one first: for each the next wider one that holds
/// it, which is all that must be told. In time n log n.
pub(super) fn overlaps(addresses: &[Address]) -> Vec<(usize, usize)> {
    let mut order: Vec<usize> = (0..addresses.len()).collect();
    // A wider prefix comes before those that it holds; of equal addresses, the first of the table.
    order.sort_by_key(|&i| (addresses[i], i));
    let (mut pairs, mut around): (Vec<(usize, usize)>, Vec<usize>) = (Vec::new(), Vec::new());
    for i in order {
        while around.last().is_some_and(|&wide| !addresses[wide].holds(&addresses[i])) {
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
    use std::net::IpAddr;

    proptest! {
        #[test]
        fn each_overlap_is_found(words in prop::collection::vec((0u32..16, 24u8..=32, 0..4), 0..30)) {
            let prefix = |address: IpAddr, length| IpNet::new(address, length).expect("a length").trunc().into();
            let addresses: Vec<Address> = words
                .iter()
                .map(|&(low, length, kind)| match kind {
                    0 => prefix(IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, low as u16]), length + 96),
                    1 => prefix(IpAddr::from((0xc000_0200u32 | low << 2).to_be_bytes()), length),
                    2 => Address::Vlan(low as u16 + 1),
                    _ => Address::Mark(low + 1),
                })
                .collect();
            let found = overlaps(&addresses);
            for &(narrow, wide) in &found {
                prop_assert!(addresses[wide].holds(&addresses[narrow]) && narrow != wide);
            }
            for (i, one) in addresses.iter().enumerate() {
                let slow = addresses.iter().enumerate().any(|(j, other)| {
                    j != i && other.holds(one) && (other != one || j < i)
                });
                prop_assert_eq!(found.iter().any(|&(narrow, _)| narrow == i), slow, "{}", one);
            }
        }
    }
}
