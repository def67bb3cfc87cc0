//! Pages over HTTP: busybox serves them, curl fetches them, each over a connection of its own.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use sluice_error::{Error, Result};
use sluice_testbed::Namespace;
use sluice_testbed::process::{Line, Process};
use sluice_testbed::tool::{BUSYBOX, CURL};

/// The parameters of page fetches.
#[derive(Debug, Clone, Copy)]
pub struct Pages {
    /// Port of the server.
    pub port: u16,
    /// Size of a page.
    pub bytes: u32,
    /// Interval between the begins of fetches; none means one after another.
    pub interval: Option<Duration>,
    /// Number of parallel fetches, without an interval.
    pub parallel: u32,
}

/// A fetch of a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fetch {
    /// Time at which its last byte came or curl gave up.
    pub ended: SystemTime,
    /// Time to the end of the TCP handshake, ms.
    pub connect_ms: f64,
    /// Time from the begin to the last byte, ms.
    pub whole_ms: f64,
    /// Received bytes.
    pub bytes: u64,
    /// Whether all bytes were received.
    pub complete: bool,
}

/// Time after which curl gives up on a page, seconds.
const TIMEOUT_S: &str = "10";
/// More fetches than any trial makes without an interval.
const MAX_FETCHES: u64 = 10_000_000;
/// The figures that curl writes for each fetch.
const WRITE_OUT: &str = "%{stderr}%{time_connect} %{time_total} %{size_download} %{http_code}\\n";

/// Starts a server whose pages lie in `directory`, which is made.
pub fn start_server(host: &Namespace, address: &str, pages: &Pages, directory: &Path) -> Result<Process> {
    let page = directory.join("page");
    fs::create_dir_all(directory)
        .and_then(|()| fs::write(&page, vec![b'.'; pages.bytes as usize]))
        .map_err(|e| Error::system(format!("cannot write {}: {e}", page.display())))?;
    let listen = format!("{address}:{}", pages.port);
    host.start(BUSYBOX.program, &["httpd", "-f", "-p", &listen, "-h", &directory.to_string_lossy()])
}

/// Starts to fetch, for about this time. A client without an interval has to be stopped.
pub fn start_client(host: &Namespace, server: &str, pages: &Pages, duration: Duration) -> Result<Process> {
    let count = pages
        .interval
        .map_or(MAX_FETCHES, |interval| (duration.as_secs_f64() / interval.as_secs_f64()).max(1.0) as u64);
    let url = format!("http://{server}:{}/page?[1-{count}]", pages.port);
    let pace = pages.interval.map(|interval| format!("{:.0}/h", 3_600.0 / interval.as_secs_f64()));
    let parallel = pages.parallel.to_string();
    let mut arguments = vec!["-q", "-s", "-o", "/dev/null", "--max-time", TIMEOUT_S, "-w", WRITE_OUT];
    match &pace {
        Some(pace) => arguments.extend(["--rate", pace]),
        None if pages.parallel > 1 => {
            arguments.extend(["--parallel", "--parallel-immediate", "--parallel-max", &parallel])
        }
        None => {}
    }
    arguments.push(&url);
    host.start(CURL.program, &arguments)
}

/// Parses curl's output with the times of its lines.
pub fn parse(lines: &[Line], bytes: u32) -> Vec<Fetch> {
    lines
        .iter()
        .filter_map(|line| {
            let mut words = line.text.split_whitespace();
            let mut number = || words.next()?.parse::<f64>().ok();
            let (connect, whole, size, code) = (number()?, number()?, number()?, number()?);
            let complete = code == 200.0 && size == f64::from(bytes);
            Some(Fetch {
                ended: line.at,
                connect_ms: connect * 1e3,
                whole_ms: whole * 1e3,
                bytes: size as u64,
                complete,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_fetch_is_incomplete() {
        let now = SystemTime::now();
        let line = |text: &str| Line { at: now, is_error: true, text: text.to_owned() };
        let fetches = parse(
            &[
                line("0.020100 0.067000 30000 200"),
                line("0.000000 10.000100 0 000"),
                line("0.02 0.05 1448 200"),
                line("curl: oops"),
            ],
            30_000,
        );
        assert_eq!(fetches.len(), 3);
        assert_eq!((fetches[0].connect_ms, fetches[0].whole_ms), (20.1, 67.0));
        assert_eq!(fetches.iter().map(|fetch| fetch.complete).collect::<Vec<_>>(), [true, false, false]);
    }
}
