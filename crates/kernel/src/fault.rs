//! Points at which a test may have the process killed, to see that whatever remains is whole, or a step of a change fail, to
//! see that the change is taken back.

use crate::error::{Error, Result};

/// The points, in the order in which commands pass them. Those of `apply` are passed by `rollback` and by a revert as well,
/// under their names.
pub const POINTS: &[&str] = &[
    "up-recorded",
    "up-devices",
    "up-loaded",
    "up-staged",
    "up-live",
    "up-queued",
    "up-ingress-queued",
    "up-split",
    "up-hooked",
    "apply-recorded",
    "apply-waited-for",
    "apply-queued",
    "apply-staged",
    "apply-live",
    "apply-pruned",
    "apply-verified",
    "apply-noted",
    "apply-settled",
    "rollback-recorded",
    "rollback-waited-for",
    "rollback-queued",
    "rollback-staged",
    "rollback-live",
    "rollback-pruned",
    "rollback-verified",
    "rollback-noted",
    "rollback-settled",
    "revert-recorded",
    "revert-waited-for",
    "revert-queued",
    "revert-staged",
    "revert-live",
    "revert-pruned",
    "revert-verified",
    "revert-noted",
    "revert-settled",
    "confirm-found",
    "confirm-recorded",
    "confirm-noted",
    "down-recorded",
    "down-hooks",
    "down-queues",
    "down-devices",
    "down-pins",
];

/// Dies here, as by `kill -9`, if the environment's `SLUICE_FAULT` says so.
pub(crate) fn point(name: &str) {
    debug_assert!(POINTS.contains(&name), "{name} is not listed");
    if std::env::var_os("SLUICE_FAULT").is_some_and(|wanted| wanted == name) {
        // SAFETY: both calls take numbers only.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
}

/// A point of a change, which also fails if `SLUICE_FAULT` is its name and `:error`.
pub(crate) fn step(command: &str, name: &str) -> Result<()> {
    let name = format!("{command}-{name}");
    point(&name);
    if std::env::var("SLUICE_FAULT").is_ok_and(|wanted| wanted.strip_suffix(":error") == Some(&name)) {
        return Err(Error::system(format!("{name} fails, as SLUICE_FAULT wants it")));
    }
    Ok(())
}
