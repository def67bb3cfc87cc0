//! How many requests are worked on at the same time, by what they do: those that wait for others never keep those that only read.

use crate::problem::Problem;
use axum::http::StatusCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// How long a request waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);
/// Changes wait for one another, and for commands, at the lock of all commands.
const CHANGING: usize = 4;
/// A policy that is long and wrong takes much time and memory.
const CHECKING: usize = 2;

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It reads what is in force: many requests cost no more than one, and nothing that is done meanwhile waits.
    Reading,
    /// It changes the policy of an interface.
    Changing,
    /// It looks for what is wrong with a policy.
    Checking,
}

/// The turns that can be taken.
pub struct Turns {
    reading: Arc<Semaphore>,
    changing: Arc<Semaphore>,
    checking: Arc<Semaphore>,
}

impl Turns {
    /// Nobody has one yet.
    pub fn new() -> Turns {
        let of = |count| Arc::new(Semaphore::new(count));
        Turns { reading: of(1), changing: of(CHANGING), checking: of(CHECKING) }
    }

    /// Waits for one, which ends when it is dropped.
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
