//! Parts of policies with classes and of those with subscribers, as text.

use crate::link::{Cells, Framing, Link, LinkQueues, SplitGso};
use crate::queue::{Codel, Flows, Hosts, Queue};
use crate::time;
use serde_json::Value;

pub(crate) type Fields = Vec<(&'static str, Value)>;

/// One object on one line.
pub(crate) fn object(fields: &Fields) -> String {
    if fields.is_empty() {
        return "{}".into();
    }
    let fields: Vec<String> = fields.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
    format!("{{ {} }}", fields.join(", "))
}

/// The name of a value.
pub(super) fn name_of<T: PartialEq>(names: &[(&'static str, T)], value: &T) -> Value {
    names.iter().find(|(_, known)| known == value).map_or(Value::Null, |&(name, _)| name.into())
}

pub(crate) fn link(link: &Link) -> Fields {
    let mut fields = Fields::new();
    if let Some(rate) = link.rate {
        fields.push(("rate", rate.to_string().into()));
    }
    if let Some(rate) = link.ingress_rate {
        fields.push(("ingress_rate", rate.to_string().into()));
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
    if link.queues != LinkQueues::default() {
        fields.push(("queues", name_of(LinkQueues::NAMES, &link.queues)));
    }
    fields
}

pub(crate) fn queue(fields: &mut Fields, queue: Queue, codel: Option<Codel>) {
    if let Some(flows) = queue.flows() {
        fields.push(("queue", queue.name().into()));
        if flows.hosts != Hosts::default() {
            fields.push(("hosts", flows.hosts.name().into()));
        }
        if flows.quantum_bytes != Flows::default().quantum_bytes {
            fields.push(("flow_quantum", flows.quantum_bytes.into()));
        }
        if flows.allowance != Flows::default_allowance(flows.quantum_bytes) {
            fields.push(("allowance", flows.allowance.to_string().into()));
        }
    }
    if codel.is_some() != queue.default_codel().is_some() {
        fields.push(("aqm", if codel.is_some() { "codel" } else { "none" }.into()));
    }
    if let Some(codel) = codel {
        if codel.target_ns != Codel::default().target_ns {
            fields.push(("target", time::format(codel.target_ns).into()));
        }
        if codel.interval_ns != Codel::default_interval_ns(codel.target_ns) {
            fields.push(("interval", time::format(codel.interval_ns).into()));
        }
    }
}
