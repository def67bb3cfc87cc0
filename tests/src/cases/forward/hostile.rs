//! Packets that are to do harm.

use super::network::{ENDS, INSIDE, LISTEN, LONG, at, four, network, of, policy};
use super::peers::{Echo, Open, datagram, exchange};
use crate::command::await_that;
use crate::frames::{self, V4, Wire};
use crate::lab::Lab;
use crate::net::{CLIENT, Ns};
use serde_json::json;
use std::net::Ipv4Addr;
use std::time::Duration;

const SYN: u8 = 2;
const ACK: u8 = 16;
/// Time in which the kernel takes up frames of a raw socket that it has left to its thread (ksoftirqd).
const SOFTIRQ: Duration = Duration::from_millis(50);

/// A TCP segment without data to the port of the forward `keep`.
fn segment(port: u16, number: u32, flags: u8) -> Vec<u8> {
    let mut tcp = frames::ports(port, 80);
    tcp.resize(20, 0);
    tcp[4..8].copy_from_slice(&number.to_be_bytes());
    (tcp[12], tcp[13]) = (0x50, flags);
    tcp
}

/// Sends a packet of IPv4 to the router.
fn offer(wire: &Wire, packet: &[u8]) {
    let mut frame = frames::ethernet(&[], frames::IPV4, packet);
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0x78, 1]);
    wire.offer(&frame);
}

/// How many resets a host has sent.
fn resets(ns: &Ns) -> u64 {
    let text = ns.inside(|| std::fs::read_to_string("/proc/thread-self/net/snmp")).expect("counts of the kernel");
    let mut rows = text.lines().filter(|line| line.starts_with("Tcp:")).map(str::split_whitespace);
    let (names, values) = (rows.next().expect("names"), rows.next().expect("values"));
    let found = names.zip(values).find(|(name, _)| *name == "OutRsts").expect("a count of resets");
    found.1.parse().expect("a number")
}

/// A segment that neither is of a connection nor begins one gets the answer of a closed port.
pub fn stray_segments_begin_nothing(lab: &Lab) {
    let net = network(lab);
    let _echo = Echo::start(&net.server, 8000);
    lab.up(&net.router, "lan0", &lab.policy(&policy(json!([four()[0]]))), &[]);
    let (src, dst) = (CLIENT.parse().expect("an address"), LISTEN.parse().expect("an address"));
    let (wire, before) = (Wire::open(&net.client, "c0"), resets(&net.router));
    const STRAY: u64 = 5;
    for n in 0..STRAY {
        let ack = segment(2_000 + n as u16, 7, ACK);
        offer(&wire, &V4 { src, dst, ..V4::default() }.segment(&ack));
    }
    await_that("the router's own resets", LONG, || resets(&net.router) == before + STRAY);
    let forward = of(lab, &net, "keep");
    assert_eq!((forward.opened, forward.refused.get("unknown_connection")), (0, Some(&STRAY)), "{forward:?}");
    exchange(&net.client, at(LISTEN, 80), 10).expect("a connection that begins as it should");
    assert_eq!(of(lab, &net, "keep").opened, 1);
    lab.down(&net.router, "lan0");
}

/// Packets whose source cannot be where they come from begin no connection: nobody has it, it is the router's own, or (if `rp_filter` says so) the
/// routes have it elsewhere.
pub fn sources_are_where_the_routes_say(lab: &Lab) {
    let net = network(lab);
    let _echo = Echo::start(&net.server, 8000);
    let opened_from = |source: &str, count: usize| {
        let before = of(lab, &net, "keep").opened;
        let wire = Wire::open(&net.client, "c0");
        let (src, dst) = (source.parse().expect("an address"), LISTEN.parse().expect("an address"));
        for port in 0..count {
            offer(&wire, &V4 { src, dst, ..V4::default() }.segment(&segment(3_000 + port as u16, 1, SYN)));
        }
        std::thread::sleep(SOFTIRQ);
        of(lab, &net, "keep").opened - before
    };
    let elsewhere = "10.79.0.77";
    for (strict, from_elsewhere) in [("0", 3), ("1", 0), ("2", 3)] {
        net.router.sysctl("net/ipv4/conf/all/rp_filter", "0");
        net.router.sysctl("net/ipv4/conf/lan0/rp_filter", strict);
        lab.up(&net.router, "lan0", &lab.policy(&policy(json!([four()[0]]))), &[]);
        for (source, opened) in [
            ("10.78.0.77", 3),
            (elsewhere, from_elsewhere),
            ("192.0.2.1", 0),
            (INSIDE, 0),
            ("127.0.0.1", 0),
            ("224.0.0.9", 0),
        ] {
            assert_eq!(opened_from(source, 3), opened, "from {source} with rp_filter {strict}");
        }
        let forward = of(lab, &net, "keep");
        let refused = 15 - from_elsewhere;
        assert_eq!(forward.refused.get("source_not_routed"), Some(&refused), "{forward:?}");
        exchange(&net.client, at(LISTEN, 80), 10).expect("a client that is there");
        lab.down(&net.router, "lan0");
    }
}

