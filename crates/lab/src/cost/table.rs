//! A run's figures as tables, cheapest first.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, Table};

use super::figures::{Figure, Figures};
use super::plan::State;

/// The figures as text; Sluice's are bold where colours are allowed.
pub fn render(figures: &Figures, color: bool) -> String {
    let mut text = format!(
        "Instructions per packet above no qdisc; without one, generator and device take {:.0}.\n",
        figures.none_instructions
    );
    let mut groups: Vec<(State, u32)> = figures.all.iter().map(group).collect();
    groups.sort_unstable();
    groups.dedup();
    for (state, classes) in groups {
        let title = match state {
            State::Idle => "Idle queues",
            State::Backlogged => "Backlogged queues below a shaper",
            State::BackloggedEnqueue => "Backlogged queues below a shaper, enqueue alone",
        };
        text += &format!("\n{title}, {classes} classes\n{}\n", section(figures, (state, classes), color));
    }
    text
}

fn group(figure: &Figure) -> (State, u32) {
    (figure.case.state, figure.case.classes)
}

fn section(figures: &Figures, wanted: (State, u32), color: bool) -> String {
    let mut table = lines(&["contender", "rules", "flows", "added", "spread", "of reference"]);
    let mut chosen: Vec<&Figure> = figures.all.iter().filter(|figure| group(figure) == wanted).collect();
    chosen.sort_by(|a, b| a.added_instructions.total_cmp(&b.added_instructions));
    for Figure { case, added_instructions, spread_instructions, .. } in chosen {
        let share = match figures.ratio(case) {
            _ if *case == case.reference() => "reference".to_owned(),
            Some(ratio) => percent(ratio),
            None => "-".to_owned(),
        };
        let rules = if case.rules == 0 { "-".to_owned() } else { case.rules.to_string() };
        let numbers = [
            rules,
            case.flows.to_string(),
            format!("{added_instructions:.0}"),
            format!("{spread_instructions:.0}"),
            share,
        ];
        let mut cells = vec![Cell::new(&case.contender)];
        cells.extend(numbers.map(Cell::new));
        table.add_row(cells);
    }
    let text = aligned(table, 1).to_string();
    if !color {
        return text;
    }
    let bold = |line: &str| if line.contains(" sluice-") { format!("\x1b[1m{line}\x1b[0m") } else { line.to_owned() };
    text.lines().map(bold).collect::<Vec<String>>().join("\n")
}

/// An empty table with these headings.
pub fn lines(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_header(header);
    table
}

/// Aligns the number columns, which begin at `from`.
pub fn aligned(mut table: Table, from: usize) -> Table {
    for column in table.column_iter_mut().skip(from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A share of one, in percent.
pub fn percent(ratio: f64) -> String {
    format!("{:.1} %", ratio * 100.0)
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::run;
    use super::*;

    #[test]
    fn cheapest_first_and_the_reference_marked() {
        let run = run(&[
            "none,idle,0,0,1,1,2000",
            "prio+flower,idle,8,8,1,1,4000",
            "sluice-strict_priority,idle,8,8,1,1,3500",
            "sluice-strict_priority,idle,8,8,1,2,3504",
        ]);
        let text = render(&Figures::of(&run).unwrap(), false);
        let line = |word: &str| text.lines().position(|line| line.contains(word)).unwrap();
        assert!(line("sluice-strict_priority") < line("prio+flower"), "{text}");
        let ours = text.lines().nth(line("sluice-strict_priority")).unwrap();
        let words: Vec<&str> = ours.split(|c: char| "│┆ ".contains(c)).filter(|word| !word.is_empty()).collect();
        assert_eq!(words, ["sluice-strict_priority", "8", "1", "1502", "4", "75.1", "%"]);
        assert!(text.contains("reference") && !text.contains('\x1b'));
    }
}
