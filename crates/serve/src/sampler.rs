//! What all interfaces do, asked once a second whoever reads, and kept for an hour. Flows are asked only while somebody looks at
//! them: their tables are long.

use sluice_kernel::{Error, Result};
use sluice_observe::flows::{By, FlowRates, FlowSample, Tracker};
use sluice_observe::{History, Rates, Sample, Source};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time between two samples.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// How long flows are asked for after somebody has looked.
const LOOKED_AT: Duration = Duration::from_secs(10);
/// Flows that are kept by rank, of all interfaces together.
const TOP: usize = 200;

/// The latest that is known.
#[derive(Default)]
pub struct Live {
    /// What was counted until now.
    pub sample: Arc<Sample>,
    /// What happened in the second before. None: only one sample was taken yet.
    pub rates: Option<Arc<Rates>>,
    /// What happened in the hour before.
    pub history: History,
    /// What flows did in the second before. None: nobody looks.
    pub flows: Option<Arc<FlowRates>>,
    /// Why nothing new is known, if the last try failed.
    pub failed: Option<Error>,
    /// Until when flows are asked for.
    flows_until: Option<Instant>,
}

/// Samples, on a thread of its own.
#[derive(Clone, Default)]
pub struct Sampler(Arc<Mutex<Live>>);

impl Sampler {
    /// Begins. It ends with the process.
    pub fn start() -> Result<Sampler> {
        let sampler = Sampler::default();
        let mut readers = Readers { source: Source::new(&[])?, tracker: None };
        readers.read(&sampler);
        let shared = sampler.clone();
        let sample = move || {
            let mut due = Instant::now();
            loop {
                // After a time in which the machine slept, not everything that was missed is made up for.
                due = (due + INTERVAL).max(Instant::now());
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                readers.read(&shared);
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
}

struct Readers {
    source: Source,
    /// While somebody looks at flows.
    tracker: Option<Tracker>,
}

impl Readers {
    /// Reads without holding anybody up, then tells.
    fn read(&mut self, sampler: &Sampler) {
        let wants_flows = sampler.live().flows_until.is_some_and(|until| until > Instant::now());
        let sample = self.source.sample();
        let flows = match &sample {
            Ok(sample) if wants_flows => self.flows(sample),
            _ => {
                self.tracker = None;
                Ok(None)
            }
        };
        let mut live = sampler.live();
        match sample.and_then(|sample| Ok((sample, flows?))) {
            Ok((sample, flows)) => {
                live.flows = flows.map(Arc::new);
                live.push(sample);
            }
            Err(error) => live.failed = Some(error),
        }
    }

    /// None at the first time: nothing is known of before.
    fn flows(&mut self, sample: &Sample) -> Result<Option<FlowRates>> {
        let is_first = self.tracker.is_none();
        let now = FlowSample::read(&self.source)?;
        let rates = self.tracker.get_or_insert_default().take(&now, sample, By::Rate, TOP);
        Ok((!is_first).then_some(rates))
    }
}

impl Live {
    /// Somebody looks at flows. What is known of them.
    pub fn look_at_flows(&mut self) -> Option<Arc<FlowRates>> {
        self.flows_until = Some(Instant::now() + LOOKED_AT);
        self.flows.clone()
    }

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
