//! Which rules can never match because an earlier one takes everything that they would.

use crate::policy::{Protocol, Rule};
use ipnet::IpNet;

/// For each rule that an earlier one covers whole: the places of both in `rules`, the later first.
pub(crate) fn shadowed(rules: &[Rule]) -> Vec<(usize, usize)> {
    let mut order: Vec<usize> = (0..rules.len()).collect();
    order.sort_by_key(|&i| rules[i].priority);
    let mut pairs = Vec::new();
    for (n, &later) in order.iter().enumerate() {
        if let Some(&earlier) = order[..n].iter().find(|&&earlier| covers(&rules[earlier], &rules[later])) {
            pairs.push((later, earlier));
        }
    }
    pairs
}

/// Whether `a` matches every packet that `b` matches.
fn covers(a: &Rule, b: &Rule) -> bool {
    covers_prefix(a.src, b.src)
        && covers_prefix(a.dst, b.dst)
        && covers_ports(a.src_ports, b.src_ports)
        && covers_ports(a.dst_ports, b.dst_ports)
        && covers_protocol(a, b)
        && (a.dscp.is_none() || a.dscp == b.dscp)
        && (a.vlan.is_none() || a.vlan == b.vlan)
}

fn covers_prefix(a: Option<IpNet>, b: Option<IpNet>) -> bool {
    match (a, b) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(a), Some(b)) => a.contains(&b),
    }
}

fn covers_ports(a: Option<(u16, u16)>, b: Option<(u16, u16)>) -> bool {
    match (a, b) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(a), Some(b)) => a.0 <= b.0 && b.1 <= a.1,
    }
}

/// ICMP stands for two protocols, so it covers their numbers and neither number covers it.
fn covers_protocol(a: &Rule, b: &Rule) -> bool {
    match (a.protocol, b.protocol) {
        (Protocol::Any, _) => true,
        (Protocol::Icmp, Protocol::Number(number)) => number == 1 || number == 58,
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::ClassId;

    fn rule(priority: u32, change: impl Fn(&mut Rule)) -> Rule {
        let mut rule = Rule::new(priority, ClassId(0));
        change(&mut rule);
        rule
    }

    #[test]
    fn finds_what_cannot_match() {
        let wide = |r: &mut Rule| r.src = Some("10.0.0.0/8".parse().unwrap());
        let narrow = |r: &mut Rule| {
            r.src = Some("10.1.0.0/16".parse().unwrap());
            r.protocol = Protocol::Tcp;
            r.dst_ports = Some((80, 80));
        };
        // The order of the file does not matter, the priority does.
        assert_eq!(shadowed(&[rule(20, narrow), rule(10, wide)]), [(0, 1)]);
        assert_eq!(shadowed(&[rule(10, narrow), rule(20, wide)]), []);
    }

    #[test]
    fn each_field_counts() {
        let any = || Rule::new(1, ClassId(0));
        let narrower: [fn(&mut Rule); 7] = [
            |r| r.src = Some("10.0.0.0/8".parse().unwrap()),
            |r| r.dst = Some("2001:db8::/32".parse().unwrap()),
            |r| r.src_ports = Some((1, 9)),
            |r| r.dst_ports = Some((1, 9)),
            |r| r.protocol = Protocol::Udp,
            |r| r.dscp = Some(46),
            |r| r.vlan = Some(7),
        ];
        for change in narrower {
            assert!(covers(&any(), &rule(2, change)));
            assert!(!covers(&rule(2, change), &any()));
            assert!(covers(&rule(2, change), &rule(3, change)));
        }
        let ports = |range| rule(1, |r| r.dst_ports = Some(range));
        assert!(covers(&ports((1, 9)), &ports((2, 9))) && !covers(&ports((1, 9)), &ports((2, 10))));
        let protocol = |protocol| rule(1, |r| r.protocol = protocol);
        assert!(covers(&protocol(Protocol::Icmp), &protocol(Protocol::Number(58))));
        assert!(!covers(&protocol(Protocol::Number(58)), &protocol(Protocol::Icmp)));
    }
}
