//! What was counted within an interval, and since the command began.

use serde::Serialize;
use sluice_kernel::telemetry::{self, Counted, Key, Observer, Request};
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Instant;

/// A row of the report.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Row {
    /// "in" or "out".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proto: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sport: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dport: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub src: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst: Option<IpAddr>,
    pub pkts: u64,
    pub bytes: u64,
    pub pkts_missed: u64,
    pub bytes_missed: u64,
    /// Packets a second within the interval.
    pub pps: f64,
    /// Bits a second within the interval.
    pub bps: f64,
}

/// A bin of sizes, bytes.
#[derive(Debug, Clone, Serialize)]
pub struct Bin {
    pub from: u64,
    pub below: u64,
    pub count: u64,
}

/// What was counted on an interface.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    pub interface: String,
    /// The time since the command began, seconds.
    pub for_s: f64,
    /// All packets and bytes that were counted.
    pub pkts: u64,
    pub bytes: u64,
    pub pps: f64,
    pub bps: f64,
    /// Packets that the filter does not let through.
    pub filtered_pkts: u64,
    /// Keys that were counted, also those that are not shown.
    pub keys: usize,
    /// A key that is not among these has sent at most so much.
    pub others_pkts: u64,
    pub others_bytes: u64,
    pub rows: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_sizes: Option<Vec<Bin>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_sizes: Option<Vec<Bin>>,
}

/// The counts of an interface at a moment.
#[derive(Default)]
struct Before {
    keys: HashMap<Key, (u64, u64)>,
    all: (u64, u64),
}

/// Makes reports, each with rates since the one before.
pub struct Reporter {
    begun: Instant,
    at: Vec<(Instant, Before)>,
}

impl Reporter {
    pub fn new(interfaces: usize) -> Reporter {
        let now = Instant::now();
        Reporter { begun: now, at: (0..interfaces).map(|_| (now, Before::default())).collect() }
    }

    pub fn next(&mut self, observer: &Observer, number: usize, name: &str, request: &Request, top: usize) -> Report {
        let (counted, rest) = observer.counts(number);
        let now = Instant::now();
        let totals = observer.totals(number);
        // Plain packets with a cell of their own are counted there alone.
        let sum = |of: fn(&Counted) -> u64| counted.iter().map(of).sum::<u64>();
        let all = if request.filter == telemetry::Filter::default() && rest == telemetry::Rest::default() {
            (sum(|one| one.pkts), sum(|one| one.bytes))
        } else {
            (totals.seen_pkts, totals.seen_bytes)
        };
        let (then, before) = &self.at[number];
        let span_s = now.duration_since(*then).as_secs_f64().max(1e-9);
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / span_s;
        let rows = counted.iter().take(top).map(|one| {
            let (pkts, bytes) = before.keys.get(&one.key).copied().unwrap_or_default();
            row(one, observer.class_names(number), rate(one.pkts, pkts), 8.0 * rate(one.bytes, bytes))
        });
        let sizes = request.sizes.then(|| observer.sizes(number));
        let bins = |bins: &[(u64, u64, u64)]| {
            bins.iter().map(|&(from, below, count)| Bin { from, below, count }).collect::<Vec<_>>()
        };
        let report = Report {
            interface: name.to_owned(),
            for_s: now.duration_since(self.begun).as_secs_f64(),
            pkts: all.0,
            bytes: all.1,
            pps: rate(all.0, before.all.0),
            bps: 8.0 * rate(all.1, before.all.1),
            filtered_pkts: totals.filtered_pkts,
            keys: counted.len(),
            others_pkts: rest.pkts,
            others_bytes: rest.bytes,
            rows: rows.collect(),
            packet_sizes: sizes.as_ref().map(|sizes| bins(&sizes.packets)),
            key_sizes: sizes.as_ref().map(|sizes| bins(&sizes.keys(&counted))),
        };
        let keys = counted.into_iter().map(|one| (one.key, (one.pkts, one.bytes))).collect();
        self.at[number] = (now, Before { keys, all });
        report
    }
}

fn row(counted: &Counted, classes: &[String], pps: f64, bps: f64) -> Row {
    let key = &counted.key;
    let class_name = |class: u8| classes.get(usize::from(class)).filter(|name| !name.is_empty()).cloned();
    Row {
        direction: key.departing.map(|departing| if departing { "out" } else { "in" }),
        proto: key.protocol.map(sluice_abi::protocol_name),
        class: key.class,
        class_name: key.class.and_then(class_name),
        dscp: key.dscp,
        verdict: key.verdict.map(sluice_abi::verdict_name),
        vlan: key.vlan,
        sport: key.src_port,
        dport: key.dst_port,
        src: key.src,
        dst: key.dst,
        pkts: counted.pkts,
        bytes: counted.bytes,
        pkts_missed: counted.pkts_missed,
        bytes_missed: counted.bytes_missed,
        pps,
        bps,
    }
}
