//! The maps of a tree of classes, read and changed while its qdisc runs.

mod changes;

use crate::bpf::mapped::Words;
use crate::maps::tables::{self, wait_for_readers};
use crate::maps::workers::Workers;
use sluice_abi as abi;
use sluice_error::{Error, Result};
use sluice_policy::network::Address;
use sluice_tables::each_host::HostTable;
use sluice_tables::tree::{self, TreeTable};
use sluice_tables::{Addresses, Readers};
use std::collections::HashMap;
use std::mem::offset_of;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Bytes of a page of memory, or a multiple of them: the least alignment that each of our architectures takes.
const PAGE_BYTES: usize = 65_536;

/// Look-ups of BPF programs.
struct Programs;

impl Readers for Programs {
    fn wait(&mut self) {
        wait_for_readers();
    }
}

/// A zeroed tree of which a few parts are to be written. The kernel would fill each part that is touched with a huge page of 2 MiB, and clear it.
fn sparse_tree() -> Box<abi::sl_tree> {
    let mut tree = abi::boxed_zeroed::<abi::sl_tree>();
    let (from, bytes) = (std::ptr::from_mut(&mut *tree).cast::<u8>(), size_of::<abi::sl_tree>());
    let before = from.align_offset(PAGE_BYTES);
    // SAFETY: whole pages of the tree, which are ours; the advice changes nothing that is in them. A kernel without huge pages refuses, which is no harm.
    unsafe { libc::madvise(from.add(before).cast(), (bytes - before) & !(PAGE_BYTES - 1), libc::MADV_NOHUGEPAGE) };
    tree
}

/// A tree of the pinned maps: the only one, or one of those of an interface's tx queues, which have the same configuration.
pub(crate) struct Instance {
    tree: Words,
    /// The changes that wait for the qdisc; none: no program runs the tree.
    ring: Option<Words>,
    /// The process that runs the tree. None: a qdisc does.
    worker: Option<Workers>,
}

/// The pinned maps of the trees of an interface.
pub(crate) struct TreeMaps {
    /// The tree of each tx queue, or the only one.
    pub instances: Vec<Instance>,
    addresses: Words,
    hosts: Words,
    owners: Words,
    /// The link that several trees share, whose first word is its bucket.
    shared: Option<Words>,
    /// The homes of leaves among several trees.
    homes: Option<Words>,
}

impl TreeMaps {
    /// Opens the maps that are pinned in a directory.
    pub fn open(pins: &Path) -> Result<TreeMaps> {
        let map = |name: &str| tables::open(pins, name);
        let trees = Words::of_each::<abi::sl_tree>(&map("tree")?)?;
        let is_there = |name: &str| pins.join(name).exists();
        let rings =
            if is_there("changes") { Words::of_each::<abi::sl_tree_changes>(&map("changes")?)? } else { Vec::new() };
        let mut rings = rings.into_iter();
        let instance = |tree| Ok(Instance { tree, ring: rings.next(), worker: Workers::open_if_there(pins)? });
        Ok(TreeMaps {
            instances: trees.into_iter().map(instance).collect::<Result<_>>()?,
            addresses: Words::of::<abi::sl_addresses>(&map("addresses")?)?,
            hosts: Words::of::<abi::sl_each_host>(&map("hosts")?)?,
            owners: Words::of::<u64>(&map("owners")?)?,
            shared: is_there("shared_trees")
                .then(|| Words::of::<abi::sl_shared_trees>(&map("shared_trees")?))
                .transpose()?,
            homes: is_there("homes").then(|| Words::of::<abi::sl_tree_homes>(&map("homes")?)).transpose()?,
        })
    }

    /// A copy of what configures the trees, with the counters of all of them together, and with the bucket that they share; into an earlier copy, or
    /// zeroes. `of_each` sees each tree.
    pub fn copy_into(&self, all: &mut abi::sl_tree, mut of_each: impl FnMut(&abi::sl_tree)) {
        let [first, others @ ..] = &self.instances[..] else { return };
        first.copy_into(all);
        of_each(all);
        let mut copy: Option<Box<abi::sl_tree>> = None;
        for other in others {
            let copy = copy.get_or_insert_with(abi::boxed_zeroed);
            other.copy_into(copy);
            of_each(copy);
            add_counts(all, copy);
        }
        if let Some(shared) = &self.shared {
            all.node[tree::LINK as usize].bucket[abi::SL_TURN_SHARED as usize].tat_64ths = shared.load(0);
        }
    }

