//! Fault points: a test has the process killed at one, to see that what remains is whole, or a step of a change fail, to see
//! that the change is taken back.

use sluice_error::{Error, Result};
use std::sync::atomic::{AtomicU32, Ordering};

/// The points, in the order in which commands pass them. `rollback` and a revert pass the points of `apply` as well, under
/// their own names.
pub const POINTS: &[&str] = &[
    "group-made",
    "up-recorded",
    "up-devices",
    "up-loaded",
    "up-staged",
    "up-live",
    "up-queued",
    "up-ingress-queued",
    "up-split",
    "up-hooked",
    "up-forwarding",
    "up-early-drop",
    "load-qdisc",
    "apply-recorded",
    "apply-waited-for",
    "htb-told",
    "apply-queued",
    "apply-staged",
    "apply-live",
    "apply-forwarding",
    "apply-pruned",
    "apply-verified",
    "apply-noted",
    "apply-settled",
    "subscriber-recorded",
    "subscriber-queued",
    "subscriber-live",
    "subscriber-noted",
    "rollback-recorded",
    "rollback-waited-for",
    "rollback-queued",
    "rollback-staged",
    "rollback-live",
    "rollback-forwarding",
    "rollback-pruned",
    "rollback-verified",
    "rollback-noted",
    "rollback-settled",
    "revert-recorded",
    "revert-waited-for",
    "revert-queued",
    "revert-staged",
    "revert-live",
    "revert-forwarding",
    "revert-pruned",
    "revert-verified",
    "revert-noted",
    "revert-settled",
    "confirm-found",
    "confirm-recorded",
    "confirm-noted",
    "upgrade-loaded",
    "upgrade-recorded",
    "upgrade-queued",
    "upgrade-hooked",
    "down-recorded",
    "down-forwarding",
    "down-hooks",
    "down-queues",
    "down-devices",
    "down-pins",
];

/// Kills the process, as by `kill -9`, if the environment's `SLUICE_FAULT` says so: `POINT`, or `POINT:2` for the second passing.
pub(crate) fn point(name: &str) {
    debug_assert!(POINTS.contains(&name), "{name} is not listed");
    if wanted(name) == Some(Fault::Death) {
        die();
    }
}

/// A point of a change, which also fails if `SLUICE_FAULT` is `POINT:error`, or `POINT:error:2` for the second passing.
pub(crate) fn step(command: &str, name: &str) -> Result<()> {
    let name = format!("{command}-{name}");
    debug_assert!(POINTS.contains(&name.as_str()), "{name} is not listed");
    match wanted(&name) {
        Some(Fault::Death) => die(),
        Some(Fault::Failure) => Err(Error::system(format!("{name} fails, as SLUICE_FAULT wants it"))),
        None => Ok(()),
    }
}

#[derive(Debug, PartialEq)]
enum Fault {
    Death,
    Failure,
}

fn wanted(name: &str) -> Option<Fault> {
    static PASSED: AtomicU32 = AtomicU32::new(0);
    let text = std::env::var("SLUICE_FAULT").ok()?;
    let rest = text.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with(':'))?;
    let (fault, passing) = match rest.strip_prefix(":error") {
        Some(passing) => (Fault::Failure, passing),
        None => (Fault::Death, rest),
    };
    let passing = passing.strip_prefix(':').map_or(Some(1), |number| number.parse().ok())?;
    (PASSED.fetch_add(1, Ordering::Relaxed) + 1 == passing).then_some(fault)
}

fn die() -> ! {
    // SAFETY: both calls take numbers only.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    unreachable!("no process survives SIGKILL")
}
