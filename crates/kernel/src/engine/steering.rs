//! Steering: where each tx queue has a tree of classes, a filter on departure leads each packet to the queue whose tree is the home of its leaf. The
//! program sets the hash of the packet (`bpf/steer.bpf.c`), and the action skbedit takes the queue by it, before the kernel would choose one
//! by XPS, or by what a socket has used before.

use crate::bpf::hooks;
use crate::bpf::object::{self, Loader};
use crate::engine::clsact;
use crate::record::{Engine, Record};
use crate::system::{paths, steering_filter};
use sluice_error::{Doing, Result};
use std::os::fd::AsFd;
use std::path::Path;

/// The program, and its pin.
const PROGRAM: &str = "sl_steer";

/// Whether packets of an interface are led to queues.
pub(super) fn is_wanted(record: &Record) -> bool {
    record.engine == Engine::Qdisc && record.way.is_some() && record.queues > 0
}

/// Loads the program beside the trees, whose maps are pinned.
pub(super) fn load(record: &Record, by_source: u32, l3: u32, pins: &Path) -> Result<()> {
    if !is_wanted(record) {
        return Ok(());
    }
    let mut loader = Loader::steer()?;
    loader.constant("sl_leaf_by_source", by_source)?;
    loader.constant("sl_l3_type", l3)?;
    loader.constant("sl_trees", record.queues)?;
    loader.share(pins)?;
    let mut loaded = loader.load(paths::run())?;
    object::pin_maps(&mut loaded, pins)?;
    object::pin_programs(&loaded, pins)
}

/// Puts the filter on departures, in place of an earlier one.
pub(crate) fn install(record: &mut Record, pins: &Path) -> Result<()> {
    if !is_wanted(record) {
        return Ok(());
    }
    clsact::claim(record)?;
    let program = hooks::pinned_fd(&pins.join(PROGRAM))?;
    steering_filter::set(record.ifindex, program.as_fd(), record.queues)
        .doing(|| format!("leading departures of {} to its tx queues (act_skbedit)", record.interface))
}
