//! The bit-vector tables against a slow, obvious model: every rule asked in turn.

use ipnet::IpNet;
use proptest::prelude::*;
use sluice_abi as abi;
use sluice_policy::{Class, ClassId, Policy, Protocol, Rule};
use sluice_tables::{Compiled, Prefix, compile};
use std::net::IpAddr;

/// What the parser gives.
#[derive(Debug, Clone)]
struct Headers {
    proto: u32,
    addresses: Option<(IpAddr, IpAddr)>,
    ports: Option<(u16, u16)>,
    dscp: Option<u8>,
    vlan: Option<u16>,
}

const DEFAULT: u8 = 7;
const URGENT: u8 = 0;

fn policy(rules: Vec<Rule>) -> Policy {
    let text = r#"{ "scheduler": "strict_priority", "classes": [
        {"id": 0, "priority": 0}, {"id": 1, "priority": 1}, {"id": 2, "priority": 2}, {"id": 7, "priority": 3} ] }"#;
    let mut policy = sluice_policy::parse(&sluice_policy::Source::new("model", text)).expect("valid");
    assert_eq!(policy.classes[3], Class { priority: 3, ..Class::new(ClassId(DEFAULT)) });
    policy.rules = rules;
    policy
}

fn compiled(policy: &Policy) -> Compiled {
    let resolved = sluice_policy::resolve(policy, &sluice_policy::Context::default()).expect("resolves");
    let context = sluice_tables::Context {
        generation: 1,
        tag: 1,
        buffer: 1,
        egress_rate: None,
        ingress_rate: None,
        header_bytes: 14,
    };
    compile(&resolved, &context).expect("fits")
}

/// As bpf/lib/classify.h looks it up.
fn by_tables(compiled: &Compiled, h: &Headers) -> u8 {
    let t = &compiled.tables;
    let asks = |field: u32| u32::from(t.fields) & field != 0;
    let mut rows = vec![t.proto_row[h.proto as usize]];
    if asks(abi::SL_FIELD_SRC) {
        rows.push(h.addresses.map_or(t.src_none_row, |(src, _)| longest(&compiled.src_prefixes, src, t.src_none_row)));
    }
    if asks(abi::SL_FIELD_DST) {
        rows.push(h.addresses.map_or(t.dst_none_row, |(_, dst)| longest(&compiled.dst_prefixes, dst, t.dst_none_row)));
    }
    if asks(abi::SL_FIELD_SPORT) {
        rows.push(h.ports.map_or(t.sport_none_row, |(port, _)| t.sport_row[usize::from(port)]));
    }
    if asks(abi::SL_FIELD_DPORT) {
        rows.push(h.ports.map_or(t.dport_none_row, |(_, port)| t.dport_row[usize::from(port)]));
    }
    if asks(abi::SL_FIELD_DSCP) {
        rows.push(h.dscp.map_or(t.dscp_none_row, |dscp| t.dscp_row[usize::from(dscp)]));
    }
    if asks(abi::SL_FIELD_VLAN) {
        rows.push(h.vlan.map_or(t.vlan_none_row, |vlan| t.vlan_row[usize::from(vlan)]));
    }
    for word in 0..usize::from(t.rule_words) {
        let hit = rows.iter().fold(u64::MAX, |all, &row| all & t.row[usize::from(row)].word[word]);
        if hit != 0 {
            return t.rule[word * 64 + hit.trailing_zeros() as usize].class;
        }
    }
    t.default_class
}

fn longest(prefixes: &[Prefix], addr: IpAddr, none: u16) -> u16 {
    let addr = match addr {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    let bits = u128::from(addr);
    let covers = |prefix: &&Prefix| {
        assert_eq!(prefix.buffer, 1);
        prefix.bits == 0 || (bits ^ u128::from_be_bytes(prefix.addr)) >> (128 - prefix.bits) == 0
    };
    prefixes.iter().filter(covers).max_by_key(|prefix| prefix.bits).map_or(none, |prefix| prefix.row as u16)
}

/// The first rule by priority that matches; before one that matches everything, ARP, neighbour discovery and DHCP.
fn by_model(rules: &[Rule], h: &Headers) -> u8 {
    let mut sorted: Vec<&Rule> = rules.iter().collect();
    sorted.sort_by_key(|rule| rule.priority);
    let control = h.proto == abi::SL_PROTO_ARP
        || h.proto == abi::SL_PROTO_ND
        || (h.proto == 17 && h.ports.is_some_and(|(_, port)| [67, 68, 546, 547].contains(&port)));
    for rule in sorted {
        let everything =
            Rule { priority: rule.priority, ..Rule::new(0, rule.class) } == Rule { name: None, ..rule.clone() };
        if everything && control {
            return URGENT;
        }
        if matches(rule, h) {
            return rule.class.0;
        }
    }
    if control { URGENT } else { DEFAULT }
}

fn matches(rule: &Rule, h: &Headers) -> bool {
    let within = |range: Option<(u16, u16)>, port: Option<u16>| {
        range.is_none_or(|(low, high)| port.is_some_and(|port| (low..=high).contains(&port)))
    };
    let inside =
        |net: Option<IpNet>, addr: Option<IpAddr>| net.is_none_or(|net| addr.is_some_and(|addr| net.contains(&addr)));
    let protocol = match rule.protocol {
        Protocol::Any => true,
        Protocol::Tcp => h.proto == 6,
        Protocol::Udp => h.proto == 17,
        Protocol::Icmp => [1, 58, abi::SL_PROTO_ND].contains(&h.proto),
        Protocol::Number(number) => h.proto == u32::from(number) || (number == 58 && h.proto == abi::SL_PROTO_ND),
    };
    protocol
        && inside(rule.src, h.addresses.map(|(src, _)| src))
        && inside(rule.dst, h.addresses.map(|(_, dst)| dst))
        && within(rule.src_ports, h.ports.map(|(port, _)| port))
        && within(rule.dst_ports, h.ports.map(|(_, port)| port))
        && rule.dscp.is_none_or(|dscp| h.dscp == Some(dscp))
        && rule.vlan.is_none_or(|vlan| h.vlan == Some(vlan))
}

/// Few values, so that rules and packets meet.
fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        (0u8..3, 0u8..4).prop_map(|(a, b)| IpAddr::from([10, a, 0, b])),
        (0u16..3, 0u16..4).prop_map(|(a, b)| IpAddr::from([0x2001, 0xdb8, a, 0, 0, 0, 0, b])),
    ]
}

