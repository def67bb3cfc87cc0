//! A policy as text in the native format, in one canonical form: reading it gives the same policy.

use crate::dscp;
use crate::limit::Limit;
use crate::link::{Cells, Framing, Link, SplitGso};
use crate::policy::{Class, ClassFrom, Exceed, Malformed, Mode, Policy, Protocol, Rule};
use crate::scheduler::Scheduler;
use crate::time;
use ipnet::IpNet;
use serde_json::Value;

/// The policy in the native format. What has a default and is at it is left out, except what people look for first.
pub fn print(policy: &Policy) -> String {
    let mut text = String::from("{\n");
    for (key, value) in header(policy) {
        text += &format!("  \"{key}\": {value},\n");
    }
    if policy.link != Link::default() {
        text += &format!("  \"link\": {},\n", object(&link(&policy.link)));
    }
    text += &format!("  \"classes\": {},\n", list(policy.classes.iter().map(class)));
    text += &format!("  \"rules\": {}\n}}\n", list(policy.rules.iter().map(rule)));
    text
}

type Fields = Vec<(&'static str, Value)>;

/// One object on one line.
fn object(fields: &Fields) -> String {
    if fields.is_empty() {
        return "{}".into();
    }
    let fields: Vec<String> = fields.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
    format!("{{ {} }}", fields.join(", "))
}

/// One element a line.
fn list(elements: impl Iterator<Item = Fields>) -> String {
    let lines: Vec<String> = elements.map(|fields| format!("\n    {}", object(&fields))).collect();
    if lines.is_empty() { "[]".into() } else { format!("[{}\n  ]", lines.join(",")) }
}

fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: &T) -> Value {
    names.iter().find(|(_, known)| known == value).map_or(Value::Null, |&(name, _)| name.into())
}

fn header(policy: &Policy) -> Fields {
    let mut fields: Fields = vec![("version", policy.version.into()), ("name", policy.name.clone().into())];
    if let Some(description) = &policy.description {
        fields.push(("description", description.clone().into()));
    }
    fields.push(("scheduler", policy.scheduler.name().into()));
    if policy.scheduler == Scheduler::Pifo {
        fields.push(("rank", policy.rank.name().into()));
    }
    if policy.mode != Mode::default() {
        fields.push(("mode", policy.mode.name().into()));
    }
    if let Mode::ScheduleOnly { by } = policy.mode {
        fields.push(("class_from", name_of(ClassFrom::NAMES, &by)));
    }
    if let Some(id) = policy.default_class {
        fields.push(("default_class", id.0.into()));
    }
    fields.push(("flow_table", policy.flows.into()));
    if policy.malformed != Malformed::default() {
        fields.push(("malformed", name_of(Malformed::NAMES, &policy.malformed)));
    }
    fields
}

fn link(link: &Link) -> Fields {
    let mut fields = Fields::new();
    if let Some(rate) = link.rate {
        fields.push(("rate", rate.to_string().into()));
    }
    if link.framing != Framing::default() {
        match Framing::PRESETS.iter().find(|(_, preset)| *preset == link.framing) {
            Some(&(name, _)) => fields.push(("overhead", name.into())),
            None => {
                fields.push(("overhead", link.framing.overhead_bytes.into()));
                fields.push(("mpu", link.framing.mpu_bytes.into()));
                fields.push(("cells", name_of(Cells::NAMES, &link.framing.cells)));
            }
        }
    }
    if let Some(burst) = link.burst {
        fields.push(("burst", burst.to_string().into()));
    }
    if link.split_gso != SplitGso::default() {
        fields.push(("split_gso", name_of(SplitGso::NAMES, &link.split_gso)));
    }
    fields
}

fn class(class: &Class) -> Fields {
    let mut fields: Fields = vec![
        ("id", class.id.0.into()),
        ("name", class.name.clone().into()),
        ("priority", class.priority.into()),
        ("weight", class.weight.into()),
        ("quantum", class.quantum_bytes.into()),
    ];
    if let Some(ns) = class.latency_budget_ns {
        fields.push(("latency_budget", time::format(ns).into()));
    }
    if let Some(rate) = class.rate {
        fields.push(("rate", rate.to_string().into()));
    }
    if let Some(ceil) = class.ceil {
        fields.push(("ceil", ceil.to_string().into()));
    }
    if let Some(burst) = class.burst {
        fields.push(("burst", burst.to_string().into()));
    }
    match class.limit {
        Some(Limit::Pkts(pkts)) => fields.push(("limit", pkts.into())),
        Some(limit) => fields.push(("limit", limit.to_string().into())),
        None => {}
    }
    if class.exceed == Exceed::Police {
        fields.push(("police", true.into()));
    }
    if !class.dscp.is_empty() {
        fields.push(("dscp", class.dscp.iter().map(|&value| dscp_value(value)).collect()));
    }
    if !class.marks.is_empty() {
        fields.push(("mark", class.marks.iter().copied().collect()));
    }
    fields
}

fn dscp_value(value: u8) -> Value {
    dscp::name(value).map_or(value.into(), Value::from)
}

fn rule(rule: &Rule) -> Fields {
    let mut fields = Fields::new();
    if let Some(name) = &rule.name {
        fields.push(("name", name.clone().into()));
    }
    fields.push(("priority", rule.priority.into()));
    for (key, net) in [("src_ip", rule.src), ("dst_ip", rule.dst)] {
        if let Some(net) = net {
            fields.push((key, prefix(net).into()));
        }
    }
    let ends = [("src_port_min", "src_port_max", rule.src_ports), ("dst_port_min", "dst_port_max", rule.dst_ports)];
    for (min_key, max_key, ports) in ends {
        if let Some((min, max)) = ports {
            fields.push((min_key, min.into()));
            // The first alone is that one port.
            if max != min {
                fields.push((max_key, max.into()));
            }
        }
    }
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
    fields.push(("class_id", rule.class.0.into()));
    fields
}

/// A prefix as policies write it: `0.0.0.0/0` would be read as any address of either family.
pub(crate) fn prefix(net: IpNet) -> String {
    match net {
        net if net.prefix_len() > 0 => net.to_string(),
        IpNet::V4(_) => "ipv4".into(),
        IpNet::V6(_) => "ipv6".into(),
    }
}
