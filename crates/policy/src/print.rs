//! A policy as text in the native format, in one canonical form; parsing the text gives the same policy.

pub(crate) mod parts;
pub(crate) mod rules;

use crate::ceiling::{Ceiling, Limits};
use crate::forward::{DEFAULT_CONNECTIONS, Forward, ForwardSource, OldConnections, Target};
use crate::limit::Limit;
use crate::link::Link;
use crate::network;
use crate::parse::parse;
use crate::policy::{Class, ClassFrom, Exceed, Malformed, Mode, Policy, Rule};
use crate::scheduler::Scheduler;
use crate::source::Source;
use crate::terms;
use crate::time;
use parts::{Fields, link, name_of, object, queue};
use rules::{dscp_value, list, port_value, rule, sets};
use serde_json::Value;
use std::net::IpAddr;

/// The policy in the native format. Keys at their defaults are left out, except the most important ones.
pub fn print(policy: &Policy) -> String {
    if let Some(network) = &policy.network {
        return network::print(network);
    }
    let mut text = String::from("{\n");
    for (key, value) in header(policy) {
        text += &format!("  \"{key}\": {value},\n");
    }
    if policy.link != Link::default() {
        text += &format!("  \"link\": {},\n", object(&link(&policy.link)));
    }
    if !policy.arrivals_of.is_empty() {
        text += &format!("  \"arrivals_of\": {},\n", Value::from(policy.arrivals_of.clone()));
    }
    if policy.limits != Limits::default() {
        text += &format!("  \"limits\": {},\n", object(&limits(&policy.limits)));
    }
    text += &sets("address_sets", &policy.address_sets, |net| terms::prefix(net).into());
    text += &sets("port_sets", &policy.port_sets, port_value);
    text += &format!("  \"classes\": {},\n", list(policy.classes.iter().map(class)));
    text += &format!("  \"rules\": {}", list(policy.rules.iter().map(rule)));
    if !policy.forwards.is_empty() {
        text += &format!(",\n  \"forwards\": {}", list(policy.forwards.iter().map(forward)));
    }
    text + "\n}\n"
}

/// The policy as its author wrote it, with comments, and with a name if the file leaves that to its path. A policy without a
/// text of its own, such as one interface of a set, is printed.
pub fn written(policy: &Policy) -> String {
    with_its_name(policy).unwrap_or_else(|| print(policy))
}

fn with_its_name(policy: &Policy) -> Option<String> {
    let text = policy.origin.source()?.text();
    if policy.network.as_ref().is_some_and(|network| network.stands_alone()) {
        return Some(text.to_owned());
    }
    let means_the_same = |text: &str| parse(&Source::new("", text)).is_ok_and(|same| same == *policy);
    if means_the_same(text) {
        return Some(text.to_owned());
    }
    let (before, inside) = text.split_at(policy.origin.span("")?.start + 1);
    let gap = if inside.starts_with(['\n', '\r']) { "\n  " } else { " " };
    let named = format!("{before}{gap}\"name\": {},{inside}", Value::from(policy.name.as_str()));
    means_the_same(&named).then_some(named)
}

