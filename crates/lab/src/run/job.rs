//! The data of a run: the request, the files, the trials.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::format::{Contender, MODEL_RATES, Milliseconds, Observing, Scenario, Source};
use crate::result::results::{Outcome, Trial};
use crate::run::experiment;
use sluice_error::{Error, Kind, Result};
use sluice_testbed::tool::{self, Tool};

/// The choices of `sluice lab run`.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The Sluice binary that is called.
    pub sluice: PathBuf,
    /// A plan, or scenarios.
    pub what: Vec<String>,
    /// Contenders instead of the plan's.
    pub contenders: Vec<String>,
    /// Rates instead of the plan's.
    pub rates: Vec<String>,
    /// Repeats instead of the plan's.
    pub repeats: Option<u32>,
    /// The window instead of the plan's.
    pub measured: Option<String>,
    /// The kernel of the virtual machines, if the run uses them.
    pub kernel: Option<String>,
    /// The directory of the results.
    pub out: Option<PathBuf>,
    /// The command line.
    pub command: String,
    /// Whether texts may carry colours.
    pub color: bool,
}

/// A run as a list of trials, which a virtual machine is given.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// The plan's name.
    pub plan: String,
    /// The command line.
    pub command: String,
    /// The default window of scenarios, ms.
    pub measured: Milliseconds,
    /// The files of scenarios.
    pub scenarios: Vec<Source>,
    /// The files of contenders.
    pub contenders: Vec<Source>,
    /// The trials, in order.
    pub trials: Vec<Cell>,
}

/// A trial to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// A scenario's name.
    pub scenario: String,
    /// A contender's name.
    pub contender: String,
    /// Bits per second; 0 over a chain and at a tap.
    pub rate_bps: u64,
    /// The repeat, from 1.
    pub repeat: u32,
}

impl Cell {
    /// The name of the trial's directory.
    pub fn directory(&self) -> String {
        let short = |name: &str| name.chars().take(60).collect::<String>();
        let (scenario, contender) = (short(&self.scenario), short(&self.contender));
        // Chains and taps have no rate.
        let rate = if self.rate_bps == 0 { String::new() } else { format!("-{}kbit", self.rate_bps / 1_000) };
        format!("{scenario}-{contender}{rate}-{}", self.repeat)
    }

    /// The trial with its outcome.
    pub fn with(&self, outcome: Outcome) -> Trial {
        Trial {
            scenario: self.scenario.clone(),
            contender: self.contender.clone(),
            rate_bps: self.rate_bps,
            repeat: self.repeat,
            outcome,
        }
    }
}

/// The files of a job, read and checked.
pub struct JobFiles {
    /// Scenarios by name.
    pub scenarios: BTreeMap<String, Scenario>,
    /// Contenders by name.
    pub contenders: BTreeMap<String, Contender>,
}

impl JobFiles {
    /// Reads and checks the files of a job.
    pub fn of(job: &Job) -> Result<JobFiles> {
        let mut files = JobFiles { scenarios: BTreeMap::new(), contenders: BTreeMap::new() };
        for source in &job.scenarios {
            files.scenarios.insert(source.name.clone(), Scenario::of(source.clone())?);
        }
        for source in &job.contenders {
            files.contenders.insert(source.name.clone(), Contender::of(source.clone())?);
        }
        job.trials.iter().try_for_each(|cell| files.check(cell, job.measured))?;
        Ok(files)
    }

    /// Checks that scenario, contender and rate of a trial belong together.
    fn check(&self, cell: &Cell, measured: Milliseconds) -> Result<()> {
        let (scenario, contender) = self.of_cell(cell)?;
        if scenario.model.as_ref().is_some_and(|model| model.real) || contender.wire().is_some() {
            return check_port(scenario, contender, cell, measured);
        }
        if scenario.model.is_some() || contender.card().is_some() {
            return check_model(scenario, contender, cell, measured);
        }
        if scenario.measured_ms(measured) < 1_000.0 {
            let what = format!("the window of scenario {} is shorter than 1 s", cell.scenario);
            return Err(Error::new(Kind::Input, what).help("measured = \"1s\" or longer; only models take less"));
        }
        let chain = scenario.topology.chain().is_some();
        let tap = scenario.topology.tap().is_some();
        let bad = |what: String, cure: &str| Err(Error::new(Kind::Input, what).help(cure));
        match (tap, contender.observing().is_some()) {
            (true, false) => {
                let what =
                    format!("contender {} has no [observe], and scenario {} is a tap", cell.contender, cell.scenario);
                return bad(what, "name others: --contender observe-tcpdump --contender observe-count");
            }
            (false, true) => {
                let what = format!("contender {} observes, and scenario {} is no tap", cell.contender, cell.scenario);
                return bad(what, "name a scenario at a tap, such as observe-64");
            }
            _ => {}
        }
        match (chain, contender.forwarder().is_some()) {
            (true, false) => {
                let what =
                    format!("contender {} has no [forward], and scenario {} is a chain", cell.contender, cell.scenario);
                return bad(what, "name others: --contender forward-nft --contender forward-sluice");
            }
            (false, true) => {
                let what =
                    format!("contender {} forwards a port, and scenario {} is no chain", cell.contender, cell.scenario);
                return bad(what, "name a scenario over a chain, such as forward-2");
            }
            _ => {}
        }
        let limits = contender.observing().is_some_and(Observing::limits);
        match (chain || tap && !limits, cell.rate_bps) {
            (false, 10_000_000_001..) => {
                bad(format!("scenario {} goes up to 10 Gbit/s", cell.scenario), "--rate 10gbit")
            }
            (true, 0) | (false, 1..) => Ok(()),
            (true, _) => bad(format!("the links of scenario {} have no rate", cell.scenario), "--rate max"),
            (false, 0) if tap => {
                bad(format!("contender {} limits what arrives to a rate", cell.contender), "such as --rate 10mbit")
            }
            (false, 0) => bad(format!("scenario {} needs a rate", cell.scenario), "such as --rate 20mbit"),
        }
    }

