//! Flows as a table, and as CSV.

use super::view::{FlowReport, direction};
use crate::failure::Failure;
use crate::humanize;
use crate::terminal;
use comfy_table::{Cell, CellAlignment, Table, presets};
use sluice_kernel::connections::Connection;
use std::fmt::Write;
use std::net::SocketAddr;

/// The report as text.
pub fn text(report: &FlowReport) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(text, "{} flows are known, {} sent within {:.1} s", report.known, report.active, report.span_s);
    for name in &report.without_flows {
        let _ = writeln!(text, "{name}: its policy keeps no flows (\"flow_table\": 0)");
    }
    if !report.flows.is_empty() {
        let _ = writeln!(text, "{}", table(report));
    }
    for class in &report.classes {
        let _ = writeln!(
            text,
            "{} {}  class {} {}: {} ({}), {} of {} flows sent",
            class.interface,
            direction(class.arriving),
            class.class,
            class.class_name,
            terminal::rate(class.bps.round() as u64),
            humanize::percent(class.share),
            class.active,
            class.flows
        );
    }
    for anomaly in &report.anomalies {
        let whose = anomaly.flow.map_or(String::new(), |key| {
            let port = |port: Option<u16>| port.map_or(String::new(), |port| format!(" port {port}"));
            format!("{}{} to {}{}: ", key.src, port(key.src_port), key.dst, port(key.dst_port))
        });
        let _ = writeln!(text, "{}  {}: {whose}{}", anomaly.interface, anomaly.kind.name(), anomaly.reason);
    }
    text
}

fn table(report: &FlowReport) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["rate", "bytes", "pkts", "for", "interface", "class", "rule", "kind", "flow", "process"]);
    let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
    for named in &report.flows {
        let flow = &named.flow;
        table.add_row([
            right(terminal::rate(flow.bps.round() as u64)),
            right(terminal::bytes(flow.bytes)),
            right(flow.pkts.to_string()),
            right(humanize::span_s(flow.age_s)),
            Cell::new(format!("{} {}", flow.interface, if flow.key.arriving { "in" } else { "out" })),
            Cell::new(&flow.class_name),
            Cell::new(flow.rule.as_deref().unwrap_or("-")),
            Cell::new(named.kind()),
            Cell::new(named.ends()),
            Cell::new(named.owner().as_deref().unwrap_or("-")),
        ]);
    }
    table
}

const COLUMNS: [&str; 27] = [
    "at_ms",
    "interface",
    "direction",
    "protocol",
    "src",
    "src_port",
    "dst",
    "dst_port",
    "service",
    "src_name",
    "dst_name",
    "process",
    "pid",
    "class",
    "class_name",
    "rule",
    "bps",
    "pps",
    "bytes",
    "pkts",
    "age_s",
    "idle_s",
    "forward",
    "client",
    "listen",
    "source",
    "target",
];

/// The flows as CSV, with a line of titles if wanted.
pub fn csv(report: &FlowReport, titles: bool) -> Result<Vec<u8>, Failure> {
    let failed = |error: csv::Error| Failure::system(format!("CSV: {error}"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    if titles {
        writer.write_record(COLUMNS).map_err(failed)?;
    }
    for named in &report.flows {
        let flow = &named.flow;
        let key = &flow.key;
        let port = |port: Option<u16>| port.map_or(String::new(), |port| port.to_string());
        let connection = named.connection.as_ref();
        let end = |of: fn(&Connection) -> SocketAddr| connection.map_or(String::new(), |one| of(one).to_string());
        let record: [String; COLUMNS.len()] = [
            report.at_ms.to_string(),
            flow.interface.clone(),
            direction(key.arriving).to_owned(),
            named.protocol_name.clone(),
            key.src.to_string(),
            port(key.src_port),
            key.dst.to_string(),
            port(key.dst_port),
            named.service.clone().unwrap_or_default(),
            named.src_name.clone().unwrap_or_default(),
            named.dst_name.clone().unwrap_or_default(),
            named.process.as_ref().map_or(String::new(), |process| process.name.clone()),
            named.process.as_ref().map_or(String::new(), |process| process.pid.to_string()),
            flow.class.to_string(),
            flow.class_name.clone(),
            flow.rule.clone().unwrap_or_default(),
            format!("{:.0}", flow.bps),
            format!("{:.1}", flow.pps),
            flow.bytes.to_string(),
            flow.pkts.to_string(),
            format!("{:.3}", flow.age_s),
            format!("{:.3}", flow.idle_s),
            connection.map_or(String::new(), |connection| connection.forward.clone()),
            end(|connection| connection.client),
            end(|connection| connection.listen),
            end(|connection| connection.source),
            end(|connection| connection.target),
        ];
        writer.write_record(&record).map_err(failed)?;
    }
    writer.into_inner().map_err(|error| Failure::system(format!("CSV: {error}")))
}
