//! The cost gate: the added cost of Sluice, as a share of a kernel qdisc's in the same run, against the recorded share.

use std::path::Path;

use comfy_table::Cell;

use super::figures::Figures;
use super::history::numbers;
use super::plan::{self, Case};
use super::rows::Run;
use super::{entries, read_if_any, table};
use sluice_error::{Error, Kind, Result};

/// The record, beside the raw results.
pub const FILE: &str = "cost-gate.csv";

const COLUMNS: &str = "date,kernel,compiler,contender,state,classes,rules,flows,reference,ratio";
/// The tolerated difference, as a part of the share.
const TOLERANCE: f64 = 0.05;

/// A recorded share.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    date: String,
    kernel: String,
    compiler: String,
    case: Case,
    ratio: f64,
}

impl Entry {
    fn parse(line: &str) -> Option<Entry> {
        let words: Vec<&str> = line.split(',').collect();
        let &[date, kernel, compiler, contender, state, classes, rules, flows, reference, ratio] = words.as_slice()
        else {
            return None;
        };
        let case = Case::of([contender, state, classes, rules, flows])?;
        let ratio = ratio.parse().ok().filter(|ratio: &f64| ratio.is_finite() && *ratio > 0.0)?;
        let entry =
            Entry { date: date.to_owned(), kernel: kernel.to_owned(), compiler: compiler.to_owned(), case, ratio };
        (entry.case.reference().contender == reference).then_some(entry)
    }

    fn line(&self) -> String {
        let Entry { date, kernel, compiler, case, ratio } = self;
        format!("{date},{kernel},{compiler},{case},{},{ratio:.4}\n", case.reference().contender)
    }
}

/// The kernel series of a record: the first two numbers of the version.
fn series(kernel: &str) -> Vec<u32> {
    numbers(kernel).into_iter().take(2).collect()
}

/// The entries of a record file; none if the file is missing.
pub fn read(file: &Path) -> Result<Vec<Entry>> {
    let Some(text) = read_if_any(file)? else { return Ok(Vec::new()) };
    let damaged = |number: usize| {
        Error::new(Kind::Input, format!("line {number} of {} is no record of the gate", file.display()))
            .help("fetch the file anew from the repository, or remove it and record: sluice lab cost --gate --keep")
    };
    entries(&text, COLUMNS, Entry::parse).map_err(damaged)
}

/// The file's text with these shares instead of those of the same kernel series and compiler.
pub fn with(record: &[Entry], run: &Run, ratios: &[(Case, f64)]) -> String {
    let stays = |entry: &&Entry| series(&entry.kernel) != series(&run.kernel) || entry.compiler != run.compiler;
    let mut all: Vec<Entry> = record.iter().filter(stays).cloned().collect();
    all.extend(ratios.iter().map(|(case, ratio)| Entry {
        date: run.date.clone(),
        kernel: run.kernel.clone(),
        compiler: run.compiler.clone(),
        case: case.clone(),
        ratio: *ratio,
    }));
    all.iter().fold(format!("{COLUMNS}\n"), |text, entry| text + &entry.line())
}

/// The verdict on one contender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Same,
    Rose,
    Fell,
    /// The case or its reference is not in the run.
    Missing,
    NotRecorded,
}

struct Finding {
    case: Case,
    recorded: Option<f64>,
    found: Option<f64>,
}

impl Finding {
    fn verdict(&self) -> Verdict {
        match (self.found, self.recorded) {
            (None, _) => Verdict::Missing,
            (_, None) => Verdict::NotRecorded,
            (Some(found), Some(recorded)) if found > recorded * (1.0 + TOLERANCE) => Verdict::Rose,
            (Some(found), Some(recorded)) if found < recorded * (1.0 - TOLERANCE) => Verdict::Fell,
            _ => Verdict::Same,
        }
    }

    /// The contender's name, with the state and the classes.
    fn name(&self) -> String {
        let Case { contender, state, classes, rules, .. } = &self.case;
        let rules = if rules == classes { String::new() } else { format!(", {rules} rules") };
        format!("{contender} ({state}, {classes} classes{rules})")
    }

    /// The reason why the contender fails the gate.
    fn complaint(&self) -> Option<String> {
        let (name, reference) = (self.name(), self.case.reference().contender);
        let share = |ratio: Option<f64>| ratio.map_or_else(|| "nothing".to_owned(), table::percent);
        match self.verdict() {
            Verdict::Same | Verdict::Fell => None,
            Verdict::Rose => Some(format!(
                "{name} costs {} of the cost of {reference}; on record are {}",
                share(self.found),
                share(self.recorded)
            )),
            Verdict::Missing => Some(format!("{name} or {reference}, its reference, is missing from the run")),
            Verdict::NotRecorded => {
                Some(format!("{name} costs {} of the cost of {reference}; nothing is on record", share(self.found)))
            }
        }
    }
}

