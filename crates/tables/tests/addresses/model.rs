//! The slow, obvious model: every prefix is compared with the address.

use ipnet::IpNet;
use std::net::IpAddr;

#[derive(Debug, Clone, Default)]
pub struct Model {
    pub prefixes: Vec<(IpNet, u16)>,
}

impl Model {
    pub fn set(&mut self, prefix: IpNet, leaf: u16) -> Option<u16> {
        let former = self.remove(prefix);
        self.prefixes.push((prefix, leaf));
        former
    }

    pub fn remove(&mut self, prefix: IpNet) -> Option<u16> {
        let at = self.prefixes.iter().position(|(other, _)| *other == prefix)?;
        Some(self.prefixes.swap_remove(at).1)
    }

    pub fn leaf(&self, address: IpAddr) -> Option<u16> {
        let holders = self.prefixes.iter().filter(|(prefix, _)| prefix.contains(&address));
        holders.max_by_key(|(prefix, _)| prefix.prefix_len()).map(|(_, leaf)| *leaf)
    }
}
