//! The virtual machine, `vm/run` of the source tree; it is shut down on every way out.

use std::path::Path;
use std::thread;
use std::time::Duration;

use super::Options;
use super::plan::{Case, State};
use super::rows::{self, Row};
use crate::run::progress::Progress;
use sluice_error::{Error, Kind, Result};
use sluice_testbed::interrupt::Interrupt;
use sluice_testbed::process::{self, Line, Output, Process};

/// Packets per measurement in idle queues.
const PACKETS: u32 = 50_000;
/// Time until the guest measures, on an idle machine.
const BOOT: Duration = Duration::from_secs(20);
/// Time limit for fetching a kernel.
const FETCH: Duration = Duration::from_secs(900);
/// Factor by which a busy machine may be slower than an idle one.
const BUSY_FACTOR: u32 = 5;
/// Time limit of `vm/run` for its shutdown.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(20);
/// Interval between checks of the machine's output and of Ctrl-C.
const POLL: Duration = Duration::from_millis(100);

/// The version of the kernel that the machine will have, such as 7.3.4; fetched first if need be.
pub fn kernel(tree: &Path, role: &str) -> Result<String> {
    let directory = process::run("vm/kernel", tree.join("vm/kernel"), &[role], FETCH)?;
    let file = Path::new(directory.trim()).join("version");
    let text = std::fs::read_to_string(&file)
        .map_err(|error| Error::system(format!("cannot read {}: {error}", file.display())))?;
    rows::number_after(&text, "package=")
        .ok_or_else(|| Error::system(format!("{} does not name the kernel's version", file.display())))
}

/// Measures the cases in order.
pub fn measure(options: &Options, tree: &Path, cases: &[Case]) -> Result<Vec<Row>> {
    let interrupt = Interrupt::catch()?;
    let nominal: Duration = BOOT + cases.iter().map(|case| case.nominal(options.repeats)).sum::<Duration>();
    let mut progress = Progress::new(nominal, options.color);
    progress.phase(&format!("starting a machine with the kernel {}", options.role), BOOT);
    let mut machine = start(options, tree, cases, nominal * BUSY_FACTOR)?;
    let (mut rows, mut begun) = (Vec::new(), 0);
    let mut taken = 0;
    loop {
        if interrupt.check().is_err() {
            drop(machine);
            return Err(Error::new(Kind::Interrupted, "interrupted; the machine was taken down, and nothing is kept"));
        }
        progress.tick();
        if !machine.running()? {
            break;
        }
        let lines = printed(machine.lines());
        for line in &lines[taken..] {
            if line != READY {
                rows.push(expected(line, cases, options.repeats, rows.len())?);
            }
            let next = rows.len() / options.repeats as usize;
            if next == begun && next < cases.len() {
                let what = format!("{}/{} {}", next + 1, cases.len(), title(&cases[next]));
                progress.phase(&what, cases[next].nominal(options.repeats));
                begun = next + 1;
            }
        }
        taken = lines.len();
        thread::sleep(POLL);
    }
    drop(progress);
    let output = machine.finish(SHUTDOWN_LIMIT, || Ok(()))?;
    succeeded(&output, &options.role)?;
    for line in printed(output.lines).iter().skip(taken).filter(|line| *line != READY) {
        rows.push(expected(line, cases, options.repeats, rows.len())?);
    }
    let wanted = cases.len() * options.repeats as usize;
    if rows.len() < wanted {
        let missing = &cases[rows.len() / options.repeats as usize];
        return Err(Error::system(format!(
            "the bench ended after {} of {wanted} measurements, before {missing}",
            rows.len()
        )));
    }
    Ok(rows)
}

/// The line that the guest prints once it measures.
const READY: &str = "ready";

/// The next row, which must be of the case whose turn it is.
fn expected(line: &str, cases: &[Case], repeats: u32, before: usize) -> Result<Row> {
    let repeats = repeats as usize;
    let unexpected = || Error::system(format!("the bench printed an unexpected line: {line}"));
    let row = rows::parse(line).ok_or_else(unexpected)?;
    let in_turn = cases.get(before / repeats) == Some(&row.case) && row.repeat as usize == before % repeats + 1;
    if in_turn { Ok(row) } else { Err(unexpected()) }
}

fn title(case: &Case) -> String {
    let Case { contender, state, classes, rules, flows } = case;
    let mut parts = vec![contender.clone(), if *state == State::Idle { "idle" } else { "backlogged" }.to_owned()];
    for (count, one, many) in [(*classes, "class", "classes"), (*rules, "rule", "rules"), (*flows, "flow", "flows")] {
        if count > 0 {
            parts.push(format!("{count} {}", if count == 1 { one } else { many }));
        }
    }
    parts.join(", ")
}

/// Starts `vm/run`.
fn start(options: &Options, tree: &Path, cases: &[Case], limit: Duration) -> Result<Process> {
    let mut arguments: Vec<String> =
        ["--kernel", &options.role, "--icount", "--timeout", &limit.as_secs().to_string(), "--add"]
            .map(str::to_owned)
            .into();
    arguments.push(format!("{}:/usr/bin/sluice", options.sluice.display()));
    arguments
        .extend(["--add".to_owned(), format!("{}:/usr/local/share/sluice/policies", tree.join("policies").display())]);
    arguments.push(tree.join("bench/cost").display().to_string());
    arguments.extend([PACKETS.to_string(), options.repeats.to_string()]);
    arguments.extend(cases.iter().map(Case::to_string));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Process::start_with_cleanup("vm/run", tree.join("vm/run"), &arguments)
}

/// The lines that the guest printed.
fn printed(lines: Vec<Line>) -> Vec<String> {
    lines.into_iter().filter(|line| !line.is_error).map(|line| line.text).collect()
}

fn succeeded(output: &Output, role: &str) -> Result<()> {
    if output.status.success() {
        return Ok(());
    }
    let (status, stderr) = (output.status, output.stderr.trim());
    let what = format!("the bench in the machine with the kernel {role} failed ({status}): {stderr}");
    Err(match status.code() {
        Some(125) if stderr.contains("is missing") => Error::new(Kind::Unsupported, what).help("scripts/setup vm"),
        Some(124) => Error::system(what).help("this machine is too busy for it; try again when it is not"),
        _ => Error::system(what),
    })
}

#[cfg(test)]
mod tests {
    use super::super::plan;
    use super::*;

    #[test]
    fn rows_out_of_order_are_refused() {
        let cases = plan::gate();
        let line = |case: &Case, repeat: u32| format!("{case},{repeat},2000.0");
        assert!(expected(&line(&cases[0], 1), &cases, 2, 0).is_ok());
        assert!(expected(&line(&cases[1], 2), &cases, 2, 3).is_ok());
        for (line, before) in [(line(&cases[0], 1), 1), (line(&cases[1], 1), 0), ("noise".to_owned(), 0)] {
            assert!(expected(&line, &cases, 2, before).unwrap_err().what.contains(&line));
        }
        assert!(expected(&line(&cases[0], 1), &cases, 2, cases.len() * 2).is_err());
    }

    #[test]
    fn titles_are_readable() {
        let case = plan::gate().into_iter().find(|case| case.contender == "prio+flower").unwrap();
        assert_eq!(title(&case), "prio+flower, idle, 8 classes, 8 rules, 1 flow");
    }
}
