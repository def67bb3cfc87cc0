//! Where BPF objects are pinned, so that they outlive the process.

use crate::error::{Doing, Error, Result};
use nix::mount::{MsFlags, mount};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const MOUNT_POINT: &str = "/sys/fs/bpf";
const DIRECTORY: &str = "sluice";

/// The directory of all that we pin. Mounts the file system if nobody has.
///
/// A process started by `ip netns exec` has a `/sys` of its own that goes away with it, and so would the pins: then the
/// first process's view of the file system is used.
pub fn root() -> Result<PathBuf> {
    let own = std::fs::metadata("/proc/self/ns/mnt").map(|meta| meta.ino());
    let first = std::fs::metadata("/proc/1/ns/mnt").map(|meta| meta.ino());
    let base = match (own, first) {
        (Ok(own), Ok(first)) if own != first => PathBuf::from("/proc/1/root").join(&MOUNT_POINT[1..]),
        _ => PathBuf::from(MOUNT_POINT),
    };
    if is_bpffs(&base) {
        return Ok(base.join(DIRECTORY));
    }
    if base != Path::new(MOUNT_POINT) {
        return Err(Error::system(format!("{MOUNT_POINT} is not mounted in the machine's first mount namespace"))
            .help("mount it outside of `ip netns exec`: mount -t bpf bpf /sys/fs/bpf; or use: sluice --netns NAME"));
    }
    mount(Some("bpf"), MOUNT_POINT, Some("bpf"), MsFlags::empty(), None::<&str>)
        .doing(|| format!("mounting the BPF file system at {MOUNT_POINT}"))?;
    Ok(base.join(DIRECTORY))
}

fn is_bpffs(path: &Path) -> bool {
    statfs(path).is_ok_and(|fs| fs.filesystem_type() == BPF_FS_MAGIC)
}