    /// The homes as they are, and with those of the leaves of a table, which may be a part of all. None: there is one tree.
    fn homes_with(&self, table: &TreeTable) -> Option<[Box<abi::sl_tree_homes>; 2]> {
        let words = self.homes.as_ref()?;
        let mut now = abi::boxed_zeroed::<abi::sl_tree_homes>();
        words.get(0, &mut *now);
        let (mut with, wanted) = (now.clone(), table.homes(self.instances.len() as u32));
        for leaf in table.nodes.keys().map(|number| *number as usize).filter(|number| *number < wanted.of_leaf.len()) {
            with.of_leaf[leaf] = wanted.of_leaf[leaf];
        }
        (with.by_class, with.of_class) = (wanted.by_class, wanted.of_class);
        Some([now, with])
    }

    /// Has packets of the leaves of a table come to their homes, where there are several trees.
    pub fn set_homes(&self, table: &TreeTable) {
        if let (Some(words), Some([_, with])) = (&self.homes, self.homes_with(table)) {
            words.set(0, &*with);
        }
    }

    /// Whether packets of the leaves of a table come to their homes.
    pub fn has_homes(&self, table: &TreeTable) -> bool {
        self.homes_with(table).is_none_or(|[now, with]| abi::bytes_of(&*now) == abi::bytes_of(&*with))
    }

    /// The only tree, or the first one.
    pub fn first(&self) -> &Instance {
        &self.instances[0]
    }

    /// Whether a leaf has packets, in any tree.
    pub fn has_packets(&self, leaf: u32) -> bool {
        self.instances.iter().any(|instance| instance.has_packets(leaf))
    }

    /// Waits until nothing uses what was read of the maps before.
    fn wait(&self) {
        wait_for_readers();
        if let Some(worker) = self.instances.first().and_then(|instance| instance.worker.as_ref()) {
            worker.await_turn();
        }
    }

    /// The owner of each number; 0: none.
    pub fn owners(&self) -> Vec<u64> {
        self.owners.all().iter().map(|owner| owner.load(Ordering::Acquire)).collect()
    }

    /// Writes the owners that differ.
    pub fn set_owners(&self, owners: &[u64]) {
        for (number, owner) in owners.iter().enumerate().filter(|(number, owner)| self.owners.load(*number) != **owner)
        {
            self.owners.store(number, *owner);
        }
    }

    /// Makes the address table that of these addresses. Those that go are found by no packet any more when this returns.
    pub fn set_addresses(&self, addresses: &[(Address, u16)]) -> Result<()> {
        let mut table = Addresses::open(self.addresses.all(), Programs);
        let was: HashMap<Address, u16> = table.entries().collect();
        let is: HashMap<Address, u16> = addresses.iter().copied().collect();
        let gone: Vec<Address> = was.keys().filter(|address| !is.contains_key(address)).copied().collect();
        for address in gone {
            table.remove(address);
        }
        for (address, leaf) in addresses.iter().filter(|(address, leaf)| was.get(address) != Some(leaf)) {
            table.set(*address, *leaf).map_err(|error| Error::system(error.to_string()))?;
        }
        if was != is {
            self.wait();
        }
        Ok(())
    }

    /// Sets what a table without groups has beside them: the seed of its hash, and the time after which a host without packets may lose its leaf.
    pub fn begin_hosts(&self, seed: [u64; 5], idle: Duration) {
        let first = offset_of!(abi::sl_each_host, seed) / 8;
        (first..).zip(seed).for_each(|(word, value)| self.hosts.store(word, value));
        self.hosts.store(offset_of!(abi::sl_each_host, idle_ns) / 8, idle.as_nanos() as u64);
    }

    /// A copy of the table of hosts.
    pub fn copy_of_hosts(&self) -> Box<abi::sl_each_host> {
        let mut copy = abi::boxed_zeroed::<abi::sl_each_host>();
        self.hosts.copy_to(&mut *copy, 0..size_of::<abi::sl_each_host>());
        copy
    }

    /// The groups of hosts.
    pub fn hosts(&self) -> HostTable {
        if self.hosts.load(GROUPS_AT) == 0 { HostTable::empty() } else { HostTable::read(&self.copy_of_hosts()) }
    }

