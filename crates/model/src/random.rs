//! Random policies, and random packets that meet them: values come from small pools.

use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use sluice_policy::{
    Class, ClassId, IcmpType, IpNet, MAX_CLASSES, Policy, Protocol, Resolved, Rule, TcpFlags, Term, Terms,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The interfaces of an imaginary machine. Test runs of a program come from number 1.
pub fn interfaces() -> Vec<(String, u32)> {
    vec![("lo".to_owned(), 1), ("lan0".to_owned(), 2), ("wan0".to_owned(), 70_000)]
}

const DSCPS: [u8; 5] = [0, 8, 10, 46, 63];
const VLANS: [u16; 4] = [1, 7, 8, 4094];
const MARKS: [u32; 4] = [0, 1, 0x10, u32::MAX];
const PORTS: [u16; 12] = [0, 1, 22, 53, 67, 68, 443, 546, 3074, 3075, 40_000, 65_535];
const LENGTHS: [u16; 7] = [0, 20, 48, 100, 576, 1500, 65_535];
const ICMP_TYPES: [u8; 7] = [0, 3, 8, 11, 128, 129, 135];

fn maybe<T>(rng: &mut SmallRng, chance: f64, value: impl FnOnce(&mut SmallRng) -> T) -> Option<T> {
    if rng.random_bool(chance) { Some(value(rng)) } else { None }
}

fn one_of<T: Copy>(rng: &mut SmallRng, values: &[T]) -> T {
    *values.choose(rng).expect("not empty")
}

fn ipv4(rng: &mut SmallRng) -> Ipv4Addr {
    let c = one_of(rng, &[0, 1, 2, 128, 255]);
    let d = one_of(rng, &[0, 1, 2, 127, 128, 254, 255]);
    match rng.random_range(0..10) {
        0 => one_of(rng, &[Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST, Ipv4Addr::LOCALHOST]),
        1 => Ipv4Addr::from(rng.random::<u32>()),
        _ => Ipv4Addr::new(one_of(rng, &[10, 192, 198]), one_of(rng, &[0, 51, 168]), c, d),
    }
}

fn ipv6(rng: &mut SmallRng) -> Ipv6Addr {
    let last = one_of(rng, &[0, 1, 2, 0xffff]);
    let third = one_of(rng, &[0, 1, 0x8000, 0xffff]);
    match rng.random_range(0..10) {
        0 => one_of(rng, &[Ipv6Addr::UNSPECIFIED, Ipv6Addr::from(u128::MAX), Ipv6Addr::LOCALHOST]),
        1 => Ipv6Addr::from(rng.random::<u128>()),
        _ => Ipv6Addr::new(one_of(rng, &[0x2001, 0xfd00]), 0xdb8, third, 0, 0, 0, 0, last),
    }
}

fn net(rng: &mut SmallRng) -> IpNet {
    let address = if rng.random_bool(0.6) { IpAddr::V4(ipv4(rng)) } else { IpAddr::V6(ipv6(rng)) };
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = if rng.random_bool(0.5) { most - rng.random_range(0..3) } else { rng.random_range(0..=most) };
    IpNet::new(address, bits).expect("a length that fits").trunc()
}

fn range(rng: &mut SmallRng, values: &[u16]) -> (u16, u16) {
    let low = one_of(rng, values);
    (low, low.saturating_add(one_of(rng, &[0, 0, 1, 100, 65_535])))
}

fn terms<T>(rng: &mut SmallRng, chance: f64, sets: &[&str], mut value: impl FnMut(&mut SmallRng) -> T) -> Terms<T> {
    if !rng.random_bool(chance) {
        return Vec::new();
    }
    let count = one_of(rng, &[1, 1, 1, 2, 5]);
    (0..count)
        .map(|_| if rng.random_bool(0.15) { Term::In(one_of(rng, sets).to_owned()) } else { Term::Is(value(rng)) })
        .collect()
}

fn rule(rng: &mut SmallRng, priority: u32, classes: u8, rare: f64) -> Rule {
    let protocol = match rng.random_range(0..10) {
        0..4 => Protocol::Any,
        4 | 5 => Protocol::Udp,
        6 => Protocol::Tcp,
        7 => Protocol::Icmp,
        8 => Protocol::Number(58),
        _ => Protocol::from_number(one_of(rng, &[1, 4, 41, 47, 132, 255])),
    };
    let address = 0.35;
    let port = if protocol.can_have_ports() { 0.3 } else { 0.0 };
    Rule {
        src: terms(rng, address, &["lan", "all6"], net),
        dst: terms(rng, address, &["lan", "all6"], net),
        src_ports: terms(rng, port, &["web"], |rng| range(rng, &PORTS)),
        dst_ports: terms(rng, port, &["web"], |rng| range(rng, &PORTS)),
        protocol,
        dscp: maybe(rng, 0.1, |rng| one_of(rng, &DSCPS)),
        // A policy that asks for a tag is not decided at XDP.
        vlan: maybe(rng, if rare > 0.0 { 0.1 } else { 0.0 }, |rng| one_of(rng, &VLANS)),
        pcp: maybe(rng, rare, |rng| rng.random_range(0..8)),
        icmp: maybe(rng, rare, |rng| {
            let (v4, v6) = (one_of(rng, &ICMP_TYPES), one_of(rng, &ICMP_TYPES));
            IcmpType { v4: Some(v4).filter(|v4| v4 % 3 != 0), v6: Some(v6) }
        }),
        tcp_flags: maybe(rng, rare, |rng| {
            let set = one_of(rng, &[2, 16, 18, 0]);
            TcpFlags { set, clear: one_of(rng, &[0, 16, 4]) & !set }
        }),
        length: maybe(rng, rare, |rng| range(rng, &LENGTHS)),
        in_interface: maybe(rng, rare, |rng| interfaces().choose(rng).expect("some").0.clone()),
        mark: maybe(rng, rare, |rng| one_of(rng, &MARKS)),
        ..Rule::new(priority, ClassId(rng.random_range(0..classes)))
    }
}

/// The parameters of a random policy.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The fewest and the most rules.
    pub rules: (u32, u32),
    /// Probability that a rule asks for a field that is not in the flow key.
    pub rare: f64,
}

