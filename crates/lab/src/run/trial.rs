//! The setting of a trial, and its result.

use std::path::Path;

use crate::format::{Contender, Scenario};
use crate::result::results::{Clock, Measured};

/// The setting of one trial.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// The traffic.
    pub scenario: &'a Scenario,
    /// The owner of the bottleneck.
    pub contender: &'a Contender,
    /// The rate that the contender shapes to, bits per second.
    pub rate_bps: u64,
    /// Length of the window, ms.
    pub measured_ms: f64,
    /// The repeat, from 1.
    pub repeat: u32,
    /// The Sluice binary.
    pub sluice: &'a Path,
    /// A directory for files that tools need.
    pub scratch: &'a Path,
    /// The clock of the run.
    pub clock: Clock,
}

/// The result of a trial.
pub struct TrialResult {
    /// The figures.
    pub measured: Measured,
    /// The tools' output: a file's name and its text.
    pub raw: Vec<(String, String)>,
    /// Features that this kernel lacks.
    pub warnings: Vec<String>,
}
