//! The end of a command by a signal, with what it must put back.

use crate::failure::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a signal has asked the command to end.
#[derive(Debug, Clone)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on SIGINT, SIGTERM and SIGHUP set a flag instead of ending the process, and a pipe without a reader is an error of writing.
    pub fn new() -> Result<Interrupt, Failure> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGPIPE] {
            signal_hook::flag::register(signal, Arc::clone(&flag))
                .map_err(|error| Failure::system(format!("signals: {error}")))?;
        }
        Ok(Interrupt(flag))
    }

    /// Whether there was one of them.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag, for what waits elsewhere.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}
