//! Keeps the leases of an observer: a thread renews them, since its command may wait for the reader of its output for longer than a lease holds.

use crate::maps::observing::Calls;
use sluice_error::{Error, Result};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time after which leases are renewed.
const RENEWED: Duration = Duration::from_millis(500);

#[derive(Default)]
struct Shared {
    ended: AtomicBool,
    /// Time without a lease, ns.
    gap_ns: AtomicU64,
    failed: OnceLock<Error>,
}

/// The thread. Dropping it ends it; a process that dies or is stopped renews nothing.
pub(super) struct Keeper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Keeps the leases of these programs.
    pub fn start(calls: Vec<Calls>) -> Result<Keeper> {
        let shared = Arc::<Shared>::default();
        let own = Arc::clone(&shared);
        let keep = move || {
            while !own.ended.load(Ordering::Acquire) {
                for one in calls.iter().filter(|one| one.are_in_place()) {
                    match one.renew() {
                        Ok(gap) => drop(own.gap_ns.fetch_add(gap.as_nanos() as u64, Ordering::Relaxed)),
                        // An interface that was given back meanwhile has no lease to renew.
                        Err(_) if !one.have_a_hook() => {}
                        Err(error) => drop(own.failed.set(error)),
                    }
                }
                thread::park_timeout(RENEWED);
            }
        };
        let thread = thread::Builder::new().name("leases".to_owned()).spawn(keep);
        let thread = thread.map_err(|error| Error::system(format!("starting a thread: {error}")))?;
        Ok(Keeper { shared, thread: Some(thread) })
    }

    /// Time in which packets were not observed, since a lease had ended: the process was stopped.
    pub fn gap(&self) -> Duration {
        Duration::from_nanos(self.shared.gap_ns.load(Ordering::Relaxed))
    }

    /// The error that keeps leases from being renewed, if there was one.
    pub fn check(&self) -> Result<()> {
        self.shared.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A thread that has panicked renews nothing any more, which is all that is wanted.
            let _ = thread.join();
        }
    }
}
