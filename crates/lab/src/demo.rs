//! The demo: a game and a call beside downloads on one slow line, once without Sluice and once with it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::unistd::geteuid;

use crate::contender::{self, Contender, Sluice};
use crate::environment::Environment;
use crate::error::{Error, Kind, Result};
use crate::interrupt::Interrupt;
use crate::line::{self, Line};
use crate::options::Options;
use crate::progress::Progress;
use crate::report::{Parameters, Report};
use crate::{netns, tool, trial};

/// Sluice shapes to this share of the modem's rate, percent, so that the queue forms at the router.
const SHARE_PERCENT: u32 = 95;
/// Seconds of building and clearing that the progress counts per run.
const SET_UP: Duration = Duration::from_secs(1);

/// Run the demo, write the files that the options name, and return what to print.
pub fn run(options: &Options) -> Result<Report> {
    options.check()?;
    if !geteuid().is_root() {
        let what = "the demo needs root: it makes network namespaces and links of its own";
        return Err(Error::new(Kind::Privilege, what).help("sudo sluice demo"));
    }
    for path in [&options.json, &options.svg].into_iter().flatten() {
        // Before half a minute of measuring, not after it.
        fs::OpenOptions::new().append(true).create(true).open(path).map_err(|e| unwritable(path, &e))?;
    }
    tool::require(&[tool::IP, tool::TC, tool::IRTT, tool::IPERF3])?;
    let interrupt = Interrupt::catch()?;
    netns::remove_stale(line::PREFIX, |name| {
        if line::is_router(name) {
            // It may have been killed before Sluice was up, so there may be nothing to take down.
            let _ = contender::down(&options.sluice, name, line::ROUTER_EGRESS);
        }
    })?;

    let parameters = Parameters::of(options, SHARE_PERCENT);
    let sluice = Contender::Sluice(Sluice {
        program: options.sluice.clone(),
        policy: options.policy.clone(),
        rate_kbit: parameters.sluice_rate_kbit,
        engine: options.engine.clone(),
    });
    let contenders = [Contender::Nothing, sluice];
    let mut progress = Progress::new((trial::nominal(options.seconds) + SET_UP) * 2 + SET_UP, options.color);
    progress.phase("trying out Sluice", SET_UP);
    rehearse(&contenders, options.rate_mbit)?;
    let mut runs = Vec::new();
    for (number, contender) in (1..).zip(&contenders) {
        interrupt.check()?;
        let title = contender.title();
        progress.phase(&format!("{number}/2 building server, router, modem and home"), SET_UP);
        let line = Line::build(options.rate_mbit)?;
        let nominal = trial::nominal(options.seconds);
        progress.phase(&format!("{number}/2 {title}: game, call, {} downloads", trial::DOWNLOADS), nominal);
        runs.push(trial::run(&line, contender, options.seconds, options.rate_mbit, &progress, &interrupt)?);
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

/// Put each contender to work once, so that what cannot work is known before anything is measured.
fn rehearse(contenders: &[Contender], rate_mbit: u32) -> Result<()> {
    let line = Line::build(rate_mbit)?;
    contenders.iter().try_for_each(|contender| contender.start(&line.router, line::ROUTER_EGRESS)?.stop())
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|e| unwritable(path, &e))
}

fn unwritable(path: &Path, e: &std::io::Error) -> Error {
    Error::system(format!("cannot write {}: {e}", path.display())).help("name another file with --json or --svg")
}
