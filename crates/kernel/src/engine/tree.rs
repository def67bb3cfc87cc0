//! Engine `qdisc` for a policy with subscribers: a tree of classes as a BPF qdisc, which finds the leaf of a packet by its address. It is at the root, or
//! there is one below mq at each tx queue; then they share the rate of the link, each has all nodes, and a filter leads packets to the tree of their leaf
//! (`steering.rs`).
//!
//! The tree is built here and written before the qdisc is made. Later changes go through a ring to the qdisc, which makes them under its own lock:
//! only the nodes that differ are touched, and packets stay queued. Each step compares the maps with the policy, so a step that was broken off is
//! done by whoever comes next.

use crate::bpf::object::Loader;
use crate::engine::early_leaf;
use crate::engine::programs::Loading;
use crate::engine::qdisc;
use crate::engine::verify::Scheduler;
use crate::engine::{Counters, Driver, Placed};
use crate::engine::{several_trees, steering};
use crate::maps::tables;
use crate::maps::tree::{Instance, TreeMaps};
use crate::record::{Engine, Record};
use crate::system::interface::Interface;
use crate::system::qdiscs::Qdisc;
use sluice_abi as abi;
use sluice_error::{Error, Result};
use sluice_policy::Resolved;
use sluice_policy::network::{Network, Way};
use sluice_tables::Compiled;
use sluice_tables::each_host::HostTable;
use sluice_tables::tree::{LINK, NODES, Numbers, TreeError, TreeTable, part};
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::time::Duration;

pub(super) struct TreeQdisc;

/// The part of a policy that the tree is made of.
pub(super) struct Wanted<'a> {
    pub network: &'a Network,
    pub way: Way,
    pub header_bytes: u32,
    /// The most packets that the tree holds.
    slots: u32,
}

