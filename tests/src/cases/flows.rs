//! `sluice flows`: counts against the packets sent, owners of flows, and anomalies.

use crate::cases::assert_near;
use crate::frames::{IPV4, V4, Wire, ethernet, ports};
use crate::iperf;
use crate::lab::Lab;
use crate::needs::{Need, is_icount};
use crate::net::{A, B, Pair};
use crate::policy::{port, three, with};
use crate::suite::Suite;
use crate::traffic::{self, Flow};
use serde_json::{Value, json};
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("flows")
        .alike_everywhere()
        .both("counts_equal_the_packets_sent", &[], counts)
        .both("plain_and_parsed_packets_share_a_flow", &[], plain_and_parsed)
        .both("rates_equal_the_traffic", &[], rates)
        .any("iperf3_agrees", &[Need::NoIcount, Need::Iperf3], iperf3)
        .any("scan_is_reported", &[], scan)
        .any("elephant_is_reported", &[], elephant)
        .any("as_csv", &[], csv)
        .any("a_policy_without_flows", &[], without)
        .both("a_full_table_keeps_a_flow_that_sends", &[], full)
}

#[track_caller]
fn once(lab: &Lab, pair: &Pair, more: &[&str]) -> Value {
    let output = lab.sluice(&pair.a, &[&["flows", "a0", "--once", "--json"], more].concat()).ok();
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output}"))
}

fn flows(seen: &Value) -> &[Value] {
    seen["flows"].as_array().expect("flows")
}

#[track_caller]
fn to(seen: &Value, port: u16) -> &Value {
    flows(seen).iter().find(|flow| flow["dst_port"] == port).unwrap_or_else(|| panic!("no flow to {port}: {seen}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn counts(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "50mbit"]);
    let frames = [214, 714, 1514];
    let loads = [0, 1, 2].map(|class: u8| Flow::new(port(class), &[frames[usize::from(class)]], 5_000_000));
    let streams = traffic::start(&pair.a, &pair.b, B, &loads);
    thread::sleep(Duration::from_millis(400));
    // Flows have owners while their sockets are open.
    let live = once(lab, &pair, &["--interval", "100ms"]);
    let outcomes = streams.finish(|| 0);
    let seen = once(lab, &pair, &["--interval", "100ms", "--by", "bytes"]);
    for (class, outcome) in outcomes.iter().enumerate() {
        let flow = to(&seen, port(class as u8));
        assert_eq!(flow["pkts"], outcome.sent, "packets of class {class}");
        assert_eq!(flow["bytes"], outcome.sent * frames[class] as u64, "bytes of class {class}");
        assert_eq!((&flow["src"], &flow["dst"]), (&json!(A), &json!(B)));
        assert_eq!((&flow["class"], &flow["rule"]), (&json!(class), &json!(format!("to {class}"))));
        assert_eq!((&flow["protocol_name"], &flow["arriving"]), (&json!("udp"), &json!(false)));
        let owner = &to(&live, port(class as u8))["process"]["pid"];
        assert_eq!(*owner, std::process::id(), "the flow's process is this one");
    }
    let bytes: Vec<f64> = flows(&seen).iter().map(|flow| number(&flow["bytes"])).collect();
    assert!(bytes.is_sorted_by(|a, b| a >= b), "the most bytes first: {bytes:?}");
    lab.down(&pair.a, "a0");
}

/// A packet read by its first words and one whose headers are parsed count in the same entry, at the queue and at the splitter's hook.
fn plain_and_parsed(lab: &Lab) {
    let pair = lab.pair();
    for split in ["off", "on"] {
        lab.up(
            &pair.a,
            "a0",
            &lab.policy(&with(three(), "link", json!({ "split_gso": split }))),
            &["--rate", "50mbit"],
        );
        let wire = Wire::open(&pair.a, "a0");
        for options in [&[][..], &[1; 4], &[]] {
            let packet = V4 { options: options.to_vec(), ..V4::default() }.packet(&ports(2000, port(1)));
            (0..2).for_each(|_| wire.send(&ethernet(&[], IPV4, &packet)));
        }
        let seen = once(lab, &pair, &["--interval", "100ms"]);
        let flow = to(&seen, port(1));
        assert_eq!((&flow["pkts"], &flow["src_port"]), (&json!(6), &json!(2000)), "split {split}: {seen}");
        lab.down(&pair.a, "a0");
    }
}

fn rates(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "50mbit"]);
    let loads = [Flow::new(port(0), &[514], 2_000_000), Flow::new(port(2), &[1514], 12_000_000)];
    let streams = traffic::start(&pair.a, &pair.b, B, &loads);
    thread::sleep(Duration::from_millis(300));
    let seen = once(lab, &pair, &["--interval", "1s", "--top", "1"]);
    streams.finish(|| 0);
    assert_eq!(flows(&seen).len(), 1, "as many as asked for");
    let first = &flows(&seen)[0];
    let part = if is_icount() { 0.03 } else { 0.25 };
    assert_eq!(first["dst_port"], port(2));
    assert_near("bits per second", number(&first["bps"]), 12e6, part);
    assert_near("packets per second", number(&first["pps"]), 12e6 / 8.0 / 1514.0, part);
    let classes = seen["classes"].as_array().expect("classes");
    let bulk = classes.iter().find(|class| class["class_name"] == "bulk").expect("class bulk");
    assert_near("the part of bulk", number(&bulk["share"]), 12.0 / 14.0, part);
    assert_eq!((&bulk["flows"], &bulk["active"]), (&json!(1), &json!(1)));
    lab.down(&pair.a, "a0");
}

