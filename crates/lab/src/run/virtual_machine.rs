//! A run in virtual machines on a stock kernel, by the source tree's `vm/run`: as many at a time as there are processors.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::result::results::{Outcome, Results, Trial};
use crate::run::job::{Cell, Job, JobFiles, Request};
use crate::run::progress::Progress;
use crate::run::{network, store, tree};
use sluice_error::{Error, Kind, Result};
use sluice_testbed::interrupt::Interrupt;
use sluice_testbed::process::{Line, Process};

/// The prefix of the line in which a guest sends its results after each trial, with that trial alone.
const RESULT_PREFIX: &str = "found ";
/// Factor by which a guest's clock may be slower than ours, at worst.
const SLOWEST: u32 = 40;
/// Time for booting and packing.
const OVERHEAD: Duration = Duration::from_secs(240);

/// In a guest: sends the results with the last trial alone, so that they survive the machine.
pub fn send_results(results: &Results) -> Result<()> {
    let last = results.trials.last().cloned().into_iter().collect();
    let json = serde_json::to_string(&Results { trials: last, ..results.clone() });
    println!("{RESULT_PREFIX}{}", json.map_err(|e| Error::system(format!("cannot write the results as JSON: {e}")))?);
    Ok(())
}

/// The results that a guest has sent.
fn received(lines: &[Line]) -> impl Iterator<Item = Results> {
    lines.iter().filter_map(|line| serde_json::from_str(line.text.strip_prefix(RESULT_PREFIX)?).ok())
}

/// A guest and its share of the job.
struct Guest {
    process: Process,
    share: Job,
    out: PathBuf,
}

/// Runs the trials in virtual machines.
pub fn run(
    request: &Request,
    kernel: &str,
    job: &Job,
    files: &JobFiles,
    directory: &Path,
    interrupt: &Interrupt,
    results: &mut Results,
) -> Result<()> {
    let tree = tree::find()?;
    let scratch = network::scratch()?;
    let many = thread::available_parallelism().map_or(1, usize::from).min(job.trials.len());
    let mut guests = Vec::new();
    for number in 0..many {
        let trials = job.trials.iter().skip(number).step_by(many).cloned().collect();
        let share = Job { trials, ..job.clone() };
        guests.push(start(request, kernel, &tree, scratch.path(), number, share, files)?);
    }
    let mut progress = Progress::new(files.nominal(job), request.color);
    // The results are read from the machines before dropping ends these.
    let (running, ended, stopped) = follow(guests, kernel, job, files, &mut progress, interrupt)?;
    drop(progress);
    let mut shares = Vec::new();
    for guest in ended {
        shares.push(gather(guest, directory, results)?);
    }
    // The trials of other machines are kept if one machine fails. If no machine came to its first trial, the set-up is wrong.
    if let Some(first) =
        shares.first().filter(|_| stopped.is_none() && shares.iter().all(|share| share.received.is_empty()))
    {
        let cure = "scripts/setup vm installs what virtual machines need";
        return Err(Error::new(Kind::Unsupported, first.why.clone()).help(cure));
    }
    let mut trials: Vec<Trial> = shares.into_iter().flat_map(Share::trials).collect();
    for guest in running {
        trials.extend(received(&guest.process.lines()).flat_map(|found| adopt(found, results)));
    }
    results.trials.extend(in_order_of_plan(job, trials));
    results.environment.distribution = format!("stock Debian kernel of {kernel}, emulated");
    stopped.map_or(Ok(()), Err)
}

/// Shows the progress of guests until all have ended or the run is interrupted. Returns the guests that still run, those
/// that have ended, and the interruption.
fn follow(
    mut running: Vec<Guest>,
    kernel: &str,
    job: &Job,
    files: &JobFiles,
    progress: &mut Progress,
    interrupt: &Interrupt,
) -> Result<(Vec<Guest>, Vec<Guest>, Option<Error>)> {
    let all = job.trials.len();
    let machines = if running.len() == 1 { "1 machine".to_owned() } else { format!("{} machines", running.len()) };
    let began = Instant::now();
    let mut ended = Vec::new();
    let mut known = usize::MAX;
    loop {
        let stopped = interrupt.check().err();
        if stopped.is_some() || running.is_empty() {
            return Ok((running, ended, stopped));
        }
        let found =
            |guest: &Guest| guest.process.lines().iter().filter(|line| line.text.starts_with(RESULT_PREFIX)).count();
        let done: usize = running.iter().chain(&ended).map(found).sum();
        if done != known {
            known = done;
            let left = left(began.elapsed(), done, all);
            let text = format!("{done}/{all} trials done on {machines}, {kernel}{left}");
            progress.phase(&text, files.nominal(job) / all as u32);
        }
        progress.tick();
        let mut still = Vec::new();
        for mut guest in running {
            if guest.process.running()? { still.push(guest) } else { ended.push(guest) }
        }
        running = still;
        thread::sleep(Duration::from_millis(200));
    }
}

