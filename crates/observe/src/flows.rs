//! The users of the link: flows between two readings of their tables, ranked, and anomalies of some.
//!
//! A flow table counts offered packets: it counts before the queues, which may drop some of them.

pub mod anomaly;
mod baseline;

pub use anomaly::{Anomaly, Kind, Limits};

use crate::sample::{Sample, Source, now_ns};
use baseline::Baseline;
use serde::Serialize;
use sluice_kernel::Result;
use sluice_kernel::flows::{FlowCount, FlowKey, FlowTable};
use sluice_kernel::status::Status;
use std::collections::HashMap;

/// The flow tables of all watched interfaces, at one moment.
#[derive(Debug, Clone, Default)]
pub struct FlowSample {
    /// Time of the reading, CLOCK_MONOTONIC, ns.
    pub at_ns: u64,
    /// Interfaces and their tables. None: the interface's policy keeps no flows.
    pub tables: Vec<(String, Option<FlowTable>)>,
}

impl FlowSample {
    /// Reads the tables of the interfaces that are up.
    pub fn read(source: &Source) -> Result<FlowSample> {
        let at_ns = now_ns();
        let table = |reader: &sluice_kernel::reader::Reader| Ok((reader.interface().to_owned(), reader.flows()?));
        Ok(FlowSample { at_ns, tables: source.readers().map(table).collect::<Result<_>>()? })
    }
}

/// The order in which flows are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum By {
    /// Rate, bits per second.
    #[default]
    Rate,
    /// Bytes since the flow began.
    Bytes,
    /// Packets since the flow began.
    Pkts,
}

/// A flow and its rates since the reading before.
#[derive(Debug, Clone, Serialize)]
pub struct FlowRate {
    /// Interface that has seen the flow.
    pub interface: String,
    /// Identity of the flow.
    #[serde(flatten)]
    pub key: FlowKey,
    /// Number of the flow's class.
    pub class: u8,
    /// Name of the flow's class.
    pub class_name: String,
    /// Rule that chose the class. None: the policy has changed since the flow's last packet.
    pub rule: Option<String>,
    /// Rate, bits per second.
    pub bps: f64,
    /// Rate, packets per second.
    pub pps: f64,
    /// Bytes since the flow began, link-layer header included.
    pub bytes: u64,
    /// Packets since the flow began.
    pub pkts: u64,
    /// Time from the first packet to the last, seconds.
    pub age_s: f64,
    /// Time since the last packet, seconds.
    pub idle_s: f64,
}

/// The rates of a class's flows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassFlows {
    /// Interface.
    pub interface: String,
    /// Whether the flows arrive; else they depart.
    pub arriving: bool,
    /// Number of the class.
    pub class: u8,
    /// Name of the class.
    pub class_name: String,
    /// Flows in the table.
    pub flows: usize,
    /// Flows of these that sent.
    pub active: usize,
    /// Rate of all flows, bits per second.
    pub bps: f64,
    /// Share of the traffic offered in its direction of the interface, 0 to 1.
    pub share: f64,
}

/// The rates of flows between two readings.
#[derive(Debug, Clone, Default, Serialize)]
pub struct FlowRates {
    /// Time between the readings, seconds.
    pub span_s: f64,
    /// Flows in all tables.
    pub known: usize,
    /// Flows of these that sent meanwhile.
    pub active: usize,
    /// Interfaces whose policy keeps no flows.
    pub without_flows: Vec<String>,
    /// The first flows by rank.
    pub top: Vec<FlowRate>,
    /// Every class that has flows.
    pub classes: Vec<ClassFlows>,
    /// Anomalies, with their reasons.
    pub anomalies: Vec<Anomaly>,
}

/// Identity of a flow: the index of its interface in `Tracker::interfaces`, and its key.
type Name = (u32, FlowKey);

/// A flow and its rates, without names.
#[derive(Debug, Clone, Copy)]
struct Active<'a> {
    interface: u32,
    flow: &'a FlowCount,
    bps: f64,
    pps: f64,
}

/// Follows flows from reading to reading. Its memory is bounded by the tables'.
#[derive(Debug, Default)]
pub struct Tracker {
    limits: Limits,
    before: HashMap<Name, (u64, u64)>,
    before_ns: u64,
    baseline: Baseline,
    /// Interfaces by their numbers in [`Name`].
    interfaces: Vec<String>,
}

impl Tracker {
    /// A tracker with other limits of anomalies than the defaults.
    pub fn new(limits: Limits) -> Tracker {
        Tracker { limits, ..Tracker::default() }
    }

