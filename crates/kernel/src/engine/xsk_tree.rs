//! Engine `xsk` for a policy with subscribers or a class tree: the process runs the tree, in the maps that engine `qdisc` has for it and by the same changes.
//! The arrival hook looks up what the address of a packet leads to, and drops what its leaf has no room for (`bpf/lib/wire_leaf.h`).

use crate::bpf::object::Loader;
use crate::engine::programs::Loading;
use crate::engine::tree::{TreeQdisc, Wanted};
use crate::engine::verify::Scheduler;
use crate::engine::xsk::hand_over;
use crate::engine::{Counters, Driver, Placed};
use crate::maps::workers::Workers;
use crate::record::Record;
use sluice_error::Result;
use sluice_policy::network::Way;
use sluice_tables::Compiled;
use sluice_tables::tree::NODES;
use std::path::Path;
use std::time::Duration;

pub(super) struct XskTree;

impl Driver for XskTree {
    fn prepare(&self, record: &Record, loader: &mut Loader) -> Result<()> {
        hand_over(loader)?;
        loader.constant("sl_wire_tree", 1)?;
        loader.constant("sl_leaf_by_source", u32::from(record.way == Some(Way::Up)))?;
        loader.make_tree()
    }

    /// Writes the tree, before a process takes it up.
    fn load(&self, record: &mut Record, loading: &Loading<'_>) -> Result<()> {
        // As with engine `qdisc`, a leaf without packets and debt owes nothing.
        let wanted = Wanted::of(record, loading.policy, loading.interface)?;
        wanted.fill(loading.pins, &vec![0; NODES], Duration::ZERO)
    }

    fn change(&self, at: &Placed<'_>) -> Result<()> {
        TreeQdisc.change(at)
    }

    fn can_adjust(&self, _: &Record, _: &Path, _: &str) -> bool {
        true
    }

    fn adjust(&self, at: &Placed<'_>) -> Result<()> {
        TreeQdisc.adjust(at)
    }

    fn prune(&self, at: &Placed<'_>) -> Result<()> {
        TreeQdisc.prune(at)
    }

    fn verify(&self, at: &Placed<'_>, live: (u32, &Compiled), seen: &[Scheduler]) -> Result<()> {
        Workers::open(at.pins)?.await_turn();
        TreeQdisc.verify(at, live, seen)
    }

    fn counters(&self, pins: &Path) -> Result<Counters> {
        TreeQdisc.counters(pins)
    }

    fn keeps_packets(&self) -> bool {
        true
    }
}
