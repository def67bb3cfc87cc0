//! The outermost process that can be looked at: its view of mounts and of the network is the machine's, where this
//! process has one of its own (as `ip netns exec` gives it).

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

/// The first process if it can be seen, else the earliest ancestor that can, else this one.
pub(crate) fn outermost() -> u32 {
    let mut seen = std::process::id();
    while let Some(parent) = parent_of(seen).filter(|parent| *parent > 0) {
        if fs::read_link(format!("/proc/{parent}/ns/mnt")).is_err() {
            break;
        }
        seen = parent;
    }
    seen
}

/// The mount namespace of the outermost process, if this process has another.
pub(crate) fn outer_mounts() -> Option<File> {
    let outer = File::open(format!("/proc/{}/ns/mnt", outermost())).ok()?;
    let own = fs::metadata("/proc/self/ns/mnt").ok()?;
    let about = outer.metadata().ok()?;
    ((about.dev(), about.ino()) != (own.dev(), own.ino())).then_some(outer)
}

fn parent_of(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_parent_and_an_outermost_ancestor() {
        assert_eq!(parent_of(std::process::id()), Some(std::os::unix::process::parent_id()));
        assert!(parent_of(outermost()).is_some());
    }
}