fn header(policy: &Policy) -> Fields {
    let mut fields: Fields = vec![("version", policy.version.into()), ("name", policy.name.clone().into())];
    if let Some(description) = &policy.description {
        fields.push(("description", description.clone().into()));
    }
    fields.push(("scheduler", policy.scheduler.name().into()));
    if policy.scheduler == Scheduler::PIFO {
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
    if policy.connections != DEFAULT_CONNECTIONS {
        fields.push(("connection_table", policy.connections.into()));
    }
    if policy.malformed != Malformed::default() {
        fields.push(("malformed", name_of(Malformed::NAMES, &policy.malformed)));
    }
    fields
}

fn limits(limits: &Limits) -> Fields {
    let mut fields = Fields::new();
    ceiling(&mut fields, ["ingress", "ingress_burst"], limits.ingress);
    ceiling(&mut fields, ["egress", "egress_burst"], limits.egress);
    fields
}

fn ceiling(fields: &mut Fields, [rate_key, burst_key]: [&'static str; 2], ceiling: Option<Ceiling>) {
    let Some(ceiling) = ceiling else { return };
    fields.push((rate_key, ceiling.rate.to_string().into()));
    fields.extend(ceiling.burst.map(|burst| (burst_key, burst.to_string().into())));
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
    ceiling(&mut fields, ["peak", "peak_burst"], class.peak);
    match class.limit {
        Some(Limit::Pkts(pkts)) => fields.push(("limit", pkts.into())),
        Some(limit) => fields.push(("limit", limit.to_string().into())),
        None => {}
    }
    queue(&mut fields, class.queue, class.codel);
    if class.exceed == Exceed::Police {
        fields.push(("police", true.into()));
    }
    ceiling(&mut fields, ["flow_ceil", "flow_burst"], class.flow_ceil);
    if let Some(shared) = &class.shared_ceil {
        let mut own: Fields = vec![("name", shared.name.clone().into())];
        ceiling(&mut own, ["rate", "burst"], Some(shared.ceiling));
        fields.push(("shared_ceil", own.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()));
    }
    if !class.dscp.is_empty() {
        fields.push(("dscp", class.dscp.iter().map(|&value| dscp_value(value)).collect()));
    }
    if !class.marks.is_empty() {
        fields.push(("mark", class.marks.iter().copied().collect()));
    }
    fields
}

/// The conditions of a rule in the keys of policy files: `protocol udp, dst_port 3074-3075`.
pub fn asks(rule: &Rule) -> String {
    const OTHERS: [&str; 3] = ["name", "priority", "class_id"];
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let fields = self::rule(rule);
    let value = |wanted: &str| fields.iter().find(|(key, _)| *key == wanted).map(|(_, value)| text(value));
    let asked = fields.iter().filter(|(key, _)| !OTHERS.contains(key) && !key.ends_with("_port_max"));
    let asked = asked.map(|(key, first)| match key.strip_suffix("_min").filter(|what| what.ends_with("_port")) {
        // A range of ports or lengths becomes one value.
        Some(what) => {
            let last = value(&format!("{what}_max")).map_or(String::new(), |last| format!("-{last}"));
            format!("{what} {}{last}", text(first))
        }
        None => format!("{key} {}", text(first)),
    });
    let asked: Vec<String> = asked.collect();
    if asked.is_empty() { "every packet".to_owned() } else { asked.join(", ") }
}

/// A forward. Where all targets have weight 1, they are texts.
pub(crate) fn forward(forward: &Forward) -> Fields {
    let mut fields: Fields =
        vec![("name", forward.name.clone().into()), ("protocol", forward.transport.to_string().into())];
    fields.extend(forward.listen.map(|address| ("address", address.to_string().into())));
    fields.push(("port", port_value(&forward.ports)));
    let targets: Vec<Value> = forward.targets.iter().map(|each| target(forward, each)).collect();
    fields.push(("targets", targets.into()));
    if forward.source != ForwardSource::default() {
        fields.push(("source", name_of(ForwardSource::NAMES, &forward.source)));
    }
    fields.extend(forward.class.map(|class| ("class_id", class.0.into())));
    if forward.connections != OldConnections::default() {
        fields.push(("open_connections", name_of(OldConnections::NAMES, &forward.connections)));
    }
    fields
}

fn target(forward: &Forward, target: &Target) -> Value {
    let ports = forward.target_ports(target);
    if target.weight != 1 {
        return serde_json::json!({
            "address": target.address.to_string(), "port": port_value(&ports), "weight": target.weight
        });
    }
    let port = if ports.0 == ports.1 { ports.0.to_string() } else { format!("{}-{}", ports.0, ports.1) };
    match target.address {
        IpAddr::V4(address) => format!("{address}:{port}").into(),
        IpAddr::V6(address) => format!("[{address}]:{port}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Policy {
        parse(&Source::new("mine.json", text)).expect("a policy")
    }

    #[test]
    fn written_policy_keeps_its_comments() {
        let named = "// for the house\n{ \"name\": \"x\", \"scheduler\": \"round_robin\", \"classes\": [{ \"id\": 0 }] } // end\n";
        assert_eq!(written(&read(named)), named);
    }

    #[test]
    fn subscribers_keep_their_comments() {
        let text = r#"{ "name": "town", "subscriber_side": ["eth1"], // ours
            "subscribers": [{ "name": "a", "addresses": ["192.0.2.1"] }] }"#;
        assert_eq!(written(&read(text)), text);
        let unnamed = written(&read(&text.replace(r#""name": "town", "#, "")));
        assert!(unnamed.contains("// ours") && unnamed.contains(r#""name": ""#), "{unnamed}");
    }

    #[test]
    fn default_name_is_added() {
        let text = "/* { */ {\n  // first\n  \"scheduler\": \"round_robin\", \"classes\": [{ \"id\": 0 }] }";
        let again = written(&read(text));
        assert_eq!(again, text.replace("{\n", "{\n  \"name\": \"mine\",\n"));
        assert_eq!(parse(&Source::new("other.json", again)).expect("a policy"), read(text));
    }

    #[test]
    fn conditions_of_rules_are_printed() {
        let policy = read(
            r#"{ "scheduler": "round_robin", "classes": [{ "id": 0 }], "rules": [
                { "priority": 1, "name": "x", "src_ip": "10.0.0.0/8", "protocol": "udp", "dst_port_min": 53, "dst_port_max": 54, "class_id": 0 },
                { "priority": 2, "class_id": 0 } ] }"#,
        );
        let conditions: Vec<String> = policy.rules.iter().map(asks).collect();
        assert_eq!(conditions, ["src_ip 10.0.0.0/8, dst_port 53-54, protocol udp", "every packet"]);
    }

    #[test]
    fn interface_of_a_set_is_printed_alone() {
        let set =
            r#"{ "scheduler": "round_robin", "classes": [{ "id": 0 }], "interfaces": { "eth0": {}, "eth1": {} } }"#;
        let file = crate::parse_file(&Source::new("mine.json", set)).expect("a set");
        let policy = file.of("eth1").expect("its policy");
        assert_eq!(written(&policy), print(&policy));
        assert_eq!(written(&Policy { origin: Default::default(), ..policy.clone() }), print(&policy));
    }
}
