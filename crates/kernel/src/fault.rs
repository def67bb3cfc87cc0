//! Points at which a test may have the process killed, to see that whatever remains is whole.

/// The points, in the order in which `up` and `down` pass them.
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
    "apply-staged",
    "apply-live",
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
