//! `sluice serve`: a web page with live charts and a policy editor, the JSON behind it, and metrics for Prometheus.
//!
//! One process serves one port. A thread samples every managed interface once a second ([`sampler`]), and requests read its results.
//! A change of a policy runs the very code of `sluice apply`.

mod api;
mod assets;
mod connection_limit;
mod counted;
mod extract;
mod guard;
mod listen;
mod metrics;
mod options;
mod problem;
mod request_limit;
mod sampler;
mod search;
mod server;
mod state;
mod tls;
mod token;

pub use counted::Counting;
pub use options::Options;
pub use server::{Endpoint, run};
pub use tls::Files;
