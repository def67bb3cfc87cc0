//! `--count`: packets of interfaces by key, counted in the kernel while the server runs, for `/metrics`.

use sluice_abi as abi;
use sluice_kernel::telemetry::{Key, KeyPart, Observer, Request};
use sluice_kernel::{Error, Result};
use std::collections::HashMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between two looks at observers.
const LOOK: Duration = Duration::from_millis(250);
/// Time between two readings.
const READ: Duration = Duration::from_secs(1);
/// Time after which an interface is looked for again that was not there.
const RETRY: Duration = Duration::from_secs(5);
/// Keys of an interface that have series of their own: a sender chooses its packets' keys, and each series costs its reader.
const KEYS: usize = 1024;

/// An interface whose arrivals are counted, and the key that they are counted by.
#[derive(Debug, Clone)]
pub struct Counting {
    /// Name of the interface.
    pub interface: String,
    /// Parts of the key.
    pub by: Vec<KeyPart>,
}

/// Packets and bytes of a key of an interface.
#[derive(Debug, Clone)]
pub struct Series {
    /// Labels, the interface's first.
    pub labels: Vec<(&'static str, String)>,
    /// Packets since the interface is observed.
    pub pkts: u64,
    /// Bytes of these.
    pub bytes: u64,
}

/// The series as they were read last.
#[derive(Clone, Default)]
pub struct Counts(Arc<Mutex<Vec<Series>>>);

impl Counting {
    /// Refuses keys that a metric cannot have.
    ///
    /// # Errors
    ///
    /// Parts of which there are more values than a reader of metrics wants series: ports, addresses and VLANs.
    pub fn check(&self) -> Result<()> {
        let bounded =
            |part: &KeyPart| matches!(part, KeyPart::Protocol | KeyPart::Class | KeyPart::Dscp | KeyPart::Verdict);
        if self.by.is_empty() || !self.by.iter().all(bounded) || (self.by.len() > 3) {
            return Err(Error::input(format!("--count {}: the key is too long for metrics", self.interface))
                .help("write up to three of proto, class, dscp and verdict; `sluice count` counts by anything"));
        }
        Ok(())
    }

    fn request(&self) -> Request {
        Request { by: self.by.clone(), ..Request::default() }
    }
}

impl Counts {
    /// Starts to count, on a thread that ends with the process.
    ///
    /// # Errors
    ///
    /// Those of [`Observer::start`], for any of the interfaces.
    pub fn start(wanted: Vec<Counting>) -> Result<Counts> {
        let counts = Counts::default();
        if wanted.is_empty() {
            return Ok(counts);
        }
        if let Some(twice) =
            wanted.iter().enumerate().find(|(n, one)| wanted[..*n].iter().any(|o| o.interface == one.interface))
        {
            return Err(Error::input(format!("--count: {} comes twice", twice.1.interface))
                .help("name each interface once; a key may have several parts: eth0:proto,class"));
        }
        let (started, outcome) = channel();
        let shared = counts.clone();
        // Observers stay on the thread that has made them.
        std::thread::Builder::new()
            .name("counts".to_owned())
            .spawn(move || observe(&wanted, &shared, &started))
            .map_err(|error| Error::system(format!("starting a thread: {error}")))?;
        outcome.recv().map_err(|_| Error::system("the thread that counts has ended"))??;
        Ok(counts)
    }

    /// The series, as they were read last.
    pub fn series(&self) -> Vec<Series> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Counts until the process ends. `started` gets the outcome of the first try.
fn observe(wanted: &[Counting], counts: &Counts, started: &Sender<Result<()>>) {
    let mut observed: Vec<Observed> = Vec::new();
    for one in wanted {
        match Observer::start(std::slice::from_ref(&one.interface), &one.request()) {
            Ok(observer) => observed.push(Observed::new(one, observer)),
            Err(error) => {
                let _ = started.send(Err(error));
                return;
            }
        }
    }
    let _ = started.send(Ok(()));
    let mut due = Instant::now();
    loop {
        observed.iter_mut().for_each(Observed::keep);
        if Instant::now() >= due {
            due = Instant::now() + READ;
            let series = observed.iter_mut().flat_map(Observed::read).collect();
            *counts.0.lock().unwrap_or_else(PoisonError::into_inner) = series;
        }
        std::thread::sleep(LOOK);
    }
}

/// An interface, and its observer while it is there.
struct Observed {
    wanted: Counting,
    observer: Option<Observer>,
    retry: Instant,
    /// Keys that have series, in the order in which they came.
    places: HashMap<Key, usize>,
}

impl Observed {
    fn new(wanted: &Counting, observer: Observer) -> Observed {
        Observed { wanted: wanted.clone(), observer: Some(observer), retry: Instant::now(), places: HashMap::new() }
    }