fn net() -> impl Strategy<Value = IpNet> {
    (address(), 0u8..=128).prop_map(|(addr, len)| {
        let most = if addr.is_ipv4() { 32 } else { 128 };
        IpNet::new(addr, len % (most + 1)).expect("a length that fits").trunc()
    })
}

fn ports() -> impl Strategy<Value = (u16, u16)> {
    (prop_oneof![0u16..6, 65533..=65535u16, 66u16..69, Just(546)], 0u16..3)
        .prop_map(|(low, more)| (low, low.saturating_add(more)))
}

fn rule() -> impl Strategy<Value = Rule> {
    let protocol = prop_oneof![
        3 => Just(Protocol::Any),
        2 => Just(Protocol::Udp),
        1 => Just(Protocol::Tcp),
        1 => Just(Protocol::Icmp),
        1 => Just(Protocol::Number(58)),
        1 => Just(Protocol::Number(132)),
    ];
    let class = prop::sample::select(vec![0u8, 1, 2, 7]);
    let rare = |probability, strategy| prop::option::weighted(probability, strategy);
    (
        protocol,
        class,
        rare(0.3, net()),
        rare(0.3, net()),
        prop::option::weighted(0.2, ports()),
        prop::option::weighted(0.3, ports()),
        prop::option::weighted(0.15, 0u8..4),
        prop::option::weighted(0.15, 1u16..4),
    )
        .prop_map(|(protocol, class, src, dst, src_ports, dst_ports, dscp, vlan)| {
            let mixed = matches!((src, dst), (Some(a), Some(b)) if a.addr().is_ipv4() != b.addr().is_ipv4());
            let has_ports = protocol.can_have_ports();
            Rule {
                protocol,
                src,
                dst: dst.filter(|_| !mixed),
                src_ports: src_ports.filter(|_| has_ports),
                dst_ports: dst_ports.filter(|_| has_ports),
                dscp,
                vlan,
                ..Rule::new(0, ClassId(class))
            }
        })
}

fn headers() -> impl Strategy<Value = Headers> {
    let port = || prop_oneof![0u16..8, 65530..=65535u16, 66u16..70, 545u16..549];
    (
        prop::sample::select(vec![1, 6, 17, 17, 47, 58, 132, abi::SL_PROTO_ND, abi::SL_PROTO_ARP, abi::SL_PROTO_OTHER]),
        (address(), address()),
        prop::option::weighted(0.9, (port(), port())),
        0u8..6,
        prop::option::weighted(0.5, 0u16..5),
    )
        .prop_map(|(proto, addresses, ports, dscp, vlan)| {
            let ip = proto < 257;
            Headers {
                proto,
                addresses: Some(addresses).filter(|_| ip),
                ports: ports.filter(|_| [6, 17, 132].contains(&proto)),
                dscp: Some(dscp).filter(|_| ip),
                vlan,
            }
        })
}

proptest! {
    #[test]
    fn tables_and_model_agree(
        rules in prop::collection::vec(rule(), 0..90),
        packets in prop::collection::vec(headers(), 200),
    ) {
        let rules: Vec<Rule> = rules.into_iter().enumerate().map(|(n, rule)| Rule { priority: 1000 - n as u32, ..rule }).collect();
        let compiled = compiled(&policy(rules.clone()));
        for packet in &packets {
            prop_assert_eq!(by_tables(&compiled, packet), by_model(&rules, packet), "{:?}", packet);
        }
    }
}

#[test]
fn the_most_rules_there_may_be_fit() {
    let rule = |n: u32| Rule {
        src: Some(format!("10.{}.{}.0/24", n / 7, n % 7).parse().expect("a prefix")),
        dst: Some(format!("10.0.{n}.0/24").parse().expect("a prefix")),
        src_ports: Some((n as u16 * 200, n as u16 * 200 + 150)),
        dst_ports: Some((n as u16 * 100, n as u16 * 100 + 350)),
        dscp: Some(n as u8 % 64),
        vlan: Some(n as u16 + 1),
        protocol: Protocol::Udp,
        ..Rule::new(n, ClassId(1))
    };
    let compiled = compiled(&policy((0..256).map(rule).collect()));
    assert_eq!(compiled.tables.rules, 260);
    assert_eq!(compiled.tables.rule_words, 5);
}

#[test]
fn the_same_policy_gives_the_same_bytes() {
    let policy = policy(vec![Rule { vlan: Some(3), ..Rule::new(1, ClassId(2)) }]);
    let (a, b) = (compiled(&policy), compiled(&policy));
    assert!(abi::bytes_of(&*a.tables) == abi::bytes_of(&*b.tables));
    assert!(abi::bytes_of(&*a.sched[0]) == abi::bytes_of(&*b.sched[0]));
}
