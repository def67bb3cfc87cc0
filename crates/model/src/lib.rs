//! A slow, obvious model of the classifier, and random policies and packets that hold the loaded program against it.
//!
//! For each packet, three answers must be equal: the model's, which reads the bytes by itself and asks every rule in
//! turn; that of `sl_explain`, by the tables; and the class that the XDP program hands on, flow table and all.

pub mod findings;
pub mod limits;
pub mod parse;
pub mod random;
pub mod reload;
pub mod rules;

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use sluice_abi as abi;
use sluice_kernel::probe::{Metadata, Probe};
use sluice_policy::Resolved;
use std::collections::HashMap;

/// The coverage of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Summary {
    /// Packets whose answers were equal.
    pub packets: u64,
    /// Policies.
    pub policies: u64,
    /// Packets that a rule of the policy matched.
    pub matched: u64,
    /// Packets that were malformed or truncated.
    pub malformed: u64,
    /// Later fragments that had the class of their first fragment.
    pub followed: u64,
    /// Packets whose flow the table knew, and whose class came from there.
    pub remembered: u64,
}

/// Packets of one policy, before the next takes its place in the same program.
const PACKETS_OF_A_POLICY: u64 = 2_000;

/// The kinds of policies, in turns. Up to 64 rules are looked up another way than more, and rules for lengths and the like keep the
/// flow table from answering.
const POLICIES: [random::Kind; 6] = [
    random::Kind { rules: (20, 60), rare: 0.0 },
    random::Kind { rules: (65, 300), rare: 0.1 },
    random::Kind { rules: (0, 64), rare: 0.02 },
    random::Kind { rules: (65, 1500), rare: 0.0 },
    random::Kind { rules: (0, 60), rare: 0.1 },
    random::Kind { rules: (65, 300), rare: 0.02 },
];

/// Number of earlier packets of which variants may come.
const RECENT: usize = 30;

/// Compares so many packets. The error tells the first that differs.
pub fn compare(packets: u64, seed: u64) -> Result<Summary, String> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let interfaces = random::interfaces();
    let mut summary = Summary::default();
    let fail = |what: String| format!("seed {seed}: {what}");
    let mut policy = random::policy(&mut rng, POLICIES[0]);
    let probe = Probe::of_policy(&policy, &interfaces).map_err(|error| fail(error.to_string()))?;
    let mut generation = 1;
    let mut recent: Vec<Vec<u8>> = Vec::new();
    // The class of each packet's first fragment, by addresses and fragment id.
    let mut firsts: HashMap<Vec<u8>, u8> = HashMap::new();
    while summary.packets < packets {
        if summary.packets % PACKETS_OF_A_POLICY == 0 && summary.packets > 0 {
            policy = random::policy(&mut rng, POLICIES[summary.policies as usize % POLICIES.len()]);
            generation += 1;
            probe.hold(&policy, &interfaces, generation).map_err(|error| fail(error.to_string()))?;
            firsts.clear();
        }
        if summary.packets % PACKETS_OF_A_POLICY == 0 {
            summary.policies += 1;
        }
        let finding = findings::FRAMES.get(summary.packets as usize).map(|frame| frame.to_vec());
        let frame = match recent.choose(&mut rng) {
            _ if finding.is_some() => finding.unwrap_or_default(),
            Some(earlier) if rng.random_bool(0.4) => random::akin(&mut rng, earlier),
            _ => random::frame(&mut rng),
        };
        let place = rng.random_range(0..RECENT);
        match recent.get_mut(place) {
            Some(old) => old.clone_from(&frame),
            None => recent.push(frame.clone()),
        }
        let from_wire = Metadata { direction: abi::SL_INGRESS, interface: 1, ..Metadata::default() };
        let metadata = if rng.random_bool(0.7) {
            from_wire
        } else {
            let interface = [0, 2, 70_000, 3][rng.random_range(0..4)];
            Metadata { mark: [0, 1, 0x10, u32::MAX][rng.random_range(0..4)], interface, ..from_wire }
        };
        one(&probe, &policy, &frame, metadata, &mut firsts, &mut summary).map_err(|what| {
            fail(format!("{what}\n  packet {frame:02x?}\n  beside {metadata:?}\n  policy {policy:#?}"))
        })?;
        summary.packets += 1;
    }
    Ok(summary)
}

fn one(
    probe: &Probe,
    policy: &Resolved,
    frame: &[u8],
    metadata: Metadata,
    firsts: &mut HashMap<Vec<u8>, u8>,
    summary: &mut Summary,
) -> Result<(), String> {
    let seen = parse::parse(frame);
    let outside = rules::Outside { mark: metadata.mark, interface: metadata.interface };
    let due = rules::choose(policy, &random::interfaces(), &seen, outside);
    let told = probe.explain(frame, metadata).map_err(|error| error.to_string())?;
    let by_rules = ((told.by_rules & 0xffff) as u32, (told.by_rules >> 16) as u8);
    if by_rules != due {
        return Err(format!("rule and class {by_rules:?} by the tables, {due:?} by the model, which saw {seen:?}"));
    }
    let h = &told.headers;
    let same = (u32::from(h.kind), u32::from(h.proto), h.has_ports != 0, h.is_ip != 0)
        == (seen.kind, seen.proto, seen.ports.is_some(), seen.addresses.is_some());
    if !same || seen.ports.is_some_and(|ports| ports != (h.sport, h.dport)) {
        return Err(format!("parsed as {h:?}, by the model as {seen:?}"));
    }
    let malformed = abi::parse_kinds().nth(seen.kind as usize).is_some_and(|kind| kind.malformed);
    summary.malformed += u64::from(malformed);
    summary.matched += u64::from(due.0 < abi::SL_RULES);
    summary.remembered += u64::from(told.by_flow != 0);
    // Packets of built-in rules are policed, by the clock: the model cannot say whether they pass.
    let control = (abi::SL_RULE_ARP..abi::SL_RULE_NONE).contains(&due.0);
    if metadata.mark == 0 && metadata.interface == 1 && !control {
        let handed = probe.class_by_xdp(frame).map_err(|error| error.to_string())?;
        let asks = |rule: &sluice_policy::Rule| rule.vlan.is_some() || rule.pcp.is_some() || rule.mark.is_some();
        let blind = policy.rules.iter().any(|resolved| asks(&resolved.rule));
        let Some(class) = handed.filter(|_| !blind) else {
            return if handed.is_none() == blind { Ok(()) } else { Err(format!("XDP hands on {handed:?}")) };
        };
        let mut id = [bytes_of_words(&h.src), bytes_of_words(&h.dst)].concat();
        id.extend(h.fragment_id.to_ne_bytes());
        let expected = match u32::from(h.fragment) {
            abi::SL_FIRST_FRAGMENT => {
                firsts.insert(id, due.1);
                due.1
            }
            abi::SL_LATER_FRAGMENT => {
                summary.followed += u64::from(firsts.contains_key(&id));
                firsts.get(&id).copied().unwrap_or(due.1)
            }
            _ => due.1,
        };
        if class != expected {
            return Err(format!("the XDP program hands on class {class}, due is {expected}; {seen:?}"));
        }
    }
    Ok(())
}

fn bytes_of_words(words: &[u32; 4]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}
