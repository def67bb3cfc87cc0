//! The state that all requests share.

use crate::counted::Counts;
use crate::request_limit::RequestLimits;
use crate::sampler::Sampler;
use crate::token::Token;
use std::sync::Arc;

/// The state of the server, one for all requests.
pub struct State {
    /// Token of the server.
    pub token: Token,
    /// Whether reading needs the token too.
    pub read_needs_token: bool,
    /// Whether only this machine reaches the server.
    pub loopback: bool,
    /// Whether connections are encrypted.
    pub tls: bool,
    /// Sampler of the interfaces.
    pub sampler: Sampler,
    /// Counts by key.
    pub counts: Counts,
    /// Limits of concurrent requests on the kernel side.
    pub request_limits: RequestLimits,
}

/// The state as handlers get it.
pub type Shared = Arc<State>;
