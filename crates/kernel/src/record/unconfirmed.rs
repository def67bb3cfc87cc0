//! A change that waits to be confirmed, as the record has it.

use crate::system::clock;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A change that is not confirmed yet.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Unconfirmed {
    /// Time at which the change is taken back, milliseconds since the machine was started.
    pub deadline_ms: u64,
    /// Time that was given to confirm it, seconds.
    pub time_s: u64,
    /// Policy that is brought back.
    pub former: Former,
}

/// The last policy that needed no confirmation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Former {
    /// Name of the policy.
    pub name: String,
    /// Source of the policy's text, such as a path.
    pub source: String,
    /// Text of the policy.
    pub policy: String,
    /// `--rate`, bits per second.
    pub rate_bps: Option<u64>,
    /// The rate of arrivals; none: in a record from before that rate could change.
    #[serde(default)]
    pub ingress: Option<FormerIngress>,
}

/// The rate of arrivals that is brought back.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct FormerIngress {
    /// Bits per second; none: they were not queued.
    pub rate_bps: Option<u64>,
    /// Whether the rate was the policy's, and not that of `--ingress-rate`.
    pub of_policy: bool,
}

impl Unconfirmed {
    /// Time until the change is taken back.
    pub fn left(&self) -> Duration {
        Duration::from_millis(self.deadline_ms).saturating_sub(clock::since_boot())
    }
}
