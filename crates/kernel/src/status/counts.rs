//! The counters of the hooks, and those of rules at hooks and queues, summed.

use super::{Count, RuleStatus, text};
use crate::maps::counters::{RuleCounts, counts, per_cpu};
use crate::record::rule_starts::RuleStarts;
use libbpf_rs::MapHandle;
use sluice_abi as abi;
use sluice_error::Result;
use std::collections::BTreeMap;

/// The hooks' counters of a class.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HookCount {
    pub seen: Count,
    /// Refused packets, by `enum sl_limit`.
    pub refused: [Count; abi::SL_LIMITS as usize],
    pub malformed: Count,
}

/// The counters by class, from the map `class_counts`.
pub(crate) fn class_counts(map: &MapHandle, direction: u32) -> Result<Vec<HookCount>> {
    let first = direction * abi::SL_CLASSES;
    let counts = per_cpu::<abi::sl_class_count>(map, first..first + abi::SL_CLASSES)?;
    let sum = |cpus: Vec<Box<abi::sl_class_count>>| {
        let mut sum = HookCount::default();
        for cpu in cpus {
            sum.seen.add(cpu.seen.into());
            sum.refused.iter_mut().zip(cpu.refused).for_each(|(sum, refused)| sum.add(refused.into()));
            sum.malformed.add(cpu.malformed.into());
        }
        sum
    };
    Ok(counts.into_iter().map(sum).collect())
}

/// Packets by the kind of their headers. The programs do not count plain IPv4, the commonest kind: it is the rest of all packets
/// that the rules have seen.
pub(super) fn parsed(map: &MapHandle, direction: u32, all: Count) -> Result<BTreeMap<&'static str, Count>> {
    let first = direction * abi::SL_PARSES;
    let mut counts = counts(map, first..first + abi::SL_PARSES)?;
    let mut left = all;
    counts.iter().for_each(|other| left.take(*other));
    counts[abi::SL_PARSE_IPV4 as usize] = left;
    Ok(abi::parse_kinds()
        .zip(counts)
        .filter(|(_, count)| count.pkts > 0)
        .map(|(kind, count)| (kind.name, count))
        .collect())
}

/// Packets that rules have matched in a direction.
pub(super) struct Matched {
    /// Count of each rule of the policy since it came, then of each `enum sl_no_rule`.
    own: Vec<Count>,
    /// Count of all rules that there have ever been.
    pub all: Count,
}

pub(super) fn matched(
    counts: &RuleCounts,
    direction: u32,
    live: &abi::sl_tables,
    starts: &RuleStarts,
) -> Result<Matched> {
    let counted = counts.of(direction, 0..live.rules.max(starts.places))?;
    let others = counts.of(direction, abi::SL_RULES..abi::SL_RULE_NONE + 1)?;
    let mut all = Count::default();
    counted.iter().chain(&others).for_each(|count| all.add(*count));
    let own = counted.iter().take(live.rules as usize).enumerate();
    let own = own.map(|(place, count)| starts.own(place, direction as usize, *count));
    Ok(Matched { own: own.chain(others).collect(), all })
}

/// The built-in rules, in the order of `enum sl_no_rule` from `SL_RULE_ARP` on.
pub(crate) const BUILTIN: [&str; 4] = ["ARP", "neighbour discovery", "DHCP", "DHCPv6"];

/// The rules in the order in which they are asked, and the packets that none of them matched; from counts of both directions.
pub(super) fn rules(live: &abi::sl_tables, counts: &[Matched; 2]) -> (Vec<RuleStatus>, Count) {
    let [leaving, arriving] = counts;
    let counts: Vec<Count> = leaving.own.iter().zip(&arriving.own).map(|(one, other)| one.plus(*other)).collect();
    let own = live.rule.iter().take(live.rules as usize).zip(&counts).map(|(rule, matched)| RuleStatus {
        name: text(&rule.name),
        priority: Some(rule.priority),
        line: (rule.line > 0).then_some(rule.line),
        matches: String::new(),
        class: rule.class,
        matched: *matched,
    });
    let mut rules: Vec<RuleStatus> = own.collect();
    if u32::from(live.class_from) == abi::SL_FROM_RULES {
        let builtin = BUILTIN.iter().zip(&counts[live.rules as usize..]).map(|(name, matched)| RuleStatus {
            name: (*name).to_owned(),
            priority: None,
            line: None,
            matches: String::new(),
            class: live.urgent_class,
            matched: *matched,
        });
        let at = (live.control_from as usize).min(rules.len());
        rules.splice(at..at, builtin);
    }
    (rules, counts[live.rules as usize + BUILTIN.len()])
}
