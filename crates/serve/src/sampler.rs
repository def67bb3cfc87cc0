//! The sampler: reads all interfaces once a second, however many clients there are, and keeps an hour of rates. Flow tables are
//! long, so they are read only while a client looks at flows.

use sluice_kernel::{Error, Result};
use sluice_observe::flows::{By, FlowRates, FlowSample, Tracker};
use sluice_observe::{History, Rates, Sample, Source};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time between two samples.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// Time for which flow tables are read after a client has asked for flows.
const FLOWS_READ_FOR: Duration = Duration::from_secs(10);
/// Number of flows that are kept by rank, of all interfaces together.
const TOP: usize = 200;

/// The latest results.
#[derive(Default)]
pub struct Live {
    /// Counters until now.
    pub sample: Arc<Sample>,
    /// Rates of the second before. None: only one sample was taken yet.
    pub rates: Option<Arc<Rates>>,
    /// Rates of the hour before.
    pub history: History,
    /// Rates of flows in the second before. None: no client looks at flows.
    pub flows: Option<Arc<FlowRates>>,
    /// Error of the last sample.
    pub failed: Option<Error>,
    /// Time until which flow tables are read.
    flows_until: Option<Instant>,
}

/// The sampler, on a thread of its own.
#[derive(Clone, Default)]
pub struct Sampler(Arc<Mutex<Live>>);

impl Sampler {
    /// Starts the sampler, which ends with the process.
    pub fn start() -> Result<Sampler> {
        let sampler = Sampler::default();
        let mut readers = Readers { source: Source::new(&[])?, tracker: None };
        readers.read(&sampler);
        let shared = sampler.clone();
        let sample = move || {
            let mut due = Instant::now();
            loop {
                // Samples that were missed while the machine slept are not made up for.
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

    /// The latest results.
    pub fn live(&self) -> MutexGuard<'_, Live> {
        // A thread that panicked while reading the results has changed nothing.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Readers {
    source: Source,
    /// The tracker of flows, while a client asks for them.
    tracker: Option<Tracker>,
}

impl Readers {
    /// Reads without the lock on the results, then stores them.
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

    /// The rates of flows. None at the first reading: nothing is known of the time before.
    fn flows(&mut self, sample: &Sample) -> Result<Option<FlowRates>> {
        let is_first = self.tracker.is_none();
        let now = FlowSample::read(&self.source)?;
        let rates = self.tracker.get_or_insert_default().take(&now, sample, By::Rate, TOP);
        Ok((!is_first).then_some(rates))
    }
}

impl Live {
    /// Notes that a client asks for flows. Returns their latest rates.
    pub fn request_flows(&mut self) -> Option<Arc<FlowRates>> {
        self.flows_until = Some(Instant::now() + FLOWS_READ_FOR);
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