    /// The rates since the reading before, and the first `top` flows. `sample` has the names of classes. The first reading has rates
    /// of 0, for nothing is known of the time before.
    pub fn take(&mut self, now: &FlowSample, sample: &Sample, by: By, top: usize) -> FlowRates {
        let span_s = if self.before_ns == 0 { 0.0 } else { now.at_ns.saturating_sub(self.before_ns) as f64 / 1e9 };
        let mut active = Vec::new();
        let mut counts = HashMap::new();
        for (interface, table) in &now.tables {
            let number = self.number(interface);
            for flow in table.iter().flat_map(|table| &table.flows) {
                counts.insert((number, flow.key), (flow.pkts, flow.bytes));
                active.push(self.rate(number, flow, span_s));
            }
        }
        let first = self.before_ns == 0;
        (self.before, self.before_ns) = (counts, now.at_ns);
        let mut rates = FlowRates {
            span_s,
            known: active.len(),
            active: active.iter().filter(|one| one.pps > 0.0).count(),
            without_flows: now
                .tables
                .iter()
                .filter(|(_, table)| table.is_none())
                .map(|(name, _)| name.clone())
                .collect(),
            classes: self.classes(&active, sample),
            ..FlowRates::default()
        };
        let view = anomaly::View { at_ns: now.at_ns, flows: &active, interfaces: &self.interfaces, sample };
        rates.anomalies = anomaly::find(&view, &self.baseline, &self.limits);
        if !first {
            self.baseline.learn(&active, span_s);
        }
        rank(&mut active, by);
        rates.top = active.iter().take(top).map(|one| self.named(one, now, sample)).collect();
        rates
    }

    fn number(&mut self, interface: &str) -> u32 {
        let known = self.interfaces.iter().position(|name| name == interface);
        let place = known.unwrap_or_else(|| {
            self.interfaces.push(interface.to_owned());
            self.interfaces.len() - 1
        });
        place as u32
    }

    fn rate<'a>(&self, interface: u32, flow: &'a FlowCount, span_s: f64) -> Active<'a> {
        if span_s <= 0.0 {
            return Active { interface, flow, bps: 0.0, pps: 0.0 };
        }
        // An unknown flow has begun meanwhile, or has left the table and returned; then its counts begin anew.
        let (pkts, bytes) = match self.before.get(&(interface, flow.key)) {
            Some((pkts, bytes)) if *pkts <= flow.pkts && *bytes <= flow.bytes => (flow.pkts - pkts, flow.bytes - bytes),
            _ => (flow.pkts, flow.bytes),
        };
        Active { interface, flow, bps: bytes as f64 * 8.0 / span_s, pps: pkts as f64 / span_s }
    }

    fn named(&self, one: &Active<'_>, now: &FlowSample, sample: &Sample) -> FlowRate {
        let interface = &self.interfaces[one.interface as usize];
        let table = now.tables.iter().find(|(name, _)| name == interface).and_then(|(_, table)| table.as_ref());
        let flow = one.flow;
        FlowRate {
            interface: interface.clone(),
            key: flow.key,
            class: flow.class,
            class_name: class_name(sample, interface, flow.class),
            rule: table.and_then(|table| table.rule_name(flow)).map(str::to_owned),
            bps: one.bps,
            pps: one.pps,
            bytes: flow.bytes,
            pkts: flow.pkts,
            age_s: flow.last_ns.saturating_sub(flow.first_ns) as f64 / 1e9,
            idle_s: now.at_ns.saturating_sub(flow.last_ns) as f64 / 1e9,
        }
    }

    fn classes(&self, flows: &[Active<'_>], sample: &Sample) -> Vec<ClassFlows> {
        let mut found: std::collections::BTreeMap<(u32, bool, u8), ClassFlows> = std::collections::BTreeMap::new();
        for one in flows {
            let (arriving, class) = (one.flow.key.arriving, one.flow.class);
            let entry = found.entry((one.interface, arriving, class)).or_insert_with(|| {
                let interface = self.interfaces[one.interface as usize].clone();
                let class_name = class_name(sample, &interface, class);
                ClassFlows { interface, arriving, class, class_name, flows: 0, active: 0, bps: 0.0, share: 0.0 }
            });
            entry.flows += 1;
            entry.active += usize::from(one.pps > 0.0);
            entry.bps += one.bps;
        }
        let mut classes: Vec<ClassFlows> = found.into_values().collect();
        let all = classes.clone();
        for class in &mut classes {
            let same = |other: &&ClassFlows| (&other.interface, other.arriving) == (&class.interface, class.arriving);
            let sum: f64 = all.iter().filter(same).map(|other| other.bps).sum();
            class.share = if sum > 0.0 { class.bps / sum } else { 0.0 };
        }
        classes
    }
}

/// Sorts the flows, the greatest first; equal ones have an order that stays.
fn rank(flows: &mut [Active<'_>], by: By) {
    let value = |one: &Active<'_>| match by {
        By::Rate => one.bps,
        By::Bytes => one.flow.bytes as f64,
        By::Pkts => one.flow.pkts as f64,
    };
    flows.sort_by(|a, b| {
        value(b).total_cmp(&value(a)).then(b.flow.bytes.cmp(&a.flow.bytes)).then(a.flow.key.cmp(&b.flow.key))
    });
}

fn status<'a>(sample: &'a Sample, interface: &str) -> Option<&'a Status> {
    sample.interfaces.iter().find(|one| one.interface == interface)
}

fn class_name(sample: &Sample, interface: &str, class: u8) -> String {
    let classes = status(sample, interface).and_then(|one| one.directions.first()).map(|one| &one.classes[..]);
    let named = classes.unwrap_or_default().iter().find(|one| one.id == class);
    named.map_or_else(|| class.to_string(), |one| one.name.clone())
}

#[cfg(test)]
mod tests;
