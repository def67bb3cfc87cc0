//! Engine `tc` for a policy with subscribers: HTB with a class for each node of the tree, and a BPF classifier at its root that finds the leaf of a
//! packet by its address.
//!
//! The map `tree` keeps what HTB was told, node by node, as the core would hold it: a change compares it with the policy and touches what differs. It
//! lacks the class of nobody while tc carries out a change. The next step that finds the map so, because a change was broken off or has failed, makes HTB
//! anew.

use crate::bpf::object::{self, Loader};
use crate::engine::htb::HANDLE;
use crate::engine::htb_tree::{self, HtbTree};
use crate::engine::leaves::Leaf;
use crate::engine::programs::Loading;
use crate::engine::tree::{Wanted, refused};
use crate::engine::verify::Scheduler;
use crate::engine::{Counters, Driver, Placed, leaves, tc};
use crate::fault;
use crate::maps::tree::TreeMaps;
use crate::record::Record;
use crate::system::qdiscs::Qdisc;
use crate::system::{bpffs, iproute, paths};
use sluice_error::{Error, Result};
use sluice_policy::Resolved;
use sluice_policy::network::Network;
use sluice_tables::Compiled;
use sluice_tables::tree::{NODES, Numbers, TreeTable};
use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

/// Time after which a host without packets may lose its leaf to another one. The classifier does not see what waits below HTB, so the next host
/// inherits it.
const HOST_IDLE: Duration = Duration::from_secs(60);
/// The classifier of HTB's root.
const CLASSIFIER: &str = "sl_htb_tree";

pub(super) struct TcTree;

impl Wanted<'_> {
    fn htb<'a>(&'a self, at: &'a Placed<'_>, numbers: &'a Numbers) -> HtbTree<'a> {
        HtbTree {
            device: &at.record.interface,
            network: self.network,
            way: self.way,
            numbers,
            header_bytes: self.header_bytes,
            leaves: tc::leaf_kinds(at.record),
        }
    }
}

impl Driver for TcTree {
    /// Loads the classifier, with the addresses of the policy. An upgrade keeps the numbers of nodes, which HTB's classes have.
    fn load(&self, record: &mut Record, loading: &Loading<'_>) -> Result<()> {
        let wanted = Wanted::of(record, loading.policy, loading.interface)?;
        let mut loader = Loader::htb_tree()?;
        loader.constant("sl_leaf_by_source", wanted.by_source())?;
        loader.constant("sl_l3_type", u32::from(!loading.interface.ethernet))?;
        let mut object = loader.load(paths::run())?;
        object::pin_maps(&mut object, loading.pins)?;
        object::pin_programs(&object, loading.pins)?;
        let former = record.pins(&bpffs::root()?);
        wanted.fill(loading.pins, &owners(&former).unwrap_or_else(|| vec![0; NODES]), HOST_IDLE)
    }

    fn install(&self, at: &Placed<'_>) -> Result<()> {
        rebuild(at, &Wanted::of(at.record, at.policy, at.interface)?, &TreeMaps::open(at.pins)?)
    }

    /// HTB and the packets in it stay, and its filter is replaced, where the nodes have kept their numbers.
    fn renew(&self, at: &Placed<'_>) -> Result<()> {
        let former = owners(&at.record.pins(&bpffs::root()?));
        if former.is_some_and(|former| TreeMaps::open(at.pins).is_ok_and(|maps| maps.owners() == former)) {
            return iproute::tc_batch(&[tc::classifier(&at.record.interface, at.pins, CLASSIFIER)]);
        }
        self.install(at)
    }

    /// Adds what HTB lacks and changes what differs, then finds packets by the new addresses. What the policy lacks stays until `prune`.
    fn change(&self, at: &Placed<'_>) -> Result<()> {
        let wanted = Wanted::of(at.record, at.policy, at.interface)?;
        let maps = TreeMaps::open(at.pins)?;
        let running = maps.first().running();
        // Other programs can remove classes of HTB.
        if !maps.first().is_whole() || !has_classes_of(&at.record.interface, &running)? {
            return rebuild(at, &wanted, &maps);
        }
        let owners = running.owners_in_use(&running, &maps.owners());
        let numbers = Numbers::of(wanted.network, &owners).map_err(refused)?;
        let table = wanted.table(&numbers, &running)?;
        let groups = maps.hosts();
        let hosts = wanted.hosts(&numbers, &groups)?;
        let changes = running.changes_to(&table);
        if !changes.is_empty() {
            tell(&maps, &lines(&wanted.htb(at, &numbers), (&running, &table), &changes))?;
        }
        maps.set_owners(&numbers.owners);
        maps.first().keep(&running.after(&changes))?;
        wanted.lead(&numbers, &maps, (&groups, &hosts))
    }

