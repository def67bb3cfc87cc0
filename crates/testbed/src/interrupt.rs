//! Signals that ask to stop, as a flag that is checked often, so that every guard cleans up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGTERM};

use sluice_error::{Error, Kind, Result};

/// A guard: while it lives, signals that ask to stop only set a flag.
pub struct Interrupt {
    asked: Arc<AtomicBool>,
    registrations: Vec<SigId>,
}

impl Interrupt {
    /// Catch SIGINT, SIGTERM and SIGHUP from now on, and SIGPIPE, which comes when no process reads our output.
    pub fn catch() -> Result<Interrupt> {
        let mut interrupt = Interrupt { asked: Arc::default(), registrations: Vec::new() };
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGPIPE] {
            let id = signal_hook::flag::register(signal, Arc::clone(&interrupt.asked))
                .map_err(|e| Error::system(format!("cannot catch signal {signal}: {e}")))?;
            interrupt.registrations.push(id);
        }
        Ok(interrupt)
    }

    /// An error once a signal has asked to stop.
    pub fn check(&self) -> Result<()> {
        if self.asked.load(Ordering::Relaxed) {
            return Err(Error::new(Kind::Interrupted, "interrupted; everything that had been set up was removed"));
        }
        Ok(())
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        for id in self.registrations.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}
