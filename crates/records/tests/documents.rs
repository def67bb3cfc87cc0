//! The documents that describe and use records: the tables of columns, and the notebook.

use sluice_records::column::Type;
use sluice_records::{Column, Flow, Packet, Record};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Names and types of the rows of the table below a title.
fn documented(text: &str, title: &str) -> Vec<(String, String)> {
    let section = text.split(&format!("## {title}\n")).nth(1).expect("the section");
    let rows = section.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    rows.take_while(|line| line.starts_with('|'))
        .map(|line| {
            let mut cells = line.split('|').map(str::trim).skip(1);
            let name = cells.next().expect("a name").trim_matches('`').to_owned();
            (name, cells.next().expect("a type").to_owned())
        })
        .collect()
}

fn described(columns: &[Column]) -> Vec<(String, String)> {
    let word = |column: &Column| {
        let kind = match column.kind {
            Type::U8 => "u8",
            Type::U16 => "u16",
            Type::U32 => "u32",
            Type::U64 => "u64",
            Type::Time => "time",
            Type::Float => "float",
            Type::Text | Type::Address => "text",
            Type::Bool => "bool",
        };
        format!("{kind}{}", if column.optional { ", optional" } else { "" })
    };
    columns.iter().map(|column| (column.name.to_owned(), word(column))).collect()
}

#[test]
fn every_column_is_documented() {
    let text = std::fs::read_to_string(root().join("docs/features.md")).expect("the page");
    assert_eq!(documented(&text, "Rows of packets"), described(Packet::COLUMNS));
    assert_eq!(documented(&text, "Rows of flows"), described(Flow::COLUMNS));
    assert!(text.contains(&format!("The version of the columns is {}.", sluice_records::SCHEMA_VERSION)));
}

#[test]
fn the_notebook_is_whole_and_has_no_results() {
    let text = std::fs::read_to_string(root().join("examples/classes/train.ipynb")).expect("the notebook");
    let has_path = ["home", "root", "tmp"].iter().any(|directory| text.contains(&format!("/{directory}/")));
    assert!(!has_path, "a path of a machine");
    let notebook: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((notebook["nbformat"].as_u64(), notebook["nbformat_minor"].as_u64()), (Some(4), Some(5)));
    let cells = notebook["cells"].as_array().expect("cells");
    assert!(cells.len() > 5);
    for cell in cells {
        assert!(cell["id"].is_string() && cell["metadata"].is_object(), "{cell}");
        match cell["cell_type"].as_str() {
            Some("markdown") => {}
            Some("code") => {
                assert_eq!(cell["outputs"].as_array().map(Vec::len), Some(0), "results are not kept: {cell}");
                assert!(cell["execution_count"].is_null());
            }
            other => panic!("a cell of kind {other:?}"),
        }
    }
}
