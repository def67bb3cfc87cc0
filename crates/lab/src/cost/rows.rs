//! The lines of the guest, and the files of raw results: one line per measurement.

use std::path::Path;

use super::plan::{Case, State};
use super::unreadable;
use sluice_error::{Error, Kind, Result};

/// Names of the columns.
pub const COLUMNS: &str = "contender,state,classes,rules,flows,repeat,instructions_per_packet";
/// The columns of files from before there were flows: 1 in idle queues, as many as classes in backlogged ones.
const FORMER_COLUMNS: &str = "contender,state,classes,rules,repeat,instructions_per_packet";

/// One measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The measured case.
    pub case: Case,
    /// The repeat, from 1.
    pub repeat: u32,
    /// Instructions per packet, those of the device and the generator of the packets included.
    pub instructions: f64,
}

/// The measurements of one run, and its machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The date, UTC, as YYYY-MM-DD.
    pub date: String,
    /// The kernel's version, such as 7.3.4.
    pub kernel: String,
    /// The compiler of the BPF programs, such as "clang 19.1.7".
    pub compiler: String,
    /// The measurements in the order in which they came.
    pub rows: Vec<Row>,
}

impl Run {
    /// The run as a CSV file.
    pub fn csv(&self) -> String {
        let Run { date, kernel, compiler, rows } = self;
        let head =
            format!("# bench cost, {date}, kernel {kernel}, icount (1 instruction = 1 ns), {compiler}\n{COLUMNS}\n");
        rows.iter().fold(head, |text, row| text + &format!("{},{},{:.1}\n", row.case, row.repeat, row.instructions))
    }
}

/// Parses a line that the guest printed.
pub fn parse(line: &str) -> Option<Row> {
    let words: Vec<&str> = line.split(',').collect();
    let &[contender, state, classes, rules, flows, repeat, instructions] = words.as_slice() else { return None };
    let case = Case::of([contender, state, classes, rules, flows])?;
    let instructions = instructions.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0)?;
    Some(Row { case, repeat: repeat.parse().ok()?, instructions })
}

fn parse_former(line: &str) -> Option<Row> {
    let (contender, rest) = line.split_once(',')?;
    let words: Vec<&str> = rest.split(',').collect();
    let &[state, classes, rules, repeat, instructions] = words.as_slice() else { return None };
    let (state, flows) = match state {
        "backlogged" => (State::BackloggedEnqueue, classes),
        _ => (State::Idle, "1"),
    };
    parse(&format!("{contender},{state},{classes},{rules},{flows},{repeat},{instructions}"))
}

/// Reads a file of raw results.
pub fn read(file: &Path) -> Result<Run> {
    let text = std::fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    of_text(&text, &name).map_err(|why| {
        Error::new(Kind::Input, format!("{} has no raw results of this bench: {why}", file.display()))
            .help("they are in bench/data/cost-DATE-linux-VERSION*.csv")
    })
}

fn of_text(text: &str, name: &str) -> std::result::Result<Run, String> {
    let mut lines = (1..).zip(text.lines());
    let head = lines.next().map(|(_, line)| line).filter(|line| line.starts_with("# bench cost,"));
    let head = head.ok_or("the first line is not a comment that begins with \"# bench cost,\"")?;
    let date = head.split(", ").nth(1).filter(|word| is_date(word)).map(str::to_owned);
    let date = date.or_else(|| date_in_name(name)).ok_or("neither its first line nor its name has the date")?;
    let kernel = number_after(head, "kernel package ").or_else(|| number_after(head, "kernel "));
    let kernel = kernel.ok_or("its first line names no kernel")?;
    let clang = number_after(head, "clang version ").or_else(|| number_after(head, "clang "));
    let compiler = format!("clang {}", clang.ok_or("its first line names no clang")?);
    let parse = match lines.next() {
        Some((_, COLUMNS)) => parse,
        Some((_, FORMER_COLUMNS)) => parse_former,
        _ => return Err(format!("its second line is not {COLUMNS}")),
    };
    let rows = lines.map(|(number, line)| parse(line).ok_or_else(|| format!("line {number} is {line:?}")));
    Ok(Run { date, kernel, compiler, rows: rows.collect::<std::result::Result<_, String>>()? })
}

fn is_date(word: &str) -> bool {
    let like = |(byte, form): (u8, u8)| if form == b'0' { byte.is_ascii_digit() } else { byte == form };
    word.len() == 10 && word.bytes().zip(*b"0000-00-00").all(like)
}

fn date_in_name(name: &str) -> Option<String> {
    let digits = name.split('-').find(|word| word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_digit()))?;
    Some(format!("{}-{}-{}", &digits[..4], &digits[4..6], &digits[6..]))
}

/// The version number, of digits and dots, after the text `words`.
pub fn number_after(text: &str, words: &str) -> Option<String> {
    let rest = &text[text.find(words)? + words.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let number = rest[..end].trim_end_matches('.');
    (!number.is_empty()).then(|| number.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_survives_writing_and_reading() {
        let row = parse("sluice-pifo/slack+shaper,backlogged,8,64,10000,2,3590.5").unwrap();
        assert_eq!(row.case.contender, "sluice-pifo/slack+shaper");
        assert_eq!(
            (row.case.state, row.case.classes, row.case.rules, row.case.flows),
            (State::Backlogged, 8, 64, 10_000)
        );
        assert_eq!((row.repeat, row.instructions), (2, 3590.5));
        let (date, kernel, compiler) = ("2026-11-22".to_owned(), "7.3.4".to_owned(), "clang 19.1.7".to_owned());
        let run = Run { date, kernel, compiler, rows: vec![row] };
        assert_eq!(of_text(&run.csv(), "any.csv"), Ok(run));
    }

    #[test]
    fn former_files_are_read() {
        let text = format!(
            "# bench cost, kernel package 7.2.12-1~bpo13+1, icount (1 instruction = 1 ns), Debian clang version 19.1.7 (3~deb12u1)\n\
             {FORMER_COLUMNS}\nnone,idle,0,0,1,1959.0\ncake+shaper,backlogged,64,0,1,4610.6\n"
        );
        let run = of_text(&text, "cost-20261121-linux-7.2.12.csv").unwrap();
        assert_eq!((&*run.date, &*run.kernel, &*run.compiler), ("2026-11-21", "7.2.12", "clang 19.1.7"));
        assert_eq!(run.rows[0].case.to_string(), "none,idle,0,0,1");
        assert_eq!(run.rows[1].case.to_string(), "cake+shaper,backlogged-enqueue,64,0,64");
    }

    #[test]
    fn errors_name_the_line() {
        for line in ["", "none,idle,0,0,1,1", "none,busy,0,0,1,1,5", "none,idle,0,0,1,1,nan", "none,idle,0,0,1,1,-5"] {
            assert_eq!(parse(line), None, "{line}");
        }
        let head = "# bench cost, 2026-11-22, kernel 7.3.4, icount, clang 19.1.7\n";
        assert!(of_text(&format!("{head}{COLUMNS}\nnonsense\n"), "").unwrap_err().contains("line 3 is \"nonsense\""));
        assert!(of_text(&format!("{head}a,b\n"), "").unwrap_err().contains("second line"));
        assert!(of_text("a,b\n", "").unwrap_err().contains("first line"));
    }
}
