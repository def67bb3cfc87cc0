//! Managed interfaces, by their records.

use crate::engine::{is_ours, members, remains};
use crate::maps::tables;
use crate::record::{Phase, Record};
use crate::system::interface::Interface;
use crate::system::{bpffs, netns, qdiscs};
use sluice_error::{Error, Result};

/// The record of an interface that is wholly up.
pub(crate) fn managed(interface: &str) -> Result<Record> {
    let record = managed_or_lost_group(interface)?;
    if !members::can_be_made_again(&record) {
        return Ok(record);
    }
    Err(Error::input(format!("the device of the group {interface} was deleted"))
        .help(format!("sluice ensure {interface} makes it again; sluice down {interface} removes the rest")))
}

/// The record of an interface that is wholly up, or of a group whose device has gone and can be made again.
pub(crate) fn managed_or_lost_group(interface: &str) -> Result<Record> {
    match Record::find(interface)? {
        None => Err(without_record(interface)),
        Some(record) if record.phase != Phase::Active => Err(half_done(&record)),
        Some(record)
            if !Interface::is_there(&record.interface, record.ifindex) && !members::can_be_made_again(&record) =>
        {
            Err(Error::input(format!("{interface} has gone since it was taken into management"))
                .help(format!("sluice down {interface} removes its remains")))
        }
        Some(record) => settled(record),
    }
}

/// The record in force. A killed change has left the records of both policies: the tables tell which of them counts.
pub(crate) fn settled(mut record: Record) -> Result<Record> {
    let Some(before) = record.before.take() else { return Ok(record) };
    let generation = live_generation(&record)?;
    if generation == record.generation {
        return Ok(record);
    }
    let mut settled = Record { generation, ..*before };
    // Hooks of a group that the killed command has attached are to be found.
    if let Some(members) = &mut settled.members {
        members.extend(record.members.into_iter().flatten());
        members.sort_by_key(|member| member.ifindex);
        members.dedup_by_key(|member| member.ifindex);
    }
    Ok(settled)
}

pub(crate) fn live_generation(record: &Record) -> Result<u32> {
    tables::live_generation(&record.pins(&bpffs::root()?))
}

/// Whether the queues of a managed interface are still in place.
pub(crate) fn in_place(record: &Record) -> Result<bool> {
    let root = qdiscs::root(&record.interface)?;
    Ok(!record.engine.has_qdiscs() || root.is_some_and(|root| is_ours(record, &root)))
}

/// Refuses a list of interfaces if any of them is not known, naming each that is not: a typing error in the second must
/// not leave the first changed.
pub fn require_known(interfaces: &[String]) -> Result<()> {
    let mut unknown = Vec::new();
    for interface in interfaces {
        // An interface that has our parts but no record is known, too.
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

/// The error of an interface without a record, which may have our queues all the same. Reads all its qdiscs and filters.
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

/// The error of an interface that a command has left halfway.
pub(crate) fn half_done(record: &Record) -> Error {
    let command = if record.phase == Phase::Starting { "up" } else { "down" };
    Error::input(format!("{}: a `sluice {command}` was interrupted", record.interface))
        .help(format!("sluice down {0} cleans up after it; so does sluice up {0} --force", record.interface))
}
