//! The directory where BPF objects are pinned, so that they outlive the process.

use crate::system::{ancestry, private};
use nix::mount::{MsFlags, mount};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use sluice_error::{Doing, Error, Result};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const MOUNT_POINT: &str = "/sys/fs/bpf";
const DIRECTORY: &str = "sluice";

/// The directory of all our pins. Mounts the file system if it is not mounted.
///
/// A process started by `ip netns exec` has a `/sys` of its own that goes away with it, and so would the pins: then the view
/// of the outermost process is used. A service in a mount namespace of its own (as systemd makes them) sees the machine's
/// file system itself.
pub fn root() -> Result<PathBuf> {
    let own = PathBuf::from(MOUNT_POINT);
    let outermost = PathBuf::from(format!("/proc/{}", ancestry::outermost()));
    let first = outermost.join("root").join(&MOUNT_POINT[1..]);
    let same_mounts = same(Path::new("/proc/self/ns/mnt"), &outermost.join("ns/mnt")).unwrap_or(true);
    if is_bpffs(&own) && (same_mounts || same(&own, &first).unwrap_or(true)) {
        return Ok(own.join(DIRECTORY));
    }
    if same_mounts && !ends_with_service(&std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default()) {
        // Without a mode, every user may write to it.
        mount(Some("bpf"), MOUNT_POINT, Some("bpf"), MsFlags::empty(), Some("mode=0700"))
            .doing(|| format!("mounting the BPF file system at {MOUNT_POINT}"))?;
        return Ok(own.join(DIRECTORY));
    }
    if is_bpffs(&first) {
        return Ok(first.join(DIRECTORY));
    }
    Err(Error::system(format!("{MOUNT_POINT} is not mounted, and this process's mounts end with it")).help(
        "mount it outside of the service or `ip netns exec`: mount -t bpf bpf /sys/fs/bpf; or use: sluice --netns NAME",
    ))
}

/// Makes a directory for pins below [`root`], for root alone.
pub fn own_directory(path: &Path) -> Result<()> {
    private::directory(&root()?)?;
    private::directory(path)
}

/// Whether two paths are the same file. None: one of them cannot be seen.
fn same(a: &Path, b: &Path) -> Option<bool> {
    let id = |path: &Path| std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
    Some(id(a)? == id(b)?)
}

/// Whether the mounts that this process makes are seen by no other: those of a service are slaves of the machine's. (Without
/// CAP_SYS_PTRACE it cannot look at the machine's first process.)
fn ends_with_service(mountinfo: &str) -> bool {
    // 36 35 98:0 / / rw,noatime master:1 - ext4 ...
    let root = mountinfo.lines().rev().find(|line| line.split(' ').nth(4) == Some("/"));
    let optional = root.and_then(|line| line.split_once(" - ")).map(|(front, _)| front.split(' ').skip(6));
    optional.is_some_and(|mut fields| fields.any(|field| field.starts_with("master:")))
}

fn is_bpffs(path: &Path) -> bool {
    statfs(path).is_ok_and(|fs| fs.filesystem_type() == BPF_FS_MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_a_service_differ_from_the_machines() {
        let root = |optional: &str| {
            format!(
                "21 30 0:20 / /sys rw master:7 - sysfs sysfs rw\n30 1 254:0 / / rw,relatime{optional} - ext4 /dev/vda rw\n"
            )
        };
        assert!(!ends_with_service(&root("")) && !ends_with_service(&root(" shared:1")));
        assert!(ends_with_service(&root(" master:1")) && ends_with_service(&root(" shared:9 master:1")));
        assert!(!ends_with_service(""));
    }
}
