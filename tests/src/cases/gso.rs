//! Super-packets at a router: split, they hold the link for the time of a frame; whole, for that of many.

use crate::command::await_that;
use crate::frames::{IPV4, V4, ethernet, ports};
use crate::iperf;
use crate::lab::Lab;
use crate::needs::{Need, is_icount};
use crate::net::{self, Ns, Routed, SERVER};
use crate::policy::{port, three, with};
use crate::suite::Suite;
use crate::traffic::{self, Flow, Outcome};
use nix::sys::socket::{setsockopt, sockopt};
use serde_json::json;
use std::io::Write;
use std::net::UdpSocket;
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("gso")
        .both("super_packets_are_split", &[Need::Ifb], super_packets_are_split)
        .both("a_split_flow_keeps_its_order", &[Need::Ifb], a_split_flow_keeps_its_order)
        .any("segments_are_counted_by_length", &[Need::Tun], segments_are_counted_by_length)
}

/// A frame of 1514 bytes at 20 Mbit/s.
const FRAME_MS: f64 = 0.6056;

/// Bulk TCP through the router next to a thin stream in the most urgent class: the mean length of TCP's packets after the
/// router, a super-packet being one, and the outcome of the stream.
fn bulk_and_game(lab: &Lab, split: &str) -> (f64, Outcome) {
    let net = lab.routed();
    let policy = with(three(), "link", json!({ "split_gso": split }));
    lab.up(&net.router, "wan0", &lab.policy(&policy), &["--rate", "20mbit"]);
    assert_eq!(lab.status(&net.router, "wan0").split, split == "on");
    let mut server = iperf::serve(&net.server);
    let client = iperf::start(&net.client, &format!("-c {SERVER} -C cubic -t 3 -P 2"));
    let bytes = || net.router.root("wan0").expect("a root qdisc").bytes;
    let start = bytes();
    await_that("TCP is under way", Duration::from_secs(20), || bytes() > start + 1_500_000);
    let before = arrived(&net);
    let flows = [Flow::new(port(0), &[114], 200_000)];
    let game = traffic::run(&net.client, &net.server, SERVER, &flows, Duration::from_millis(1500), || 0).remove(0);
    let after = arrived(&net);
    client.finish().ok();
    server.kill();
    lab.down(&net.router, "wan0");
    let (packets, bytes) = (after.0 - before.0 - game.sent, after.1 - before.1 - game.sent * 114);
    let average = bytes as f64 / packets as f64;
    eprintln!(
        "    split {split}: average packet {average:.0} bytes; game p50 {:.3}, p99 {:.3}, max {:.3} ms, {} of {} lost",
        game.delay_ms(0.5),
        game.delay_ms(0.99),
        game.delay_ms(1.0),
        game.lost(),
        game.sent
    );
    (average, game)
}

/// Packets and bytes that the server's interface has received. (The qdisc counts segments, and a veth behind an ifb bypasses
/// packet sockets.)
fn arrived(net: &Routed) -> (u64, u64) {
    let links: serde_json::Value = serde_json::from_str(&net.server.ip("-s -j link show dev s0")).expect("JSON of ip");
    let count = |what: &str| links[0]["stats64"]["rx"][what].as_u64().expect("a count");
    (count("packets"), count("bytes"))
}

fn super_packets_are_split(lab: &Lab) {
    let (average, split) = bulk_and_game(lab, "on");
    assert!((1400.0..=1514.0).contains(&average), "TCP fills its frames, and nothing is longer: {average}");
    assert_eq!(split.lost(), 0);
    // Without splitting the packets are longer, and so is the delay: the test can fail.
    let (average, whole) = bulk_and_game(lab, "off");
    assert!(average > 3000.0, "{average}");
    if is_icount() {
        let (split, whole) = (split.delay_ms(0.99), whole.delay_ms(0.99));
        assert!(split <= 1.5 * FRAME_MS, "p99 {split} ms, a frame takes {FRAME_MS} ms");
        assert!(whole > 2.0 * split, "p99 {whole} ms, split {split} ms");
    }
}

