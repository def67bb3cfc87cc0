//! Search for subscribers, by what names them or by an address.

use super::SubscriberStatus;
use sluice_policy::network::Address;
use std::net::IpAddr;

/// A text that is looked for, as somebody has typed it.
#[derive(Debug, Clone, Default)]
pub struct SubscriberSearch {
    /// The text in lower case.
    text: String,
    /// The address that the text is, if it is a whole one.
    address: Option<IpAddr>,
}

impl SubscriberSearch {
    /// A search for a text. An empty one finds all.
    pub fn new(text: &str) -> SubscriberSearch {
        let text = text.trim().to_lowercase();
        SubscriberSearch { address: text.parse().ok(), text }
    }

    /// Whether a name has the text.
    pub fn finds_name(&self, name: &str) -> bool {
        name.to_lowercase().contains(&self.text)
    }

    /// Whether one of the names has the text, or one of the prefixes the address. A part of an address is looked for as a text.
    pub fn finds<'a>(&self, names: impl IntoIterator<Item = &'a str>, addresses: &[Address]) -> bool {
        let has_address = || match self.address {
            Some(address) => addresses.iter().any(|own| own.contains(address)),
            None => self.may_be_address() && addresses.iter().any(|own| self.finds_name(&own.to_string())),
        };
        self.text.is_empty() || names.into_iter().any(|name| self.finds_name(name)) || has_address()
    }

    /// Whether a subscriber is found by its key, name, site, plan or address.
    pub fn finds_subscriber(&self, one: &SubscriberStatus) -> bool {
        let names = [Some(&one.id), Some(&one.name), one.site.as_ref(), one.plan.as_ref()];
        self.finds(names.into_iter().flatten().map(String::as_str), &one.addresses)
    }

    fn may_be_address(&self) -> bool {
        let is_marked = ["vlan:", "mark:"].iter().any(|kind| self.text.starts_with(kind));
        is_marked || self.text.chars().all(|sign| sign.is_ascii_hexdigit() || ".:/".contains(sign))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_finds_the_prefix_that_holds_it() {
        let addresses = ["192.0.2.64/29", "2001:db8:1::/56", "vlan:100"].map(|text| text.parse().expect("an address"));
        let finds = |text: &str| SubscriberSearch::new(text).finds(["C-1042", "Corner Shop"], &addresses);
        for found in
            ["", "corner", " SHOP ", "c-10", "192.0.2.65", "192.0.2.", "2001:db8:1:ff::9", "2001:db8", "/29", "VLAN:10"]
        {
            assert!(finds(found), "{found}");
        }
        for absent in ["192.0.2.6", "192.0.2.72", "2001:db8:1:100::1", "192.0.3", "smith", "203.0.113", "mark:100"] {
            assert!(!finds(absent), "{absent}");
        }
        assert!(SubscriberSearch::new("10.0.0.1").finds(["box at 10.0.0.1"], &addresses), "a name may have an address");
    }
}
