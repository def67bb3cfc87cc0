//! `sluice count`: counts against the packets sent, with and without a policy, and the bounds of keys that share places.

use crate::command::{Process, await_that};
use crate::foreign;
use crate::frames::{IPV4, V4, Wire, ethernet, ports};
use crate::lab::Lab;
use crate::needs::{Need, is_icount};
use crate::net::{A, B, Pair};
use crate::policy::{by_port, one_policed, port};
use crate::suite::Suite;
use crate::traffic::{self, Flow};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("count")
        .any("packets_of_an_interface_without_a_policy", &[], without_policy)
        .any("arriving_and_departing_packets", &[Need::Tcx], both_ways)
        .any("classes_and_verdicts_at_tc", &[], |lab| classes(lab, &[]))
        .any("classes_and_verdicts_at_xdp", &[], |lab| classes(lab, &["--classifier", "xdp"]))
        .any("heavy_keys_keep_their_bounds", &[], heavy)
        .any("a_killed_command_gives_way", &[], killed)
        .any("a_stopped_command_gives_way", &[], stopped)
        .any("beside_another_xdp_program", &[Need::Tcx], beside)
        .any("bad_input_is_refused", &[], bad_input)
}

/// A command that counts on b0, once it has begun.
fn start(lab: &Lab, pair: &Pair, arguments: &[&str]) -> Process {
    let counting =
        lab.start(&pair.b, &[&["count", "b0", "--json", "-n", "100ms", "--top", "1000"], arguments].concat());
    counting.await_stderr("counting");
    counting
}

