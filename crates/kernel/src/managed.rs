//! Managed interfaces as their records tell of them, and putting right what an interrupted command has left.

use crate::attachment as attach;
use crate::error::{Error, Result};
use crate::interface::Interface;
use crate::lock::{Lock, Patience};
use crate::record::{Engine, Phase, Record};
use crate::{apply, bpffs, confirm, history, netns, qdiscs, recorded, remains, shared, tables};

/// The record of an interface that is wholly up.
pub(crate) fn managed(interface: &str) -> Result<Record> {
    match Record::find(interface)? {
        None => Err(without_record(interface)),
        Some(record) if record.phase != Phase::Active => Err(half_done(&record)),
        Some(record) if !Interface::is_there(&record.interface, record.ifindex) => {
            Err(Error::input(format!("{interface} has gone since it was taken into management"))
                .help(format!("sluice down {interface} removes what is left of it")))
        }
        Some(record) => settled(record),
    }
}

/// A change that was killed has left the record of both policies: the tables tell which one is in force.
pub(crate) fn settled(mut record: Record) -> Result<Record> {
    let Some(before) = record.before.take() else { return Ok(record) };
    let generation = live_generation(&record)?;
    if generation == record.generation {
        return Ok(record);
    }
    Ok(Record { generation, ..*before })
}

fn live_generation(record: &Record) -> Result<u32> {
    Ok(tables::live(&record.pins(&bpffs::root()?))?.generation)
}

/// Whether the queues of a managed interface are still in place.
pub(crate) fn in_place(record: &Record) -> Result<bool> {
    let root = qdiscs::root(&record.interface)?;
    Ok(record.engine == Engine::None || root.is_some_and(|root| attach::is_ours(record, &root)))
}

/// Every command begins with it: ends the changes that were interrupted, and takes back those that nobody has confirmed in
/// time, on all interfaces of this namespace. What cannot be put right is said, and stands in nobody's way.
pub(crate) fn put_right() -> Result<()> {
    put_right_with(Patience::Some)
}

/// What only looks goes on at once where another command is at it, which does the same.
pub(crate) fn put_right_unless_held() -> Result<()> {
    put_right_with(Patience::None)
}

pub(crate) fn put_right_with(patience: Patience) -> Result<()> {
    let own = netns::inode()?;
    let mine = |record: &Record| record.netns == own && Interface::is_there(&record.interface, record.ifindex);
    let due =
        |record: &Record| record.phase == Phase::Active && (record.before.is_some() || confirm::is_overdue(record));
    if !Record::all()?.iter().any(|record| mine(record) && due(record)) {
        return Ok(());
    }
    let Some(_lock) = Lock::wait(patience)? else { return Ok(()) };
    // Whoever held the lock may have done it.
    for record in Record::all()?.into_iter().filter(|record| mine(record) && due(record)) {
        let name = record.interface.clone();
        let done =
            finish(record).and_then(|record| confirm::is_overdue(&record).then(|| apply::revert(&record)).transpose());
        match done {
            Ok(Some(done)) => eprintln!(
                "{name}: nobody has confirmed the change in time: its policy is {} again",
                done.record.policy_name
            ),
            Ok(None) => {}
            Err(error) => eprintln!("warning: {error}"),
        }
    }
    Ok(())
}

/// Ends a change that was interrupted, on the side on which the tables are.
fn finish(record: Record) -> Result<Record> {
    if record.before.is_none() {
        return Ok(record);
    }
    let took_force = live_generation(&record)? == record.generation;
    let mut record = settled(record)?;
    let pins = record.pins(&bpffs::root()?);
    record.rule_starts.settle(&apply::counted(&pins, record.rule_starts.places)?);
    if record.engine == Engine::Tc && in_place(&record)? {
        let policy = recorded::resolved(&record)?;
        attach::change_htb(&record, &policy, Interface::find(&record.interface)?.header_bytes())?;
        attach::prune_htb(&record, &policy)?;
    }
    if took_force {
        history::note_change(&record);
    }
    record.save()?;
    tables::forget(&pins, recorded::spare_buffer(&pins)?)?;
    shared::sweep()?;
    Ok(record)
}

/// Refuses a list of interfaces if any of them is not known, naming each that is not: a typing error in the second must
/// not leave the first changed.
pub fn require_known(interfaces: &[String]) -> Result<()> {
    let mut unknown = Vec::new();
    for interface in interfaces {
        // What a lost record has left is known, too.
        if Record::find(interface)?.is_none() && remains::of(interface).ok().flatten().is_none() {
            unknown.push(absent(interface));
        }
    }
    match &unknown[..] {
        [] => Ok(()),
        [one] => Err(one.clone()),
        several => {
            let names: Vec<&str> = several.iter().map(|error| error.what.as_str()).collect();
            Err(Error { what: names.join("\n  "), ..several[0].clone() })
        }
    }
}

/// The error of an interface without a record, which may have our queues all the same. Looks at all of its qdiscs and filters.
fn without_record(interface: &str) -> Error {
    match remains::of(interface) {
        Ok(Some(_)) => {
            Error::input(format!("{interface} has queues or hooks of sluice, and no record that can be read"))
                .help(format!("sluice down {interface} removes them; so does sluice up {interface} --force"))
        }
        _ => absent(interface),
    }
}

/// The error of an interface that is not managed.
pub fn absent(interface: &str) -> Error {
    if let Err(unknown) = Interface::find(interface) {
        return unknown;
    }
    let own = netns::inode().unwrap_or_default();
    let here = Record::all().unwrap_or_default().into_iter().filter(|record| record.netns == own);
    let names: Vec<String> = here.map(|record| record.interface).collect();
    let managed = if names.is_empty() { "none is".to_owned() } else { format!("managed: {}", names.join(", ")) };
    Error::input(format!("{interface} is not managed by sluice"))
        .help(format!("`sluice up {interface} --policy P` does it; {managed}"))
}

/// What is said of an interface that a command has left halfway.
pub(crate) fn half_done(record: &Record) -> Error {
    let command = if record.phase == Phase::Starting { "up" } else { "down" };
    Error::input(format!("{}: a `sluice {command}` was interrupted", record.interface))
        .help(format!("sluice down {0} cleans up after it; so does sluice up {0} --force", record.interface))
}
