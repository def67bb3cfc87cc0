//! The rights that commands need: to be root, and capabilities, any of which root in a container may lack.

use sluice_error::{Error, Kind, Result};
use std::fs;

/// Fails unless the process is root's.
pub fn require_root() -> Result<()> {
    if nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    Err(Error::new(Kind::Privilege, "this needs root").help("run it with sudo"))
}

/// Fails unless the process may change queues and hooks.
pub fn require_rights() -> Result<()> {
    require_root()?;
    NET_ADMIN.require()
}

/// A capability of capabilities(7), by its number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Capability {
    bit: u32,
    name: &'static str,
}

pub(crate) const NET_ADMIN: Capability = Capability { bit: 12, name: "CAP_NET_ADMIN" };
pub(crate) const SYS_PTRACE: Capability = Capability { bit: 19, name: "CAP_SYS_PTRACE" };

impl Capability {
    /// Whether the process has the capability in force.
    pub(crate) fn is_held(self) -> bool {
        effective(&fs::read_to_string("/proc/self/status").unwrap_or_default())
            .is_some_and(|set| set & 1 << self.bit != 0)
    }

    /// Refuses a process that lacks the capability.
    pub(crate) fn require(self) -> Result<()> {
        if self.is_held() {
            return Ok(());
        }
        Err(Error::new(Kind::Privilege, format!("this process is root without {}", self.name)).help(format!(
            "a container gets it by `--cap-add {}`, a systemd unit by CapabilityBoundingSet={}",
            self.name.trim_start_matches("CAP_"),
            self.name
        )))
    }
}

/// The effective set, from the text of /proc/PID/status.
fn effective(status: &str) -> Option<u64> {
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(set.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effective_set_is_read() {
        assert_eq!(effective("Name:\tx\nCapPrm:\t00\nCapEff:\t0000000000001000\n"), Some(1 << NET_ADMIN.bit));
        assert_eq!(effective("Name:\tx\n"), None);
    }
}
