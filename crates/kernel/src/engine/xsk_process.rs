//! The process of a wire, by the lock that it has on both interfaces for as long as it lives.

use crate::system::lock::{Holder, holder};
use crate::system::{netns, paths, private};
use nix::fcntl::{Flock, FlockArg};
use sluice_error::Result;
use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file that the process of the wire between two interfaces, by their numbers, has locked.
pub(crate) fn claim_path(numbers: [u32; 2]) -> Result<PathBuf> {
    let (less, more) = (numbers[0].min(numbers[1]), numbers[0].max(numbers[1]));
    Ok(paths::run().join(format!("wire-{less}-{more}@{}.lock", netns::inode()?)))
}

/// Removes the file that a killed process has left. Its lock was free again when it ended.
pub(crate) fn forget_claim(numbers: [u32; 2]) -> Result<()> {
    let path = claim_path(numbers)?;
    let Ok(file) = private::file_that_is_there(&path) else { return Ok(()) };
    if let Ok(_held) = Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        // One that stays does no harm.
        let _ = fs::remove_file(&path);
    }
    Ok(())
}

/// Whether this locked file is the one at its path still: its former owner may have removed it meanwhile.
pub(crate) fn is_at(path: &Path, file: &File) -> bool {
    let id = |about: fs::Metadata| (about.dev(), about.ino());
    let (there, own) = (fs::symlink_metadata(path).map(id), file.metadata().map(id));
    there.is_ok_and(|there| own.is_ok_and(|own| own == there))
}

/// A process that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WireProcess {
    pub pid: u32,
    /// It was stopped by a signal, or by a debugger.
    pub is_stopped: bool,
}

impl WireProcess {
    /// The process of the wire between two interfaces. None: there is none, or it cannot be seen from here.
    pub fn find(numbers: [u32; 2]) -> Result<Option<WireProcess>> {
        let path = claim_path(numbers)?;
        Ok(holder(&path).map(|Holder { pid, .. }| WireProcess { pid, is_stopped: is_stopped(pid) }))
    }

    /// The way out, if it does not move packets between these interfaces.
    pub fn cure(&self, interfaces: [&str; 2]) -> String {
        let (pid, [first, second]) = (self.pid, interfaces);
        let anew = format!("kill -KILL {pid}, then sluice wire {first} {second}");
        match self.is_stopped {
            true => format!("kill -CONT {pid} lets it go on; or {anew}"),
            false => format!("it may have begun just now, or get no processor; if it stays so: {anew}"),
        }
    }
}

impl fmt::Display for WireProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.is_stopped { "is stopped" } else { "does not answer" };
        write!(f, "the process of `sluice wire` (PID {}) {how}", self.pid)
    }
}

/// Whether a process is stopped: T or t behind its name in /proc/PID/stat (proc(5)).
fn is_stopped(pid: u32) -> bool {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    line.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't']))
}
