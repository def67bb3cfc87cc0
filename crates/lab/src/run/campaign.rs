//! A run of the lab: a plan becomes trials, which run here or in virtual machines, and their results are stored.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::format::{self, Entry, Folder, Milliseconds, Plan, Rate, Source};
use crate::result::environment::Environment;
use crate::result::results::{self, Clock, ContenderInfo, LoadInfo, Outcome, Results, ScenarioInfo};
use crate::run::job::{Cell, Job, JobFiles, Request, nominal};
use crate::run::progress::Progress;
use crate::run::trial::Setting;
use crate::run::{experiment, model, network, sampler, store, virtual_machine};
use sluice_error::{Error, Kind, Result};
use sluice_testbed::interrupt::Interrupt;
use sluice_testbed::tool;

/// Busy time before the first trial, percent, above which a machine disturbs native measurements.
const BUSY_PERCENT: f64 = 15.0;

/// The results of a run, and whether Ctrl-C stopped it before the end.
pub struct Done {
    /// The results of all trials that were done.
    pub results: Results,
    /// The directory of the results.
    pub directory: PathBuf,
    /// Whether Ctrl-C ended the run.
    pub interrupted: bool,
}

/// Runs the request.
pub fn run(request: &Request) -> Result<Done> {
    let mut job = expand(request)?;
    let files = JobFiles::of(&job)?;
    // A file is stored together with the files that it names.
    job.scenarios.iter_mut().for_each(|source| source.clone_from(&files.scenarios[&source.name].source));
    job.contenders.iter_mut().for_each(|source| source.clone_from(&files.contenders[&source.name].source));
    if request.kernel.is_none() && !files.is_modelled() {
        network::require_root("the lab", "sudo sluice lab run ..., or with --vm as any user")?;
    }
    if let (Some(_), true) = (&request.kernel, files.has_chain()) {
        let what = "chains of port forwards run natively: the virtual machines have neither nginx, siege nor wrk";
        return Err(Error::new(Kind::Unsupported, what).help("leave --vm out, and run it as root"));
    }
    if let (Some(_), true) = (&request.kernel, files.has_model()) {
        let what = "a modelled card needs no virtual machine: its time is simulated";
        return Err(Error::new(Kind::Unsupported, what).help("leave --vm out"));
    }
    if let (Some(_), true) = (&request.kernel, files.has_port()) {
        let what = "a real port needs a processor of its own: the virtual machines have one";
        return Err(Error::new(Kind::Unsupported, what).help("leave --vm out, and run it as root"));
    }
    tool::require(&files.tools()).map_err(|e| match files.has_chain() {
        true => e.help("scripts/setup lab"),
        false => e,
    })?;
    let directory = store::create(request.out.as_deref(), &job.plan)?;
    let minutes = (files.nominal(&job).as_secs_f64() / 60.0).ceil();
    // A closed standard error is no reason to fail.
    let _ = writeln!(io::stderr(), "trials: {}; they take {minutes:.0} min or more", job.trials.len());
    let interrupt = Interrupt::catch()?;
    let mut results = blank(&job, &files);
    let began = Instant::now();
    let ended = match &request.kernel {
        Some(kernel) => virtual_machine::run(request, kernel, &job, &files, &directory, &interrupt, &mut results),
        None => here(request, &job, &files, &directory, &interrupt, &mut results),
    };
    results.took_s = began.elapsed().as_secs_f64().round();
    let interrupted = match ended {
        Err(error) if error.kind == Kind::Interrupted && !results.trials.is_empty() => true,
        Err(error) => {
            store::remove_empty(&directory);
            return Err(error);
        }
        Ok(()) => false,
    };
    if interrupted {
        results.warnings.insert(0, format!("stopped after {} of {} trials", results.trials.len(), job.trials.len()));
    }
    store::write(&results, &directory)?;
    Ok(Done { results, directory, interrupted })
}

/// Runs a virtual machine's share of a job.
pub fn guest(sluice: &Path, job: &Path, directory: &Path) -> Result<()> {
    let text = fs::read_to_string(job).map_err(|e| Error::system(format!("cannot read {}: {e}", job.display())))?;
    let job: Job = serde_json::from_str(&text).map_err(|e| Error::system(format!("cannot read the job: {e}")))?;
    let files = JobFiles::of(&job)?;
    let interrupt = Interrupt::catch()?;
    let mut results = blank(&job, &files);
    let counting = std::env::var_os("SLUICE_VM").is_some_and(|clock| clock == "icount");
    results.clock = if counting { Clock::Instructions } else { Clock::Real };
    results.tools = tool::versions(&tool::LAB);
    let mut tick = |_: &Cell, _: Duration| {};
    let mut done = virtual_machine::send_results;
    let mut steps = Steps { begin: &mut tick, tick: &|| {}, done: &mut done };
    trials(sluice, &job, &files, directory, &interrupt, &mut results, &mut steps)?;
    Ok(())
}

