//! The directory of a run.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::report;
use crate::result::results::{FORMAT, Results};
use crate::run::job::Cell;
use sluice_error::{Error, Kind, Result};

/// The file of all numbers.
pub const RESULTS: &str = "results.json";
/// The report for people.
pub const REPORT: &str = "report.html";
/// The directory of the tools' output, compressed, with a directory for each trial.
const RAW: &str = "raw";

fn cannot(what: &str, path: &Path, e: &std::io::Error) -> Error {
    Error::system(format!("cannot {what} {}: {e}", path.display())).help("name another directory with --out")
}

/// Creates the directory of a run: the wanted one, or a new one below `sluice-lab`.
pub fn create(wanted: Option<&Path>, plan: &str) -> Result<PathBuf> {
    let path = match wanted {
        Some(path) => path.to_owned(),
        None => {
            let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
            let digits: String = now.chars().filter(char::is_ascii_digit).collect();
            Path::new("sluice-lab").join(format!("{}-{}-{plan}", &digits[..8], &digits[8..14]))
        }
    };
    if path.join(RESULTS).exists() {
        let what = format!("{} has results already", path.display());
        return Err(Error::new(Kind::Input, what).help("name a new directory with --out"));
    }
    fs::create_dir_all(&path).map_err(|e| cannot("make", &path, &e))?;
    Ok(path)
}

/// Removes the directory of a run without results if it is empty.
pub fn remove_empty(path: &Path) {
    // A directory with a user's files in it is kept.
    let _ = fs::remove_dir(path);
    if let Some(parent) = path.parent().filter(|parent| parent.ends_with("sluice-lab")) {
        let _ = fs::remove_dir(parent);
    }
}

/// Stores the tools' output of a trial.
pub fn write_raw(directory: &Path, cell: &Cell, raw: &[(String, String)]) -> Result<()> {
    if raw.is_empty() {
        return Ok(());
    }
    let path = directory.join(RAW).join(cell.directory());
    fs::create_dir_all(&path).map_err(|e| cannot("make", &path, &e))?;
    for (name, text) in raw {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        let name: String = name.chars().map(plain).take(80).collect();
        let path = path.join(format!("{name}.gz"));
        let write = || {
            let mut encoder = GzEncoder::new(fs::File::create(&path)?, Compression::fast());
            encoder.write_all(text.as_bytes())?;
            encoder.finish().map(drop)
        };
        write().map_err(|e| cannot("write", &path, &e))?;
    }
    Ok(())
}

/// Writes the numbers.
pub fn write_json(results: &Results, directory: &Path) -> Result<()> {
    let json =
        serde_json::to_string(results).map_err(|e| Error::system(format!("cannot write the results as JSON: {e}")))?;
    put(directory, RESULTS, &(json + "\n"))
}

/// Writes the numbers and every form of the report.
pub fn write(results: &Results, directory: &Path) -> Result<()> {
    write_json(results, directory)?;
    write_report(results, directory)
}

/// Writes every form of the report, from the numbers alone.
pub fn write_report(results: &Results, directory: &Path) -> Result<()> {
    put(directory, REPORT, &report::html(results)?)?;
    put(directory, "report.md", &report::markdown(results))?;
    put(directory, "results.csv", &report::csv(results)?)
}

fn put(directory: &Path, name: &str, text: &str) -> Result<()> {
    let path = directory.join(name);
    fs::write(&path, text).map_err(|e| cannot("write", &path, &e))
}

/// Reads the numbers of a run, by its directory or its file.
pub fn read(path: &Path) -> Result<Results> {
    let file = if path.is_dir() { path.join(RESULTS) } else { path.to_owned() };
    let bad = |what: String| Error::new(Kind::Input, format!("{}: {what}", file.display()));
    let text = fs::read_to_string(&file)
        .map_err(|e| bad(format!("cannot read it: {e}")).help("name the directory that sluice lab run has made"))?;
    let bad_json = |e: serde_json::Error| bad(format!("no results of the lab: {e}"));
    let any: serde_json::Value = serde_json::from_str(&text).map_err(bad_json)?;
    if !sane(&any) {
        return Err(bad("it has numbers that no trial measured".to_owned()).help("run the plan again"));
    }
    let format = any["format"].as_u64().ok_or_else(|| bad("no results of the lab: no format".to_owned()))?;
    if format != u64::from(FORMAT) {
        let what = format!("it has format {format}, this Sluice reads format {FORMAT}");
        return Err(bad(what).help("run the plan again, or use the Sluice that wrote it"));
    }
    serde_json::from_value(any).map_err(bad_json)
}

/// Moves the tools' output of a virtual machine to the directory of the run.
pub fn adopt_raw(from: &Path, directory: &Path) -> Result<()> {
    let (from, to) = (from.join(RAW), directory.join(RAW));
    let Ok(entries) = fs::read_dir(&from) else { return Ok(()) };
    fs::create_dir_all(&to).map_err(|e| cannot("make", &to, &e))?;
    for trial in entries.flatten() {
        let to = to.join(trial.file_name());
        fs::create_dir_all(&to).map_err(|e| cannot("make", &to, &e))?;
        for file in fs::read_dir(trial.path()).map_err(|e| cannot("read", &trial.path(), &e))?.flatten() {
            fs::copy(file.path(), to.join(file.file_name())).map_err(|e| cannot("write", &to, &e))?;
        }
    }
    Ok(())
}

/// Whether all numbers are in the range that can be measured and drawn.
fn sane(value: &serde_json::Value) -> bool {
    const MAX_NUMBER: f64 = 1e15;
    match value {
        serde_json::Value::Number(number) => number.as_f64().is_some_and(|number| number.abs() < MAX_NUMBER),
        serde_json::Value::Array(all) => all.iter().all(sane),
        serde_json::Value::Object(all) => all.values().all(sane),
        _ => true,
    }
}