    /// Makes the groups of hosts, which are these now, those of a table. The hosts of one that goes, or gets other places, share a leaf from then
    /// on; the places of a new one are free.
    pub fn set_hosts(&self, now: &HostTable, table: &HostTable) {
        let gone = now.present().filter(|(index, own)| table.groups[*index].as_ref() != Some(*own));
        let gone: Vec<u32> = gone.map(|(_, own)| own.shared).collect();
        gone.iter().for_each(|shared| self.set_group_of(*shared, 0));
        if !gone.is_empty() {
            self.wait();
        }
        // While it is 0, no leaf is a group's, whenever this ends.
        self.hosts.publish(GROUPS_AT, table.present().count() as u64);
        for (index, own) in table.present().filter(|(index, own)| now.groups[*index].as_ref() != Some(*own)) {
            for (place, leaf) in (own.first..).zip(&own.leaves) {
                let empty = abi::sl_host_place { leaf: *leaf as u16, ..NO_HOST };
                let at = offset_of!(abi::sl_each_host, place) + place as usize * size_of::<abi::sl_host_place>();
                self.hosts.set(at, &empty);
            }
            let at = offset_of!(abi::sl_each_host, group) + index * size_of::<abi::sl_host_group>();
            self.hosts.set(at, &own.group());
            self.set_group_of(own.shared, index as u8 + 1);
        }
    }

    fn set_group_of(&self, leaf: u32, group: u8) {
        let at = offset_of!(abi::sl_each_host, group_of) + leaf as usize;
        let mut bytes = self.hosts.load(at / 8).to_ne_bytes();
        bytes[at % 8] = group;
        self.hosts.publish(at / 8, u64::from_ne_bytes(bytes));
    }

    /// Whether the address table is that of these addresses.
    pub fn has_addresses(&self, addresses: &[(Address, u16)]) -> bool {
        let table = Addresses::open(self.addresses.all(), Programs);
        let is: HashMap<Address, u16> = table.entries().collect();
        is.len() == addresses.len() && addresses.iter().all(|(address, leaf)| is.get(address) == Some(leaf))
    }
}

impl Instance {
    /// A copy of what configures the tree, and of its counters. Packets, flows and wheels are left out.
    pub fn copy(&self) -> Box<abi::sl_tree> {
        let mut copy = abi::boxed_zeroed::<abi::sl_tree>();
        self.copy_into(&mut copy);
        copy
    }

    /// The same, into an earlier copy, or zeroes.
    fn copy_into(&self, copy: &mut abi::sl_tree) {
        let head = 0..offset_of!(abi::sl_tree, wheel);
        let inner = offset_of!(abi::sl_tree, inner)..offset_of!(abi::sl_tree, priority);
        let node = offset_of!(abi::sl_tree, node);
        let nodes = node..node + tree::NODES * size_of::<abi::sl_node>();
        // With the parts of divided leaves, and the kinds of queues.
        let leaves = offset_of!(abi::sl_tree, leaf)..offset_of!(abi::sl_tree, slot);
        for part in [head, inner, nodes, leaves] {
            self.tree.copy_to(copy, part);
        }
    }

    /// As [`TreeMaps::running`], of the link, the sites and these leaves only, with the kinds of queues of all leaves.
    pub fn running_part(&self, leaves: &[u32]) -> TreeTable {
        let waiting = self.waiting();
        let mut copy = sparse_tree();
        let node = |number: usize| offset_of!(abi::sl_tree, node) + number * size_of::<abi::sl_node>();
        let leaf = |number: usize| offset_of!(abi::sl_tree, leaf) + number * size_of::<abi::sl_leaf>();
        let inner = |number: usize| offset_of!(abi::sl_tree, inner) + number * size_of::<abi::sl_inner>();
        let parts = |number: usize| offset_of!(abi::sl_tree, parts) + number * size_of::<abi::sl_parts>();
        let queues = offset_of!(abi::sl_tree, queue)..offset_of!(abi::sl_tree, slot);
        let sites = node(tree::LINK as usize)..node(tree::NODES);
        let disciplines = inner(tree::LINK as usize)..inner(tree::NODES);
        for part in [0..offset_of!(abi::sl_tree, wheel), disciplines, queues, sites] {
            self.tree.copy_to(&mut *copy, part);
        }
        let own = leaves.iter().copied().chain([tree::NOBODY]);
        // The word with the kind of a leaf's queue.
        let kind = leaf(0) + offset_of!(abi::sl_leaf, limit_pkts);
        self.tree.copy_each_to(&mut *copy, kind, size_of::<abi::sl_leaf>(), tree::LINK as usize);
        for number in own.clone().map(|number| number as usize) {
            for all in [&node as &dyn Fn(usize) -> usize, &inner, &parts, &leaf] {
                self.tree.copy_to(&mut *copy, all(number)..all(number + 1));
            }
        }
        TreeTable::read_part(&copy, own.chain(tree::LINK..tree::NODES as u32)).after(&waiting)
    }

