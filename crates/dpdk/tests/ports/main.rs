//! `sluice-dpdk` on real DPDK ports: captures (net_pcap), rings, null devices, net_softnic, veths (net_af_packet) and taps. Packets are counted; no test
//! measures time. Those on veths and taps need root, and the others no rights.

mod frames;
mod running;

use frames::{Capture, Seen, ethertypes, frame, of_type, read};
use nix::sys::signal::Signal;
use running::{Dir, Running, class, pkts, refuse, sluice};
use sluice_testbed::namespace::Namespace;
use sluice_testbed::veth::{End, connect};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Three levels; a packet's class is told by its port, 1000 the most urgent.
const THREE: &str = r#"{ "scheduler": "strict_priority", "default_class": 2,
  "classes": [
    { "id": 0, "name": "high", "priority": 0, "limit": 4000 }, { "id": 1, "name": "mid", "priority": 1, "limit": 4000 }, { "id": 2, "name": "low", "priority": 2, "limit": 4000 } ],
  "rules": [
    { "priority": 1, "protocol": "udp", "dst_port": 1000, "class_id": 0 },
    { "priority": 2, "protocol": "udp", "dst_port": 1001, "class_id": 1 } ] }"#;

/// Two classes of one level, which share 3 to 1.
const WEIGHTS: &str = r#"{ "scheduler": "weighted_fair_queuing", "default_class": 1,
  "classes": [ { "id": 0, "name": "high", "weight": 3, "limit": 4000 }, { "id": 1, "name": "low", "weight": 1, "limit": 4000 } ],
  "rules": [ { "priority": 1, "protocol": "udp", "dst_port": 1000, "class_id": 0 } ] }"#;

/// The numbers of packets of each port in the order in which they were seen.
fn by_port(seen: &[Seen]) -> BTreeMap<u16, Vec<u32>> {
    let mut all: BTreeMap<u16, Vec<u32>> = BTreeMap::new();
    seen.iter().for_each(|seen| all.entry(seen.port).or_default().push(seen.number));
    all
}

/// Each packet of a class is in one place: it was taken, dropped or waits.
fn nothing_is_lost(way: &serde_json::Value) {
    for class in way["classes"].as_array().expect("classes") {
        let dropped: u64 = class["dropped_packets"].as_object().expect("by reason").values().map(pkts).sum();
        let waits = pkts(&class["queued_packets"]) + pkts(&class["waiting_for_port_packets"]);
        assert_eq!(pkts(&class["arrived_packets"]), pkts(&class["packets"]) + dropped + waits, "{class:#}");
    }
    let taken = |key: &str, of: &str| -> u64 {
        way[key].as_array().expect("an array").iter().map(|each| pkts(&each[of])).sum()
    };
    let ahead = pkts(&way["never_queued"]["taken_packets"]);
    assert_eq!(taken("classes", "packets"), taken("lists", "taken_packets") + ahead, "{way:#}");
}

/// Interleaved packets of three classes, so many of each, by a capture through a ring, which gives back what it takes to the other way.
fn through_a_ring(dir: &Dir, policy: &str, each: u32, more: &[&str]) -> (serde_json::Value, Vec<Seen>) {
    let mut capture = Capture::new(&dir.path("in.pcap"));
    for number in 0..each {
        (1000..1003).for_each(|port| capture.write(&frame(port, number, 500)));
    }
    drop(capture);
    let (input, output) = (dir.path("in.pcap"), dir.path("out.pcap"));
    let device = format!("net_pcap0,rx_pcap={input},tx_pcap={output}");
    let mut arguments = vec!["--end-when-idle", "500ms", &device, "net_ring0"];
    arguments.extend(more);
    let counted = sluice(dir, policy, &arguments);
    (counted, read(&output))
}

