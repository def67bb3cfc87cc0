//! `sluice upgrade`: the programs of this command take the place of those that another version has loaded. They are loaded
//! beside those, with maps of their own, and swapped one after the other; the policy, devices and HTB's classes stay.

use crate::bpf::object;
use crate::command::recover::recover;
use crate::engine::features::Features;
use crate::engine::verify::verify;
use crate::engine::{Placed, attach, devices, driver, early_leaf, forwarding, managed, members, programs};
use crate::fault;
use crate::maps::tables;
use crate::record::{Phase, Record, policy};
use crate::status::Pinned;
use crate::system::interface::Interface;
use crate::system::lock::Lock;
use crate::system::privilege::require_root;
use crate::system::{bpffs, private};
use sluice_abi as abi;
use sluice_error::{Error, Result};
use std::fs;
use std::path::Path;

/// An interface whose programs were replaced.
#[derive(Debug, Clone)]
pub struct Upgraded {
    /// The interface as it is managed now.
    pub record: Record,
    /// State that was lost, in words.
    pub lost: Vec<String>,
    /// Notes for the operator.
    pub notes: Vec<String>,
}

/// Loads this command's programs and swaps them for those that run. None: the programs are the same.
pub fn upgrade(interface: &str) -> Result<Option<Upgraded>> {
    require_root()?;
    recover()?;
    let _lock = Lock::take()?;
    let Some(was) = Record::find(interface)? else { return Err(managed::absent(interface)) };
    if was.phase != Phase::Active {
        return Err(managed::half_done(&was));
    }
    if programs::runs_own_programs(&was) {
        return Ok(None);
    }
    if was.unconfirmed.is_some() {
        return Err(Error::input(format!("{interface}: a change waits to be confirmed"))
            .help(format!("sluice confirm {interface} keeps it; then upgrade")));
    }
    if let Some(partner) = &was.partner {
        return Err(Error::input(format!(
            "{interface} is a side of a wire, whose process has to be of this version, too"
        ))
        .help(format!(
            "stop it, and start it again: sluice wire {interface} {} --policy P --rate R",
            partner.interface
        )));
    }
    let found = Interface::find(&was.interface)?;
    let pins = was.pins(&bpffs::root()?);
    let new = was.new_pins(&bpffs::root()?);
    let policy = policy::resolved(&was)?;
    let mut record = Record {
        abi_version: abi::SL_ABI_VERSION,
        program: Some(object::digest()),
        generation: was.generation.wrapping_add(1).max(1),
        rule_starts: crate::record::rule_starts::RuleStarts::default(),
        before: None,
        ..was.clone()
    };
    let queued = queued_pkts(&was);
    let tcx = Features::probe()?.tcx;
    programs::remove_pins(&new)?;
    let prepared = devices::make(&mut record).and_then(|()| {
        programs::load(&mut record, &found, &policy, tcx, &new)?;
        let compiled = policy::compile(&policy, &record, &found, 0)?;
        tables::stage(&new, &compiled, 0)?;
        tables::flip(&new, 0, compiled.tables.generation)
    });
    if let Err(error) = prepared {
        programs::remove_pins(&new)?;
        return Err(Error { what: format!("{}\n  nothing was changed", error.what.trim_end()), ..error });
    }
    fault::point("upgrade-loaded");
    // From here on `down` removes both sets of pins.
    record.save()?;
    fault::point("upgrade-recorded");
    let mut notes = Vec::new();
    let swapped = swap(&mut record, &found, &policy, tcx, (&pins, &new), &mut notes)
        .and_then(|()| verify(&Placed { record: &record, policy: &policy, interface: &found, pins: &pins }, &[]))
        .and_then(|()| forwarding::renew(&record, &policy));
    match swapped.and_then(|cut| record.save().map(|()| cut)) {
        Ok(cut) => {
            let mut lost = lost(&record, queued);
            if cut {
                lost.push("connections through forwards are lost".to_owned());
            }
            Ok(Some(Upgraded { lost, record, notes }))
        }
        Err(error) => Err(Error {
            cure: Some(format!("sluice down {interface}, then sluice up {interface}: this makes everything anew")),
            ..error
        }),
    }
}

/// Swaps the parts one after the other, in the order of `up`: each new part finds the new tables.
fn swap(
    record: &mut Record,
    found: &Interface,
    policy: &sluice_policy::Resolved,
    tcx: bool,
    (old, new): (&Path, &Path),
    notes: &mut Vec<String>,
) -> Result<()> {
    driver(record).renew(&Placed { record, policy, interface: found, pins: new })?;
    fault::point("upgrade-queued");
    if record.split {
        attach::install_splitter(record, new)?;
    }
    if record.members.is_some() {
        members::leave(record, &[old])?;
        members::follow(record, &policy.arrivals_of, tcx, new, notes)?;
    } else {
        attach::remove_links(old)?;
        attach::install_hooks(record, tcx, new, notes)?;
    }
    fault::point("upgrade-hooked");
    programs::remove_pins(old)?;
    fs::rename(new, old).map_err(|error| Error::system(format!("renaming {}: {error}", new.display())))?;
    private::directory(old)?;
    early_leaf::follow(record, true)
}

/// Packets that wait in the queues. None: the status cannot be read.
fn queued_pkts(record: &Record) -> Option<u64> {
    let status = Pinned::open(record.clone()).and_then(|pinned| pinned.status()).ok()?;
    let classes = status.directions.iter().flat_map(|direction| &direction.classes);
    Some(classes.map(|class| class.backlog.pkts).sum())
}

fn lost(record: &Record, queued: Option<u64>) -> Vec<String> {
    let mut lost = vec!["counters, flows and the state of rate limits begin anew".to_owned()];
    match queued {
        _ if driver(record).keeps_packets() => {}
        Some(0) => {}
        Some(pkts) => lost.push(format!("{pkts} packets that were queued are lost")),
        None => lost.push("packets that were queued are lost".to_owned()),
    }
    lost
}