/// The findings on all contenders.
pub struct Findings {
    /// A remark on the substitute record, if this kernel series and compiler have none.
    note: Option<String>,
    findings: Vec<Finding>,
}

/// Holds a run against the record of its kernel series and compiler; else of its series; else the newest.
pub fn judge(record: &[Entry], run: &Run, figures: &Figures) -> Findings {
    let of_series = |entry: &&Entry| series(&entry.kernel) == series(&run.kernel);
    let newest = |entry: &&Entry| (entry.date.clone(), numbers(&entry.kernel), numbers(&entry.compiler));
    let exact = record.iter().filter(of_series).find(|entry| entry.compiler == run.compiler);
    let base = exact
        .or_else(|| record.iter().filter(of_series).max_by_key(newest))
        .or_else(|| record.iter().max_by_key(newest));
    let note = base.filter(|_| exact.is_none()).map(|base| {
        format!(
            "There is no record for Linux {} with {}: held against that for Linux {} with {}, of {}.",
            run.kernel, run.compiler, base.kernel, base.compiler, base.date
        )
    });
    let recorded = |case: &Case| {
        let base = base?;
        let same = |entry: &&Entry| {
            series(&entry.kernel) == series(&base.kernel) && entry.compiler == base.compiler && entry.case == *case
        };
        record.iter().find(same).map(|entry| entry.ratio)
    };
    let findings = plan::gate().into_iter().filter(Case::is_ours).map(|case| Finding {
        recorded: recorded(&case),
        found: figures.ratio(&case),
        case,
    });
    Findings { note, findings: findings.collect() }
}

impl Findings {
    /// The findings as text for people.
    pub fn text(&self) -> String {
        let mut lines = table::lines(&["contender", "reference", "recorded", "found", "change", ""]);
        for finding in &self.findings {
            let share = |ratio: Option<f64>| ratio.map_or_else(|| "-".to_owned(), table::percent);
            let change = match (finding.found, finding.recorded) {
                (Some(found), Some(recorded)) => format!("{:+.1} %", (found / recorded - 1.0) * 100.0),
                _ => "-".to_owned(),
            };
            let verdict = match finding.verdict() {
                Verdict::Same => "as recorded",
                Verdict::Rose => "ROSE",
                Verdict::Fell => "fell",
                Verdict::Missing => "MISSING",
                Verdict::NotRecorded => "NOT RECORDED",
            };
            let reference = finding.case.reference().contender;
            let cells =
                [finding.name(), reference, share(finding.recorded), share(finding.found), change, verdict.to_owned()];
            lines.add_row(cells.map(Cell::new));
        }
        let title = "Cost that Sluice adds to a packet, as a share of the reference's in the same run";
        let mut text = format!("\n{title}\n{}\n", table::aligned(lines, 2));
        if let Some(note) = &self.note {
            text += &format!("{note}\n");
        }
        if self.findings.iter().any(|finding| finding.verdict() == Verdict::Fell) {
            text += &format!(
                "One fell by more than {:.0} %: the record can be renewed with `sluice lab cost --gate --keep`.\n",
                TOLERANCE * 100.0
            );
        }
        text
    }

    /// The error of a closed gate.
    pub fn failure(&self) -> Option<Error> {
        let complaints: Vec<String> = self.findings.iter().filter_map(Finding::complaint).collect();
        if complaints.is_empty() {
            return None;
        }
        let what =
            format!("the cost gate is shut (it allows {:.0} %):\n  {}", TOLERANCE * 100.0, complaints.join("\n  "));
        Some(
            Error::system(what)
                .help("find the cause of the rise; if it is justified, record it: sluice lab cost --gate --keep"),
        )
    }

