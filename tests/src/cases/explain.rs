//! The answers of `explain` against the treatment of real packets.

use crate::command::run;
use crate::frames::{IPV4, V4, Wire, ethernet, ports};
use crate::lab::{Lab, binary};
use crate::policy::{by_port, port};
use crate::suite::Suite;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

pub fn suite() -> Suite {
    Suite::new("explain")
        .alike_everywhere()
        .both("agrees_with_the_counters", &[], agrees)
        .any("reads_captures", &[], captures)
        .any("without_an_interface", &[], without_an_interface)
        .any("bad_input", &[], bad_input)
}

fn explained(lab: &Lab, ns: &crate::net::Ns, words: &[&str]) -> Value {
    let answer = lab.sluice(ns, &[&["explain"], words, &["--json"]].concat()).ok();
    let all: Vec<Value> = serde_json::from_str(&answer.stdout).expect("JSON");
    all.into_iter().next().expect("one packet")
}

/// The buckets that a packet must pass: the name, the rate in bits per second, and the fill in percent of each.
fn buckets(answer: &Value) -> Vec<(String, u64, Option<f64>)> {
    let bucket = |of: &Value| {
        let text = of["what"].as_str().expect("a name").to_owned();
        (text, of["rate_bps"].as_u64().expect("a rate"), of["full_percent"].as_f64())
    };
    answer["buckets"].as_array().expect("buckets").iter().map(bucket).collect()
}

fn agrees(lab: &Lab) {
    let pair = lab.pair();
    let policy = by_port(
        "deficit_round_robin",
        json!([
            { "id": 0, "limit": 100 },
            { "id": 1, "name": "bulk", "ceil": "5mbit", "flow_ceil": "80bit", "flow_burst": 1000 },
        ]),
    );
    lab.up(&pair.a, "a0", &lab.policy(&policy), &["--rate", "10mbit"]);
    let to = format!("198.51.100.2:{}", port(1));
    let words = ["a0", "udp", "192.0.2.1:9", &to];
    let answer = explained(lab, &pair.a, &words);
    assert_eq!(
        (answer["class"]["id"].as_u64(), answer["class"]["name"].as_str()),
        (Some(1), Some("bulk")),
        "{answer:#}"
    );
    assert_eq!(answer["rule"]["kind"], "own");
    assert!(answer["flow"].is_null(), "nothing was sent: {answer:#}");
    let before = lab.status(&pair.a, "a0").egress(1).sent.pkts;
    assert_eq!(before, 0, "to explain is not to count");

    let packet = V4 { dst: [198, 51, 100, 2].into(), ..V4::default() };
    let wire = Wire::open(&pair.a, "a0");
    (0..3).for_each(|_| wire.send(&ethernet(&[], IPV4, &packet.packet(&ports(9, port(1))))));
    assert_eq!(lab.status(&pair.a, "a0").egress(1).sent.pkts, 3);
    let answer = explained(lab, &pair.a, &words);
    assert_eq!(
        (answer["flow"]["pkts"].as_u64(), answer["flow"]["remembered"].as_bool()),
        (Some(3), Some(true)),
        "{answer:#}"
    );
    let [link, ceil, flow] = &buckets(&answer)[..] else { panic!("three buckets: {answer:#}") };
    assert_eq!((link.0.as_str(), link.1, ceil.0.as_str(), ceil.1), ("link", 10_000_000, "ceil", 5_000_000));
    assert_eq!((flow.0.as_str(), flow.1), ("flow", 80));
    // Three frames of 42 bytes, of a burst of 1,000; ten bytes are refilled in a second.
    let full = flow.2.expect("how full it is");
    assert!((87.0..95.0).contains(&full), "{answer:#}");
    (0..25).for_each(|_| wire.offer(&ethernet(&[], IPV4, &packet.packet(&ports(9, port(1))))));
    let answer = explained(lab, &pair.a, &words);
    assert!(buckets(&answer)[2].2.is_some_and(|full| full < 0.0), "{answer:#}");
    assert!(answer["verdict"].as_str().is_some_and(|verdict| verdict.contains("its flow is over 80bit")), "{answer:#}");
    assert!(lab.status(&pair.a, "a0").egress(1).drops.contains_key("flow_limited"), "as it is done");
    let arriving = explained(lab, &pair.a, &[&words[..], &["--arriving"]].concat());
    assert_eq!(
        buckets(&arriving).iter().map(|bucket| bucket.0.as_str()).collect::<Vec<_>>(),
        ["flow"],
        "nothing queues them"
    );
    let other = explained(lab, &pair.a, &["a0", "udp", "192.0.2.1:9", "198.51.100.2:9"]);
    assert_eq!(other["rule"]["kind"], "none", "{other:#}");
    lab.down(&pair.a, "a0");
}