impl<'a> Wanted<'a> {
    pub fn of(record: &Record, policy: &'a Resolved, interface: &Interface) -> Result<Wanted<'a>> {
        let missing = || Error::system(format!("{}: the policy has no subscribers", record.interface));
        let network = policy.network.as_ref().ok_or_else(missing)?;
        let way = record.way.ok_or_else(missing)?;
        // Each packet of a wire has a frame, and there are as many as for flat classes.
        let slots = if record.engine == Engine::Xsk { abi::SL_SLOTS } else { abi::SL_TREE_PKTS };
        Ok(Wanted { network, way, header_bytes: interface.header_bytes(), slots })
    }

    /// Whether the leaf of a packet is found by its source, for the programs.
    pub fn by_source(&self) -> u32 {
        u32::from(self.way == Way::Up)
    }

    pub fn table(&self, numbers: &Numbers, running: &TreeTable) -> Result<TreeTable> {
        let table = TreeTable::of(self.network, self.way, numbers, running, self.header_bytes).map_err(refused)?;
        Ok(TreeTable { set_up: abi::sl_tree_conf { slots: self.slots, ..table.set_up }, ..table })
    }

    /// The hosts of the policy's groups, in a table that has these groups now.
    pub fn hosts(&self, numbers: &Numbers, now: &HostTable) -> Result<HostTable> {
        HostTable::of(self.network, numbers, now).map_err(refused)
    }

    /// Fills maps that nothing uses yet. `owners`: of the numbers that are taken. `idle`: the time after which a host without packets may lose its
    /// leaf to another one.
    pub fn fill(&self, pins: &Path, owners: &[u64], idle: Duration) -> Result<()> {
        let numbers = Numbers::of(self.network, owners).map_err(refused)?;
        let maps = TreeMaps::open(pins)?;
        let table = self.table(&numbers, &TreeTable::empty())?;
        maps.instances.iter().try_for_each(|instance| instance.keep(&table))?;
        maps.set_homes(&table);
        let addresses = sluice_tables::build_addresses(&numbers.addresses(self.network), random);
        let addresses = addresses.map_err(|error| Error::input(error.to_string()))?;
        tables::write(&tables::open(pins, "addresses")?, 0, &*addresses)?;
        maps.set_owners(&numbers.owners);
        maps.begin_hosts([(); 5].map(|()| random()), idle);
        maps.set_hosts(&HostTable::empty(), &self.hosts(&numbers, &HostTable::empty())?);
        Ok(())
    }

    /// Makes each of these trees, which run so, that of the policy, or that part of them, and then has packets of the leaves come to their homes.
    fn make<'m>(
        &self,
        numbers: &Numbers,
        maps: &TreeMaps,
        trees: impl IntoIterator<Item = (&'m Instance, TreeTable)>,
    ) -> Result<()> {
        let mut wanted = None;
        for (instance, running) in trees {
            // Kinds of queues may have other numbers in another tree.
            let table = self.table(numbers, &running)?;
            instance.make(&running.changes_to(&table))?;
            wanted = Some(table);
        }
        wanted.iter().for_each(|table| maps.set_homes(table));
        Ok(())
    }

    /// Has packets found by the addresses of the policy, whose leaves are there. `hosts`: the groups as they are, and as the policy has them.
    pub fn lead(&self, numbers: &Numbers, maps: &TreeMaps, (now, hosts): (&HostTable, &HostTable)) -> Result<()> {
        maps.set_hosts(now, hosts);
        maps.set_addresses(&numbers.addresses(self.network))
    }

    /// The numbers of the nodes, of a network that is a part of the one in force. Fails unless all of them are there.
    pub fn numbers_in_force(&self, at: &Placed<'_>, maps: &TreeMaps) -> Result<Numbers> {
        let lacks = || Error::system(format!("{}: the tree of classes lacks a subscriber", at.record.interface));
        Numbers::of_part(self.network, &maps.owners()).ok_or_else(lacks)
    }

    /// The numbers of the nodes. Fails unless the tree has the nodes of the policy, and the address table its addresses.
    pub fn check(&self, at: &Placed<'_>, maps: &TreeMaps) -> Result<Numbers> {
        let wrong = |what: &str| Err(Error::system(format!("{}: {what}", at.record.interface)));
        let numbers = Numbers::of(self.network, &maps.owners()).map_err(refused)?;
        for (number, instance) in maps.instances.iter().enumerate() {
            let running = instance.running();
            let table = self.table(&numbers, &running)?;
            if !running.includes(&table) {
                return wrong("the tree of classes is not the one that was written");
            }
            if number == 0 && !maps.has_homes(&table) {
                return wrong("packets do not come to the tx queues that were written");
            }
        }
        if !maps.has_addresses(&numbers.addresses(self.network)) {
            return wrong("the table of addresses is not the one that was written");
        }
        let hosts = maps.hosts();
        if self.hosts(&numbers, &hosts)? != hosts {
            return wrong("the groups of hosts are not those that were written");
        }
        Ok(numbers)
    }
}

/// The error of a tree that cannot be, or not yet.
pub(super) fn refused(error: TreeError) -> Error {
    let cure = match error {
        TreeError::SameHash(..) => "give one of them another name",
        TreeError::NoQueues(_) => "let more plans have the same \"queue\" and \"aqm\", or change fewer of them at once",
        TreeError::NoHostPlaces(_) => {
            "make \"hosts\" of the group smaller, or take it out and add it again with the others"
        }
        _ => {
            "remove some in a change before this one, and try again once they have no packets; or change fewer at once"
        }
    };
    Error::input(error.to_string()).help(cure)
}

impl Driver for TreeQdisc {
    /// Loads the qdisc with one tree, or one for each tx queue and the program of the filter, and registers it under a name that is free, which it sets in
    /// the record.
    fn load(&self, record: &mut Record, loading: &Loading<'_>) -> Result<()> {
        let interface = loading.interface;
        let wanted = Wanted::of(record, loading.policy, interface)?;
        let (marks, trees) = (record.split || record.marks, record.queues);
        qdisc::register(record, loading.pins, || {
            let mut loader = Loader::tree()?;
            loader.constant("sl_leaf_by_source", wanted.by_source())?;
            loader.constant("sl_l3_type", u32::from(!interface.ethernet))?;
            loader.constant("sl_marks", u32::from(marks))?;
            loader.constant("sl_frame_bytes", interface.mtu_bytes + interface.header_bytes() + 4)?;
            if trees > 0 {
                loader.constant("sl_trees", trees)?;
                loader.entries("tree", trees)?;
                loader.entries("changes", trees)?;
                loader.entries("packets", trees * abi::SL_TREE_SLOTS)?;
                loader.make("shared_trees", 1)?;
                loader.make("tree_part", trees)?;
                loader.help_without_memory(several_trees::help_without_memory(trees, &interface.name));
            }
            Ok(loader)
        })?;
        if trees > 0 {
            let parts = tables::open(loading.pins, "tree_part")?;
            let frame_bytes = sluice_tables::frame_bytes(&wanted.network.framing, interface.mtu_bytes);
            (0..trees).try_for_each(|n| tables::write(&parts, n, &part(n, trees, frame_bytes)))?;
        }
        steering::load(record, wanted.by_source(), u32::from(!interface.ethernet), loading.pins)?;
        // A leaf without packets and debt owes nothing, so another host may have it at once.
        wanted.fill(loading.pins, &vec![0; NODES], Duration::ZERO)?;
        early_leaf::load(record, wanted.by_source(), loading.pins)
    }

