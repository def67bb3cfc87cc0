//! The classes of handmade frames, on departure and on arrival.

use crate::command::await_that;
use crate::frames::{ARP, IPV4, IPV6, PPPOE, QINQ, V4, VLAN, Wire, ethernet, ports, pppoe, v6};
use crate::lab::Lab;
use crate::needs::Need;
use crate::net::{self, MAC_A, MAC_B, Ns, Pair};
use crate::policy::{port, with};
use crate::status::Status;
use crate::suite::Suite;
use crate::traffic::{self, Flow};
use serde_json::{Value, json};
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("classification")
        .both("departing_frames", &[], departing_frames)
        .both("rules_for_ports_alone", &[], rules_for_ports_alone)
        .any("arriving_frames", &[], arriving_frames)
        .both("a_vlan_device_on_top", &[Need::Vlan], a_vlan_device_on_top)
        .both("an_interface_without_ethernet", &[Need::Tun], an_interface_without_ethernet)
        .any("malformed_frames", &[], malformed_frames)
}

const URGENT: u8 = 0;
/// The class of packets that no rule matches.
pub const DEFAULT: u8 = 9;

/// Rules for every kind of frame that the tests send.
pub fn policy() -> Value {
    let class =
        |id: u8, priority: u8| json!({ "id": id, "name": format!("class {id}"), "priority": priority, "limit": 500 });
    json!({
        "scheduler": "strict_priority", "default_class": DEFAULT,
        "classes": [class(0, 0), class(1, 1), class(2, 2), class(3, 3), class(4, 4), class(5, 5), class(6, 6), class(7, 6),
            class(9, 7)],
        "rules": [
            { "name": "to", "priority": 10, "protocol": "udp", "dst_port_min": 3074, "dst_port_max": 3075, "class_id": 1 },
            { "name": "from", "priority": 11, "protocol": "udp", "src_port_min": 3074, "src_port_max": 3075, "class_id": 1 },
            { "name": "tcp", "priority": 12, "protocol": "tcp", "dst_port_min": 22, "class_id": 7 },
            { "name": "narrow", "priority": 20, "dst_ip": "198.51.100.64/26", "class_id": 2 },
            { "name": "wide", "priority": 21, "dst_ip": "198.51.100.0/24", "class_id": 3 },
            { "name": "source", "priority": 22, "src_ip": "203.0.113.7", "class_id": 2 },
            { "name": "v6", "priority": 23, "dst_ip": "2001:db8:5::/48", "class_id": 4 },
            { "name": "ef", "priority": 30, "dscp": "ef", "class_id": 5 },
            { "name": "vlan", "priority": 40, "vlan_id": 7, "class_id": 6 },
            { "name": "ping", "priority": 50, "protocol": "icmp", "class_id": 7 }
        ]
    })
}

fn udp(src: u16, dst: u16) -> Vec<u8> {
    ethernet(&[], IPV4, &V4::default().packet(&ports(src, dst)))
}

fn udp_in(packet: V4, dst: u16) -> Vec<u8> {
    ethernet(&[], IPV4, &packet.packet(&ports(9, dst)))
}

fn ip6(dst: &str, extensions: &[(u8, Vec<u8>)], proto: u8, payload: &[u8]) -> Vec<u8> {
    ethernet(&[], IPV6, &v6(dst.parse().expect("an address"), 0, extensions, proto, payload))
}

