//! The demo: a game and a call beside downloads on one slow line, once without Sluice and once with it.

pub mod measurement;
pub mod options;
pub mod report;

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::demo::measurement::{Bulk, ModemQueue, Probe, Run};
use crate::demo::options::Options;
use crate::demo::report::{Parameters, Report};
use crate::format::{self, Contender, Folder, Scenario, SluiceCall, Source, Start};
use crate::result::environment::Environment;
use crate::result::results::{Clock, Measured};
use crate::run::progress::Progress;
use crate::run::trial::Setting;
use crate::run::{experiment, network};
use sluice_error::{Error, Result};
use sluice_testbed::interrupt::Interrupt;
use sluice_testbed::tool;

/// Sluice shapes to this share of the modem's rate, percent, so that the queue forms at the router.
const SHARE_PERCENT: u32 = 95;

/// Run the demo, write the files that the options name, and return what to print.
pub fn run(options: &Options) -> Result<Report> {
    options.check()?;
    network::require_root("the demo", "sudo sluice demo")?;
    for path in [&options.json, &options.svg].into_iter().flatten() {
        // An unwritable file is reported before half a minute of measuring.
        fs::OpenOptions::new().append(true).create(true).open(path).map_err(|e| unwritable(path, &e))?;
    }
    tool::require(&[tool::IP, tool::TC, tool::IRTT, tool::IPERF3])?;
    let interrupt = Interrupt::catch()?;
    network::remove_stale(&options.sluice)?;

    let scenario = scenario()?;
    let rate_bps = u64::from(options.rate_mbit * SHARE_PERCENT) * 10_000;
    let parameters = Parameters::of(options, &scenario, rate_bps)?;
    let contenders = [without(), with(options)];
    let scratch = network::scratch()?;
    let setting = |contender| Setting {
        scenario: &scenario,
        contender,
        rate_bps,
        measured_ms: f64::from(options.seconds) * 1e3,
        sluice: &options.sluice,
        scratch: scratch.path(),
        repeat: 1,
        clock: Clock::Real,
    };
    let nominal = experiment::nominal(&scenario, f64::from(options.seconds) * 1e3);
    const REHEARSAL: Duration = Duration::from_secs(1);
    let mut progress = Progress::new(nominal * 2 + REHEARSAL, options.color);
    progress.phase("trying out Sluice", REHEARSAL);
    contenders.iter().try_for_each(|contender| experiment::rehearse(&setting(contender)))?;
    let mut runs = Vec::new();
    for (number, contender) in (1..).zip(&contenders) {
        interrupt.check()?;
        let title = &contender.title;
        progress.phase(&format!("{number}/2 {title}: game, call, {} downloads", parameters.downloads), nominal);
        let found = experiment::run(&setting(contender), &interrupt, &|| progress.tick())?;
        runs.push(demo_run(title, &found.measured)?);
    }
    drop(progress);
    let [without, with] = <[_; 2]>::try_from(runs).map_err(|_| Error::system("a run is missing"))?;
    let report = Report { environment: Environment::read(), parameters, without, with };
    if let Some(path) = &options.json {
        write(path, &report.json()?)?;
    }
    if let Some(path) = &options.svg {
        write(path, &report.svg()?)?;
    }
    Ok(report)
}

/// The scenario that the demo runs.
pub(crate) fn scenario() -> Result<Scenario> {
    Scenario::of(format::read(Folder::Scenarios, "demo")?)
}

fn contender(title: &str, start: Start) -> Contender {
    let source = Source { name: title.to_owned(), text: String::new(), path: None, attached: Vec::new() };
    Contender { source, title: title.to_owned(), about: String::new(), start, change: Vec::new(), baseline: false }
}

/// The contender without Sluice: the interface stays as the kernel made it.
fn without() -> Contender {
    contender("without Sluice", Start::Commands(Vec::new()))
}

fn with(options: &Options) -> Contender {
    let call = SluiceCall { policy: options.policy.clone(), engine: options.engine.clone(), change: None };
    contender("with Sluice", Start::Sluice(call))
}

/// The demo's figures of a measured trial.
fn demo_run(title: &str, measured: &Measured) -> Result<Run> {
    let missing = |what: &str| Error::system(format!("the demo measured no {what}"));
    let probe = |load: &str| measured.delays_of(load).map(Probe::of).ok_or_else(|| missing(load));
    let downloads = measured.flows_of("downloads").ok_or_else(|| missing("downloads"))?;
    let modem = measured.bottlenecks.first().ok_or_else(|| missing("queue"))?;
    Ok(Run {
        contender: title.to_owned(),
        engine: measured.engine.clone(),
        offloads: measured.offloads.clone(),
        game: probe("game")?,
        call: probe("call")?,
        bulk: Bulk { mbit: downloads.mbit, series: downloads.series.clone() },
        modem_queue: ModemQueue::of(modem),
    })
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|e| unwritable(path, &e))
}

fn unwritable(path: &Path, e: &std::io::Error) -> Error {
    Error::system(format!("cannot write {}: {e}", path.display())).help("name another file with --json or --svg")
}
