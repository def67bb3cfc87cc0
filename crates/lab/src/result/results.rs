//! The results of a run of the lab, as `results.json` has them. Every form of the report reads only this file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::result::environment::Environment;
use crate::result::statistics::Distribution;

/// The format of `Results`; `report` and `compare` refuse another number.
pub const FORMAT: u32 = 1;

/// One run: some scenarios, each under some contenders, at some rates, some times.
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
    /// When it began, UTC, as YYYY-MM-DD HH:MM.
    pub began: String,
    /// How long it took, seconds of wall time.
    pub took_s: f64,
    /// The machine.
    pub environment: Environment,
    /// The clock: "real" natively, "instructions" in a machine whose clock counts them (10^9 a second).
    pub clock: Clock,
    /// The programs that made the traffic, with their versions.
    pub tools: BTreeMap<String, String>,
    /// Warnings to readers: features that were left out, a busy machine, ...
    pub warnings: Vec<String>,
    /// In the order of the plan.
    pub scenarios: Vec<ScenarioInfo>,
    /// In the order of the plan.
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
    /// The scenario's loads, in order.
    pub loads: Vec<LoadInfo>,
    /// The file.
    pub file: String,
}

/// A load, for readers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadInfo {
    /// The load's name, such as "downloads" or "game".
    pub name: String,
    /// tcp, udp, stream, ping, web.
    pub kind: String,
    /// The load in words, such as "4 TCP flows, cubic".
    pub about: String,
    /// Whether its delays are what the scenario is about.
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
    /// The file.
    pub file: String,
}

impl ContenderInfo {
    /// Whether Sluice is judged by it. Runs from before contenders said so have one baseline, by its name.
    pub fn is_rival(&self) -> bool {
        !self.ours && !self.baseline && self.name != "none"
    }
}

/// One scenario under one contender at one rate, once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// `ScenarioInfo::name`.
    pub scenario: String,
    /// `ContenderInfo::name`.
    pub contender: String,
    /// The rate that the contender shapes to, bits per second, Ethernet header included.
    pub rate_bps: u64,
    /// From 1.
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
    /// The trial failed; why.
    Failed(String),
    /// This kernel or machine cannot do it; why.
    Unsupported(String),
}

/// A measured trial. Times are ms since the bulk traffic began; what counts lies in the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Sluice's engine, where it was Sluice.
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
    /// Rates of the loads that carry much: tcp, udp.
    pub flows: Vec<Flows>,
    /// Where packets waited and how much of the wire was used; one for each direction that the contender shapes.
    pub bottlenecks: Vec<Bottleneck>,
    /// The processor time of the trial.
    pub processor: Processor,
    /// Round trips of a probe that ends before the bottleneck, ms: what the harness itself adds.
    pub noise: Option<Distribution>,
    /// Changes that the scenario made to the contender while traffic ran.
    pub events: Vec<EventDone>,
}

/// The delays and losses of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delays {
    /// `LoadInfo::name`.
    pub load: String,
    /// The exchange that is timed.
    pub what: Timed,
    /// Before the bulk traffic began, ms.
    pub idle: Option<Distribution>,
    /// In the window, ms: round trips, or whole fetches.
    pub whole: Option<Distribution>,
    /// In the window, through the bottleneck alone, one way, ms.
    pub one_way: Option<Distribution>,
    /// Before the bulk traffic began, through the bottleneck alone, one way, ms.
    pub idle_one_way: Option<Distribution>,
    /// Mean change from one to the next, ms.
    pub jitter_ms: Option<f64>,
    /// Sent, or asked for, in the window.
    pub sent: u64,
    /// Packets or pages of these that were never answered.
    pub lost: u64,
    /// When it was sent, ms; how long it took, ms, None: lost. One way where that is known, else whole.
    pub series: Vec<(f64, Option<f64>)>,
    /// Web alone: time to connect in the window, ms.
    pub connect: Option<Distribution>,
    /// Web alone: round trips a minute under load, after draft-ietf-ippm-responsiveness, without TLS and without exchanges on the
    /// loaded connections.
    pub per_minute: Option<f64>,
}

/// The exchange that a delay is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timed {
    /// A packet and its answer.
    RoundTrip,
    /// A page, from the call of the client to its last byte.
    Fetch,
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
    /// End of a stretch, ms, and the rate in it, Mbit/s, all flows together.
    pub series: Vec<(f64, f64)>,
    /// TCP: segments sent again.
    pub retransmitted: Option<u64>,
    /// UDP: percent lost.
    pub lost_percent: Option<f64>,
    /// UDP: jitter as iperf3 has it (RFC 1889), ms.
    pub jitter_ms: Option<f64>,
}

/// Where packets waited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bottleneck {
    /// "egress" or "ingress" of the contender's device.
    pub direction: String,
    /// The use of the wire behind the contender in the window, percent of the rate.
    pub used_percent: f64,
    /// Packets that passed there in the window.
    pub pkts: u64,
    /// Mean backlog of the contender's queue, ms at the rate. None: its device tells none.
    pub owned_mean_ms: Option<f64>,
    /// Greatest backlog of the contender's queue seen, ms at the rate.
    pub owned_max_ms: Option<f64>,
    /// Mean backlog of the line's queue, ms at the line's rate: near 0 where the contender owned the bottleneck.
    pub line_mean_ms: f64,
    /// Greatest backlog of the line's queue seen, ms at the line's rate: bursts that the contender let out.
    pub line_max_ms: f64,
    /// Packets that the line's queue dropped in the trial.
    pub line_dropped: u64,
    /// ms, and backlog of contender and line, bytes.
    pub series: Vec<(f64, u64, u64)>,
}

impl Bottleneck {
    /// Whether the queue formed at the contender, not behind it: the line held less than this in the mean, and dropped nothing.
    pub const OWNED_BELOW_MS: f64 = 5.0;

    /// Whether the contender owned the bottleneck.
    pub fn owned(&self) -> bool {
        self.line_mean_ms < Bottleneck::OWNED_BELOW_MS && self.line_dropped == 0
    }
}

/// The processor time of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Processor {
    /// Busy in the window, percent of all processors; all hosts and the tools are in it.
    pub busy_percent: f64,
    /// By an instruction clock: busy instructions per packet that left the bottleneck, all hosts and the tools in it.
    pub instructions_per_packet: Option<f64>,
}

/// Something that the scenario did while traffic ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventDone {
    /// When it began, ms.
    pub at_ms: f64,
    /// How long it took, ms.
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
