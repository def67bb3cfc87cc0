//! Limits of requests that are worked on at the same time, by kind: requests that wait for others never delay those that only read.

use crate::problem::Problem;
use axum::http::StatusCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Time that a request waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);
/// Changes wait for one another, and for commands, at the lock of all commands.
const CHANGING: usize = 4;
/// Checks of a long and wrong policy take much time and memory.
const CHECKING: usize = 2;

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// A request that reads: one at a time, so many cost no more than one, and nothing else waits for them.
    Reading,
    /// A request that changes the policy of an interface.
    Changing,
    /// A request that looks for errors in a policy.
    Checking,
}

/// The turns that can be taken.
pub struct Turns {
    reading: Arc<Semaphore>,
    changing: Arc<Semaphore>,
    checking: Arc<Semaphore>,
}

impl Turns {
    /// All turns, none of them taken.
    pub fn new() -> Turns {
        let of = |count| Arc::new(Semaphore::new(count));
        Turns { reading: of(1), changing: of(CHANGING), checking: of(CHECKING) }
    }

    /// Waits for a turn, which ends when the permit is dropped.
    pub async fn take(&self, turn: Turn) -> Result<OwnedSemaphorePermit, Problem> {
        let of = match turn {
            Turn::Reading => &self.reading,
            Turn::Changing => &self.changing,
            Turn::Checking => &self.checking,
        };
        let busy = || {
            let what = format!("the server is busy with other requests of this kind since {} s", PATIENCE.as_secs());
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, what, "ask again later")
        };
        timeout(PATIENCE, Arc::clone(of).acquire_owned()).await.map_err(|_| busy())?.map_err(|_| busy())
    }
}
