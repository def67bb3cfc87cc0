//! ECN (RFC 3168): packets of capable flows are marked, not dropped.

use crate::frames::{PPPOE, V4, Wire, ethernet, ports, pppoe};
use crate::iperf;
use crate::lab::{Engine, Lab};
use crate::needs::Need;
use crate::net::{B, Ns};
use crate::policy::{port, with};
use crate::suite::Suite;
use crate::traffic::{self, Flow};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

pub fn suite() -> Suite {
    Suite::new("congestion")
        .qdisc("packets_are_marked_instead_of_dropped", &[Need::Ifb, Need::Icount], marks)
        .tc("packets_are_marked_instead_of_dropped", &[Need::Ifb, Need::FqCodel], marks)
        .qdisc("subscribers_are_marked", &[Need::Icount], marks_of_subscribers)
        .tc("subscribers_are_marked", &[Need::Icount, Need::FqCodel], marks_of_subscribers)
        .qdisc("a_mark_is_for_one_flow", &[Need::Icount], marks_of_one)
        .qdisc("unmarkable_packets_are_dropped", &[Need::Icount], unmarkable)
        .qdisc("codel_drops_as_many_as_the_kernels", &[Need::Icount, Need::Htb], as_the_kernel)
}

const FRAME: usize = 1014;

/// Packets that arrived at a host with the CE mark (RFC 3168).
fn marked(ns: &Ns) -> u64 {
    let table = ns.inside(|| std::fs::read_to_string("/proc/thread-self/net/netstat")).expect("counters of IP");
    let mut lines = table.lines().filter(|line| line.starts_with("IpExt:")).map(str::split_whitespace);
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let (_, value) = names.zip(values).find(|(name, _)| *name == "InCEPkts").expect("InCEPkts");
    value.parse().expect("a count")
}

/// Two TCP transfers through a class that queues by flow: the packets that CoDel dropped, and those that arrived marked.
fn transfer(lab: &Lab, ecn: &str, split: &str, arriving: bool) -> (u64, u64) {
    let class = json!({ "id": 0, "queue": "flows" });
    let policy =
        json!({ "version": 1, "scheduler": "deficit_round_robin", "link": { "split_gso": split }, "classes": [class] });
    transfer_with(lab, &policy, ecn, arriving)
}

/// Two TCP transfers under a policy: the packets that CoDel dropped, and those that arrived marked.
fn transfer_with(lab: &Lab, policy: &Value, ecn: &str, arriving: bool) -> (u64, u64) {
    let pair = lab.pair();
    for ns in [&pair.a, &pair.b] {
        ns.sysctl("net/ipv4/tcp_ecn", ecn);
    }
    let (far, end) = if arriving { (&pair.a, "a0") } else { (&pair.b, "b0") };
    far.tc(&format!("qdisc add dev {end} root netem delay 20ms limit 10000"));
    let (ns, dev) = if arriving { (&pair.b, "b0") } else { (&pair.a, "a0") };
    lab.up(ns, dev, &lab.policy(policy), &[if arriving { "--ingress-rate" } else { "--rate" }, "20mbit"]);
    let mut server = iperf::serve(&pair.b);
    iperf::start(&pair.a, &format!("-c {B} -C cubic -t 3 -P 2")).finish().ok();
    let status = lab.status(ns, dev);
    let class = status.direction(if arriving { "ingress" } else { "egress" }).class(0);
    let (dropped, marked) = (class.dropped.pkts, marked(&pair.b));
    eprintln!(
        "    ecn {ecn}, link {}, arriving {arriving}: {dropped} dropped, {marked} marked, {:?}",
        policy["link"], class.drops
    );
    server.kill();
    lab.down(ns, dev);
    (dropped, marked)
}

fn marks(lab: &Lab) {
    let (dropped, marked) = transfer(lab, "0", "on", false);
    assert!(dropped > 0 && marked == 0, "without ECN: {dropped} dropped, {marked} marked");
    for (split, arriving) in [("on", false), ("off", false), ("on", true)] {
        // fq_codel does not act while its queue is no longer than the longest packet yet: a super-packet.
        if split == "off" && lab.engine == Engine::Tc {
            continue;
        }
        let (dropped, marked) = transfer(lab, "1", split, arriving);
        assert!(marked > 2, "{marked} packets came marked");
        // TCP's retransmissions cannot be marked, nor can packets that close a connection.
        assert!(dropped * 20 <= marked, "{dropped} dropped with ECN, {marked} marked");
    }
}

