//! The values of a resolved policy, each with its name, as policies write them. Structs are taken apart whole, so that a
//! new field cannot be forgotten; rules come as they are printed.

use super::change::Values;
use crate::ceiling::Ceiling;
use crate::dscp;
use crate::forward::Forward;
use crate::link::{Cells, LinkQueues, SplitGso};
use crate::policy::{ClassFrom, Exceed, Malformed, Mode, Term, Terms};
use crate::print;
use crate::queue::Hosts;
use crate::resolved::{Resolved, ResolvedClass, ResolvedRule};
use crate::scheduler::Scheduler;
use crate::time;
use ipnet::IpNet;
use serde_json::Value;

/// The key that names a rule.
pub(super) const RULE_NAME: &str = "name";
/// The key that orders a rule among others.
pub(super) const RULE_PLACE: &str = "priority";

pub(super) fn settings(resolved: &Resolved) -> Values {
    let Resolved {
        name,
        description,
        scheduler,
        rank,
        mode,
        link_rate,
        ingress_rate,
        arrivals_of,
        framing,
        link_burst,
        split_gso,
        queues,
        limits,
        default_class,
        urgent_class,
        flows,
        connections,
        malformed,
        classes: _,
        rules: _,
        forwards: _,
        network: _,
        remarks: _,
        not_on_tc: _,
    } = resolved;
    let class_from = match mode {
        Mode::ScheduleOnly { by } => name_of(ClassFrom::NAMES, by),
        Mode::Full | Mode::ClassifyOnly => None,
    };
    // Other disciplines have no rank.
    let rank = (*scheduler == Scheduler::PIFO).then(|| rank.to_string());
    present([
        ("name", Some(name.clone())),
        ("description", description.clone()),
        ("scheduler", Some(scheduler.to_string())),
        ("rank", rank),
        ("mode", Some(mode.name().to_owned())),
        ("class_from", class_from),
        ("link.rate", link_rate.map(|rate| rate.to_string())),
        ("link.ingress_rate", ingress_rate.map(|rate| rate.to_string())),
        ("arrivals_of", (!arrivals_of.is_empty()).then(|| arrivals_of.join(", "))),
        ("link.overhead", Some(framing.overhead_bytes.to_string())),
        ("link.mpu", Some(framing.mpu_bytes.to_string())),
        ("link.cells", name_of(Cells::NAMES, &framing.cells)),
        ("link.burst", link_burst.map(|burst| burst.to_string())),
        ("link.split_gso", name_of(SplitGso::NAMES, split_gso)),
        ("link.queues", name_of(LinkQueues::NAMES, queues)),
        ("limits.ingress", limits.ingress.map(rate)),
        ("limits.ingress_burst", limits.ingress.map(burst)),
        ("limits.egress", limits.egress.map(rate)),
        ("limits.egress_burst", limits.egress.map(burst)),
        ("default_class", Some(default_class.to_string())),
        ("urgent_class", Some(urgent_class.to_string())),
        ("flow_table", Some(flows.to_string())),
        ("connection_table", Some(connections.to_string())),
        ("malformed", name_of(Malformed::NAMES, malformed)),
    ])
}

