//! A group: a device of ours that queues the arrivals of several interfaces together. Its arrival hook is attached to each of them, its members.

use crate::bpf::hooks::{self, Point, Side};
use crate::engine::devices;
use crate::maps::arrivals;
use crate::record::{Hook, Member, Record, policy};
use crate::system::interface::{self, Interface};
use crate::system::{netns, qdiscs};
use sluice_error::{Doing, Error, Result};
use sluice_policy::{MAX_INTERFACE_BYTES, Resolved};
use std::path::{Path, PathBuf};

/// Makes the device of a group if it is missing. Whether it was made.
pub(crate) fn make_device(name: &str) -> Result<bool> {
    if devices::is_ours(name) {
        return Ok(false);
    }
    if nix::net::if_::if_nametoindex(name).is_ok() {
        return Err(Error::input(format!("there is an interface {name} already, and the policy makes a device of this name"))
            .help("write another name for the group: \"arrivals_of\" is for a device that sluice makes, and not for an interface"));
    }
    if !interface::can_be_named(name) {
        return Err(Error::input(format!("`{}` cannot be the name of a device", name.escape_debug()))
            .help(format!("use up to {MAX_INTERFACE_BYTES} characters, as in lines0")));
    }
    devices::make_ifb(name, "", None).map(|_| true)
}

/// Fails where arrivals of a member are queued elsewhere, or would not come to the group.
pub(crate) fn refuse(group: &str, policy: &Resolved) -> Result<()> {
    let own = netns::inode()?;
    let records: Vec<Record> = Record::all()?.into_iter().filter(|record| record.netns == own).collect();
    for member in &policy.arrivals_of {
        if interface::is_own_device(member) {
            return Err(Error::input(format!("{member} is a device that sluice has made, and no interface"))
                .help("name the interfaces at which packets arrive in \"arrivals_of\""));
        }
        if member == group {
            return Err(Error::input(format!("{group} is the group itself, and no interface of it"))
                .help("name interfaces in \"arrivals_of\", and the group otherwise"));
        }
        let other = |record: &&Record| record.interface != group && record.has_member(member);
        if let Some(other) = records.iter().find(other) {
            return Err(Error::input(format!("arrivals of {member} are queued in {} already", other.interface)).help(
                format!(
                    "remove it from the \"arrivals_of\" of one of the two: sluice apply {} POLICY",
                    other.interface
                ),
            ));
        }
        if let Some(record) = records.iter().find(|record| record.interface == *member) {
            refuse_own(record)?;
        }
        if let Ok(interface) = Interface::find(member)
            && !interface.ethernet
        {
            return Err(Error::input(format!("{member} has no Ethernet header, and so cannot be in a group"))
                .help(format!("leave it out: sluice up {member} --ingress-rate queues its arrivals")));
        }
    }
    Ok(())
}

fn refuse_own(record: &Record) -> Result<()> {
    let name = &record.interface;
    if record.members.is_some() {
        return Err(Error::input(format!("{name} is a group itself")).help("name interfaces in \"arrivals_of\""));
    }
    if !policy::parse(&record.policy)?.forwards.is_empty() {
        return Err(Error::input(format!(
            "{name} forwards ports, and so cannot be in a group: such packets would pass it by"
        ))
        .help(format!("leave {name} out, or remove its forwards")));
    }
    if record.ingress_rate_bps.is_some() {
        return Err(Error::input(format!("arrivals of {name} are queued by its own policy"))
            .help(format!("sluice down {name}, then sluice up {name} without a rate of arrivals")));
    }
    Ok(())
}

/// Fails where arrivals of an interface, which its own policy would queue, are queued in a group.
pub(crate) fn refuse_member(interface: &str) -> Result<()> {
    let own = netns::inode()?;
    match Record::all()?.into_iter().find(|record| record.netns == own && record.has_member(interface)) {
        None => Ok(()),
        Some(group) => Err(Error::input(format!("arrivals of {interface} are queued in {} already", group.interface))
            .help(format!(
                "leave --ingress-rate away, or remove {interface} from the \"arrivals_of\" of {}",
                group.interface
            ))),
    }
}

/// Whether the arrivals of a record's interface are queued in a group, whose hook stays when the record goes.
pub(crate) fn is_member(record: &Record) -> Result<bool> {
    let members = |other: Record| other.members.into_iter().flatten().any(|member| member.ifindex == record.ifindex);
    Ok(Record::all()?.into_iter().any(|other| other.netns == record.netns && members(other)))
}

