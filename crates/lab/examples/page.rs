//! What a run found, shown: `cargo run -p sluice-lab --example page -- RESULTS.JSON [LATER-RESULTS.JSON]` prints the
//! summary and writes page.html, page.md and page.csv here; of two runs it prints the comparison.

use std::fs;
use std::process::ExitCode;

use sluice_lab::page;
use sluice_lab::results::Results;

fn main() -> ExitCode {
    match show() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn show() -> Result<(), Box<dyn std::error::Error>> {
    let runs = std::env::args()
        .skip(1)
        .map(|path| Ok(serde_json::from_slice(&fs::read(path)?)?))
        .collect::<Result<Vec<Results>, Box<dyn std::error::Error>>>()?;
    let color = std::env::var_os("NO_COLOR").is_none();
    match runs.as_slice() {
        [results] => {
            fs::write("page.html", page::html(results)?)?;
            fs::write("page.md", page::markdown(results))?;
            fs::write("page.csv", page::csv(results)?)?;
            print!("{}", page::summary(results, color));
        }
        [before, after] => print!("{}", page::compare(before, after).text(color)),
        _ => return Err("name one results.json, or two to compare them".into()),
    }
    Ok(())
}