/// Super-packets of a UDP flow go through the splitter, and its short packets follow them: with a flow table, and without.
fn a_split_flow_keeps_its_order(lab: &Lab) {
    let net = lab.routed();
    for flows in [0, 1024] {
        let policy = with(with(three(), "link", json!({ "split_gso": "on" })), "flow_table", json!(flows));
        lab.up(&net.router, "wan0", &lab.policy(&policy), &["--rate", "20mbit"]);
        long_and_short_in_turn(&net);
        lab.down(&net.router, "wan0");
    }
}

/// Sends super-packets and short packets of one flow, which must arrive in order.
fn long_and_short_in_turn(net: &Routed) {
    const SEGMENT: usize = 1_000;
    /// The class has room for all their packets.
    const ROUNDS: u32 = 10;
    const EACH: u32 = 9;
    let receiver = net.server.inside(|| UdpSocket::bind((SERVER, port(1)))).expect("binding a receiver");
    setsockopt(&receiver, sockopt::RcvBufForce, &(16 << 20)).expect("SO_RCVBUFFORCE");
    receiver.set_read_timeout(Some(Duration::from_secs(10))).expect("a time-out");
    let sender = net.client.inside(|| UdpSocket::bind("0.0.0.0:0")).expect("binding a sender");
    sender.connect((SERVER, port(1))).expect("connecting");
    // The client keeps all packets until the router answers its ARP request. Then the router receives them all at once, and the
    // splitter, which runs after that queue, does not come between a long packet and the next short one.
    net.router.sysctl("net/ipv4/conf/lan0/arp_ignore", "8");
    net.client.sysctl("net/ipv4/neigh/c0/retrans_time_ms", "500");
    net.client.sysctl("net/ipv4/neigh/c0/unres_qlen_bytes", "1000000");
    net.client.ip("neigh del 10.78.0.1 dev c0");
    let mut numbers = (0..).map(|number: u32| [&number.to_be_bytes()[..], &[0; SEGMENT - 4]].concat());
    for _ in 0..ROUNDS {
        let long: Vec<u8> = numbers.by_ref().take(EACH as usize - 1).flatten().collect();
        setsockopt(&sender, sockopt::UdpGsoSegment, &(SEGMENT as i32)).expect("UDP_SEGMENT");
        sender.send(&long).expect("sending a super-packet");
        setsockopt(&sender, sockopt::UdpGsoSegment, &0).expect("UDP_SEGMENT");
        let short = numbers.next().expect("numbers do not end");
        sender.send(&short[..40]).expect("sending a packet");
    }
    net.router.sysctl("net/ipv4/conf/lan0/arp_ignore", "0");
    let mut buffer = [0; 2 * SEGMENT];
    for expected in 0..ROUNDS * EACH {
        let length = receiver.recv(&mut buffer).expect("a packet within the time");
        let number = u32::from_be_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]);
        assert_eq!(number, expected, "a packet of {length} bytes overtook others");
    }
}

/// A virtual machine gives the length of segments without their number: they are counted all the same.
fn segments_are_counted_by_length(lab: &Lab) {
    const SEGMENT: u16 = 1_000;
    let ns = lab.ns("tap");
    let mut tap = ns.inside(|| net::open_tun("t0", libc::IFF_TAP | libc::IFF_VNET_HDR));
    ns.ip("link set t0 up");
    let mut policy = three();
    policy["rules"][1]["protocol"] = json!("tcp");
    lab.up(&ns, "t0", &lab.policy(&policy), &["--rate", "20mbit"]);
    let tcp = [&ports(9, port(1))[..20], &[0; 4 * SEGMENT as usize + 500]].concat();
    let frame = ethernet(&[], IPV4, &V4 { proto: 6, ..V4::default() }.packet(&tcp));
    // struct virtio_net_hdr: its checksum is to be filled in, TCP over IPv4, length of headers and segments, where the checksum is.
    let mut header = vec![1, 1];
    for field in [54, SEGMENT, 34, 16] {
        header.extend(field.to_le_bytes());
    }
    tap.write_all(&[header, frame].concat()).expect("writing a super-packet");
    await_that("the super-packet has arrived", Duration::from_secs(5), || arrived_in(lab, &ns) > 0);
    assert_eq!(arrived_in(lab, &ns), 5, "four full segments and one of 500 bytes");
    lab.down(&ns, "t0");
}

fn arrived_in(lab: &Lab, ns: &Ns) -> u64 {
    lab.status(ns, "t0").direction("ingress").class(1).sent.pkts
}