/// A table of four sets, and many new flows beside one that sends all the time: that one keeps its entry, and each of its packets counts.
fn full(lab: &Lab) {
    const ENTRIES: usize = 16;
    let pair = lab.pair();
    let mut policy = three();
    policy["flow_table"] = json!(ENTRIES);
    lab.up(&pair.a, "a0", &lab.policy(&policy), &["--rate", "50mbit"]);
    let streams = traffic::start(&pair.a, &pair.b, B, &[Flow::new(port(0), &[514], 2_000_000)]);
    pair.a.inside(|| {
        let socket = UdpSocket::bind((A, 0)).expect("a socket");
        for port in 20_000..20_300 {
            // Sending fails sometimes with the error of an earlier datagram; the datagram was sent nonetheless.
            let _ = socket.send_to(b"?", (B, port));
            thread::sleep(Duration::from_millis(5));
        }
    });
    let outcomes = streams.finish(|| 0);
    let seen = once(lab, &pair, &["--interval", "100ms", "--by", "bytes"]);
    assert_eq!(to(&seen, port(0))["pkts"], outcomes[0].sent, "packets of the flow that sends: {seen}");
    assert!(flows(&seen).len() <= ENTRIES, "{} flows", flows(&seen).len());
    let late = flows(&seen).iter().filter(|flow| flow["dst_port"].as_u64() >= Some(20_200)).count();
    assert!(late >= ENTRIES / 2, "the last of the new flows have the other entries, {late} of {ENTRIES}");
    lab.down(&pair.a, "a0");
}

/// A TCP transfer: iperf3, the flow and tc count the same bytes.
fn iperf3(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit"]);
    let server = iperf::serve(&pair.b);
    let client = iperf::start(&pair.a, &format!("-c {B} -p 5201 -t 8 -J"));
    // TCP must fill the link first: its rate is checked below.
    thread::sleep(Duration::from_millis(1500));
    let live = once(lab, &pair, &["--interval", "2s"]);
    let report = client.finish().ok().stdout;
    server.finish();
    let report: Value = serde_json::from_str(&report).expect("iperf3's report");
    let seen = once(lab, &pair, &["--interval", "100ms", "--by", "bytes"]);
    let flow = &flows(&seen)[0];
    assert_eq!((&flow["dst_port"], &flow["protocol_name"]), (&json!(5201), &json!("tcp")));
    assert_eq!(to(&live, 5201)["process"]["name"], "iperf3");
    // A frame of 1514 bytes carries 1448; a super-packet has one header for many. When the client ends, some of its data is
    // still on its way, and some never leaves; what is sent again is counted again.
    let end = |side: &str, what: &str| number(&report["end"][side][what]) * 1514.0 / 1448.0;
    let (received, sent) = (end("sum_received", "bytes"), end("sum_sent", "bytes"));
    let counted = number(&flow["bytes"]);
    eprintln!("    the flow counts {counted:.4e} bytes; iperf3 has received {received:.4e} and handed over {sent:.4e}");
    let again = number(&report["end"]["sum_sent"]["retransmits"]) * 1514.0;
    assert!((received * 1448.0 / 1514.0..sent * 1.01 + again).contains(&counted), "bytes of the flow");
    assert_near("rate", number(&to(&live, 5201)["bps"]), end("sum_received", "bits_per_second"), 0.08);
    let status = lab.status(&pair.a, "a0");
    let (sent_pkts, dropped_pkts, _) = status.direction("egress").totals();
    let counted: f64 =
        flows(&seen).iter().filter(|flow| flow["arriving"] == false).map(|flow| number(&flow["pkts"])).sum();
    assert_eq!(counted, (sent_pkts + dropped_pkts) as f64, "every packet that was offered is some flow's");
    let root = pair.a.root("a0").expect("a root qdisc");
    assert_eq!(root.packets, sent_pkts, "and tc counts those that left");
    lab.down(&pair.a, "a0");
}

