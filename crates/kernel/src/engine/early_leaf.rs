//! Early drop for subscribers: a hook of the interface that has a tree of classes, attached to arrivals at the interfaces on the other side that
//! have the same policy. It drops what the queues of its tree have no room for (`bpf/early_leaf.bpf.c`).
//!
//! The links are pinned beside the maps of the tree, under the numbers of the interfaces at which they are; nothing else is on record. So whoever
//! manages another interface, or no longer does, makes the links follow.

use crate::bpf::hooks::{self, Point};
use crate::bpf::object::{self, Loader};
use crate::record::{Engine, Phase, Record};
use crate::system::interface::Interface;
use crate::system::{bpffs, paths};
use sluice_error::{Doing, Result};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The program, and its pin.
const PROGRAM: &str = "sl_early_leaf";
/// The pins of links begin so; the number of an interface follows.
const LINK: &str = "link_early_";

/// Whether leaves of a record's tree are found by the address of a packet, and its engine shows programs the tree, of which there is one.
fn has_hook(record: &Record) -> bool {
    record.engine == Engine::Qdisc && record.way.is_some() && !record.class_tree && record.queues == 0
}

/// Loads the program beside the tree, whose maps are pinned.
pub(super) fn load(record: &Record, by_source: u32, pins: &Path) -> Result<()> {
    if !has_hook(record) {
        return Ok(());
    }
    let mut loader = Loader::early_leaf()?;
    loader.constant("sl_leaf_by_source", by_source)?;
    loader.constant("sl_tree_ifindex", record.ifindex)?;
    loader.constant("sl_splits", u32::from(record.split))?;
    loader.share(pins)?;
    let mut loaded = loader.load(paths::run())?;
    object::pin_maps(&mut loaded, pins)?;
    object::pin_programs(&loaded, pins)
}

/// Attaches the hooks of all trees of this network namespace where they are to be, and detaches them elsewhere. `own`: a record as it is now;
/// `managed`: whether it is of an interface that is wholly up, or is about to be.
pub(crate) fn follow(own: &Record, managed: bool) -> Result<()> {
    // Neither has a hook nor asks others for theirs; a policy with subscribers comes and goes with `up` and `down`.
    if own.way.is_none() {
        return Ok(());
    }
    let root = bpffs::root()?;
    let mut records = here(own.netns)?;
    records.retain(|record| record.key != own.key);
    if managed {
        records.push(own.clone());
    } else {
        for pins in [own.pins(&root), own.new_pins(&root)] {
            attached(&pins)?.into_iter().try_for_each(|(_, pin)| hooks::detach(&pin))?;
        }
    }
    records.iter().try_for_each(|record| follow_one(record, &records, &record.pins(&root)))
}

/// The records of interfaces that are wholly up.
fn here(netns: u64) -> Result<Vec<Record>> {
    let is_up = |record: &Record| {
        record.netns == netns && record.phase == Phase::Active && Interface::is_there(&record.interface, record.ifindex)
    };
    Ok(Record::all()?.into_iter().filter(is_up).collect())
}

fn follow_one(record: &Record, all: &[Record], pins: &Path) -> Result<()> {
    let wanted = wanted(record, all, pins);
    for (ifindex, pin) in attached(pins)? {
        if !wanted.iter().any(|other| other.ifindex == ifindex) || !hooks::is_attached(&pin) {
            hooks::detach(&pin)?;
        }
    }
    for other in wanted {
        let pin = link(pins, other.ifindex);
        if !pin.exists() {
            // Behind the hook of that interface's own policy, which counts the packets.
            hooks::attach(&pins.join(PROGRAM), other.ifindex, Point::TcxIngress, &pin)?
                .doing(|| format!("attaching {PROGRAM} of {} to {}", record.interface, other.interface))?;
        }
    }
    Ok(())
}

/// The interfaces at which a tree has its hook: those with the same policy on the other side. None where the program is missing, which another
/// version has not loaded.
fn wanted<'a>(record: &Record, all: &'a [Record], pins: &Path) -> Vec<&'a Record> {
    if !has_hook(record) || !pins.join(PROGRAM).exists() {
        return Vec::new();
    }
    let is_wanted = |other: &&Record| {
        other.policy_name == record.policy_name
            && other.way.is_some_and(|way| Some(way) != record.way)
            && Interface::find(&other.interface).is_ok_and(|interface| interface.ethernet)
    };
    all.iter().filter(is_wanted).collect()
}

fn link(pins: &Path, ifindex: u32) -> PathBuf {
    pins.join(format!("{LINK}{ifindex}"))
}

/// The pins of links, by the numbers of the interfaces that they are for.
fn attached(pins: &Path) -> Result<Vec<(u32, PathBuf)>> {
    let entries = match fs::read_dir(pins) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.doing(|| format!("reading {}", pins.display()))?,
    };
    let of = |path: PathBuf| {
        let number = path.file_name()?.to_str()?.strip_prefix(LINK)?.parse().ok()?;
        Some((number, path))
    };
    Ok(entries.flatten().filter_map(|entry| of(entry.path())).collect())
}

/// The interfaces at which the hook is to be, and is not.
pub(crate) fn lacking(record: &Record, pins: &Path) -> Result<Vec<String>> {
    if !has_hook(record) {
        return Ok(Vec::new());
    }
    let all = here(record.netns)?;
    let lacks = |other: &&Record| !hooks::is_attached(&link(pins, other.ifindex));
    Ok(wanted(record, &all, pins).into_iter().filter(lacks).map(|other| other.interface.clone()).collect())
}

/// The interfaces at which the hook is.
pub(crate) fn places(pins: &Path) -> Result<Vec<String>> {
    let alive = attached(pins)?.into_iter().filter(|(_, pin)| hooks::is_attached(pin));
    let mut names: Vec<String> = alive.filter_map(|(ifindex, _)| Interface::name_of(ifindex)).collect();
    names.sort();
    Ok(names)
}

/// Removes the pins of links whose interfaces have gone.
pub(crate) fn sweep(pins: &Path) -> Result<()> {
    let dead = attached(pins)?.into_iter().filter(|(_, pin)| !hooks::is_attached(pin));
    dead.map(|(_, pin)| pin).try_for_each(|pin| hooks::detach(&pin))
}
