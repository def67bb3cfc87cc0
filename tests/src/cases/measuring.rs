//! The lab: a user's own files, real traffic, results, and clean interruption.

use crate::command::{Output, Process, await_that, run};
use crate::lab::{Lab, binary};
use crate::suite::Suite;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("measuring")
        .alike_everywhere()
        .any("users_own_files", &[], users_own_files)
        .any("unsupported_contenders_are_reported", &[], unsupported_contenders_are_reported)
        .any("taps_tell_what_was_observed", &[], taps)
        .any("bad_input", &[], bad_input)
        .any("interruption", &[], interruption)
}

const SCENARIO: &str = r#"
title = "Everything at once"
about = "One load of each kind."
topology = "line"
idle = "500ms"
warm_up = "1s"
[[load]]
name = "game"
kind = "stream"
from = "server"
to = "home"
bytes = 100
interval = "20ms"
port = 3074
one_way = "there"
probe = true
[[load]]
name = "echo"
kind = "ping"
from = "server"
to = "home"
interval = "100ms"
[[load]]
name = "page"
kind = "web"
from = "server"
to = "home"
bytes = 20000
interval = "250ms"
port = 80
[[load]]
name = "steady"
kind = "udp"
from = "server"
to = "home"
rate = "10%"
bytes = 1000
port = 9000
[[load]]
name = "downloads"
kind = "tcp"
from = "server"
to = "home"
flows = 2
congestion = "cubic"
"#;

const DEEP: &str = r#"
title = "deep"
about = "A long queue."
start = ["tc qdisc add dev {dev} root tbf rate {rate} burst {burst} limit {limit:200ms}"]
"#;

const SMALL_RING: &str = r#"
title = "small ring"
about = "A ring of a page, whose reader sleeps."
[observe]
run = "{sluice} lab observe {dev} --way ring --ring 4096 --wait-ms 100"
ready = "observing"
delivered = "\"delivered\":{}"
"#;

fn sluice(directory: &Path, line: &str) -> Command {
    let mut command = Command::new(binary());
    command.args(line.split_whitespace()).current_dir(directory);
    command
}

/// A directory with these files, and the topology that the scenario names: the built-in one, as printed.
fn files(lab: &Lab, files: &[(&str, &str)]) -> std::path::PathBuf {
    lab.file("line.toml", run(Command::new(binary()).args(["lab", "show", "line"])).ok().stdout);
    let directory = files.iter().map(|(name, text)| lab.file(name, text)).last().expect("a file");
    directory.parent().expect("a directory").to_owned()
}

/// Namespaces of any run of the lab.
fn networks() -> Vec<String> {
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with("sluice-lab-"))
        .collect()
}

fn results(directory: &Path, run: &str) -> Value {
    let text = fs::read_to_string(directory.join(run).join("results.json")).expect("results are written");
    serde_json::from_str(&text).expect("JSON")
}

/// The measurements of a contender.
fn measured<'a>(results: &'a Value, contender: &str) -> &'a Value {
    let trials = results["trials"].as_array().expect("trials");
    let trial = trials.iter().find(|trial| trial["contender"] == contender).expect(contender);
    let measured = &trial["outcome"]["measured"];
    assert!(measured.is_object(), "{contender}: {}", trial["outcome"]);
    measured
}

fn of<'a>(list: &'a Value, load: &str) -> &'a Value {
    let all = list.as_array().expect("a list");
    all.iter().find(|one| one["load"] == load).unwrap_or_else(|| panic!("no {load} in {list}"))
}

