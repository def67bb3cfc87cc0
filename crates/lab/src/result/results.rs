//! The results of a run of the lab, as `results.json` has them. Every form of the report reads only this file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::format::{Model, Published};
pub use crate::result::at_card::AtCard;
use crate::result::environment::Environment;
use crate::result::statistics::Distribution;

/// The format of `Results`; `report` and `compare` refuse another number.
pub const FORMAT: u32 = 1;

/// One run: scenarios under contenders, at rates, with repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// `FORMAT` of the writer.
    pub format: u32,
    /// Sluice's version.
    pub sluice: String,
    /// The plan's name: quick, published, full, or custom.
    pub plan: String,
    /// The command that repeats the run.
    pub command: String,
    /// Begin of the run, UTC, as YYYY-MM-DD HH:MM.
    pub began: String,
    /// Duration of the run, seconds of wall time.
    pub took_s: f64,
    /// The machine.
    pub environment: Environment,
    /// The clock: "real" natively, "instructions" in a machine whose clock counts them (10^9 a second).
    pub clock: Clock,
    /// The programs that made the traffic, with their versions.
    pub tools: BTreeMap<String, String>,
    /// Warnings to readers: features that were left out, a busy machine, ...
    pub warnings: Vec<String>,
    /// The scenarios in the order of the plan.
    pub scenarios: Vec<ScenarioInfo>,
    /// The contenders in the order of the plan.
    pub contenders: Vec<ContenderInfo>,
    /// The trials, one for each scenario, rate, contender and repeat, in the order in which they ran.
    pub trials: Vec<Trial>,
}

/// The clock of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Wall time: other work on the machine disturbs it.
    Real,
    /// An emulated processor's instructions, 10^9 a second: nothing disturbs it.
    Instructions,
    /// The time of a model: the same in each run.
    Simulated,
}

/// A scenario, for readers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScenarioInfo {
    /// The name of the scenario's file without ".toml".
    pub name: String,
    /// The title in headings.
    pub title: String,
    /// The question that the scenario asks, in a sentence or two.
    pub about: String,
    /// Whether it is a chain of port forwards, whose loads run one after the other.
    #[serde(default)]
    pub chain: bool,
    /// Whether it is a tap, where contenders observe frames; its loads run one after the other.
    #[serde(default)]
    pub tap: bool,
    /// The packets before a modelled card, if it is a model.
    #[serde(default)]
    pub model: Option<Model>,
    /// Published figures of the same model.
    #[serde(default)]
    pub published: Option<Published>,
    /// The scenario's loads, in order; of a model, all packets and those of classes.
    pub loads: Vec<LoadInfo>,
    /// The text of the file.
    pub file: String,
}

/// A load, for readers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadInfo {
    /// The load's name, such as "downloads" or "game".
    pub name: String,
    /// tcp, udp, stream, ping, web, siege, wrk, frames; pipes of a model.
    pub kind: String,
    /// The load in words, such as "4 TCP flows, cubic".
    pub about: String,
    /// Whether the scenario is about the delays of this load.
    pub probe: bool,
    /// The load's weight, where shares are to be in proportion.
    pub weight: Option<f64>,
}

/// A contender, for readers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContenderInfo {
    /// The name of the contender's file without ".toml".
    pub name: String,
    /// The title in tables and legends; short.
    pub title: String,
    /// A description of the contender.
    pub about: String,
    /// Whether it is Sluice.
    pub ours: bool,
    /// Whether it is a baseline that rivals are to be better than, as a plain FIFO is.
    #[serde(default)]
    pub baseline: bool,
    /// The text of the file.
    pub file: String,
}

impl ContenderInfo {
    /// Whether Sluice is compared with it. Runs before this field existed have one baseline, known by its name.
    pub fn is_rival(&self) -> bool {
        !self.ours && !self.baseline && self.name != "none"
    }
}