    fn install(&self, at: &Placed<'_>) -> Result<()> {
        qdisc::install(at.record)
    }

    /// Adds what the tree lacks and changes what differs, then finds packets by the new addresses. What the policy lacks stays until `prune`.
    fn change(&self, at: &Placed<'_>) -> Result<()> {
        let wanted = Wanted::of(at.record, at.policy, at.interface)?;
        let maps = TreeMaps::open(at.pins)?;
        let (mut all, mut in_use) = (Vec::new(), vec![0; NODES]);
        for instance in &maps.instances {
            let (now, running) = instance.now_and_running();
            let own = now.owners_in_use(&running, &maps.owners());
            in_use.iter_mut().zip(own).for_each(|(all, own)| *all = own.max(*all));
            all.push((instance, running));
        }
        let numbers = Numbers::of(wanted.network, &in_use).map_err(refused)?;
        let groups = maps.hosts();
        let hosts = wanted.hosts(&numbers, &groups)?;
        maps.set_owners(&numbers.owners);
        wanted.make(&numbers, &maps, all)?;
        wanted.lead(&numbers, &maps, (&groups, &hosts))
    }

    fn can_adjust(&self, record: &Record, _: &Path, root: &str) -> bool {
        root == if record.queues > 0 { "mq" } else { &record.qdisc }
    }

    fn adjust(&self, at: &Placed<'_>) -> Result<()> {
        let wanted = Wanted::of(at.record, at.policy, at.interface)?;
        let maps = TreeMaps::open(at.pins)?;
        let numbers = wanted.numbers_in_force(at, &maps)?;
        let leaves = numbers.all_leaves();
        let all = maps.instances.iter().map(|instance| (instance, instance.running_part(&leaves)));
        wanted.make(&numbers, &maps, all)
    }

    /// Removes what the policy lacks, but for leaves with packets and what is above them: a later change removes those.
    fn prune(&self, at: &Placed<'_>) -> Result<()> {
        let wanted = Wanted::of(at.record, at.policy, at.interface)?;
        let maps = TreeMaps::open(at.pins)?;
        let numbers = Numbers::of(wanted.network, &maps.owners()).map_err(refused)?;
        let gone = numbers.gone();
        // Asked once: a leaf stays in all trees, or goes from all.
        let busy: HashSet<u32> =
            gone.iter().copied().filter(|number| *number < LINK && maps.has_packets(*number)).collect();
        let removals = |instance: &Instance| instance.running().removals(&gone, |leaf| busy.contains(&leaf));
        maps.instances.iter().try_for_each(|instance| instance.make(&removals(instance)))
    }

    fn verify(&self, at: &Placed<'_>, _: (u32, &Compiled), _: &[Scheduler]) -> Result<()> {
        Wanted::of(at.record, at.policy, at.interface)?.check(at, &TreeMaps::open(at.pins)?).map(drop)
    }

    fn counters(&self, pins: &Path) -> Result<Counters> {
        TreeMaps::open(pins).map(|maps| Counters::Tree(Box::new(maps)))
    }

    fn makes(&self, root: &Qdisc) -> bool {
        qdisc::makes(root)
    }

    fn is_root(&self, record: &Record, root: &Qdisc) -> bool {
        qdisc::is_root(record, root)
    }
}

/// A random number.
fn random() -> u64 {
    // A hasher of the standard library has random keys.
    RandomState::new().hash_one(0)
}