    /// Every measured share; an error if one is missing.
    pub fn ratios(&self) -> Result<Vec<(Case, f64)>> {
        let missing = |finding: &Finding| {
            Error::system(format!("{}; nothing was recorded", finding.complaint().unwrap_or_default()))
        };
        let found = |finding: &Finding| Some((finding.case.clone(), finding.found?));
        self.findings.iter().map(|finding| found(finding).ok_or_else(|| missing(finding))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::run;
    use super::*;

    /// A run of the whole gate in which Sluice costs `per_mille` of its references, without the contender named by `without`.
    fn measured(per_mille: u32, without: Option<&str>) -> (Run, Figures) {
        let lines: Vec<String> = plan::gate()
            .iter()
            .filter(|case| Some(case.contender.as_str()) != without)
            .map(|case| {
                let value = match case {
                    case if case.contender == plan::NONE => 2000,
                    case if case.is_ours() => 2000 + 2 * per_mille,
                    _ => 4000,
                };
                format!("{case},1,{value}")
            })
            .collect();
        let run = run(&lines.iter().map(String::as_str).collect::<Vec<&str>>());
        let figures = Figures::of(&run).unwrap();
        (run, figures)
    }

    fn recorded(per_mille: u32) -> Vec<Entry> {
        let (run, figures) = measured(per_mille, None);
        let text = with(&[], &run, &judge(&[], &run, &figures).ratios().unwrap());
        text.lines().skip(1).map(|line| Entry::parse(line).unwrap()).collect()
    }

    #[test]
    fn rise_closes_the_gate_and_names_the_contender() {
        let record = recorded(800);
        for (per_mille, shut) in [(800, false), (838, false), (842, true), (900, true), (700, false)] {
            let (run, figures) = measured(per_mille, None);
            let judgement = judge(&record, &run, &figures);
            assert_eq!(judgement.failure().is_some(), shut, "{per_mille}");
            assert_eq!(judgement.text().contains("can be renewed"), per_mille == 700);
            if let Some(error) = judgement.failure() {
                assert_eq!(error.exit_code(), 1);
                let words = format!(
                    "sluice-deficit_round_robin+shaper (backlogged, 8 classes) costs {:.1} %",
                    f64::from(per_mille) / 10.0
                );
                assert!(error.what.contains(&words) && error.what.contains("on record are 80.0 %"), "{error}");
            }
        }
    }

    #[test]
    fn single_rise_is_found() {
        let (mut run, _) = measured(800, None);
        let slower = "sluice-strict_priority+flow_table";
        let row = run.rows.iter_mut().find(|row| row.case.contender == slower).unwrap();
        row.instructions += 100.0;
        let figures = Figures::of(&run).unwrap();
        let error = judge(&recorded(800), &run, &figures).failure().unwrap();
        assert!(error.what.contains("flow_table (idle, 8 classes) costs 85.0 %"), "{error}");
        assert_eq!(error.what.lines().count(), 2);
    }

    #[test]
    fn missing_case_closes_the_gate() {
        let record = recorded(800);
        for missing in ["sluice-strict_priority", "prio+flower", "drr+flower+shaper"] {
            let (run, figures) = measured(800, Some(missing));
            let judgement = judge(&record, &run, &figures);
            assert!(judgement.failure().unwrap().what.contains(missing), "{missing}");
            assert!(judgement.ratios().is_err(), "{missing}");
        }
        let (run, figures) = measured(800, None);
        assert!(judge(&[], &run, &figures).failure().unwrap().what.contains("nothing is on record"));
        assert!(judge(&record[1..], &run, &figures).failure().unwrap().what.contains("nothing is on record"));
    }

    #[test]
    fn unknown_kernel_or_compiler_uses_the_nearest_record_with_a_remark() {
        let (run, figures) = measured(800, None);
        let other = Run { kernel: "7.2.12".to_owned(), ..run.clone() };
        let old = with(&recorded(800), &other, &judge(&[], &run, &measured(600, None).1).ratios().unwrap());
        let record: Vec<Entry> = old.lines().skip(1).map(|line| Entry::parse(line).unwrap()).collect();
        assert_eq!(record.len(), 2 * recorded(800).len());
        let patched = Run { kernel: "7.3.9".to_owned(), ..run.clone() };
        let judgement = judge(&record, &patched, &figures);
        assert!(judgement.failure().is_none() && judgement.note.is_none());
        let newer = Run { kernel: "7.4.1".to_owned(), ..run.clone() };
        let judgement = judge(&record, &newer, &figures);
        assert!(judgement.failure().is_none());
        assert!(judgement.note.is_some_and(|note| note.contains("7.4.1") && note.contains("for Linux 7.3.4")));
        let compiled = Run { compiler: "clang 22.1.0".to_owned(), kernel: "7.2.1".to_owned(), ..run };
        let judgement = judge(&record, &compiled, &figures);
        assert!(judgement.failure().is_some());
        assert!(judgement.note.is_some_and(|note| note.contains("for Linux 7.2.12 with clang 19.1.7")));
    }
}
