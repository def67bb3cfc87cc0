//! `sluice doctor`: findings by area, each with its cure.

use crate::args::Doctor;
use crate::failure::Failure;
use sluice_kernel::doctor::{Finding, Verdict, examine};

pub fn run(args: &Doctor, color: bool) -> Result<(), Failure> {
    let findings = examine()?;
    if args.json {
        let json = serde_json::to_string_pretty(&findings).map_err(|error| Failure::system(error.to_string()))?;
        outln!("{json}");
        return Ok(());
    }
    let width = findings.iter().map(|finding| finding.what.len()).max().unwrap_or(0);
    let mut area = "";
    for finding in &findings {
        if finding.area != area {
            area = &finding.area;
            outln!("{area}");
        }
        show(finding, width, color);
    }
    Ok(())
}

fn show(finding: &Finding, width: usize, color: bool) {
    let (word, code) = match finding.verdict {
        Verdict::Good => ("ok  ", "32"),
        Verdict::Lacking => ("note", "33"),
        Verdict::Bad => ("bad ", "31"),
        Verdict::Unknown => ("-   ", "0"),
    };
    let word = if color { format!("\x1b[{code}m{word}\x1b[0m") } else { word.to_owned() };
    outln!("  {word}  {:width$}  {}", finding.what, finding.detail);
    if let Some(cure) = &finding.cure {
        outln!("        {:width$}  -> {cure}", "");
    }
}
