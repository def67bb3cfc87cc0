//! Tests of all forms of the report, on a made-up run and on failed runs.

use std::collections::BTreeMap;
use std::fs;

use super::fixture;
use super::group::groups;
use super::measure::Measure;
use super::score::{Key, Scorecard, Standing};
use super::{compare, csv, html, markdown, summary};
use crate::result::results::{Delays, LoadInfo, Observed, Outcome, Results};

const HOSTILE: &str = "<script>alert(\"x\")</script>|`'&\u{1b}[31m";

fn empty() -> Results {
    let mut results = fixture::results();
    results.trials.clear();
    results
}

fn all_failed() -> Results {
    let mut results = fixture::results();
    results.trials.iter_mut().for_each(|trial| trial.outcome = Outcome::Failed("nothing works".into()));
    results
}

/// A run whose figures are not a number.
fn nonsense() -> Results {
    let mut results = fixture::results();
    for trial in &mut results.trials {
        let Outcome::Measured(measured) = &mut trial.outcome else { continue };
        measured.processor.as_mut().unwrap().busy_percent = f64::NAN;
        measured.bottlenecks.iter_mut().for_each(|b| b.used_percent = f64::INFINITY);
        for flows in &mut measured.flows {
            flows.mbit = f64::NAN;
            flows.each_mbit.iter_mut().for_each(|mbit| *mbit = f64::NAN);
            flows.series.iter_mut().for_each(|(_, mbit)| *mbit = f64::NAN);
        }
        for delays in &mut measured.delays {
            delays.sent = 0;
            delays.series.iter_mut().for_each(|(_, delay)| *delay = Some(f64::NAN));
            delays.one_way.iter_mut().for_each(|d| (d.p50_ms, d.p99_ms) = (f64::NAN, f64::NAN));
        }
    }
    results
}

/// A run over chains: pages as by siege and by wrk, and a download.
fn chains() -> Results {
    let mut results = fixture::with(&[20_000_000], fixture::CONTENDERS.len(), 1);
    results.scenarios.retain(|scenario| scenario.name == "web");
    results.trials.retain(|trial| trial.scenario == "web");
    let scenario = &mut results.scenarios[0];
    scenario.chain = true;
    let pages = scenario.loads.iter().position(|load| load.name == "pages").unwrap();
    scenario.loads[pages].kind = "siege".into();
    scenario.loads.push(LoadInfo {
        name: "requests".into(),
        kind: "wrk".into(),
        probe: false,
        ..scenario.loads[pages].clone()
    });
    for trial in &mut results.trials {
        trial.rate_bps = 0;
        let Outcome::Measured(measured) = &mut trial.outcome else { continue };
        measured.processor = None;
        measured.bottlenecks.clear();
        let pages = measured.delays_of("pages").unwrap().clone();
        measured.delays.push(Delays {
            load: "requests".into(),
            per_second: Some(20_000.0),
            sent: 80_000,
            lost: 8,
            series: Vec::new(),
            ..pages
        });
    }
    results
}

/// A run without scenarios and contenders.
fn nothing() -> Results {
    Results { scenarios: Vec::new(), contenders: Vec::new(), trials: Vec::new(), ..fixture::results() }
}

fn parsed(page: &str) -> roxmltree::Document<'_> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    roxmltree::Document::parse_with_options(page, options).unwrap()
}

#[test]
fn the_page_is_well_formed_and_refers_to_nothing_outside() {
    let results = fixture::results();
    let page = html(&results).unwrap();
    let document = parsed(&page);
    let ids: Vec<&str> = document.descendants().filter_map(|node| node.attribute("id")).collect();
    for (at, id) in ids.iter().enumerate() {
        assert!(!ids[..at].contains(id), "{id} twice");
    }
    for node in document.descendants().filter(|node| node.is_element()) {
        assert!(!["script", "link", "img", "iframe", "object", "image", "use"].contains(&node.tag_name().name()));
        assert!(node.attribute("src").is_none());
        if let Some(href) = node.attribute("href") {
            assert!(ids.contains(&href.strip_prefix('#').unwrap()), "{href} leads nowhere");
        }
        for id in node.attribute("aria-labelledby").into_iter().flat_map(str::split_whitespace) {
            assert!(ids.contains(&id), "{id} is nowhere");
        }
    }
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("url("));
    assert!(!page.contains("#A751"), "a colour without a class");
    let cells = |name: &str| document.descendants().filter(|node| node.has_tag_name(name)).count();
    assert_eq!(cells("table"), cells("caption"));
    assert!(document.descendants().filter(|n| n.has_tag_name("th")).all(|th| th.has_attribute("scope")));
    for contender in &results.contenders {
        let rows = document.descendants().filter(|n| n.has_tag_name("th")).map(text);
        assert!(rows.filter(|row| row == &contender.title).count() > 3, "{}", contender.title);
    }
}

