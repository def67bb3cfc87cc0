//! The programs of an interface, and their pins.

use crate::bpf::hooks::Side;
use crate::bpf::object::{self, Loader};
use crate::engine::{self, Driver, attach, devices, features};
use crate::maps::{arrivals, forwarding};
use crate::record::{Engine, Hook, Record};
use crate::system::interface::Interface;
use crate::system::{bpffs, paths};
use sluice_error::{Doing, Result};
use sluice_policy::Resolved;
use std::fs;
use std::path::Path;

/// Inputs for the programs of an engine.
pub(crate) struct Loading<'a> {
    pub interface: &'a Interface,
    pub policy: &'a Resolved,
    pub pins: &'a Path,
    /// Number of the device behind which arriving packets are queued; 0: there is none.
    pub ingress_ifb: u32,
    /// Number of the device that splits super-packets; 0: there is none.
    pub split_ifb: u32,
}

/// Loads the programs that the record calls for, and pins them with their maps. The engine adds its choices to the record.
pub(crate) fn load(
    record: &mut Record,
    interface: &Interface,
    policy: &Resolved,
    tcx: bool,
    pins: &Path,
) -> Result<()> {
    bpffs::own_directory(pins)?;
    let ingress_ifb = match &record.partner {
        Some(partner) => partner.ifindex,
        None if record.ingress_rate_bps.is_some() => devices::ifindex(&record.ingress_device())?,
        None => 0,
    };
    let split_ifb = if record.split { devices::ifindex(&record.split_device())? } else { 0 };
    let l3 = u32::from(!interface.ethernet);

    let driver = engine::driver(record);
    let netns = record.netns as u32;
    let mut loader = Loader::classifier()?;
    loader.use_map("arrivals", &arrivals::pinned()?)?;
    loader.use_map("forwarder", &forwarding::call_table(record.netns)?)?;
    loader.constant("sl_netns", netns)?;
    loader.constant("sl_l3_type", l3)?;
    // On kernels without tcx, programs cannot redirect to an ifb: a separate filter does.
    loader.constant("sl_ingress_ifb", if tcx { ingress_ifb } else { 0 })?;
    loader.constant("sl_ingress_by_filter", u32::from(ingress_ifb != 0 && !tcx))?;
    loader.constant("sl_split_ifb", split_ifb)?;
    // Other engines know no hosts.
    let behind_nat = driver.knows_hosts() && policy.knows_hosts() && features::looks_up_connections();
    loader.constant("sl_look_behind_nat", u32::from(behind_nat))?;
    if ingress_ifb != 0 && driver.shows_its_queues() {
        loader.constant("sl_drops_early", 1)?;
        loader.make("state", instances(record))?;
    }
    driver.prepare(record, &mut loader)?;
    loader.own_flow_table(policy.flows)?;
    loader.only(&programs(record, driver));
    let mut classifier = loader.load(paths::run())?;
    object::pin_maps(&mut classifier, pins)?;
    object::pin_programs(&classifier, pins)?;
    driver.load(record, &Loading { interface, policy, pins, ingress_ifb, split_ifb })
}

/// The number of schedulers. Of engine `qdisc`: at the root or below mq, that of arrivals, and a spare one, since `tc qdisc replace` makes the
/// new before it ends the old. Of engine `xsk`: one for each worker.
pub(crate) fn instances(record: &Record) -> u32 {
    if record.engine == Engine::Xsk {
        return record.workers();
    }
    record.queues.max(1) + u32::from(record.ingress_rate_bps.is_some()) + 1
}

/// The programs of the classifier's object that something is attached for. Each costs the verifier a part of a second.
fn programs(record: &Record, driver: &dyn Driver) -> Vec<&'static str> {
    let xdp = (record.hook == Hook::Xdp).then_some("sl_xdp");
    let splitter = record.split.then_some(attach::SPLITTER);
    let hooks = [Side::Ingress, Side::Egress].into_iter().filter_map(|side| attach::program(record, side));
    hooks.chain(xdp).chain(splitter).chain(driver.programs(record).iter().copied()).collect()
}

/// Whether the programs of a record are those of this command.
pub(crate) fn runs_own_programs(record: &Record) -> bool {
    record.program.as_deref() == Some(object::digest().as_str())
}

/// Removes every pin.
pub(crate) fn remove_pins(pins: &Path) -> Result<()> {
    match fs::remove_dir_all(pins) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).doing(|| format!("removing {}", pins.display()))
        }
        _ => Ok(()),
    }
}