/// The trials of all machines in the order of the plan.
fn in_order_of_plan(job: &Job, mut trials: Vec<Trial>) -> Vec<Trial> {
    let take = |cell: &Cell| {
        let at = trials.iter().position(|trial| {
            (&trial.scenario, &trial.contender, trial.rate_bps, trial.repeat)
                == (&cell.scenario, &cell.contender, cell.rate_bps, cell.repeat)
        })?;
        Some(trials.swap_remove(at))
    };
    job.trials.iter().filter_map(take).collect()
}

fn left(elapsed: Duration, done: usize, all: usize) -> String {
    if done == 0 {
        return String::new();
    }
    let seconds = elapsed.as_secs_f64() / done as f64 * (all - done) as f64;
    format!(", about {:.0} min of ours left", (seconds / 60.0).ceil())
}

fn start(
    request: &Request,
    kernel: &str,
    tree: &Path,
    scratch: &Path,
    number: usize,
    share: Job,
    files: &JobFiles,
) -> Result<Guest> {
    let inside = scratch.join(format!("guest-{number}"));
    let out = scratch.join(format!("out-{number}"));
    let write = |name: &str, text: &str| {
        let path = inside.join(name);
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
    };
    let json = serde_json::to_string(&share).map_err(|e| Error::system(format!("cannot write the job: {e}")))?;
    fs::create_dir_all(&inside)
        .and_then(|()| write("job.json", &json))
        .and_then(|()| write("run.sh", "#!/usr/bin/env bash\nexec sluice lab guest /t/job.json /out\n"))
        .map_err(|e| Error::system(format!("cannot write {}: {e}", inside.display())))?;
    let limit = (files.nominal(&share) * SLOWEST + OVERHEAD).as_secs().to_string();
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let policies = format!("{}:/usr/local/share/sluice/policies", text(&tree.join("policies")));
    let (program, sluice) = (text(&tree.join("vm/run")), format!("{}:/usr/bin/sluice", text(&request.sluice)));
    let (out_text, inside_text) = (text(&out), text(&inside));
    let arguments = [
        "--icount",
        "--kernel",
        kernel,
        "--timeout",
        &limit,
        "--memory",
        "1536",
        "--add",
        &sluice,
        "--add",
        &policies,
        "--out",
        &out_text,
        &inside_text,
    ];
    let process = Process::start_with_cleanup("the virtual machine", program, &arguments)?;
    Ok(Guest { process, share, out })
}

/// Adds the guest's description of its machine to the results and returns its trials.
fn adopt(found: Results, results: &mut Results) -> Vec<Trial> {
    results.environment = found.environment;
    results.clock = found.clock;
    results.tools.extend(found.tools);
    found.warnings.into_iter().for_each(|warning| results.warn(warning));
    found.trials
}

/// The outcome of a guest's share of the job.
struct Share {
    /// The trials that the guest did.
    received: Vec<Trial>,
    /// The trials that the guest did not do.
    missed: Vec<Cell>,
    /// The reason.
    why: String,
}

impl Share {
    /// All trials of the share; those that the guest did not do have failed.
    fn trials(self) -> impl Iterator<Item = Trial> {
        let failed = move |cell: Cell| cell.with(Outcome::Failed(self.why.clone()));
        self.received.into_iter().chain(self.missed.into_iter().map(failed))
    }
}

/// Collects the results of a guest that ended.
fn gather(guest: Guest, directory: &Path, results: &mut Results) -> Result<Share> {
    let output = guest.process.finish(Duration::from_secs(20), || Ok(()))?;
    let received: Vec<Trial> = received(&output.lines).flat_map(|found| adopt(found, results)).collect();
    store::adopt_raw(&guest.out, directory)?;
    let mut why = "the virtual machine ended before it".to_owned();
    if !output.status.success() {
        why = format!("the virtual machine ended with {}: {}", output.status, output.stderr.trim());
        results.warn(why.clone());
    }
    let missed = guest.share.trials.into_iter().skip(received.len()).collect();
    Ok(Share { received, missed, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_trials_of_a_machine_have_failed() {
        let cell = |repeat| Cell { scenario: "s".into(), contender: "c".into(), rate_bps: 1, repeat };
        let received = vec![cell(1).with(Outcome::Unsupported("no".into()))];
        let trials: Vec<Trial> =
            Share { received, missed: vec![cell(2), cell(3)], why: "it died".into() }.trials().collect();
        assert_eq!(trials.iter().map(|trial| trial.repeat).collect::<Vec<u32>>(), [1, 2, 3]);
        assert_eq!(trials[0].outcome, Outcome::Unsupported("no".into()));
        assert_eq!(trials[2].outcome, Outcome::Failed("it died".into()));
    }
}