fn users_own_files(lab: &Lab) {
    let directory = files(lab, &[("own.toml", SCENARIO), ("deep.toml", DEEP)]);
    let line =
        "lab run ./own.toml --contender ./deep.toml --contender sluice-gaming --rate 10mbit --measured 2s --out run";
    let output = run(&mut sluice(&directory, line)).ok();
    assert!(output.stdout.contains("Sluice gaming") && output.stdout.contains("run/report.html"), "{output}");
    assert!(networks().is_empty(), "{:?}", networks());

    let found = results(&directory, "run");
    let (deep, ours) = (measured(&found, "deep"), measured(&found, "sluice-gaming"));
    for one in [deep, ours] {
        let used = one["bottlenecks"][0]["used_percent"].as_f64().expect("a number");
        assert!((85.0..=108.0).contains(&used), "{used} % of the wire");
        assert!(of(&one["flows"], "downloads")["mbit"].as_f64() > Some(3.0), "{}", one["flows"]);
        assert!(of(&one["flows"], "steady")["mbit"].as_f64() > Some(0.4), "{}", one["flows"]);
        for load in ["game", "echo", "page"] {
            assert!(of(&one["delays"], load)["whole"]["count"].as_u64() > Some(2), "{load}: {}", one["delays"]);
        }
        assert!(one["noise"]["p50_ms"].as_f64() < Some(50.0), "{}", one["noise"]);
    }
    let p50 = |one: &Value| of(&one["delays"], "game")["one_way"]["p50_ms"].as_f64().expect("a delay");
    assert!(p50(ours) < p50(deep) / 3.0, "{} against {} ms", p50(ours), p50(deep));
    assert_eq!(ours["commands"][0], "sluice up to-modem --policy gaming --rate 10mbit");
    assert!(deep["engine"].is_null() && ours["engine"].is_string());

    let page = fs::read_to_string(directory.join("run/report.html")).expect("a page");
    assert!(page.contains("Everything at once") && page.contains("<svg") && page.contains("Sluice gaming"));
    let table = fs::read_to_string(directory.join("run/results.csv")).expect("a table");
    assert!(table.lines().count() > 50 && table.contains("own,deep,10000000,1,game"), "{table}");
    let raw = directory.join("run/raw/own-deep-10000kbit-1");
    let kept = fs::read_dir(&raw).expect("what tools wrote").count();
    assert_eq!(kept, 5, "a file for each load in {}", raw.display());

    // Compared with itself the run is unchanged; a worse run is reported.
    run(&mut sluice(&directory, "lab compare run run")).ok();
    let mut worse = found.clone();
    for trial in worse["trials"].as_array_mut().expect("trials") {
        for delays in trial["outcome"]["measured"]["delays"].as_array_mut().expect("delays") {
            for value in ["p50_ms", "p95_ms", "p99_ms", "max_ms"] {
                for path in ["one_way", "whole"] {
                    if let Some(ms) = delays[path][value].as_f64() {
                        delays[path][value] = Value::from(ms + 500.0);
                    }
                }
            }
        }
    }
    fs::create_dir(directory.join("worse")).expect("a directory");
    fs::write(directory.join("worse/results.json"), worse.to_string()).expect("writing");
    let output = run(&mut sluice(&directory, "lab compare run worse"));
    assert!(output.code == Some(1) && output.stdout.contains("Worse"), "{output}");
    run(&mut sluice(&directory, "lab report worse")).ok();
    assert!(directory.join("worse/report.html").exists());
}

/// Every observer accounts for the frames that arrived, but a small ring whose reader sleeps.
fn taps(lab: &Lab) {
    let directory = lab.file("small.toml", SMALL_RING).parent().expect("a directory").to_owned();
    refused(&directory, "lab run observe-1400 --contender cake --rate max --out other", "has no [observe]");
    refused(&directory, "lab run game-4 --contender observe-count --out other", "is no tap");
    let observers = ["observe-drop", "observe-nft", "observe-count", "observe-features-100"];
    let contenders: String = observers.iter().map(|name| format!(" --contender {name}")).collect();
    let line = format!("lab run observe-1400{contenders} --contender ./small.toml --rate max --measured 1s --out run");
    run(&mut sluice(&directory, &line)).ok();
    let found = results(&directory, "run");
    let observed = |contender: &str| of(&measured(&found, contender)["observed"], "89,285 a second").clone();
    let number = |value: &Value| value.as_f64().expect("a number");
    for contender in observers {
        let one = observed(contender);
        let (sent, arrived) = (number(&one["sent"]), number(&one["arrived"]));
        // A busy kernel drops frames on their way to the observer, and hosts also ask for each other's addresses.
        assert!(arrived > 1000.0 && arrived < sent + 20.0, "{contender}: {one}");
        assert!((number(&one["delivered"]) - arrived).abs() < 20.0 && one["missed"] == 0, "{contender}: {one}");
    }
    let (sample, small) = (observed("observe-features-100"), observed("small"));
    super::assert_near(
        "records of one packet in 100",
        number(&sample["records"]),
        number(&sample["arrived"]) / 100.0,
        0.5,
    );
    assert!(number(&small["delivered"]) < number(&small["arrived"]) / 2.0, "{small}");
    assert!(fs::read_to_string(directory.join("run/report.html")).expect("a page").contains("Observed packets"));
}

fn unsupported_contenders_are_reported(lab: &Lab) {
    let absent =
        "title = \"absent\"\nabout = \"No such qdisc.\"\nstart = [\"tc qdisc add dev {dev} root no_such_qdisc\"]\n";
    let broken = "title = \"broken\"\nabout = \"Fails.\"\nstart = [\"false\"]\n";
    let directory = files(lab, &[("own.toml", SCENARIO), ("absent.toml", absent), ("broken.toml", broken)]);
    let line = "lab run ./own.toml --contender ./absent.toml --contender ./broken.toml --measured 1s --out run";
    run(&mut sluice(&directory, line)).exits(1).says("no trial could be measured");
    let found = results(&directory, "run");
    assert!(
        found["trials"][0]["outcome"]["unsupported"].as_str().is_some_and(|why| why.contains("no_such_qdisc")),
        "{found}"
    );
    assert!(found["trials"][1]["outcome"]["failed"].as_str().is_some_and(|why| why.contains("\"false\"")), "{found}");
    let page = fs::read_to_string(directory.join("run/report.html")).expect("a page");
    assert!(page.contains("no_such_qdisc"), "the page says why");
    assert!(networks().is_empty(), "{:?}", networks());
}