/// More half-open connections than the table holds, from addresses that nobody has.
pub fn a_flood_harms_no_connection(lab: &Lab) {
    const FLOOD: u32 = 20_000;
    const TABLE: u64 = 4_096;
    let net = network(lab);
    let _echo = Echo::start(&net.server, 8000);
    let mut small = policy(four());
    small["connection_table"] = json!(TABLE);
    lab.up(&net.router, "lan0", &lab.policy(&small), &[]);
    net.router.ip(&format!("route add 10.64.0.0/16 via {CLIENT}"));
    let open = [Open::to(&net.client, at(LISTEN, 80)), Open::to(&net.client, at(LISTEN, 81))];
    let wire = Wire::open(&net.client, "c0");
    for n in 0..FLOOD {
        let src = Ipv4Addr::from(0x0a_40_00_00 + n);
        let syn = segment(1_024 + (n % 50_000) as u16, n, SYN);
        let packet = V4 { src, dst: LISTEN.parse().expect("an address"), proto: 6, ..V4::default() }.packet(&syn);
        offer(&wire, &packet);
    }
    let forward = of(lab, &net, "keep");
    eprintln!(
        "    {} of {FLOOD} were opened, {} are open, refused: {:?}",
        forward.opened, forward.open, forward.refused
    );
    assert!(forward.opened > u64::from(FLOOD) * 3 / 4, "the flood came: {forward:?}");
    assert_eq!(forward.refused.get("table_full"), None, "half-open connections give way: {forward:?}");
    assert!(forward.open <= TABLE, "the table is bounded: {forward:?}");
    for (address, port, _) in ENDS {
        let to = at(address, port);
        exchange(&net.client, to, 1_000).unwrap_or_else(|error| panic!("new connections find room, {to}: {error}"));
    }
    open.into_iter().for_each(Open::ends_well);
    lab.down(&net.router, "lan0");
}

/// Fragments without their first go nowhere, and are counted; those of packets to the host's own ports are the stack's.
pub fn later_fragments_follow(lab: &Lab) {
    let net = network(lab);
    let (_echo, _own) = (Echo::start(&net.server, 8000), Echo::start(&net.router, 7000));
    lab.up(&net.router, "lan0", &lab.policy(&policy(json!([four()[0]]))), &[]);
    let long = vec![7; 5_000];
    for port in [80, 7000] {
        let got = datagram(&net.client, at(LISTEN, port), &long).unwrap_or_else(|error| panic!("{port}: {error}"));
        assert!(got.ends_with(&long), "{port}");
    }
    let wire = Wire::open(&net.client, "c0");
    let (src, dst) = (CLIENT.parse().expect("an address"), LISTEN.parse().expect("an address"));
    for id in 0..10 {
        let packet = V4 { src, dst, id, proto: 17, fragment: 0x2000 | 185, ..V4::default() }.packet(&[0; 100]);
        offer(&wire, &packet);
    }
    // Frames of a raw socket are taken up a little later.
    let unknown = || of(lab, &net, "keep").refused.get("unknown_fragment").copied();
    await_that("the fragments to be counted", LONG, || unknown() == Some(10));
    let forward = of(lab, &net, "keep");
    // Port 0, which fragments are looked up by, is no port that anything is forwarded from.
    let packet = V4 { src, dst, proto: 17, ..V4::default() }.packet(&frames::ports(1_024, 0));
    offer(&wire, &packet);
    assert_eq!(of(lab, &net, "keep").opened, forward.opened, "port 0 is not forwarded");
    lab.down(&net.router, "lan0");
}
