//! Rules, and packets for them.
//!
//! The mix is in the manner of ClassBench's access lists (Taylor and Turner, 2005): most rules are for TCP, then UDP; sources are hosts, networks
//! or anything, destinations mostly hosts and small networks; three in ten prefixes lie within an earlier one; source ports are
//! nearly always open, destination ports mostly one number. Each rule asks for at least an address and a port or a protocol.

use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use sluice_abi as abi;
use sluice_policy::{Class, ClassId, IpNet, Policy, Protocol, Resolved, Rule, Term};
use std::net::{Ipv4Addr, Ipv6Addr};

const SERVICES: [u16; 24] = [
    20, 21, 22, 23, 25, 53, 80, 110, 123, 143, 161, 179, 389, 443, 445, 514, 636, 993, 995, 1433, 1521, 3306, 5060,
    8080,
];
const CLASSES: u8 = 8;
const ANY_PORT: (u16, u16) = (0, u16::MAX);
const HIGH_PORTS: (u16, u16) = (1024, u16::MAX);

/// A prefix of IPv4: address and length.
#[derive(Clone, Copy)]
pub struct Prefix(u32, u8);

impl Prefix {
    fn mask(self) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(self.1)).unwrap_or(0)
    }

    fn holds(self, address: u32) -> bool {
        (address ^ self.0) & self.mask() == 0
    }

    fn some(self, rng: &mut SmallRng) -> u32 {
        self.0 | rng.random::<u32>() & !self.mask()
    }

    fn terms(self) -> Vec<Term<IpNet>> {
        let net = || IpNet::new(Ipv4Addr::from(self.0).into(), self.1).expect("a length that fits");
        if self.1 == 0 { Vec::new() } else { vec![Term::Is(net())] }
    }
}

/// A rule for five fields.
#[derive(Clone, Copy)]
pub struct Five {
    src: Prefix,
    dst: Prefix,
    sport: (u16, u16),
    dport: (u16, u16),
    proto: Option<u8>,
}

/// The headers that rules look at.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Packet {
    src: u32,
    dst: u32,
    sport: u16,
    dport: u16,
    proto: u8,
}

fn within(ports: (u16, u16), port: u16) -> bool {
    (ports.0..=ports.1).contains(&port)
}

impl Five {
    fn matches(&self, p: &Packet) -> bool {
        self.src.holds(p.src)
            && self.dst.holds(p.dst)
            && within(self.sport, p.sport)
            && within(self.dport, p.dport)
            && self.proto.is_none_or(|proto| proto == p.proto)
    }

    /// One that it matches.
    pub fn packet(&self, rng: &mut SmallRng) -> Packet {
        Packet {
            src: self.src.some(rng),
            dst: self.dst.some(rng),
            sport: rng.random_range(self.sport.0..=self.sport.1),
            dport: rng.random_range(self.dport.0..=self.dport.1),
            proto: self.proto.unwrap_or_else(|| if rng.random() { 6 } else { 17 }),
        }
    }

    fn rule(&self, priority: u32) -> Rule {
        let ports = |ports| if ports == ANY_PORT { Vec::new() } else { vec![Term::Is(ports)] };
        Rule {
            src: self.src.terms(),
            dst: self.dst.terms(),
            src_ports: ports(self.sport),
            dst_ports: ports(self.dport),
            protocol: self.proto.map_or(Protocol::Any, Protocol::from_number),
            ..Rule::new(priority, ClassId((priority % u32::from(CLASSES)) as u8))
        }
    }

    /// As `struct bench_rule` in lookup.bpf.c.
    pub fn for_walk(&self, number: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let addresses = [self.src.0.to_be(), self.src.mask().to_be(), self.dst.0.to_be(), self.dst.mask().to_be()];
        addresses.iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        let proto = self.proto.map_or(0xffff, u16::from);
        for half in [self.sport.0, self.sport.1, self.dport.0, self.dport.1, proto, 0] {
            bytes.extend(half.to_ne_bytes());
        }
        bytes.extend((number % u32::from(CLASSES)).to_ne_bytes());
        bytes
    }
}

/// As `struct bench_rule`: no protocol has this number.
pub fn nothing_for_walk() -> Vec<u8> {
    let mut bytes = vec![0; 32];
    bytes[24] = 0xff;
    bytes
}