/// One repeat of a scenario under a contender at a rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// `ScenarioInfo::name`.
    pub scenario: String,
    /// `ContenderInfo::name`.
    pub contender: String,
    /// The rate that the contender shapes to, bits per second, Ethernet header included; 0 over a chain and at a tap.
    pub rate_bps: u64,
    /// The repeat, from 1.
    pub repeat: u32,
    /// The outcome.
    pub outcome: Outcome,
}

/// The outcome of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The trial was measured.
    Measured(Box<Measured>),
    /// The trial failed, with the reason.
    Failed(String),
    /// This kernel or machine does not support it, with the reason.
    Unsupported(String),
}

/// A measured trial. Times are ms since the bulk traffic began; figures are of the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Sluice's engine.
    pub engine: Option<String>,
    /// The commands that put the contender to work.
    pub commands: Vec<String>,
    /// Begin of the window, ms.
    pub from_ms: f64,
    /// End of the window, ms.
    pub to_ms: f64,
    /// Offloads of the device that the contender owned.
    pub offloads: String,
    /// Delays of the loads that measure delay: stream, ping, web.
    pub delays: Vec<Delays>,
    /// Rates of the bulk loads: tcp, udp.
    pub flows: Vec<Flows>,
    /// Backlogs and use of the wire, one for each shaped direction.
    pub bottlenecks: Vec<Bottleneck>,
    /// The processor time of the trial; none over a chain, where some loads are as fast as the processor and others are not.
    pub processor: Option<Processor>,
    /// Round trips of a probe that ends before the bottleneck, ms: the harness's own noise.
    pub noise: Option<Distribution>,
    /// Changes that the scenario made to the contender while traffic ran.
    pub events: Vec<EventDone>,
    /// The frames of each load, and what the contender saw of them; at a tap.
    #[serde(default)]
    pub observed: Vec<Observed>,
    /// The packets at a modelled card, beside their delays.
    #[serde(default)]
    pub card: Option<AtCard>,
}

/// The frames of a load, and what a contender saw of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    /// `LoadInfo::name`.
    pub load: String,
    /// Frames that were sent.
    pub sent: u64,
    /// Frames that the device has received.
    pub arrived: u64,
    /// Packets that userspace got, as records or as counts; of a sample, those for which its records stand.
    pub delivered: u64,
    /// Packets that it did not get, by the contender's own account.
    pub missed: u64,
    /// Records of a sample.
    pub records: Option<u64>,
    /// Packets that the contender's limit has dropped, if it limits what arrives; the others passed.
    #[serde(default)]
    pub dropped: Option<u64>,
    /// Time from the first frame to the last, seconds.
    pub seconds: f64,
    /// Instructions for a frame, with the sender's; by an instruction clock, if frames were sent as fast as they go.
    pub instructions: Option<f64>,
}

/// The delays and losses of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delays {
    /// `LoadInfo::name`.
    pub load: String,
    /// The exchange that is timed.
    pub what: Timed,
    /// Delays before the bulk traffic began, ms.
    pub idle: Option<Distribution>,
    /// Round trips, or whole fetches, in the window, ms.
    pub whole: Option<Distribution>,
    /// One-way delays through the bottleneck alone in the window, ms.
    pub one_way: Option<Distribution>,
    /// One-way delays through the bottleneck alone before the bulk traffic began, ms.
    pub idle_one_way: Option<Distribution>,
    /// Mean change of delay from one packet to the next, ms.
    pub jitter_ms: Option<f64>,
    /// Packets or pages sent or asked for in the window.
    pub sent: u64,
    /// Packets or pages of these that were never answered.
    pub lost: u64,
    /// Pairs of send time and delay, ms; no delay if lost. The delay is one way where that is known, else whole.
    pub series: Vec<(f64, Option<f64>)>,
    /// Connection times of web in the window, ms.
    pub connect: Option<Distribution>,
    /// Round trips a minute of web under load, after draft-ietf-ippm-responsiveness, without TLS and without exchanges on the
    /// loaded connections.
    pub per_minute: Option<f64>,
    /// Answered requests a second of wrk.
    #[serde(default)]
    pub per_second: Option<f64>,
}

