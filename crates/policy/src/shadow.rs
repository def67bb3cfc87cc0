//! Shadowed rules, which can never match because an earlier rule takes all of their packets.
//!
//! A reported rule is certainly shadowed. A rule that is covered only by several rules together, or only because fields exclude
//! each other, is not reported. For most pairs it is enough to compare the ends of a field's ranges.

use crate::icmp;
use crate::policy::{Policy, Protocol, Rule, Term, Terms};
use ipnet::IpNet;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;

/// An address or a port. No address of one family lies between those of the other.
type Number = (bool, u128);

/// For each rule that an earlier one covers: the places of both in the policy, the later first.
pub(crate) fn shadowed(policy: &Policy) -> Vec<(usize, usize)> {
    let rules = &policy.rules;
    let mut order: Vec<usize> = (0..rules.len()).collect();
    order.sort_by_key(|&i| rules[i].priority);
    let ordered = || order.iter().map(|&i| &rules[i]);
    let nets = |set: &str| policy.address_sets.get(set).map_or(&[][..], Vec::as_slice);
    let ports = |set: &str| policy.port_sets.get(set).map_or(&[][..], Vec::as_slice);
    let fields = [
        Values::of(ordered().map(|rule| &rule.src), nets, addresses),
        Values::of(ordered().map(|rule| &rule.dst), nets, addresses),
        Values::of(ordered().map(|rule| &rule.src_ports), ports, numbers),
        Values::of(ordered().map(|rule| &rule.dst_ports), ports, numbers),
    ];
    let outlines: Vec<Outline> = ordered().enumerate().map(|(n, rule)| Outline::new(rule, &fields, n)).collect();
    let covers = |a: usize, b: usize| {
        outlines[a].may_cover(&outlines[b])
            && fields.iter().all(|field| field.covers(a, b))
            && covers_the_rest(&rules[order[a]], &rules[order[b]])
    };
    let first = |b: usize| (0..b).find(|&a| covers(a, b)).map(|a| (order[b], order[a]));
    (0..order.len()).filter_map(first).collect()
}

/// An outline of a rule, by which most pairs of rules are quickly excluded.
struct Outline {
    /// The fields with conditions.
    asked: u16,
    /// The hull of each field with ranges.
    hulls: [Hull; 4],
}

impl Outline {
    fn new(rule: &Rule, fields: &[Values; 4], n: usize) -> Outline {
        let asked = [
            !rule.src.is_empty(),
            !rule.dst.is_empty(),
            !rule.src_ports.is_empty(),
            !rule.dst_ports.is_empty(),
            protocol(rule) != Protocol::Any,
            rule.dscp.is_some(),
            rule.vlan.is_some(),
            rule.pcp.is_some(),
            rule.icmp.is_some(),
            rule.tcp_flags.is_some(),
            rule.length.is_some(),
            rule.in_interface.is_some(),
            rule.mark.is_some(),
        ];
        let asked = asked.iter().enumerate().fold(0, |bits, (bit, &asks)| bits | u16::from(asks) << bit);
        Outline { asked, hulls: [0, 1, 2, 3].map(|field: usize| fields[field].hull(n)) }
    }

    /// Whether the rule may cover another. There are no branches, since the failing comparison cannot be predicted.
    fn may_cover(&self, other: &Outline) -> bool {
        let inside = |field: usize| {
            let (a, b) = (&self.hulls[field], &other.hulls[field]);
            (a.low <= b.low) & (b.high <= a.high) & ((a.size > b.size) | (a.number == b.number))
        };
        (self.asked & !other.asked == 0) & inside(0) & inside(1) & inside(2) & inside(3)
    }
}

/// The hull of a field's values. Sets of the same number of values that are not equal do not cover each other.
#[derive(Clone, Copy)]
struct Hull {
    /// The least and the greatest value, by rank among all of them.
    low: u32,
    high: u32,
    /// The number of values, by rank.
    size: u32,
    /// The number of this set of values.
    number: u32,
}

