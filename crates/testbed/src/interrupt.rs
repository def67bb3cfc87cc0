//! Ctrl-C and its kin as a question that is asked often, so that every guard gets to clean up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGTERM};

use sluice_error::{Error, Kind, Result};

/// While it lives, the signals that ask to stop only set a flag.
pub struct Interrupt {
    asked: Arc<AtomicBool>,
    registrations: Vec<SigId>,
}

impl Interrupt {
    /// Catch SIGINT, SIGTERM and SIGHUP from now on, and SIGPIPE: when nobody reads what we say.
    pub fn catch() -> Result<Interrupt> {
        let mut interrupt = Interrupt { asked: Arc::default(), registrations: Vec::new() };
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGPIPE] {
            let id = signal_hook::flag::register(signal, Arc::clone(&interrupt.asked))
                .map_err(|e| Error::system(format!("cannot catch signal {signal}: {e}")))?;
            interrupt.registrations.push(id);
        }
        Ok(interrupt)
    }

    /// An error once somebody asked to stop.
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
