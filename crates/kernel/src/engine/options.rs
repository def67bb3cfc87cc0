//! The options of `up`, beside the policy.

use crate::record::{Engine, Hook};
use sluice_policy::Rate;

/// Options of the caller.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// `--engine`; none: the best engine there is.
    pub engine: Option<Engine>,
    /// `--classifier`; none: the hook that suits the interface.
    pub hook: Option<Hook>,
    /// `--ingress-rate`.
    pub ingress_rate: Option<Rate>,
    /// The number of queues with a scheduler each, of an interface that is managed; 0: one scheduler serves all.
    pub running: Option<u32>,
    /// The tx queues in use, where the interface may have more of them than schedulers.
    pub in_use: Option<u32>,
    /// Bytes of memory that the machine has left. None: not known.
    pub available_bytes: Option<u64>,
}
