//! A group: a device of ours that queues the arrivals of several interfaces together. Its arrival hook is attached to each of them, its members.

use crate::bpf::hooks::{self, Point, Side};
use crate::engine::{attach, devices};
use crate::maps::arrivals;
use crate::record::{Hook, Member, Phase, Record, policy};
use crate::system::interface::{self, Interface};
use crate::system::{netns, qdiscs};
use sluice_error::{Doing, Error, Result};
use sluice_policy::{MAX_INTERFACE_BYTES, Policy, Resolved};
use std::path::{Path, PathBuf};

/// The policies that one command gives to interfaces and groups, by their names.
pub(crate) type Together<'a> = [(&'a str, &'a Policy)];

/// Makes the device of a group if it is missing. Whether it was made.
pub(crate) fn make_device(name: &str) -> Result<bool> {
    if devices::is_ours(name) {
        return Ok(false);
    }
    if nix::net::if_::if_nametoindex(name).is_ok() {
        return Err(Error::input(format!("there is an interface {name} already, and the policy makes a device of this name"))
            .help("write another name for the group: \"arrivals_of\" is for a device that sluice makes, and not for an interface"));
    }
    if !interface::can_be_named(name) || interface::is_own_device(name) {
        return Err(Error::input(format!("`{}` cannot be the name of a device", name.escape_debug()))
            .help(format!("use up to {MAX_INTERFACE_BYTES} letters and digits, as in lines0")));
    }
    devices::make_ifb(name, "", None).map(|_| true)
}

/// Whether the device of a group that is wholly up has gone: `ensure` makes it again, with its number.
pub(crate) fn can_be_made_again(record: &Record) -> bool {
    record.members.is_some()
        && record.phase == Phase::Active
        && record.ingress_ifindex.is_some()
        && Interface::name_of(record.ifindex).is_none()
}

/// The groups of this network namespace whose devices have gone.
pub fn lost_groups() -> Result<Vec<String>> {
    let lost = here()?.into_iter().filter(can_be_made_again);
    Ok(lost.map(|record| record.interface).collect())
}

fn here() -> Result<Vec<Record>> {
    let own = netns::inode()?;
    Ok(Record::all()?.into_iter().filter(|record| record.netns == own).collect())
}

/// Fails where arrivals of a member are queued elsewhere, or would not come to the group. What is given `together` with its policy counts
/// instead of what holds now.
pub(crate) fn refuse(group: &str, policy: &Resolved, together: &Together<'_>) -> Result<()> {
    if policy.arrivals_of.is_empty() {
        return Ok(());
    }
    let others = others(group, together)?;
    policy.arrivals_of.iter().try_for_each(|member| refuse_one(group, member, &others))
}

/// The records of the other interfaces and groups, each with its policy.
fn others(group: &str, together: &Together<'_>) -> Result<Vec<(Record, Policy)>> {
    let mut others = Vec::new();
    for mut record in here()?.into_iter().filter(|record| record.interface != group) {
        let given = together.iter().find(|(name, _)| *name == record.interface);
        let policy = match given {
            Some((_, policy)) => (*policy).clone(),
            None => policy::parse(&record.policy)?,
        };
        if given.is_some() {
            // It leaves those that its new policy does not name.
            record.members.iter_mut().for_each(Vec::clear);
            record.ingress_rate_bps = policy.link.ingress_rate.map(|rate| rate.0);
        }
        others.push((record, policy));
    }
    Ok(others)
}

/// Whether a group queues the arrivals of an interface, or is to.
fn queues(group: &Record, policy: &Policy, interface: &str) -> bool {
    policy.arrivals_of.iter().any(|name| name == interface) || group.has_member(interface)
}

fn refuse_one(group: &str, member: &str, others: &[(Record, Policy)]) -> Result<()> {
    if interface::is_own_device(member) {
        return Err(Error::input(format!("{member} is a device that sluice has made, and no interface"))
            .help("name the interfaces at which packets arrive in \"arrivals_of\""));
    }
    if member == group {
        return Err(Error::input(format!("the group {group} names itself in \"arrivals_of\""))
            .help("name the interfaces at which packets arrive; the group has a name that none of them has"));
    }
    if let Some((other, _)) = others.iter().find(|(record, policy)| queues(record, policy, member)) {
        let other = &other.interface;
        return Err(Error::input(format!("arrivals of {member} are queued in {other} already"))
            .help(format!("remove it from the \"arrivals_of\" of one of the two: sluice apply {other} POLICY")));
    }
    if let Some((record, policy)) = others.iter().find(|(record, _)| record.interface == member) {
        refuse_own(record, policy)?;
    }
    let Ok(interface) = Interface::find(member) else { return Ok(()) };
    if !interface.ethernet {
        return Err(Error::input(format!("{member} has no Ethernet header, and so cannot be in a group"))
            .help(format!("leave it out: sluice up {member} --ingress-rate queues its arrivals")));
    }
    Ok(())
}

