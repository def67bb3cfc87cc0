//! Engine `tc` for a policy with subscribers: HTB with a class for each node of the tree, and a BPF classifier at its root that finds the leaf of a
//! packet by its address.
//!
//! The map `tree` keeps what HTB was told, node by node, as the core would hold it: a change compares it with the policy and touches what differs. What
//! HTB has is asked before, so a change that was broken off is done by whoever comes next.

use crate::bpf::object::{self, Loader};
use crate::engine::htb::{HANDLE, Leaves};
use crate::engine::htb_tree::{self, HtbTree};
use crate::engine::programs::Loading;
use crate::engine::tree::{Wanted, refused};
use crate::engine::verify::Scheduler;
use crate::engine::{Counters, Driver, Placed, htb, leaves, tc};
use crate::maps::tree::TreeMaps;
use crate::record::Record;
use crate::system::qdiscs::Qdisc;
use crate::system::{iproute, paths};
use sluice_error::{Error, Result};
use sluice_policy::Resolved;
use sluice_tables::Compiled;
use sluice_tables::tree::{Numbers, TreeTable};
use std::collections::HashSet;
use std::path::Path;

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
            leaves: Leaves { fq_codel: at.record.fq_codel, codel: at.record.codel },
        }
    }
}

impl Driver for TcTree {
    fn programs(&self) -> &'static [&'static str] {
        &["sl_split"]
    }

    /// Loads the classifier, with the addresses of the policy.
    fn load(&self, record: &mut Record, loading: &Loading<'_>) -> Result<()> {
        let wanted = Wanted::of(record, loading.policy, loading.interface)?;
        let mut loader = Loader::htb_tree()?;
        loader.constant("sl_leaf_by_source", wanted.by_source())?;
        loader.constant("sl_l3_type", u32::from(!loading.interface.ethernet))?;
        let mut object = loader.load(paths::run())?;
        object::pin_maps(&mut object, loading.pins)?;
        object::pin_programs(&object, loading.pins)?;
        wanted.fill(loading.pins)
    }

    /// Makes HTB anew; until then packets pass the kernel's own queue.
    fn install(&self, at: &Placed<'_>) -> Result<()> {
        let device = &at.record.interface;
        if tc::has_htb(device)? {
            iproute::tc(&format!("qdisc del dev {device} root"))?;
        }
        let wanted = Wanted::of(at.record, at.policy, at.interface)?;
        let numbers = Numbers::of(wanted.network, &TreeMaps::open(at.pins)?.owners()).map_err(refused)?;
        let mut lines = wanted.htb(at, &numbers).build();
        lines.push(tc::classifier(device, at.pins, CLASSIFIER));
        iproute::tc_batch(&lines)
    }

    /// Adds what HTB lacks and changes what differs, then finds packets by the new addresses. What the policy lacks stays until `prune`.
    fn change(&self, at: &Placed<'_>) -> Result<()> {
        let wanted = Wanted::of(at.record, at.policy, at.interface)?;
        let maps = TreeMaps::open(at.pins)?;
        let running = maps.running();
        let owners = Numbers::in_use(&maps.owners(), &running, &running);
        let numbers = Numbers::of(wanted.network, &owners).map_err(refused)?;
        let table = wanted.table(&numbers, &running)?;
        let changes = running.changes_to(&table);
        let device = &at.record.interface;
        if !changes.is_empty() {
            let there = There::of(device)?;
            let mut anew = htb_tree::moved(&running, &table);
            // Those that a change which was broken off has added.
            anew.extend(table.nodes.keys().filter(|number| !running.nodes.contains_key(number)));
            anew.retain(|number| there.has(*number));
            let renewed: HashSet<u32> = anew.iter().copied().collect();
            let touched = htb_tree::touched(&changes, &table);
            let is_wanted = |number: u32| touched.contains(&number) || renewed.contains(&number);
            let mut lines = htb_tree::remove(&anew, device);
            let by_flow = |number: u32| there.is_by_flow(number) && !renewed.contains(&number);
            lines.extend(wanted.htb(at, &numbers).lines(is_wanted, by_flow));
            iproute::tc_batch(&lines)?;
        }
        maps.set_owners(&numbers.owners);
        maps.keep(&running.after(&changes))?;
        maps.set_addresses(&numbers.prefixes(wanted.network))
    }

    /// Removes the HTB classes that the policy lacks, which no address leads to any more.
    fn prune(&self, at: &Placed<'_>) -> Result<()> {
        let wanted = Wanted::of(at.record, at.policy, at.interface)?;
        let maps = TreeMaps::open(at.pins)?;
        let running = maps.running();
        let numbers = Numbers::of(wanted.network, &maps.owners()).map_err(refused)?;
        let changes = running.removals(&numbers.gone(), |_| false);
        if changes.is_empty() {
            return Ok(());
        }
        let there = There::of(&at.record.interface)?;
        let gone: Vec<u32> = changes.iter().map(|change| change.at).filter(|number| there.has(*number)).collect();
        iproute::tc_batch(&htb_tree::remove(&gone, &at.record.interface))?;
        maps.keep(&running.after(&changes))
    }

    /// Fails unless HTB has a class for each node of the policy and no other, and the address table has its prefixes.
    fn verify(&self, at: &Placed<'_>, _: (u32, &Compiled), _: &[Scheduler]) -> Result<()> {
        let wanted = Wanted::of(at.record, at.policy, at.interface)?;
        let maps = TreeMaps::open(at.pins)?;
        let numbers = wanted.check(at, &maps)?;
        let table = wanted.table(&numbers, &TreeTable::empty())?;
        if There::of(&at.record.interface)?.classes != htb_tree::minors(&table) {
            return Err(Error::system(format!("{}: the HTB classes are not those of the policy", at.record.interface)));
        }
        Ok(())
    }

    fn counters(&self, pins: &Path) -> Result<Counters> {
        TreeMaps::open(pins).map(Counters::Tree)
    }

    fn makes(&self, root: &Qdisc) -> bool {
        tc::Tc.makes(root)
    }

    fn is_root(&self, _: &Record, root: &Qdisc) -> bool {
        self.makes(root)
    }

    fn notes(&self, record: &Record, policy: &Resolved) -> Vec<String> {
        let lacks = policy.network.as_ref().map_or(0, |network| {
            let kinds = Leaves { fq_codel: record.fq_codel, codel: record.codel };
            network.queues.iter().filter(|queue| !kinds.have_queue(queue.queue.flows(), queue.codel)).count()
        });
        let note = "engine tc: this kernel lacks fq_codel or codel: subscribers whose plan asks for one have a FIFO";
        Vec::from_iter((lacks > 0).then(|| note.to_owned()))
    }

    fn details(&self, at: &Placed<'_>) -> Vec<String> {
        let Some((network, way)) = at.policy.network.as_ref().zip(at.record.way) else { return Vec::new() };
        let all = htb_tree::differences(network, way, at.interface.header_bytes());
        all.iter().map(|difference| format!("engine tc: {difference}")).collect()
    }
}