fn text(node: roxmltree::Node<'_, '_>) -> String {
    node.descendants().filter(|n| n.is_text()).filter_map(|n| n.text()).collect()
}

#[test]
fn texts_of_files_are_escaped() {
    let mut results = fixture::results();
    let hostile = || HOSTILE.to_owned();
    (results.plan, results.command, results.sluice) = (hostile(), hostile(), hostile());
    results.warnings.push(hostile());
    results.tools.insert(hostile(), hostile());
    results.environment.cpu = hostile();
    results.contenders[4].title = hostile();
    results.contenders[4].file = hostile();
    results.scenarios[0].title = hostile();
    results.scenarios[0].loads[0].name = hostile();
    results.scenarios[0].loads[0].about = hostile();
    for trial in &mut results.trials {
        match &mut trial.outcome {
            Outcome::Measured(measured) => {
                measured.commands.push(hostile());
                measured.engine = Some(hostile());
                measured.events.iter_mut().for_each(|event| event.what = hostile());
                measured.flows.iter_mut().filter(|f| f.load == "downloads").for_each(|f| f.load = hostile());
                measured.bottlenecks[0].direction = hostile();
            }
            Outcome::Failed(why) | Outcome::Unsupported(why) => *why = hostile(),
        }
    }
    let page = html(&results).unwrap();
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;"));
    parsed(&page.replace('\u{1b}', ""));
    let markdown = markdown(&results);
    assert_eq!(markdown.matches("<script").count(), 1, "the command, which is code");
    assert!(!markdown.contains('\u{1b}'));
    assert!(!summary(&results, false).contains('\u{1b}'));
    assert!(!compare(&results, &fixture::results()).text(false).contains('\u{1b}'));
}

#[test]
fn the_best_is_marked() {
    let results = fixture::results();
    let groups = groups(&results);
    let scorecard = Scorecard::of(&groups);
    let delay = &scorecard.board(Key::Delay).unwrap().columns;
    assert_eq!(delay.len(), 4, "two scenarios with a probe, two rates");
    let standings: Vec<Standing> = delay[0].cells.iter().map(|cell| cell.standing).collect();
    let medians: Vec<f64> = delay[0].cells.iter().filter_map(|cell| Some(cell.value?.median)).collect();
    assert_eq!(medians.len(), 6);
    assert_eq!(standings.iter().filter(|standing| **standing == Standing::Best).count(), 1);
    assert_eq!(standings[4], Standing::Best);
    assert!(medians.iter().all(|median| medians[4] <= *median));
    assert_eq!((standings[0], standings[1]), (Standing::Alone, Standing::Behind), "a baseline is not ranked");
    let failed = &delay[0].cells[6];
    assert_eq!((failed.failure, failed.value, failed.standing), (Some("failed"), None, Standing::Alone));
    assert_eq!(delay[0].cells[3].value.unwrap().repeats, 2, "one of three repeats failed");
    // FIFO carries more without any scheduler, but it is no rival.
    let throughput = &scorecard.board(Key::Throughput).unwrap().columns[1];
    assert_eq!(throughput.cells[0].standing, Standing::Alone);
    assert!(throughput.cells[0].not_owned);
    let page = html(&results).unwrap();
    let document = parsed(&page);
    let best: Vec<_> = document
        .descendants()
        .filter(|node| node.attribute("class").is_some_and(|class| class.contains("best")))
        .collect();
    assert!(best.iter().all(|cell| text(*cell).contains('★')));
    assert!(best.len() >= delay.len());
    assert!(page.contains("Where Sluice is not the best") && !markdown(&results).contains("throughput: No scheduler"));
}

