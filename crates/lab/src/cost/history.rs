//! The recorded figures of runs, by kernel and compiler, one line each.

use std::path::Path;

use comfy_table::Cell;

use super::figures::Figures;
use super::plan::Case;
use super::rows::Run;
use super::{entries, read_if_any, table};
use sluice_error::{Error, Kind, Result};

/// The history's file, beside the raw results.
pub const FILE: &str = "cost-history.csv";

const COLUMNS: &str = "date,kernel,compiler,contender,state,classes,rules,flows,repeats,added_instructions,\
                       spread_instructions,none_instructions";

/// Contenders whose figures are shown by default, also below a shaper.
const MAIN: [&str; 7] = [
    "prio+flower",
    "drr+flower",
    "htb+flower",
    "cake",
    "sluice-strict_priority",
    "sluice-strict_priority+flow_table",
    "sluice-deficit_round_robin",
];

/// A kept figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    date: String,
    kernel: String,
    compiler: String,
    case: Case,
    repeats: usize,
    added_instructions: f64,
    spread_instructions: f64,
    none_instructions: f64,
}

impl Entry {
    fn parse(line: &str) -> Option<Entry> {
        let words: Vec<&str> = line.split(',').collect();
        let &[date, kernel, compiler, contender, state, classes, rules, flows, repeats, added, spread, none] =
            words.as_slice()
        else {
            return None;
        };
        Some(Entry {
            date: date.to_owned(),
            kernel: kernel.to_owned(),
            compiler: compiler.to_owned(),
            case: Case::of([contender, state, classes, rules, flows])?,
            repeats: repeats.parse().ok()?,
            added_instructions: added.parse().ok()?,
            spread_instructions: spread.parse().ok()?,
            none_instructions: none.parse().ok()?,
        })
    }

    fn line(&self) -> String {
        let Entry { date, kernel, compiler, case, repeats, added_instructions, spread_instructions, none_instructions } =
            self;
        format!(
            "{date},{kernel},{compiler},{case},{repeats},{added_instructions:.1},{spread_instructions:.1},{none_instructions:.1}\n"
        )
    }

    fn is_main(&self) -> bool {
        MAIN.contains(&self.case.contender.trim_end_matches("+shaper"))
    }

    fn column(&self) -> (&str, &str) {
        (&self.kernel, &self.compiler)
    }
}

/// The entries of a history file; none if the file is missing.
pub fn read(file: &Path) -> Result<Vec<Entry>> {
    let Some(text) = read_if_any(file)? else { return Ok(Vec::new()) };
    let damaged = |number: usize| {
        Error::new(Kind::Input, format!("line {number} of {} is no figure of this bench", file.display()))
            .help("take it out, or fetch the file anew from the repository")
    };
    entries(&text, COLUMNS, Entry::parse).map_err(damaged)
}

/// The file's text with the run added; it replaces figures of the same cases and the same day.
pub fn with(kept: &[Entry], run: &Run, figures: &Figures) -> String {
    let new = figures.all.iter().map(|figure| Entry {
        date: run.date.clone(),
        kernel: run.kernel.clone(),
        compiler: run.compiler.clone(),
        case: figure.case.clone(),
        repeats: figure.repeats,
        added_instructions: figure.added_instructions,
        spread_instructions: figure.spread_instructions,
        none_instructions: figure.none_instructions,
    });
    let new: Vec<Entry> = new.collect();
    let same = |a: &Entry, b: &Entry| a.date == b.date && a.column() == b.column() && a.case == b.case;
    let mut all: Vec<&Entry> = kept.iter().filter(|old| !new.iter().any(|new| same(old, new))).chain(&new).collect();
    all.sort_by(|a, b| a.date.cmp(&b.date).then_with(|| numbers(&a.kernel).cmp(&numbers(&b.kernel))));
    all.iter().fold(format!("{COLUMNS}\n"), |text, entry| text + &entry.line())
}

