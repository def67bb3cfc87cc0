//! The hooks of this host's sockets, which lead them to targets.

use super::LINK;
use crate::bpf::hooks;
use sluice_error::{Doing, Result};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// The programs and what they attach to.
const HOOKS: [(&str, u32); 8] = [
    ("sl_connect4", libbpf_sys::BPF_CGROUP_INET4_CONNECT),
    ("sl_connect6", libbpf_sys::BPF_CGROUP_INET6_CONNECT),
    ("sl_sendmsg4", libbpf_sys::BPF_CGROUP_UDP4_SENDMSG),
    ("sl_sendmsg6", libbpf_sys::BPF_CGROUP_UDP6_SENDMSG),
    ("sl_recvmsg4", libbpf_sys::BPF_CGROUP_UDP4_RECVMSG),
    ("sl_recvmsg6", libbpf_sys::BPF_CGROUP_UDP6_RECVMSG),
    ("sl_getpeername4", libbpf_sys::BPF_CGROUP_INET4_GETPEERNAME),
    ("sl_getpeername6", libbpf_sys::BPF_CGROUP_INET6_GETPEERNAME),
];

/// Attaches the hooks that are not there, to all processes. Returns the names of their pins.
pub(super) fn attach(directory: &Path) -> Result<BTreeSet<String>> {
    let pins = HOOKS.map(|(program, _)| format!("{LINK}{program}"));
    if !pins.iter().all(|name| hooks::is_attached(&directory.join(name))) {
        let cgroup = root_cgroup().doing(|| "opening the root of cgroups".to_owned())?;
        for ((program, kind), name) in HOOKS.iter().zip(&pins) {
            let pin = directory.join(name);
            hooks::detach(&pin)?;
            hooks::attach_to_cgroup(&directory.join(program), &cgroup, *kind, &pin)?;
        }
    }
    Ok(pins.into_iter().collect())
}

/// The root of the second version's cgroups, which need not be mounted anywhere: a mount that nobody else sees (fsopen(2), fsmount(2)).
fn root_cgroup() -> io::Result<OwnedFd> {
    const FSOPEN_CLOEXEC: libc::c_uint = 1;
    const FSCONFIG_CMD_CREATE: libc::c_uint = 6;
    const FSMOUNT_CLOEXEC: libc::c_uint = 1;
    let opened = |fd: libc::c_long| {
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given us this descriptor.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
    };
    // SAFETY: the name is a C string.
    let context = opened(unsafe { libc::syscall(libc::SYS_fsopen, c"cgroup2".as_ptr(), FSOPEN_CLOEXEC) })?;
    let none = std::ptr::null::<libc::c_char>();
    // SAFETY: the descriptor is open, and this command takes neither key nor value.
    let created = unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), FSCONFIG_CMD_CREATE, none, none, 0) };
    if created < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open.
    opened(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), FSMOUNT_CLOEXEC, 0) })
}
