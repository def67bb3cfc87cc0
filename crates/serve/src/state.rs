//! What every request sees.

use crate::sampler::Sampler;
use crate::token::Token;
use std::sync::{Arc, Mutex};

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
    /// Held while the kernel side is asked or changed on behalf of a request, so that many requests cost no more than one.
    pub turn: Mutex<()>,
}

/// As handlers get it.
pub type Shared = Arc<State>;
