//! Events: drops that begin, queues that are late, policies that change; and traces of single packets.

use crate::command::{Process, await_that};
use crate::lab::{Engine, Lab};
use crate::needs::{Need, is_icount};
use crate::net::{B, Pair};
use crate::policy::{by_port, port};
use crate::suite::Suite;
use crate::traffic::{self, Flow};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use serde_json::{Value, json};
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("events")
        .qdisc("each_event_is_reported_once", &[Need::Icount], each_event_once)
        .tc("changes_are_reported", &[], changes)
        .qdisc("traces_show_the_path_of_packets", &[Need::Icount], ways)
        .tc("traces_show_the_path_of_packets", &[], ways)
        .both("one_reader_at_a_time", &[], readers)
}

const FRAME: usize = 1014;

fn policy() -> Value {
    let classes = json!([
        { "id": 0, "name": "game", "priority": 0 },
        { "id": 1, "name": "bulk", "priority": 1, "queue": "flows", "limit": 100 },
        { "id": 2, "name": "slow", "priority": 2, "ceil": "1mbit" },
    ]);
    by_port("strict_priority", classes)
}

/// The output of a listening command while `work` runs.
pub fn while_listening(lab: &Lab, pair: &Pair, arguments: &[&str], work: impl FnOnce(&Process)) -> Vec<Value> {
    let listening = lab.start(&pair.a, arguments);
    listening.await_stderr("listening");
    work(&listening);
    let output = listening.finish().ok();
    output.stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

fn count(events: &[Value], event: &str, class: Option<u64>) -> usize {
    events.iter().filter(|one| one["event"] == event && class.is_none_or(|class| one["class"] == class)).count()
}

/// Two floods of two seconds with a pause between them: each gives one event.
fn each_event_once(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&policy()), &["--rate", "10mbit"]);
    let events = while_listening(lab, &pair, &["events", "a0", "--json", "--for", "9s"], |_| {
        for _ in 0..2 {
            let flows = [Flow::new(port(1), &[FRAME], 12_000_000), Flow::new(port(2), &[FRAME], 1_500_000)];
            let streams = traffic::start(&pair.a, &pair.b, B, &flows);
            std::thread::sleep(Duration::from_millis(1500));
            streams.finish_lossy();
            std::thread::sleep(Duration::from_millis(1300));
        }
    });
    events.iter().for_each(|one| eprintln!("    {one}"));
    // CoDel and overflow are one event.
    assert_eq!(count(&events, "drops", Some(1)), 2);
    assert!(events.iter().any(|one| one["reason"] == "aqm" || one["reason"] == "overflow"));
    assert_eq!(count(&events, "late", Some(1)), 2);
    assert!(count(&events, "exhausted", Some(2)) >= 1);
    assert_eq!(count(&events, "drops", Some(0)) + count(&events, "late", Some(0)), 0);
    lab.down(&pair.a, "a0");
}

fn changes(lab: &Lab) {
    let pair = lab.pair();
    let policy = lab.policy(&policy());
    lab.up(&pair.a, "a0", &policy, &["--rate", "10mbit"]);
    let time = if is_icount() { "20s" } else { "6s" };
    let events = while_listening(lab, &pair, &["events", "--json", "--for", time], |listening| {
        lab.sluice(&pair.a, &["apply", "a0", "server"]).ok();
        listening.await_stdout_lines("\"policy\"", 1);
        pair.b.ip("link set b0 down");
        listening.await_stdout_lines("\"link_down\"", 1);
        pair.b.ip("link set b0 up");
        listening.await_stdout_lines("\"link_up\"", 1);
        lab.down(&pair.a, "a0");
        listening.await_stdout_lines("\"unmanaged\"", 1);
        lab.up(&pair.a, "a0", &policy, &["--rate", "10mbit"]);
    });
    let names: Vec<&str> = events.iter().filter_map(|one| one["event"].as_str()).collect();
    assert_eq!(names, ["policy", "link_down", "link_up", "unmanaged", "managed"], "{events:?}");
    assert_eq!((&events[0]["policy"], &events[0]["generation"]), (&json!("server"), &json!(2)));
    lab.down(&pair.a, "a0");
}

