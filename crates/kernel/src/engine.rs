//! The engines: the kernel features that each needs, how its parts are made, changed and removed, and whether they are in place.
//!
//! One function makes a part, and another removes it as far as it is there, so that an attempt that died halfway is cleaned up
//! alike.

pub(crate) mod attach;
mod clsact;
pub(crate) mod devices;
pub(crate) mod differences;
pub(crate) mod early_leaf;
pub(crate) mod features;
pub(crate) mod forwarding;
pub(crate) mod htb;
pub(crate) mod htb_tree;
pub(crate) mod leaves;
pub(crate) mod managed;
pub(crate) mod members;
pub(crate) mod options;
pub(crate) mod parts;
pub(crate) mod plan;
pub(crate) mod programs;
pub(crate) mod qdisc;
pub(crate) mod remains;
mod several_trees;
pub(crate) mod steering;
mod tc;
pub(crate) mod tc_tree;
mod tree;
pub(crate) mod tx_queues;
pub(crate) mod verify;
pub(crate) mod xsk;
pub(crate) mod xsk_checks;
pub(crate) mod xsk_process;
mod xsk_tree;
pub(crate) mod xsk_workers;

use crate::bpf::mapped::Mapped;
use crate::bpf::object::Loader;
use crate::maps::tree::TreeMaps;
use crate::record::{Engine, Record, policy};
use crate::system::interface::Interface;
use crate::system::iproute;
use crate::system::qdiscs::{self, Qdisc};
use programs::Loading;
use sluice_abi as abi;
use sluice_error::{Error, Result};
use sluice_policy::{Rate, Resolved};
use sluice_tables::Compiled;
use std::path::Path;
use verify::Scheduler;

/// An interface, its record, and the policy for it.
#[derive(Clone, Copy)]
pub(crate) struct Placed<'a> {
    pub record: &'a Record,
    pub policy: &'a Resolved,
    pub interface: &'a Interface,
    /// Directory of the interface's pins.
    pub pins: &'a Path,
}

impl Placed<'_> {
    /// The compiled policy, as this buffer of the maps holds it.
    pub fn compiled(&self, buffer: u32) -> Result<Compiled> {
        policy::compile(self.policy, self.record, self.interface, buffer)
    }
}

/// The place where an engine counts the packets of its queues.
pub(crate) enum Counters {
    /// The engine has no queues.
    None,
    /// The state of its schedulers, which also keep the ceilings of classes.
    Schedulers(Mapped<abi::sl_instance>),
    /// The qdiscs of the classes.
    Leaves,
    /// The tree of classes.
    Tree(Box<TreeMaps>),
}

/// The operations in which engines differ. Most defaults do nothing.
pub(crate) trait Driver {
    /// Programs of the classifier's object that the engine's queues need, beside those of hooks.
    fn programs(&self, _: &Record) -> &'static [&'static str] {
        &[]
    }

    /// Sets constants and makes maps of the classifier's object that the engine needs, beside those of its queues.
    fn prepare(&self, _: &Record, _: &mut Loader) -> Result<()> {
        Ok(())
    }

    /// Loads the engine's objects beside the classifier, and adds its choices to the record.
    fn load(&self, _: &mut Record, _: &Loading<'_>) -> Result<()> {
        Ok(())
    }

    /// Puts the queues of departing packets in place of the present ones; packets flow all the while.
    fn install(&self, _: &Placed<'_>) -> Result<()> {
        Ok(())
    }

    /// Puts the queues of arriving packets on their device.
    fn install_arrivals(&self, _: &Placed<'_>, _: Rate) -> Result<()> {
        Ok(())
    }

    /// Brings newly loaded programs into the queues that are there.
    fn renew(&self, at: &Placed<'_>) -> Result<()> {
        install(at, self)
    }

    /// Makes the queues fit for a policy before its tables are live.
    fn change(&self, _: &Placed<'_>) -> Result<()> {
        Ok(())
    }

    /// Whether [`Driver::adjust`] is possible, as far as the kind of the root qdisc and the engine's own state tell.
    fn can_adjust(&self, _: &Record, _pins: &Path, _root: &str) -> bool {
        false
    }

    /// Gives the nodes of a part of a network, which are there, what the policy says. No other node and no address differs.
    fn adjust(&self, at: &Placed<'_>) -> Result<()> {
        Err(Error::system(format!("{}: its queues are not those of a network", at.record.interface)))
    }

    /// Removes queues that a policy does not have, once its tables are live.
    fn prune(&self, _: &Placed<'_>) -> Result<()> {
        Ok(())
    }

    /// Fails where the queues are not those of the policy. The pair: the buffer in force, and what it must hold. `seen`: the engine's
    /// schedulers before the tables became live.
    fn verify(&self, _: &Placed<'_>, _: (u32, &Compiled), _: &[Scheduler]) -> Result<()> {
        Ok(())
    }

    /// The engine's schedulers, as they are now.
    fn schedulers(&self, _: &Path) -> Result<Vec<Scheduler>> {
        Ok(Vec::new())
    }

    /// Opens the counters of the queues, to be read again and again.
    fn counters(&self, _: &Path) -> Result<Counters> {
        Ok(Counters::None)
    }

    /// Whether a root qdisc is of this engine, of any record.
    fn makes(&self, _: &Qdisc) -> bool {
        false
    }

    /// Whether a root qdisc is the one that the engine has made for this record.
    fn is_root(&self, _: &Record, _: &Qdisc) -> bool {
        false
    }

    /// Whether the queues that are there were made to their end.
    fn is_whole(&self, _: &Path) -> bool {
        true
    }

    /// Whether the queues have the classes of the policy in force, where other programs can remove one. Asks the kernel for all of them.
    fn has_its_classes(&self, _: &Record, _: &Path) -> Result<bool> {
        Ok(true)
    }

    /// Whether the engine tells hosts apart, which takes more parsing.
    fn knows_hosts(&self) -> bool {
        false
    }

    /// Whether the hooks before the queue can look into it.
    fn shows_its_queues(&self) -> bool {
        false
    }

    /// Whether queued packets stay when the engine's programs are renewed.
    fn keeps_packets(&self) -> bool {
        false
    }

    /// Limitations of a policy on this engine that the operator can remedy.
    fn notes(&self, _: &Record, _: &Resolved) -> Vec<String> {
        Vec::new()
    }

    /// Other differences of a policy on this engine.
    fn details(&self, _: &Placed<'_>) -> Vec<String> {
        Vec::new()
    }
}

