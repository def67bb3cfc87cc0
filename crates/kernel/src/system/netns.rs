//! Network namespaces: the one of the process, and entering another without leaving its mounts.

use crate::system::{ancestry, privilege};
use sluice_error::{Doing, Error, Result};
use std::fs::{self, File};
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

/// Enters the namespace that `ip netns` calls `name`. Mounts stay, so `/sys/fs/bpf` stays the machine's.
pub fn enter(name: &str) -> Result<()> {
    let unknown = || {
        Error::input(format!("there is no network namespace `{}`", name.escape_debug()))
            .help("list them with: ip netns list")
    };
    if matches!(name, "" | "." | "..") || name.contains('/') {
        return Err(unknown());
    }
    let file = File::open(format!("/run/netns/{name}")).map_err(|_| unknown())?;
    match nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET) {
        // The file is no namespace: its mount has gone.
        Err(nix::Error::EINVAL) => Err(unknown()),
        entered => entered.doing(|| format!("entering the namespace {name}")),
    }
}

/// The number of the process's namespace.
pub fn inode() -> Result<u64> {
    fs::metadata("/proc/self/ns/net").map(|meta| meta.ino()).doing(|| "/proc/self/ns/net".to_owned())
}

/// A number that no other network namespace has or had since the machine started, as programs see it; unlike the inode's, which is given to
/// the next.
pub fn cookie() -> Result<u64> {
    let failed = |error: io::Error| Error::system(format!("reading the cookie of the network namespace: {error}"));
    let socket = UdpSocket::bind("0.0.0.0:0").map_err(failed)?;
    let (mut cookie, mut length) = (0u64, size_of::<u64>() as libc::socklen_t);
    let (level, option) = (libc::SOL_SOCKET, libc::SO_NETNS_COOKIE);
    // SAFETY: the kernel writes at most as many bytes as it is told.
    let got = unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut cookie).cast(), &mut length) };
    if got < 0 { Err(failed(io::Error::last_os_error())) } else { Ok(cookie) }
}

/// The number of the machine's own namespace, as far as it can be seen.
pub fn first_inode() -> Option<u64> {
    fs::metadata(format!("/proc/{}/ns/net", ancestry::outermost())).map(|meta| meta.ino()).ok()
}

/// Whether anything is seen to keep a namespace: a process in it, or a mount as `ip netns` makes it.
pub fn is_kept(inode: u64) -> bool {
    let mount = format!("net:[{inode}]");
    let mounted = ["/proc/self/mountinfo", "/proc/1/mountinfo"]
        .iter()
        .any(|path| fs::read_to_string(path).is_ok_and(|text| text.contains(&mount)));
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    mounted
        // Without this right the namespaces of others cannot be seen.
        || !privilege::SYS_PTRACE.is_held()
        || processes
            .into_iter()
            .any(|entry| fs::metadata(entry.path().join("ns/net")).is_ok_and(|meta| meta.ino() == inode))
}
