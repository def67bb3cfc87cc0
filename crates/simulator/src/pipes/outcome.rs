//! The outcome of a run: what became of each packet that came in the window.

use super::Frame;

/// The fate of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It had not left when the run ended.
    Waits,
    /// The card has sent it.
    Sent,
    /// The receive ring of its instance was full.
    LostOnArrival,
    /// The scheduler had no room for it.
    LostInScheduler,
    /// The ring of the card was full.
    LostAtCard,
}

/// A packet that came in the window.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// When it came, ns since the window began.
    pub arrived_ns: u32,
    /// From then until its last bit was sent, ns; if it was sent.
    pub latency_ns: u32,
    /// Its pipe, among those of all instances.
    pub pipe: u32,
    /// Its class.
    pub class: u8,
    /// Its fate.
    pub fate: Fate,
}

/// The outcome of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The packets that came in the window, in the order in which instances learnt of them.
    pub records: Vec<Record>,
    /// The number of pipes.
    pub pipes: u32,
    /// The length of the window, ns.
    pub window_ns: u64,
    /// Bytes that the link has carried in the window, with what it adds to each packet.
    pub wire_bytes: u64,
    pub(super) from_ns: u64,
    /// Packets whose fate is not known yet.
    pub(super) open: usize,
}

impl Outcome {
    /// The outcome of a run that was no simulation, whose packets have these fates.
    pub fn measured(pipes: u32, window_ns: u64, wire_bytes: u64, records: Vec<Record>) -> Outcome {
        Outcome { records, pipes, window_ns, wire_bytes, from_ns: 0, open: 0 }
    }

    pub(super) fn new(pipes: u32, window: (u64, u64)) -> Outcome {
        Outcome {
            records: Vec::new(),
            pipes,
            window_ns: window.1 - window.0,
            wire_bytes: 0,
            from_ns: window.0,
            open: 0,
        }
    }

    /// A packet has come. It is counted if it came in the window.
    pub(super) fn came(&mut self, frame: &mut Frame) {
        let Some(since_ns) = frame.arrived_ns.checked_sub(self.from_ns).filter(|ns| *ns < self.window_ns) else {
            return;
        };
        frame.number = self.records.len() as u32;
        self.open += 1;
        self.records.push(Record {
            arrived_ns: since_ns as u32,
            latency_ns: 0,
            pipe: frame.pipe,
            class: frame.class,
            fate: Fate::Waits,
        });
    }

    pub(super) fn lost(&mut self, frame: &Frame, fate: Fate) {
        self.ends(frame, fate, 0);
    }

    /// The card has sent a packet, which took so many bytes of the link.
    pub(super) fn sent(&mut self, frame: &Frame, at_ns: u64, wire_bytes: u32) {
        if (self.from_ns..self.from_ns + self.window_ns).contains(&at_ns) {
            self.wire_bytes += u64::from(wire_bytes);
        }
        self.ends(frame, Fate::Sent, at_ns - frame.arrived_ns);
    }

    fn ends(&mut self, frame: &Frame, fate: Fate, latency_ns: u64) {
        if let Some(record) = self.records.get_mut(frame.number as usize) {
            record.fate = fate;
            record.latency_ns = u32::try_from(latency_ns).unwrap_or(u32::MAX);
            self.open -= 1;
        }
    }

    /// The packets of some classes.
    pub fn of(&self, classes: std::ops::Range<u32>) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(move |record| classes.contains(&u32::from(record.class)))
    }

    /// The mean latency of some classes, us.
    pub fn mean_us(&self, classes: std::ops::Range<u32>) -> f64 {
        let sent = self.of(classes).filter(|record| record.fate == Fate::Sent);
        let (count, ns) = sent.fold((0u64, 0u64), |(n, ns), record| (n + 1, ns + u64::from(record.latency_ns)));
        ns as f64 / count as f64 / 1000.0
    }

    /// The share of the packets of some classes that were lost, percent.
    pub fn lost_percent(&self, classes: std::ops::Range<u32>) -> f64 {
        let (came, lost) = self.of(classes).fold((0u64, 0u64), |(came, lost), record| {
            (came + 1, lost + u64::from(!matches!(record.fate, Fate::Sent | Fate::Waits)))
        });
        100.0 * lost as f64 / came as f64
    }

    /// Jain's index of the packets of pipes that were sent: 1 if all pipes had the same, 1/n if one had everything.
    pub fn fairness(&self) -> f64 {
        let mut pipes = vec![0u32; self.pipes as usize];
        for record in self.records.iter().filter(|record| record.fate == Fate::Sent) {
            pipes[record.pipe as usize] += 1;
        }
        let sum: f64 = pipes.iter().map(|packets| f64::from(*packets)).sum();
        let squares: f64 = pipes.iter().map(|packets| f64::from(*packets).powi(2)).sum();
        sum * sum / squares / f64::from(self.pipes)
    }

    /// The rate at which the link was used in the window, bits per second.
    pub fn bits_per_second(&self) -> f64 {
        self.wire_bytes as f64 * 8e9 / self.window_ns as f64
    }
}