/// A subscriber whose flows are marked, by flow and in a FIFO with CoDel; without ECN, they lose packets.
fn marks_of_subscribers(lab: &Lab) {
    let policy = |split: &str, queue: &str| {
        json!({
            "link": { "split_gso": split },
            "subscriber_side": ["a0"],
            "plans": { "home": { "ceil": "10mbit", "queue": queue, "aqm": "codel" } },
            "subscribers": [{ "name": "b", "addresses": [B], "plan": "home" }],
        })
    };
    let (dropped, marked) = transfer_with(lab, &policy("on", "flows"), "0", false);
    assert!(dropped > 0 && marked == 0, "without ECN: {dropped} dropped, {marked} marked");
    for (split, queue) in [("on", "flows"), ("off", "fifo")] {
        if split == "off" && lab.engine == Engine::Tc {
            continue;
        }
        let (dropped, marked) = transfer_with(lab, &policy(split, queue), "1", false);
        assert!(marked > 2 && dropped * 20 <= marked, "{dropped} dropped with ECN, {marked} marked");
    }
}

/// A flood of ECN-capable packets next to light capable flows: no more packets arrive marked than the queue has marked.
fn marks_of_one(lab: &Lab) {
    let pair = lab.pair();
    let class = json!({ "id": 0, "queue": "flows" });
    let policy = json!({ "version": 1, "scheduler": "deficit_round_robin", "classes": [class] });
    for split in ["on", "off"] {
        let before = marked(&pair.b);
        let policy = with(policy.clone(), "link", json!({ "split_gso": split }));
        lab.up(&pair.a, "a0", &lab.policy(&policy), &["--rate", "10mbit"]);
        let light = |id| Flow::new(port(id), &[142], 100 * 142 * 8).tos(2);
        let flows = [light(0), light(1), light(3), Flow::new(port(2), &[FRAME], 11_000_000).tos(2)];
        let streams = traffic::start(&pair.a, &pair.b, B, &flows);
        std::thread::sleep(Duration::from_millis(2500));
        streams.stop();
        streams.finish_lossy();
        let status = lab.status(&pair.a, "a0");
        let class = status.egress(0);
        let (decided, came) = (class.marked.pkts, marked(&pair.b) - before);
        eprintln!("    split {split}: {decided} marks decided, {came} came, {:?}", class.drops);
        assert!(came > 2 && came <= decided, "{came} packets came marked, {decided} were to be");
        assert!(class.drops.is_empty(), "what can be marked is not dropped: {class:?}");
        lab.down(&pair.a, "a0");
    }
}

/// A flow of ECN-capable packets that cannot be marked, since they are in PPPoE.
fn unmarkable(lab: &Lab) {
    let pair = lab.pair();
    let class = json!({ "id": 0, "queue": "flows" });
    let policy = json!({ "version": 1, "scheduler": "deficit_round_robin", "classes": [class] });
    lab.up(&pair.a, "a0", &lab.policy(&policy), &["--rate", "5mbit"]);
    let mut packet = V4::default().packet(&[ports(1, 2), vec![0; 1200]].concat());
    packet[1] |= 2; // ECT(0); the checksum is not verified
    let frame = ethernet(&[], PPPOE, &pppoe(0x21, &packet));
    let wire = Wire::open(&pair.a, "a0");
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(1500) {
        (0..10).for_each(|_| wire.offer(&frame));
        std::thread::sleep(Duration::from_millis(10));
    }
    let status = lab.status(&pair.a, "a0");
    let class = status.egress(0);
    eprintln!("    {} sent, {:?}", class.sent.pkts, class.drops);
    assert!(class.drops.get("aqm").is_some_and(|dropped| *dropped > 2), "{class:?}");
    lab.down(&pair.a, "a0");
}

/// The same flood through our CoDel and through the kernel's: the drops of each, second by second.
fn as_the_kernel(lab: &Lab) {
    let policy = json!({ "version": 1, "scheduler": "deficit_round_robin", "classes": [{ "id": 0, "aqm": "codel", "limit": 1000 }] });
    let losses = |engine: &str| -> Vec<u64> {
        let pair = lab.pair();
        lab.sluice(&pair.a, &["up", "a0", "--policy", &lab.policy(&policy), "--engine", engine, "--rate", "10mbit"])
            .ok();
        let flows = [Flow::new(port(0), &[FRAME], 10_500_000)];
        let streams = traffic::start(&pair.a, &pair.b, B, &flows);
        std::thread::sleep(Duration::from_millis(5200));
        streams.stop();
        let flood = streams.finish_lossy().remove(0);
        lab.down(&pair.a, "a0");
        assert!(flood.in_order());
        let begin = flood.arrivals[0].sent_ns;
        let before = |second: u64| {
            let until = begin + second * 1_000_000_000;
            let came = flood.arrivals.partition_point(|arrival| arrival.sent_ns < until);
            flood.arrivals[came].seq - came as u64
        };
        (1..=5).map(before).collect()
    };
    let (ours, theirs) = (losses("qdisc"), losses("tc"));
    eprintln!("    lost of what was sent in 1 to 5 s: ours {ours:?}, the kernel's {theirs:?}");
    assert!(theirs[4] > 20, "the kernel's CoDel acts");
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert!(ours.abs_diff(*theirs) <= 3 + theirs / 20, "{ours} beside {theirs}");
    }
}