/// The last report, after the command was asked to end. One more interval has everything that was sent before.
fn last(counting: Process) -> Value {
    let lines = counting.stdout().lines().count();
    counting.await_stdout_lines("\"interface\"", lines + 2);
    counting.signal(Signal::SIGTERM);
    let output = counting.finish().ok();
    let line = output.stdout.lines().last().expect("a report").to_owned();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

fn rows(report: &Value) -> &[Value] {
    report["rows"].as_array().expect("rows")
}

fn row(report: &Value, is_it: impl Fn(&Value) -> bool) -> &Value {
    rows(report).iter().find(|row| is_it(row)).unwrap_or_else(|| panic!("no such row: {report}"))
}

fn without_policy(lab: &Lab) {
    let pair = lab.pair();
    for (by, more) in [("dport", &[][..]), ("dport,proto,src,dst", &[]), ("dport", &["--sizes"])] {
        let counting = start(lab, &pair, &[&["--by", by], more].concat());
        let flows = [Flow::new(port(0), &[214, 714], 3_000_000), Flow::new(port(1), &[1514], 3_000_000)];
        let streams = traffic::start(&pair.a, &pair.b, B, &flows);
        std::thread::sleep(Duration::from_millis(500));
        let outcomes = streams.finish(|| 0);
        let report = last(counting);
        for (class, outcome) in outcomes.iter().enumerate() {
            let row = row(&report, |row| row["dport"] == port(class as u8));
            assert_eq!(row["pkts"], outcome.sent, "{by} {more:?}: packets of class {class}");
            assert_eq!(row["bytes_missed"], 0);
        }
        let long = row(&report, |row| row["dport"] == port(1));
        assert_eq!(long["bytes"], outcomes[1].sent * 1514, "{by} {more:?}");
        if !more.is_empty() {
            let sizes = report["packet_sizes"].as_array().expect("sizes");
            let bin = sizes.iter().find(|bin| bin["from"] == 1408).expect("a bin of 1,514 bytes");
            assert_eq!((&bin["below"], &bin["count"]), (&json!(1536), &json!(outcomes[1].sent)));
        }
    }
}

fn both_ways(lab: &Lab) {
    let pair = lab.pair();
    let counting = start(lab, &pair, &["--both", "--by", "direction,proto"]);
    pair.b.tool("ping", &format!("-c 5 -i 0.02 {A}")).ok();
    let report = last(counting);
    let arriving = start(lab, &pair, &["--by", "direction,src"]);
    pair.a.tool("ping", &format!("-c 5 -i 0.02 {B}")).ok();
    let arrived = last(arriving);
    assert!(rows(&arrived).iter().all(|row| row["direction"] == "in"), "{arrived}");
    assert_eq!(row(&arrived, |row| row["src"] == A)["pkts"], 5, "{arrived}");
    for direction in ["in", "out"] {
        let row = row(&report, |row| row["direction"] == direction && row["proto"] == "icmp");
        assert_eq!(row["pkts"], 5, "{direction}: {report}");
    }
}

/// The classes of the policy, and what the arrival hook refuses.
fn classes(lab: &Lab, more: &[&str]) {
    let pair = lab.pair();
    let policy = one_policed();
    lab.up(&pair.b, "b0", &lab.policy(&policy), more);
    for by in ["class,verdict", "class,verdict,src"] {
        let counting = start(lab, &pair, &["--by", by]);
        let flows = [Flow::new(port(0), &[514], 1_000_000), Flow::new(port(1), &[1014], 6_000_000)];
        let streams = traffic::start(&pair.a, &pair.b, B, &flows);
        std::thread::sleep(Duration::from_millis(600));
        let outcomes = streams.finish_lossy();
        let report = last(counting);
        let of = |class: &str, verdict: &str| -> u64 {
            let found = rows(&report).iter().filter(|row| row["class_name"] == class && row["verdict"] == verdict);
            found.map(|row| row["pkts"].as_u64().expect("a number")).sum()
        };
        assert_eq!(of("game", "passed"), outcomes[0].sent, "{by}: {report}");
        assert_eq!(of("bulk", "passed") + of("bulk", "policed"), outcomes[1].sent, "{by}: {report}");
        assert_eq!(of("bulk", "passed"), outcomes[1].received(), "{by}: {report}");
        assert!(of("bulk", "policed") > 0, "{by}: {report}");
    }
    lab.down(&pair.b, "b0");
}

/// Four heavy keys among 2,000 that send one packet: each count holds the truth within its bound, and none that is shown is missing.
fn heavy(lab: &Lab) {
    let pair = lab.pair();
    let counting = start(lab, &pair, &["--by", "sport,dport", "--keys", "64", "--sizes"]);
    let wire = Wire::open(&pair.a, "a0");
    let mut sent: HashMap<(u64, u64), u64> = HashMap::new();
    for n in 0..2000u16 {
        for (src, dst) in [(1000 + n, 7), (5000 + n % 4, 9)] {
            wire.send(&ethernet(&[], IPV4, &V4::default().packet(&ports(src, dst))));
            *sent.entry((src.into(), dst.into())).or_default() += 1;
        }
    }
    let report = last(counting);
    let number = |row: &Value, key: &str| row[key].as_u64().expect("a number");
    let mut shown = HashMap::new();
    for row in rows(&report) {
        let key = (number(row, "sport"), number(row, "dport"));
        // What the host itself sends has no such port.
        let Some(&truth) = sent.get(&key) else { continue };
        let (least, missed) = (number(row, "pkts"), number(row, "pkts_missed"));
        assert!(least <= truth && truth <= least + missed, "{key:?}: sent {truth}, {row}");
        shown.insert(key, truth);
    }
    let most = report["others_pkts"].as_u64().expect("a number");
    for (key, truth) in &sent {
        assert!(
            shown.contains_key(key) || *truth <= most,
            "{key:?} sent {truth}, is not shown, and others at most {most}"
        );
    }
    for n in 0..4 {
        assert_eq!(shown.get(&(5000 + n, 9)), Some(&500), "a heavy key is shown: {report}");
    }
    let keys: u64 = report["key_sizes"].as_array().expect("sizes").iter().map(|bin| number(bin, "count")).sum();
    assert!(keys >= 2000, "each key has a size: {keys}");
}

/// A command that was killed leaves nothing that stops the next one, and `down` removes all.
fn killed(lab: &Lab) {
    let pair = lab.pair();
    let policy = by_port("strict_priority", json!([{ "id": 0, "name": "game", "priority": 0 }]));
    lab.up(&pair.b, "b0", &lab.policy(&policy), &[]);
    let mut counting = start(lab, &pair, &["--by", "class"]);
    lab.sluice(&pair.b, &["count", "b0", "--once"]).exits(2).says("another command observes b0");
    counting.kill();
    let limit = Duration::from_secs(if is_icount() { 60 } else { 10 });
    await_that("another command may observe", limit, || {
        lab.sluice(&pair.b, &["count", "b0", "--once", "-n", "100ms"]).code == Some(0)
    });
    pair.a.tool("ping", &format!("-c 1 -W 5 {B}")).ok();
    lab.down(&pair.b, "b0");
}

/// A command that was stopped for longer than its lease holds, and meanwhile gave way to another one, says so and leaves that one alone.
fn stopped(lab: &Lab) {
    let pair = lab.pair();
    let policy = by_port("strict_priority", json!([{ "id": 0, "name": "game", "priority": 0 }]));
    lab.up(&pair.b, "b0", &lab.policy(&policy), &[]);
    let first = start(lab, &pair, &["--by", "class"]);
    first.signal(Signal::SIGSTOP);
    let limit = Duration::from_secs(if is_icount() { 60 } else { 10 });
    await_that("another command may observe", limit, || {
        lab.sluice(&pair.b, &["count", "b0", "--once", "-n", "100ms"]).code == Some(0)
    });
    let second = start(lab, &pair, &["--by", "proto"]);
    first.signal(Signal::SIGCONT);
    first.finish().exits(1).says("another command observes it");
    pair.a.tool("ping", &format!("-c 5 -i 0.02 {B}")).ok();
    let report = last(second);
    assert_eq!(row(&report, |row| row["proto"] == "icmp")["pkts"], 5, "{report}");
    lab.down(&pair.b, "b0");
}

fn beside(lab: &Lab) {
    let pair = lab.pair();
    let program = foreign::Program::new(foreign::Hook::Xdp, foreign::Verdict::Pass);
    let _attached = program.attach(&pair.b, "b0");
    let output = lab.sluice(&pair.b, &["count", "b0", "--once", "-n", "100ms"]).ok();
    assert!(output.stderr.contains("another XDP program"), "{output}");
}

fn bad_input(lab: &Lab) {
    let pair = lab.pair();
    let refused = |arguments: &[&str], says: &str| {
        lab.sluice(&pair.b, &[&["count"], arguments].concat()).exits(2).says(says);
    };
    refused(&["b0", "--by", "port"], "is no part of a key");
    refused(&["b0", "--by", "src/40"], "not a length of a prefix");
    refused(&["b0", "--by", "class,class"], "comes twice");
    refused(&["b0", "b0"], "named twice");
    refused(&["nothing0"], "there is no interface");
    refused(&["b0", "--keys", "0"], "--keys");
    refused(&["b0", "--only", "udp port 5"], "is not a key");
    refused(&["b0", "--json", "--csv"], "cannot be used with");
}
