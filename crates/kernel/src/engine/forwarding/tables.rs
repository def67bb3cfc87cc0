//! The tables of forwards, which are made to follow policies.

use super::OfInterface;
use crate::bpf::mapped::Mapped;
use crate::maps::tables;
use crate::system::clock;
use crate::system::interface::{self, Interface};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use sluice_abi as abi;
use sluice_error::{Doing, Error, Result};
use sluice_tables::forward::{Routed, add_connection, add_counts, address_of, is_of, is_open, timeouts};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::path::Path;

/// The tables, open.
pub(super) struct Tables {
    listens: MapHandle,
    own_listens: MapHandle,
    forwards: MapHandle,
    targets: MapHandle,
    slots: MapHandle,
    egress_tags: MapHandle,
    departures: MapHandle,
    connections: MapHandle,
    counts: MapHandle,
    former: MapHandle,
}

/// Makes a map hold these values of interfaces, and no others.
fn hold<T: abi::Pod>(map: &MapHandle, values: &BTreeMap<u32, T>, doing: impl Fn() -> String + Copy) -> Result<()> {
    for key in map.keys() {
        if values.keys().all(|interface| interface.to_ne_bytes() != key[..]) {
            map.delete(&key).doing(doing)?;
        }
    }
    for (interface, value) in values {
        map.update(&interface.to_ne_bytes(), abi::bytes_of(value), MapFlags::ANY).doing(doing)?;
    }
    Ok(())
}

/// Places of an array map that are taken, as ranges.
#[derive(Default)]
struct Taken(Vec<(u32, u32)>);

impl Taken {
    /// The first place from which on so many are free, which are taken then.
    fn take(&mut self, many: u32, all: u32, what: &str) -> Result<u32> {
        self.0.sort_unstable();
        let mut first = 0;
        for &(from, length) in &self.0 {
            if first + many <= from {
                break;
            }
            first = first.max(from + length);
        }
        if first + many > all {
            return Err(Error::input(format!("the forwards of all interfaces need more than {all} {what}"))
                .help("change fewer at once, for old and new ones need places beside each other; or remove some, and wait until the open connections of changed ones have ended"));
        }
        self.0.push((first, many));
        Ok(first)
    }
}

impl Tables {
    pub(super) fn open(directory: &Path) -> Result<Tables> {
        let open = |name| tables::open(directory, name);
        Ok(Tables {
            listens: open("listens")?,
            own_listens: open("own_listens")?,
            forwards: open("forwards")?,
            targets: open("targets")?,
            slots: open("target_slots")?,
            egress_tags: open("egress_tags")?,
            departures: open("departures")?,
            connections: open("connections")?,
            counts: open("forward_counts")?,
            former: open("former_counts")?,
        })
    }

