//! Who wins where, in sentences: above all where Sluice does not.

use super::measure::Measure;
use super::number;
use super::score::{Column, Key, Scorecard, Standing};
use super::spread::Spread;

/// What the scorecard says about Sluice.
pub struct Verdict {
    /// For each key: how often Sluice is best or equal, of how many.
    pub counts: Vec<(Key, usize, usize)>,
    /// Where another is better, or Sluice has no figure; the widest gap of each key first.
    pub behind: Vec<Behind>,
    /// Whether there is a Sluice and another to compare with.
    pub compared: bool,
}

/// A column that Sluice does not win.
pub struct Behind {
    pub key: Key,
    /// Scenario, rate and load.
    pub place: String,
    pub measure: String,
    /// Who wins, and by how much.
    pub what: String,
    /// How wide the gap is, as a share.
    gap: f64,
}

impl Behind {
    /// The sentence.
    pub fn text(&self) -> String {
        format!("{}: {}: {}", self.place, self.measure, self.what)
    }
}

impl Verdict {
    pub fn of(scorecard: &Scorecard) -> Verdict {
        let mut verdict = Verdict { counts: Vec::new(), behind: Vec::new(), compared: false };
        for board in &scorecard.boards {
            let mut won = 0;
            let mut behind = Vec::new();
            for column in board.columns.iter().filter(|column| contested(column)) {
                match lost(board.key, column) {
                    Some(lost) => behind.push(lost),
                    None => won += 1,
                }
            }
            if won + behind.len() > 0 {
                verdict.counts.push((board.key, won, won + behind.len()));
            }
            behind.sort_by(|a, b| b.gap.total_cmp(&a.gap));
            verdict.behind.extend(behind);
        }
        verdict.compared = !verdict.counts.is_empty();
        verdict
    }

    /// "best or equal in 7 of 8 comparisons of delay, ...".
    pub fn headline(&self) -> String {
        if !self.compared {
            return "Nothing to compare: the run has not both Sluice and another contender with figures.".to_owned();
        }
        let counts: Vec<String> =
            self.counts.iter().map(|(key, won, of)| format!("{} {won} of {of}", key.title().to_lowercase())).collect();
        format!("Sluice is best, or equal to the best: {}.", counts.join("; "))
    }
}

/// Whether Sluice was in it, and another has a figure.
fn contested(column: &Column) -> bool {
    let ours =
        column.group.entries.iter().any(|e| e.contender.ours && !(e.measured.is_empty() && e.failures.is_empty()));
    ours && column.best(|entry| !entry.contender.ours).is_some()
}

/// Nothing where Sluice is best or equal to it.
fn lost(key: Key, column: &Column) -> Option<Behind> {
    let (rival, cell, theirs) = column.best(|entry| !entry.contender.ours)?;
    let who = format!("{} {}", rival.contender.title, column.measure.quantity(theirs.median));
    let aside = if cell.not_owned { " (but its queue formed on the line, not at the contender)" } else { "" };
    let behind =
        |gap: f64, what: String| Behind { key, place: column.title(), measure: column.measure.title(), what, gap };
    let Some((ours, cell, value)) = column.best(|entry| entry.contender.ours) else {
        return Some(behind(f64::INFINITY, format!("{who}{aside}; Sluice has no figure.")));
    };
    if cell.standing != Standing::Behind {
        return None;
    }
    let gap = gap(column.measure, &value, &theirs);
    let apart = (value.median - theirs.median).abs();
    let share = if column.measure.unit() == "%" { apart / 100.0 } else { apart / theirs.median.abs().max(1e-3) };
    let us = format!("{} {}", ours.contender.title, column.measure.quantity(value.median));
    Some(behind(share, format!("{who}{aside}, {us} ({gap}).")))
}

/// How much is between them, as a person says it.
fn gap(measure: Measure, ours: &Spread, theirs: &Spread) -> String {
    let apart = ours.median - theirs.median;
    let sign = if apart < 0.0 { "−" } else { "+" };
    let relative = match measure.unit() {
        "%" => return format!("{sign}{} points", number::digits(apart.abs())),
        _ if theirs.median <= 0.0 => None,
        _ if ours.median / theirs.median >= 2.0 => Some(format!("{:.1} times", ours.median / theirs.median)),
        _ => Some(format!("{sign}{} %", number::fixed(100.0 * apart.abs() / theirs.median, 1))),
    };
    relative.unwrap_or_else(|| format!("{sign}{}", measure.quantity(apart.abs())))
}
