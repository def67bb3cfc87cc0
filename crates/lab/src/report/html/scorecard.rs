//! The scorecard of the page.

use maud::{Markup, html};

use super::super::number::{self, MISSING};
use super::super::score::{Cell, Column, Key, KeyTable, Standing};
use super::super::verdict::{LostColumn, Verdict};
use super::{Page, contender_head, scroll};

/// The most sentences of a key that are open from the start.
const MAX_SENTENCES: usize = 6;

pub fn section(page: &Page) -> Markup {
    let verdict = &page.verdict;
    html! {
        section aria-labelledby="scorecard" {
            h2 id="scorecard" { "Scorecard" }
            @if verdict.compared && verdict.once() {
                p { (verdict.headline()) }
            } @else if verdict.compared {
                p { "How often " (verdict.judged_name()) " is the best, or no different from the best beyond the repeats:" }
                ul class="tiles" {
                    @for count in &verdict.counts {
                        li {
                            b { (count.best + count.equal) small { " of " (count.of) } }
                            span { (count.key.title()) }
                            small { (count.parts()) }
                        }
                    }
                }
            } @else {
                p { (verdict.headline()) }
            }
            @if verdict.compared {
                section class="behind" aria-labelledby="behind" {
                    h3 id="behind" { "Where Sluice is not the best" }
                    @if verdict.behind.is_empty() { p {
                        @if verdict.once() { "Nowhere that one run of each trial could show." }
                        @else { "Nowhere in this run, as far as its repeats can tell." }
                    } }
                    @for count in &verdict.counts { (behind(count.key, verdict)) }
                }
            }
            @for board in &page.scorecard.tables { (table(page, board)) }
            @if !page.scorecard.tables.is_empty() { (key()) }
            @if !page.scorecard.notes.is_empty() {
                h3 { "Why figures are missing" }
                ol class="notes" {
                    @for (at, note) in page.scorecard.notes.iter().enumerate() { li id={ "n" (at + 1) } { (note) } }
                }
            }
        }
    }
}

/// The widest gaps of this key in sight, the others folded.
fn behind(key: Key, verdict: &Verdict) -> Markup {
    let all: Vec<&LostColumn> = verdict.behind.iter().filter(|behind| behind.key == key).collect();
    let (first, rest) = all.split_at(all.len().min(MAX_SENTENCES));
    let item = |behind: &LostColumn| html! { li { (behind.place) ": " (behind.what) } };
    html! {
        @if !first.is_empty() {
            h4 { (key.title()) }
            ul { @for behind in first { (item(behind)) } }
        }
        @if !rest.is_empty() {
            details {
                summary { (rest.len()) " more" }
                ul { @for behind in rest { (item(behind)) } }
            }
        }
    }
}

fn key() -> Markup {
    html! {
        p class="key" {
            "★ best · ≈ no different from the best beyond the repeats · † the queue formed on the line, not at the "
            "contender: what is seen is mostly the line · each figure is the median of the repeats, below it the least and "
            "the greatest."
        }
    }
}

fn table(page: &Page, board: &KeyTable) -> Markup {
    let content = html! {
        table class="score" {
            caption { span { (board.key.title()) " " small { "– " (board.key.about()) } } }
            thead {
                tr class="groups" {
                    th scope="col" rowspan="2" { "Contender" }
                    @for (at, columns) in by_scenario(&board.columns) {
                        th class="edge" scope="colgroup" colspan=(columns) { (board.columns[at].group.scenario.title) }
                    }
                }
                tr {
                    @for (at, column) in board.columns.iter().enumerate() {
                        th scope="col" class=(edge(board, at)) {
                            a href={ "#" (page.place(column.group)) } { (column.subtitle()) }
                        }
                    }
                }
            }
            tbody {
                @for (at, contender) in page.results.contenders.iter().enumerate() {
                    tr class=(if contender.ours { "ours" } else { "rival" }) {
                        (contender_head(page.styles[at], &contender.title))
                        @for (place, column) in board.columns.iter().enumerate() {
                            (cell(&column.cells[at], column, edge(board, place)))
                        }
                    }
                }
            }
        }
    };
    scroll(&format!("Scorecard: {}", board.key.title()), content)
}

/// The first column and the number of columns of each scenario.
fn by_scenario(columns: &[Column]) -> Vec<(usize, usize)> {
    let mut groups: Vec<(usize, usize)> = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        match groups.last_mut() {
            Some((first, count)) if columns[*first].group.scenario.name == column.group.scenario.name => *count += 1,
            _ => groups.push((at, 1)),
        }
    }
    groups
}

fn edge(board: &KeyTable, at: usize) -> &'static str {
    let first = at == 0 || board.columns[at - 1].group.scenario.name != board.columns[at].group.scenario.name;
    if first { "edge" } else { "inner" }
}

fn cell(cell: &Cell, column: &Column, edge: &str) -> Markup {
    let notes = html! {
        @for note in &cell.notes { sup { a href={ "#n" (note + 1) } { (note + 1) } } }
    };
    let Some(value) = cell.value else {
        return html! { td class={ (edge) " none" } { (cell.failure.unwrap_or(MISSING)) span class="marks" { (notes) } } };
    };
    let (class, mark, title) = match cell.standing {
        Standing::Best => (" best", "★", "best"),
        Standing::Equal => ("", "≈", "no different from the best"),
        Standing::Behind | Standing::Alone => ("", "", ""),
    };
    html! {
        td class={ (edge) (class) } {
            (value.text(column.measure))
            span class="marks" {
                @if !title.is_empty() { span title=(title) { (mark) } }
                @if cell.not_owned { span title="the queue formed on the line" { "†" } }
                (notes)
            }
            @if let Some(used) = cell.used { small { (number::fixed(used.median, 1)) " % used" } }
            @else if let Some(range) = value.range(column.measure) { small { (range) } }
        }
    }
}