/// A random policy with these parameters.
pub fn policy(rng: &mut SmallRng, kind: Kind) -> Resolved {
    let classes = rng.random_range(2..=MAX_CLASSES as u8);
    let text = r#"{ "scheduler": "strict_priority", "classes": [ { "id": 0, "priority": 0 } ] }"#;
    let mut policy: Policy = sluice_policy::parse(&sluice_policy::Source::new("random", text)).expect("valid");
    let class = |id| Class { priority: id, ..Class::new(ClassId(id)) };
    policy.classes = (0..classes).map(class).collect();
    policy.default_class = Some(ClassId(rng.random_range(0..classes)));
    policy.address_sets.insert("lan".to_owned(), (0..rng.random_range(1..20)).map(|_| net(rng)).collect());
    policy.address_sets.insert("all6".to_owned(), vec!["::/0".parse().expect("a prefix")]);
    policy.port_sets.insert("web".to_owned(), vec![(80, 80), (443, 443), (8000, 8999)]);
    let count = rng.random_range(kind.rules.0..=kind.rules.1);
    policy.rules = (0..count).map(|n| rule(rng, n, classes, kind.rare)).collect();
    sluice_policy::resolve(&policy, &sluice_policy::Context::default()).expect("resolves")
}

/// A packet: built, then often broken.
pub fn frame(rng: &mut SmallRng) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    for _ in 0..one_of(rng, &[0, 0, 0, 0, 1, 1, 2, 3]) {
        frame.extend(one_of(rng, &[0x8100u16, 0x88a8, 0x9100]).to_be_bytes());
        let tag = one_of(rng, &VLANS) | u16::from(rng.random_range(0..8u8)) << 13;
        frame.extend(tag.to_be_bytes());
    }
    let version = one_of(rng, &[4, 4, 4, 6, 6]);
    let carried = network(rng, version, 0);
    match rng.random_range(0..20) {
        0 => {
            let protocol = one_of(rng, &[if version == 4 { 0x21u16 } else { 0x57 }, 0xc021]);
            frame.extend([0x88, 0x64, 0x11, 0, 0, 7, 0, 9]);
            frame.extend(protocol.to_be_bytes());
            frame.extend(carried);
        }
        1 => {
            let any = rng.random();
            frame.extend(one_of(rng, &[0x0806u16, 0x88cc, 0x8847, any]).to_be_bytes());
            frame.extend(carried);
        }
        _ => {
            frame.extend(if version == 4 { [0x08, 0x00] } else { [0x86, 0xdd] });
            frame.extend(carried);
        }
    }
    if rng.random_bool(0.1) {
        let place = rng.random_range(12..frame.len());
        frame[place] = rng.random();
    }
    if rng.random_bool(0.1) {
        frame.truncate(rng.random_range(14..=frame.len()));
    }
    frame
}