    /// Whether a scenario is a model.
    pub fn has_model(&self) -> bool {
        self.scenarios.values().any(|scenario| scenario.model.as_ref().is_some_and(|model| !model.real))
    }

    /// Whether a scenario has a real port.
    pub fn has_port(&self) -> bool {
        self.scenarios.values().any(|scenario| scenario.model.as_ref().is_some_and(|model| model.real))
    }

    /// Whether all scenarios are models, which need neither a network nor its programs.
    pub fn is_modelled(&self) -> bool {
        self.scenarios.values().all(|scenario| scenario.model.as_ref().is_some_and(|model| !model.real))
    }

    /// Whether no scenario has traffic of other programs.
    fn sends_by_itself(&self) -> bool {
        self.scenarios.values().all(|scenario| scenario.model.is_some())
    }

    /// Whether a scenario is a chain.
    pub fn has_chain(&self) -> bool {
        self.scenarios.values().any(|scenario| scenario.topology.chain().is_some())
    }

    /// The programs that the trials call, without the contenders' own.
    pub fn tools(&self) -> Vec<Tool> {
        let chain = tool::CHAIN.iter().filter(|_| self.has_chain());
        let ports =
            [tool::IP, tool::TC, tool::ETHTOOL].into_iter().filter(|_| self.sends_by_itself() && self.has_port());
        tool::LAB.iter().filter(|_| !self.sends_by_itself()).chain(chain).copied().chain(ports).collect()
    }

    /// The programs whose versions the report names.
    pub fn shown_tools(&self) -> Vec<Tool> {
        let forwarders = tool::FORWARDERS.iter().filter(|_| self.has_chain());
        let has_tap = self.scenarios.values().any(|scenario| scenario.topology.tap().is_some());
        let observers = tool::OBSERVERS.iter().filter(|_| has_tap);
        self.tools().iter().chain(forwarders).chain(observers).copied().collect()
    }

    /// The files of a trial.
    pub fn of_cell(&self, cell: &Cell) -> Result<(&Scenario, &Contender)> {
        let lacks = || Error::system(format!("the job has no files for {}", cell.directory()));
        self.scenarios.get(&cell.scenario).zip(self.contenders.get(&cell.contender)).ok_or_else(lacks)
    }

    /// The duration of the trials without delays.
    pub fn nominal(&self, job: &Job) -> Duration {
        job.trials.iter().filter_map(|cell| self.of_cell(cell).ok()).map(|(scenario, _)| nominal(scenario, job)).sum()
    }
}

/// The rates of real ports that are possible, bits per second, and the windows, ms.
const PORT_RATES: std::ops::RangeInclusive<u64> = 1_000_000..=10_000_000_000;
const PORT_MS: std::ops::RangeInclusive<f64> = 1_000.0..=4_000.0;

/// Checks that a real port meets a contender that is a wire, at a rate that a processor can be.
fn check_port(scenario: &Scenario, contender: &Contender, cell: &Cell, measured: Milliseconds) -> Result<()> {
    let bad = |what: String, cure: &str| Err(Error::new(Kind::Input, what).help(cure));
    if contender.wire().is_none() {
        let what = format!("contender {} has no [wire], and scenario {} is a port", cell.contender, cell.scenario);
        return bad(what, "name others: --contender wire-ring --contender wire-limit");
    }
    if !scenario.model.as_ref().is_some_and(|model| model.real) {
        let what =
            format!("contender {} is a wire before a port, and scenario {} has none", cell.contender, cell.scenario);
        return bad(what, "name a scenario with [port], such as port-8-classes");
    }
    if !PORT_RATES.contains(&cell.rate_bps) {
        return bad(
            format!("the port of scenario {} has 1 Mbit/s to 10 Gbit/s", cell.scenario),
            "such as --rate 200mbit",
        );
    }
    if !PORT_MS.contains(&scenario.measured_ms(measured)) {
        return bad(
            format!("the window of scenario {} is not between 1 s and 4 s", cell.scenario),
            "such as --measured 4s",
        );
    }
    Ok(())
}

/// Checks that a model meets a contender that uses a card, at the rate of a port.
fn check_model(scenario: &Scenario, contender: &Contender, cell: &Cell, measured: Milliseconds) -> Result<()> {
    let bad = |what: String, cure: &str| Err(Error::new(Kind::Input, what).help(cure));
    if contender.card().is_none() {
        let what = format!("contender {} has no [card], and scenario {} is a model", cell.contender, cell.scenario);
        return bad(what, "name others: --contender card-ring --contender card-backpressure");
    }
    if scenario.model.is_none() {
        let what =
            format!("contender {} uses a modelled card, and scenario {} is no model", cell.contender, cell.scenario);
        return bad(what, "name a scenario with [model], such as card-8-classes");
    }
    if !MODEL_RATES.contains(&cell.rate_bps) {
        return bad(format!("the port of scenario {} has 1 to 400 Gbit/s", cell.scenario), "such as --rate 25gbit");
    }
    if scenario.measured_ms(measured) > 10_000.0 {
        return bad(
            format!("the window of scenario {} is longer than 10 s", cell.scenario),
            "such as --measured 200ms",
        );
    }
    Ok(())
}

/// The duration of a trial of a scenario without delays.
pub fn nominal(scenario: &Scenario, job: &Job) -> Duration {
    experiment::nominal(scenario, scenario.measured_ms(job.measured))
}
