//! The modules of this crate are layers: each uses those that `lib.rs` lists before it, and none behind it.

use std::fs;
use std::path::{Path, PathBuf};

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The modules of `lib.rs` from the lowest on.
fn layers() -> Vec<String> {
    let library = fs::read_to_string(source().join("lib.rs")).expect("lib.rs");
    let modules = library.lines().filter_map(|line| {
        let line = line.strip_prefix("pub ").unwrap_or(line);
        line.strip_prefix("mod ")?.strip_suffix(';')
    });
    modules.map(str::to_owned).collect()
}

/// Every file below a directory, with its text.
fn files(directory: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else {
            let text = fs::read_to_string(&path).expect("a source file");
            found.push((path, text));
        }
    }
}

/// The layers that a file names. The tests in it may use anything.
fn used(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let code: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.starts_with("//")).collect();
    let name = |path: &str| path.trim().split(|c: char| !c.is_alphanumeric() && c != '_').next().map(str::to_owned);
    let paths = code.join(" ");
    let paths = paths.split("crate::").skip(1).flat_map(|path| match path.strip_prefix('{') {
        Some(list) => list.split('}').next().unwrap_or(list).split(',').filter_map(name).collect::<Vec<_>>(),
        None => name(path).into_iter().collect(),
    });
    paths.collect()
}

#[test]
fn a_layer_uses_none_above_it() {
    let layers = layers();
    let layer = |name: &str| layers.iter().position(|layer| layer == name);
    let mut found = Vec::new();
    files(&source(), &mut found);
    let mut wrong = Vec::new();
    for (path, text) in &found {
        let inside = path.strip_prefix(source()).expect("a file of this crate").with_extension("");
        let name = inside.components().next().expect("a name").as_os_str().to_string_lossy().into_owned();
        let Some(own) = layer(&name) else { continue };
        for other in used(text).iter().filter(|other| layer(other).is_some_and(|other| other > own)) {
            wrong.push(format!("{}: {name} is below {other}", inside.display()));
        }
    }
    assert!(layers.len() >= 8 && found.len() >= 60, "{} layers, {} files", layers.len(), found.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
