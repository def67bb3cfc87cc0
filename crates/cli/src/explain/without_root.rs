//! Explanations without root: the answer comes from the model that the loaded classifier is tested against.

use sluice_abi as abi;
use sluice_kernel::probe::Metadata;
use sluice_model::parse::{Seen, parse};
use sluice_model::rules::{Outside, choose};
use sluice_policy::{ClassFrom, Mode, Resolved};
use std::net::IpAddr;

/// Explains a frame by a policy alone.
pub fn explained(policy: &Resolved, frame: &[u8], metadata: Metadata) -> Box<abi::sl_explanation> {
    let seen = parse(frame);
    let interfaces = nix::net::if_::if_nameindex().map_or_else(
        |_| Vec::new(),
        |all| all.iter().map(|one| (one.name().to_string_lossy().into_owned(), one.index())).collect(),
    );
    let outside = Outside { mark: metadata.mark, interface: metadata.interface };
    let (rule, class) = match policy.mode {
        Mode::ScheduleOnly { by } => (abi::SL_RULE_NONE, named(policy, by, &seen, metadata.mark)),
        _ => choose(policy, &interfaces, &seen, outside),
    };
    let mut explanation = abi::boxed_zeroed::<abi::sl_explanation>();
    explanation.headers = abi::sl_headers { mark: metadata.mark, ..headers(&seen) };
    explanation.by_rules = u64::from(class) << 16 | u64::from(rule);
    explanation.choice = explanation.by_rules;
    explanation
}

/// The class that the packet names by its DSCP or mark.
fn named(policy: &Resolved, by: ClassFrom, seen: &Seen, mark: u32) -> u8 {
    let names = |class: &&sluice_policy::ResolvedClass| match by {
        ClassFrom::Dscp => seen.dscp.is_some_and(|dscp| class.dscp.contains(&dscp)),
        ClassFrom::Mark => class.marks.contains(&mark),
    };
    policy.classes.iter().find(names).map_or(policy.default_class.0, |class| class.id.0)
}

fn headers(seen: &Seen) -> abi::sl_headers {
    let words = |address: IpAddr| {
        let octets = match address {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => v6.octets(),
        };
        std::array::from_fn(|n| u32::from_ne_bytes(std::array::from_fn(|byte| octets[4 * n + byte])))
    };
    let (src, dst) = seen.addresses.map_or(([0; 4], [0; 4]), |(src, dst)| (words(src), words(dst)));
    let (sport, dport) = seen.ports.unwrap_or_default();
    abi::sl_headers {
        src,
        dst,
        proto: seen.proto as u16,
        sport,
        dport,
        length: seen.length.unwrap_or_default(),
        has_ports: seen.ports.is_some().into(),
        kind: seen.kind as u8,
        is_ip: seen.addresses.is_some().into(),
        fragment: match seen.fragment {
            Some((true, _)) => abi::SL_FIRST_FRAGMENT as u8,
            Some((false, _)) => abi::SL_LATER_FRAGMENT as u8,
            None => 0,
        },
        fragment_id: seen.fragment.map_or(0, |(_, id)| id),
        vlan: seen.tag.map_or(u16::MAX, |(id, _)| id),
        pcp: seen.tag.map_or(u8::MAX, |(_, priority)| priority),
        tcp_flags: seen.tcp_flags.map_or(u16::MAX, u16::from),
        icmp: seen.icmp.map_or(u16::MAX, |(v6, kind)| u16::from(kind) + if v6 { 256 } else { 0 }),
        dscp: seen.dscp.unwrap_or(u8::MAX),
        ..*abi::boxed_zeroed::<abi::sl_headers>()
    }
}
