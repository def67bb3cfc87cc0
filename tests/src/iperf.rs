//! iperf3 in namespaces.

use crate::command::{Process, await_that};
use crate::net::Ns;
use std::process::Command;
use std::time::Duration;

/// A server for one test, which listens when this returns. Port 5201.
pub fn serve(ns: &Ns) -> Process {
    serve_at(ns, 5201)
}

/// Likewise on another port.
pub fn serve_at(ns: &Ns, port: u16) -> Process {
    let server = start(ns, &format!("-s -1 -p {port}"));
    let listens = || {
        let read = |table: &str| ns.inside(|| std::fs::read_to_string(format!("/proc/thread-self/net/{table}")));
        let bound = format!(":{port:04X} ");
        ["tcp", "tcp6"].iter().any(|table| read(table).is_ok_and(|text| text.contains(&bound)))
    };
    await_that("iperf3 listens", Duration::from_secs(20), listens);
    server
}

/// A client, or whatever the line says.
pub fn start(ns: &Ns, line: &str) -> Process {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &ns.name, "iperf3"]).args(line.split_whitespace());
    Process::start(&mut command)
}
