//! A run in virtual machines on a stock kernel, by the source tree's `vm/run`: as many at a time as there are processors.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::campaign::{Cast, Job, Request};
use crate::error::{Error, Kind, Result};
use crate::interrupt::Interrupt;
use crate::network;
use crate::process::Process;
use crate::progress::Progress;
use crate::results::{Outcome, Results, Trial};
use crate::{store, tree};

/// What a guest writes when a trial begins.
pub const BEGINS: &str = "a trial begins";
/// A guest's clock may be so many times slower than ours, at worst.
const SLOWEST: u32 = 12;
/// Booting and packing.
const OVERHEAD: Duration = Duration::from_secs(240);

/// A guest and its share.
struct Guest {
    process: Process,
    share: Job,
    out: PathBuf,
}

/// Do a run's trials, shared out among virtual machines.
pub fn run(
    request: &Request,
    kernel: &str,
    job: &Job,
    cast: &Cast,
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
        guests.push(start(request, kernel, &tree, scratch.path(), number, share, cast)?);
    }
    let nominal = cast.nominal(job);
    let mut progress = Progress::new(nominal, request.color);
    let began = Instant::now();
    let mut ended = Vec::new();
    let mut told = usize::MAX;
    while !guests.is_empty() {
        interrupt.check()?; // Dropping ends the machines.
        let begun = |process: &Process| process.lines().iter().filter(|line| line.text == BEGINS).count();
        let done: usize = ended.iter().map(|(_, lines): &(Guest, usize)| *lines).sum();
        let done = done + guests.iter().map(|guest| begun(&guest.process).saturating_sub(1)).sum::<usize>();
        if done != told {
            told = done;
            let left = left(began.elapsed(), done, job.trials.len());
            let text = format!(
                "{done}/{} trials done on {many} machine{}, {kernel}{left}",
                job.trials.len(),
                if many == 1 { "" } else { "s" }
            );
            progress.phase(&text, nominal / job.trials.len() as u32);
        }
        progress.tick();
        let mut still = Vec::new();
        for mut guest in guests {
            if guest.process.running()? {
                still.push(guest);
            } else {
                let lines = begun(&guest.process);
                ended.push((guest, lines));
            }
        }
        guests = still;
        thread::sleep(Duration::from_millis(200));
    }
    drop(progress);
    let mut trials = Vec::new();
    for (guest, _) in ended {
        trials.extend(gather(guest, directory, results)?);
    }
    // In the order of the plan again.
    for cell in &job.trials {
        let found = trials.iter().position(|trial: &Trial| {
            (&trial.scenario, &trial.contender, trial.rate_bps, trial.repeat)
                == (&cell.scenario, &cell.contender, cell.rate_bps, cell.repeat)
        });
        results.trials.extend(found.map(|at| trials.swap_remove(at)));
    }
    results.environment.distribution = format!("stock Debian kernel of {kernel}, emulated");
    Ok(())
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
    cast: &Cast,
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
    let limit = (cast.nominal(&share) * SLOWEST + OVERHEAD).as_secs().to_string();
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
    let process = Process::start_polite("the virtual machine", program, &arguments)?;
    Ok(Guest { process, share, out })
}

/// What a guest found; what it did not come to has failed, with its last words.
fn gather(guest: Guest, directory: &Path, results: &mut Results) -> Result<Vec<Trial>> {
    let output = guest.process.finish(Duration::from_secs(20), || Ok(()))?;
    let (mut trials, mut why) = (Vec::new(), output.failure().what);
    match store::read(&guest.out) {
        Ok(found) => {
            results.environment.clone_from(&found.environment);
            results.clock = found.clock;
            results.tools.extend(found.tools);
            for warning in found.warnings {
                if !results.warnings.contains(&warning) {
                    results.warnings.push(warning);
                }
            }
            trials = found.trials;
            store::adopt_raw(&guest.out, directory)?;
        }
        Err(error) if output.status.success() => why = error.what,
        Err(_) => {}
    }
    if output.status.code() == Some(3) || output.status.code() == Some(2) {
        return Err(Error::new(Kind::Unsupported, why));
    }
    for cell in &guest.share.trials[trials.len()..] {
        trials.push(Trial {
            scenario: cell.scenario.clone(),
            contender: cell.contender.clone(),
            rate_bps: cell.rate_bps,
            repeat: cell.repeat,
            outcome: Outcome::Failed(why.clone()),
        });
    }
    Ok(trials)
}