    fn can_adjust(&self, _: &Record, pins: &Path, root: &str) -> bool {
        root == "htb" && self.is_whole(pins)
    }

    fn adjust(&self, at: &Placed<'_>) -> Result<()> {
        let wanted = Wanted::of(at.record, at.policy, at.interface)?;
        let maps = TreeMaps::open(at.pins)?;
        let numbers = wanted.numbers_in_force(at, &maps)?;
        let running = maps.first().running();
        let table = wanted.table(&numbers, &running)?;
        let changes = running.changes_to(&table);
        if changes.is_empty() {
            return Ok(());
        }
        tell(&maps, &lines(&wanted.htb(at, &numbers), (&running, &table), &changes))?;
        maps.first().keep(&running.after(&changes))
    }

    /// Removes the HTB classes that the policy lacks, which no address leads to any more.
    fn prune(&self, at: &Placed<'_>) -> Result<()> {
        let wanted = Wanted::of(at.record, at.policy, at.interface)?;
        let maps = TreeMaps::open(at.pins)?;
        if !maps.first().is_whole() {
            return rebuild(at, &wanted, &maps);
        }
        let running = maps.first().running();
        let numbers = Numbers::of(wanted.network, &maps.owners()).map_err(refused)?;
        let changes = running.removals(&numbers.gone(), |_| false);
        if changes.is_empty() {
            return Ok(());
        }
        let nodes = changes.iter().filter(|change| change.kind == sluice_abi::SL_CHANGE_REMOVE);
        let gone: Vec<u32> = nodes.map(|change| change.at).collect();
        tell(&maps, &htb_tree::remove(&gone, &at.record.interface))?;
        maps.first().keep(&running.after(&changes))
    }

    /// Fails unless HTB has a class for each node of the policy and no other, and the address table has its prefixes.
    fn verify(&self, at: &Placed<'_>, _: (u32, &Compiled), _: &[Scheduler]) -> Result<()> {
        let wanted = Wanted::of(at.record, at.policy, at.interface)?;
        let maps = TreeMaps::open(at.pins)?;
        let numbers = wanted.check(at, &maps)?;
        let table = wanted.table(&numbers, &TreeTable::empty())?;
        if !has_classes_of(&at.record.interface, &table)? {
            return Err(Error::system(format!("{}: the HTB classes are not those of the policy", at.record.interface)));
        }
        Ok(())
    }

    fn counters(&self, pins: &Path) -> Result<Counters> {
        TreeMaps::open(pins).map(|maps| Counters::Tree(Box::new(maps)))
    }

    fn is_whole(&self, pins: &Path) -> bool {
        TreeMaps::open(pins).is_ok_and(|maps| maps.first().is_whole())
    }

    fn has_its_classes(&self, record: &Record, pins: &Path) -> Result<bool> {
        has_classes_of(&record.interface, &TreeMaps::open(pins)?.first().running())
    }

    fn keeps_packets(&self) -> bool {
        true
    }

    fn makes(&self, root: &Qdisc) -> bool {
        tc::Tc.makes(root)
    }

    fn is_root(&self, _: &Record, root: &Qdisc) -> bool {
        self.makes(root)
    }

    fn notes(&self, record: &Record, policy: &Resolved) -> Vec<String> {
        let lacks = policy.network.as_ref().map_or(0, |network| {
            let kinds = tc::leaf_kinds(record);
            network.queues.iter().filter(|queue| !kinds.have_queue(queue.queue.flows(), queue.codel)).count()
        });
        let of_classes = policy.network.as_ref().is_some_and(Network::is_class_tree);
        let who = if of_classes { "classes that ask for one" } else { "subscribers whose plan asks for one" };
        let what = format!("this kernel lacks fq_codel or codel: {who} have a FIFO");
        Vec::from_iter((lacks > 0).then(|| tc::note(&what)))
    }

    fn details(&self, at: &Placed<'_>) -> Vec<String> {
        let Some((network, way)) = at.policy.network.as_ref().zip(at.record.way) else { return Vec::new() };
        htb_tree::of_tree(network, way, at.interface.header_bytes()).iter().map(tc::note).collect()
    }
}

/// Whether HTB has the classes of a tree and no other.
fn has_classes_of(device: &str, tree: &TreeTable) -> Result<bool> {
    Ok(tc::minors(device)? == htb_tree::minors(tree))
}

