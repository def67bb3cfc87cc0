//! `sluice lab`: measure anything against anything.

mod frames;

use crate::args::lab::{Compare, Lab, LabCommand, Run};
use crate::cost;
use crate::failure::Failure;
use crate::terminal::say;
use comfy_table::{ContentArrangement, Table, presets};
use sluice_lab::campaign;
use sluice_lab::format::{self, Folder};
use sluice_lab::job::Request;
use sluice_lab::results::Outcome;
use sluice_lab::{Error, Kind};
use sluice_lab::{report, store};
use std::path::{Path, PathBuf};

const FOLDERS: [Folder; 4] = [Folder::Plans, Folder::Scenarios, Folder::Contenders, Folder::Topologies];

pub fn run(args: &Lab, color: bool) -> Result<(), Failure> {
    match &args.command {
        LabCommand::Run(args) => measure(args, color),
        LabCommand::List => list(),
        LabCommand::Show { name } => show(name),
        LabCommand::Report { run } => report(run, color),
        LabCommand::Compare(args) => compare(args, color),
        LabCommand::Cost(args) => cost::run(args, color),
        LabCommand::Check { files } => check(files),
        LabCommand::Frames(args) => frames::send(args),
        LabCommand::Observe(args) => frames::observe(args),
        LabCommand::Card(args) => frames::card(args),
        LabCommand::Guest { job, directory } => Ok(campaign::guest(&program()?, job, directory)?),
    }
}

fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure::system(format!("finding this program: {error}")))
}

fn measure(args: &Run, color: bool) -> Result<(), Failure> {
    let request = Request {
        sluice: program()?,
        what: args.what.clone(),
        contenders: args.contenders.clone(),
        rates: args.rates.clone(),
        repeats: args.repeats,
        measured: args.measured.clone(),
        kernel: args.vm.then(|| args.kernel.clone()),
        out: args.out.clone(),
        command: command_line(args),
        color,
    };
    let done = campaign::run(&request)?;
    say(&report::summary(&done.results, color));
    let page = done.directory.join(store::REPORT);
    say(&format!("\nThe report is {}; the numbers and the tools' output are in the same directory.\n", page.display()));
    if done.interrupted {
        return Err(Error::new(Kind::Interrupted, "interrupted; finished trials are kept").into());
    }
    if done.results.trials.iter().all(|trial| trial.measured().is_none()) {
        let reason = done.results.trials.iter().find_map(|trial| match &trial.outcome {
            Outcome::Failed(why) | Outcome::Unsupported(why) => why.lines().next(),
            Outcome::Measured(_) => None,
        });
        let what = format!(
            "no trial could be measured: {}; the report has the reason of each",
            reason.unwrap_or("interrupted")
        );
        let error = Error::new(Kind::System, what);
        return Err(error.help("sluice doctor says what this kernel has; --vm runs on one that has everything").into());
    }
    Ok(())
}

fn report(run: &Path, color: bool) -> Result<(), Failure> {
    let results = store::read(run)?;
    let directory = if run.is_dir() { run } else { run.parent().unwrap_or(Path::new(".")) };
    store::write_report(&results, directory)?;
    say(&report::summary(&results, color));
    say(&format!("\nThe report is {}.\n", directory.join(store::REPORT).display()));
    Ok(())
}

fn compare(args: &Compare, color: bool) -> Result<(), Failure> {
    let comparison = report::compare(&store::read(&args.before)?, &store::read(&args.after)?);
    if comparison.changes.is_empty() && comparison.broken.is_empty() {
        let cure = "compare two runs of the same scenarios, contenders and rates";
        return Err(Failure::input("the two runs have nothing in common", cure));
    }
    if args.json {
        say(&(comparison.json()? + "\n"));
    } else if args.markdown {
        say(&comparison.markdown());
    } else {
        say(&comparison.text(color));
    }
    if comparison.is_worse() {
        return Err(Error::new(Kind::System, "the later run is worse").into());
    }
    Ok(())
}

/// The command line that repeats the run; files are named without their directories.
fn command_line(args: &Run) -> String {
    let name = |text: &String| match text.rsplit_once('/') {
        Some((_, file)) => format!("./{file}"),
        None => text.clone(),
    };
    let mut words = vec!["sluice lab run".to_owned()];
    words.extend(args.what.iter().map(name));
    words.extend(args.contenders.iter().map(|contender| format!("--contender {}", name(contender))));
    words.extend(args.rates.iter().map(|rate| format!("--rate {rate}")));
    words.extend(args.repeats.map(|repeats| format!("--repeats {repeats}")));
    words.extend(args.measured.iter().map(|measured| format!("--measured {measured}")));
    if args.vm {
        words.push(format!("--vm --kernel {}", args.kernel));
    }
    words.join(" ")
}

fn list() -> Result<(), Failure> {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    for folder in FOLDERS {
        for (number, name) in format::names(folder).into_iter().enumerate() {
            let about = format::about(folder, &name)?;
            table.add_row([if number == 0 { folder.name() } else { "" }, &name, &about]);
        }
    }
    table.lines().for_each(|line| say(&format!("{}\n", line.trim_end())));
    Ok(())
}

fn show(name: &str) -> Result<(), Failure> {
    match FOLDERS.iter().find(|folder| format::names(**folder).iter().any(|own| own == name)) {
        Some(folder) => {
            say(&format::read(*folder, name)?.text);
            Ok(())
        }
        None => Err(Failure::input(&format!("no built-in file is called \"{name}\""), "sluice lab list names them")),
    }
}

fn check(files: &[PathBuf]) -> Result<(), Failure> {
    for file in files {
        let kind = campaign::check(file)?;
        say(&format!("{}: a good {kind}\n", file.display()));
    }
    Ok(())
}
