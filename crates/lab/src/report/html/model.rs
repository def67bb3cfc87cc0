//! The part of the page on all models together: pictures over numbers of classes, pipes and instances, ratios, and published figures.

use maud::{Markup, html};

use super::super::chart::{self, Line, Steps, Style};
use super::super::measure::{Measure, Path, Rank};
use super::super::model::{Beside, Row, both_times};
use super::super::number::{self, MISSING};
use super::{Page, scroll, swatch};
use crate::format::{ALL, EARLY};
use sluice_error::Result;

/// The pictures of a row: their titles, the packets, the measure, and whether the scale is linear.
const PICTURES: [(&str, &str, Measure, bool); 4] = [
    ("Mean latency of all packets", ALL, Measure::Delay(Path::Modelled, Rank::Mean), false),
    ("Mean latency of all but the last class", EARLY, Measure::Delay(Path::Modelled, Rank::Mean), false),
    ("p99 of all but the last class", EARLY, Measure::Delay(Path::Modelled, Rank::P99), false),
    ("Lost of all but the last class", EARLY, Measure::Loss, true),
];

pub fn section(page: &Page) -> Result<Markup> {
    if page.groups.iter().all(|group| group.scenario.model.is_none()) {
        return Ok(html! {});
    }
    let mut rows = Vec::new();
    for (at, of) in Row::all(page.groups).iter().enumerate() {
        rows.push(row(page, at, of)?);
    }
    let beside = Beside::all(page.groups);
    Ok(html! {
        section aria-labelledby="models" {
            h2 id="models" { "Over all models" }
            p { "Each figure is the median of the repeats, which differ in their seeds. Scales of latency are logarithmic." }
            (ratios(page))
            @for row in &rows { (row) }
            @if !beside.is_empty() { (published(&beside)) }
        }
    })
}

fn row(page: &Page, at: usize, of: &Row) -> Result<Markup> {
    let names = of.names();
    // Models and real ports have contenders of their own.
    let measure_of_all = Measure::Delay(Path::Modelled, Rank::Mean);
    let has_part = |index: usize| of.groups.iter().any(|group| group.entries[index].get(ALL, measure_of_all).is_some());
    let mut pictures = Vec::new();
    for (n, (title, load, measure, linear)) in PICTURES.into_iter().enumerate() {
        let lines: Vec<Line> = page
            .results
            .contenders
            .iter()
            .enumerate()
            .filter(|(index, _)| has_part(*index))
            .map(|(index, contender)| Line {
                title: contender.title.clone(),
                style: page.styles[index],
                values: of.groups.iter().map(|group| Some(group.entries[index].get(load, measure)?.median)).collect(),
            })
            .collect();
        let unit = format!("{title}, {}", measure.unit());
        let texts = Steps { title, names: &names, what: of.size.name(), unit: &unit, linear };
        let svg = chart::steps(&format!("m{at}-{n}"), &texts, &lines)?;
        pictures.extend(svg.map(|svg| html! { figure { figcaption { (title) } (scroll(title, svg)) } }));
    }
    Ok(html! {
        h3 { (of.title()) }
        ul class="legend" {
            @for (index, contender) in page.results.contenders.iter().enumerate().filter(|(index, _)| has_part(*index)) {
                @let style = &page.styles[index];
                li {
                    (swatch(*style))
                    @if matches!(style, Style::Ours(_)) { b { (contender.title) } } @else { (contender.title) }
                }
            }
        }
        div class="pairs" { @for picture in &pictures { (picture) } }
    })
}

/// The factor by which the mean latency is less, for each model.
fn ratios(page: &Page) -> Markup {
    let names = |ours: bool| {
        let mut names: Vec<&str> = Vec::new();
        for group in page.groups.iter().filter(|group| group.scenario.model.is_some()) {
            let first = group.measured().find(|entry| entry.contender.ours == ours);
            names.extend(first.map(|entry| entry.contender.title.as_str()));
        }
        names.dedup();
        names.join(", ")
    };
    let (ours, other) = (names(true), names(false));
    if ours.is_empty() || other.is_empty() {
        return html! {};
    }
    let caption = format!("How many times less the mean latency of {ours} is than that of {other}");
    let content = html! {
        table {
            caption { span { (caption) } }
            thead { tr {
                th scope="col" { "Model" }
                th scope="col" { "all packets" }
                th scope="col" { "all but the last class" }
                th scope="col" { "lost of all but the last class, %" }
                th scope="col" { "lost of the last class, %" }
                th scope="col" { "fairness of pipes, less that of the other" }
            } }
            tbody {
                @for group in page.groups.iter().filter(|group| group.scenario.model.is_some()) {
                    tr {
                        th scope="row" class="long" { a href={ "#" (page.place(group)) } { (group.title()) } }
                        @for times in both_times(group) { td { (times.map_or(MISSING.to_owned(), number::digits)) } }
                        @for load in [EARLY.to_owned(), last_class(group)] {
                            td { (figure_of(group, &load, Measure::Loss)) }
                        }
                        td { (fairness(group)) }
                    }
                }
            }
        }
    };
    scroll(&caption, content)
}