    /// The configuration that the tree has once the changes are made that wait.
    pub fn running(&self) -> TreeTable {
        // Changes that are made meanwhile are in the copy, and make no difference when they are made once more.
        let waiting = self.waiting();
        TreeTable::read(&self.copy()).after(&waiting)
    }

    /// The configuration that the tree has now, and the one that it has once the changes are made that wait.
    pub fn now_and_running(&self) -> (TreeTable, TreeTable) {
        let waiting = self.waiting();
        let now = TreeTable::read(&self.copy());
        let running = now.clone().after(&waiting);
        (now, running)
    }

    /// Whether the tree has the leaf of nobody, as each one has that was kept whole.
    pub fn is_whole(&self) -> bool {
        NOBODY_WORDS.clone().any(|word| self.tree.load(word) != 0)
    }

    /// Takes the leaf of nobody from the tree, until one is kept again. No program runs it.
    pub fn break_off(&self) {
        NOBODY_WORDS.clone().for_each(|word| self.tree.store(word, 0));
    }

    /// Makes the tree one with this configuration, without packets. No program runs it.
    pub fn keep(&self, table: &TreeTable) -> Result<()> {
        let tree = table.build();
        let tree = tree.map_err(|node| Error::system(format!("the tree of classes refuses node {node}")))?;
        self.tree.copy_from(tree.state());
        Ok(())
    }

    /// Whether a leaf has packets.
    pub fn has_packets(&self, leaf: u32) -> bool {
        let at = offset_of!(abi::sl_tree, leaf) + leaf as usize * size_of::<abi::sl_leaf>();
        let first = self.tree.load(at / 8).to_ne_bytes();
        first[..4] != [0; 4]
    }
}

/// Adds the counters and the backlogs of leaves, and takes the buckets of nodes that have moved further: a leaf's packets come to one tree.
fn add_counts(to: &mut abi::sl_tree, from: &abi::sl_tree) {
    for (to, from) in to.leaf.iter_mut().zip(&from.leaf) {
        // One tree has the leaf's packets; others may have had some before it moved.
        if from.pkts > 0 || to.sent_pkts < from.sent_pkts {
            to.wait_ns = from.wait_ns;
        }
        to.pkts += from.pkts;
        to.backlog_bytes = to.backlog_bytes.wrapping_add(from.backlog_bytes);
        to.marked_pkts = to.marked_pkts.wrapping_add(from.marked_pkts);
        to.dropped_pkts.iter_mut().zip(from.dropped_pkts).for_each(|(to, from)| *to = to.wrapping_add(from));
        to.sent_pkts += from.sent_pkts;
        to.sent_bytes += from.sent_bytes;
        to.early_pkts += from.early_pkts;
    }
    for (to, from) in to.node.iter_mut().zip(&from.node) {
        for (to, from) in to.bucket.iter_mut().zip(&from.bucket) {
            to.tat_64ths = to.tat_64ths.max(from.tat_64ths);
        }
    }
}

/// A place that no host has, without its leaf.
const NO_HOST: abi::sl_host_place = abi::sl_host_place {
    upper: 0,
    lower: 0,
    seen_ns: 0,
    sent_pkts: 0,
    sent_bytes: 0,
    dropped_pkts: 0,
    marked_pkts: 0,
    leaf: 0,
    pad: [0; 7],
};

/// The word with the number of groups of hosts.
const GROUPS_AT: usize = offset_of!(abi::sl_each_host, groups) / 8;

/// The words of the leaf of nobody in the tree.
const NOBODY_WORDS: std::ops::Range<usize> = {
    let node = offset_of!(abi::sl_tree, node) + tree::NOBODY as usize * size_of::<abi::sl_node>();
    node / 8..(node + size_of::<abi::sl_node>()) / 8
};