pub(super) fn class(class: &ResolvedClass) -> Values {
    let ResolvedClass {
        id,
        name,
        priority,
        weight,
        quantum_bytes,
        latency_budget_ns,
        rate: own_rate,
        ceil,
        burst: own_burst,
        peak,
        limit_pkts,
        limit_bytes,
        // The limit of a FIFO follows from the other values.
        fifo_limit_pkts: _,
        queue,
        codel,
        exceed,
        flow_ceil,
        shared_ceil,
        dscp,
        marks,
    } = class;
    let flows = queue.flows();
    present([
        ("id", Some(id.to_string())),
        ("name", Some(name.clone())),
        ("priority", Some(priority.to_string())),
        ("weight", Some(weight.to_string())),
        ("quantum", Some(quantum_bytes.to_string())),
        ("latency_budget", latency_budget_ns.map(time::format)),
        ("rate", own_rate.map(|rate| rate.to_string())),
        ("ceil", ceil.map(|ceil| ceil.to_string())),
        ("burst", own_burst.map(|burst| burst.to_string())),
        ("peak", peak.map(rate)),
        ("peak_burst", peak.map(burst)),
        ("limit", Some(limit_pkts.to_string())),
        ("limit_bytes", limit_bytes.map(|bytes| bytes.to_string())),
        ("queue", Some(queue.name().to_owned())),
        ("hosts", flows.and_then(|flows| hosts(flows.hosts))),
        ("flow_quantum", flows.map(|flows| flows.quantum_bytes.to_string())),
        ("allowance", flows.map(|flows| flows.allowance.to_string())),
        ("aqm", codel.map(|_| "codel".to_owned())),
        ("target", codel.map(|codel| time::format(codel.target_ns))),
        ("interval", codel.map(|codel| time::format(codel.interval_ns))),
        ("police", (*exceed == Exceed::Police).then(|| "true".to_owned())),
        ("flow_ceil", flow_ceil.map(rate)),
        ("flow_burst", flow_ceil.map(burst)),
        ("shared_ceil.name", shared_ceil.as_ref().map(|shared| shared.name.clone())),
        ("shared_ceil.rate", shared_ceil.as_ref().map(|shared| rate(shared.ceiling))),
        ("shared_ceil.burst", shared_ceil.as_ref().map(|shared| burst(shared.ceiling))),
        ("dscp", list(dscp, |&value| dscp::name(value).map_or(value.to_string(), str::to_owned))),
        ("mark", list(marks, u32::to_string)),
    ])
}

/// The forward as it is printed.
pub(super) fn forward(forward: &Forward) -> Values {
    print::forward(forward).into_iter().map(|(key, value)| (key, text(value))).collect()
}

fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// The rule as it is written, with the values of its sets, since these may change while the rule does not.
pub(super) fn rule(resolved: &ResolvedRule) -> Values {
    let ResolvedRule { rule, src, dst, src_ports, dst_ports } = resolved;
    let mut values: Values = print::rules::rule(rule).into_iter().map(|(key, value)| (key, text(value))).collect();
    let ports = |&(low, high): &(u16, u16)| if low == high { low.to_string() } else { format!("{low}-{high}") };
    let sets = [
        ("addresses of src_ip", names_a_set(&rule.src).then(|| list(src, IpNet::to_string)).flatten()),
        ("addresses of dst_ip", names_a_set(&rule.dst).then(|| list(dst, IpNet::to_string)).flatten()),
        ("ports of src_port", names_a_set(&rule.src_ports).then(|| list(src_ports, ports)).flatten()),
        ("ports of dst_port", names_a_set(&rule.dst_ports).then(|| list(dst_ports, ports)).flatten()),
    ];
    values.extend(present(sets));
    values
}

/// The value of `hosts`; `None` also for a class that does not queue by flow.
fn hosts(hosts: Hosts) -> Option<String> {
    (hosts != Hosts::None).then(|| hosts.name().to_owned())
}

fn rate(ceiling: Ceiling) -> String {
    ceiling.rate.to_string()
}

fn burst(ceiling: Ceiling) -> String {
    ceiling.burst().to_string()
}

fn names_a_set<T>(terms: &Terms<T>) -> bool {
    terms.iter().any(|term| matches!(term, Term::In(_)))
}

fn present<const N: usize>(all: [(&'static str, Option<String>); N]) -> Values {
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: &T) -> Option<String> {
    names.iter().find(|(_, known)| known == value).map(|(name, _)| (*name).to_owned())
}

fn list<T>(values: &[T], text: impl Fn(&T) -> String) -> Option<String> {
    (!values.is_empty()).then(|| values.iter().map(text).collect::<Vec<_>>().join(" "))
}
