//! Messages about policies, word for word: every file `tests/golden/<group>/<case>.json` is compared with the text next to it.
//! `BLESS=1 cargo test` writes the texts anew; read the difference before committing it.
//!
//! A policy with subscribers may name tables in `tests/golden/tables`.
//!
//! The groups: `syntax` is not JSON; `shape` is refused by the schema as well (see `schema.rs`); `meaning` only by the
//! parser; `link` and `engine` by `resolve`; `remarks` works, with warnings and notes. A line `// rate: R` gives
//! `--rate R`, a line `// engine: tc` gives `--engine tc`.

use similar::TextDiff;
use sluice_policy::{Context, Diagnostics, Engine, Kind, Source, network, parse_file_with, resolve};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

const GROUPS: &[&str] = &["syntax", "shape", "meaning", "link", "engine", "remarks"];

fn cases(group: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(group);
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|ext| ext == "json")).collect();
    paths.sort();
    paths
}

fn table(name: &str) -> Result<Source, network::Unreadable> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/tables").join(name);
    match fs::read_to_string(path) {
        Ok(text) => Ok(Source::new(name, text)),
        Err(_) => Err(network::Unreadable {
            cause: format!("{name}: no such file"),
            cure: "check the path: it is relative to the policy's file".to_owned(),
        }),
    }
}

/// The stage that refused the policy, if one did, and its findings.
fn outcome(path: &Path) -> (&'static str, Diagnostics) {
    let text = fs::read_to_string(path).unwrap();
    let option = |name: &str| text.lines().find_map(|line| line.strip_prefix("// ")?.strip_prefix(name));
    let link_rate = option("rate: ").map(|rate| rate.parse().unwrap());
    let engine = if option("engine: ") == Some("tc") { Engine::Tc } else { Engine::Qdisc };
    let name = path.file_name().unwrap().to_str().unwrap();
    let source = Source::new(name, text.as_str());
    let context = Context { link_rate, engine, ..Context::default() };
    let policy = match parse_file_with(&source, None, &table) {
        Ok(file) => file.one(),
        Err(errors) => Err(errors),
    };
    let policy = match policy {
        Ok(policy) => policy,
        Err(errors) => return ("parse", errors),
    };
    match resolve(&policy, &context) {
        Ok(resolved) => ("", resolved.remarks),
        Err(errors) => ("resolve", errors),
    }
}

#[test]
fn messages_are_as_expected() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut wrong = String::new();
    for group in GROUPS {
        for path in cases(group) {
            let (stage, findings) = outcome(&path);
            let expected_stage = match *group {
                "remarks" => "",
                "link" | "engine" => "resolve",
                _ => "parse",
            };
            assert_eq!(stage, expected_stage, "{} is in the wrong group:\n{findings}", path.display());
            let text = findings.render(false);
            let expected_path = path.with_extension("txt");
            if bless {
                fs::write(&expected_path, &text).unwrap();
                continue;
            }
            let expected = fs::read_to_string(&expected_path).unwrap_or_default();
            if text != expected {
                let (diff, name) = (TextDiff::from_lines(&expected, &text), expected_path.display().to_string());
                wrong += &diff.unified_diff().header(&name, "now").to_string();
            }
        }
    }
    assert!(wrong.is_empty(), "messages differ; if they are better now, run with BLESS=1\n{wrong}");
}

#[test]
fn every_kind_of_finding_has_a_case() {
    let mut seen = HashSet::new();
    for path in GROUPS.iter().flat_map(|group| cases(group)) {
        seen.extend(outcome(&path).1.iter().map(|finding| finding.kind()));
    }
    let unseen: Vec<&Kind> = Kind::ALL.iter().filter(|kind| !seen.contains(kind)).collect();
    assert!(unseen.is_empty(), "no case for {unseen:?}");
}

#[test]
fn every_error_has_a_place_and_a_cure() {
    for path in GROUPS.iter().flat_map(|group| cases(group)) {
        let (_, findings) = outcome(&path);
        for finding in findings.iter().filter(|finding| finding.severity() == sluice_policy::Severity::Error) {
            let what = format!("{}: {}", path.display(), finding.title());
            assert!(findings.line_column(finding).is_some(), "no place: {what}");
            assert!(finding.cures().next().is_some(), "no cure: {what}");
        }
    }
}
