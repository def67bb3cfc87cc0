//! Rules and the sets that they name, as text.

use super::parts::{Fields, object};
use crate::rule::{Protocol, Rule, Term, Terms};
use crate::{dscp, icmp, tcp_flags, terms};
use serde_json::Value;
use std::collections::BTreeMap;

/// One element a line.
pub(crate) fn list(elements: impl Iterator<Item = Fields>) -> String {
    let lines: Vec<String> = elements.map(|fields| format!("\n    {}", object(&fields))).collect();
    if lines.is_empty() { "[]".into() } else { format!("[{}\n  ]", lines.join(",")) }
}

/// One set a line; nothing if there are none.
pub(crate) fn sets<T>(key: &str, sets: &BTreeMap<String, Vec<T>>, value: fn(&T) -> Value) -> String {
    if sets.is_empty() {
        return String::new();
    }
    let of = |values: &Vec<T>| values.iter().map(value).map(|value| value.to_string()).collect::<Vec<_>>().join(", ");
    let lines: Vec<String> = sets.iter().map(|(name, values)| format!("\n    \"{name}\": [{}]", of(values))).collect();
    format!("  \"{key}\": {{{}\n  }},\n", lines.join(","))
}

pub(crate) fn rule(rule: &Rule) -> Fields {
    let mut fields = Fields::new();
    if let Some(name) = &rule.name {
        fields.push(("name", name.clone().into()));
    }
    fields.push(("priority", rule.priority.into()));
    for (key, nets) in [("src_ip", &rule.src), ("dst_ip", &rule.dst)] {
        fields.extend(one_or_list(nets, |net| terms::prefix(net).into()).map(|value| (key, value)));
    }
    ports(&mut fields, ["src_port", "src_port_min", "src_port_max"], &rule.src_ports);
    ports(&mut fields, ["dst_port", "dst_port_min", "dst_port_max"], &rule.dst_ports);
    match rule.protocol {
        Protocol::Any => {}
        Protocol::Number(number) => fields.push(("protocol", number.into())),
        named => fields.push(("protocol", named.to_string().into())),
    }
    if let Some(value) = rule.dscp {
        fields.push(("dscp", dscp_value(value)));
    }
    if let Some(vlan) = rule.vlan {
        fields.push(("vlan_id", vlan.into()));
    }
    if let Some(pcp) = rule.pcp {
        fields.push(("pcp", pcp.into()));
    }
    if let Some(kind) = rule.icmp {
        fields.push(("icmp_type", icmp::name(kind, rule.protocol).map_or_else(Value::from, Value::from)));
    }
    if let Some(flags) = rule.tcp_flags {
        fields.push(("tcp_flags", tcp_flags::format(flags).into()));
    }
    if let Some((min, max)) = rule.length {
        // Without both ends the rule would have no condition, and would match other packets than IP.
        if min > 0 || max == u16::MAX {
            fields.push(("length_min", min.into()));
        }
        if max < u16::MAX {
            fields.push(("length_max", max.into()));
        }
    }
    if let Some(name) = &rule.in_interface {
        fields.push(("in_interface", name.clone().into()));
    }
    if let Some(mark) = rule.mark {
        fields.push(("mark", mark.into()));
    }
    fields.push(("class_id", rule.class.0.into()));
    fields
}

/// A single value or set stands alone.
fn one_or_list<T>(terms: &Terms<T>, value: impl Fn(&T) -> Value) -> Option<Value> {
    let one = |term: &Term<T>| match term {
        Term::Is(own) => value(own),
        Term::In(set) => format!("@{set}").into(),
    };
    match &terms[..] {
        [] => None,
        [term] => Some(one(term)),
        terms => Some(terms.iter().map(one).collect()),
    }
}

/// A single range is written in the published form.
fn ports(fields: &mut Fields, [key, min_key, max_key]: [&'static str; 3], terms: &Terms<(u16, u16)>) {
    if let [Term::Is((min, max))] = terms[..] {
        fields.push((min_key, min.into()));
        // The first alone is that one port.
        if max != min {
            fields.push((max_key, max.into()));
        }
        return;
    }
    fields.extend(one_or_list(terms, port_value).map(|value| (key, value)));
}

pub(crate) fn port_value(range: &(u16, u16)) -> Value {
    if range.0 == range.1 { range.0.into() } else { terms::ports(range).into() }
}

pub(crate) fn dscp_value(value: u8) -> Value {
    dscp::name(value).map_or(value.into(), Value::from)
}