/// The exchange that is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timed {
    /// A packet and its answer.
    RoundTrip,
    /// A page, from the call of the client to its last byte.
    Fetch,
    /// A packet, from its arrival at a model until its last bit was sent.
    OneWay,
}

/// The rates of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flows {
    /// `LoadInfo::name`.
    pub load: String,
    /// Payload received in the window, Mbit/s, all flows together.
    pub mbit: f64,
    /// Payload received in the window, Mbit/s, each flow: for fairness.
    pub each_mbit: Vec<f64>,
    /// Pairs of the end of an interval, ms, and the rate of all flows in it, Mbit/s.
    pub series: Vec<(f64, f64)>,
    /// Segments that TCP sent again.
    pub retransmitted: Option<u64>,
    /// Loss of UDP, percent.
    pub lost_percent: Option<f64>,
    /// Jitter of UDP by iperf3 (RFC 1889), ms.
    pub jitter_ms: Option<f64>,
    /// The standard deviation of the rate from one interval of `series` to the next around its mean in the window, kbit/s.
    #[serde(default)]
    pub deviation_kbit: Option<f64>,
}

/// The queues at a bottleneck.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bottleneck {
    /// "egress" or "ingress" of the contender's device.
    pub direction: String,
    /// The use of the wire behind the contender in the window, percent of the rate.
    pub used_percent: f64,
    /// Packets that passed the wire in the window.
    pub pkts: u64,
    /// Mean backlog of the contender's queue, ms at the rate; `None` if its device does not report it.
    pub owned_mean_ms: Option<f64>,
    /// Greatest sampled backlog of the contender's queue, ms at the rate.
    pub owned_max_ms: Option<f64>,
    /// Mean backlog of the line's queue, ms at the line's rate: near 0 where the contender owned the bottleneck.
    pub line_mean_ms: f64,
    /// Greatest sampled backlog of the line's queue, ms at the line's rate: bursts that the contender let out.
    pub line_max_ms: f64,
    /// Packets that the line's queue dropped in the trial.
    pub line_dropped: u64,
    /// Samples of the time, ms, and the backlogs of contender and line, bytes.
    pub series: Vec<(f64, u64, u64)>,
}

impl Bottleneck {
    /// Mean backlog of the line, ms, below which the contender owned the bottleneck, if the line dropped nothing.
    pub const OWNED_BELOW_MS: f64 = 5.0;

    /// Whether the contender owned the bottleneck.
    pub fn owned(&self) -> bool {
        self.line_mean_ms < Bottleneck::OWNED_BELOW_MS && self.line_dropped == 0
    }
}

/// The processor time of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Processor {
    /// Busy time in the window, percent of all processors, with all hosts and tools.
    pub busy_percent: f64,
    /// Busy instructions per packet that left the bottleneck, with all hosts and tools; by an instruction clock.
    pub instructions_per_packet: Option<f64>,
}

/// An event of the scenario that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventDone {
    /// Begin of the event, ms.
    pub at_ms: f64,
    /// Duration of the event, ms.
    pub took_ms: f64,
    /// A description of the change.
    pub what: String,
}

impl Results {
    /// Adds a warning to readers, once.
    pub fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

impl Trial {
    /// The measurement, if the trial was measured.
    pub fn measured(&self) -> Option<&Measured> {
        match &self.outcome {
            Outcome::Measured(measured) => Some(measured),
            Outcome::Failed(_) | Outcome::Unsupported(_) => None,
        }
    }
}

impl Measured {
    /// The delays and losses of this load.
    pub fn delays_of(&self, load: &str) -> Option<&Delays> {
        self.delays.iter().find(|delays| delays.load == load)
    }

    /// The rates of this load.
    pub fn flows_of(&self, load: &str) -> Option<&Flows> {
        self.flows.iter().find(|flows| flows.load == load)
    }
}