/// The classes and queues that HTB has.
struct There {
    /// Minor numbers of its classes, in order.
    classes: Vec<u32>,
    /// Parents of queues by flow.
    by_flow: HashSet<String>,
}

impl There {
    fn of(device: &str) -> Result<There> {
        let queues = leaves::of_device(device)?.into_iter().filter(|leaf| leaf.kind == "fq_codel");
        Ok(There { classes: tc::minors(device)?, by_flow: queues.map(|leaf| leaf.parent).collect() })
    }

    fn has(&self, number: u32) -> bool {
        self.classes.binary_search(&htb_tree::minor(number)).is_ok()
    }

    fn is_by_flow(&self, number: u32) -> bool {
        self.by_flow.contains(&format!("{HANDLE}{:x}", htb_tree::minor(number)))
    }
}

/// Adds what the queues below HTB have counted to a copy of the tree's state.
pub(crate) fn add_counts(tree: &mut sluice_abi::sl_tree, device: &str) -> Result<()> {
    for leaf in leaves::of_device(device)? {
        let minor = leaf.parent.strip_prefix(htb::HANDLE).and_then(|minor| u32::from_str_radix(minor, 16).ok());
        let Some(own) = minor.and_then(|minor| tree.leaf.get_mut(minor.checked_sub(1)? as usize)) else { continue };
        own.sent_pkts = leaf.packets;
        own.sent_bytes = leaf.bytes;
        own.pkts = u32::try_from(leaf.qlen).unwrap_or(u32::MAX);
        own.backlog_bytes = u32::try_from(leaf.backlog).unwrap_or(u32::MAX);
        own.marked_pkts = leaf.ecn_mark as u32;
        own.dropped_pkts[sluice_abi::SL_DROP_OVERFLOW as usize] = leaf.drops as u32;
    }
    Ok(())
}