/// A column for each kernel and compiler, with the newest figure for each case.
pub fn render(kept: &[Entry], only: &[String]) -> Result<String> {
    if kept.is_empty() {
        return Ok("Nothing was kept yet; `sluice lab cost --keep` does.\n".to_owned());
    }
    let named = |entry: &Entry| only.iter().any(|word| entry.case.contender.contains(word.as_str()));
    let chosen: Vec<&Entry> =
        kept.iter().filter(|entry| if only.is_empty() { entry.is_main() } else { named(entry) }).collect();
    if chosen.is_empty() {
        let what = format!("no figures are kept of a contender whose name contains \"{}\"", only.join("\" or \""));
        return Err(Error::new(Kind::Input, what).help("sluice lab cost --history"));
    }
    let mut columns: Vec<(&str, &str)> = chosen.iter().map(|entry| entry.column()).collect();
    columns.sort_by_key(|(kernel, compiler)| (numbers(kernel), numbers(compiler)));
    columns.dedup();
    let mut cases: Vec<&Case> = chosen.iter().map(|entry| &entry.case).collect();
    cases.sort_by_key(|case| (case.state, case.classes, case.flows, case.rules, &case.contender));
    cases.dedup();

    let titles: Vec<String> = columns.iter().map(|(kernel, compiler)| format!("{kernel}\n{compiler}")).collect();
    let mut header = vec!["contender", "state", "classes", "rules", "flows"];
    header.extend(titles.iter().map(String::as_str));
    header.push("last to first");
    let mut lines = table::lines(&header);
    for case in cases {
        let newest = |column: &(&str, &str)| {
            let of = chosen.iter().filter(|entry| entry.case == *case && entry.column() == *column);
            of.max_by(|a, b| a.date.cmp(&b.date)).map(|entry| entry.added_instructions)
        };
        let values: Vec<Option<f64>> = columns.iter().map(newest).collect();
        let known: Vec<f64> = values.iter().flatten().copied().collect();
        let mut cells = vec![case.contender.clone(), case.state.to_string()];
        cells.extend([case.classes, case.rules, case.flows].map(|number| number.to_string()));
        cells.extend(values.iter().map(|value| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}"))));
        cells.push(match known.as_slice() {
            [first, .., last] => format!("{:+.1} %", (last / first - 1.0) * 100.0),
            _ => "-".to_owned(),
        });
        lines.add_row(cells.into_iter().map(Cell::new));
    }
    let title = "Instructions per packet above no qdisc, by kernel and by the compiler of our programs.\n\
                 The kernel's own qdiscs show what the kernel changed; Sluice's figures have its own changes in them too.";
    Ok(format!("{title}\n{}\n", table::aligned(lines, 2)))
}

/// The numbers in a version, for comparison.
pub fn numbers(version: &str) -> Vec<u32> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::run;
    use super::*;

    fn kept(added: u32, date: &str, kernel: &str, before: &[Entry]) -> Vec<Entry> {
        let last = format!("sluice-strict_priority,idle,8,8,1,1,{}", 2000 + added);
        let run = Run {
            date: date.to_owned(),
            kernel: kernel.to_owned(),
            ..run(&["none,idle,0,0,1,1,2000", "pfifo_fast,idle,8,0,1,1,2100", &last])
        };
        let text = with(before, &run, &Figures::of(&run).unwrap());
        assert_eq!(text.lines().next(), Some(COLUMNS));
        text.lines().skip(1).map(|line| Entry::parse(line).unwrap()).collect()
    }

    #[test]
    fn figures_are_kept_once_a_day_and_shown_by_kernel() {
        let first = kept(1500, "2026-11-22", "7.10.1", &[]);
        assert_eq!(kept(1500, "2026-11-22", "7.10.1", &first), first);
        let second = kept(1650, "2026-11-23", "7.9.2", &kept(1490, "2026-11-23", "7.10.1", &first));
        assert_eq!(second.len(), 6);
        let text = render(&second, &[]).unwrap();
        let ours = text.lines().find(|line| line.contains("sluice-strict_priority")).unwrap();
        let words: Vec<&str> = ours.split(|c: char| "│┆ ".contains(c)).filter(|word| !word.is_empty()).collect();
        assert_eq!(words[5..], ["1650", "1490", "-9.7", "%"], "{text}");
        assert!(!text.contains("pfifo_fast"));
        assert!(render(&second, &["pfifo".to_owned()]).unwrap().contains("pfifo_fast"));
        assert_eq!(render(&second, &["cheese".to_owned()]).unwrap_err().kind, Kind::Input);
    }
}