/// Attaches the hooks of a group to those interfaces that are there, and detaches them from others. The record gets the members.
pub(crate) fn follow(
    record: &mut Record,
    wanted: &[String],
    tcx: bool,
    pins: &Path,
    notes: &mut Vec<String>,
) -> Result<()> {
    let Some(members) = record.members.clone() else { return Ok(()) };
    for member in members {
        if !wanted.contains(&member.interface) || !is_attached(record, &member, pins) {
            detach(record, &member, pins)?;
        }
    }
    for name in wanted {
        if record.members.iter().flatten().any(|member| member.interface == *name) {
            continue;
        }
        match nix::net::if_::if_nametoindex(name.as_str()) {
            Ok(ifindex) => {
                attach(record, Member { interface: name.clone(), ifindex, made_clsact: false }, tcx, pins, notes)?
            }
            Err(_) => notes.push(format!(
                "{name} is not there: its arrivals are queued once it is, by sluice ensure {}",
                record.interface
            )),
        }
    }
    Ok(())
}

/// The members that are there and lack a hook of the group.
pub(crate) fn lacking(record: &Record, wanted: &[String], pins: &Path) -> Vec<String> {
    let has = |name: &String| {
        let known = record.members.iter().flatten().find(|member| member.interface == *name);
        known.is_some_and(|member| is_attached(record, member, pins))
    };
    wanted.iter().filter(|name| nix::net::if_::if_nametoindex(name.as_str()).is_ok() && !has(name)).cloned().collect()
}

/// Detaches the hooks of a group from all of its members.
pub(crate) fn leave(record: &mut Record, pins: &[&Path]) -> Result<()> {
    for member in record.members.clone().into_iter().flatten() {
        pins.iter().try_for_each(|pins| detach(record, &member, pins))?;
    }
    Ok(())
}

/// The members of a group without a record that can be read: interfaces that have a hook of it. None: this is no device of a group.
pub(crate) fn remaining(name: &str, pins: &Path) -> Result<Option<Vec<Member>>> {
    if !devices::is_of_group(name) {
        return Ok(None);
    }
    let mut members = Vec::new();
    for (interface, ifindex) in interface::indices()? {
        // Only an empty clsact is removed.
        let member = Member { interface, ifindex, made_clsact: true };
        if link(pins, "ingress", &member).exists()
            || link(pins, "xdp", &member).exists()
            || hooks::has_member_filters(&member.interface, name)?
        {
            members.push(member);
        }
    }
    Ok(Some(members))
}

fn link(pins: &Path, hook: &str, member: &Member) -> PathBuf {
    pins.join(format!("link_{hook}_{}", member.ifindex))
}

fn is_attached(record: &Record, member: &Member, pins: &Path) -> bool {
    let xdp = link(pins, "xdp", member);
    Interface::is_there(&member.interface, member.ifindex)
        && (record.hook == Hook::Tc || !xdp.exists() || hooks::is_attached(&xdp))
        && (hooks::is_attached(&link(pins, "ingress", member))
            || hooks::has_member_filters(&member.interface, &record.interface).unwrap_or(false))
}

fn attach(record: &mut Record, mut member: Member, tcx: bool, pins: &Path, notes: &mut Vec<String>) -> Result<()> {
    let (name, ifindex) = (member.interface.clone(), member.ifindex);
    if record.hook == Hook::Xdp {
        let attached = hooks::attach(&pins.join("sl_xdp"), ifindex, Point::Xdp, &link(pins, "xdp", &member))?;
        if let Err(error) = attached {
            notes.push(format!("{name}: no XDP program of the group can be attached ({error}); tc serves"));
        }
    }
    // Arrivals are taken away: the filters of others must have seen them before.
    let by_filter = !tcx || hooks::has_filters(&name, Side::Ingress)?;
    member.made_clsact = by_filter && !qdiscs::has_clsact(&name)?;
    // The record says what is there before it is, so that `down` finds it.
    record.members.get_or_insert_default().push(member.clone());
    record.save()?;
    if !by_filter {
        hooks::attach(&pins.join("sl_ingress"), ifindex, Point::TcxIngress, &link(pins, "ingress", &member))?
            .doing(|| format!("attaching sl_ingress to {name}"))?;
    } else {
        if member.made_clsact {
            hooks::add_clsact(&name)?;
        }
        hooks::set_member_filters(&name, &pins.join("sl_ingress"), &record.interface)?;
    }
    arrivals::add(record.netns, ifindex)
}

fn detach(record: &mut Record, member: &Member, pins: &Path) -> Result<()> {
    let (name, ifindex) = (&member.interface, member.ifindex);
    hooks::detach(&link(pins, "xdp", member))?;
    hooks::detach(&link(pins, "ingress", member))?;
    if Interface::is_there(name, ifindex) {
        hooks::clear_member_filters(name, &record.interface)?;
        if member.made_clsact {
            hooks::remove_unused_clsact(name)?;
        }
    }
    if Record::of_number(ifindex)?.is_none() {
        arrivals::remove(record.netns, ifindex)?;
    }
    record.members.iter_mut().for_each(|members| members.retain(|known| known.ifindex != ifindex));
    Ok(())
}