/// A variant of an earlier packet: another of its flow, or a fragment of it, with a few other bytes.
pub fn akin(rng: &mut SmallRng, earlier: &[u8]) -> Vec<u8> {
    let mut frame = earlier.to_vec();
    let plain4 = frame.len() >= 34 && frame[12..15] == [0x08, 0x00, 0x45];
    match rng.random_range(0..5) {
        0 | 1 if plain4 => {
            let place = one_of(rng, &[0x2000u16, 0x2010, 0x0010, 0]);
            frame[20..22].copy_from_slice(&place.to_be_bytes());
        }
        2 if plain4 => frame[15] = one_of(rng, &DSCPS) << 2,
        3 if plain4 => frame[16..18].copy_from_slice(&one_of(rng, &LENGTHS).to_be_bytes()),
        _ => {}
    }
    frame
}

fn network(rng: &mut SmallRng, version: u8, depth: u32) -> Vec<u8> {
    let mut proto = one_of(rng, &[6, 6, 17, 17, 17, 1, 58, 132, 33, 47, 50]);
    let mut payload = None;
    if depth < 3 && rng.random_bool(0.08) {
        let inner = one_of(rng, &[4, 6]);
        proto = if inner == 4 { 4 } else { 41 };
        payload = Some(network(rng, inner, depth + 1));
    }
    let payload = payload.unwrap_or_else(|| transport(rng, proto));
    if version == 4 { packet4(rng, proto, &payload) } else { packet6(rng, proto, &payload) }
}

fn transport(rng: &mut SmallRng, proto: u8) -> Vec<u8> {
    if proto == 1 || proto == 58 {
        return vec![one_of(rng, &ICMP_TYPES), 0, 0, 0, 0, 0, 0, 0];
    }
    let mut bytes = one_of(rng, &PORTS).to_be_bytes().to_vec();
    bytes.extend(one_of(rng, &PORTS).to_be_bytes());
    bytes.extend([0; 8]);
    let any = rng.random();
    bytes.extend([0x50, one_of(rng, &[2, 16, 18, 24, 4, any])]);
    bytes.extend(vec![0; one_of(rng, &[0, 6, 40, 300])]);
    bytes
}

fn packet4(rng: &mut SmallRng, proto: u8, payload: &[u8]) -> Vec<u8> {
    let words = one_of(rng, &[5, 5, 5, 5, 6, 15]);
    let total = if rng.random_bool(0.8) { words * 4 + payload.len() as u16 } else { one_of(rng, &LENGTHS) };
    let place = one_of(rng, &[0, 0, 0, 0, 0x4000, 0x4000, 0x2000, 0x2010, 0x0010, 0x1fff]);
    let mut p = vec![0x40 | words as u8, one_of(rng, &DSCPS) << 2 | rng.random_range(0..4)];
    p.extend(total.to_be_bytes());
    p.extend([0, rng.random_range(0..4)]);
    p.extend(u16::to_be_bytes(place));
    p.extend([64, proto, 0, 0]);
    p.extend(ipv4(rng).octets());
    p.extend(ipv4(rng).octets());
    p.resize(usize::from(words) * 4, 1);
    p.extend(payload);
    p
}

fn packet6(rng: &mut SmallRng, proto: u8, payload: &[u8]) -> Vec<u8> {
    let mut extensions: Vec<(u8, Vec<u8>)> = Vec::new();
    for _ in 0..one_of(rng, &[0, 0, 0, 0, 1, 1, 2, 6, 7, 8]) {
        let kind = one_of(rng, &[0, 43, 44, 51, 60, 135]);
        let mut bytes = vec![0, 0, 0, 0, 0, 0, 0, rng.random_range(0..4)];
        match kind {
            44 => bytes[2..4].copy_from_slice(&one_of(rng, &[0u16, 1, 8, 9, 0xfff8]).to_be_bytes()),
            51 => bytes[1] = 0,
            _ if rng.random_bool(0.2) => {
                bytes[1] = 1;
                bytes.extend([0; 8]);
            }
            _ => {}
        }
        extensions.push((kind, bytes));
    }
    let dscp = one_of(rng, &DSCPS);
    let length: usize = extensions.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() + payload.len();
    let mut p = vec![0x60 | dscp >> 2, dscp << 6, 0, 0];
    let length = if rng.random_bool(0.9) { length as u16 } else { one_of(rng, &LENGTHS) };
    p.extend(length.to_be_bytes());
    p.push(extensions.first().map_or(proto, |(kind, _)| *kind));
    p.push(one_of(rng, &[64, 255]));
    p.extend(ipv6(rng).octets());
    p.extend(ipv6(rng).octets());
    let mut following: Vec<u8> = extensions.iter().skip(1).map(|(kind, _)| *kind).collect();
    following.push(proto);
    for ((_, bytes), next) in extensions.iter().zip(following) {
        p.push(next);
        p.extend(&bytes[1..]);
    }
    p.extend(payload);
    p
}