/// A scan: one datagram to each of so many ports.
fn scan(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "50mbit"]);
    let probe = |ports: std::ops::Range<u16>| {
        pair.a.inside(|| {
            let socket = UdpSocket::bind((A, 0)).expect("a socket");
            ports.for_each(|port| {
                // Sending fails sometimes with the error of an earlier datagram; the datagram was sent nonetheless.
                let _ = socket.send_to(b"?", (B, port));
            });
        });
    };
    probe(7000..7030);
    let few = once(lab, &pair, &["--interval", "100ms"]);
    assert_eq!(few["anomalies"], json!([]), "thirty ports are no scan");
    probe(7030..7100);
    let seen = once(lab, &pair, &["--interval", "100ms"]);
    let found = &seen["anomalies"][0];
    assert_eq!((&found["kind"], &found["source"]), (&json!("port_scan"), &json!(A)), "{seen}");
    assert!(found["reason"].as_str().is_some_and(|why| why.contains("100 ports of 10.77.0.2")), "{found}");
    lab.down(&pair.a, "a0");
}

fn elephant(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit"]);
    let loads = [Flow::new(port(0), &[1514], 10_000_000), Flow::new(port(2), &[1514], 5_000_000)];
    let streams = traffic::start(&pair.a, &pair.b, B, &loads);
    thread::sleep(Duration::from_millis(1500));
    let seen = once(lab, &pair, &["--interval", "500ms"]);
    streams.finish(|| 0);
    let found = seen["anomalies"].as_array().expect("anomalies");
    assert_eq!(found.len(), 1, "{seen}");
    assert_eq!(found[0]["kind"], "elephant_in_urgent_class");
    assert_eq!((&found[0]["flow"]["dst_port"], &found[0]["class_name"]), (&json!(port(0)), &json!("control")));
    lab.down(&pair.a, "a0");
}

fn csv(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "50mbit"]);
    let loads = [0, 2].map(|class: u8| Flow::new(port(class), &[514], 1_000_000));
    traffic::run(&pair.a, &pair.b, B, &loads, Duration::from_millis(200), || 0);
    let text = lab.sluice(&pair.a, &["flows", "a0", "--once", "--csv", "--interval", "100ms"]).ok().stdout;
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 3, "titles and two flows: {text}");
    assert_eq!(lines[0][..5], ["at_ms", "interface", "direction", "protocol", "src"]);
    assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{text}");
    let place = lines[0].iter().position(|title| *title == "dst_port").expect("a title");
    let mut ports: Vec<&str> = lines[1..].iter().map(|line| line[place]).collect();
    ports.sort_unstable();
    assert_eq!(ports, ["3000", "3002"]);
    lab.down(&pair.a, "a0");
}

fn without(lab: &Lab) {
    let pair = lab.pair();
    let policy = with(three(), "flow_table", json!(0));
    lab.up(&pair.a, "a0", &lab.policy(&policy), &["--rate", "50mbit"]);
    traffic::run(&pair.a, &pair.b, B, &[Flow::new(port(0), &[514], 1_000_000)], Duration::from_millis(100), || 0);
    let seen = once(lab, &pair, &["--interval", "100ms"]);
    assert_eq!((&seen["without_flows"], &seen["flows"]), (&json!(["a0"]), &json!([])));
    let text = lab.sluice(&pair.a, &["flows", "--once", "--interval", "100ms"]).ok().stdout;
    assert!(text.contains("keeps no flows"), "{text}");
    lab.down(&pair.a, "a0");
}
