//! Tables for plain packets where the only conditions of rules are the protocol and one of the two ports. The first rule for a packet
//! is then the first of two: of those that its source port satisfies and of those that its destination port does. Each port's set of rules is
//! a row.

use crate::bitmap::RuleSet;
use crate::rule::{Match, rules_without};
use sluice_abi as abi;

/// TCP and UDP, by the first index of `sl_tables.by_sport`.
const PROTOCOLS: [usize; 2] = [6, 17];

/// Fills the tables, whose rows have these sets, if the rules and their number allow it; returns whether they do.
pub(crate) fn fill(t: &mut abi::sl_tables, rules: &[Match], sets: &[RuleSet]) -> bool {
    let fields = abi::SL_FIELD_PROTO | abi::SL_FIELD_SPORT | abi::SL_FIELD_DPORT;
    let asks_both = |rule: &Match| !rule.src_ports.is_empty() && !rule.dst_ports.is_empty();
    if u32::from(t.fields) & !fields != 0 || rules.iter().any(asks_both) || sets.len() > abi::SL_PORT_ROWS as usize {
        return false;
    }
    let (no_dport, no_sport) = (
        rules_without(rules, |rule| !rule.dst_ports.is_empty()),
        rules_without(rules, |rule| !rule.src_ports.is_empty()),
    );
    for (i, protocol) in PROTOCOLS.into_iter().enumerate() {
        let of_protocol = &sets[usize::from(t.proto_row[protocol])];
        let (by_sport, by_dport) = (of_protocol.and(&no_dport), of_protocol.and(&no_sport));
        for (row, set) in sets.iter().enumerate() {
            t.by_sport[i][row] = word(t, rules, set.first_in_both(&by_sport));
            t.by_dport[i][row] = word(t, rules, set.first_in_both(&by_dport));
        }
    }
    true
}

/// A rule and its class, as the tables have them.
fn word(t: &abi::sl_tables, rules: &[Match], rule: Option<usize>) -> u32 {
    match rule {
        Some(rule) => (rule as u32) << 8 | u32::from(rules[rule].class.0),
        None => abi::SL_RULE_NONE << 8 | u32::from(t.default_class),
    }
}
