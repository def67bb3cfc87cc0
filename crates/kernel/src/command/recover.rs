//! The first step of commands: interrupted changes are ended, and changes that were not confirmed in time are taken back.

use crate::command::change;
use crate::command::subscribers::in_place;
use crate::engine::features::Features;
use crate::engine::managed::{in_place, live_generation, settled};
use crate::engine::{Placed, driver, early_leaf, forwarding, members};
use crate::maps::{counters, shared, tables};
use crate::record::{Phase, Record, history, policy};
use crate::system::interface::Interface;
use crate::system::lock::{Lock, Patience};
use crate::system::{bpffs, netns};
use sluice_error::Result;

/// Ends the changes that were interrupted, and takes back those that were not confirmed in time, on all interfaces of this
/// namespace. A change that cannot be repaired is reported, and does not stop the command.
pub(crate) fn recover() -> Result<()> {
    recover_with(Patience::Some)
}

/// Recovers unless another command holds the lock, which recovers too. For commands that only read.
pub(crate) fn recover_unless_held() -> Result<()> {
    recover_with(Patience::None)
}

pub(crate) fn recover_with(patience: Patience) -> Result<()> {
    let own = netns::inode()?;
    let mine = |record: &Record| record.netns == own && Interface::is_there(&record.interface, record.ifindex);
    let due = |record: &Record| {
        record.phase == Phase::Active
            && (record.before.is_some() || record.is_overdue() || in_place::is_broken_off(record))
    };
    if !Record::all()?.iter().any(|record| mine(record) && due(record)) {
        return Ok(());
    }
    let Some(_lock) = Lock::wait(patience)? else { return Ok(()) };
    // The command that held the lock may have done it.
    for record in Record::all()?.into_iter().filter(|record| mine(record) && due(record)) {
        let name = record.interface.clone();
        let done = finish(record).and_then(|record| record.is_overdue().then(|| change::revert(&record)).transpose());
        match done {
            Ok(Some(done)) => eprintln!(
                "{name}: no command has confirmed the change in time: its policy is {} again",
                done.record.policy_name
            ),
            Ok(None) => {}
            Err(error) => eprintln!("warning: {error}"),
        }
    }
    Ok(())
}

/// Ends an interrupted change: the tables tell which of its two policies stays.
fn finish(record: Record) -> Result<Record> {
    if in_place::is_broken_off(&record) {
        return in_place::finish(record);
    }
    if record.before.is_none() {
        return Ok(record);
    }
    let took_force = live_generation(&record)? == record.generation;
    let mut record = settled(record)?;
    let pins = record.pins(&bpffs::root()?);
    record.rule_starts.settle(&counters::of_rules(&pins, record.rule_starts.places)?);
    if in_place(&record)? {
        let (policy, interface) = (policy::resolved(&record)?, Interface::find(&record.interface)?);
        let at = Placed { record: &record, policy: &policy, interface: &interface, pins: &pins };
        driver(&record).change(&at)?;
        driver(&record).prune(&at)?;
        forwarding::follow(&record, Some(&policy))?;
        if record.members.is_some() {
            let tcx = Features::known()?.tcx;
            members::follow(&mut record, &policy.arrivals_of, tcx, &pins, &mut Vec::new())?;
        }
    }
    if took_force {
        history::note_change(&record);
    }
    record.save()?;
    early_leaf::follow(&record, true)?;
    tables::forget(&pins, tables::spare_buffer(&pins)?)?;
    shared::sweep()?;
    Ok(record)
}