/// The lines that lead HTB from one tree, which it was told, to another one by these changes.
fn lines(
    htb: &HtbTree<'_>,
    (from, to): (&TreeTable, &TreeTable),
    changes: &[sluice_abi::sl_tree_change],
) -> Vec<String> {
    let moved = htb_tree::moved(from, to);
    let renewed: HashSet<u32> = moved.iter().copied().collect();
    let touched = htb_tree::touched(changes, to);
    let by_flow = |leaf: u32| {
        let queue = from.nodes.get(&leaf).and_then(|node| from.queues.get(&node.queue));
        htb.leaves.fq_codel && queue.is_some_and(|queue| queue.one_flow == 0)
    };
    let mut lines = htb_tree::remove(&moved, htb.device);
    lines.extend(htb.lines(
        |number| touched.contains(&number) || renewed.contains(&number),
        |leaf| by_flow(leaf) && !renewed.contains(&leaf),
    ));
    lines
}

/// Makes HTB anew, and the maps agree with it. Until its classes are there, packets pass the kernel's own queue, or the class of nobody.
fn rebuild(at: &Placed<'_>, wanted: &Wanted<'_>, maps: &TreeMaps) -> Result<()> {
    let device = &at.record.interface;
    let numbers = Numbers::of(wanted.network, &maps.owners()).map_err(refused)?;
    let table = wanted.table(&numbers, &TreeTable::empty())?;
    let groups = maps.hosts();
    let hosts = wanted.hosts(&numbers, &groups)?;
    // HTB does not change in place.
    if tc::has_htb(device)? {
        iproute::tc(&format!("qdisc del dev {device} root"))?;
    }
    let mut lines = wanted.htb(at, &numbers).build();
    lines.push(tc::classifier(device, at.pins, CLASSIFIER));
    tell(maps, &lines)?;
    maps.set_owners(&numbers.owners);
    maps.first().keep(&table)?;
    wanted.lead(&numbers, maps, (&groups, &hosts))
}

/// Has tc carry out these lines. Until the caller keeps the tree that they make, HTB is known to be in between: a batch that fails or is killed
/// has carried out a part of them.
fn tell(maps: &TreeMaps, lines: &[String]) -> Result<()> {
    maps.first().break_off();
    iproute::tc_batch(lines)?;
    fault::point("htb-told");
    Ok(())
}

/// The owners of the nodes whose maps are pinned there, if this version has made them.
fn owners(pins: &Path) -> Option<Vec<u64>> {
    TreeMaps::open(pins).ok().map(|maps| maps.owners())
}

/// The node whose HTB class a queue stands below.
fn node_above(leaf: &Leaf) -> Option<u32> {
    u32::from_str_radix(leaf.parent.strip_prefix(HANDLE)?, 16).ok()?.checked_sub(1)
}

/// Adds what the queues below HTB have counted to a copy of the tree's state.
pub(crate) fn add_counts(tree: &mut sluice_abi::sl_tree, device: &str) -> Result<()> {
    for leaf in leaves::of_device(device)? {
        let Some(own) = node_above(&leaf).and_then(|node| tree.leaf.get_mut(node as usize)) else { continue };
        own.sent_pkts = leaf.packets;
        own.sent_bytes = leaf.bytes;
        own.pkts = u32::try_from(leaf.qlen).unwrap_or(u32::MAX);
        own.backlog_bytes = u32::try_from(leaf.backlog).unwrap_or(u32::MAX);
        own.marked_pkts = leaf.ecn_mark as u32;
        own.dropped_pkts[sluice_abi::SL_DROP_OVERFLOW as usize] = leaf.drops as u32;
    }
    add_parts(tree);
    Ok(())
}

/// Has divided leaves count what their parts do, as the core does.
fn add_parts(tree: &mut sluice_abi::sl_tree) {
    for part in 0..tree.leaf.len() {
        let own = tree.leaf[part];
        let Some(whole) = own.whole.checked_sub(1).and_then(|whole| tree.leaf.get_mut(usize::from(whole))) else {
            continue;
        };
        whole.sent_pkts += own.sent_pkts;
        whole.sent_bytes += own.sent_bytes;
        whole.pkts += own.pkts;
        whole.backlog_bytes += own.backlog_bytes;
        whole.marked_pkts += own.marked_pkts;
        whole.dropped_pkts.iter_mut().zip(own.dropped_pkts).for_each(|(all, own)| *all += own);
    }
}
