//! Attachment of programs before the queues: XDP and tcx by pinned links, clsact by filters. Links and filters outlive the process.

use crate::system::{iproute, qdiscs};
use sluice_error::{Doing, Error, Result};
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Preference of our clsact filters: late, so that the filters of others have seen the packet before.
const FILTER_PREF: u32 = 65_000;
/// Preference of the filter that redirects arriving packets, behind our clsact filter.
const REDIRECT_PREF: u32 = 65_001;
/// Preference of the clsact filters of port forwarding, before those.
const FORWARD_PREF: u32 = 64_999;

/// Preferences of the clsact filters of a group on its members, behind those of their own policies.
const MEMBER_PREF: u32 = 65_002;
const MEMBER_REDIRECT_PREF: u32 = 65_003;

/// The hook that a program attaches to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// XDP in the driver, before the packet has a socket buffer.
    Xdp,
    /// tcx on arrival, from Linux 6.6.
    TcxIngress,
    /// tcx on arrival, before the programs that are there.
    TcxIngressFirst,
    /// tcx on departure, from Linux 6.6.
    TcxEgress,
    /// tcx on departure, before the programs that are there.
    TcxEgressFirst,
}

fn path_cstring(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Error::system(format!("{}: a NUL in a path", path.display())))
}

fn os_error(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code.abs())
}

/// The program, or another object, that is pinned there.
pub(crate) fn pinned_fd(path: &Path) -> Result<OwnedFd> {
    let name = path_cstring(path)?;
    // SAFETY: the name is a C string that lives through the call.
    let fd = unsafe { libbpf_sys::bpf_obj_get(name.as_ptr()) };
    if fd < 0 {
        return Err(Error::system(format!("opening {}: {}", path.display(), os_error(fd))));
    }
    // SAFETY: the kernel has just given us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Attaches a pinned program by a link, and pins the link. The operating system's error is passed on, since it shows a
/// feature that the kernel lacks.
pub fn attach(program: &Path, ifindex: u32, point: Point, pin: &Path) -> Result<std::result::Result<(), io::Error>> {
    let (kind, flags) = match point {
        Point::Xdp => (libbpf_sys::BPF_XDP, libbpf_sys::XDP_FLAGS_DRV_MODE),
        Point::TcxIngress => (libbpf_sys::BPF_TCX_INGRESS, 0),
        Point::TcxIngressFirst => (libbpf_sys::BPF_TCX_INGRESS, libbpf_sys::BPF_F_BEFORE),
        Point::TcxEgress => (libbpf_sys::BPF_TCX_EGRESS, 0),
        Point::TcxEgressFirst => (libbpf_sys::BPF_TCX_EGRESS, libbpf_sys::BPF_F_BEFORE),
    };
    link(program, ifindex as i32, kind, flags, pin)
}

/// Attaches a pinned program to the sockets of a cgroup, beside the programs that are there, by a link that is pinned.
pub fn attach_to_cgroup(program: &Path, cgroup: &OwnedFd, kind: u32, pin: &Path) -> Result<()> {
    link(program, cgroup.as_raw_fd(), kind, 0, pin)?
        .map_err(|error| Error::system(format!("attaching {} to the sockets of a cgroup: {error}", program.display())))
}

/// A place for a program that stays there as long as the link is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passing {
    /// XDP in the driver.
    Xdp,
    /// XDP in the stack, for drivers without it.
    GenericXdp,
    /// tcx on arrival, before the programs that are there. From Linux 6.6, as the next one.
    ArrivalFirst,
    /// tcx on departure, before the programs that are there.
    DepartureFirst,
}

/// Attaches a program until the link is dropped, or the process ends.
pub fn attach_while_open(program: BorrowedFd<'_>, ifindex: u32, place: Passing) -> io::Result<OwnedFd> {
    let (kind, flags) = match place {
        Passing::Xdp => (libbpf_sys::BPF_XDP, libbpf_sys::XDP_FLAGS_DRV_MODE),
        Passing::GenericXdp => (libbpf_sys::BPF_XDP, libbpf_sys::XDP_FLAGS_SKB_MODE),
        Passing::ArrivalFirst => (libbpf_sys::BPF_TCX_INGRESS, libbpf_sys::BPF_F_BEFORE),
        Passing::DepartureFirst => (libbpf_sys::BPF_TCX_EGRESS, libbpf_sys::BPF_F_BEFORE),
    };
    create_link(program, ifindex as i32, kind, flags)
}

