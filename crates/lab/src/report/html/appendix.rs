//! The appendix of the page: contenders, definitions, files, commands.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::super::number;
use super::{Page, swatch};
use crate::result::results::{Bottleneck, Clock, Measured};

pub fn sections(page: &Page) -> Markup {
    html! { (contenders(page)) (measured(page)) (files(page)) }
}

fn contenders(page: &Page) -> Markup {
    html! {
        section aria-labelledby="contenders" {
            h2 id="contenders" { "Contenders" }
            dl class="terms" {
                @for (contender, style) in page.results.contenders.iter().zip(&page.styles) {
                    dt { (swatch(*style)) (contender.title) }
                    dd {
                        (contender.about)
                        @let engines = different(page, &contender.name, |measured| measured.engine.as_ref());
                        @if !engines.is_empty() { " Engine: " (engines.join("; ")) "." }
                        @let offloads = different(page, &contender.name, |measured| Some(&measured.offloads));
                        @if !offloads.is_empty() { " Offloads of its device: " (offloads.join("; ")) "." }
                    }
                }
            }
        }
    }
}

/// The different values of a field in the trials of this contender.
fn different<'a>(page: &Page<'a>, contender: &str, of: fn(&Measured) -> Option<&String>) -> Vec<&'a str> {
    let trials = page.results.trials.iter().filter(|trial| trial.contender == contender);
    let values: BTreeSet<&str> = trials.filter_map(|trial| Some(of(trial.measured()?)?.as_str())).collect();
    values.into_iter().filter(|value| !value.is_empty()).collect()
}

fn measured(page: &Page) -> Markup {
    let term = |name: &str, text: String| html! { dt { (name) } dd { (text) } };
    let windows: BTreeSet<String> = page
        .results
        .trials
        .iter()
        .filter(|trial| trial.rate_bps > 0)
        .filter_map(|trial| trial.measured())
        .map(|m| format!("{} s to {} s", number::digits(m.from_ms / 1e3), number::digits(m.to_ms / 1e3)))
        .collect();
    let windows = if windows.is_empty() {
        String::new()
    } else {
        format!(" Here it goes from {}.", windows.into_iter().collect::<Vec<String>>().join(", from "))
    };
    let chains = page.results.scenarios.iter().filter(|scenario| scenario.chain).count();
    let chain = html! {
        p { "Over a chain, client, hops and server are network namespaces of one machine, in a row. Each hop forwards one port "
            "to the next, and the last to the server, a single process of nginx. The loads run one after the other, each alone." }
        dl class="terms" {
            (term("Response time", "The time from one line of siege to the next: connection, request and answer. siege prints \
                hundredths of a second, so the harness takes the times of its lines.".into()))
            (term("Requests a second", "Answers that wrk counted, over its duration: over kept connections, or over a connection \
                for each request. Of “connections”, pages have one byte.".into()))
            (term("Failed", "Requests without an answer, or with another than the whole page, of all that were sent.".into()))
            (term("Congestion control", "Cubic for all connections, of relays and server too, by the routes.".into()))
        }
    };
    let taps = page.results.scenarios.iter().filter(|scenario| scenario.tap).count();
    let tap = html! {
        p { "At a tap, one network namespace sends live XDP frames to another over a veth, as a driver that forwards by XDP does, and the "
            "contender observes them there. Each load runs alone, in namespaces of its own. The sender works on one processor, "
            "which also takes the frames in; what reads records has another one." }
        dl class="terms" {
            (term("Arrived", "Frames that the device has received, over the time of sending: how fast the processor could take \
                them in beside sending them, with this observer attached.".into()))
            (term("Observed", "Packets that userspace got, as records or as counts, over the same time; of a sample, those for which its \
                records stand.".into()))
            (term("Not observed", "Packets that arrived and that it did not get, of all that arrived.".into()))
            (term("Of these not told", "Packets that were lost without being counted as lost: arrived, less observed, less what the \
                observer says it missed.".into()))
            (term("Instructions a packet", "Those of the whole machine, the sender included, where frames come as fast as they go and the \
                clock counts instructions; compare them with those of bare XDP drop.".into()))
        }
    };
    let models = page.results.scenarios.iter().filter(|scenario| scenario.model.is_some()).count();
    let model = super::model::terms();
    if chains + taps + models == page.results.scenarios.len() {
        return html! {
            section aria-labelledby="measured" {
                h2 id="measured" { "How it was measured" }
                @if chains > 0 { (chain) }
                @if taps > 0 { (tap) }
                @if models > 0 { (model) }
            }
        };
    }
    html! {
        section aria-labelledby="measured" {
            h2 id="measured" { "How it was measured" }
            @if chains > 0 { (chain) }
            @if taps > 0 { (tap) }
            @if models > 0 { (model) }
            p { "Hosts in network namespaces of one machine send real traffic through a router. The contender shapes the "
                "router’s device to the rate; the line behind it is a little faster and has a queue of its own." }
            dl class="terms" {
                (term("Window", format!("Only what was sent in the window counts: the idle time before the bulk traffic \
                    and the warm-up after its begin are left out.{windows}")))
                (term("p50, p95, p99", "Percentiles by nearest rank: p99 is the least delay that 99 % of all do not \
                    exceed, and so one that was measured; of fewer than 100 delays it is the greatest. Lost packets, to which \
                    no answer came back, have no delay; they are counted as loss, and so are pages that were due and not loaded.".into()))
                (term("One way, round trip, fetch", "One way is the time through the bottleneck alone; sender and \
                    receiver share a clock. A round trip is a packet and its answer. A fetch is a page from the call of \
                    the client to its last byte.".into()))
                (term("Above idle", "The p99 in the window less the median before the bulk traffic began: what the load \
                    added. One way where that is known, else whole.".into()))
                (term("Jitter", "The mean change of the delay from one packet to the next.".into()))
                (term("Rates", "Payload received in the window. The share of the wire that was used counts everything that \
                    passed, headers and acknowledgements included, against the rate that was asked for.".into()))
                (term("Fairness", "Jain’s index: 1 where all have the same, 1/n where one of n has all. By weight: each \
                    load’s rate is divided by its weight first.".into()))
                (term("Owned", format!("Whether the queue formed at the contender: the line’s queue behind it, read twice a second, did not hold \
                    more than {} ms in the mean and dropped nothing. Where it is not owned, the figures show the line’s queue, not the \
                    contender.", Bottleneck::OWNED_BELOW_MS)))
                (term("Noise", "The p99 of a probe that ends before the bottleneck: delay that the machine and the \
                    harness add. Differences below it mean nothing. Programs that tell times have a real-time priority, where \
                    the system allows it, so that they do not wait for the processor while others of the harness begin.".into()))
                (term("Cost", match page.results.clock {
                    Clock::Real | Clock::Simulated => "The time that all processors were busy in the window, of all that they had. All hosts \
                        and the programs that make the traffic are in it, so compare, do not add up.".into(),
                    Clock::Instructions => "Instructions of the emulated processor while it was busy, divided by the \
                        packets that left the bottleneck. All hosts and the programs that make the traffic are in it, so \
                        compare, do not add up.".into(),
                }))
                (term("Repeats, best and equal", "A figure is the median of its repeats, by nearest rank, with the least \
                    and the greatest. Two figures count as different where those ranges do not overlap, and the medians \
                    differ by more than the figure resolves: 0.1 ms and 2 % for delays, 1 % for rates and instructions, \
                    0.1 points for loss, 1 point and 2 % for processor time, 0.005 for fairness.".into()))
            }
        }
    }
}