#[test]
fn a_full_port_holds_back_the_level_that_it_refuses_and_no_other() {
    let dir = Dir::new();
    // The other way reads the first queue of the ring, which is that of the first level. Nothing reads the others, which hold 1,023 packets.
    let (counted, seen) = through_a_ring(&dir, THREE, 1500, &[]);
    let there = &counted["ways"][0];
    nothing_is_lost(there);
    nothing_is_lost(&counted["ways"][1]);
    assert_eq!(by_port(&seen), BTreeMap::from([(1000, (0..1500).collect())]), "all of the first level, in order");
    for (id, name) in [(1, "mid"), (2, "low")] {
        let class = class(there, name);
        assert_eq!(pkts(&class["packets"]), 1023, "{class:#}");
        assert_eq!(pkts(&class["waiting_for_port_packets"]), 64, "{class:#}");
        assert!(pkts(&there["lists"][id]["refused_by_port"]) > 0, "{there:#}");
    }
    assert_eq!(pkts(&class(there, "high")["packets"]), 1500);
    assert_eq!(pkts(&class(there, "high")["waiting_for_port_packets"]), 0);
}

#[test]
fn levels_leave_in_their_order_by_one_queue_at_the_rate() {
    let dir = Dir::new();
    // At 20 Mbit/s, 900 packets of 542 bytes take some 195 ms; they come within a few.
    let began = Instant::now();
    let (counted, seen) = through_a_ring(&dir, THREE, 300, &["--queues", "one", "--rate", "20mbit/1gbit"]);
    // However slow the machine is, the rate is not exceeded: the run ends 500 ms after the last packet.
    assert!(began.elapsed() > Duration::from_millis(500 + 180), "{:?}", began.elapsed());
    nothing_is_lost(&counted["ways"][0]);
    nothing_is_lost(&counted["ways"][1]);
    let all: Vec<u32> = (0..300).collect();
    let due = BTreeMap::from([(1000, all.clone()), (1001, all.clone()), (1002, all)]);
    assert_eq!(by_port(&seen), due, "each packet once, and those of a class in order");
    let last = |port: u16| seen.iter().rposition(|seen| seen.port == port).expect("some");
    let before = |port: u16, place: usize| seen[..place].iter().filter(|seen| seen.port == port).count();
    assert!(before(1001, last(1000)) + before(1002, last(1000)) < 150, "the first level goes first");
    assert!(before(1002, last(1001)) < 150, "and the second before the third");
}

#[test]
fn weights_hold_behind_a_port_that_refuses() {
    let dir = Dir::new();
    let mut capture = Capture::new(&dir.path("in.pcap"));
    for number in 0..1500 {
        capture.write(&frame(1000, number, 500));
        capture.write(&frame(1001, number, 500));
    }
    drop(capture);
    let device = format!("net_pcap0,rx_pcap={},tx_pcap={}", dir.path("in.pcap"), dir.path("out.pcap"));
    // A ring that nothing reads, for its pipelines are none: it holds 511.
    let firmware = dir.write("firmware.cli", "");
    let soft = format!("net_softnic0,firmware={firmware}");
    let counted = sluice(&dir, WEIGHTS, &["--end-when-idle", "500ms", &device, &soft]);
    let there = &counted["ways"][0];
    nothing_is_lost(there);
    let (high, low) = (pkts(&class(there, "high")["packets"]), pkts(&class(there, "low")["packets"]));
    assert_eq!(high + low, 511, "{there:#}");
    // Until the port was full nothing waited, so both have had as much as came.
    assert!(high.abs_diff(low) <= 64, "{high} and {low}");
    let listed = ["high", "low"].map(|name| pkts(&class(there, name)["waiting_for_port_packets"]));
    assert_eq!(listed.iter().sum::<u64>(), 64, "one list for both");
}

#[test]
fn shares_follow_weights_at_a_rate() {
    let dir = Dir::new();
    let mut capture = Capture::new(&dir.path("in.pcap"));
    for number in 0..1200 {
        capture.write(&frame(1000, number, 500));
        capture.write(&frame(1001, number, 500));
    }
    drop(capture);
    let device = format!("net_pcap0,rx_pcap={},tx_pcap={}", dir.path("in.pcap"), dir.path("out.pcap"));
    let counted = sluice(&dir, WEIGHTS, &["--end-when-idle", "500ms", "--rate", "50mbit/1gbit", &device, "net_ring0"]);
    nothing_is_lost(&counted["ways"][0]);
    let seen = read(&dir.path("out.pcap"));
    // While both wait: behind what left before they came, and before the first one is empty.
    let high = seen[300..1100].iter().filter(|seen| seen.port == 1000).count();
    assert!((580..=620).contains(&high), "{high} of 800, and 600 are due");
}