fn create_link(program: BorrowedFd<'_>, target: i32, kind: u32, flags: u32) -> io::Result<OwnedFd> {
    // SAFETY: zeroes are valid options.
    let mut options: libbpf_sys::bpf_link_create_opts = unsafe { std::mem::zeroed() };
    options.sz = size_of_val(&options) as _;
    options.flags = flags;
    // SAFETY: the descriptors are open, and the options are as long as they say.
    let fd = unsafe { libbpf_sys::bpf_link_create(program.as_raw_fd(), target, kind, &options) };
    if fd < 0 {
        return Err(os_error(fd));
    }
    // SAFETY: the kernel has just given us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn link(program: &Path, target: i32, kind: u32, flags: u32, pin: &Path) -> Result<std::result::Result<(), io::Error>> {
    let link = match create_link(pinned_fd(program)?.as_fd(), target, kind, flags) {
        Ok(link) => link,
        Err(error) => return Ok(Err(error)),
    };
    let name = path_cstring(pin)?;
    // SAFETY: the descriptor is open and the name is a C string.
    let pinned = unsafe { libbpf_sys::bpf_obj_pin(link.as_raw_fd(), name.as_ptr()) };
    if pinned < 0 {
        return Err(Error::system(format!("pinning {}: {}", pin.display(), os_error(pinned))));
    }
    Ok(Ok(()))
}

/// Has a pinned link run another program from now on. No packet passes between the two.
pub fn update(pin: &Path, program: &Path) -> Result<()> {
    let (link, new) = (pinned_fd(pin)?, pinned_fd(program)?);
    // SAFETY: both descriptors are open; without options, any program is replaced.
    let updated = unsafe { libbpf_sys::bpf_link_update(link.as_raw_fd(), new.as_raw_fd(), std::ptr::null()) };
    if updated < 0 {
        return Err(Error::system(format!("renewing {}: {}", pin.display(), os_error(updated))));
    }
    Ok(())
}

/// Whether a pinned link is there and still attached: the kernel reports interface 0 for a detached link.
pub fn is_attached(pin: &Path) -> bool {
    let Ok(link) = pinned_fd(pin) else { return false };
    let mut info = libbpf_sys::bpf_link_info::default();
    let mut length = size_of_val(&info) as u32;
    // SAFETY: the descriptor is open, and the kernel writes at most as many bytes as it is told.
    let result = unsafe {
        libbpf_sys::bpf_obj_get_info_by_fd(link.as_raw_fd(), std::ptr::from_mut(&mut info).cast(), &mut length)
    };
    // SAFETY: links of XDP and of tcx both begin with the number of their interface, those of a cgroup with its number.
    result == 0 && unsafe { info.__bindgen_anon_1.xdp.ifindex } != 0
}

/// Removes a pin, which detaches its link. A missing pin is no error.
pub fn detach(pin: &Path) -> Result<()> {
    match fs::remove_file(pin) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).doing(|| format!("unpinning {}", pin.display()))
        }
        _ => Ok(()),
    }
}

/// A direction of clsact, as tc names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Arriving packets.
    Ingress,
    /// Departing packets.
    Egress,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Side::Ingress => "ingress",
            Side::Egress => "egress",
        }
    }
}

/// Adds the hook qdisc.
pub fn add_clsact(interface: &str) -> Result<()> {
    iproute::tc(&format!("qdisc add dev {interface} clsact")).map(drop).map_err(|error| {
        error
            .help("an `ingress` qdisc in its place, or a kernel without CONFIG_NET_CLS_ACT, prevents it: tc qdisc show")
    })
}

/// Puts a program on a side of clsact, in place of our earlier one. `action` follows the program: empty for a program that
/// decides by itself.
pub fn set_filter(interface: &str, side: Side, program: &Path, action: &str) -> Result<()> {
    let own = if action.is_empty() { "direct-action " } else { "" };
    iproute::tc(&format!(
        "filter replace dev {interface} {} protocol all pref {FILTER_PREF} handle 1 bpf {own}object-pinned {} {action}",
        side.name(),
        program.display()
    ))
    .map(drop)
}

/// Puts a program of port forwarding on a side of clsact, in place of an earlier one.
pub fn set_forward_filter(interface: &str, side: Side, program: &Path) -> Result<()> {
    iproute::tc(&format!(
        "filter replace dev {interface} {} protocol all pref {FORWARD_PREF} handle 1 bpf direct-action object-pinned {}",
        side.name(),
        program.display()
    ))
    .map(drop)
}

/// Removes the program of port forwarding from a side of clsact. Whether it was there.
pub fn clear_forward_filter(interface: &str, side: Side) -> Result<bool> {
    let there = qdiscs::has_clsact(interface)?
        && iproute::tc(&format!("filter show dev {interface} {}", side.name()))?
            .contains(&format!("pref {FORWARD_PREF} "));
    if there {
        iproute::tc(&format!("filter del dev {interface} {} pref {FORWARD_PREF}", side.name()))?;
    }
    Ok(there)
}

