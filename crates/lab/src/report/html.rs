//! The page: one self-contained HTML file.

mod appendix;
mod model;
mod scenario;
mod scorecard;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::chart::Style;
use super::group::{Group, groups, missing, strays};
use super::number;
use super::score::Scorecard;
use super::verdict::Verdict;
use crate::result::environment::UNKNOWN;
use crate::result::results::{Clock, FORMAT, Results};
use sluice_error::{Error, Kind, Result};

/// The style sheet, without line breaks at its ends.
const STYLE: &str = include_str!("html/style.css");
/// The head of the page, which forbids browsers to fetch anything.
const HEAD: &str = "<meta charset=\"utf-8\"/><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
     <meta name=\"color-scheme\" content=\"light dark\"/>\
     <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>";
/// The most groups for which the pictures over time are open from the start.
const MAX_UNFOLDED: usize = 3;

/// The longest unbroken name, characters.
const MAX_NAME_CHARS: usize = 28;

/// The data for all parts of the page.
struct Page<'a> {
    results: &'a Results,
    groups: &'a [Group<'a>],
    scorecard: Scorecard<'a>,
    verdict: Verdict,
    /// The style of each contender.
    styles: Vec<Style>,
}

/// The run as one HTML file: scorecard, tables, pictures, files and definitions. It refers to nothing outside itself and
/// runs no script.
pub fn html(results: &Results) -> Result<String> {
    if results.format != FORMAT {
        let what = format!("the results have format {}, this program shows {FORMAT}", results.format);
        return Err(Error::new(Kind::Input, what).help("use the version of Sluice that wrote them"));
    }
    let groups = groups(results);
    let scorecard = Scorecard::of(&groups);
    let verdict = Verdict::of(&scorecard);
    let styles = Style::of_contenders(results.contenders.iter().map(|contender| contender.ours));
    let page = Page { results, groups: &groups, scorecard, verdict, styles };
    Ok(page.document()?.into_string())
}

impl Page<'_> {
    fn document(&self) -> Result<Markup> {
        let r = self.results;
        let scenarios = scenario::all(self)?;
        let models = model::section(self)?;
        Ok(html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    (PreEscaped(HEAD))
                    title { "Sluice lab: " (r.plan) ", " (r.began) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    a class="skip" href="#scorecard" { "To the scorecard" }
                    header { (self.head()) }
                    main {
                        (scorecard::section(self))
                        (models)
                        (scenarios)
                        (appendix::sections(self))
                    }
                    footer { "Sluice " (r.sluice) ". All figures are in results.json; " code { "sluice lab report" }
                        " makes this page of it, and CSV and Markdown." }
                }
            }
        })
    }

    fn head(&self) -> Markup {
        let r = self.results;
        let e = &r.environment;
        let (title, rivals) = if r.scenarios.iter().all(|scenario| scenario.chain) {
            ("Forwarded ports", "forwarders of ports")
        } else if r.scenarios.iter().all(|scenario| scenario.tap) {
            ("Observed packets", "observers of packets")
        } else if r.scenarios.iter().all(|scenario| scenario.model.is_some()) {
            ("Schedulers before a card that shapes", "ways to use a card")
        } else {
            ("Queues under load", "schedulers")
        };
        let modelled = r.scenarios.iter().any(|scenario| scenario.model.as_ref().is_some_and(|model| !model.real));
        let traffic = match (r.clock, modelled) {
            (Clock::Simulated, _) => "a model",
            (_, true) => "models and real traffic",
            (_, false) => "real traffic",
        };
        let known = |text: &str| if text == UNKNOWN { "not known".to_owned() } else { text.to_owned() };
        let clock = match r.clock {
            Clock::Real if modelled => "wall time; of models, simulated time",
            Clock::Real => "wall time",
            Clock::Instructions => "instructions of an emulated processor, 10⁹ a second",
            Clock::Simulated => "simulated time",
        };
        let warnings: Vec<String> = r.warnings.iter().cloned().chain(strays(r)).chain(missing(self.groups)).collect();
        html! {
            h1 { (title) }
            p class="lead" {
                "Sluice " (r.sluice) " beside other " (rivals) ": " (traffic) ", one contender after another. Plan “" (r.plan)
                "”: " (number::count(r.scenarios.len(), "scenario", "scenarios")) ", "
                (number::count(r.contenders.len(), "contender", "contenders")) ", "
                (number::count(r.trials.len(), "trial", "trials")) "."
            }
            @if !warnings.is_empty() {
                section class="warnings" aria-labelledby="warnings" {
                    h2 id="warnings" { (number::count(warnings.len(), "warning", "warnings")) }
                    ul { @for warning in &warnings { li { (warning) } } }
                }
            }
            dl class="facts" {
                (fact("Began", &format!("{} UTC", r.began)))
                (fact("Took", &number::duration(r.took_s)))
                (fact("Processor", &format!("{}, {}", known(&e.cpu), number::count(e.cores, "core", "cores"))))
                (fact("Kernel", &known(&e.kernel)))
                (fact("Distribution", &known(&e.distribution)))
                (fact("Clock", clock))
                @if !r.tools.is_empty() {
                    (fact("Tools", &r.tools.iter().map(|(tool, version)| format!("{tool} {version}"))
                        .collect::<Vec<String>>().join(", ")))
                }
            }
            nav aria-labelledby="contents" {
                h2 id="contents" { "Contents" }
                ol {
                    li { a href="#scorecard" { "Scorecard" } }
                    @if r.scenarios.iter().any(|scenario| scenario.model.is_some()) { li { a href="#models" { "Over all models" } } }
                    @for (at, scenario) in r.scenarios.iter().enumerate() {
                        li { a href={ "#s" (at) } { (scenario.title) } }
                    }
                    li { a href="#contenders" { "Contenders" } }
                    li { a href="#measured" { "How it was measured" } }
                    li { a href="#files" { "Files and commands" } }
                }
            }
        }
    }

    /// The group's anchor.
    fn place(&self, group: &Group) -> String {
        format!("g{}", self.groups.iter().position(|g| std::ptr::eq(g, group)).unwrap_or_default())
    }

    /// Whether the pictures over time are open from the start.
    fn unfolded(&self) -> bool {
        self.groups.len() <= MAX_UNFOLDED
    }
}

fn fact(name: &str, value: &str) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

/// A sample of a contender's style.
fn swatch(style: Style) -> Markup {
    html! {
        svg class="chart k" viewBox="0 0 76 24" aria-hidden="true" {
            line class=(style.class()) x1="0" y1="12" x2="76" y2="12" {}
        }
    }
}

/// The header cell of a contender's row.
fn contender_head(style: Style, title: &str) -> Markup {
    let long = title.chars().count() > MAX_NAME_CHARS;
    html! { th scope="row" class=(if long { "long" } else { "short" }) { (swatch(style)) (title) } }
}

/// A sample of a load's style.
fn patch(style: Style) -> Markup {
    html! {
        svg class="chart k" viewBox="0 0 76 24" aria-hidden="true" {
            rect class=(style.class()) x="0" y="0" width="76" height="24" {}
        }
    }
}

/// A box that scrolls wide content, also by keys.
fn scroll(label: &str, content: Markup) -> Markup {
    html! { div class="scroll" role="region" tabindex="0" aria-label=(label) { (content) } }
}