#[test]
fn no_wins_without_a_rival() {
    let mut results = fixture::results();
    for trial in results.trials.iter_mut().filter(|trial| !["none", "sluice"].contains(&trial.contender.as_str())) {
        trial.outcome = Outcome::Unsupported("the kernel has no such qdisc\nmore".into());
    }
    let page = html(&results).unwrap();
    for text in [summary(&results, false), markdown(&results), page] {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("Nothing to compare: the run has not both Sluice and a rival"), "{text}");
        assert!(!text.contains("Nowhere in this run") && !text.contains("is the best, or"), "{text}");
        // The note comes first, before anything that reads as a comparison.
        let missing = text.find("CAKE could not run (unsupported): the kernel has no such qdisc").expect("it is said");
        assert!(missing < text.find("Nothing to compare").expect("the verdict"), "{text}");
    }
}

#[test]
fn single_repeat_has_no_best() {
    let mut results = fixture::results();
    results.trials.retain(|trial| trial.repeat == 1);
    let groups = groups(&results);
    let scorecard = Scorecard::of(&groups);
    let cells = || scorecard.tables.iter().flat_map(|board| &board.columns).flat_map(|column| &column.cells);
    assert!(cells().all(|cell| matches!(cell.standing, Standing::Alone | Standing::Behind)));
    assert!(cells().any(|cell| cell.standing == Standing::Behind), "what is behind is said all the same");
    let page = html(&results).unwrap();
    assert!(!page.contains(">★<") && page.contains("Each trial was done once"), "no star");
    assert!(!summary(&results, true).contains("\x1b[32m"));
}

#[test]
fn csv_has_the_same_numbers() {
    let results = fixture::results();
    let text = csv(&results).unwrap();
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let mut found = BTreeMap::new();
    for row in reader.records() {
        let row = row.unwrap();
        let key: Vec<String> = row.iter().take(6).map(str::to_owned).collect();
        assert!(found.insert(key.join("/"), row[7].to_owned()).is_none(), "{key:?} twice");
    }
    let value = |key: &str| found[key].parse::<f64>().unwrap();
    for trial in &results.trials {
        let at = format!("{}/{}/{}/{}", trial.scenario, trial.contender, trial.rate_bps, trial.repeat);
        let status = &found[&format!("{at}//status")];
        let Some(measured) = trial.measured() else {
            assert!(status.starts_with("failed: ") || status.starts_with("unsupported: "));
            continue;
        };
        assert_eq!(status, "measured");
        assert_eq!(value(&format!("{at}//busy")), measured.processor.unwrap().busy_percent);
        assert_eq!(value(&format!("{at}/egress/used")), measured.bottlenecks[0].used_percent);
        for flows in &measured.flows {
            assert_eq!(value(&format!("{at}/{}/rate", flows.load)), flows.mbit);
            assert_eq!(value(&format!("{at}/{}/flow_1", flows.load)), flows.each_mbit[0]);
        }
        for delays in &measured.delays {
            assert_eq!(value(&format!("{at}/{}/whole_p99", delays.load)), delays.whole.unwrap().p99_ms);
        }
    }
}

#[test]
fn fits_the_terminal_and_needs_no_colours() {
    let results = fixture::results();
    let text = summary(&results, false);
    assert!(!text.contains('\u{1b}'));
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(results.contenders.iter().all(|contender| text.contains(&contender.title)), "{text}");
    assert!(summary(&results, true).contains("\x1b[32m"));
    let other = compare(&results, &fixture::with(&[20_000_000], 5, 1));
    assert!(other.text(false).lines().all(|line| line.chars().count() <= 100));
}

#[test]
fn failed_runs_are_reported() {
    let mut other_format = fixture::results();
    other_format.format += 1;
    assert_eq!(html(&other_format).unwrap_err().exit_code(), 2);
    for results in [empty(), all_failed(), nonsense(), nothing()] {
        let page = html(&results).unwrap();
        parsed(&page);
        let comparison = compare(&results, &fixture::results());
        let texts = [page, markdown(&results), csv(&results).unwrap(), summary(&results, false)];
        for text in texts.into_iter().chain([comparison.text(false), comparison.markdown(), comparison.json().unwrap()])
        {
            for not_a_number in ["NaN", "inf ", "inf<", "inf,", "Infinity"] {
                assert!(!text.contains(not_a_number), "{not_a_number} in {text}");
            }
        }
    }
}

