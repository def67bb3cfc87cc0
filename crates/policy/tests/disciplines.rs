//! The schema, the fuzz dictionary and the docs name every discipline and every rank function of `abi/disciplines.h`.

use serde_json::Value;
use sluice_abi as abi;
use sluice_policy::SCHEMA;
use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_schema_has_them() {
    let schema: Value = serde_json::from_str(SCHEMA).expect("plain JSON");
    let values = |key: &str| -> Vec<String> {
        let list = schema["properties"][key]["enum"].as_array().unwrap_or_else(|| panic!("{key} has no enum"));
        list.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect()
    };
    assert_eq!(values("scheduler"), abi::disciplines().map(|one| one.name).collect::<Vec<_>>());
    assert_eq!(values("rank"), abi::rank_functions().map(|one| one.name).collect::<Vec<_>>());
}

#[test]
fn the_fuzz_dictionary_has_them() {
    let dictionary = read("fuzz/policy.dict");
    for one in abi::disciplines().chain(abi::rank_functions()) {
        assert!(dictionary.contains(&format!("\"\\\"{}\\\"\"", one.name)), "{} is missing", one.name);
    }
}

/// The table of the docs: a page for each, and its text.
#[test]
fn the_docs_have_them() {
    let table = read("docs/disciplines/README.md");
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| [`")).collect();
    let wanted: Vec<String> = abi::disciplines()
        .map(|one| format!("| [`{}`]({}.md) | {} |", one.name, one.name.replace('_', "-"), one.text))
        .collect();
    assert_eq!(rows, wanted);
    for one in abi::disciplines() {
        read(&format!("docs/disciplines/{}.md", one.name.replace('_', "-")));
    }
    let ranks = read("docs/disciplines/pifo.md");
    for one in abi::rank_functions() {
        assert!(ranks.contains(&format!("`{}`", one.name)), "{} is missing", one.name);
    }
}
