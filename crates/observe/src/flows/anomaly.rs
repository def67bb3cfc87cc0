//! Anomalies of flows. Each finding gives its reason, in figures.

use super::baseline::Baseline;
use super::{Active, class_name, status};
use crate::sample::Sample;
use serde::Serialize;
use sluice_kernel::flows::FlowKey;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

/// The kind of an anomaly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One source has begun flows to many ports of a host.
    PortScan,
    /// One source has begun flows to the same port of many hosts.
    HostScan,
    /// A flow sends much in a class for little, urgent traffic.
    ElephantInUrgentClass,
    /// A flow sends far more than its own mean rate.
    AboveItsUsual,
    /// A flow sends far more than other flows of its class.
    AboveItsClass,
    /// A flow lives far longer than others of its class.
    LongLived,
}

impl Kind {
    /// Name of the kind, as it is shown.
    pub fn name(self) -> &'static str {
        match self {
            Kind::PortScan => "port scan",
            Kind::HostScan => "host scan",
            Kind::ElephantInUrgentClass => "elephant",
            Kind::AboveItsUsual => "above its usual",
            Kind::AboveItsClass => "above its class",
            Kind::LongLived => "long-lived",
        }
    }
}

/// An anomaly of a flow, or of the flows of a source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Anomaly {
    /// Kind of the anomaly.
    pub kind: Kind,
    /// Name of the interface.
    pub interface: String,
    /// Source address of the flows.
    pub source: IpAddr,
    /// The flow, if the anomaly is of one flow.
    pub flow: Option<FlowKey>,
    /// Name of the class, if the anomaly is of one flow.
    pub class_name: Option<String>,
    /// Reason of the finding, with figures.
    pub reason: String,
}

/// The thresholds of anomalies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Ports of a host, or hosts, that one source begins flows to.
    pub scan_targets: usize,
    /// Time within which a source begins these flows, seconds.
    pub scan_s: f64,
    /// Most packets of each of these flows.
    pub scan_pkts: u64,
    /// Part of the interface's rate from which a flow is an elephant, 0 to 1.
    pub elephant_part: f64,
    /// Rate from which a flow is an elephant where the interface is not shaped, bits per second.
    pub elephant_bps: f64,
    /// Least bytes that an elephant has sent.
    pub elephant_bytes: u64,
    /// Multiple of a flow's own mean rate above which the rate is an anomaly.
    pub own_times: f64,
    /// Multiple of the median rate of its class above which a flow's rate is an anomaly.
    pub class_times: f64,
    /// Rate below which no multiple is an anomaly, bits per second.
    pub least_bps: f64,
    /// Time for which a flow must be known before its mean counts, seconds.
    pub learn_s: f64,
    /// Least number of sending flows for a class's median to count.
    pub class_flows: usize,
    /// Least life of a long-lived flow, seconds.
    pub long_s: f64,
    /// Multiple of the median life of its class above which a flow is long-lived.
    pub long_times: f64,
    /// Life from which a flow is long-lived in any class, seconds.
    pub very_long_s: f64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            scan_targets: 64,
            scan_s: 60.0,
            scan_pkts: 3,
            elephant_part: 0.1,
            elephant_bps: 5e6,
            elephant_bytes: 1_000_000,
            own_times: 8.0,
            class_times: 10.0,
            least_bps: 1e6,
            learn_s: 10.0,
            class_flows: 8,
            long_s: 3600.0,
            long_times: 10.0,
            very_long_s: 86_400.0,
        }
    }
}

/// The data in which anomalies are looked for.
pub(super) struct View<'a> {
    pub at_ns: u64,
    pub flows: &'a [Active<'a>],
    pub interfaces: &'a [String],
    pub sample: &'a Sample,
}

/// Most findings of all kinds together: a source that floods the table does not flood the screen.
const MAX_ANOMALIES: usize = 50;

/// All anomalies, the worst kinds first.
pub(super) fn find(view: &View<'_>, baseline: &Baseline, limits: &Limits) -> Vec<Anomaly> {
    let mut found = scans(view, limits);
    found.extend(elephants(view, limits));
    found.extend(above_baseline(view, baseline, limits));
    found.extend(class_outliers(view, limits));
    found.truncate(MAX_ANOMALIES);
    found
}

impl View<'_> {
    fn about(&self, kind: Kind, one: &Active<'_>, reason: String) -> Anomaly {
        let interface = self.interfaces[one.interface as usize].clone();
        Anomaly {
            kind,
            source: one.flow.key.src,
            flow: Some(one.flow.key),
            class_name: Some(class_name(self.sample, &interface, one.flow.class)),
            interface,
            reason,
        }
    }
}

/// A rate in a sentence.
fn rate(bps: f64) -> String {
    let (value, unit) = match bps {
        bps if bps < 1e6 => (bps / 1e3, "kbit/s"),
        bps if bps < 1e9 => (bps / 1e6, "Mbit/s"),
        bps => (bps / 1e9, "Gbit/s"),
    };
    format!("{value:.1} {unit}")
}

