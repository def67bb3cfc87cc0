//! `sluice features`: records against the packets sent, what is missing in them, and samples.

use crate::frames::{IPV4, V4, Wire, ethernet, ports};
use crate::lab::Lab;
use crate::needs::Need;
use crate::net::{B, Pair};
use crate::policy::{by_port, port};
use crate::suite::Suite;
use crate::traffic::{self, Flow};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("features")
        .any("a_record_for_each_packet", &[], packets)
        .any("what_finds_no_room_is_in_the_stream", &[], lossy)
        .any("weights_of_a_sample_add_up", &[], sampled)
        .any("flows_have_both_directions_and_a_class", &[Need::Tcx], flows)
        .any("a_slow_reader_misses_nothing", &[], slow_reader)
        .any("outputs_that_cannot_be_written", &[], outputs)
}

/// Rows of JSON lines that arriving UDP packets become while `work` runs.
fn rows(lab: &Lab, pair: &Pair, more: &[&str], work: impl FnOnce(&crate::command::Process)) -> Vec<Value> {
    let fixed = ["features", "b0", "-o", "-", "--format", "jsonl", "--only", "udp"];
    let recording = lab.start(&pair.b, &[&fixed[..], more].concat());
    recording.await_stderr("Ctrl-C ends");
    work(&recording);
    recording.signal(Signal::SIGINT);
    let output = recording.finish().ok();
    output.stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

fn sum(rows: &[Value], of: &str) -> u64 {
    rows.iter().map(|row| row[of].as_u64().unwrap_or_else(|| panic!("{of} in {row}"))).sum()
}

fn packets(lab: &Lab) {
    let pair = lab.pair();
    let classes = json!([{ "id": 0, "name": "game", "priority": 0 }, { "id": 1, "name": "bulk", "priority": 1 }]);
    lab.up(&pair.b, "b0", &lab.policy(&by_port("strict_priority", classes)), &[]);
    let mut sent = 0;
    let rows = rows(lab, &pair, &[], |_| {
        let flow = Flow::new(port(1), &[214, 1014], 4_000_000).tos(0xb8);
        let streams = traffic::start(&pair.a, &pair.b, B, &[flow]);
        std::thread::sleep(Duration::from_millis(300));
        sent = streams.finish(|| 0)[0].sent;
    });
    let (end, packets) = rows.split_last().expect("rows");
    assert_eq!((&end["kind"], &end["weight"], &end["missed"]), (&json!("end"), &json!(0), &json!(0)));
    assert_eq!(packets.len() as u64, sent);
    // Processors hand packets over side by side, so their order says nothing.
    let long = packets.iter().filter(|row| row["length_bytes"] == 1014).count() as u64;
    let short = packets.iter().filter(|row| row["length_bytes"] == 214).count() as u64;
    assert_eq!((short, long), (sent.div_ceil(2), sent / 2));
    for row in packets {
        assert_eq!((&row["dst"], &row["dport"], &row["protocol"]), (&json!(B), &json!(port(1)), &json!(17)), "{row}");
        assert_eq!((&row["dscp"], &row["ttl"], &row["weight"]), (&json!(46), &json!(64), &json!(1)), "{row}");
        assert_eq!((&row["class_name"], &row["verdict"]), (&json!("bulk"), &json!("passed")), "{row}");
    }
    lab.down(&pair.b, "b0");
}

/// A ring of one page, and a reader that does not run: rows and what they say was missing add up to the packets.
fn lossy(lab: &Lab) {
    let pair = lab.pair();
    let wire = Wire::open(&pair.a, "a0");
    let frame = ethernet(&[], IPV4, &V4::default().packet(&ports(4000, 7)));
    let rows = rows(lab, &pair, &["--ring", "4K"], |recording| {
        recording.signal(Signal::SIGSTOP);
        (0..500).for_each(|_| wire.send(&frame));
        recording.signal(Signal::SIGCONT);
    });
    let missed = sum(&rows, "missed");
    assert!(missed > 0, "a page has no room for 500 records");
    assert_eq!(rows.len() as u64 - 1 + missed, 500, "every packet is told of");
}

/// A reader that takes nothing for longer than the lease of an observer holds, on an interface with a policy: every packet has a row.
fn slow_reader(lab: &Lab) {
    const PACKETS: u32 = 4000;
    let pair = lab.pair();
    let policy = by_port("strict_priority", json!([{ "id": 0, "name": "game", "priority": 0 }]));
    lab.up(&pair.b, "b0", &lab.policy(&policy), &[]);
    let fifo = lab.file("here", "").with_file_name("pipe");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRUSR | nix::sys::stat::Mode::S_IWUSR).expect("a pipe");
    let path = fifo.display().to_string();
    let recording =
        lab.start(&pair.b, &["features", "b0", "-o", &path, "--force", "--format", "csv", "--only", "udp sport 4000"]);
    let mut reader = std::fs::File::open(&fifo).expect("the reading end");
    recording.await_stderr("Ctrl-C ends");
    let wire = Wire::open(&pair.a, "a0");
    let frame = ethernet(&[], IPV4, &V4::default().packet(&ports(4000, 7)));
    for _ in 0..PACKETS {
        wire.send(&frame);
        std::thread::sleep(Duration::from_millis(1));
    }
    let text = std::thread::spawn(move || {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut reader, &mut text).map(|_| text).expect("rows")
    });
    std::thread::sleep(Duration::from_millis(500));
    recording.signal(Signal::SIGINT);
    recording.finish().ok().says(" 0 missed");
    let rows = text.join().expect("a reader").lines().filter(|line| line.starts_with("packet,")).count();
    assert_eq!(rows, PACKETS as usize);
    lab.down(&pair.b, "b0");
}

