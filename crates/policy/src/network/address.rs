//! Addresses of subscribers: prefixes, VLANs and marks.

use crate::mark;
use ipnet::IpNet;
use serde::{Serialize, Serializer};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An address of a subscriber, by which its packets are known. In the order of the table: prefixes, those of IPv4 first, wider ones before those that they hold; then
/// VLANs, then marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// An address, or all of a prefix.
    Prefix(IpNet),
    /// A VLAN, 1 to 4,094, of the outer tag of a packet.
    Vlan(u16),
    /// The firewall mark of a packet, not 0.
    Mark(u32),
}

impl Address {
    /// Whether packets of the other one are packets of this one. No prefix has those of a VLAN or of a mark.
    pub fn holds(&self, other: &Address) -> bool {
        match (self, other) {
            (Address::Prefix(wide), Address::Prefix(narrow)) => wide.contains(narrow),
            _ => self == other,
        }
    }

    /// Whether an IP address is one of these.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.prefix().is_some_and(|prefix| prefix.contains(&address))
    }

    /// The prefix, if it is one.
    pub fn prefix(&self) -> Option<IpNet> {
        match self {
            Address::Prefix(prefix) => Some(*prefix),
            Address::Vlan(_) | Address::Mark(_) => None,
        }
    }
}

impl From<IpNet> for Address {
    fn from(prefix: IpNet) -> Address {
        Address::Prefix(prefix)
    }
}

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Address {
        Address::Prefix(address.into())
    }
}

/// As policies have it: `192.0.2.1/32`, `vlan:100`, `mark:7`.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Prefix(prefix) => prefix.fmt(f),
            Address::Vlan(vlan) => write!(f, "vlan:{vlan}"),
            Address::Mark(mark) => write!(f, "mark:{mark}"),
        }
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The reason why a text is no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAddress {
    /// Nothing is known that looks like it.
    Unknown,
    /// A VLAN that is not 1 to 4,094.
    Vlan,
    /// A mark that is not a number of 32 bits, or is 0.
    Mark,
}

impl FromStr for Address {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Address, NoAddress> {
        if let Some(number) = text.strip_prefix("vlan:") {
            let vlan = decimal(number).filter(|vlan| (1..=4094).contains(vlan));
            return vlan.map(|vlan| Address::Vlan(vlan as u16)).ok_or(NoAddress::Vlan);
        }
        if let Some(number) = text.strip_prefix("mark:") {
            let mark = decimal(number).or_else(|| mark::hexadecimal(number));
            return mark.filter(|mark| *mark != 0).map(Address::Mark).ok_or(NoAddress::Mark);
        }
        let prefix = text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
        prefix.map(Address::Prefix).ok_or(NoAddress::Unknown)
    }
}

/// A number in digits alone.
fn decimal(text: &str) -> Option<u32> {
    text.bytes().all(|digit| digit.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_address() {
        for (text, printed) in [
            ("192.0.2.1", "192.0.2.1/32"),
            ("2001:db8::/56", "2001:db8::/56"),
            ("vlan:1", "vlan:1"),
            ("vlan:4094", "vlan:4094"),
            ("mark:0x1F", "mark:31"),
            ("mark:4294967295", "mark:4294967295"),
        ] {
            assert_eq!(text.parse::<Address>().map(|address| address.to_string()), Ok(printed.to_owned()), "{text}");
            assert_eq!(printed.parse::<Address>(), text.parse(), "{text}");
        }
        for text in ["vlan:0", "vlan:4095", "vlan:", "vlan:+5", "vlan:0x5", "vlan:99999999999"] {
            assert_eq!(text.parse::<Address>(), Err(NoAddress::Vlan), "{text}");
        }
        for text in ["mark:0", "mark:", "mark:-1", "mark:0x", "mark:0x+1", "mark:4294967296"] {
            assert_eq!(text.parse::<Address>(), Err(NoAddress::Mark), "{text}");
        }
        for text in ["", "vlan", "mark 7", "VLAN:7", "192.0.2", "7"] {
            assert_eq!(text.parse::<Address>(), Err(NoAddress::Unknown), "{text}");
        }
    }

    #[test]
    fn prefixes_come_first_and_wider_ones_before_narrower_ones() {
        let texts = ["10.0.0.0/8", "10.0.0.0/24", "10.1.0.0/16", "2001:db8::/32", "vlan:7", "vlan:8", "mark:1"];
        let sorted: Vec<Address> = texts.iter().map(|text| text.parse().expect("an address")).collect();
        assert!(sorted.is_sorted());
        for (place, own) in sorted.iter().enumerate() {
            let held: Vec<usize> = (0..sorted.len()).filter(|&other| own.holds(&sorted[other])).collect();
            let expected = if place == 0 { vec![0, 1, 2] } else { vec![place] };
            assert_eq!(held, expected, "{own}");
        }
    }
}