/// The values of one field in all rules.
struct Values {
    /// The number of ranges by rule; 0 without a condition.
    of_rule: Vec<usize>,
    /// Disjoint and in order, neighbours made one.
    ranges: Vec<Vec<(Number, Number)>>,
    hulls: Vec<Hull>,
}

impl Values {
    fn of<'p, T: Hash + Eq + 'p>(
        rules: impl Iterator<Item = &'p Terms<T>>,
        set: impl Fn(&str) -> &'p [T],
        range: fn(&T) -> (Number, Number),
    ) -> Values {
        let mut known: HashMap<&Terms<T>, usize> = HashMap::new();
        let mut numbers: HashMap<Vec<(Number, Number)>, usize> = HashMap::new();
        let mut ranges = vec![Vec::new()];
        let of_rule = rules.map(|terms| {
            if terms.is_empty() {
                return 0;
            }
            *known.entry(terms).or_insert_with(|| {
                let values = terms.iter().flat_map(|term| match term {
                    Term::Is(value) => std::slice::from_ref(value),
                    Term::In(name) => set(name),
                });
                let own = joined(values.map(range).collect());
                *numbers.entry(own.clone()).or_insert_with(|| {
                    ranges.push(own);
                    ranges.len() - 1
                })
            })
        });
        let of_rule = of_rule.collect();
        let hulls = hulls(&ranges);
        Values { of_rule, ranges, hulls }
    }

    fn hull(&self, n: usize) -> Hull {
        self.hulls[self.of_rule[n]]
    }

    /// Whether rule `a` takes every value that rule `b` takes.
    fn covers(&self, a: usize, b: usize) -> bool {
        let (a, b) = (self.of_rule[a], self.of_rule[b]);
        let inside = |&(low, high): &(Number, Number)| {
            let after = self.ranges[a].partition_point(|&(start, _)| start <= low);
            after > 0 && high <= self.ranges[a][after - 1].1
        };
        a == 0 || a == b || (!self.ranges[b].is_empty() && self.ranges[b].iter().all(inside))
    }
}

/// The hulls by number; the first one, of rules without a condition, covers everything.
fn hulls(ranges: &[Vec<(Number, Number)>]) -> Vec<Hull> {
    let ends = |ranges: &[(Number, Number)]| Some((ranges.first()?.0, ranges.last()?.1));
    let size = |ranges: &[(Number, Number)]| {
        ranges.iter().fold(0u128, |sum, (low, high)| sum.saturating_add(high.1 - low.1).saturating_add(1))
    };
    let all_ends = distinct(ranges.iter().filter_map(|own| ends(own)).flat_map(|(low, high)| [low, high]).collect());
    let all_sizes = distinct(ranges.iter().map(|own| size(own)).collect());
    let hull = |(number, own): (usize, &Vec<(Number, Number)>)| {
        let (low, high) =
            ends(own).map_or((0, u32::MAX), |(low, high)| (rank(&all_ends, &low), rank(&all_ends, &high)));
        let size = if number == 0 { u32::MAX } else { rank(&all_sizes, &size(own)) };
        Hull { low, high, size, number: number as u32 }
    };
    ranges.iter().enumerate().map(hull).collect()
}

fn distinct<T: Ord>(mut values: Vec<T>) -> Vec<T> {
    values.sort_unstable();
    values.dedup();
    values
}

fn rank<T: Ord>(values: &[T], value: &T) -> u32 {
    values.partition_point(|other| other < value) as u32
}

/// Sorted ranges, with overlapping and adjacent ones joined.
fn joined(mut ranges: Vec<(Number, Number)>) -> Vec<(Number, Number)> {
    ranges.sort_unstable();
    let mut out: Vec<(Number, Number)> = Vec::new();
    for (low, high) in ranges {
        match out.last_mut() {
            Some(last) if low <= (last.1.0, last.1.1.saturating_add(1)) => last.1 = last.1.max(high),
            _ => out.push((low, high)),
        }
    }
    out
}

