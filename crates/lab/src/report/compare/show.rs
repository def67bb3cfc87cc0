//! A comparison as text for the terminal, as Markdown and as JSON.

use comfy_table::modifiers::UTF8_ROUND_CORNERS;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};

use super::super::markdown::escaped;
use super::super::number::{self, fixed, plain};
use super::super::spread::Spread;
use super::{Change, Comparison, Judgement};
use sluice_error::{Error, Result};

/// The longest line, columns.
const WIDTH: u16 = 100;

impl Comparison {
    /// The changes for the worse.
    pub fn regressions(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| change.judgement == Judgement::Worse)
    }

    /// Whether a figure became worse or is no longer measured.
    pub fn is_worse(&self) -> bool {
        !self.broken.is_empty() || self.regressions().next().is_some()
    }

    /// The text for the terminal: the changes, regressions first; at most 100 columns wide.
    pub fn text(&self, color: bool) -> String {
        let paint = |text: String, code: &str| if color { format!("\x1b[{code}m{text}\x1b[0m") } else { text };
        let mut parts: Vec<String> = Vec::new();
        parts.extend(self.warnings.iter().map(|warning| paint(format!("warning: {}", plain(warning)), "33")));
        for (title, judgement, code) in SECTIONS {
            let changes: Vec<&Change> = self.with(judgement).collect();
            if !changes.is_empty() {
                parts.push(format!("{}\n{}", paint(format!("{title} ({})", changes.len()), code), table(&changes)));
            }
        }
        for (title, list) in self.lists() {
            if !list.is_empty() {
                let lines: Vec<String> = list.iter().map(|line| format!("- {}", plain(line))).collect();
                parts.push(format!("{title}:\n{}", lines.join("\n")));
            }
        }
        parts.push(paint(self.conclusion(), "1"));
        parts.join("\n\n") + "\n"
    }

    /// All figures as Markdown, changes first.
    pub fn markdown(&self) -> String {
        let mut text = format!("# Two runs of the Sluice lab\n\n{}\n\n", self.conclusion());
        for warning in &self.warnings {
            text += &format!("> **Warning:** {}\n\n", escaped(warning));
        }
        for (title, judgement, _) in SECTIONS.into_iter().chain([("Same", Judgement::Same, "")]) {
            let changes: Vec<&Change> = self.with(judgement).collect();
            if changes.is_empty() {
                continue;
            }
            text += &format!("## {title}\n\n");
            text += &format!("| {} |\n|---|---|---|---|---:|---:|---:|\n", HEADS.join(" | "));
            for change in changes {
                let row = change.row().map(|cell| escaped(&cell));
                text += &format!("| {} |\n", row.join(" | "));
            }
            text.push('\n');
        }
        for (title, list) in self.lists() {
            if !list.is_empty() {
                text += &format!("## {title}\n\n");
                list.iter().for_each(|line| text += &format!("- {}\n", escaped(line)));
                text.push('\n');
            }
        }
        text.truncate(text.trim_end().len());
        text + "\n"
    }

    /// The comparison as JSON.
    pub fn json(&self) -> Result<String> {
        serde_json::to_string_pretty(self)
            .map(|json| json + "\n")
            .map_err(|e| Error::system(format!("cannot write the comparison as JSON: {e}")))
    }

    fn with(&self, judgement: Judgement) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(move |change| change.judgement == judgement)
    }

    fn lists(&self) -> [(&'static str, &[String]); 3] {
        [
            ("Measured before, not any more", &self.broken),
            ("Only in the first", &self.only_in_a),
            ("Only in the second", &self.only_in_b),
        ]
    }

    fn conclusion(&self) -> String {
        let counted = |judgement: Judgement| self.with(judgement).count();
        let (worse, broken) = (counted(Judgement::Worse), self.broken.len());
        let mut parts = vec![number::count(worse, "regression", "regressions")];
        if broken > 0 {
            parts.push(format!("{broken} no longer measured"));
        }
        let changed = counted(Judgement::Changed);
        parts.push(format!("{} better", counted(Judgement::Better)));
        if changed > 0 {
            parts.push(format!("{changed} changed"));
        }
        parts.push(format!("{} the same within the spread of the repeats", counted(Judgement::Same)));
        format!("{}.", parts.join(", "))
    }
}

const SECTIONS: [(&str, Judgement, &str); 3] =
    [("Worse", Judgement::Worse, "1;31"), ("Better", Judgement::Better, "1;32"), ("Changed", Judgement::Changed, "1")];

const HEADS: [&str; 7] = ["Scenario", "Contender", "Rate", "Figure", "Before", "After", "Difference"];

impl Change {
    fn row(&self) -> [String; 7] {
        let shown = |spread: &Spread| match spread.range(self.measure) {
            Some(range) => format!("{} ({range})", spread.text(self.measure)),
            None => spread.text(self.measure),
        };
        let figure = match self.load.as_str() {
            "" => self.measure.title(),
            load => format!("{load}: {}", self.measure.title()),
        };
        let unit = if self.unit.is_empty() { String::new() } else { format!(", {}", self.unit) };
        let sign = if self.difference > 0.0 { "+" } else { "" };
        let percent = match self.percent {
            Some(percent) if self.unit != "%" => format!(" ({}{} %)", sign, fixed(percent, 1)),
            _ => String::new(),
        };
        [
            plain(&self.scenario),
            plain(&self.contender),
            number::rate(self.rate_bps),
            plain(&format!("{figure}{unit}")),
            shown(&self.a),
            shown(&self.b),
            format!("{sign}{}{percent}", self.measure.text(self.difference)),
        ]
    }
}

fn table(changes: &[&Change]) -> String {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).apply_modifier(UTF8_ROUND_CORNERS);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    table.set_header(HEADS);
    table.add_rows(changes.iter().map(|change| change.row()));
    for column in table.column_iter_mut().skip(4) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}
