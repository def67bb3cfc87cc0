//! The cost of a packet, in instructions: Sluice and its rivals in one run of a virtual machine whose clock counts them.
//!
//! A list of cases (`plan`) goes to a guest (`guest`, which runs `bench/cost` of the source tree). Its rows (`rows`) become
//! figures (`figures`), which are shown (`table`), kept (`history`) and held against a record (`gate`).

mod figures;
mod gate;
mod guest;
mod history;
mod plan;
mod rows;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::run::tree;
use figures::Figures;
use plan::Case;
use rows::Run;
use sluice_error::{Error, Kind, Result};

/// Raw results, the history and the gate's record, in the source tree.
const DATA: &str = "bench/data";
/// Raw results that are not kept, in the source tree.
const SCRATCH: &str = "target/bench";

/// The options of `sluice lab cost`.
#[derive(Debug, Clone)]
pub struct Options {
    /// The Sluice binary that goes into the guest.
    pub sluice: PathBuf,
    /// The compiler of the BPF programs in the binary, such as "clang 19.1.7".
    pub compiler: String,
    /// The role of the stock kernel, as `vm/kernel` has them.
    pub role: String,
    /// Words to select contenders by name; empty selects all.
    pub only: Vec<String>,
    /// The number of measurements of each case.
    pub repeats: u32,
    /// Whether the results are kept in the source tree.
    pub keep: bool,
    /// Whether to do the short run of the gate.
    pub gate: bool,
    /// Raw results of an earlier run instead of a new one.
    pub from: Option<PathBuf>,
    /// Whether texts may carry colours.
    pub color: bool,
}

/// The result of a call of `run`.
#[derive(Debug)]
pub struct Outcome {
    /// The text to print.
    pub text: String,
    /// The error that the command ends with after the text is printed.
    pub failure: Option<Error>,
}

/// Measures the cases, or reads an earlier run, and shows the figures.
pub fn run(options: &Options) -> Result<Outcome> {
    let tree = tree::find()?;
    let data = tree.join(DATA);
    let cases = if options.gate { plan::gate() } else { plan::full() };
    let cases = plan::matching(cases, &options.only)?;
    let mut text = String::new();
    let run = match &options.from {
        Some(file) => rows::read(file)?,
        None => {
            let run = measure(options, &tree, &cases)?;
            let into = if options.keep && !options.gate { data.clone() } else { tree.join(SCRATCH) };
            let file = into.join(file_name(&run, options.gate));
            save(&file, &run.csv())?;
            text += &format!("raw results: {}\n\n", file.display());
            run
        }
    };
    let figures = Figures::of(&run)?;
    text += &table::render(&figures, options.color);
    if options.gate {
        return gated(options, &data, &run, &figures, text);
    }
    if options.keep {
        let file = data.join(history::FILE);
        save(&file, &history::with(&history::read(&file)?, &run, &figures))?;
        text += &format!("\nAdded to {}.\n", file.display());
    }
    Ok(Outcome { text, failure: None })
}

/// The history of the main figures, or of contenders whose names contain one of these words.
pub fn past(only: &[String]) -> Result<String> {
    let file = tree::find()?.join(DATA).join(history::FILE);
    history::render(&history::read(&file)?, only)
}

fn measure(options: &Options, tree: &Path, cases: &[Case]) -> Result<Run> {
    let kernel = guest::kernel(tree, &options.role)?;
    let rows = guest::measure(options, tree, cases)?;
    Ok(Run { date: today(), kernel, compiler: options.compiler.clone(), rows })
}

fn gated(options: &Options, data: &Path, run: &Run, figures: &Figures, mut text: String) -> Result<Outcome> {
    let file = data.join(gate::FILE);
    let record = gate::read(&file)?;
    let judgement = gate::judge(&record, run, figures);
    text += &judgement.text();
    let mut failure = judgement.failure();
    if options.keep {
        let ratios = judgement.ratios()?;
        save(&file, &gate::with(&record, run, &ratios))?;
        text += &format!("Recorded in {}.\n", file.display());
        failure = None;
    }
    Ok(Outcome { text, failure })
}

fn file_name(run: &Run, gate: bool) -> String {
    let what = if gate { "cost-gate" } else { "cost" };
    format!("{what}-{}-linux-{}-{}.csv", run.date.replace('-', ""), run.kernel, run.compiler.replace(' ', "-"))
}

/// Writes a file whole or not at all.
fn save(file: &Path, text: &str) -> Result<()> {
    let unwritable = |error: std::io::Error| Error::system(format!("cannot write {}: {error}", file.display()));
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory).map_err(unwritable)?;
    }
    let fresh = file.with_extension("csv.new");
    fs::write(&fresh, text).map_err(unwritable)?;
    fs::rename(&fresh, file).map_err(unwritable)
}

/// The text of a file, if it is there.
fn read_if_any(file: &Path) -> Result<Option<String>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(file, &error)),
    }
}

/// Parses the lines below the header `columns`; the error is the number of a wrong line.
fn entries<T>(text: &str, columns: &str, parse: impl Fn(&str) -> Option<T>) -> std::result::Result<Vec<T>, usize> {
    let mut lines = (1..).zip(text.lines());
    if lines.next().is_none_or(|(_, line)| line != columns) {
        return Err(1);
    }
    lines.map(|(number, line)| parse(line).ok_or(number)).collect()
}

fn unreadable(file: &Path, error: &std::io::Error) -> Error {
    Error::new(Kind::Input, format!("cannot read {}: {error}", file.display()))
}

/// The date, UTC, as YYYY-MM-DD.
fn today() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string().chars().take(10).collect()
}
