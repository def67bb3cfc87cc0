//! The server's options, and its bounds for connections.

use crate::counted::Counting;
use crate::tls::Files;
use std::path::PathBuf;
use std::time::Duration;

/// Time limit of a connection for the begin of its next request, again for the headers, and again for the body.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// The longest policy that is taken, bytes.
pub const MAX_BODY_BYTES: usize = 4 << 20;

/// Options of `sluice serve`.
#[derive(Debug, Clone)]
pub struct Options {
    /// `--listen`: address and port.
    pub listen: String,
    /// `--token-file`.
    pub token_file: Option<PathBuf>,
    /// `--tls-cert` and `--tls-key`.
    pub tls: Option<Files>,
    /// `--count`.
    pub counted: Vec<Counting>,
}