/// Redirects the arriving packets that our filter passes to a device. (A program cannot redirect to an ifb before
/// Linux 6.4: the ifb drops such packets.)
pub fn set_redirect(interface: &str, device: &str) -> Result<()> {
    // The kernel refuses to replace a matchall filter: it exists. Arriving packets bypass the queue until the new filter is there.
    if iproute::tc(&format!("filter show dev {interface} ingress"))?.contains(&format!("pref {REDIRECT_PREF} ")) {
        iproute::tc(&format!("filter del dev {interface} ingress pref {REDIRECT_PREF}"))?;
    }
    iproute::tc(&format!(
        "filter add dev {interface} ingress protocol all pref {REDIRECT_PREF} handle 1 matchall \
         action mirred egress redirect dev {device}"
    ))
    .map(drop)
}

/// The filters of a group on a member, those that are there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemberFilters {
    /// The arrival hook of the group.
    pub program: bool,
    /// The filter that sends what the hook passes to the group's device, if that is there.
    pub redirect: bool,
}

/// Puts the arrival hook of a group on a member, and the filter that sends what it passes to the group's device. The device's number, which
/// is the filters' handle, tells them from those of another group.
pub fn set_member_filters(interface: &str, program: &Path, device: &str, group: u32) -> Result<()> {
    clear_member_filters(interface, group)?;
    iproute::tc(&format!(
        "filter add dev {interface} ingress protocol all pref {MEMBER_PREF} handle {group} bpf direct-action object-pinned {}",
        program.display()
    ))?;
    iproute::tc(&format!(
        "filter add dev {interface} ingress protocol all pref {MEMBER_REDIRECT_PREF} handle {group} matchall \
         action mirred egress redirect dev {device}"
    ))
    .map(drop)
}

/// Removes the filters of a group from a member, if they are there; those of another group stay.
pub fn clear_member_filters(interface: &str, group: u32) -> Result<()> {
    let shown = arrival_filters(interface)?;
    for (pref, kind) in [(MEMBER_REDIRECT_PREF, "matchall"), (MEMBER_PREF, "bpf")] {
        if filter(&shown, pref, group).is_some() {
            iproute::tc(&format!("filter del dev {interface} ingress protocol all pref {pref} handle {group} {kind}"))?;
        }
    }
    Ok(())
}

/// The filters of a group that are on a member.
pub fn member_filters(interface: &str, group: u32) -> Result<MemberFilters> {
    let shown = arrival_filters(interface)?;
    Ok(MemberFilters {
        program: filter(&shown, MEMBER_PREF, group).is_some(),
        // tc shows a device that has gone so; the filter drops what comes to it.
        redirect: filter(&shown, MEMBER_REDIRECT_PREF, group).is_some_and(|text| !text.contains("to device *")),
    })
}

/// The text that tc has shown of the filter with this preference and handle.
fn filter(shown: &str, pref: u32, handle: u32) -> Option<&str> {
    let starts = |line: &str| {
        line.starts_with("filter ")
            && line.contains(&format!("pref {pref} "))
            && line.contains(&format!(" handle {handle:#x} "))
    };
    let (mut from, mut at) = (None, 0);
    for line in shown.split_inclusive('\n') {
        match from {
            None if starts(line) => from = Some(at),
            Some(from) if line.starts_with("filter ") => return Some(&shown[from..at]),
            _ => {}
        }
        at += line.len();
    }
    from.map(|from| &shown[from..])
}

fn arrival_filters(interface: &str) -> Result<String> {
    if qdiscs::has_clsact(interface)? {
        iproute::tc(&format!("filter show dev {interface} ingress"))
    } else {
        Ok(String::new())
    }
}

/// Removes our filters, if they are there.
pub fn clear_filter(interface: &str, side: Side) -> Result<()> {
    clear(interface, side, &[REDIRECT_PREF, FILTER_PREF])
}

fn clear(interface: &str, side: Side, prefs: &[u32]) -> Result<()> {
    if !qdiscs::has_clsact(interface)? {
        return Ok(());
    }
    let shown = iproute::tc(&format!("filter show dev {interface} {}", side.name()))?;
    for pref in prefs {
        if shown.contains(&format!("pref {pref} ")) {
            iproute::tc(&format!("filter del dev {interface} {} pref {pref}", side.name()))?;
        }
    }
    Ok(())
}