fn addresses(net: &IpNet) -> (Number, Number) {
    let number = |addr| match addr {
        IpAddr::V4(addr) => (false, u128::from(u32::from(addr))),
        IpAddr::V6(addr) => (true, u128::from(addr)),
    };
    (number(net.network()), number(net.broadcast()))
}

fn numbers(&(low, high): &(u16, u16)) -> (Number, Number) {
    ((false, low.into()), (false, high.into()))
}

/// The protocol that a rule's other fields leave possible.
fn protocol(rule: &Rule) -> Protocol {
    match rule.protocol {
        Protocol::Any if rule.tcp_flags.is_some() => Protocol::Tcp,
        Protocol::Any if rule.icmp.is_some() => Protocol::Icmp,
        own => own,
    }
}

/// Whether `a` covers `b` in the fields without lists.
fn covers_the_rest(a: &Rule, b: &Rule) -> bool {
    fn same<T: PartialEq>(a: &Option<T>, b: &Option<T>) -> bool {
        a.is_none() || a == b
    }
    covers_protocol(protocol(a), protocol(b))
        && same(&a.dscp, &b.dscp)
        && same(&a.vlan, &b.vlan)
        && same(&a.pcp, &b.pcp)
        && same(&a.in_interface, &b.in_interface)
        && same(&a.mark, &b.mark)
        && both(a.icmp, b.icmp, |a, b| (b.v4.is_none() || a.v4 == b.v4) && (b.v6.is_none() || a.v6 == b.v6))
        && both(a.tcp_flags, b.tcp_flags, |a, b| a.set & !b.set == 0 && a.clear & !b.clear == 0)
        && both(a.length, b.length, |a, b| a.0 <= b.0 && b.1 <= a.1)
}

/// Whether one condition covers another; no condition covers every condition, and not the other way round.
fn both<T>(a: Option<T>, b: Option<T>, covers: impl Fn(T, T) -> bool) -> bool {
    match (a, b) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(a), Some(b)) => covers(a, b),
    }
}