/// A frame: its name in messages, its bytes, and the class that [`policy`] gives it.
type Frame = (&'static str, Vec<u8>, u8);

/// An address that no rule matches.
const OTHER: &str = "2001:db8:6::1";

/// Every kind of frame. Later fragments follow their first, so the order counts.
fn frames() -> Vec<Frame> {
    let kinds = [
        ports_and_prefixes(),
        vlans(),
        control(),
        extension_headers(),
        ipv4_fragments(),
        encapsulated(),
        odd_headers(),
    ];
    kinds.concat()
}

/// Frames whose ports, addresses or DSCP the rules match, and their neighbours, which no rule matches.
fn ports_and_prefixes() -> Vec<Frame> {
    vec![
        ("no rule", udp(9, 9), DEFAULT),
        ("first port of a range", udp(9, 3074), 1),
        ("last port of a range", udp(9, 3075), 1),
        ("the port before a range", udp(9, 3073), DEFAULT),
        ("the port after a range", udp(9, 3076), DEFAULT),
        ("the port as source", udp(3075, 9), 1),
        ("the port in TCP, where the rule wants UDP", udp_in(V4 { proto: 6, ..V4::default() }, 3074), DEFAULT),
        ("a TCP port", udp_in(V4 { proto: 6, ..V4::default() }, 22), 7),
        ("that port in UDP", udp(9, 22), DEFAULT),
        (
            "the narrow prefix, whose rule goes first",
            udp_in(V4 { dst: [198, 51, 100, 70].into(), ..V4::default() }, 9),
            2,
        ),
        ("the wide prefix alone", udp_in(V4 { dst: [198, 51, 100, 7].into(), ..V4::default() }, 9), 3),
        (
            "a prefix and a port: the lower number",
            udp_in(V4 { dst: [198, 51, 100, 7].into(), ..V4::default() }, 3074),
            1,
        ),
        ("beside the prefix", udp_in(V4 { dst: [198, 51, 101, 7].into(), ..V4::default() }, 9), DEFAULT),
        ("an address as source", udp_in(V4 { src: [203, 0, 113, 7].into(), ..V4::default() }, 9), 2),
        ("that address as destination", udp_in(V4 { dst: [203, 0, 113, 7].into(), ..V4::default() }, 9), DEFAULT),
        ("a prefix of IPv6", ip6("2001:db8:5:1::1", &[], 17, &ports(9, 9)), 4),
        ("beside it", ip6(OTHER, &[], 17, &ports(9, 9)), DEFAULT),
        ("a port over IPv6", ip6(OTHER, &[], 17, &ports(9, 3074)), 1),
        ("a DSCP", udp_in(V4 { dscp: 46, ..V4::default() }, 9), 5),
        ("the next DSCP", udp_in(V4 { dscp: 47, ..V4::default() }, 9), DEFAULT),
        (
            "a DSCP over IPv6",
            ethernet(&[], IPV6, &v6(OTHER.parse().expect("an address"), 46, &[], 17, &ports(9, 9))),
            5,
        ),
    ]
}

fn vlans() -> Vec<Frame> {
    let tagged = |tags: &[(u16, u16)], dst: u16| ethernet(tags, IPV4, &V4::default().packet(&ports(9, dst)));
    vec![
        ("a VLAN", tagged(&[(VLAN, 7)], 9), 6),
        ("a VLAN with a priority of its own", tagged(&[(VLAN, 0xa007)], 9), 6),
        ("another VLAN", tagged(&[(VLAN, 8)], 9), DEFAULT),
        ("a port inside another VLAN", tagged(&[(VLAN, 8)], 3074), 1),
        ("QinQ: the outer tag counts", tagged(&[(QINQ, 7), (VLAN, 8)], 9), 6),
        ("QinQ: the inner does not", tagged(&[(QINQ, 8), (VLAN, 7)], 9), DEFAULT),
        ("a port inside QinQ", tagged(&[(QINQ, 8), (VLAN, 9)], 3075), 1),
    ]
}

/// ICMP, ARP and DHCP.
fn control() -> Vec<Frame> {
    let icmp6 =
        |kind: u8| ip6(OTHER, &[], 58, &[kind, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    vec![
        ("ICMP", ethernet(&[], IPV4, &V4 { proto: 1, ..V4::default() }.packet(&[8, 0, 0, 0, 0, 1, 0, 1])), 7),
        ("ICMPv6, echo", icmp6(128), 7),
        (
            "ARP",
            ethernet(&[], ARP, &[0, 1, 8, 0, 6, 4, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            URGENT,
        ),
        ("DHCP, client", udp(68, 67), URGENT),
        ("DHCP, server", udp(67, 68), URGENT),
        ("DHCP, from any other port", udp(9, 67), DEFAULT),
        ("DHCPv6, client", ip6("fe80::1", &[], 17, &ports(546, 547)), URGENT),
        ("DHCPv6, to an address beyond the link", ip6(OTHER, &[], 17, &ports(546, 547)), DEFAULT),
    ]
}

/// Extension headers of IPv6, that of fragments among them.
fn extension_headers() -> Vec<Frame> {
    let hop = (0u8, vec![0u8, 0, 5, 2, 0, 0, 1, 0]); // router alert
    let destination = (60u8, vec![0u8, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let first = (44u8, vec![0u8, 0, 0, 1, 0, 0, 0, 9]);
    let later = |id: u8| (44u8, vec![0u8, 0, 0, 9, 0, 0, 0, id]);
    vec![
        ("a hop-by-hop header", ip6(OTHER, std::slice::from_ref(&hop), 17, &ports(9, 3074)), 1),
        ("three extension headers", ip6(OTHER, &[hop, destination, first.clone()], 17, &ports(9, 3074)), 1),
        ("IPv6, first fragment", ip6(OTHER, &[first], 17, &ports(9, 3074)), 1),
        ("IPv6, later fragment: as the first", ip6(OTHER, &[later(9)], 17, &ports(9, 9)), 1),
        ("IPv6, later fragment of an unknown packet", ip6(OTHER, &[later(8)], 17, &ports(9, 3074)), DEFAULT),
    ]
}

fn ipv4_fragments() -> Vec<Frame> {
    vec![
        ("IPv4, first fragment", udp_in(V4 { fragment: 0x2000, ..V4::default() }, 3074), 1),
        ("IPv4, later fragment: as the first", udp_in(V4 { fragment: 0x2010, ..V4::default() }, 9), 1),
        ("IPv4, last fragment", udp_in(V4 { fragment: 0x0010, ..V4::default() }, 9), 1),
        (
            "IPv4, last fragment of an unknown packet",
            udp_in(V4 { id: 1, fragment: 0x0010, ..V4::default() }, 3074),
            DEFAULT,
        ),
        (
            "IPv4, later fragment of an unknown packet, by its prefix",
            udp_in(V4 { fragment: 0x0010, dst: [198, 51, 100, 7].into(), ..V4::default() }, 3074),
            3,
        ),
    ]
}

/// Packets in PPPoE and in tunnels.
fn encapsulated() -> Vec<Frame> {
    let tunnel = |proto: u8, inner: &[u8]| ethernet(&[], IPV4, &V4 { proto, ..V4::default() }.packet(inner));
    let inner6 = |dst: u16| v6(OTHER.parse().expect("an address"), 0, &[], 17, &ports(9, dst));
    let inner_to = |dst: [u8; 4]| V4 { dst: dst.into(), ..V4::default() }.packet(&ports(9, 9));
    vec![
        ("IPv4 in PPPoE", ethernet(&[], PPPOE, &pppoe(0x21, &V4::default().packet(&ports(9, 3074)))), 1),
        (
            "IPv4 in PPPoE in a VLAN",
            ethernet(&[(VLAN, 8)], PPPOE, &pppoe(0x21, &V4::default().packet(&ports(9, 3075)))),
            1,
        ),
        ("IPv6 in PPPoE", ethernet(&[], PPPOE, &pppoe(0x57, &inner6(3074))), 1),
        ("PPPoE without IP", ethernet(&[], PPPOE, &pppoe(0xc021, &[9; 40])), DEFAULT),
        ("IPv4 in IPv4", tunnel(4, &V4::default().packet(&ports(9, 3074))), 1),
        ("IPv6 in IPv4", tunnel(41, &inner6(3074)), 1),
        ("IPv4 in IPv6", ip6(OTHER, &[], 4, &V4::default().packet(&ports(9, 3074))), 1),
        ("the prefix of what a tunnel carries", tunnel(4, &inner_to([198, 51, 100, 70])), 2),
        ("GRE: known by its outer header", tunnel(47, &V4::default().packet(&ports(9, 3074))), DEFAULT),
    ]
}

/// Options of IPv4, and an EtherType without IP.
fn odd_headers() -> Vec<Frame> {
    let options = |bytes: &[u8]| V4 { options: bytes.to_vec(), ..V4::default() };
    vec![
        ("IPv4 with options", udp_in(options(&[7, 7, 4, 0, 0, 0, 0, 0]), 3074), 1),
        ("IPv4 with all the options there can be", udp_in(options(&[1; 40]), 3074), 1),
        ("neither IP nor ARP", ethernet(&[], 0x88b5, &[0; 46]), DEFAULT),
    ]
}

/// Packets of each class in a direction so far, by id.
fn got(status: &Status, direction: &str) -> Vec<(u8, u64)> {
    let classes = &status.direction(direction).classes;
    classes.iter().map(|class| (class.id, class.sent.pkts + class.dropped.pkts + class.backlog.pkts)).collect()
}

/// Sends each frame by `wire`; only the expected class must count it.
fn check_frames(lab: &Lab, managed: &Ns, wire: &Wire, direction: &str) {
    const COPIES: u64 = 3;
    let mut before = got(&lab.status(managed, "a0"), direction);
    let mut wrong = Vec::new();
    for (name, frame, class) in frames() {
        (0..COPIES).for_each(|_| wire.send(&frame));
        let after = got(&lab.status(managed, "a0"), direction);
        let more: Vec<(u8, u64)> =
            after.iter().zip(&before).map(|(now, then)| (now.0, now.1 - then.1)).filter(|(_, n)| *n > 0).collect();
        if more != [(class, COPIES)] {
            wrong.push(format!("{name}: class {class} is due, got {more:?}"));
        }
        before = after;
    }
    assert!(wrong.is_empty(), "{direction}:\n  {}", wrong.join("\n  "));
    let status = lab.status(managed, "a0");
    let due = |class: u8| frames().iter().filter(|frame| frame.2 == class).count() as u64 * COPIES;
    assert_eq!(status.rule("narrow").pkts, 2 * COPIES, "rule counters");
    assert_eq!(status.rule("source").pkts, COPIES);
    assert_eq!(status.rule("to").pkts + status.rule("from").pkts, due(1));
    assert_eq!(status.rule("ping").pkts, 2 * COPIES);
    assert_eq!(status.rule("ARP").pkts, COPIES);
    assert_eq!(status.unmatched.pkts, due(DEFAULT), "what matched no rule");
    let parsed = &status.direction(direction).parsed;
    assert_eq!(parsed["fragment"].pkts, 6 * COPIES, "{parsed:?}");
    assert_eq!(parsed["arp"].pkts, COPIES, "{parsed:?}");
    assert_eq!(parsed.values().map(|count| count.pkts).sum::<u64>(), frames().len() as u64 * COPIES, "{parsed:?}");
}

fn departing_frames(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&policy()), &["--rate", "100mbit"]);
    check_frames(lab, &pair.a, &Wire::open(&pair.a, "a0"), "egress");
    neighbour_discovery(lab, &pair);
    lab.down(&pair.a, "a0");
}

/// A plain packet's class is found without the parser if each rule's only conditions are the protocol and one port: at the queue and at the
/// splitter's hook, from the flow table, and with more rules than a word of 64 bits holds. The counters equal those under one more rule,
/// which asks for another field and matches no packet.
fn rules_for_ports_alone(lab: &Lab) {
    let pair = lab.pair();
    let counts = |split: &str, flows: u32, others: &[Value]| -> Value {
        let mut policy = with(policy(), "link", json!({ "split_gso": split }));
        policy["flow_table"] = json!(flows);
        let rules = policy["rules"].as_array_mut().expect("rules");
        rules.retain(|rule| ["to", "from", "tcp", "ping"].contains(&rule["name"].as_str().expect("a name")));
        rules.extend_from_slice(others);
        lab.up(&pair.a, "a0", &lab.policy(&policy), &["--rate", "100mbit"]);
        let wire = Wire::open(&pair.a, "a0");
        let dhcp = [("DHCP", udp(68, 67), 0), ("half of DHCP", udp(67, 9), 0)];
        for (_, frame, _) in frames().into_iter().chain(dhcp) {
            (0..3).for_each(|_| wire.send(&frame));
        }
        let status = lab.status(&pair.a, "a0");
        let rules = status.rules.iter().filter(|rule| !rule.name.starts_with("none"));
        let rules: Vec<(&str, u64)> = rules.map(|rule| (rule.name.as_str(), rule.matched.pkts)).collect();
        let parsed: Vec<(&str, u64)> =
            status.direction("egress").parsed.iter().map(|(kind, count)| (kind.as_str(), count.pkts)).collect();
        let counts = json!([got(&status, "egress"), rules, status.unmatched.pkts, parsed]);
        lab.down(&pair.a, "a0");
        counts
    };
    let another_field = json!({ "name": "none", "priority": 60, "dscp": 3, "class_id": 2 });
    let of_unused_ports: Vec<Value> = (0..100)
        .map(|n| {
            let port = if n % 2 == 0 { "src_port_min" } else { "dst_port_min" };
            let priority = if n < 9 { n } else { 60 + n };
            json!({ "name": format!("none {n}"), "priority": priority, "protocol": "udp", port: 30_000 + n, "class_id": 2 })
        })
        .collect();
    let parsed = counts("off", 0, &[another_field]);
    for (split, flows, others) in [
        ("off", 0, &[][..]),
        ("off", 0, &of_unused_ports[..]),
        ("off", 1024, &[]),
        ("on", 0, &[]),
        ("on", 1024, &of_unused_ports[..]),
    ] {
        let counted = counts(split, flows, others);
        assert_eq!(counted, parsed, "split {split}, {flows} flows, {} more rules", others.len());
    }
}

/// Neighbour discovery is urgent unless a rule matches it. Here one does: "ping" includes ICMPv6, of which discovery is a part.
fn neighbour_discovery(lab: &Lab, pair: &Pair) {
    let mut routed =
        ip6("2001:db8:6::1", &[], 58, &[135, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let mut solicitation = routed.clone();
    (solicitation[HOP_LIMIT], routed[HOP_LIMIT]) = (255, 254);
    let mut without = policy();
    without["rules"].as_array_mut().expect("rules").retain(|rule| rule["name"] != "ping");
    lab.sluice(&pair.a, &["apply", "a0", &lab.policy(&without)]).ok();
    let before = lab.status(&pair.a, "a0").egress(URGENT).sent.pkts;
    Wire::open(&pair.a, "a0").send(&solicitation);
    assert_eq!(lab.status(&pair.a, "a0").egress(URGENT).sent.pkts, before + 1, "neighbour solicitation");
    // A solicitation that a router has forwarded does not count.
    Wire::open(&pair.a, "a0").send(&routed);
    assert_eq!(lab.status(&pair.a, "a0").egress(URGENT).sent.pkts, before + 1, "a solicitation from elsewhere");
    // A flood of solicitations is policed: a burst of 64 KiB passes, and little more.
    let drops = || lab.status(&pair.a, "a0").egress(URGENT).drops.get("control_limited").copied().unwrap_or(0);
    let wire = Wire::open(&pair.a, "a0");
    for _ in 0..2_000 {
        wire.offer(&solicitation);
    }
    await_that("a flood of neighbour discovery is policed", Duration::from_secs(10), || drops() > 200);
}

/// Offset of the hop limit in an untagged IPv6 frame.
const HOP_LIMIT: usize = 14 + 7;

fn arriving_frames(lab: &Lab) {
    let pair = lab.pair();
    arriving(lab, &pair, &["--rate", "100mbit"]);
    lab.down(&pair.a, "a0");
}

/// The same frames from the other end of the wire, with a0 brought up with these options.
pub fn arriving(lab: &Lab, pair: &Pair, options: &[&str]) {
    lab.up(&pair.a, "a0", &lab.policy(&policy()), options);
    check_frames(lab, &pair.a, &Wire::open(&pair.b, "b0"), "ingress");
}

/// VLAN ids of a wire, and the class of each.
pub const VLANS: [(u16, u8); 2] = [(7, 6), (8, DEFAULT)];

/// Puts VLAN devices on both ends of the wire: 10.80.ID.1 and 10.80.ID.2. Their packets have the VLAN tag in the skb's metadata, as
/// from a card that strips tags.
pub fn add_vlan_devices(pair: &Pair) {
    for (id, _) in VLANS {
        for (ns, dev, own, other, mac) in [(&pair.a, "a0", 1, 2, MAC_B), (&pair.b, "b0", 2, 1, MAC_A)] {
            ns.ip(&format!("link add link {dev} name v{id} type vlan id {id}"));
            ns.ip(&format!("addr add 10.80.{id}.{own}/24 dev v{id}"));
            ns.ip(&format!("link set v{id} up"));
            ns.ip(&format!("neigh replace 10.80.{id}.{other} dev v{id} lladdr {mac} nud permanent"));
        }
    }
}

fn a_vlan_device_on_top(lab: &Lab) {
    let pair = lab.pair();
    add_vlan_devices(&pair);
    lab.up(&pair.a, "a0", &lab.policy(&policy()), &["--rate", "20mbit"]);
    for (id, class) in VLANS {
        let before = lab.status(&pair.a, "a0").egress(class).sent.pkts;
        let flow = [Flow::new(9, &[200], 400_000)];
        let outcomes =
            traffic::run(&pair.a, &pair.b, &format!("10.80.{id}.2"), &flow, Duration::from_millis(100), || 0);
        let after = lab.status(&pair.a, "a0").egress(class).sent.pkts;
        assert_eq!(after - before, outcomes[0].sent, "VLAN {id} is class {class}");
    }
    lab.down(&pair.a, "a0");
}

/// A tun device: packets start at the network layer.
fn an_interface_without_ethernet(lab: &Lab) {
    let ns = lab.ns("tun");
    let tun = ns.inside(|| net::open_tun("t0", libc::IFF_TUN));
    ns.ip("addr add 10.81.0.1/24 dev t0");
    ns.ip("link set t0 up");
    let before = ns.state("t0");
    lab.up(&ns, "t0", &lab.policy(&policy()), &["--rate", "20mbit"]);
    for (to, class) in [(3074, 1), (9, DEFAULT)] {
        let socket = ns.inside(|| traffic::sending_socket(&Flow::new(to, &[200], 1), "10.81.0.2"));
        let earlier = lab.status(&ns, "t0").egress(class).sent;
        (0..5).for_each(|_| assert_eq!(socket.send(&[7; 100]).ok(), Some(100)));
        let later = lab.status(&ns, "t0").egress(class).sent;
        assert_eq!(later.pkts - earlier.pkts, 5, "port {to} is class {class}");
        assert_eq!(later.bytes - earlier.bytes, 5 * 128, "no Ethernet header is counted");
    }
    lab.down(&ns, "t0");
    assert_eq!(ns.state("t0"), before);
    assert_eq!(lab.sluice(&ns, &["status", "t0"]).code, Some(2));
    drop(tun);
}

/// Packets with broken headers are counted by kind; they pass, or are dropped where the policy says so.
fn malformed_frames(lab: &Lab) {
    let pair = lab.pair();
    let bad_length = [&[0x42u8, 0, 0, 28][..], &[0; 24]].concat();
    let bad_version = [&[0x55u8, 0, 0, 0][..], &[0; 60]].concat();
    let mut short = udp(9, 9);
    short.truncate(24);
    let frames = [
        ("bad_ipv4", ethernet(&[], IPV4, &bad_length)),
        ("bad_ipv6", ethernet(&[], IPV6, &bad_version)),
        ("truncated_l3", short),
    ];
    for (behaviour, dropped) in [("pass", 0), ("drop", 3)] {
        let policy = lab.policy(&crate::policy::with(policy(), "malformed", json!(behaviour)));
        lab.up(&pair.a, "a0", &policy, &["--rate", "20mbit"]);
        let wire = Wire::open(&pair.b, "b0");
        frames.iter().for_each(|(_, frame)| wire.send(frame));
        wire.send(&udp(9, port(0)));
        let status = lab.status(&pair.a, "a0");
        let ingress = status.direction("ingress");
        for (kind, _) in &frames {
            assert_eq!(ingress.parsed.get(*kind).map(|count| count.pkts), Some(1), "{kind}: {:?}", ingress.parsed);
        }
        let drops: u64 = ingress.classes.iter().filter_map(|class| class.drops.get("malformed")).sum();
        assert_eq!(drops, dropped, "malformed: {behaviour}");
        // Departing packets pass the splitter's hook and then the queue, and each counts once.
        let wire = Wire::open(&pair.a, "a0");
        for (_, frame) in &frames {
            // A queue that drops a frame says so to its sender.
            if dropped == 0 { wire.send(frame) } else { wire.offer(frame) }
        }
        let status = lab.status(&pair.a, "a0");
        let egress = status.direction("egress");
        for (kind, _) in &frames {
            assert_eq!(
                egress.parsed.get(*kind).map(|count| count.pkts),
                Some(1),
                "departing {kind}: {:?}",
                egress.parsed
            );
        }
        let drops: u64 = egress.classes.iter().filter_map(|class| class.drops.get("malformed")).sum();
        assert_eq!(drops, dropped, "departing, malformed: {behaviour}");
        lab.down(&pair.a, "a0");
    }
}
