//! The bit-vector tables against a slow, obvious model: every rule evaluated in order.

use ipnet::IpNet;
use proptest::prelude::*;
use sluice_abi as abi;
use sluice_policy::{Class, ClassId, IcmpType, Policy, Protocol, Resolved, Rule, TcpFlags, Term, Terms};
use sluice_tables::{Compiled, compile};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The parser's output.
#[derive(Debug, Clone)]
struct Headers {
    proto: u32,
    addresses: Option<(IpAddr, IpAddr)>,
    ports: Option<(u16, u16)>,
    dscp: Option<u8>,
    vlan: Option<u16>,
    pcp: Option<u8>,
    tcp_flags: Option<u8>,
    /// The ICMP type; ICMPv6 types are 256 higher.
    icmp: Option<u16>,
    length: u16,
    interface: u32,
    mark: u32,
}

const DEFAULT: u8 = 7;
const URGENT: u8 = 0;

fn policy(rules: Vec<Rule>) -> Policy {
    let text = r#"{ "scheduler": "strict_priority", "classes": [
        {"id": 0, "priority": 0}, {"id": 1, "priority": 1}, {"id": 2, "priority": 2}, {"id": 7, "priority": 3} ],
        "address_sets": { "lan": ["10.1.0.0/16", "10.0.0.2", "2001:db8:1::/48"], "four": ["ipv4"] },
        "port_sets": { "web": ["2-3", 66, "65534-65535"] } }"#;
    let mut policy = sluice_policy::parse(&sluice_policy::Source::new("model", text)).expect("valid");
    assert_eq!(policy.classes[3], Class { priority: 3, ..Class::new(ClassId(DEFAULT)) });
    policy.rules = rules;
    policy
}

fn resolved(policy: &Policy) -> Resolved {
    sluice_policy::resolve(policy, &sluice_policy::Context::default()).expect("resolves")
}

fn compiled(policy: &Policy) -> Compiled {
    let interfaces = [("eth0".to_string(), 2), ("wlan0".to_string(), 3)];
    let context = sluice_tables::Context { buffer: 1, ..sluice_tables::Context::ethernet(&interfaces) };
    compile(&resolved(policy), &context).expect("fits")
}

/// The look-up of bpf/lib/choose.h.
fn by_tables(compiled: &Compiled, h: &Headers) -> u8 {
    let t = &compiled.tables;
    let rows = rows(compiled, h);
    let rule = if t.many != 0 { match_many(compiled, &rows) } else { match_few(compiled, &rows) };
    if rule >= t.control_from && is_control(h) {
        return t.urgent_class;
    }
    match rule {
        abi::SL_RULE_NONE => t.default_class,
        rule => t.rule_class[rule as usize],
    }
}

/// The look-up of bpf/lib/plain.h, where the policy allows it and the packet is plain.
fn by_ports(compiled: &Compiled, h: &Headers) -> Option<u8> {
    let t = &compiled.tables;
    let (sport, dport) = h.ports.filter(|_| [6, 17].contains(&h.proto) && !is_control(h))?;
    if u32::from(t.plain) & abi::SL_PLAIN_BY_PORTS == 0 {
        return None;
    }
    let udp = usize::from(h.proto == 17);
    let by_sport = t.by_sport[udp][usize::from(t.sport_row[usize::from(sport)])];
    let by_dport = t.by_dport[udp][usize::from(t.dport_row[usize::from(dport)])];
    if u32::from(t.fields) & abi::SL_FIELD_SPORT == 0 {
        assert!(by_sport >= by_dport, "no rule asks for the source port");
    }
    Some(by_sport.min(by_dport) as u8)
}