#[test]
fn what_keeps_a_network_up_goes_ahead_of_a_full_queue() {
    let dir = Dir::new();
    let (arp, lldp, ipv4) = (0x0806, 0x88cc, 0x0800);
    let mut capture = Capture::new(&dir.path("in.pcap"));
    (0..300).for_each(|number| capture.write(&frame(1002, number, 500)));
    for _ in 0..5 {
        capture.write(&of_type(arp, 46));
        capture.write(&of_type(lldp, 46));
    }
    drop(capture);
    let (input, output) = (dir.path("in.pcap"), dir.path("out.pcap"));
    let device = format!("net_pcap0,rx_pcap={input},tx_pcap={output}");
    // At 10 Mbit/s, 300 packets of 542 bytes take 130 ms, and the last frames of the capture come within a few.
    let options = ["--queues", "one", "--rate", "10mbit/1gbit", "--end-when-idle", "500ms", &device, "net_ring0"];
    let counted = sluice(&dir, THREE, &options);
    for way in 0..2 {
        nothing_is_lost(&counted["ways"][way]);
        assert_eq!(pkts(&counted["ways"][way]["never_queued"]["taken_packets"]), 10, "{counted:#}");
    }
    let seen = ethertypes(&output);
    let count = |wanted: u16| seen.iter().filter(|own| **own == wanted).count();
    assert_eq!((count(ipv4), count(arp), count(lldp)), (300, 5, 5), "all have passed");
    let last = seen.iter().rposition(|own| *own != ipv4).expect("some");
    assert!(last < 150, "the last of them is packet {last} of 310");
}

#[test]
fn a_flood_of_what_is_never_queued_has_bounds() {
    let dir = Dir::new();
    let (arp, lldp) = (0x0806, 0x88cc);
    let mut capture = Capture::new(&dir.path("in.pcap"));
    for _ in 0..400 {
        capture.write(&of_type(arp, 1000));
        capture.write(&of_type(lldp, 1000));
    }
    drop(capture);
    let device = format!("net_pcap0,rx_pcap={},tx_pcap={}", dir.path("in.pcap"), dir.path("out.pcap"));
    let counted = sluice(&dir, THREE, &["--end-when-idle", "500ms", &device, "net_null1,no-rx=1"]);
    let there = &counted["ways"][0];
    nothing_is_lost(there);
    // The bucket of the built-in rules holds 64 KiB, and has 64 KB a second.
    let ahead = pkts(&there["never_queued"]["taken_packets"]);
    assert!((60..400).contains(&ahead), "{ahead} went ahead");
    let refused = pkts(&class(there, "high")["dropped_packets"]["control_limited"]);
    assert!(refused > 0, "ARP over the bucket is dropped: {there:#}");
    let queued = pkts(&there["lists"][2]["taken_packets"]);
    assert!(queued > 0, "and LLDP is queued like others: {there:#}");
    assert_eq!(ahead + refused + queued, 800, "{there:#}");
}

#[test]
fn null_devices_take_everything_until_a_signal() {
    let dir = Dir::new();
    let ports = ["--every", "1s", "net_null0", "net_null1,no-rx=1"];
    let mut running = Running::start(&dir, THREE, &ports, None);
    running.await_line("came");
    running.signal(Signal::SIGINT);
    let counted = running.counted();
    let there = &counted["ways"][0];
    nothing_is_lost(there);
    // Its frames are zeroes, which no rule matches.
    assert!(pkts(&class(there, "low")["packets"]) > 10_000, "{there:#}");
    assert_eq!(pkts(&counted["ways"][1]["classes"][0]["arrived_packets"]), 0);
}