#[track_caller]
fn refused(directory: &Path, line: &str, says: &str) -> Output {
    let output = run(&mut sluice(directory, line)).exits(2).says(says);
    assert!(!output.stderr.contains("panicked"), "{output}");
    assert!(!directory.join("run").exists() && !directory.join("sluice-lab").exists(), "something was written");
    output
}

fn bad_input(lab: &Lab) {
    let plan = |scenario: &str, contender: &str| {
        let run = format!("[[run]]\nscenario = \"{scenario}\"\ncontenders = [\"{contender}\"]\n");
        format!("about = \"a plan\"\nrates = [\"20mbit\"]\nrepeats = 1\nmeasured = \"2s\"\n{run}")
    };
    let typo = SCENARIO.replace("bytes = 100\n", "byte = 100\n");
    let elsewhere = SCENARIO.replacen("to = \"home\"", "to = \"hone\"", 1);
    let directory = files(
        lab,
        &[
            ("own.toml", SCENARIO),
            ("typo.toml", &typo),
            ("plan.toml", "about = \"a plan\"\nrates = []\nrepeats = \"many\"\n"),
            ("elsewhere.toml", &elsewhere),
            ("lost.toml", &plan("./nosuch.toml", "fq_codel")),
            ("tap.toml", &plan("./own.toml", "observe-count")),
        ],
    );
    refused(&directory, "lab run ./typo.toml --out run", "./typo.toml:").says("byte");
    refused(&directory, "lab run ./elsewhere.toml --out run", "there is no host \"hone\"");
    refused(&directory, "lab run ./plan.toml --out run", "./plan.toml:").says("repeats");
    refused(&directory, "lab run nosuch --out run", "there is no scenario \"nosuch\"").says("game-4");
    refused(&directory, "lab run ./absent.toml --out run", "absent.toml");
    refused(&directory, "lab run quick published --out run", "a run has one plan");
    refused(&directory, "lab run ./own.toml --contender nosuch --out run", "there is no contender \"nosuch\"");
    refused(&directory, "lab run ./own.toml --rate 20 --out run", "--rate");
    refused(&directory, "lab run ./own.toml --repeats 0 --out run", "0 repeats");
    refused(&directory, "lab run ./own.toml --measured 1 --out run", "--measured");
    refused(&directory, "lab show nosuch", "nosuch");
    refused(&directory, "lab check ./typo.toml", "typo.toml:");
    refused(&directory, "lab check ./lost.toml", "lost.toml: cannot read ./nosuch.toml");
    refused(&directory, "lab check ./tap.toml", "tap.toml: contender observe-count observes");
    refused(&directory, "lab compare own.toml own.toml", "no results of the lab");
    run(&mut sluice(&directory, "lab check own.toml line.toml")).ok();
    fs::create_dir(directory.join("old")).expect("a directory");
    fs::write(directory.join("old/results.json"), "{\"format\": 999}").expect("writing");
    refused(&directory, "lab report old", "format 999");
    refused(&directory, "lab run ./own.toml --out old", "has results already");
}

fn interruption(lab: &Lab) {
    let directory = files(lab, &[("own.toml", SCENARIO)]);
    let line = "lab run ./own.toml --contender sluice-gaming --measured 30s --out run";
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let process = Process::start(&mut sluice(&directory, line));
        await_that("the network to be built", Duration::from_secs(30), || networks().len() == 4);
        let inside = || {
            // Polling in a loop would leave an emulated processor no time for anything else.
            std::thread::sleep(Duration::from_millis(500));
            let Some(server) = networks().into_iter().find(|name| name.ends_with("-server")) else {
                return false;
            };
            run(Command::new("ip").args(["netns", "pids", &server])).stdout.lines().count() > 0
        };
        await_that("traffic", Duration::from_secs(40), inside);
        process.signal(signal);
        process.finish().exits(130).says("interrupted");
        assert!(networks().is_empty(), "{:?}", networks());
        assert!(!directory.join("run").exists(), "nothing was measured, so nothing is written");
    }
    // A killed run cannot clean up; the next run does.
    let mut process = Process::start(&mut sluice(&directory, line));
    await_that("the network to be built", Duration::from_secs(30), || networks().len() == 4);
    process.kill();
    drop(process);
    let left = networks();
    assert!(!left.is_empty());
    run(&mut sluice(&directory, "lab run ./own.toml --contender none --measured 1s --out after")).ok();
    assert!(networks().is_empty(), "{:?} of {left:?}", networks());
}