/// A policy that only classifies: there is a hook on departure and no queue.
struct ClassifyOnly;

impl Driver for ClassifyOnly {
    fn keeps_packets(&self) -> bool {
        true
    }
}

/// The driver of a record's engine.
pub(crate) fn driver(record: &Record) -> &'static dyn Driver {
    match record.engine {
        Engine::Qdisc if record.way.is_some() => &tree::TreeQdisc,
        Engine::Qdisc => &qdisc::BpfQdisc,
        Engine::Tc if record.way.is_some() => &tc_tree::TcTree,
        Engine::Tc => &tc::Tc,
        Engine::Xsk if record.way.is_some() => &xsk_tree::XskTree,
        Engine::Xsk => &xsk::Xsk,
        Engine::None => &ClassifyOnly,
    }
}

/// Puts the queues of an engine in place: those of departing packets, if they are queued, and those of arriving ones.
pub(crate) fn install(at: &Placed<'_>, driver: &(impl Driver + ?Sized)) -> Result<()> {
    if at.record.members.is_none() {
        driver.install(at)?;
    }
    install_arrivals(at)
}

/// Puts the queues of arriving packets on their device, if they are queued.
pub(crate) fn install_arrivals(at: &Placed<'_>) -> Result<()> {
    match at.record.ingress_rate_bps {
        Some(bps) => driver(at.record).install_arrivals(at, Rate(bps)),
        None => Ok(()),
    }
}

/// Whether a root qdisc is the one of this record.
pub(crate) fn is_ours(record: &Record, root: &Qdisc) -> bool {
    driver(record).is_root(record, root)
}

/// Whether a root qdisc is one of ours, of any record.
pub(crate) fn is_made_by_us(root: &Qdisc) -> bool {
    let drivers: [&dyn Driver; 2] = [&qdisc::BpfQdisc, &tc::Tc]; // the tree has names of the same kind
    drivers.iter().any(|driver| driver.makes(root))
}

/// Takes our queues off the interface; the kernel puts its default in their place.
pub(crate) fn remove_queues(record: &Record) -> Result<()> {
    match qdiscs::root(&record.interface)? {
        // An interrupted upgrade may have left a qdisc of another name.
        Some(root) if is_ours(record, &root) || driver(record).makes(&root) => {
            iproute::tc(&format!("qdisc del dev {} root", record.interface)).map(drop)
        }
        _ => Ok(()),
    }
}

/// Removes our parts from an interface whose record is lost.
pub(crate) fn remove_remains(record: &Record, pins: &Path) -> Result<()> {
    // The record that tells whether Sluice made clsact is lost: a clsact that is in use stays.
    let record = Record { made_clsact: qdiscs::has_clsact(&record.interface)?, ..record.clone() };
    attach::remove_hooks(&record, pins)?;
    iproute::tc(&format!("qdisc del dev {} root", record.interface))?;
    devices::remove(&record.ingress_device())?;
    devices::remove(&record.split_device())?;
    programs::remove_pins(pins)
}