/// Runs a job natively.
fn here(
    request: &Request,
    job: &Job,
    files: &JobFiles,
    directory: &Path,
    interrupt: &Interrupt,
    results: &mut Results,
) -> Result<()> {
    if files.is_modelled() {
        results.clock = Clock::Simulated;
    } else {
        network::remove_stale(&request.sluice)?;
        results.tools = tool::versions(&files.shown_tools());
        results.warnings.extend(busy()?);
    }
    let progress = std::cell::RefCell::new(Progress::new(files.nominal(job), request.color));
    let mut number = 0;
    let mut begin = |cell: &Cell, nominal: Duration| {
        number += 1;
        let text = format!("{number}/{} {}: {}", job.trials.len(), cell.scenario, cell.contender);
        progress.borrow_mut().phase(&text, nominal);
    };
    // The results are written after every trial, so that a later failure loses none.
    let mut done = |results: &Results| store::write_json(results, directory);
    let mut steps = Steps { begin: &mut begin, tick: &|| progress.borrow().tick(), done: &mut done };
    trials(&request.sluice, job, files, directory, interrupt, results, &mut steps)
}

/// The callbacks of a run's progress.
struct Steps<'a> {
    begin: &'a mut dyn FnMut(&Cell, Duration),
    tick: &'a dyn Fn(),
    done: &'a mut dyn FnMut(&Results) -> Result<()>,
}

fn trials(
    sluice: &Path,
    job: &Job,
    files: &JobFiles,
    directory: &Path,
    interrupt: &Interrupt,
    results: &mut Results,
    steps: &mut Steps,
) -> Result<()> {
    let scratch = network::scratch()?;
    // A combination that this machine does not support is not tried again.
    let mut impossible: BTreeMap<(String, String), String> = BTreeMap::new();
    for cell in &job.trials {
        interrupt.check()?;
        let (scenario, contender) = files.of_cell(cell)?;
        (steps.begin)(cell, nominal(scenario, job));
        let key = (cell.scenario.clone(), cell.contender.clone());
        if let Some(why) = impossible.get(&key) {
            results.trials.push(cell.with(Outcome::Unsupported(why.clone())));
            (steps.done)(results)?;
            continue;
        }
        let setting = Setting {
            scenario,
            contender,
            rate_bps: cell.rate_bps,
            measured_ms: scenario.measured_ms(job.measured),
            repeat: cell.repeat,
            sluice,
            scratch: scratch.path(),
            clock: results.clock,
        };
        let outcome = match experiment::run(&setting, interrupt, steps.tick) {
            Ok(found) => {
                found.warnings.into_iter().for_each(|warning| results.warn(warning));
                store::write_raw(directory, cell, &found.raw)?;
                Outcome::Measured(Box::new(found.measured))
            }
            Err(error) if error.kind == Kind::Interrupted => return Err(error),
            Err(error) if error.kind == Kind::Unsupported => {
                impossible.insert(key, error.what.clone());
                Outcome::Unsupported(error.what)
            }
            Err(error) => Outcome::Failed(error.to_string()),
        };
        results.trials.push(cell.with(outcome));
        (steps.done)(results)?;
    }
    Ok(())
}

/// A warning if other work would disturb what is measured.
fn busy() -> Result<Option<String>> {
    let before = sampler::ticks()?;
    std::thread::sleep(Duration::from_secs(1));
    let percent = sampler::busy_percent(before, sampler::ticks()?);
    let warning =
        format!("the machine was {percent:.0} % busy before anything ran: delays and rates are disturbed; --vm is not");
    Ok((percent > BUSY_PERCENT).then_some(warning))
}

fn blank(job: &Job, files: &JobFiles) -> Results {
    let scenario = |source: &Source| {
        let scenario = &files.scenarios[&source.name];
        let load = |load: &format::Load| LoadInfo {
            name: load.name().to_owned(),
            kind: format!("{:?}", load.kind).to_lowercase(),
            about: load.about(),
            probe: load.probe,
            weight: load.weight,
        };
        ScenarioInfo {
            name: source.name.clone(),
            title: scenario.title.clone(),
            about: scenario.about.clone(),
            chain: scenario.topology.chain().is_some(),
            tap: scenario.topology.tap().is_some(),
            model: scenario.model.clone(),
            published: scenario.published.clone(),
            loads: scenario.loads.iter().map(load).chain(scenario.model.iter().flat_map(model::loads)).collect(),
            file: source.text.clone(),
        }
    };
    let contender = |source: &Source| {
        let contender = &files.contenders[&source.name];
        ContenderInfo {
            name: source.name.clone(),
            title: contender.title.clone(),
            about: contender.about.clone(),
            baseline: contender.baseline,
            ours: contender.is_ours(),
            file: source.text.clone(),
        }
    };
    let began = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    Results {
        format: results::FORMAT,
        sluice: env!("CARGO_PKG_VERSION").to_owned(),
        plan: job.plan.clone(),
        command: job.command.clone(),
        began: began.replace('T', " ").chars().take(16).collect(),
        took_s: 0.0,
        environment: Environment::read(),
        clock: Clock::Real,
        tools: BTreeMap::new(),
        warnings: Vec::new(),
        scenarios: job.scenarios.iter().map(scenario).collect(),
        contenders: job.contenders.iter().map(contender).collect(),
        trials: Vec::new(),
    }
}