fn files(page: &Page) -> Markup {
    let r = page.results;
    html! {
        section aria-labelledby="files" {
            h2 id="files" { "Files and commands" }
            h3 { "To repeat it" }
            pre tabindex="0" { code { (r.command) } }
            @if r.contenders.iter().any(|contender| !commands(page, &contender.name).is_empty()) {
                h3 { "Commands of each contender" }
                @for contender in &r.contenders {
                    @let commands = commands(page, &contender.name);
                    @if !commands.is_empty() {
                        details {
                            summary { (contender.title) }
                            @for (lines, cases) in &commands {
                                p class="key" { (cases.join("; ")) }
                                pre tabindex="0" { code { (lines.join("\n")) } }
                            }
                        }
                    }
                }
            }
            h3 { "Contenders" }
            @for c in &r.contenders { (file(&c.title, &c.name, &c.file)) }
            h3 { "Scenarios" }
            @for s in &r.scenarios { (file(&s.title, &s.name, &s.file)) }
        }
    }
}

fn file(title: &str, name: &str, text: &str) -> Markup {
    html! {
        details {
            summary { (title) " " small { (name) ".toml" } }
            pre tabindex="0" { code { (text) } }
        }
    }
}

/// The different lists of commands, each with the trials that used it.
fn commands<'a>(page: &Page<'a>, contender: &str) -> Vec<(&'a [String], Vec<String>)> {
    let mut all: Vec<(&[String], Vec<String>)> = Vec::new();
    for trial in page.results.trials.iter().filter(|trial| trial.contender == contender) {
        let Some(measured) = trial.measured().filter(|measured| !measured.commands.is_empty()) else { continue };
        let rate = if trial.rate_bps == 0 { String::new() } else { format!(", {}", number::rate(trial.rate_bps)) };
        let case = format!("{}{rate}", trial.scenario);
        match all.iter_mut().find(|(commands, _)| *commands == measured.commands) {
            Some((_, cases)) if cases.contains(&case) => {}
            Some((_, cases)) => cases.push(case),
            None => all.push((&measured.commands, vec![case])),
        }
    }
    all
}