    /// Reads names again, or begins to observe again: an interface that was away, or that has got a policy. Its counts begin again.
    fn keep(&mut self) {
        let keep =
            |observer: &mut Observer| observer.renew().is_ok() && observer.gone().is_none() && !observer.is_outdated();
        let kept = self.observer.as_mut().is_some_and(keep);
        if kept || Instant::now() < self.retry {
            return;
        }
        self.retry = Instant::now() + RETRY;
        // The old programs go before new ones come.
        self.observer = None;
        self.places.clear();
        self.observer = Observer::start(std::slice::from_ref(&self.wanted.interface), &self.wanted.request()).ok();
    }

    fn read(&mut self) -> Vec<Series> {
        let Some(observer) = &self.observer else { return Vec::new() };
        let (counted, _) = observer.counts(0);
        let mut series: Vec<Option<Series>> = vec![None; KEYS];
        let mut others = Series { labels: self.labels(None, &[]), pkts: 0, bytes: 0 };
        for one in &counted {
            let next = self.places.len();
            let place = match self.places.get(&one.key) {
                Some(&place) => Some(place),
                None if next < KEYS => {
                    self.places.insert(one.key.clone(), next);
                    Some(next)
                }
                None => None,
            };
            match place {
                Some(place) => {
                    let labels = self.labels(Some(&one.key), observer.class_names(0));
                    series[place] = Some(Series { labels, pkts: one.pkts, bytes: one.bytes });
                }
                None => {
                    others.pkts += one.pkts;
                    others.bytes += one.bytes;
                }
            }
        }
        let others = (others.pkts > 0).then_some(others);
        series.into_iter().flatten().chain(others).collect()
    }

    /// The labels of a key; None: of the keys that have no series.
    fn labels(&self, key: Option<&Key>, classes: &[String]) -> Vec<(&'static str, String)> {
        let value = |part: &KeyPart| {
            let Some(key) = key else { return (label(part), "others".to_owned()) };
            let text = match part {
                KeyPart::Protocol => key.protocol.map(abi::protocol_name),
                KeyPart::Dscp => key.dscp.map(|dscp| dscp.to_string()),
                KeyPart::Verdict => key.verdict.map(|verdict| abi::verdict_name(verdict).to_owned()),
                _ => key.class.map(|class| class_name(class, classes)),
            };
            (label(part), text.unwrap_or_else(|| "none".to_owned()))
        };
        let interface = ("interface", self.wanted.interface.clone());
        [interface].into_iter().chain(self.wanted.by.iter().map(value)).collect()
    }
}

fn label(part: &KeyPart) -> &'static str {
    match part {
        KeyPart::Protocol => "protocol",
        KeyPart::Dscp => "dscp",
        KeyPart::Verdict => "verdict",
        _ => "class",
    }
}

fn class_name(class: u8, names: &[String]) -> String {
    names.get(usize::from(class)).filter(|name| !name.is_empty()).cloned().unwrap_or_else(|| class.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_many_values_are_refused() {
        let with = |by: &[KeyPart]| Counting { interface: "eth0".to_owned(), by: by.to_vec() }.check();
        assert!(with(&[KeyPart::Protocol, KeyPart::Class]).is_ok());
        for by in [&[][..], &[KeyPart::DstPort], &[KeyPart::Protocol, KeyPart::Src(24, 64)], &[KeyPart::Vlan]] {
            assert!(with(by).unwrap_err().cure.is_some_and(|cure| cure.contains("proto, class, dscp and verdict")));
        }
    }
}
