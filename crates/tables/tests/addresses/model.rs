//! The slow, obvious model: every entry is compared with the packet.

use crate::cases::Packet;
use sluice_policy::network::Address;

#[derive(Debug, Clone, Default)]
pub struct Model {
    pub entries: Vec<(Address, u16)>,
}

impl Model {
    pub fn set(&mut self, address: Address, leaf: u16) -> Option<u16> {
        let former = self.remove(address);
        self.entries.push((address, leaf));
        former
    }

    pub fn remove(&mut self, address: Address) -> Option<u16> {
        let at = self.entries.iter().position(|(other, _)| *other == address)?;
        Some(self.entries.swap_remove(at).1)
    }

    pub fn leaf(&self, packet: Packet) -> Option<u16> {
        let urgency = |entry: &Address| match *entry {
            Address::Mark(mark) => (mark == packet.mark).then_some(300),
            Address::Vlan(vlan) => (vlan == packet.vlan).then_some(200),
            Address::Prefix(prefix) => prefix.contains(&packet.address).then_some(u32::from(prefix.prefix_len())),
        };
        let found = self.entries.iter().filter_map(|(entry, leaf)| Some((urgency(entry)?, *leaf)));
        found.max().map(|(_, leaf)| leaf)
    }
}