/// Expands the requested plan into trials: all contenders of a scenario, then the next scenario; then the next repeat.
pub fn expand(request: &Request) -> Result<Job> {
    let (name, plan) = plan(request)?;
    let mut job = Job {
        plan: name,
        command: request.command.clone(),
        measured: plan.measured,
        scenarios: Vec::new(),
        contenders: Vec::new(),
        trials: Vec::new(),
    };
    for repeat in 1..=plan.repeats {
        for entry in &plan.entries {
            let scenario = known(&mut job.scenarios, Folder::Scenarios, &entry.scenario)?;
            for rate in entry.rates.as_ref().unwrap_or(&plan.rates) {
                for contender in entry.contenders.as_ref().unwrap_or(&plan.contenders) {
                    let contender = known(&mut job.contenders, Folder::Contenders, contender)?;
                    let rate_bps = rate.bps(0).unwrap_or_default();
                    let cell = Cell { scenario: scenario.clone(), contender, rate_bps, repeat };
                    // A combination that is named twice is measured once.
                    if !job.trials.contains(&cell) {
                        job.trials.push(cell);
                    }
                }
            }
        }
    }
    Ok(job)
}

/// Checks a user's file of any kind; the answer names the kind. The files that a plan names must be there, be good, and belong together.
pub fn check(path: &Path) -> Result<&'static str> {
    let kind = format::check(path)?;
    if kind == Folder::Plans.one() {
        let request = Request { what: vec![path.to_string_lossy().into_owned()], ..Request::default() };
        let checked = expand(&request).and_then(|job| JobFiles::of(&job));
        checked.map_err(|error| Error { what: format!("{}: {}", path.display(), error.what), ..error })?;
    }
    Ok(kind)
}

/// The name of a file, which is read at its first mention.
fn known(all: &mut Vec<Source>, folder: Folder, name: &str) -> Result<String> {
    let source = format::read(folder, name)?;
    match all.iter().find(|known| known.name == source.name) {
        Some(same) if same.text == source.text => {}
        Some(_) => {
            let what = format!("two different {} are called {}", folder.name(), source.name);
            return Err(Error::new(Kind::Input, what).help("rename one of the files"));
        }
        None => all.push(source.clone()),
    }
    Ok(source.name)
}

fn plan(request: &Request) -> Result<(String, Plan)> {
    let input = |what: String, cure: String| Error::new(Kind::Input, what).help(cure);
    let plans = format::names(Folder::Plans);
    let names_plan = |name: &String| match plans.contains(name) || !name.ends_with(".toml") {
        true => Ok(plans.contains(name)),
        false => format::kind(name).map(|folder| folder == Folder::Plans),
    };
    let (name, mut plan) = match request.what.as_slice() {
        [one] if names_plan(one)? => {
            let source = format::read(Folder::Plans, one)?;
            (source.name.clone(), Plan::of(&source)?)
        }
        scenarios => {
            if let Some(plan) = scenarios.iter().find(|name| plans.contains(name)) {
                let cure = format!("sluice lab run {plan}, alone; or scenarios");
                return Err(input(format!("{plan} is a plan, and a run has one plan"), cure));
            }
            // A user's own scenario runs like those of the quick plan.
            let mut plan = Plan::of(&format::read(Folder::Plans, "quick")?)?;
            let entry = |name: &String| Entry { scenario: name.clone(), contenders: None, rates: None };
            plan.entries = scenarios.iter().map(entry).collect();
            ("custom".to_owned(), plan)
        }
    };
    if !request.contenders.is_empty() {
        plan.contenders.clone_from(&request.contenders);
        plan.entries.iter_mut().for_each(|entry| entry.contenders = None);
    }
    if !request.rates.is_empty() {
        let rate = |text: &String| {
            Rate::try_from(text.clone()).map_err(|e| input(format!("--rate: {e}"), "such as --rate 20mbit".into()))
        };
        plan.rates = request.rates.iter().map(rate).collect::<Result<_>>()?;
        plan.entries.iter_mut().for_each(|entry| entry.rates = None);
    }
    plan.repeats = request.repeats.unwrap_or(plan.repeats);
    if let Some(text) = &request.measured {
        plan.measured = Milliseconds::try_from(text.clone())
            .map_err(|e| input(format!("--measured: {e}"), "such as --measured 10s".into()))?;
    }
    plan.check().map_err(|mistake| input(mistake.what, mistake.cure.to_owned()))?;
    Ok((name, plan))
}