/// The row of each field that some rule has a condition on.
fn rows(compiled: &Compiled, h: &Headers) -> Vec<u16> {
    let t = &compiled.tables;
    let address =
        |which: u32, addr: Option<IpAddr>, none| addr.map_or(none, |addr| range_row(compiled, which, bits(addr), none));
    let by_field = [
        (abi::SL_FIELD_SPORT, h.ports.map_or(t.sport_none_row, |(port, _)| t.sport_row[usize::from(port)])),
        (abi::SL_FIELD_DPORT, h.ports.map_or(t.dport_none_row, |(_, port)| t.dport_row[usize::from(port)])),
        (abi::SL_FIELD_DSCP, h.dscp.map_or(t.dscp_none_row, |dscp| t.dscp_row[usize::from(dscp)])),
        (abi::SL_FIELD_VLAN, h.vlan.map_or(t.vlan_none_row, |vlan| t.vlan_row[usize::from(vlan)])),
        (abi::SL_FIELD_PCP, h.pcp.map_or(t.pcp_none_row, |pcp| t.pcp_row[usize::from(pcp)])),
        (
            abi::SL_FIELD_TCP_FLAGS,
            h.tcp_flags.map_or(t.tcp_flags_none_row, |flags| t.tcp_flags_row[usize::from(flags)]),
        ),
        (abi::SL_FIELD_ICMP, h.icmp.map_or(t.icmp_none_row, |kind| t.icmp_row[usize::from(kind)])),
        (abi::SL_FIELD_SRC, address(abi::SL_RANGE_SRC, h.addresses.map(|(src, _)| src), t.src_none_row)),
        (abi::SL_FIELD_DST, address(abi::SL_RANGE_DST, h.addresses.map(|(_, dst)| dst), t.dst_none_row)),
        (
            abi::SL_FIELD_LENGTH,
            match h.addresses {
                Some(_) => range_row(compiled, abi::SL_RANGE_LENGTH, h.length.into(), t.length_none_row),
                None => t.length_none_row,
            },
        ),
        (abi::SL_FIELD_INTERFACE, key_row(&t.interface_row, h.interface)),
        (abi::SL_FIELD_MARK, key_row(&t.mark_row, h.mark)),
    ];
    let asked = by_field.into_iter().filter(|&(field, _)| u32::from(t.fields) & field != 0).map(|(_, row)| row);
    std::iter::once(t.proto_row[h.proto as usize]).chain(asked).collect()
}

fn bits(addr: IpAddr) -> u128 {
    match addr {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().into(),
        IpAddr::V6(v6) => v6.into(),
    }
}

fn range_row(compiled: &Compiled, which: u32, number: u128, none: u16) -> u16 {
    compiled.ranges[which as usize].as_ref().map_or(none, |ranges| search(ranges, (number >> 64) as u64, number as u64))
}

/// `sl_search`.
fn search(r: &abi::sl_ranges, high: u64, low: u64) -> u16 {
    let (mut first, mut last) = (0, r.last);
    if high == 0 && low >> 32 == 0xffff {
        let block = (low as u32 >> 16) as usize;
        first = u32::from(r.ipv4[block]);
        if block < 0xffff {
            last = u32::from(r.ipv4[block + 1]);
        }
    }
    for _ in 0..15 {
        if first >= last {
            break;
        }
        let middle = (first + last).div_ceil(2);
        if (r.high[middle as usize], r.low[middle as usize]) <= (high, low) {
            first = middle;
        } else {
            last = middle - 1;
        }
    }
    assert_eq!(first.min(last), last, "15 steps are enough");
    r.row[first as usize]
}

/// `sl_key_row`.
fn key_row(k: &abi::sl_keys, key: u32) -> u16 {
    let first = key.wrapping_mul(k.factor) >> 22;
    let slots = (first..first + abi::SL_KEY_PROBES).map(|slot| (slot % abi::SL_KEY_SLOTS) as usize);
    slots.into_iter().find(|&slot| k.key[slot] == key).map_or(k.none_row, |slot| k.row[slot])
}

/// `sl_match_few`.
fn match_few(compiled: &Compiled, rows: &[u16]) -> u32 {
    let hit = rows.iter().fold(u64::MAX, |all, &row| all & compiled.tables.small[usize::from(row)]);
    if hit != 0 { hit.trailing_zeros() } else { abi::SL_RULE_NONE }
}

/// `sl_match_many`.
fn match_many(compiled: &Compiled, rows: &[u16]) -> u32 {
    let rows: Vec<&abi::sl_row> = rows.iter().map(|&row| &compiled.rows[usize::from(row)]).collect();
    let mut words = rows.iter().fold(u64::MAX, |all, row| all & row.summary);
    while words != 0 {
        let word = words.trailing_zeros();
        words &= words - 1;
        let hit = rows.iter().fold(u64::MAX, |all, row| all & row.word[word as usize]);
        if hit != 0 {
            return word * 64 + hit.trailing_zeros();
        }
    }
    abi::SL_RULE_NONE
}

/// `sl_control_rule`: ARP, neighbour discovery, DHCP.
fn is_control(h: &Headers) -> bool {
    let dhcp = |port| [67, 68, 546, 547].contains(&port);
    [abi::SL_PROTO_ARP, abi::SL_PROTO_ND].contains(&h.proto)
        || (h.proto == 17 && h.ports.is_some_and(|(_, port)| dhcp(port)))
}