fn prefix(rng: &mut SmallRng, earlier: &[Prefix], any: f64, host: f64, net: f64) -> Prefix {
    let kind: f64 = rng.random();
    let length = match kind {
        kind if kind < any => return Prefix(0, 0),
        kind if kind < any + host => 32,
        kind if kind < any + host + net => 24,
        _ => rng.random_range(12..32),
    };
    let parent = earlier.choose(rng).filter(|parent| parent.1 > 0 && parent.1 < length);
    let prefix = match parent {
        Some(parent) if rng.random_bool(0.3) => Prefix(parent.some(rng), length),
        _ => Prefix(rng.random_range(0x0100_0000..0xdfff_ffff), length),
    };
    Prefix(prefix.0 & prefix.mask(), length)
}

/// So many rules, of which the first asks for all five fields, as one rule that stands for all of them must.
pub fn mix(rng: &mut SmallRng, count: usize) -> Vec<Five> {
    let (mut sources, mut destinations) = (Vec::new(), Vec::new());
    let mut rules = vec![Five {
        src: Prefix(0xc633_6400, 24),
        dst: Prefix(0xcb00_7107, 32),
        sport: HIGH_PORTS,
        dport: (443, 443),
        proto: Some(6),
    }];
    while rules.len() < count {
        let proto = [6, 6, 6, 6, 6, 6, 6, 17, 17, 0].choose(rng).copied().filter(|&proto| proto != 0);
        let src = prefix(rng, &sources, 0.25, 0.25, 0.25);
        let dst = prefix(rng, &destinations, 0.05, 0.45, 0.3);
        let sport = match rng.random_range(0..100) {
            0..90 => ANY_PORT,
            90..97 => HIGH_PORTS,
            _ => SERVICES.choose(rng).map(|&port| (port, port)).expect("some"),
        };
        let dport = match rng.random_range(0..100) {
            0..45 => SERVICES.choose(rng).map(|&port| (port, port)).expect("some"),
            45..60 => Some(rng.random()).map(|port| (port, port)).expect("some"),
            60..80 => ANY_PORT,
            80..90 => HIGH_PORTS,
            _ => {
                let low: u16 = rng.random_range(1..60_000);
                (low, low + rng.random_range(1..1000))
            }
        };
        if (src.1 == 0 && dst.1 == 0) || (proto.is_none() && dport == ANY_PORT) {
            continue;
        }
        sources.push(src);
        destinations.push(dst);
        rules.push(Five { src, dst, sport, dport, proto });
    }
    rules
}

/// Packets, each of which a rule matches that was drawn at random (and so that rule or one before it).
pub fn matching(rng: &mut SmallRng, rules: &[Five]) -> Packet {
    rules.choose(rng).expect("some").packet(rng)
}

/// A packet that none matches.
pub fn foreign(rng: &mut SmallRng, rules: &[Five]) -> Packet {
    loop {
        let drawn = rules.choose(rng).expect("some").packet(rng);
        // Fields that rules know, but not together; and an address that nobody knows.
        let packet = Packet { src: rng.random(), dst: rules.choose(rng).expect("some").packet(rng).dst, ..drawn };
        if !rules.iter().any(|rule| rule.matches(&packet)) {
            return packet;
        }
    }
}

/// The first rule that matches.
pub fn first(rules: &[Five], packet: &Packet) -> u32 {
    rules.iter().position(|rule| rule.matches(packet)).map_or(abi::SL_RULE_NONE, |rule| rule as u32)
}

impl Packet {
    /// The packet as the parser reads it.
    pub fn headers(&self) -> Box<abi::sl_headers> {
        // SAFETY: integers and arrays of them: zeroes are valid.
        let mut h: Box<abi::sl_headers> = Box::new(unsafe { std::mem::zeroed() });
        plain(&mut h, abi::SL_PARSE_IPV4, self.proto, self.sport, self.dport);
        (h.src[2], h.dst[2]) = (0xffff_u32.to_be(), 0xffff_u32.to_be());
        (h.src[3], h.dst[3]) = (self.src.to_be(), self.dst.to_be());
        h
    }

    /// As `struct bench_frame` in lookup.bpf.c.
    pub fn words(&self) -> [u8; 16] {
        self.frame()[22..38].try_into().expect("16 bytes")
    }

