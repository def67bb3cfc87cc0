//! Markdown: the scorecard and the tables.

use std::fmt::Write;

use super::group::{groups, missing, strays};
use super::number::{self, MISSING};
use super::score::{Cell, KeyTable, Scorecard, Standing};
use super::table::{Table, tables};
use super::verdict::Verdict;
use crate::result::results::Results;

/// The scorecard and the tables of a run as Markdown, without pictures and files.
pub fn markdown(results: &Results) -> String {
    let groups = groups(results);
    let scorecard = Scorecard::of(&groups);
    let verdict = Verdict::of(&scorecard);
    let mut text = format!("# Sluice lab: plan {}\n\n", escaped(&results.plan));
    let e = &results.environment;
    let _ = writeln!(
        text,
        "Sluice {}, {} UTC, {}, on {}, {}, kernel {}, {}. Again: `{}`\n",
        escaped(&results.sluice),
        escaped(&results.began),
        number::duration(results.took_s),
        escaped(&e.cpu),
        number::count(e.cores, "core", "cores"),
        escaped(&e.kernel),
        escaped(&e.distribution),
        number::plain(&results.command).replace('`', "'"),
    );
    for warning in results.warnings.iter().cloned().chain(strays(results)).chain(missing(&groups)) {
        let _ = writeln!(text, "> **Warning:** {}\n", escaped(&warning));
    }
    let _ = writeln!(text, "## Scorecard\n\n{}\n", escaped(&verdict.headline()));
    if !verdict.behind.is_empty() {
        text += "Where Sluice is not the best:\n\n";
        for behind in &verdict.behind {
            let _ = writeln!(text, "- {}", escaped(&behind.text()));
        }
        text.push('\n');
    }
    for part in &scorecard.tables {
        board(&mut text, part);
    }
    if !scorecard.tables.is_empty() {
        text += "**Bold**: best; ≈: no different from it beyond the repeats; †: the queue formed on the line.\n\n";
    }
    for (at, note) in scorecard.notes.iter().enumerate() {
        let _ = writeln!(text, "[{}] {}\n", at + 1, escaped(note));
    }
    for group in &groups {
        let _ = writeln!(text, "## {}\n\n{}\n", escaped(&group.title()), escaped(&group.scenario.about));
        tables(group).iter().for_each(|part| table(&mut text, part));
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

fn board(text: &mut String, board: &KeyTable) {
    let _ = writeln!(text, "### {}\n\n{}\n", board.key.title(), board.key.about());
    let heads: Vec<String> = board.columns.iter().map(|column| escaped(&column.title())).collect();
    row(text, "Contender", &heads);
    row(text, "---", &vec!["---:".to_owned(); heads.len()]);
    let Some(first) = board.columns.first() else { return };
    for (at, entry) in first.group.entries.iter().enumerate() {
        let cells: Vec<String> =
            board.columns.iter().map(|c| cell(&c.cells[at], |spread| spread.text(c.measure))).collect();
        row(text, &name(&entry.contender.title, entry.contender.ours), &cells);
    }
    text.push('\n');
}

fn cell(cell: &Cell, shown: impl Fn(&super::Spread) -> String) -> String {
    let notes: String = cell.notes.iter().map(|at| format!("[{}]", at + 1)).collect();
    let Some(value) = &cell.value else {
        return cell.failure.map_or(MISSING.to_owned(), |word| format!("{word} {notes}"));
    };
    let mut text = match cell.standing {
        Standing::Best => format!("**{}**", shown(value)),
        Standing::Equal => format!("{} ≈", shown(value)),
        Standing::Behind | Standing::Alone => shown(value),
    };
    if let Some(used) = cell.used {
        let _ = write!(text, " ({} %)", number::fixed(used.median, 1));
    }
    if cell.not_owned {
        text += " †";
    }
    if !notes.is_empty() {
        let _ = write!(text, " {notes}");
    }
    text
}

fn table(text: &mut String, table: &Table) {
    let _ = writeln!(text, "{}\n", escaped(&table.caption));
    let unit = |unit: &str| if unit.is_empty() { String::new() } else { format!(", {unit}") };
    let heads: Vec<String> =
        table.columns.iter().map(|head| format!("{}{}", escaped(&head.label), unit(head.unit))).collect();
    row(text, "Contender", &heads);
    row(text, "---", &vec!["---:".to_owned(); heads.len()]);
    for line in &table.rows {
        let cells: Vec<String> = match &line.cells {
            Ok(cells) => cells
                .iter()
                .map(|cell| match &cell.range {
                    Some(range) => format!("{} ({range})", cell.text),
                    None => cell.text.clone(),
                })
                .collect(),
            Err(why) => vec![escaped(why)],
        };
        row(text, &name(&line.contender, line.ours), &cells);
    }
    text.push('\n');
}

fn name(title: &str, ours: bool) -> String {
    if ours { format!("**{}**", escaped(title)) } else { escaped(title) }
}

fn row(text: &mut String, first: &str, cells: &[String]) {
    let _ = writeln!(text, "| {first} | {} |", cells.join(" | "));
}

/// The text escaped for Markdown.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in number::plain(text).chars() {
        match c {
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '&' => escaped += "&amp;",
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
    }
    escaped
}