/// The first rule by priority that matches; before one that matches everything, ARP, neighbour discovery and DHCP.
fn by_model(policy: &Policy, h: &Headers) -> u8 {
    let mut sorted: Vec<&Rule> = policy.rules.iter().collect();
    sorted.sort_by_key(|rule| rule.priority);
    for rule in sorted {
        let everything = Rule::new(rule.priority, rule.class) == Rule { name: None, ..rule.clone() };
        if everything && is_control(h) {
            return URGENT;
        }
        if matches(policy, rule, h) {
            return rule.class.0;
        }
    }
    if is_control(h) { URGENT } else { DEFAULT }
}

fn matches(policy: &Policy, rule: &Rule, h: &Headers) -> bool {
    let within = |terms: &Terms<(u16, u16)>, port: Option<u16>| {
        let inside = |(low, high): &(u16, u16)| port.is_some_and(|port| (*low..=*high).contains(&port));
        asks_for(terms, &policy.port_sets, inside)
    };
    let inside = |terms: &Terms<IpNet>, addr: Option<IpAddr>| {
        asks_for(terms, &policy.address_sets, |net| addr.is_some_and(|addr| net.contains(&addr)))
    };
    let protocol = match rule.protocol {
        Protocol::Any => true,
        Protocol::Tcp => h.proto == 6,
        Protocol::Udp => h.proto == 17,
        Protocol::Icmp => [1, 58, abi::SL_PROTO_ND].contains(&h.proto),
        Protocol::Number(number) => h.proto == u32::from(number) || (number == 58 && h.proto == abi::SL_PROTO_ND),
    };
    let icmp = |kind: IcmpType| match h.icmp {
        Some(own) if own < 256 => kind.v4.map(u16::from) == Some(own),
        own => own.is_some() && kind.v6.map(|v6| 256 + u16::from(v6)) == own,
    };
    let flags = |flags: TcpFlags| h.tcp_flags.is_some_and(|own| own & flags.set == flags.set && own & flags.clear == 0);
    let length = |(low, high): (u16, u16)| h.addresses.is_some() && (low..=high).contains(&h.length);
    let interface = match rule.in_interface.as_deref() {
        None => true,
        Some("eth0") => h.interface == 2,
        Some(_) => h.interface == 3,
    };
    protocol
        && inside(&rule.src, h.addresses.map(|(src, _)| src))
        && inside(&rule.dst, h.addresses.map(|(_, dst)| dst))
        && within(&rule.src_ports, h.ports.map(|(port, _)| port))
        && within(&rule.dst_ports, h.ports.map(|(_, port)| port))
        && rule.dscp.is_none_or(|dscp| h.dscp == Some(dscp))
        && rule.vlan.is_none_or(|vlan| h.vlan == Some(vlan))
        && rule.pcp.is_none_or(|pcp| h.pcp == Some(pcp))
        && rule.icmp.is_none_or(icmp)
        && rule.tcp_flags.is_none_or(flags)
        && rule.length.is_none_or(length)
        && interface
        && rule.mark.is_none_or(|mark| h.mark == mark)
}

/// Whether a condition holds: no values, or one of the values (sets spelled out) matches.
fn asks_for<T>(terms: &Terms<T>, sets: &BTreeMap<String, Vec<T>>, is: impl Fn(&T) -> bool) -> bool {
    let hit = |term: &Term<T>| match term {
        Term::Is(value) => is(value),
        Term::In(set) => sets[set].iter().any(&is),
    };
    terms.is_empty() || terms.iter().any(hit)
}

/// Addresses of a small range, so that rules and packets meet.
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

/// Up to three values or sets, mostly none.
fn terms<T: Clone + std::fmt::Debug>(
    probability: f64,
    value: impl Strategy<Value = T>,
    sets: &'static [&'static str],
) -> impl Strategy<Value = Terms<T>> {
    let named = prop::sample::select(sets).prop_map(|set| Term::In(set.to_string()));
    let term = prop_oneof![3 => value.prop_map(Term::Is), 1 => named];
    prop::option::weighted(probability, prop::collection::vec(term, 1..4)).prop_map(Option::unwrap_or_default)
}

fn rare<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    prop::option::weighted(0.1, strategy)
}

fn tcp_flags() -> impl Strategy<Value = TcpFlags> {
    prop::sample::select(vec![(2, 0), (2, 16), (0, 2), (18, 0)]).prop_map(|(set, clear)| TcpFlags { set, clear })
}

