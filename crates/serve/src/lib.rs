//! `sluice serve`: a web page with live charts and a policy editor, the JSON behind it, and metrics for Prometheus.
//!
//! One process, one port. A thread of its own samples every managed interface once a second ([`sampler`]), whoever reads gets
//! what it holds. What changes a policy is the very code that `sluice apply` runs.

mod api;
mod assets;
mod extract;
mod guard;
mod listen;
mod metrics;
mod options;
mod problem;
mod room;
mod sampler;
mod server;
mod state;
mod tls;
mod token;
mod turns;

pub use options::Options;
pub use server::{Place, run};
pub use tls::Files;
