//! iperf3 in namespaces.

use crate::command::Process;
use crate::net::Ns;
use sluice_testbed::iperf3;

/// A server for one test, which listens when this returns. Port 5201.
pub fn serve(ns: &Ns) -> Process {
    serve_at(ns, 5201)
}

/// A server for one test, on another port.
pub fn serve_at(ns: &Ns, port: u16) -> Process {
    let server = iperf3::serve(ns.testbed(), port).unwrap_or_else(|error| panic!("{error}"));
    Process::of(&format!("iperf3, the server at port {port}"), server)
}

/// A client, or any other call of iperf3.
pub fn start(ns: &Ns, line: &str) -> Process {
    let arguments: Vec<&str> = line.split_whitespace().collect();
    let started = ns.testbed().start("iperf3", &arguments).unwrap_or_else(|error| panic!("{error}"));
    Process::of(&format!("iperf3 {line}"), started)
}
