//! The plan `backpressure-quick` is run, without root and a network: what it finds is what the design of backpressure by class promises.
//!
//! Nothing here depends on the speed of this machine: time is simulated.

use sluice_lab::job::Request;
use sluice_lab::results::{Clock, Delays, Measured, Results};
use sluice_lab::{campaign, format, report, store};

const OURS: &str = "card-backpressure";
const ALONE: &str = "card-ring";

fn run(what: &[&str], out: &std::path::Path) -> Results {
    let request = Request {
        what: what.iter().map(|name| (*name).to_owned()).collect(),
        out: Some(out.to_owned()),
        command: "sluice lab run backpressure-quick".to_owned(),
        ..Request::default()
    };
    let done = campaign::run(&request).expect("it needs neither root nor a network");
    assert!(!done.interrupted);
    done.results
}

fn trials<'a>(results: &'a Results, scenario: &'a str, contender: &'a str) -> impl Iterator<Item = &'a Measured> {
    let own = move |trial: &&sluice_lab::results::Trial| trial.scenario == scenario && trial.contender == contender;
    let trials: Vec<_> = results.trials.iter().filter(own).collect();
    assert_eq!(trials.len(), 2, "{scenario} under {contender}");
    trials.into_iter().map(|trial| trial.measured().expect("it was measured"))
}

fn of<'a>(measured: &'a Measured, load: &str) -> &'a Delays {
    measured.delays_of(load).unwrap_or_else(|| panic!("no {load}"))
}

fn mean_us(measured: &Measured, load: &str) -> f64 {
    of(measured, load).one_way.expect("packets were sent").mean_ms * 1e3
}

fn worst_us(measured: &Measured, load: &str) -> f64 {
    of(measured, load).one_way.expect("packets were sent").max_ms * 1e3
}

#[test]
fn the_quick_plan_finds_what_was_promised() {
    let directory = tempfile::tempdir().expect("a directory");
    let results = run(&["backpressure-quick"], directory.path());
    assert_eq!(results.clock, Clock::Simulated);
    assert!(results.warnings.is_empty(), "{:?}", results.warnings);
    overload_costs_the_last_class_alone(&results);
    instances_are_added(&results);
    let page = std::fs::read_to_string(directory.path().join(store::REPORT)).expect("a page");
    for part in
        ["Over all models", "By classes: 110 % of 25 Gbit/s", "By instances: 98 % of 100 Gbit/s", "Published figures"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(report::markdown(&results).contains("p99 of latency by class"));
    is_well_formed(&page);
    // The report is a function of what was stored.
    let stored = store::read(directory.path()).expect("results");
    assert_eq!(report::markdown(&stored), report::markdown(&results));
    // The seed is the repeat: another run has the same figures.
    let other = tempfile::tempdir().expect("a directory");
    assert_eq!(run(&["backpressure-quick"], other.path()).trials, results.trials);
}

/// Each place of the page has a name of its own, and each link leads to one.
fn is_well_formed(page: &str) {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(page, options).expect("it is XML");
    let mut ids: Vec<&str> = document.descendants().filter_map(|node| node.attribute("id")).collect();
    for link in document.descendants().filter_map(|node| node.attribute("href")) {
        assert!(ids.contains(&link.trim_start_matches('#')), "{link} leads nowhere");
    }
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "names of places");
    assert!(!page.contains("#A751"), "a colour without a class");
}

fn overload_costs_the_last_class_alone(results: &Results) {
    for (scenario, classes) in [("card-2-classes", 2), ("card-8-classes", 8), ("card-4-shared", 8)] {
        for (with, alone) in trials(results, scenario, OURS).zip(trials(results, scenario, ALONE)) {
            for class in 1..classes {
                assert_eq!(of(with, &format!("class {class}")).lost, 0, "{scenario}: class {class}");
            }
            let last = format!("class {classes}");
            assert!(
                of(with, &last).lost > 0 && of(alone, &last).lost > 0 && of(alone, "class 1").lost > 0,
                "{scenario}"
            );
            for class in 1..classes {
                let (class, next) = (format!("class {class}"), format!("class {}", class + 1));
                assert!(mean_us(with, &class) < mean_us(with, &next), "{scenario}: {class} goes before {next}");
            }
            let early = "all but the last class";
            assert!(20.0 * mean_us(with, early) <= mean_us(alone, early), "{scenario}");
            assert!(worst_us(with, "class 1") < 50.0, "{scenario}: {}", worst_us(with, "class 1"));
            if classes == 8 {
                assert!(11.0 * mean_us(with, "all packets") <= mean_us(alone, "all packets"), "{scenario}");
            }
            let (with, alone) = (with.card.as_ref().expect("a card"), alone.card.as_ref().expect("a card"));
            assert!(with.jain > alone.jain - 0.01, "{scenario}: {} and {}", with.jain, alone.jain);
            assert!((with.wire_mbit / alone.wire_mbit - 1.0).abs() < 0.005, "{scenario}: the port is as busy");
            assert_eq!((with.waiting, alone.waiting), (0, 0));
        }
    }
}

fn instances_are_added(results: &Results) {
    for (one, four) in trials(results, "card-1-fast", OURS).zip(trials(results, "card-4-fast", OURS)) {
        let lost = |measured: &Measured| of(measured, "all packets").lost;
        assert!(lost(one) > 0 && one.card.as_ref().is_some_and(|card| card.lost_on_arrival_percent > 40.0));
        assert_eq!(lost(four), 0, "capacity suffices");
        assert!(mean_us(four, "all packets") < mean_us(one, "all packets") / 10.0);
    }
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let refused = |what: &[&str], contenders: &[&str], rates: &[&str], kernel: Option<&str>| {
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let request = Request {
            what: texts(what),
            contenders: texts(contenders),
            rates: texts(rates),
            kernel: kernel.map(str::to_owned),
            ..Request::default()
        };
        campaign::run(&request).err().expect("it is refused").what
    };
    for (what, contenders, rates, says) in [
        ("card-8-classes", ["cake"], [], "contender cake has no [card], and scenario card-8-classes is a model"),
        ("game-4", ["card-ring"], [], "contender card-ring uses a modelled card, and scenario game-4 is no model"),
        ("port-8-classes", ["cake"], [], "contender cake has no [wire], and scenario port-8-classes is a port"),
        ("port-8-classes", ["card-ring"], [], "contender card-ring has no [wire]"),
        (
            "card-8-classes",
            ["wire-limit"],
            [],
            "contender wire-limit is a wire before a port, and scenario card-8-classes has none",
        ),
    ] {
        let error = refused(&[what], &contenders, &rates, None);
        assert!(error.contains(says), "{error}");
    }
    let error = refused(&["card-8-classes"], &["card-ring"], &["20mbit"], None);
    assert!(error.contains("the port of scenario card-8-classes has 1 to 400 Gbit/s"), "{error}");
    let error = refused(&["port-8-classes"], &["wire-limit"], &["25gbit"], None);
    assert!(error.contains("the port of scenario port-8-classes has 1 Mbit/s to 10 Gbit/s"), "{error}");
    let error = refused(&["port-8-classes"], &["wire-limit"], &["100mbit"], Some("7.3"));
    assert!(error.contains("a real port needs a processor of its own"), "{error}");
    let error = refused(&["game-4"], &["cake"], &["20gbit"], None);
    assert!(error.contains("goes up to 10 Gbit/s"), "{error}");
    let error = refused(&["backpressure"], &[], &[], Some("7.3"));
    assert!(error.contains("a modelled card needs no virtual machine"), "{error}");
    assert!(format::names(format::Folder::Plans).contains(&"backpressure".to_owned()));
}