    /// Makes the tables hold these forwards, and no others.
    ///
    /// Returns the targets of replaced forwards, which may have open connections.
    pub(super) fn change(&self, wanted: &[Routed<'_>], interfaces: &[OfInterface]) -> Result<BTreeSet<IpAddr>> {
        self.tags(interfaces)?;
        let mut there = self.present()?;
        self.free_unused(&mut there)?;
        let mut places: HashMap<(u32, String, u64), u32> = HashMap::new();
        for (index, forward) in &there {
            if !is_replaced(forward) {
                places.insert((forward.ifindex, name_of(forward), forward.digest), *index);
            }
        }
        let mut indices = Taken(there.keys().map(|&index| (index, 1)).chain([(0, 1)]).collect());
        let mut targets = Taken(there.values().map(|forward| (forward.first_target, forward.targets)).collect());
        let mut slots = Taken(there.values().map(|forward| (forward.first_slot, forward.slots)).collect());
        let (mut listens, mut own_listens) = (HashMap::new(), HashMap::new());
        let addresses = if wanted.is_empty() { Vec::new() } else { interface::addresses()? };
        let mut kept = BTreeSet::new();
        for routed in wanted {
            let identity = (routed.ifindex, routed.forward.name.clone(), routed.digest());
            let named = |(ifindex, name, _): &(u32, String, u64)| *ifindex == identity.0 && *name == identity.1;
            let index = match places.get(&identity) {
                Some(&index) => index,
                None if routed.routes.is_empty() => match places.iter().find(|(place, _)| named(place)) {
                    Some((_, &index)) => index,
                    None => continue,
                },
                None => self.add(routed, &mut indices, &mut targets, &mut slots)?,
            };
            kept.insert(index);
            listens.extend(routed.listens().map(|listen| (abi::bytes_of(&listen).to_vec(), index)));
            let here = own_addresses(routed, &addresses);
            own_listens.extend(routed.own_listens(&here).map(|listen| (abi::bytes_of(&listen).to_vec(), index)));
        }
        lead(&self.listens, &listens)?;
        lead(&self.own_listens, &own_listens)?;
        let mut left = BTreeSet::new();
        for (index, forward) in there.into_iter().filter(|(index, _)| !kept.contains(index)) {
            let flags = forward.flags | abi::SL_FORWARD_REPLACED as u8;
            if flags != forward.flags {
                tables::write(&self.forwards, index, &abi::sl_forward { flags, ..*forward })?;
            }
            for n in (forward.first_target..).take(forward.targets as usize) {
                left.insert(address_of(&tables::read::<abi::sl_target>(&self.targets, n)?.end));
            }
        }
        Ok(left)
    }

    /// Notes the interfaces with a hook on departure, and no others.
    pub(super) fn depart(&self, departures: &BTreeMap<u32, u32>) -> Result<()> {
        hold(&self.departures, departures, || "noting hooks on departure".to_owned())
    }

    fn tags(&self, interfaces: &[OfInterface]) -> Result<()> {
        let of_forwards = |tag: u16| tag | abi::SL_TAG_OF_FORWARD as u16;
        let tags = interfaces.iter().map(|interface| (interface.ifindex, of_forwards(interface.tag))).collect();
        hold(&self.egress_tags, &tags, || "noting tags".to_owned())
    }

    /// The forwards that are there, by their places.
    fn present(&self) -> Result<HashMap<u32, Box<abi::sl_forward>>> {
        let mapped = Mapped::<abi::sl_forward>::of_this_version(&self.forwards)?;
        let mut found = HashMap::new();
        for (index, forward) in (0u32..).zip(mapped.values()) {
            // SAFETY: the address is within the mapping; only commands write forwards, and this one has their lock.
            let forward = unsafe { forward.read_volatile() };
            if forward.targets > 0 {
                found.insert(index, Box::new(forward));
            }
        }
        Ok(found)
    }

    /// Frees the places of forwards that were replaced, and have no open connections any more. Connections that have ended since keep their records
    /// until others take them: their counts are handed on here.
    fn free_unused(&self, there: &mut HashMap<u32, Box<abi::sl_forward>>) -> Result<()> {
        let mut unused: HashMap<u32, Box<abi::sl_forward_count>> =
            there.iter().filter(|(_, forward)| is_replaced(forward)).map(|(n, _)| (*n, abi::boxed_zeroed())).collect();
        if unused.is_empty() {
            return Ok(());
        }
        let (timeouts, tick) = (timeouts(), clock::tick());
        for connection in Mapped::<abi::sl_connection>::of_this_version(&self.connections)?.values() {
            // SAFETY: the address is within the mapping; programs write each integer whole.
            let connection = unsafe { connection.read_volatile() };
            let index = u32::from(connection.forward);
            let Some(forward) = there.get(&index).filter(|forward| is_of(&connection, forward)) else { continue };
            if is_open(&connection, &timeouts, tick) {
                unused.remove(&index);
            } else if let Some(counts) = unused.get_mut(&index).filter(|_| is_replaced(forward)) {
                add_connection(counts, &connection);
            }
        }
        for (index, ended) in unused {
            let Some(freed) = there.remove(&index) else { continue };
            let heir = there.iter().find_map(|(heir, other)| {
                let same = !is_replaced(other) && other.ifindex == freed.ifindex && other.name == freed.name;
                same.then_some(*heir)
            });
            tables::write(&self.forwards, index, &*abi::boxed_zeroed::<abi::sl_forward>())?;
            self.hand_on(index, heir, &ended)?;
        }
        Ok(())
    }

    /// Gives the counts of a forward to the one that has its name now, if there is one. The next at its place begins at zero. ended: counts of its
    /// connections that have ended, and are still in their records.
    fn hand_on(&self, index: u32, heir: Option<u32>, ended: &abi::sl_forward_count) -> Result<()> {
        let zero = abi::boxed_zeroed::<abi::sl_forward_count>();
        if let Some(heir) = heir {
            let mut sum: Box<abi::sl_forward_count> = tables::read(&self.former, heir)?;
            add_counts(&mut sum, ended);
            for map in [&self.counts, &self.former] {
                add_counts(&mut sum, &*tables::read(map, index)?);
            }
            tables::write(&self.former, heir, &*sum)?;
        }
        tables::write(&self.counts, index, &*zero)?;
        tables::write(&self.former, index, &*zero)
    }

    /// Writes a forward that is not there yet. Returns its place.
    fn add(&self, routed: &Routed<'_>, indices: &mut Taken, targets: &mut Taken, slots: &mut Taken) -> Result<u32> {
        let (own_targets, own_slots) = (routed.targets(), routed.slots());
        let index = indices.take(1, abi::SL_FORWARDS, "places")?;
        let first_target = targets.take(own_targets.len() as u32, abi::SL_TARGETS, "targets")?;
        let first_slot =
            if own_slots.is_empty() { 0 } else { slots.take(own_slots.len() as u32, abi::SL_TARGET_SLOTS, "slots")? };
        for (n, target) in (first_target..).zip(&own_targets) {
            tables::write(&self.targets, n, target)?;
        }
        let values: Vec<u8> = own_slots.iter().flat_map(|slot| (first_target + slot).to_ne_bytes()).collect();
        let keys: Vec<u8> = (first_slot..).take(own_slots.len()).flat_map(u32::to_ne_bytes).collect();
        if !own_slots.is_empty() {
            self.slots
                .update_batch(&keys, &values, own_slots.len() as u32, MapFlags::ANY, MapFlags::ANY)
                .doing(|| "writing slots".to_owned())?;
        }
        tables::write(&self.forwards, index, &routed.forward(first_target, first_slot, own_slots.len() as u32))?;
        Ok(index)
    }
}

/// Makes a map of listen addresses lead to these places, and to no others.
fn lead(map: &MapHandle, wanted: &HashMap<Vec<u8>, u32>) -> Result<()> {
    let doing = || "changing where forwards listen".to_owned();
    let mut there = BTreeSet::new();
    for key in map.keys().collect::<Vec<_>>() {
        if !wanted.contains_key(&key) {
            map.delete(&key).doing(doing)?;
        }
        there.insert(key);
    }
    for (key, index) in wanted {
        let index = index.to_ne_bytes();
        if there.contains(key) && map.lookup(key, MapFlags::ANY).doing(doing)?.as_deref() == Some(&index) {
            continue;
        }
        map.update(key, &index, MapFlags::ANY).doing(doing)?;
    }
    Ok(())
}

/// The addresses of this host where a forward listens for sockets of this host: none if it translates, for a socket has one family.
fn own_addresses(routed: &Routed<'_>, all: &[(String, IpAddr)]) -> Vec<IpAddr> {
    if routed.forward.translates() {
        return Vec::new();
    }
    let name = Interface::name_of(routed.ifindex);
    let same = |address: &IpAddr| match routed.forward.listen {
        Some(listen) => *address == listen,
        None => address.is_ipv4() == routed.forward.is_ipv4(),
    };
    let here = |of: &str| routed.forward.listen.is_some() || Some(of) == name.as_deref();
    all.iter().filter(|(of, address)| here(of) && same(address)).map(|(_, address)| *address).collect()
}

fn is_replaced(forward: &abi::sl_forward) -> bool {
    u32::from(forward.flags) & abi::SL_FORWARD_REPLACED != 0
}

fn name_of(forward: &abi::sl_forward) -> String {
    let bytes: Vec<u8> = forward.name.iter().take_while(|c| **c != 0).map(|c| *c as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