#[test]
fn malformed_packets_are_counted_where_the_policy_drops_them() {
    let dir = Dir::new();
    let mut capture = Capture::new(&dir.path("in.pcap"));
    for number in 0..20 {
        let mut broken = frame(1000, number, 100);
        broken[14] = 0x42; // an IPv4 header of two words
        capture.write(&broken);
        capture.write(&frame(1000, number, 100));
    }
    drop(capture);
    let device = format!("net_pcap0,rx_pcap={},tx_pcap={}", dir.path("in.pcap"), dir.path("out.pcap"));
    let policy = THREE.replacen('{', r#"{ "malformed": "drop","#, 1);
    let counted = sluice(&dir, &policy, &["--end-when-idle", "500ms", &device, "net_null1,no-rx=1"]);
    let there = &counted["ways"][0];
    nothing_is_lost(there);
    assert_eq!(pkts(&class(there, "low")["dropped_packets"]["malformed"]), 20, "{there:#}");
    assert_eq!(pkts(&class(there, "high")["packets"]), 20);
}

#[test]
fn what_cannot_be_is_refused() {
    let dir = Dir::new();
    let null = ["net_null0", "net_null1,no-rx=1"];
    let with_forwards = THREE.replacen(r#""rules""#, "\n  \"limits\": { \"egress\": \"5mbit\" }, \"rules\"", 1);
    let told = refuse(&dir, &with_forwards, &null, 2);
    assert!(told.contains("policy.json:5:") && told.contains("buckets before the queues"), "{told}");
    assert!(told.contains("help"), "{told}");
    let told = refuse(&dir, "{ \"scheduler\": 5 }", &null, 2);
    assert!(told.contains("policy.json:1:"), "{told}");
    let told = refuse(&dir, THREE, &["net_null0", "net_no_such0"], 2);
    assert!(told.contains("there is no port net_no_such0"), "{told}");
    let told = refuse(&dir, THREE, &["net_null0", "net_null0"], 2);
    assert!(told.contains("named twice"), "{told}");
    let capture = format!("net_pcap0,rx_pcap={}", dir.path("none.pcap"));
    refuse(&dir, THREE, &["net_null0", &capture], 2);
    drop(Capture::new(&dir.path("in.pcap")));
    let one = format!("net_pcap0,rx_pcap={},tx_pcap={}", dir.path("in.pcap"), dir.path("out.pcap"));
    let told = refuse(&dir, THREE, &["--queues", "each", "net_null0", &one], 2);
    assert!(told.contains("3 levels") && told.contains("1 tx queues"), "{told}");
    let told = refuse(&dir, THREE, &["net_null0", "net_null1", "--", "-m", "32"], 1);
    assert!(told.contains("no memory for") && told.contains("--packets"), "{told}");
    let told = refuse(&dir, THREE, &["net_null0", "net_null1", "--", "--no-such-argument"], 1);
    assert!(told.contains("DPDK does not start"), "{told}");
    let told = refuse(&dir, THREE, &["--rate", "fast", "net_null0", "net_null1"], 2);
    assert!(told.contains("--rate fast"), "{told}");
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Sends packets of three classes from one interface, so many of each, until all of a class have been seen at the other one.
fn exchange(from: (&Namespace, &str), to: (&Namespace, &str), each: u32) -> Vec<Seen> {
    let receiver = to.0.inside(|| frames::Socket::open(to.1)).expect("a namespace");
    let sender = from.0.inside(|| frames::Socket::open(from.1)).expect("a namespace");
    let mut seen = Vec::new();
    for number in 0..each {
        (1000..1003).for_each(|port| sender.send(&frame(port, number, 300)));
        // So that no buffer of a socket overflows.
        seen.extend(receiver.seen(Duration::from_millis(2)));
    }
    while seen.len() < 3 * each as usize {
        let more = receiver.seen(Duration::from_secs(2));
        if more.is_empty() {
            break;
        }
        seen.extend(more);
    }
    seen
}

#[test]
fn root_packets_pass_between_two_veths_and_a_kill_leaves_nothing() {
    assert!(is_root(), "this test needs root");
    let dir = Dir::new();
    let [near, middle, far] =
        ["near", "mid", "far"].map(|role| Namespace::create("sldpdk", role).expect("a namespace"));
    let end = |namespace, device: &str| End { namespace, device: device.to_owned(), options: String::new() };
    connect(&[[end(&near, "n0"), end(&middle, "m0")], [end(&far, "f0"), end(&middle, "m1")]]).expect("veths");
    for (host, devices) in [(&near, &["n0"][..]), (&far, &["f0"]), (&middle, &["m0", "m1"])] {
        host.run("sysctl", &["-qw", "net.ipv6.conf.all.disable_ipv6=1"]).expect("sysctl");
        devices.iter().for_each(|device| host.ip_batch(&[format!("link set {device} up")]).expect("up"));
    }
    let ports = ["net_af_packet0,iface=m0", "net_af_packet1,iface=m1"];
    let mut running = Running::start(&dir, THREE, &ports, Some(&middle));
    running.await_line("packets pass");
    let all: Vec<u32> = (0..200).collect();
    let due = BTreeMap::from([(1000, all.clone()), (1001, all.clone()), (1002, all)]);
    assert_eq!(by_port(&exchange((&near, "n0"), (&far, "f0"), 200)), due, "one way");
    assert_eq!(by_port(&exchange((&far, "f0"), (&near, "n0"), 200)), due, "the other way");
    running.signal(Signal::SIGTERM);
    let counted = running.counted();
    for way in 0..2 {
        nothing_is_lost(&counted["ways"][way]);
        for name in ["high", "mid", "low"] {
            assert_eq!(pkts(&class(&counted["ways"][way], name)["packets"]), 200, "{counted:#}");
        }
    }
    let links = || middle.run("ip", &["-o", "link"]).expect("ip");
    assert!(links().lines().count() == 3 && !links().contains("PROMISC"), "{}", links());
    let mut running = Running::start(&dir, THREE, &ports, Some(&middle));
    running.await_line("packets pass");
    assert!(links().contains("PROMISC"), "{}", links());
    running.signal(Signal::SIGKILL);
    running.ended();
    // The driver's socket is gone; that its interface is promiscuous only a process that ends can take back, or the administrator.
    assert_eq!(links().lines().count(), 3, "{}", links());
    assert!(links().contains("PROMISC"), "{}", links());
    ["m0", "m1"]
        .iter()
        .for_each(|dev| middle.ip_batch(&[format!("link set dev {dev} promisc off")]).expect("the cure"));
    assert!(!links().contains("PROMISC"), "{}", links());
    let sockets = middle.run("cat", &["/proc/net/packet"]).expect("a table");
    assert_eq!(sockets.lines().count(), 1, "{sockets}");
}

#[test]
fn root_packets_pass_between_two_taps_and_a_kill_leaves_none() {
    assert!(is_root(), "this test needs root");
    let dir = Dir::new();
    let middle = Namespace::create("sldpdk", "tap").expect("a namespace");
    middle.run("sysctl", &["-qw", "net.ipv6.conf.default.disable_ipv6=1"]).expect("sysctl");
    let ports = ["net_tap0,iface=t0", "net_tap1,iface=t1"];
    let mut running = Running::start(&dir, THREE, &ports, Some(&middle));
    running.await_line("packets pass");
    middle.ip_batch(&["link set t0 up".to_owned(), "link set t1 up".to_owned()]).expect("up");
    let all: Vec<u32> = (0..200).collect();
    let due = BTreeMap::from([(1000, all.clone()), (1001, all.clone()), (1002, all)]);
    assert_eq!(by_port(&exchange((&middle, "t0"), (&middle, "t1"), 200)), due);
    running.signal(Signal::SIGINT);
    let counted = running.counted();
    nothing_is_lost(&counted["ways"][0]);
    assert_eq!(pkts(&class(&counted["ways"][0], "high")["packets"]), 200, "{counted:#}");
    let links = middle.run("ip", &["-o", "link"]).expect("ip");
    assert_eq!(links.lines().count(), 1, "{links}");
    let mut running = Running::start(&dir, THREE, &ports, Some(&middle));
    running.await_line("packets pass");
    assert!(middle.run("ip", &["-o", "link"]).expect("ip").contains("t1"));
    running.signal(Signal::SIGKILL);
    running.ended();
    let links = middle.run("ip", &["-o", "link"]).expect("ip");
    assert_eq!(links.lines().count(), 1, "{links}");
}