#[test]
fn a_large_run_is_a_page_of_sensible_size() {
    let page = html(&fixture::with(&[20_000_000, 100_000_000], 10, 4)).unwrap();
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    parsed(&page);
}

/// Writes pages for `make look`.
#[test]
#[ignore = "writes files: make look"]
fn shown_pages() {
    let directory = std::env::var("SLUICE_PAGES").unwrap_or_else(|_| ".".to_owned());
    let write = |name: &str, text: String| fs::write(format!("{directory}/{name}"), text).unwrap();
    let results = fixture::results();
    write("page.html", html(&results).unwrap());
    write("short.html", html(&fixture::with(&[50_000_000], 7, 1)).unwrap());
    write("large.html", html(&fixture::with(&[20_000_000, 100_000_000], 14, 4)).unwrap());
    write("page.md", markdown(&results));
    write("page.csv", csv(&results).unwrap());
    write("results.json", serde_json::to_string(&results).unwrap());
    write("summary.txt", summary(&results, true));
    write("compare.txt", compare(&results, &fixture::with(&[20_000_000], 6, 1)).text(true));
}

#[test]
fn a_tap_has_packets_and_the_loss_that_nobody_told() {
    let mut results = fixture::with(&[20_000_000], 2, 1);
    results.scenarios.truncate(1);
    let scenario = &mut results.scenarios[0];
    scenario.tap = true;
    scenario.loads.truncate(1);
    (scenario.loads[0].name, scenario.loads[0].kind) = ("fast".into(), "frames".into());
    let name = scenario.name.clone();
    results.trials.retain(|trial| trial.scenario == name);
    for trial in &mut results.trials {
        trial.rate_bps = 0;
        let Outcome::Measured(measured) = &mut trial.outcome else { continue };
        (measured.delays, measured.flows, measured.bottlenecks) = (Vec::new(), Vec::new(), Vec::new());
        (measured.processor, measured.noise) = (None, None);
        measured.observed = vec![Observed {
            load: "fast".into(),
            sent: 1_000,
            arrived: 1_000,
            delivered: 900,
            missed: 40,
            records: None,
            dropped: None,
            seconds: 2.0,
            instructions: None,
        }];
    }
    let groups = groups(&results);
    let entry = &groups[0].entries[0];
    let figure = |measure| entry.get("fast", measure).map(|spread| spread.median);
    assert_eq!(figure(Measure::Arrived), Some(500.0));
    assert_eq!(figure(Measure::Observed), Some(450.0));
    assert_eq!(figure(Measure::Unobserved), Some(10.0));
    assert_eq!(figure(Measure::Untold), Some(6.0));
    let page = html(&results).unwrap();
    parsed(&page);
    for text in [&page, &markdown(&results)] {
        assert!(text.contains("of these not told") && !text.contains("Backlogs"), "{text}");
    }
}

#[test]
fn a_chain_has_times_by_size_and_requests_a_second() {
    let results = chains();
    let groups = groups(&results);
    assert_eq!(groups[0].title(), "Pages beside a download");
    let scorecard = Scorecard::of(&groups);
    let columns = |key| -> Vec<(String, String)> {
        let board = scorecard.board(key).map_or(&[][..], |board| &board.columns);
        board.iter().map(|column| (column.of.clone(), column.measure.name())).collect()
    };
    let pair = |of: &str, measure: &str| vec![(of.to_owned(), measure.to_owned())];
    assert_eq!(columns(Key::Delay), pair("pages", "whole_mean"));
    assert_eq!(columns(Key::Requests), pair("requests", "requests_per_second"));
    assert_eq!(columns(Key::Throughput), pair("download", "rate"));
    assert_eq!(columns(Key::Loss), pair("", "loss"));
    assert!(columns(Key::Cost).is_empty());
    let page = html(&results).unwrap();
    parsed(&page);
    for text in [&page, &markdown(&results)] {
        assert!(text.contains("Response times of requests one after the other, mean"), "{text}");
        assert!(!text.contains("kbit/s") && !text.contains("Backlogs"), "{text}");
    }
    assert!(csv(&results).unwrap().contains(",requests_per_second,"));
    assert!(summary(&results, false).contains("requests"));
}
