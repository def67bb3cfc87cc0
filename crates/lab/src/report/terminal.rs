//! The scorecard for the terminal.

use comfy_table::modifiers::UTF8_ROUND_CORNERS;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};

use super::group::{Group, groups, missing, strays};
use super::measure::Measure;
use super::number::{self, MISSING};
use super::score::{self, Column, Key, Scorecard, Standing};
use super::verdict::Verdict;
use crate::result::results::Results;

/// The longest line, columns.
const WIDTH: u16 = 100;
/// The most sentences; more are left to the page.
const MAX_SENTENCES: usize = 8;

/// The scorecard of a run for the terminal, at most 100 columns wide, with escape sequences only if `color`.
pub fn summary(results: &Results, color: bool) -> String {
    let groups = groups(results);
    let scorecard = Scorecard::of(&groups);
    let verdict = Verdict::of(&scorecard);
    let mut parts: Vec<String> = Vec::new();
    let warnings = results.warnings.iter().cloned().chain(strays(results)).chain(missing(&groups));
    parts.extend(warnings.map(|warning| painted(&wrapped(&format!("warning: {warning}"), ""), "33", color)));
    for group in &groups {
        parts.push(format!(
            "{}\n{}",
            painted(&wrapped(&group.title(), ""), "1", color),
            table(group, &scorecard, color)
        ));
    }
    if !scorecard.tables.is_empty() {
        parts.push(wrapped(
            "* best   = no different from it beyond the repeats   + the queue formed on the line, not at the contender",
            "",
        ));
    }
    let notes: Vec<String> =
        scorecard.notes.iter().enumerate().map(|(at, note)| wrapped(&format!("[{}] {note}", at + 1), "    ")).collect();
    if !notes.is_empty() {
        parts.push(notes.join("\n"));
    }
    parts.push(painted(&wrapped(&verdict.headline(), ""), "1", color));
    if !verdict.behind.is_empty() {
        let mut lines = vec!["Where Sluice is not the best:".to_owned()];
        lines.extend(
            verdict.behind.iter().take(MAX_SENTENCES).map(|behind| wrapped(&format!("- {}", behind.text()), "  ")),
        );
        if verdict.behind.len() > MAX_SENTENCES {
            lines.push(format!("- and {} more", verdict.behind.len() - MAX_SENTENCES));
        }
        parts.push(lines.join("\n"));
    }
    parts.join("\n\n") + "\n"
}

fn table(group: &Group, scorecard: &Scorecard, color: bool) -> String {
    let columns: Vec<(Key, &Column)> = score::KEYS
        .into_iter()
        .filter_map(|key| scorecard.board(key))
        .flat_map(|board| board.columns.iter().map(|column| (board.key, column)))
        .filter(|(_, column)| std::ptr::eq(column.group, group))
        .collect();
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).apply_modifier(UTF8_ROUND_CORNERS);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    let heads = columns.iter().map(|(key, column)| head(*key, column));
    table.set_header(std::iter::once("Contender".to_owned()).chain(heads));
    for (at, entry) in group.entries.iter().enumerate() {
        let mut row = vec![number::plain(&entry.contender.title)];
        row.extend(columns.iter().map(|(_, column)| cell(column, at)));
        if columns.is_empty() {
            row.push(entry.failures.first().map_or(MISSING, |failure| failure.word).to_owned());
        }
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let text = table.to_string();
    if color { text.lines().map(tinted).collect::<Vec<String>>().join("\n") } else { text }
}

/// A line with the best cells in green.
fn tinted(line: &str) -> String {
    let (inner, end) = line.strip_suffix('│').map_or((line, ""), |inner| (inner, "│"));
    let best = |cell: &str| cell.trim_end().ends_with(" *");
    let cells = inner.split('┆').map(|cell| if best(cell) { painted(cell, "32", true) } else { cell.to_owned() });
    cells.collect::<Vec<String>>().join("┆") + end
}

fn head(key: Key, column: &Column) -> String {
    let of = number::plain(&column.of);
    match key {
        Key::Delay if column.measure == Measure::Added => format!("{of} p99\n+ms"),
        Key::Delay if column.group.scenario.model.is_some() => format!("{of}\nmean us"),
        Key::Throughput if column.group.scenario.model.is_some() => "rate\nMbit/s".to_owned(),
        Key::Delay if column.group.scenario.chain => format!("{of}\nms"),
        Key::Delay => format!("{of} p99\nms"),
        Key::Requests | Key::Observation => format!("{of}\n/s"),
        Key::Throughput if column.group.scenario.chain => format!("{of}\nMbit/s"),
        Key::Throughput => "rate Mbit/s\n(wire %)".to_owned(),
        Key::Steadiness => format!("{of}\nkbit/s"),
        Key::Loss if of.is_empty() => "failed\n%".to_owned(),
        Key::Loss => format!("{of} lost\n%"),
        Key::Fairness => "fairness\nindex".to_owned(),
        Key::Cost if column.measure.unit() == "%" => "busy\n%".to_owned(),
        Key::Cost => "instr.\n/packet".to_owned(),
    }
}

fn cell(column: &Column, at: usize) -> String {
    let cell = &column.cells[at];
    let notes: String = cell.notes.iter().map(|note| format!(" [{}]", note + 1)).collect();
    let Some(value) = &cell.value else {
        let word = cell.failure.map_or(MISSING, |word| if word == "unsupported" { "unsupp." } else { word });
        return format!("{word}{notes}");
    };
    let mark = match cell.standing {
        Standing::Best => " *",
        Standing::Equal => " =",
        Standing::Behind | Standing::Alone => "  ",
    };
    let used = cell.used.map_or(String::new(), |used| format!(" ({})", number::fixed(used.median, 1)));
    let aside = if cell.not_owned { "+" } else { "" };
    format!("{}{used}{aside}{notes}{mark}", value.text(column.measure))
}

fn painted(text: &str, code: &str, color: bool) -> String {
    if color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

/// A text broken between words, with further lines indented.
fn wrapped(text: &str, indent: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in number::plain(text).split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDTH.into() => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("{indent}{word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}