fn icmp() -> impl Strategy<Value = IcmpType> {
    prop::sample::select(vec![(Some(8), Some(128)), (Some(8), None), (None, Some(135)), (Some(3), Some(3))])
        .prop_map(|(v4, v6)| IcmpType { v4, v6 })
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
    let nets = (terms(0.3, net(), &["lan", "four"]), terms(0.3, net(), &["lan", "four"]));
    let ports = (terms(0.2, ports(), &["web"]), terms(0.3, ports(), &["web"]));
    let tags = (rare(0u8..4), rare(1u16..4), rare(0u8..3));
    let lengths = (0u16..4, 0u16..3).prop_map(|(low, more)| (low * 500, low * 500 + more * 500));
    let lengths = prop_oneof![lengths, Just((0, u16::MAX)), Just((1000, u16::MAX))];
    let others = (
        rare(icmp()),
        rare(tcp_flags()),
        rare(lengths),
        rare(prop::sample::select(vec!["eth0", "wlan0"])),
        rare(0u32..4),
    );
    (protocol, class, nets, ports, tags, others).prop_map(
        |(protocol, class, (src, dst), (src_ports, dst_ports), tags, others)| {
            let ((dscp, vlan, pcp), (icmp, tcp_flags, length, in_interface, mark)) = (tags, others);
            let in_interface = in_interface.map(String::from);
            let fields = Rule { src, dst, src_ports, dst_ports, dscp, vlan, pcp, ..Rule::new(0, ClassId(class)) };
            Rule { protocol, icmp, tcp_flags, length, in_interface, mark, ..fields }
        },
    )
}

fn headers() -> impl Strategy<Value = Headers> {
    let port = || prop_oneof![0u16..8, 65530..=65535u16, 66u16..70, 545u16..549];
    let protos = vec![1, 6, 6, 17, 17, 47, 58, 132, abi::SL_PROTO_ND, abi::SL_PROTO_ARP, abi::SL_PROTO_OTHER];
    let tag = prop::option::weighted(0.5, (0u16..5, 0u8..4));
    let flags = prop::sample::select(vec![0u8, 2, 16, 18, 255]);
    let length = prop::sample::select(vec![0u16, 499, 500, 1000, 1500, 2001, 65535]);
    (
        (prop::sample::select(protos), (address(), address()), prop::option::weighted(0.9, (port(), port()))),
        (0u8..6, tag, flags, prop::sample::select(vec![0u8, 3, 8, 128, 135]), length),
        (prop::sample::select(vec![0u32, 2, 3, 9]), 0u32..6),
    )
        .prop_map(|((proto, addresses, ports), (dscp, tag, flags, kind, length), (interface, mark))| {
            let ip = proto < 257;
            Headers {
                proto,
                addresses: Some(addresses).filter(|_| ip),
                ports: ports.filter(|_| [6, 17, 132].contains(&proto)),
                dscp: Some(dscp).filter(|_| ip),
                vlan: tag.map(|(vlan, _)| vlan),
                pcp: tag.map(|(_, pcp)| pcp),
                tcp_flags: Some(flags).filter(|_| proto == 6),
                icmp: match proto {
                    1 => Some(kind.into()),
                    58 => Some(256 + u16::from(kind % 128)),
                    abi::SL_PROTO_ND => Some(256 + 135),
                    _ => None,
                },
                length: if ip { length } else { 0 },
                interface,
                mark,
            }
        })
}

/// Numbers the rules so that a later one is evaluated earlier.
fn numbered(rules: Vec<Rule>) -> Vec<Rule> {
    rules.into_iter().enumerate().map(|(n, rule)| Rule { priority: 1000 - n as u32, ..rule }).collect()
}

proptest! {
    #[test]
    fn tables_and_model_agree(
        rules in prop_oneof![prop::collection::vec(rule(), 0..64), prop::collection::vec(rule(), 60..300)],
        packets in prop::collection::vec(headers(), 200),
    ) {
        let policy = policy(numbered(rules));
        let compiled = compiled(&policy);
        prop_assert_eq!(compiled.tables.buffer, 1);
        prop_assert_eq!(compiled.tables.many == 0, compiled.rows.is_empty());
        prop_assert!(policy.rules.len() <= 64 || compiled.tables.many == 1);
        for packet in &packets {
            prop_assert_eq!(by_tables(&compiled, packet), by_model(&policy, packet), "{:?}", packet);
        }
    }
}