/// Whether our filter is on a side of clsact.
pub fn has_own_filter(interface: &str, side: Side) -> Result<bool> {
    Ok(qdiscs::has_clsact(interface)?
        && iproute::tc(&format!("filter show dev {interface} {}", side.name()))?
            .contains(&format!("pref {FILTER_PREF} ")))
}

/// Whether there is any filter on a side of clsact.
pub fn has_filters(interface: &str, side: Side) -> Result<bool> {
    Ok(qdiscs::has_clsact(interface)?
        && !iproute::tc(&format!("filter show dev {interface} {}", side.name()))?.trim().is_empty())
}

/// Whether programs or filters of others see the packets that depart: those of clsact, and (from Linux 6.6) those of tcx.
pub fn others_see_departures(interface: &str, ifindex: u32) -> Result<bool> {
    let ours = [FORWARD_PREF, FILTER_PREF].map(|pref| format!("pref {pref} "));
    if has_filters(interface, Side::Egress)? {
        let shown = iproute::tc(&format!("filter show dev {interface} {}", Side::Egress.name()))?;
        if shown.lines().any(|line| line.starts_with("filter ") && !ours.iter().any(|pref| line.contains(pref))) {
            return Ok(true);
        }
    }
    Ok(tcx_programs(ifindex)?.iter().any(|name| !name.starts_with("sl_")))
}

/// Names of the programs on departure at tcx; none before Linux 6.6.
fn tcx_programs(ifindex: u32) -> Result<Vec<String>> {
    const MOST: u32 = 64; // BPF_MPROG_MAX
    let mut ids = [0u32; MOST as usize];
    let mut options = libbpf_sys::bpf_prog_query_opts {
        sz: size_of::<libbpf_sys::bpf_prog_query_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    options.__bindgen_anon_1.prog_cnt = MOST;
    options.prog_ids = ids.as_mut_ptr();
    // SAFETY: the kernel writes at most as many numbers as the options say.
    let failed =
        unsafe { libbpf_sys::bpf_prog_query_opts(ifindex as i32, libbpf_sys::BPF_TCX_EGRESS, &raw mut options) };
    if failed != 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the kernel has set the number.
    let many = unsafe { options.__bindgen_anon_1.prog_cnt } as usize;
    ids.iter().take(many).map(|id| name_of(*id)).collect()
}

/// Name of the program of a number; empty if it has gone.
fn name_of(id: u32) -> Result<String> {
    // SAFETY: the call takes a number.
    let fd = unsafe { libbpf_sys::bpf_prog_get_fd_by_id(id) };
    if fd < 0 {
        return Ok(String::new());
    }
    // SAFETY: the kernel has just given us this descriptor.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut length = size_of::<libbpf_sys::bpf_prog_info>() as u32;
    // SAFETY: the kernel writes at most as many bytes as it is told.
    let failed = unsafe { libbpf_sys::bpf_obj_get_info_by_fd(fd.as_raw_fd(), (&raw mut info).cast(), &raw mut length) };
    if failed != 0 {
        return Err(Error::system(format!("asking for program {id}: {}", os_error(failed))));
    }
    Ok(info.name.iter().take_while(|c| **c != 0).map(|c| *c as u8 as char).collect())
}

/// Removes clsact, if no other program has a filter there.
pub fn remove_unused_clsact(interface: &str) -> Result<()> {
    if !qdiscs::has_clsact(interface)?
        || has_filters(interface, Side::Ingress)?
        || has_filters(interface, Side::Egress)?
    {
        return Ok(());
    }
    iproute::tc(&format!("qdisc del dev {interface} clsact")).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_told_by_preference_and_handle() {
        let shown = "filter protocol all pref 65002 bpf chain 0 \n\
            filter protocol all pref 65002 bpf chain 0 handle 0x1f sl_ingress:[*fsobj] direct-action id 7 \n\
            filter protocol all pref 65003 matchall chain 0 \n\
            filter protocol all pref 65003 matchall chain 0 handle 0x1f \n  not_in_hw\n\
            \taction order 1: mirred (Egress Redirect to device *) stolen\n\
            filter protocol all pref 65004 matchall chain 0 handle 0x2 \n";
        assert!(filter(shown, MEMBER_PREF, 31).is_some_and(|text| text.contains("sl_ingress")));
        assert!(filter(shown, MEMBER_REDIRECT_PREF, 31).is_some_and(|text| text.contains("to device *")));
        assert!(!filter(shown, MEMBER_REDIRECT_PREF, 31).is_some_and(|text| text.contains("65004")));
        assert!(filter(shown, MEMBER_PREF, 1).is_none() && filter(shown, MEMBER_PREF, 0x1f0).is_none());
    }
}
