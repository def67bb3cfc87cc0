//! iperf3, which downloads as fast as the network lets it: how it is called, what it answers.

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::netns::Namespace;
use crate::process::Process;
use crate::tool::IPERF3;

/// The port it listens on.
pub const PORT: u16 = 5201;

/// What was downloaded in one stretch of a test, all connections together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// When it began, seconds from the test's begin.
    pub start_s: f64,
    /// When it ended, seconds from the test's begin.
    pub end_s: f64,
    /// TCP payload received, bytes.
    pub received_bytes: u64,
}

/// Start a server for one test.
pub fn start_server(host: &Namespace, address: &str) -> Result<Process> {
    host.start(IPERF3.program, &["-s", "-1", "-B", address])
}

/// Start a client that downloads (-R) over `connections` TCP connections.
pub fn start_download(
    host: &Namespace,
    server: &str,
    connections: u32,
    control: &str,
    seconds: u32,
) -> Result<Process> {
    let connections = connections.to_string();
    let seconds = seconds.to_string();
    let arguments = ["-4", "-c", server, "-R", "-P", &connections, "-t", &seconds, "-C", control, "-i", "0.5", "-J"];
    host.start(IPERF3.program, &arguments)
}

#[derive(Deserialize)]
struct Document {
    error: Option<String>,
    #[serde(default)]
    intervals: Vec<RawInterval>,
}

#[derive(Deserialize)]
struct RawInterval {
    sum: Sum,
}

#[derive(Deserialize)]
struct Sum {
    start: f64,
    end: f64,
    bytes: u64,
}

/// Read a client's JSON.
pub fn parse(json: &str) -> Result<Vec<Interval>> {
    let document: Document = serde_json::from_str(json).map_err(|e| {
        Error::system(format!("cannot read what iperf3 wrote: {e}"))
            .help("iperf3 3.12, as Debian has it, is known to work")
    })?;
    if let Some(error) = document.error {
        return Err(Error::system(format!("iperf3 failed: {error}")));
    }
    let interval =
        |raw: RawInterval| Interval { start_s: raw.sum.start, end_s: raw.sum.end, received_bytes: raw.sum.bytes };
    Ok(document.intervals.into_iter().map(interval).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_answer_is_read() {
        let intervals = parse(include_str!("../tests/fixtures/iperf3.json")).unwrap();
        assert_eq!(intervals.len(), 2);
        assert_eq!(intervals[0], Interval { start_s: 0.0, end_s: 1.000131, received_bytes: 2_621_440 });
    }

    #[test]
    fn iperf3s_own_error_is_passed_on() {
        let error =
            parse(r#"{"start":{},"intervals":[],"end":{},"error":"unable to connect to server: No route to host"}"#);
        assert_eq!(error.unwrap_err().what, "iperf3 failed: unable to connect to server: No route to host");
    }
}