    /// 64 bytes with the checksum of Ethernet, which is not there.
    pub fn frame(&self) -> Vec<u8> {
        let mut frame =
            vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, self.proto, 0, 0];
        frame.extend(self.src.to_be_bytes());
        frame.extend(self.dst.to_be_bytes());
        frame.extend(self.sport.to_be_bytes());
        frame.extend(self.dport.to_be_bytes());
        frame.resize(60, 0);
        frame
    }
}

fn plain(h: &mut abi::sl_headers, kind: u32, proto: u8, sport: u16, dport: u16) {
    (h.kind, h.is_ip, h.has_ports, h.proto) = (kind as u8, 1, 1, proto.into());
    (h.sport, h.dport, h.length) = (sport, dport, 46);
    (h.vlan, h.tcp_flags, h.icmp, h.pcp) = (0xffff, 0xffff, 0xffff, 0xff);
}

/// Prefixes of IPv6, one for each rule, source and destination in turn, as long as networks and hosts have them.
pub fn prefixes6(rng: &mut SmallRng, count: usize) -> Vec<IpNet> {
    let mut nets = std::collections::HashSet::new();
    let mut order = Vec::new();
    while order.len() < count {
        let length = *[32, 40, 44, 48, 48, 48, 56, 64, 64, 128].choose(rng).expect("some");
        let address = Ipv6Addr::from(0x2 << 124 | rng.random::<u128>() >> 4);
        let net = IpNet::new(address.into(), length).expect("a length that fits").trunc();
        if nets.insert(net) {
            order.push(net);
        }
    }
    order
}

/// A packet that the rule with this number matches.
pub fn packet6(rng: &mut SmallRng, nets: &[IpNet], rule: usize) -> [u128; 2] {
    let IpNet::V6(net) = nets[rule] else { unreachable!("IPv6") };
    let rest = u128::MAX.checked_shr(net.prefix_len().into()).unwrap_or(0);
    let within = u128::from(net.network()) | rng.random::<u128>() & rest;
    let other = 0x2001_0db8 << 96 | rng.random::<u128>() >> 32;
    if rule % 2 == 0 { [within, other] } else { [other, within] }
}

pub fn headers6([src, dst]: [u128; 2]) -> Box<abi::sl_headers> {
    // SAFETY: integers and arrays of them: zeroes are valid.
    let mut h: Box<abi::sl_headers> = Box::new(unsafe { std::mem::zeroed() });
    plain(&mut h, abi::SL_PARSE_IPV6, 6, 40_000, 443);
    let words = |address: u128| {
        [0, 4, 8, 12].map(|at| {
            let bytes = address.to_be_bytes();
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        })
    };
    (h.src, h.dst) = (words(src), words(dst));
    h
}

pub fn frame6([src, dst]: [u128; 2]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 6, 64];
    frame.extend(src.to_be_bytes());
    frame.extend(dst.to_be_bytes());
    frame.extend(40_000_u16.to_be_bytes());
    frame.extend(443_u16.to_be_bytes());
    frame.resize(66, 0);
    frame
}

fn resolved(rules: Vec<Rule>) -> Resolved {
    let text = r#"{ "scheduler": "strict_priority", "classes": [ { "id": 0, "priority": 0 } ] }"#;
    let mut policy: Policy = sluice_policy::parse(&sluice_policy::Source::new("bench", text)).expect("valid");
    policy.classes = (0..CLASSES).map(|id| Class { priority: id, ..Class::new(ClassId(id)) }).collect();
    policy.default_class = Some(ClassId(0));
    policy.rules = rules;
    sluice_policy::resolve(&policy, &sluice_policy::Context::default()).expect("resolves")
}

pub fn policy(rules: &[Five]) -> Resolved {
    resolved((0..).zip(rules).map(|(n, rule)| rule.rule(n)).collect())
}

pub fn policy6(nets: &[IpNet]) -> Resolved {
    let rule = |(n, &net): (u32, &IpNet)| {
        let terms = vec![Term::Is(net)];
        let own = Rule::new(n, ClassId((n % u32::from(CLASSES)) as u8));
        if n % 2 == 0 { Rule { src: terms, ..own } } else { Rule { dst: terms, ..own } }
    };
    resolved((0..).zip(nets).map(rule).collect())
}