/// A rule that asks for the protocol and one port at most.
fn rule_of_one_port() -> impl Strategy<Value = Rule> {
    (rule(), any::<bool>()).prop_map(|(rule, by_source)| {
        let (src_ports, dst_ports) = if by_source { (rule.src_ports, vec![]) } else { (vec![], rule.dst_ports) };
        Rule { protocol: rule.protocol, src_ports, dst_ports, ..Rule::new(0, rule.class) }
    })
}

proptest! {
    #[test]
    fn plain_packets_by_their_ports(
        rules in prop_oneof![prop::collection::vec(rule_of_one_port(), 0..64), prop::collection::vec(rule_of_one_port(), 60..300)],
        packets in prop::collection::vec(headers(), 200),
        other in prop::option::of(rule()),
    ) {
        let of_one_port = policy(numbered(rules.clone()));
        let tables = compiled(&of_one_port);
        prop_assert_eq!(u32::from(tables.tables.plain) & abi::SL_PLAIN_BY_PORTS, abi::SL_PLAIN_BY_PORTS);
        for packet in &packets {
            let by_ports = by_ports(&tables, packet);
            prop_assert!(by_ports.is_none_or(|class| class == by_model(&of_one_port, packet)), "{:?}", packet);
            let plain = packet.ports.is_some() && [6, 17].contains(&packet.proto) && !is_control(packet);
            prop_assert_eq!(by_ports.is_some(), plain);
        }
        // Among rules of any kind, the look-up is right or not to be used.
        let mixed = policy(numbered(rules.into_iter().chain(other).collect()));
        let tables = compiled(&mixed);
        for packet in &packets {
            prop_assert!(by_ports(&tables, packet).is_none_or(|class| class == by_model(&mixed, packet)), "{:?}", packet);
        }
    }
}

#[test]
fn maximum_of_rules_by_port() {
    let rule = |n: u32| Rule {
        dst_ports: vec![Term::Is((n as u16 * 2, n as u16 * 2))],
        ..Rule::new(n, ClassId(if n % 2 == 0 { 1 } else { 2 }))
    };
    let tables = compiled(&policy((0..4096).map(rule).collect())).tables;
    assert_ne!(u32::from(tables.plain) & abi::SL_PLAIN_BY_PORTS, 0);
    for n in [0u16, 1, 2047, 4095] {
        let word = |port: u16| tables.by_dport[1][usize::from(tables.dport_row[usize::from(port)])];
        assert_eq!(word(n * 2), u32::from(n) << 8 | if n % 2 == 0 { 1 } else { 2 });
        assert_eq!(word(n * 2 + 1), abi::SL_RULE_NONE << 8 | u32::from(DEFAULT));
    }
}

#[test]
fn maximum_of_rules_fits() {
    let rule = |n: u32| Rule {
        src: vec![Term::Is(format!("10.{}.{}.0/24", n >> 8, n & 255).parse().expect("a prefix"))],
        dst_ports: vec![Term::Is((n as u16 * 8, n as u16 * 8 + 7))],
        protocol: Protocol::Udp,
        ..Rule::new(n, ClassId(if n % 2 == 0 { 1 } else { 2 }))
    };
    let policy = policy((0..4096).map(rule).collect());
    let compiled = compiled(&policy);
    assert_eq!((compiled.tables.rules, compiled.tables.many), (4096, 1));
    for n in [0u16, 1, 63, 64, 2047, 4095] {
        let packet = |port| Headers {
            proto: 17,
            addresses: Some((IpAddr::from([10, (n >> 8) as u8, n as u8, 9]), IpAddr::from([192, 0, 2, 1]))),
            ports: Some((9, port)),
            dscp: Some(0),
            vlan: None,
            pcp: None,
            tcp_flags: None,
            icmp: None,
            length: 100,
            interface: 0,
            mark: 0,
        };
        assert_eq!(by_tables(&compiled, &packet(n * 8 + 7)), if n % 2 == 0 { 1 } else { 2 }, "rule {n}");
        // The port of another rule.
        assert_eq!(by_tables(&compiled, &packet((n ^ 1) * 8)), DEFAULT, "rule {n}");
    }
}

#[test]
fn the_same_policy_gives_the_same_bytes() {
    let policy = policy(vec![Rule { vlan: Some(3), ..Rule::new(1, ClassId(2)) }]);
    let (a, b) = (compiled(&policy), compiled(&policy));
    assert!(abi::bytes_of(&*a.tables) == abi::bytes_of(&*b.tables));
    assert!(abi::bytes_of(&*a.sched[0]) == abi::bytes_of(&*b.sched[0]));
}