/// A handmade pcap file with a UDP packet on Ethernet.
fn captures(lab: &Lab) {
    let pair = lab.pair();
    let frame = ethernet(&[], IPV4, &V4::default().packet(&ports(9, 3074)));
    let mut file: Vec<u8> = Vec::new();
    let header: [u32; 6] = [0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65_535, 1];
    header.iter().for_each(|word| file.extend(word.to_le_bytes()));
    let record = [0u32, 0, frame.len() as u32, frame.len() as u32];
    record.iter().for_each(|word| file.extend(word.to_le_bytes()));
    file.extend(&frame);
    let path = lab.file("one.pcap", file);
    lab.sluice(&pair.a, &["explain", "gaming", "--pcap", &path.to_string_lossy(), "--count", "0"])
        .exits(2)
        .says("--count");
    let answer = explained(lab, &pair.a, &["gaming", "--pcap", &path.to_string_lossy()]);
    assert_eq!(answer["fields"]["dst_port"], 3074);
    assert_eq!(answer["class"]["name"], "gaming", "{answer:#}");
}

/// Any user may explain by a policy alone. Later fragments follow their first one, by the model and by the program.
fn without_an_interface(lab: &Lab) {
    let pair = lab.pair();
    let first = V4 { fragment: 0x2000, id: 7, ..V4::default() }.packet(&ports(9, 3074));
    let later = V4 { fragment: 2, id: 7, ..V4::default() }.packet(&[0; 16]);
    let mut file: Vec<u8> = Vec::new();
    let words = |file: &mut Vec<u8>, words: &[u32]| words.iter().for_each(|word| file.extend(word.to_le_bytes()));
    words(&mut file, &[0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65_535, 101]);
    for packet in [&first, &later] {
        words(&mut file, &[0, 0, packet.len() as u32, packet.len() as u32]);
        file.extend(packet);
    }
    let path = lab.file("fragments.pcap", file).display().to_string();
    let by_root = lab.sluice(&pair.a, &["explain", "gaming", "--pcap", &path, "--json"]).ok().stdout;
    // A copy, since other users may not enter the build's directory.
    let program = lab.file("sluice-for-all", std::fs::read(binary()).expect("the program"));
    for (path, mode) in [(program.as_path(), 0o755), (program.parent().expect("a directory"), 0o755)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("permissions");
    }
    let mut command = std::process::Command::new(&program);
    command.args(["explain", "gaming", "--pcap", &path, "--json"]).uid(65_534).gid(65_534);
    assert_eq!(run(&mut command).ok().stdout, by_root, "the model and the loaded program agree");
    let answer: Vec<Value> = serde_json::from_str(&by_root).expect("JSON");
    assert_eq!(
        (&answer[0]["class"]["name"], &answer[1]["class"]["name"]),
        (&json!("gaming"), &json!("gaming")),
        "{by_root}"
    );
    assert_eq!(answer[1]["rule"]["kind"], "first_fragment", "{by_root}");
}

fn bad_input(lab: &Lab) {
    let pair = lab.pair();
    for (words, answer) in [
        (&["gaming", "udp", "192.0.2.1"][..], "a source and a destination"),
        (&["gaming", "udp", "192.0.2.1:1", "2001:db8::1"], "two families"),
        (&["nosuch", "udp", "192.0.2.1", "192.0.2.2"], "nosuch"),
        (&["a0", "udp", "192.0.2.1", "192.0.2.2"], "a0 is not managed"),
        (&["gaming", "--pcap", "/nonexistent.pcap"], "nonexistent"),
        (&["gaming", "--pcap", "/proc/self/maps"], "not a capture"),
    ] {
        lab.sluice(&pair.a, &[&["explain"], words].concat()).exits(2).says(answer);
    }
}
