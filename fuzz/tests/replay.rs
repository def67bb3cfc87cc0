//! Every file of the corpora, and every input that once found something, through what is fuzzed.

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

/// The files of a target, by name.
fn inputs(target: &str) -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directories = ["corpus", "findings"].map(|kind| here.join(kind).join(target)).into_iter();
    let entries = directories.filter_map(|directory| fs::read_dir(directory).ok()).flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("can be listed").path()).collect();
    paths.sort();
    paths
}

fn replay(target: &str, run: fn(&[u8])) {
    let inputs = inputs(target);
    assert!(!inputs.is_empty(), "{target} has no corpus");
    for path in inputs {
        let bytes = fs::read(&path).expect("can be read");
        assert!(catch_unwind(|| run(&bytes)).is_ok(), "see above: {}", path.display());
    }
}

#[test]
fn policies() {
    replay("policy", sluice_fuzz::policy::run);
}

#[test]
fn packets() {
    replay("packet", sluice_fuzz::packet::run);
}

#[test]
fn captures() {
    replay("capture", sluice_fuzz::capture::run);
}

#[test]
fn words() {
    replay("words", sluice_fuzz::words::run);
}

/// libFuzzer puts words of the dictionary into policies; it must have all keys.
#[test]
fn the_dictionary_has_every_key() {
    let words = include_str!("../policy.dict");
    for (_, keys) in sluice_policy::ALL_KEYS {
        for key in *keys {
            assert!(words.contains(&format!(r#""\"{key}\"""#)), "policy.dict has no {key}");
        }
    }
}
