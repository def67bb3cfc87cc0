//! The schema, the fuzz dictionary and the docs have every discipline and every rank function of `abi/disciplines.h`. `make lists` writes
//! them from there; without that, a file that differs fails here.

use sluice_abi as abi;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Makes the file what `wanted` makes of its text, or fails if it is not that already.
fn list(name: &str, wanted: impl Fn(&str) -> String) {
    let path = path(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let new = wanted(&text);
    if env::var_os("WRITE_LISTS").is_some() {
        fs::write(&path, new).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    } else {
        assert_eq!(text, new, "{name} differs from abi/disciplines.h: `make lists` writes it");
    }
}

/// The text with what is between two marks replaced. The first mark must be there, and the second behind it.
fn between(text: &str, before: &str, after: &str, new: &str) -> String {
    let start = text.find(before).unwrap_or_else(|| panic!("no {before:?}")) + before.len();
    let end = start + text[start..].find(after).unwrap_or_else(|| panic!("no {after:?} behind {before:?}"));
    format!("{}{new}{}", &text[..start], &text[end..])
}

/// Each as a string of JSON.
fn quoted(lines: impl Iterator<Item = abi::Discipline>) -> Vec<String> {
    lines.map(|one| format!("\"{}\"", one.name)).collect()
}

fn page(one: abi::Discipline) -> String {
    format!("{}.md", one.name.replace('_', "-"))
}

/// A class's keys that have an effect, as a cell of a table.
fn keys(one: abi::Discipline) -> String {
    let names = [
        (abi::SL_KEY_PRIORITY, "priority"),
        (abi::SL_KEY_WEIGHT, "weight"),
        (abi::SL_KEY_QUANTUM, "quantum"),
        (abi::SL_KEY_LATENCY_BUDGET, "latency_budget"),
    ];
    let used: Vec<String> =
        names.iter().filter(|(bit, _)| one.keys & bit != 0).map(|(_, name)| format!("`{name}`")).collect();
    match one.number {
        abi::SL_PIFO => "the keys of the rank".to_owned(),
        _ => used.join(", "),
    }
}

#[test]
fn schema_lists_every_discipline() {
    list("policies/policy.schema.json", |text| {
        let text = between(
            text,
            "\"description\": \"The discipline.\",\n      \"enum\": [",
            "]",
            &quoted(abi::disciplines()).join(", "),
        );
        let before = "\"description\": \"What a PIFO orders by; the smallest goes first.\",\n      \"enum\": [";
        between(&text, before, "]", &quoted(abi::rank_functions()).join(", "))
    });
}

#[test]
fn fuzz_dictionary_lists_every_discipline() {
    let names = quoted(abi::disciplines().chain(abi::rank_functions()));
    let lines: Vec<String> = names.iter().map(|name| format!("{:?}\n", name)).collect();
    list("fuzz/policy.dict", |text| between(text, "# Disciplines and ranks.\n", "# End.\n", &lines.concat()));
}

/// The tables of the docs, and a page for each discipline.
#[test]
fn docs_list_every_discipline() {
    let rows: Vec<String> =
        abi::disciplines().map(|one| format!("| [`{}`]({}) | {} |", one.name, page(one), one.text)).collect();
    let before = "| `scheduler` | the class that sends next |\n|---|---|\n";
    list("docs/disciplines/README.md", |text| between(text, before, "\n\n", &rows.join("\n")));

    let row = |one: abi::Discipline| {
        let on_tc = if one.on_tc == one.number && one.number != abi::SL_PIFO { "yes" } else { "no" };
        format!("| [`{}`](disciplines/{}) | {} | {} | {on_tc} |", one.name, page(one), one.text, keys(one))
    };
    let before = "| `scheduler` | the class that sends next | keys | engine `tc` |\n|---|---|---|---|\n";
    let rows: Vec<String> = abi::disciplines().map(row).collect();
    list("docs/policy.md", |text| between(text, before, "\n\n", &rows.join("\n")));

    for one in abi::disciplines() {
        let page = path("docs/disciplines").join(page(one));
        assert!(page.exists(), "{} is missing", page.display());
    }
    let ranks = fs::read_to_string(path("docs/disciplines/pifo.md")).expect("a page");
    for one in abi::rank_functions() {
        assert!(ranks.contains(&format!("`{}`", one.name)), "{} is missing", one.name);
    }
}