/// ICMP stands for two protocols, so it covers their numbers and neither number covers it.
fn covers_protocol(a: Protocol, b: Protocol) -> bool {
    match (a, b) {
        (Protocol::Any, _) => true,
        (Protocol::Icmp, b) => icmp::has_types(b) && b != Protocol::Any,
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class_id::ClassId;
    use crate::policy::{IcmpType, TcpFlags};
    use crate::source::Source;

    fn policy(rules: Vec<Rule>) -> Policy {
        let text = r#"{ "scheduler": "round_robin", "classes": [{ "id": 0 }],
            "address_sets": { "lan": ["10.0.0.0/9", "10.128.0.0/9", "fd00::/8"], "part": ["10.0.0.0/10", "fd00::/16"] },
            "port_sets": { "web": [80, 443, "8000-8999"] } }"#;
        Policy { rules, ..crate::parse(&Source::new("test", text)).unwrap() }
    }

    fn rule(priority: u32, change: impl Fn(&mut Rule)) -> Rule {
        let mut rule = Rule::new(priority, ClassId(0));
        change(&mut rule);
        rule
    }

    fn covers(a: impl Fn(&mut Rule), b: impl Fn(&mut Rule)) -> bool {
        !shadowed(&policy(vec![rule(1, a), rule(2, b)])).is_empty()
    }

    fn nets(texts: &[&str]) -> Terms<IpNet> {
        let term = |text: &&str| match text.strip_prefix('@') {
            Some(set) => Term::In(set.into()),
            None => Term::Is(text.parse().unwrap()),
        };
        texts.iter().map(term).collect()
    }

    fn ports(ranges: &[(u16, u16)]) -> Terms<(u16, u16)> {
        ranges.iter().copied().map(Term::Is).collect()
    }

    #[test]
    fn finds_shadowed_rules() {
        let wide = |r: &mut Rule| r.src = nets(&["10.0.0.0/8"]);
        let narrow = |r: &mut Rule| {
            r.src = nets(&["10.1.0.0/16"]);
            r.protocol = Protocol::Tcp;
            r.dst_ports = ports(&[(80, 80)]);
        };
        // The order of the file does not matter, the priority does.
        assert_eq!(shadowed(&policy(vec![rule(20, narrow), rule(10, wide)])), [(0, 1)]);
        assert_eq!(shadowed(&policy(vec![rule(10, narrow), rule(20, wide)])), []);
    }

    #[test]
    fn every_field_is_compared() {
        let narrower: [fn(&mut Rule); 13] = [
            |r| r.src = nets(&["10.0.0.0/8"]),
            |r| r.dst = nets(&["2001:db8::/32"]),
            |r| r.src_ports = ports(&[(1, 9)]),
            |r| r.dst_ports = ports(&[(1, 9)]),
            |r| r.protocol = Protocol::Udp,
            |r| r.dscp = Some(46),
            |r| r.vlan = Some(7),
            |r| r.pcp = Some(0),
            |r| r.icmp = Some(IcmpType { v4: Some(8), v6: Some(128) }),
            |r| r.tcp_flags = Some(TcpFlags { set: 2, clear: 0 }),
            |r| r.length = Some((0, u16::MAX)),
            |r| r.in_interface = Some("eth0".into()),
            |r| r.mark = Some(0),
        ];
        for change in narrower {
            assert!(covers(|_| {}, change) && !covers(change, |_| {}) && covers(change, change));
        }
    }

    #[test]
    fn value_ranges_cover_their_parts() {
        for (a, b, expected) in [((1, 9), (2, 9), true), ((1, 9), (2, 10), false)] {
            assert_eq!(covers(|r| r.dst_ports = ports(&[a]), |r| r.dst_ports = ports(&[b])), expected);
            assert_eq!(covers(|r| r.length = Some(a), |r| r.length = Some(b)), expected);
        }
        let protocol = |a, b| covers(|r| r.protocol = a, |r| r.protocol = b);
        assert!(protocol(Protocol::Icmp, Protocol::Number(58)) && !protocol(Protocol::Number(58), Protocol::Icmp));
        assert!(!protocol(Protocol::Icmp, Protocol::Any) && !protocol(Protocol::Icmp, Protocol::Number(2)));
        let flags = |set, clear| move |r: &mut Rule| r.tcp_flags = Some(TcpFlags { set, clear });
        assert!(covers(flags(2, 0), flags(2, 16)) && !covers(flags(2, 16), flags(2, 0)));
        assert!(covers(|r| r.protocol = Protocol::Tcp, flags(2, 0)), "only TCP has flags");
        let icmp = |v4, v6| move |r: &mut Rule| r.icmp = Some(IcmpType { v4, v6 });
        assert!(covers(icmp(Some(8), Some(128)), icmp(Some(8), None)));
        assert!(!covers(icmp(Some(8), None), icmp(Some(8), Some(128))));
    }

    #[test]
    fn lists_and_sets() {
        let src = |texts: &'static [&'static str]| move |r: &mut Rule| r.src = nets(texts);
        assert!(covers(src(&["@lan"]), src(&["10.0.0.0/8"])), "two halves make the whole");
        assert!(covers(src(&["@lan"]), src(&["@part", "10.200.0.0/16"])));
        assert!(!covers(src(&["@part"]), src(&["@lan"])));
        assert!(!covers(src(&["10.0.0.0/8"]), src(&["@lan"])), "not the IPv6 part");
        assert!(!covers(src(&["::/0"]), src(&["10.0.0.0/8"])), "IPv4 is no part of IPv6");
        assert!(!covers(src(&["0.0.0.0/32", "255.255.255.255/32"]), src(&["10.0.0.0/8"])), "a gap");
        let web = |r: &mut Rule| r.dst_ports = vec![Term::In("web".into())];
        assert!(covers(web, |r| r.dst_ports = ports(&[(443, 443), (8080, 8090)])));
        assert!(!covers(web, |r| r.dst_ports = ports(&[(443, 444)])));
    }
}
