//! `down`: the order of steps in which an interface is given back; and what is left of interfaces and network namespaces that have gone.

use crate::command::boot;
use crate::engine::managed::absent;
use crate::engine::{self, attach, devices, early_leaf, forwarding, members, programs, remains, xsk, xsk_process};
use crate::fault;
use crate::maps::{arrivals, shared};
use crate::record::{Phase, Record, history};
use crate::system::interface::{self, Interface};
use crate::system::lock::Lock;
use crate::system::privilege::{require_rights, require_root};
use crate::system::{bpffs, netns, offload};
use sluice_error::Result;
use std::path::Path;

/// Gives an interface back as it was found, and with a side of a wire the other one. Returns the records of those that were, the interface's first.
pub fn down(interface: &str) -> Result<Vec<Record>> {
    require_rights()?;
    let _lock = Lock::take()?;
    let found = match Record::find(interface)? {
        Some(record) => Some(record),
        None => remains::of(interface)?,
    };
    give_back(found.ok_or_else(|| absent(interface))?)
}

/// As [`down`], for a side of a wire: nothing is done if it is none any more. `numbers`: of the side, and of the other one.
pub(super) fn down_side(numbers: [u32; 2]) -> Result<()> {
    require_rights()?;
    let _lock = Lock::take()?;
    let leads_there = |record: &Record| record.partner.as_ref().is_some_and(|partner| partner.ifindex == numbers[1]);
    Record::of_number(numbers[0])?.filter(leads_there).map_or(Ok(()), |record| give_back(record).map(drop))
}

/// The other side of the wire that an interface is a side of: the record that names this interface as its own other side. This interface's record may be lost.
fn other_side(record: &Record) -> Result<Option<Record>> {
    let leads_here = |other: &Record| {
        other.netns == record.netns && other.partner.as_ref().is_some_and(|partner| partner.ifindex == record.ifindex)
    };
    Ok(Record::all()?.into_iter().find(leads_here))
}

/// Gives back what a record names, and the other side of its wire: alone, a side would go on passing packets one way. A failure on one does not keep the
/// other from being given back.
fn give_back(record: Record) -> Result<Vec<Record>> {
    let other = other_side(&record)?;
    let mut all: Vec<Record> = std::iter::once(record).chain(other).collect();
    for record in &mut all {
        record.phase = Phase::Stopping;
        if let Err(error) = record.save() {
            // The record is for the next command, if this one does not come to its end.
            eprintln!("warning: {error}");
        }
    }
    fault::point("down-recorded");
    let root = bpffs::root()?;
    let count = all.len();
    let mut first = Ok(());
    for record in &mut all {
        let pins = record.pins(&root);
        let done = tear_down(record, &pins).map_err(|error| error.of_several(&record.interface, count));
        first = first.and(done);
    }
    for (ifindex, partner) in all.iter().filter_map(|record| Some((record.ifindex, record.partner.as_ref()?))) {
        first = first.and(xsk_process::forget_claim([ifindex, partner.ifindex]));
    }
    first.map(|()| all)
}

/// Removes all parts of a record, in an order in which packets keep flowing.
pub(super) fn tear_down(record: &mut Record, pins: &Path) -> Result<()> {
    members::leave(record, &[pins, &record.new_pins(&bpffs::root()?)])?;
    if !members::is_known(record.netns, record.ifindex, &record.key)? {
        arrivals::remove(record.netns, record.ifindex)?;
    }
    early_leaf::follow(record, false)?;
    // Targets of other interfaces' forwards may answer here: a hook takes the place of the one that goes.
    let forwarding = forwarding::follow(record, None);
    fault::point("down-forwarding");
    if Interface::is_there(&record.interface, record.ifindex) {
        attach::remove_hooks(record, pins)?;
        fault::point("down-hooks");
        engine::remove_queues(record)?;
        if record.gro_was_on {
            offload::set_gro(&record.interface, true)?;
        }
        xsk::end_promiscuous(record)?;
    }
    fault::point("down-queues");
    devices::remove(&record.ingress_device())?;
    devices::remove(&record.split_device())?;
    fault::point("down-devices");
    programs::remove_pins(pins)?;
    programs::remove_pins(&record.new_pins(&bpffs::root()?))?;
    fault::point("down-pins");
    forwarding?;
    record.remove()?;
    shared::sweep()
}

/// Removes the parts of interfaces that have gone. Returns their names.
pub fn collect() -> Result<Vec<String>> {
    require_root()?;
    let _lock = Lock::take()?;
    remove_orphans(&[])
}

/// Removes the parts of interfaces that have gone from this network namespace, except those in `asked`; and what is left of network
/// namespaces that have gone, where `down` cannot run any more. The number of such a namespace is soon given to another.
pub(super) fn remove_orphans(asked: &[&str]) -> Result<Vec<String>> {
    let own = netns::inode()?;
    let mut removed = Vec::new();
    let here = interface::indices()?;
    let gone = |record: &Record| {
        record.netns == own
            && !asked.contains(&record.interface.as_str())
            && !members::can_be_made_again(record)
            && here.iter().all(|(_, ifindex)| *ifindex != record.ifindex)
    };
    for mut record in Record::all()?.into_iter().filter(gone) {
        let pins = record.pins(&bpffs::root()?);
        match tear_down(&mut record, &pins) {
            Ok(()) => removed.push(record.interface),
            Err(error) => {
                eprintln!("warning: removing the remains of {}, an interface that has gone: {error}", record.interface)
            }
        }
    }
    let gone = |record: &Record| record.netns != own && (record.netns == 0 || !netns::is_kept(record.netns));
    for record in Record::all()?.into_iter().filter(gone) {
        if let Err(error) = forget(&record, own) {
            eprintln!(
                "warning: removing the remains of {} in a network namespace that has gone: {error}",
                record.interface
            );
        }
    }
    history::remove_orphans(own);
    boot::remove_orphans(own);
    shared::sweep()?;
    Ok(removed)
}

/// Removes what is left of an interface in a network namespace that has gone: the machine's, since the namespace's has gone with it.
fn forget(record: &Record, own: u64) -> Result<()> {
    // Where the present namespace has the number, what its own interfaces need stays.
    let number = if record.netns == 0 { own } else { record.netns };
    let members = record.members.iter().flatten().map(|member| member.ifindex);
    for ifindex in members.chain([record.ifindex]) {
        if !members::is_known(number, ifindex, &record.key)? {
            arrivals::remove(number, ifindex)?;
        }
    }
    for pins in [record.pins(&bpffs::root()?), record.new_pins(&bpffs::root()?)] {
        programs::remove_pins(&pins)?;
    }
    if record.netns != 0 || !forwarding::is_used(number)? {
        forwarding::remove(number)?;
    }
    if record.netns == 0 {
        history::forget(&record.key);
        boot::forget(&record.key);
    }
    record.remove()
}