/// Traces of one flow among others, and of dropped packets.
fn ways(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&policy()), &["--rate", "10mbit"]);
    let file = lab.file("way.pcapng", "").display().to_string();
    let dport = port(0).to_string();
    let arguments = ["trace", "a0", "udp", "dport", &dport, "--count", "50", "--json", "--pcapng", &file];
    let events = while_listening(lab, &pair, &arguments, |_| {
        let flows = [Flow::new(port(0), &[142], 64 * 142 * 8), Flow::new(port(1), &[FRAME], 12_000_000)];
        traffic::start(&pair.a, &pair.b, B, &flows).stop_after(Duration::from_millis(2000));
    });
    assert_eq!(events.len(), 50);
    for one in &events {
        assert_eq!((&one["class"], &one["name"], &one["dropped"]), (&json!(0), &json!("game"), &Value::Null), "{one}");
        assert_eq!(one["fields"]["dst_port"], port(0));
        assert_eq!(one["rule"]["kind"], "own");
        assert_eq!(one["length_bytes"], 142);
        // The packet waits for one frame at most, which takes 0.81 ms.
        let waited = one["wait_ms"].as_f64();
        assert!(lab.engine == Engine::Tc || waited.is_some_and(|ms| ms < 2.0), "{one}");
    }
    let bytes = std::fs::read(&file).expect("the capture");
    let comments = comments(&bytes);
    assert_eq!(comments.len(), 50);
    assert!(comments.iter().all(|comment| comment.contains("class 0 game")), "{comments:?}");

    if lab.engine == Engine::Qdisc {
        let arguments = ["trace", "a0", "--one-in", "1", "--count", "2000", "--json", "--for", "6s"];
        let events = while_listening(lab, &pair, &arguments, |_| {
            let flood = Flow::new(port(1), &[FRAME], 13_000_000);
            traffic::start(&pair.a, &pair.b, B, &[flood]).stop_after(Duration::from_millis(1500));
        });
        let dropped: Vec<&Value> = events.iter().filter(|one| !one["dropped"].is_null()).collect();
        eprintln!("    {} told, {} of them dropped: {:?}", events.len(), dropped.len(), dropped.first());
        assert!(!dropped.is_empty() && dropped.len() < events.len());
        let queues = |one: &&Value| one["class"] == 1 && (one["dropped"] == "aqm" || one["dropped"] == "overflow");
        assert!(dropped.iter().all(queues));
    }
    lab.down(&pair.a, "a0");
}

fn comments(bytes: &[u8]) -> Vec<String> {
    let mut reader = PcapNgReader::new(bytes).expect("a capture");
    let mut comments = Vec::new();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.expect("a block") else { continue };
        comments.extend(packet.options.iter().filter_map(|option| match option {
            EnhancedPacketOption::Comment(text) => Some(text.to_string()),
            _ => None,
        }));
    }
    comments
}

fn readers(lab: &Lab) {
    let pair = lab.pair();
    let up = |lab: &Lab| lab.up(&pair.a, "a0", &lab.policy(&policy()), &["--rate", "10mbit"]);
    lab.sluice(&pair.a, &["events"]).exits(2).says("no interface is managed");
    lab.sluice(&pair.a, &["events", "a0"]).exits(2).says("is not managed");
    up(lab);
    let mut first = lab.start(&pair.a, &["events", "a0"]);
    first.await_stderr("listening");
    lab.sluice(&pair.a, &["events", "a0", "--for", "1s"]).exits(2).says("another process reads the events");
    // Traces do not conflict with events.
    lab.sluice(&pair.a, &["trace", "a0", "--for", "1s"]).exits(0);
    first.kill();
    // The killed listener's lease lasts until its renewal is due.
    await_that("another may listen", Duration::from_secs(10), || {
        lab.sluice(&pair.a, &["events", "a0", "--for", "1s"]).code == Some(0)
    });
    for (arguments, says) in [
        (["trace", "a0", "dport", "x"], "\"x\" is no port"),
        (["trace", "a0", "dst", "300.1.1.1"], "is no address"),
        (["trace", "a0", "sdp", "5"], "is not a key"),
        (["trace", "a0", "--one-in", "0"], "would trace nothing"),
        (["trace", "a0", "--pcapng", "/nowhere/x"], "/nowhere/x"),
    ] {
        lab.sluice(&pair.a, &arguments).exits(2).says(says);
    }
    lab.down(&pair.a, "a0");
}
