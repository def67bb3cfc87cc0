//! The verdict on Sluice in sentences, mainly on the columns that a rival wins.

use super::measure::Measure;
use super::number;
use super::score::{Cell, Column, Key, Scorecard, Standing};
use super::spread::Spread;

/// The verdict of the scorecard on Sluice.
pub struct Verdict {
    /// The counts of each key with something to compare.
    pub counts: Vec<Count>,
    /// The columns in which a rival is better, or Sluice has no figure; the widest gap of each key first.
    pub behind: Vec<LostColumn>,
    /// Whether there is both a Sluice and a rival.
    pub compared: bool,
    /// The number of Sluices; the best of them counts in each column.
    pub variants: usize,
}

/// Sluice's results by one key.
pub struct Count {
    pub key: Key,
    /// Columns in which Sluice is the best.
    pub best: usize,
    /// Columns in which Sluice is no different from the best.
    pub equal: usize,
    /// Columns of one trial each in which no rival is ahead of Sluice.
    pub once: usize,
    /// All columns of the key with Sluice and a rival.
    pub of: usize,
}

/// A column that Sluice does not win.
pub struct LostColumn {
    pub key: Key,
    /// Scenario, rate and load.
    pub place: String,
    pub measure: String,
    /// The winner, and its advantage.
    pub what: String,
    /// The gap as a share.
    gap: f64,
}

impl LostColumn {
    /// The sentence on the column.
    pub fn text(&self) -> String {
        format!("{}: {}: {}", self.place, self.measure, self.what)
    }
}

impl Verdict {
    pub fn of(scorecard: &Scorecard) -> Verdict {
        let mut verdict = Verdict { counts: Vec::new(), behind: Vec::new(), compared: false, variants: 0 };
        for board in &scorecard.tables {
            let entries = board.columns.first().map(|column| column.group.entries.as_slice()).unwrap_or_default();
            verdict.variants = entries.iter().filter(|entry| entry.contender.ours).count();
            let mut count = Count { key: board.key, best: 0, equal: 0, once: 0, of: 0 };
            let mut behind = Vec::new();
            for column in board.columns.iter().filter(|column| contested(column)) {
                match lost_column(board.key, column) {
                    Some(lost_column) => behind.push(lost_column),
                    None if column.seen_once() => count.once += 1,
                    None if is_best(column) => count.best += 1,
                    None => count.equal += 1,
                }
            }
            count.of = count.best + count.equal + count.once + behind.len();
            if count.of > 0 {
                verdict.counts.push(count);
            }
            behind.sort_by(|a, b| b.gap.total_cmp(&a.gap));
            verdict.behind.extend(behind);
        }
        verdict.compared = !verdict.counts.is_empty();
        verdict
    }

    /// The name of the judged contender.
    pub fn judged_name(&self) -> String {
        if self.variants > 1 {
            format!("Sluice (each time the best of {} variants)", self.variants)
        } else {
            "Sluice".into()
        }
    }

    /// Whether each trial was done once: then only losses are reported.
    pub fn once(&self) -> bool {
        self.counts.iter().all(|count| count.best + count.equal == 0) && self.counts.iter().any(|count| count.once > 0)
    }

    /// The counts of Sluice's results by each key.
    pub fn headline(&self) -> String {
        if !self.compared {
            return "Nothing to compare: the run has not both Sluice and a rival with figures.".to_owned();
        }
        if self.once() {
            let behind = number::count(self.behind.len(), "place", "places");
            return format!(
                "Each trial was done once, so no contender is the best (--repeats 3 allows one); a rival is ahead of {} in {behind}.",
                self.judged_name()
            );
        }
        let count =
            |c: &Count| format!("{} {} of {} ({})", c.key.title().to_lowercase(), c.best + c.equal, c.of, c.parts());
        let counts: Vec<String> = self.counts.iter().map(count).collect();
        format!("{} is the best, or no different from it: {}.", self.judged_name(), counts.join("; "))
    }
}

impl Count {
    /// "3 best, 1 equal".
    pub fn parts(&self) -> String {
        let once = if self.once > 0 { format!(", {} seen once", self.once) } else { String::new() };
        format!("{} best, {} equal{once}", self.best, self.equal)
    }
}

/// Whether a Sluice is marked as the best.
fn is_best(column: &Column) -> bool {
    let cells = column.group.entries.iter().zip(&column.cells);
    cells.into_iter().any(|(entry, cell)| entry.contender.ours && cell.standing == Standing::Best)
}

/// Whether the column has a Sluice, and a rival with a figure.
fn contested(column: &Column) -> bool {
    let ours =
        column.group.entries.iter().any(|e| e.contender.ours && !(e.measured.is_empty() && e.failures.is_empty()));
    ours && column.best(|entry| entry.contender.is_rival()).is_some()
}

/// The loss in this column; none if Sluice is the best or equal to it.
fn lost_column(key: Key, column: &Column) -> Option<LostColumn> {
    let (rival, cell, theirs) = column.best(|entry| entry.contender.is_rival())?;
    let rival_figure = format!("{} {}", rival.contender.title, column.measure.quantity(theirs.median));
    let aside = aside(cell);
    let behind =
        |gap: f64, what: String| LostColumn { key, place: column.title(), measure: column.measure.title(), what, gap };
    let Some((ours, cell, value)) = column.best(|entry| entry.contender.ours) else {
        return Some(behind(f64::INFINITY, format!("{rival_figure}{aside}; Sluice has no figure.")));
    };
    if cell.standing != Standing::Behind {
        return None;
    }
    let gap = gap(column.measure, &value, &theirs);
    let apart = (value.median - theirs.median).abs();
    let share = if column.measure.unit() == "%" { apart / 100.0 } else { apart / theirs.median.abs().max(1e-3) };
    let us = format!("{} {}{}", ours.contender.title, column.measure.quantity(value.median), self::aside(cell));
    Some(behind(share, format!("{rival_figure}{aside}, {us} ({gap}).")))
}

/// A remark on a figure for readers.
fn aside(cell: &Cell) -> &'static str {
    if cell.not_owned { " (but its queue formed on the line, not at the contender)" } else { "" }
}

/// The gap between two figures as text.
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