/// A time in a sentence.
fn span(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

fn scans(view: &View<'_>, limits: &Limits) -> Vec<Anomaly> {
    let begun: HashMap<(u32, FlowKey), u64> =
        view.flows.iter().map(|one| ((one.interface, one.flow.key), one.flow.first_ns)).collect();
    let mut ports: HashMap<(u32, IpAddr, IpAddr), HashSet<u16>> = HashMap::new();
    let mut hosts: HashMap<(u32, IpAddr, u16), HashSet<IpAddr>> = HashMap::new();
    for one in view.flows {
        let (key, flow) = (one.flow.key, one.flow);
        let age_s = view.at_ns.saturating_sub(flow.first_ns) as f64 / 1e9;
        let Some(port) = key.dst_port else { continue };
        if flow.pkts > limits.scan_pkts || age_s > limits.scan_s {
            continue;
        }
        // Answers are not flows that their sender has begun.
        if begun.get(&(one.interface, key.reverse())).is_some_and(|other| *other <= flow.first_ns) {
            continue;
        }
        ports.entry((one.interface, key.src, key.dst)).or_default().insert(port);
        hosts.entry((one.interface, key.src, port)).or_default().insert(key.dst);
    }
    let within = span(limits.scan_s);
    let of_ports =
        ports.into_iter().filter(|(_, ports)| ports.len() >= limits.scan_targets).map(|((n, src, dst), ports)| {
            let reason = format!(
                "{src} has begun flows to {} ports of {dst} within {within}, each of {} packets at most",
                ports.len(),
                limits.scan_pkts
            );
            (ports.len(), Kind::PortScan, n, src, reason)
        });
    let of_hosts =
        hosts.into_iter().filter(|(_, hosts)| hosts.len() >= limits.scan_targets).map(|((n, src, port), hosts)| {
            let reason = format!(
                "{src} has begun flows to port {port} of {} hosts within {within}, each of {} packets at most",
                hosts.len(),
                limits.scan_pkts
            );
            (hosts.len(), Kind::HostScan, n, src, reason)
        });
    let mut found: Vec<_> = of_ports.chain(of_hosts).collect();
    found.sort_by(|a, b| b.0.cmp(&a.0).then(a.3.cmp(&b.3)));
    found
        .into_iter()
        .map(|(_, kind, n, source, reason)| Anomaly {
            kind,
            interface: view.interfaces[n as usize].clone(),
            source,
            flow: None,
            class_name: None,
            reason,
        })
        .collect()
}

fn elephants(view: &View<'_>, limits: &Limits) -> Vec<Anomaly> {
    let anomaly = |one: &Active<'_>| {
        let status = status(view.sample, &view.interfaces[one.interface as usize])?;
        let name = if one.flow.key.arriving { "ingress" } else { "egress" };
        let direction = status.directions.iter().find(|other| other.direction == name)?;
        let class = direction.classes.iter().find(|class| class.id == one.flow.class)?;
        let (least, of) = match direction.rate_bps {
            Some(rate) => (rate as f64 * limits.elephant_part, format!(" of {}", self::rate(rate as f64))),
            None => (limits.elephant_bps, String::new()),
        };
        let is = class.urgent && one.bps >= least && one.flow.bytes >= limits.elephant_bytes;
        let why = || {
            format!(
                "it sends {}{of} in {}, a class for what is urgent; {:.1} MB so far",
                rate(one.bps),
                class.name,
                one.flow.bytes as f64 / 1e6
            )
        };
        is.then(|| view.about(Kind::ElephantInUrgentClass, one, why()))
    };
    view.flows.iter().filter_map(anomaly).collect()
}

fn above_baseline(view: &View<'_>, baseline: &Baseline, limits: &Limits) -> Vec<Anomaly> {
    let anomaly = |one: &Active<'_>| {
        let mean = baseline.of(&(one.interface, one.flow.key))?;
        let is = mean.known_s >= limits.learn_s && one.bps >= limits.least_bps && one.bps > mean.bps * limits.own_times;
        let why = || format!("it sends {}, and usually {}", rate(one.bps), rate(mean.bps));
        is.then(|| view.about(Kind::AboveItsUsual, one, why()))
    };
    view.flows.iter().filter_map(anomaly).collect()
}

fn class_outliers(view: &View<'_>, limits: &Limits) -> Vec<Anomaly> {
    let mut classes: HashMap<(u32, bool, u8), Vec<&Active<'_>>> = HashMap::new();
    for one in view.flows.iter().filter(|one| one.pps > 0.0) {
        classes.entry((one.interface, one.flow.key.arriving, one.flow.class)).or_default().push(one);
    }
    let mut found = Vec::new();
    for flows in classes.values() {
        let age_s = |one: &Active<'_>| view.at_ns.saturating_sub(one.flow.first_ns) as f64 / 1e9;
        let enough = flows.len() >= limits.class_flows;
        let (bps, life_s) = (median(flows.iter().map(|one| one.bps)), median(flows.iter().map(|one| age_s(one))));
        for one in flows {
            if enough && one.bps >= limits.least_bps && one.bps > bps * limits.class_times {
                let why = format!(
                    "it sends {}, and the median of {} flows of its class is {}",
                    rate(one.bps),
                    flows.len(),
                    rate(bps)
                );
                found.push(view.about(Kind::AboveItsClass, one, why));
            }
            let age = age_s(one);
            if age >= limits.very_long_s {
                let why = format!("it has been sending for {}", span(age));
                found.push(view.about(Kind::LongLived, one, why));
            } else if enough && age >= limits.long_s && age > life_s * limits.long_times {
                let why = format!(
                    "it has been sending for {}, and the median of {} flows of its class is {}",
                    span(age),
                    flows.len(),
                    span(life_s)
                );
                found.push(view.about(Kind::LongLived, one, why));
            }
        }
    }
    found.sort_by_key(|one| (one.kind, one.flow));
    found
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
