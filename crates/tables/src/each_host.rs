//! The table of hosts that no list names (`abi/each_host.h`): which places the hosts of each group of a network may take, and the leaf of each place.
//!
//! A group keeps its places as long as it has the same leaves and the same bits tell its hosts apart. So hosts that are there keep theirs when
//! something else changes.

use crate::tree::{Numbers, TreeError};
use sluice_abi as abi;
use sluice_policy::network::{Group, Network};

const WAYS: u32 = abi::SL_HOST_PLACE_WAYS;

/// The groups of a table, by their indices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostTable {
    /// The groups; none where an index is free.
    pub groups: Vec<Option<HostPlaces>>,
}

/// The places of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPlaces {
    /// The leaf to which the prefixes of the group lead, and which hosts share that have no place.
    pub shared: u32,
    /// The first place.
    pub first: u32,
    /// The leaf of each place from the first on.
    pub leaves: Vec<u32>,
    /// The bits of an IPv6 address that tell hosts apart.
    pub mask: u128,
}

impl HostPlaces {
    fn of(group: &Group, numbers: &Numbers, first: u32) -> HostPlaces {
        let kept = u32::from(group.ipv6_length);
        HostPlaces {
            shared: numbers.leaves[group.shared],
            first,
            leaves: numbers.leaves[group.hosts.clone()].to_vec(),
            mask: !u128::MAX.checked_shr(kept).unwrap_or(0),
        }
    }

    /// The places behind it.
    fn end(&self) -> u32 {
        self.first + self.leaves.len() as u32
    }

    /// The group as programs read it.
    pub fn group(&self) -> abi::sl_host_group {
        abi::sl_host_group {
            first_place: self.first,
            sets_mask: self.leaves.len() as u32 / WAYS - 1,
            upper_mask: (self.mask >> 64) as u64,
            lower_mask: self.mask as u64,
        }
    }
}

impl HostTable {
    /// A table without groups.
    pub fn empty() -> HostTable {
        HostTable { groups: vec![None; abi::SL_HOST_GROUPS as usize] }
    }

    /// The groups of a network. `now`: the table as it is, whose groups keep their indices and places. Those that the network lacks are left out, and
    /// new ones may have their places.
    ///
    /// # Errors
    /// No gap between the places of groups that stay is large enough.
    pub fn of(network: &Network, numbers: &Numbers, now: &HostTable) -> Result<HostTable, TreeError> {
        let mut table = HostTable::empty();
        let mut coming = Vec::new();
        for group in &network.groups {
            let mut own = HostPlaces::of(group, numbers, 0);
            let known =
                now.present().find(|(_, is)| (is.shared, &is.leaves, is.mask) == (own.shared, &own.leaves, own.mask));
            match known {
                Some((index, is)) => {
                    own.first = is.first;
                    table.groups[index] = Some(own);
                }
                None => coming.push(own),
            }
        }
        for mut own in coming {
            let taken: Vec<(u32, u32)> = table.present().map(|(_, is)| (is.first, is.end())).collect();
            let index = table.groups.iter().position(Option::is_none);
            let place = index.zip(free(&taken, own.leaves.len() as u32));
            let (index, first) = place.ok_or(TreeError::NoHostPlaces(own.leaves.len()))?;
            own.first = first;
            table.groups[index] = Some(own);
        }
        Ok(table)
    }

    /// The groups with their indices.
    pub fn present(&self) -> impl Iterator<Item = (usize, &HostPlaces)> + '_ {
        self.groups.iter().enumerate().filter_map(|(index, group)| Some((index, group.as_ref()?)))
    }

    /// The groups that a table has.
    pub fn read(table: &abi::sl_each_host) -> HostTable {
        let mut read = HostTable::empty();
        for (leaf, own) in table.group_of.iter().enumerate().filter(|(_, own)| **own > 0) {
            let index = usize::from(*own - 1);
            let group = &table.group[index];
            let places = group.first_place..group.first_place + (group.sets_mask + 1) * WAYS;
            let leaves = places.map(|place| u32::from(table.place[place as usize % table.place.len()].leaf));
            read.groups[index] = Some(HostPlaces {
                shared: leaf as u32,
                first: group.first_place,
                leaves: leaves.collect(),
                mask: u128::from(group.upper_mask) << 64 | u128::from(group.lower_mask),
            });
        }
        read
    }
}

/// The first of so many places that none of these ranges has.
fn free(taken: &[(u32, u32)], many: u32) -> Option<u32> {
    let starts = std::iter::once(0).chain(taken.iter().map(|(_, end)| *end));
    let is_free = |first: &u32| {
        first + many <= abi::SL_HOST_PLACES && taken.iter().all(|(from, end)| first + many <= *from || first >= end)
    };
    starts.filter(is_free).min()
}

#[cfg(test)]
mod tests;
