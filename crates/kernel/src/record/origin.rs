//! The command that has put a policy into force.

use serde::{Deserialize, Serialize};

/// The command that has put a policy into force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// `sluice up`.
    #[default]
    Up,
    /// `sluice apply`, or `sluice watch`.
    Apply,
    /// `sluice rollback`.
    Rollback,
    /// The revert of a policy that was not confirmed.
    Revert,
}

impl Origin {
    /// Name of the command.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Up => "up",
            Origin::Apply => "apply",
            Origin::Rollback => "rollback",
            Origin::Revert => "revert",
        }
    }
}
