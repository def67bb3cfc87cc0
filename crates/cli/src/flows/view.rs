//! Flows with names of hosts and services, and with owning processes.

use super::processes::{Process, Processes};
use super::resolver::Resolver;
use super::services::Services;
use serde::Serialize;
use sluice_kernel::connections::{Connection, Connections};
use sluice_observe::flows::{Anomaly, By, ClassFlows, FlowRate, FlowSample, Tracker};
use sluice_observe::{Sample, Source};
use std::net::IpAddr;
use std::time::Duration;

/// A flow with its names.
#[derive(Debug, Clone, Serialize)]
pub struct NamedFlow {
    /// The flow and its rates.
    #[serde(flatten)]
    pub flow: FlowRate,
    /// Name of the protocol.
    pub protocol_name: String,
    /// Service that the ports are for.
    pub service: Option<String>,
    /// Name of the sending host.
    pub src_name: Option<String>,
    /// Name of the receiving host.
    pub dst_name: Option<String>,
    /// Owner on this machine.
    pub process: Option<Process>,
    /// Connection of a forward that the flow is a side of.
    pub connection: Option<Connection>,
}

/// A report on the flows of an interval.
#[derive(Debug, Clone, Default, Serialize)]
pub struct FlowReport {
    /// Time of the report, milliseconds since 1970.
    pub at_ms: u64,
    /// Length of the interval that rates are of, seconds.
    pub span_s: f64,
    /// Flows in all tables.
    pub known: usize,
    /// Flows of these that sent meanwhile.
    pub active: usize,
    /// Interfaces whose policy keeps no flows.
    pub without_flows: Vec<String>,
    /// The first flows by rank.
    pub flows: Vec<NamedFlow>,
    /// Every class that has flows.
    pub classes: Vec<ClassFlows>,
    /// Anomalies and their causes.
    pub anomalies: Vec<Anomaly>,
}

/// Follows flows, and names them.
pub struct View {
    tracker: Tracker,
    services: Services,
    processes: Processes,
    resolver: Option<Resolver>,
    connections: Connections,
}

impl View {
    pub fn new() -> View {
        View {
            tracker: Tracker::default(),
            services: Services::of_machine(),
            processes: Processes::default(),
            resolver: None,
            connections: Connections::default(),
        }
    }

    /// Turns host names on or off.
    pub fn resolve(&mut self, wanted: bool) {
        match (wanted, &self.resolver) {
            (true, None) => self.resolver = Some(Resolver::start()),
            (false, Some(_)) => self.resolver = None,
            _ => {}
        }
    }

    /// The flows since the reading before.
    pub fn read(&mut self, source: &Source, sample: &Sample, by: By, top: usize) -> sluice_kernel::Result<FlowReport> {
        let rates = self.tracker.take(&FlowSample::read(source)?, sample, by, top);
        let keys: Vec<_> = rates.top.iter().map(|flow| flow.key).collect();
        let owners = self.processes.of(&keys);
        self.connections.renew()?;
        let mut flows = Vec::new();
        for (flow, process) in rates.top.into_iter().zip(owners) {
            let key = &flow.key;
            let connection = self.connections.of(key.protocol, (key.src, key.src_port), (key.dst, key.dst_port))?;
            flows.push(self.name_flow(flow, process, connection));
        }
        Ok(FlowReport {
            at_ms: sample.at_ms,
            span_s: rates.span_s,
            known: rates.known,
            active: rates.active,
            without_flows: rates.without_flows,
            flows,
            classes: rates.classes,
            anomalies: rates.anomalies,
        })
    }

    /// Adds names that were asked for and have come since, after a short wait.
    pub fn refresh_names(&self, report: &mut FlowReport, wait: Duration) {
        let Some(resolver) = &self.resolver else { return };
        resolver.wait(wait);
        for named in &mut report.flows {
            (named.src_name, named.dst_name) = (self.host(named.flow.key.src), self.host(named.flow.key.dst));
        }
    }

    fn host(&self, address: IpAddr) -> Option<String> {
        self.resolver.as_ref().and_then(|resolver| resolver.name(address))
    }

    fn name_flow(&self, flow: FlowRate, process: Option<Process>, connection: Option<Connection>) -> NamedFlow {
        let key = flow.key;
        NamedFlow {
            protocol_name: sluice_abi::protocol_name(key.protocol),
            service: self.services.of_flow(key.protocol, [key.src_port, key.dst_port]).map(str::to_owned),
            src_name: self.host(key.src),
            dst_name: self.host(key.dst),
            process,
            connection,
            flow,
        }
    }
}

impl NamedFlow {
    /// The ends of the flow, and its forward: `10.0.0.1:43210 > server.example:443 by forward web`.
    pub fn ends(&self) -> String {
        let key = &self.flow.key;
        let end = |address: IpAddr, name: &Option<String>, port: Option<u16>| {
            let host = name.clone().unwrap_or_else(|| address.to_string());
            match port {
                None => host,
                Some(port) if host.contains(':') => format!("[{host}]:{port}"),
                Some(port) => format!("{host}:{port}"),
            }
        };
        let forward =
            self.connection.as_ref().map_or(String::new(), |connection| format!(" by forward {}", connection.forward));
        format!(
            "{} > {}{forward}",
            end(key.src, &self.src_name, key.src_port),
            end(key.dst, &self.dst_name, key.dst_port)
        )
    }

    /// The owner of the flow: `curl/1234`.
    pub fn owner(&self) -> Option<String> {
        self.process.as_ref().map(|process| format!("{}/{}", process.name, process.pid))
    }

    /// The protocol and service of the flow: `tcp/https`.
    pub fn kind(&self) -> String {
        match &self.service {
            Some(service) => format!("{}/{service}", self.protocol_name),
            None => self.protocol_name.clone(),
        }
    }
}

/// A direction in one word.
pub fn direction(arriving: bool) -> &'static str {
    if arriving { "ingress" } else { "egress" }
}
