//! Records for tests, and files that remove themselves.
#![allow(dead_code, reason = "each test uses a part")]

use sluice_records::Verdict;
use sluice_records::flow::Limits;
use sluice_records::packet::{Direction, Ip, Tcp};
use sluice_records::{Address, Destination, Flow, Flows, Labels, Packet, Sampling};
use std::path::PathBuf;

/// A file that is removed when the test ends.
pub struct Scratch {
    pub path: PathBuf,
}

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("sluice-records-{}-{name}", std::process::id()));
        _ = std::fs::remove_file(&path);
        Scratch { path }
    }

    pub fn destination(&self) -> Destination {
        Destination::File(self.path.clone())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.path);
    }
}

pub fn labels() -> Labels {
    let mut labels = Labels::new(vec!["eth0".to_owned()]);
    labels.name_class(0, 5, "bulk, \"slow\"");
    labels
}

/// A packet of TCP, one of UDP with hashed addresses, one that is not IP, and the end.
pub fn packets() -> Vec<Packet> {
    let start_ns = 1_700_000_000_000_000_001;
    let ip = |text: &str| Address::Ip(text.parse().expect("an address"));
    let tcp = Packet {
        kind: sluice_records::packet::Kind::Packet,
        interface: Some(0),
        direction: Some(Direction::Egress),
        length: 1514,
        segments: 1,
        weight: 8,
        ip: Some(Ip { src: ip("192.0.2.1"), dst: ip("198.51.100.2"), ttl: 64, dscp: 46, ecn: 1 }),
        sport: Some(50_000),
        dport: Some(443),
        protocol: Some(6),
        tcp: Some(Tcp { flags: 24, window: 502 }),
        class: Some(5),
        ..Packet::end(start_ns, 0)
    };
    let udp = Packet {
        time_ns: start_ns + 1500,
        direction: Some(Direction::Ingress),
        length: 90,
        missed: 2,
        ip: Some(Ip { src: Address::Hash(0x2a), dst: Address::Hash(u64::MAX), ttl: 1, dscp: 0, ecn: 0 }),
        sport: Some(53),
        dport: Some(50_001),
        protocol: Some(17),
        tcp: None,
        vlan: Some(7),
        class: None,
        verdict: Verdict::Refused(4),
        cpu: 3,
        ..tcp
    };
    let arp = Packet {
        time_ns: start_ns + 2000,
        length: 60,
        ip: None,
        sport: None,
        dport: None,
        protocol: Some(257),
        tcp: None,
        verdict: Verdict::Passed,
        ..tcp
    };
    vec![tcp, udp, arp, Packet::end(start_ns + 5000, 1)]
}

/// The flows of those packets, and one with an answer.
pub fn flows() -> Vec<Flow> {
    let mut packets = packets();
    let first = packets[0];
    let ip = first.ip.map(|ip| Ip { src: ip.dst, dst: ip.src, ..ip });
    let answer = Packet {
        time_ns: first.time_ns + 250_500,
        direction: Some(Direction::Ingress),
        length: 66,
        ip,
        sport: first.dport,
        dport: first.sport,
        ..first
    };
    packets.insert(3, answer);
    packets.insert(4, Packet { time_ns: first.time_ns + 300_000, length: 1000, ..first });
    let mut flows = Flows::new(Limits::default(), Sampling::Packets);
    let mut ended = Vec::new();
    let mut keep = |flow: &Flow| {
        ended.push(*flow);
        Ok(())
    };
    packets.iter().for_each(|packet| flows.add(packet, &mut keep).expect("kept"));
    let missed = flows.finish(&mut keep).expect("kept");
    ended.push(Flow::end(first.time_ns + 400_000, missed));
    ended
}
