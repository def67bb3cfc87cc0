//! What all interfaces do, asked once a second whoever reads, and kept for an hour.

use sluice_kernel::{Error, Result};
use sluice_observe::{History, Rates, Sample, Source};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time between two samples.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// The latest that is known.
#[derive(Default)]
pub struct Live {
    /// What was counted until now.
    pub sample: Arc<Sample>,
    /// What happened in the second before. None: only one sample was taken yet.
    pub rates: Option<Arc<Rates>>,
    /// What happened in the hour before.
    pub history: History,
    /// Why nothing new is known, if the last try failed.
    pub failed: Option<Error>,
}

/// Samples, on a thread of its own.
#[derive(Clone, Default)]
pub struct Sampler(Arc<Mutex<Live>>);

impl Sampler {
    /// Begins. It ends with the process.
    pub fn start() -> Result<Sampler> {
        let mut source = Source::new(&[])?;
        let sampler = Sampler::default();
        sampler.take(source.sample());
        let shared = sampler.clone();
        let sample = move || {
            let mut due = Instant::now();
            loop {
                due += INTERVAL;
                // After a time in which the machine slept, not everything that was missed is made up for.
                due = due.max(Instant::now());
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                shared.take(source.sample());
            }
        };
        std::thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(sample)
            .map_err(|error| Error::system(format!("starting a thread: {error}")))?;
        Ok(sampler)
    }

    /// What is known now.
    pub fn live(&self) -> MutexGuard<'_, Live> {
        // Whoever panicked while reading it has changed nothing.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, sample: Result<Sample>) {
        let mut live = self.live();
        match sample {
            Ok(sample) => live.push(sample),
            Err(error) => live.failed = Some(error),
        }
    }
}

impl Live {
    fn push(&mut self, sample: Sample) {
        self.failed = None;
        if self.sample.at_ns > 0 {
            let rates = Rates::between(&self.sample, &sample);
            self.history.push(&rates);
            self.rates = Some(Arc::new(rates));
        }
        self.sample = Arc::new(sample);
    }
}