/// One in 10 of 20,000 packets: the weights add up to that within six standard deviations, 424 each.
fn sampled(lab: &Lab) {
    let pair = lab.pair();
    let wire = Wire::open(&pair.a, "a0");
    let frame = ethernet(&[], IPV4, &V4::default().packet(&ports(4000, 7)));
    let rows = rows(lab, &pair, &["--one-in", "10"], |_| (0..20_000).for_each(|_| wire.send(&frame)));
    let weights = sum(&rows, "weight");
    assert!(weights.abs_diff(20_000) <= 6 * 424, "{weights} of 20000");
    assert!(rows.iter().all(|row| row["kind"] == "end" || row["weight"] == 10));
}

fn flows(lab: &Lab) {
    let pair = lab.pair();
    let classes = json!([{ "id": 0, "name": "game", "priority": 0 }, { "id": 1, "name": "bulk", "priority": 1 }]);
    lab.up(&pair.b, "b0", &lab.policy(&by_port("strict_priority", classes)), &[]);
    let recording = lab.start(&pair.b, &["features", "b0", "-o", "-", "--format", "jsonl", "--flows", "--both"]);
    recording.await_stderr("Ctrl-C ends");
    let streams = traffic::start(&pair.a, &pair.b, B, &[Flow::new(port(0), &[514], 1_000_000)]);
    std::thread::sleep(Duration::from_millis(400));
    let sent = streams.finish(|| 0)[0].sent;
    pair.a.exec(&format!("ping -q -c 3 -i 0.2 {B}"));
    recording.signal(Signal::SIGINT);
    let output = recording.finish().ok();
    let rows: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |column: &str, value: Value| rows.iter().filter(|row| row[column] == value).collect::<Vec<_>>();
    let [game] = of("dport", json!(port(0)))[..] else { panic!("{rows:?}") };
    assert_eq!((&game["class"], &game["class_name"], &game["ended"]), (&json!(0), &json!("game"), &json!("end")));
    assert_eq!((&game["forward_packets"], &game["reverse_packets"]), (&json!(sent), &json!(0)));
    let [ping] = of("protocol", json!(1))[..] else { panic!("{rows:?}") };
    assert_eq!((&ping["forward_packets"], &ping["reverse_packets"]), (&json!(3), &json!(3)));
    assert_eq!(ping["direction"], "ingress");
    lab.down(&pair.b, "b0");
}

fn outputs(lab: &Lab) {
    let pair = lab.pair();
    let file = lab.file("x.csv", "mine");
    let path = file.display().to_string();
    let refused = |arguments: &[&str], says: &str| {
        lab.sluice(&pair.b, &[&["features", "b0"], arguments].concat()).exits(2).says(says);
    };
    refused(&["-o", &path], "--force");
    refused(&["-o", "-", "--format", "parquet"], "arquet");
    refused(&["-o", "/nowhere/x.csv"], "/nowhere/x.csv");
    refused(&["-o", &path, "--force", "--one-in", "0"], "one in 0");
    refused(&["-o", "/nowhere/x"], "the format of /nowhere/x is not known");
    refused(&["-o", "tcp:localhost", "--format", "csv"], "has no host and port");
    refused(&["-o", "unix:/nowhere/socket", "--format", "csv"], "start the reader first");
    refused(&["-o", "-", "--format", "csv", "--hash-addresses", "--key", &path], "32 hexadecimal digits");
    assert_eq!(std::fs::read(&file).expect("the file"), b"mine");
    let wire = Wire::open(&pair.a, "a0");
    let frame = ethernet(&[], IPV4, &V4::default().packet(&ports(4000, 7)));
    let full = lab.start(&pair.b, &["features", "b0", "-o", "/dev/full", "--format", "csv", "--packets", "5"]);
    full.await_stderr("Ctrl-C ends");
    (0..5).for_each(|_| wire.send(&frame));
    full.finish().exits(1).says("No space left on device").says("free some space");
}