fn refuse_own(record: &Record, policy: &Policy) -> Result<()> {
    let name = &record.interface;
    if record.members.is_some() {
        return Err(Error::input(format!("{name} is a group itself")).help("name interfaces in \"arrivals_of\""));
    }
    if !policy.forwards.is_empty() {
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

/// Fails where an interface's own policy would queue or forward what arrives there, and a group queues it.
pub(crate) fn refuse_member(interface: &str, policy: &Resolved, together: &Together<'_>) -> Result<()> {
    let queued = policy.ingress_rate.is_some();
    if !queued && policy.forwards.is_empty() {
        return Ok(());
    }
    let mut others = others(interface, together)?.into_iter();
    let Some((group, _)) = others.find(|(record, policy)| queues(record, policy, interface)) else { return Ok(()) };
    let group = group.interface;
    Err(if queued {
        Error::input(format!("arrivals of {interface} are queued in {group} already")).help(format!(
            "leave the rate of arrivals away (--ingress-rate, or \"ingress_rate\" of \"link\"), or remove {interface} from the \
             \"arrivals_of\" of {group}"
        ))
    } else {
        Error::input(format!(
            "{interface} is in the group {group}, and so cannot forward ports: such packets would pass it by"
        ))
        .help(format!("remove \"forwards\", or {interface} from the \"arrivals_of\" of {group}"))
    })
}

/// Whether another record than that of this key is of an interface, or of a group with it as a member: programs believe its classes.
pub(crate) fn is_known(netns: u64, ifindex: u32, key: &str) -> Result<bool> {
    let knows = |record: Record| {
        record.ifindex == ifindex || record.members.into_iter().flatten().any(|member| member.ifindex == ifindex)
    };
    Ok(Record::all()?.into_iter().any(|record| record.netns == netns && record.key != key && knows(record)))
}

/// Attaches the hooks of a group to those interfaces that are there, and detaches them from others. The record gets the members. Where one
/// fails, the others go on, and the first error is returned.
pub(crate) fn follow(
    record: &mut Record,
    wanted: &[String],
    tcx: bool,
    pins: &Path,
    notes: &mut Vec<String>,
) -> Result<()> {
    let Some(members) = record.members.clone() else { return Ok(()) };
    for member in members {
        if !is_wanted(&member, wanted) || !is_attached(record, &member, pins) {
            detach(record, &member, pins)?;
        }
    }
    // The policies were held against each other before: here only hooks that are in place count.
    let mut others = others(&record.interface, &[])?;
    others.iter_mut().for_each(|(_, policy)| policy.arrivals_of.clear());
    let mut failed = Ok(());
    for name in wanted {
        if record.members.iter().flatten().any(|member| member.interface == *name) {
            continue;
        }
        let Ok(ifindex) = nix::net::if_::if_nametoindex(name.as_str()) else {
            notes.push(format!(
                "{name} is not there: its arrivals are queued once it is, by sluice ensure {}",
                record.interface
            ));
            continue;
        };
        // It may have come with another kind of header, or under management, since the policy was checked.
        let attached = refuse_one(&record.interface, name, &others).and_then(|()| {
            let member = Member { interface: name.clone(), ifindex, made_clsact: false };
            attach(record, member.clone(), tcx, pins, notes).inspect_err(|_| {
                if let Err(rest) = detach(record, &member, pins) {
                    eprintln!("warning: {rest}");
                }
            })
        });
        if failed.is_ok() {
            failed = attached;
        }
    }
    failed
}

/// Detaches the hooks of a group from those that it shall not have any more, so that another group can have them.
pub(crate) fn let_go(record: &mut Record, wanted: &[String], pins: &Path) -> Result<()> {
    for member in record.members.clone().into_iter().flatten().filter(|member| !is_wanted(member, wanted)) {
        detach(record, &member, pins)?;
    }
    Ok(())
}

/// Whether a member is still what the policy names: no other interface has the name now, and it has no other name of the policy.
fn is_wanted(member: &Member, wanted: &[String]) -> bool {
    let other = nix::net::if_::if_nametoindex(member.interface.as_str()).is_ok_and(|found| found != member.ifindex);
    let as_another = member.name().is_some_and(|name| name != member.interface && wanted.contains(&name));
    wanted.contains(&member.interface) && !other && !as_another
}

/// The members on record that are not in this network namespace any more.
pub(crate) fn left(record: &Record) -> Vec<String> {
    let members = record.members.iter().flatten();
    members.filter(|member| member.name().is_none()).map(|member| member.interface.clone()).collect()
}

/// The members that are there and lack a hook of the group.
pub(crate) fn lacking(record: &Record, wanted: &[String], pins: &Path) -> Vec<String> {
    let lacks = |name: &&String| match record.members.iter().flatten().find(|member| member.interface == **name) {
        Some(member) if is_wanted(member, wanted) && member.name().is_some() => !is_attached(record, member, pins),
        _ => nix::net::if_::if_nametoindex(name.as_str()).is_ok(),
    };
    wanted.iter().filter(lacks).cloned().collect()
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
    let group = devices::ifindex(name)?;
    let mut members = Vec::new();
    for (interface, ifindex) in interface::indices()? {
        // Only an empty clsact is removed.
        let member = Member { interface, ifindex, made_clsact: true };
        if link(pins, "ingress", &member).exists()
            || link(pins, "xdp", &member).exists()
            || hooks::member_filters(&member.interface, group)?.program
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
    let Some(name) = member.name() else { return false };
    let xdp = link(pins, "xdp", member);
    let by_filters = || {
        let filters = hooks::member_filters(&name, record.ifindex).unwrap_or_default();
        filters.program && filters.redirect
    };
    (record.hook == Hook::Tc || !xdp.exists() || hooks::is_attached(&xdp))
        && (hooks::is_attached(&link(pins, "ingress", member)) || by_filters())
}

fn attach(record: &mut Record, mut member: Member, tcx: bool, pins: &Path, notes: &mut Vec<String>) -> Result<()> {
    let (name, ifindex, group) = (member.interface.clone(), member.ifindex, record.interface.clone());
    // Arrivals are taken away: the filters of others must have seen them before.
    let by_filter = !tcx || hooks::has_filters(&name, Side::Ingress)?;
    if qdiscs::list(&name)?.iter().any(|qdisc| qdisc.kind == "ingress") {
        if by_filter {
            return Err(Error::input(format!(
                "{name} has an ingress qdisc, in the place of the clsact that is needed"
            ))
            .help(format!("remove it (tc qdisc del dev {name} ingress), or leave {name} out of {group}")));
        }
        notes.push(format!(
            "{name}: filters of its ingress qdisc see no packet any more, for {group} takes them before"
        ));
    }
    member.made_clsact = by_filter && !qdiscs::has_clsact(&name)?;
    // The record says what is there before it is, so that `down` finds it.
    record.members.get_or_insert_default().push(member.clone());
    record.save()?;
    if record.hook == Hook::Xdp {
        let attached = hooks::attach(&pins.join("sl_xdp"), ifindex, Point::Xdp, &link(pins, "xdp", &member))?;
        if let Err(error) = attached {
            notes.push(attach::no_xdp(&name, &group, &error));
        }
    }
    if !by_filter {
        hooks::attach(&pins.join("sl_ingress"), ifindex, Point::TcxIngress, &link(pins, "ingress", &member))?
            .doing(|| format!("attaching sl_ingress to {name}"))?;
    } else {
        if member.made_clsact {
            hooks::add_clsact(&name)?;
        }
        hooks::set_member_filters(&name, &pins.join("sl_ingress"), &group, record.ifindex)?;
    }
    arrivals::add(record.netns, ifindex)
}

fn detach(record: &mut Record, member: &Member, pins: &Path) -> Result<()> {
    hooks::detach(&link(pins, "xdp", member))?;
    hooks::detach(&link(pins, "ingress", member))?;
    if let Some(name) = member.name() {
        hooks::clear_member_filters(&name, record.ifindex)?;
        if member.made_clsact {
            hooks::remove_unused_clsact(&name)?;
        }
    }
    if !is_known(record.netns, member.ifindex, &record.key)? {
        arrivals::remove(record.netns, member.ifindex)?;
    }
    record.members.iter_mut().for_each(|members| members.retain(|known| known.ifindex != member.ifindex));
    Ok(())
}