/// The name of the last class; with one class, of all packets.
fn last_class(group: &super::Group) -> String {
    let classes = group.scenario.model.as_ref().map_or(1, |model| model.classes);
    if classes == 1 { ALL.to_owned() } else { format!("class {classes}") }
}

fn figure_of(group: &super::Group, load: &str, measure: Measure) -> String {
    let ours = group.measured().find(|entry| entry.contender.ours).and_then(|entry| entry.get(load, measure));
    ours.map_or(MISSING.to_owned(), |figure| figure.text(measure))
}

fn fairness(group: &super::Group) -> String {
    let of = |ours: bool| {
        let entry = group.measured().find(|entry| entry.contender.ours == ours)?;
        Some(entry.get("", Measure::Jain)?.median)
    };
    of(true).zip(of(false)).map_or(MISSING.to_owned(), |(ours, other)| format!("{:+.4}", ours - other))
}

fn published(beside: &[Beside]) -> Markup {
    let caption = "Beside the published evaluation: latency, µs";
    let cell = |value: Option<f64>| value.map_or(MISSING.to_owned(), number::digits);
    let content = html! {
        table {
            caption { span { (caption) } }
            thead { tr {
                th scope="col" { "Model" } th scope="col" { "least" } th scope="col" { "mean" } th scope="col" { "greatest" }
            } }
            @for of in beside {
                tbody {
                    tr {
                        th scope="rowgroup" { b { (of.group.title()) } }
                        td colspan="3" { "mean with backpressure: published 1/" (cell(of.times[0])) ", here 1/" (cell(of.times[1])) }
                    }
                    @for (name, published, figures) in &of.rows {
                        tr {
                            th scope="row" { @if *published { i { (name) } } @else { (name) } }
                            @for figure in figures { td { (cell(*figure)) } }
                        }
                    }
                }
            }
        }
    };
    html! {
        h3 { "Published figures" }
        p { "They are of DPDK’s rte_sched before an Intel E810, measured from outside: the least latency, some 33 µs, is that of the testbed, "
            "and is not in the model. Loads, queues and rings there are not known in full, so compare ratios, not times." }
        (scroll(caption, content))
    }
}

/// The making of models, in words.
pub fn terms() -> Markup {
    let term = |name: &str, text: &str| html! { dt { (name) } dd { (text) } };
    html! {
        p { "A model has neither a network nor a kernel. Packets of random classes come to instances of Sluice’s own scheduler of pipes, "
            "which post them to a modelled card that shapes and refuses what it has no descriptor for. Time is simulated, and the repeat is "
            "the seed, so another run has the same figures. The load, the processors and the card are modelled; scheduler and backpressure are "
            "the code that engines would run." }
        dl class="terms" {
            (term("Latency", "From the arrival of a packet at the receive ring of its instance until the card has sent its last bit. What \
                came in the window counts, and the run goes on with the same load until the fate of each is known."))
            (term("Pipes", "Each pipe has a packet in turn, in a scrambled order, of a random class, so classes have the same load. The \
                time between two packets is random, up to twice its mean."))
            (term("Queues", "A pipe holds 64 packets of a class, and one of the last class."))
            (term("Instances", "Each has a share of the pipes, a receive ring of 1,024 packets and a processor, which needs the given \
                time for a packet (assumed, not measured) and 500 ns for a turn of up to 64. They share the card’s queues and its rate."))
            (term("Lost before the scheduler", "By a receive ring, which knows no classes: the processor was too slow."))
            (term("Fairness of pipes", "Jain’s index of the packets that were sent of each pipe: 1 if all have the same."))
            (term("Sent by the port", "In the window, with the 24 bytes that Ethernet adds to a frame."))
            (term("AF_XDP", "Scenarios with this word in their titles are no models, and their time is real, so other work of the machine is in \
                them. A program sends UDP datagrams of the same classes, from a port for each flow, with the time in each; sluice wire queues \
                them on the way to the end of a veth, where sluice lab card keeps a processor for the time of each frame, and notes when that is over. Latency is from the \
                making of a packet until then. A veth holds 256 frames and refuses more (from Linux 6.16 on, if it has a qdisc). Classes hold 1,000 packets, and the last one as many as there are flows."))
            (term("Curves", "They are drawn from 400 packets of each repeat, from the slowest on in equal steps of rank; all figures are of all packets."))
            (term("Best and equal", "A figure is the median of its repeats, with the least and the greatest. Two count as different where \
                those ranges do not overlap, and the medians differ by more than 0.1 µs and 2 %, 1 % of a rate, 0.1 points of loss, or 0.005 of \
                fairness."))
        }
    }
}
