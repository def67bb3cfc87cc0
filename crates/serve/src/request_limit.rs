//! Limits of concurrent requests, by kind: requests that wait for others never delay those that only read.

use crate::problem::Problem;
use axum::http::StatusCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Time that a request waits for a permit.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);
/// Changes wait for one another, and for commands, at the lock of all commands.
const MAX_CHANGES: usize = 4;
/// Checks of a long and wrong policy take much time and memory.
const MAX_CHECKS: usize = 2;

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// A request that reads: one at a time, so many cost no more than one, and nothing else waits for them.
    Reading,
    /// A request that changes the policy of an interface.
    Changing,
    /// A request that looks for errors in a policy.
    Checking,
}

/// The limits of requests, by kind.
pub struct RequestLimits {
    reading: Arc<Semaphore>,
    changing: Arc<Semaphore>,
    checking: Arc<Semaphore>,
}

impl RequestLimits {
    /// Limits without requests.
    pub fn new() -> RequestLimits {
        let of = |count| Arc::new(Semaphore::new(count));
        RequestLimits { reading: of(1), changing: of(MAX_CHANGES), checking: of(MAX_CHECKS) }
    }

    /// Waits for a permit, which is released when it is dropped.
    pub async fn acquire(&self, kind: RequestKind) -> Result<OwnedSemaphorePermit, Problem> {
        let of = match kind {
            RequestKind::Reading => &self.reading,
            RequestKind::Changing => &self.changing,
            RequestKind::Checking => &self.checking,
        };
        let busy = || {
            let what =
                format!("the server is busy with other requests of this kind since {} s", QUEUE_TIMEOUT.as_secs());
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, what, "ask again later")
        };
        timeout(QUEUE_TIMEOUT, Arc::clone(of).acquire_owned()).await.map_err(|_| busy())?.map_err(|_| busy())
    }
}
