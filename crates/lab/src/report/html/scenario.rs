//! The part of the page on each scenario: tables and pictures for each rate.

use maud::{Markup, html};

use super::super::chart::{self, Curves, Panel, Style};
use super::super::group::Group;
use super::super::number;
use super::super::table::{Table, TableCell, tables};
use super::{Page, contender_head, patch, scroll, swatch};
use crate::result::results::LoadInfo;
use sluice_error::Result;

pub fn all(page: &Page) -> Result<Markup> {
    let mut sections = Vec::new();
    for (at, scenario) in page.results.scenarios.iter().enumerate() {
        let mut rates = Vec::new();
        for group in page.groups.iter().filter(|g| g.scenario.name == scenario.name) {
            rates.push(rate(page, group, &page.place(group))?);
        }
        sections.push(html! {
            section aria-labelledby={ "s" (at) } {
                h2 id={ "s" (at) } { (scenario.title) }
                p { (scenario.about) }
                ul {
                    @for load in scenario.loads.iter().filter(|load| !load.about.is_empty()) {
                        li { b { (load.name) } ": " (load.about) @if let Some(weight) = load.weight { ", weight " (weight) }
                            @if load.probe { " – the subject of the scenario" } }
                    }
                }
                @if rates.is_empty() { p { "Nothing was tried." } }
                @for rate in &rates { (rate) }
            }
        });
    }
    Ok(html! { @for section in &sections { (section) } })
}

fn rate(page: &Page, group: &Group, id: &str) -> Result<Markup> {
    let (mut first, mut pictures) = (Vec::new(), Vec::new());
    for (at, load) in group.probes().into_iter().enumerate() {
        if let Some(curves) = chart::curves(&format!("{id}-c{at}"), group, load, &page.styles)? {
            first.push(delays(load, group, curves));
        }
    }
    for (at, load) in group.delay_loads().into_iter().enumerate() {
        if group.is_fetched(&load.name) && !group.scenario.chain {
            let svg = chart::fetches(&format!("{id}-w{at}"), group, load, &page.styles)?;
            let caption = format!("How long pages took: {}", load.name);
            pictures.extend(svg.map(|svg| figure(&caption, "One page is one complete fetch.", svg)));
        }
    }
    if let Some(svg) = chart::shares(&format!("{id}-f"), group)?.filter(|_| !group.scenario.chain) {
        let about = "One point for each flow, or for each load with a weight; all at 1 is exactly fair.";
        pictures.push(figure("How the rate was shared", about, html! { (svg) (loads(group)) }));
    }
    if let Some(svg) = chart::costs(&format!("{id}-p"), group, &page.styles)? {
        let about = "Thin lines go from the least to the greatest of the repeats.";
        pictures.push(figure("Cost of the packets", about, svg));
    }
    // The loads of a chain do not run at the same time.
    let panels = if group.scenario.chain || group.scenario.model.is_some() {
        Vec::new()
    } else {
        chart::panels(&format!("{id}-t"), group)?
    };
    Ok(html! {
        h3 id=(id) { (if group.rate_bps == 0 { "As fast as it goes".to_owned() } else { number::rate(group.rate_bps) }) }
        @for picture in &first { (picture) }
        @for table in tables(group) { (show(page, &table)) }
        @if !pictures.is_empty() { div class="pairs" { @for picture in &pictures { (picture) } } }
        @if !panels.is_empty() {
            @if page.unfolded() {
                details open="open" { (over_time(group, &panels)) }
            } @else {
                details { (over_time(group, &panels)) }
            }
        }
    })
}

fn figure(caption: &str, about: &str, content: Markup) -> Markup {
    html! { figure { figcaption { (caption) small { (about) } } (scroll(caption, content)) } }
}

fn delays(load: &LoadInfo, group: &Group, curves: Curves) -> Markup {
    let caption = match group.scenario.chain {
        true => format!("Response times of {}", load.name),
        false if group.scenario.model.is_some() => format!("Latency of {}", load.name),
        false => format!("Delays of {} at {}", load.name, number::rate(group.rate_bps)),
    };
    let about = "Further left is better. The slow tail is stretched: from 99 % on it is one packet in a hundred. A curve \
                 that ends early lost packets. All repeats together.";
    let content = html! {
        (curves.svg)
        ul class="legend" {
            @for (style, title, p99) in &curves.legend {
                li {
                    (swatch(*style))
                    @if matches!(style, Style::Ours(_)) { b { (title) } } @else { (title) }
                    @if !p99.is_empty() { span { " p99 " (p99) } }
                }
            }
        }
    };
    figure(&caption, about, content)
}

fn loads(group: &Group) -> Markup {
    html! {
        ul class="legend" {
            @for (at, load) in group.flow_loads().into_iter().enumerate() {
                li { (patch(Style::Load(at))) (load.name) }
            }
        }
    }
}

fn over_time(group: &Group, panels: &[Panel]) -> Markup {
    let events = panels.iter().any(|panel| !panel.events.is_empty());
    let probe = group.probes().first().map(|load| load.name.clone());
    html! {
        summary { "Over time " small { "– " (number::count(panels.len(), "contender", "contenders")) } }
        p class="key" {
            @if let Some(probe) = &probe {
                "Above: delay of " (probe) ", ms, logarithmic, the worst of each stretch; red marks are losses. "
            }
            @if !group.flow_loads().is_empty() { "Below: rates of the bulk loads, stacked. " }
            "Seconds since the bulk traffic began; shaded times are outside the window. "
            @if events { "Dashed lines: events of the scenario. " }
            "The repeat with the median p99."
        }
        @if !group.flow_loads().is_empty() { (loads(group)) }
        div class="panels" {
            @for panel in panels {
                figure class=(if panel.ours { "ours" } else { "rival" }) {
                    figcaption { (panel.contender) }
                    (panel.svg)
                    @if !panel.events.is_empty() { ul { @for event in &panel.events { li { (event) } } } }
                }
            }
        }
    }
}

fn show(page: &Page, table: &Table) -> Markup {
    let content = html! {
        table {
            caption { span { (table.caption) } }
            thead {
                tr {
                    th scope="col" { "Contender" }
                    @for head in &table.columns {
                        th scope="col" { (head.label) @if !head.unit.is_empty() { ", " (head.unit) } }
                    }
                }
            }
            tbody {
                @for (at, row) in table.rows.iter().enumerate() {
                    tr class=(if row.ours { "ours" } else { "rival" }) {
                        (contender_head(page.styles[at], &row.contender))
                        @match &row.cells {
                            Ok(cells) => { @for cell in cells { (shown(cell)) } },
                            Err(why) => { td class="why" colspan=(table.columns.len().max(1)) { (why) } },
                        }
                    }
                }
            }
        }
    };
    scroll(&table.caption, content)
}

fn shown(cell: &TableCell) -> Markup {
    html! { td { (cell.text) @if let Some(range) = &cell.range { small { (range) } } } }
}
