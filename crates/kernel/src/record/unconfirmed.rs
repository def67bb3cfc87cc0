//! A change that waits to be confirmed, as the record has it.

use crate::system::clock;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A change that nobody has confirmed yet.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Unconfirmed {
    /// When it is taken back, milliseconds since the machine was started.
    pub deadline_ms: u64,
    /// How long it was given, seconds.
    pub time_s: u64,
    /// What is brought back.
    pub former: Former,
}

/// The last policy that needed no confirmation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Former {
    /// Its name.
    pub name: String,
    /// Where it was read from.
    pub source: String,
    /// Itself, as JSON.
    pub policy: String,
    /// `--rate`, bits per second.
    pub rate_bps: Option<u64>,
    /// The rate of arrivals; none: a record from before it could change.
    #[serde(default)]
    pub ingress: Option<FormerIngress>,
}

/// The rate of arrivals that is brought back.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct FormerIngress {
    /// Bits per second; none: they were not queued.
    pub rate_bps: Option<u64>,
    /// Whether that was the policy's, and not what `--ingress-rate` had said.
    pub of_policy: bool,
}

impl Unconfirmed {
    /// The time that is left.
    pub fn left(&self) -> Duration {
        Duration::from_millis(self.deadline_ms).saturating_sub(clock::since_boot())
    }
}
