//! What every request sees.

use crate::sampler::Sampler;
use crate::token::Token;
use crate::turns::Turns;
use std::sync::Arc;

/// What the server holds. One for all requests.
pub struct State {
    /// The secret.
    pub token: Token,
    /// Whether reading needs it too.
    pub read_needs_token: bool,
    /// Whether only this machine reaches the server.
    pub loopback: bool,
    /// Whether what is sent is encrypted.
    pub tls: bool,
    /// What interfaces do.
    pub sampler: Sampler,
    /// Taken while the kernel side is asked or changed on behalf of a request.
    pub turns: Turns,
}

/// As handlers get it.
pub type Shared = Arc<State>;
