//! `docs/results.md` is rendered from `bench/results.template.md`, with each figure looked up in `bench/data`. `make results`
//! writes it; without that, a figure that differs from the data fails here.
//!
//! The template is Jinja. `median(FILE, COLUMN="key", …)` is the median of the rows of `bench/data/FILE.csv` or `.csv.gz` that have these
//! keys, over their repeats, less the column `baseline` where there is one; `fixed(N)` writes a number with so many decimals and groups its digits.

use flate2::read::GzDecoder;
use minijinja::value::{Kwargs, Value};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The columns of measured values, at the end of a file's lines.
const MEASURED: [&str; 5] =
    ["value", "instructions_per_packet", "instructions", "added_instructions", "instructions_per_frame"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file of results: its column names and its lines. Comments begin with `#`.
struct Table {
    columns: Vec<String>,
    lines: Vec<csv::StringRecord>,
}

fn read(name: &str) -> Result<Table, String> {
    let stem = root().join("bench/data").join(name);
    let plain = PathBuf::from(format!("{}.csv", stem.display()));
    let packed = PathBuf::from(format!("{}.csv.gz", stem.display()));
    let mut text = String::new();
    let read = match File::open(&plain) {
        Ok(mut file) => file.read_to_string(&mut text),
        Err(_) => {
            let file = File::open(&packed).map_err(|error| format!("{}: {error}", packed.display()))?;
            GzDecoder::new(file).read_to_string(&mut text)
        }
    };
    read.map_err(|error| format!("{name}: {error}"))?;
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let columns = reader.headers().map_err(|error| format!("{name}: {error}"))?.iter().map(str::to_owned).collect();
    let lines: Result<Vec<_>, _> = reader.records().collect();
    Ok(Table { columns, lines: lines.map_err(|error| format!("{name}: {error}"))? })
}

impl Table {
    /// The median of the lines with these keys.
    fn median(&self, keys: &[(&str, String)]) -> Result<f64, String> {
        let place = |name: &str| self.columns.iter().position(|column| column == name);
        let measured = MEASURED.iter().find_map(|name| place(name)).ok_or("it has no column of what was measured")?;
        let mut wanted = Vec::new();
        for (name, key) in keys {
            wanted.push((place(name).ok_or(format!("it has no column {name}"))?, key.as_str()));
        }
        let lines = self.lines.iter().filter(|line| wanted.iter().all(|(place, key)| line.get(*place) == Some(*key)));
        let number = |line: &csv::StringRecord, place: usize| line.get(place)?.parse::<f64>().ok();
        let baseline = place("baseline");
        let mut found: Vec<f64> = lines
            .filter_map(|line| Some(number(line, measured)? - baseline.map_or(Some(0.0), |place| number(line, place))?))
            .collect();
        found.sort_by(f64::total_cmp);
        let middle = found.len() / 2;
        match found.len() {
            0 => Err(format!("it has no line with {keys:?}")),
            odd if odd % 2 == 1 => Ok(found[middle]),
            _ => Ok((found[middle - 1] + found[middle]) / 2.0),
        }
    }
}

fn median(tables: &mut HashMap<String, Table>, file: &str, keys: &Kwargs) -> Result<f64, Error> {
    let failed = |why: String| Error::new(ErrorKind::InvalidOperation, format!("{file}: {why}"));
    if !tables.contains_key(file) {
        tables.insert(file.to_owned(), read(file).map_err(failed)?);
    }
    let mut wanted = Vec::new();
    for name in keys.args() {
        wanted.push((name, keys.get::<Value>(name)?.to_string()));
    }
    keys.assert_all_used()?;
    tables[file].median(&wanted).map_err(failed)
}

/// A number with `decimals` decimals, and a comma between thousands.
fn fixed(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut grouped = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{rest}")
}

fn rendered() -> String {
    let template = fs::read_to_string(root().join("bench/results.template.md")).expect("the template");
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_keep_trailing_newline(true);
    let tables = std::sync::Mutex::new(HashMap::new());
    environment.add_function("median", move |file: &str, keys: Kwargs| {
        median(&mut tables.lock().expect("one at a time"), file, &keys)
    });
    environment.add_filter("fixed", fixed);
    environment.render_str(&template, ()).unwrap_or_else(|error| panic!("{error:#}"))
}

#[test]
fn results_page_matches_the_data() {
    let (page, now) = (root().join("docs/results.md"), rendered());
    if std::env::var_os("WRITE_RESULTS").is_some() {
        fs::write(&page, &now).expect("writing the page");
    }
    let written = fs::read_to_string(&page).expect("the page");
    let differs = written.lines().zip(now.lines()).find(|(written, now)| written != now);
    assert!(written == now, "docs/results.md differs from the data, first at {differs:?}; make results writes it");
}

#[test]
fn unknown_figure_is_refused() {
    let table = read("cost-gate-20261122-linux-7.3.4-clang-19.1.7").expect("a file of raw results");
    let keys = |contender: &str| [("contender", contender.to_owned()), ("state", "idle".to_owned())];
    assert_eq!(table.median(&keys("prio+flower")), Ok(3966.1));
    assert!(table.median(&keys("nobody")).is_err_and(|why| why.contains("no line with")));
    assert!(table.median(&[("colour", "red".to_owned())]).is_err_and(|why| why.contains("no column colour")));
    assert_eq!([fixed(1234.5, 1), fixed(-0.6, 0), fixed(999.96, 1)], ["1,234.5", "-1", "1,000.0"]);
}
