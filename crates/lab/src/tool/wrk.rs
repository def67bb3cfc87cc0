//! wrk, which asks for a page over many connections as fast as it is answered.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::result::statistics::Distribution;
use crate::tool::nginx::PAGE;
use sluice_error::{Error, Result};
use sluice_testbed::Namespace;
use sluice_testbed::process::Process;
use sluice_testbed::tool::WRK;

/// The parameters of a test.
#[derive(Debug, Clone, Copy)]
pub struct Requests {
    /// Connections at a time.
    pub flows: u32,
    /// Whether a connection carries many requests.
    pub keep_alive: bool,
    /// Duration; whole seconds count.
    pub length: Duration,
}

/// The results of a test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answers {
    /// Answered requests a second.
    pub per_second: f64,
    /// Requests that were answered.
    pub answered: u64,
    /// Requests that were not, or not with the page.
    pub failed: u64,
    /// Times from request to answer, ms.
    pub times: Option<Distribution>,
}

/// The beginning of the line in which the script prints the results.
const PREFIX: &str = "results";
/// wrk's own output has neither the least time nor the 95th percentile.
const SCRIPT: &str = r#"done = function(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format("results %d %d %d %d", summary.requests, summary.duration,
    errors.connect + errors.read + errors.write + errors.timeout, errors.status))
  for _, us in ipairs({ latency.min, latency.mean, latency:percentile(50), latency:percentile(90),
      latency:percentile(95), latency:percentile(99), latency.max }) do
    io.write(string.format(" %.1f", us))
  end
  io.write("\n")
end
"#;

/// Starts a test. The script lies in `directory`, which is made.
pub fn start(host: &Namespace, server: &str, port: u16, requests: &Requests, directory: &Path) -> Result<Process> {
    let script = directory.join("wrk.lua");
    fs::create_dir_all(directory)
        .and_then(|()| fs::write(&script, SCRIPT))
        .map_err(|e| Error::system(format!("cannot write {}: {e}", script.display())))?;
    let (flows, seconds) = (requests.flows.to_string(), format!("{}s", requests.length.as_secs().max(1)));
    let (script, url) = (script.to_string_lossy(), format!("http://{server}:{port}/{PAGE}"));
    let mut arguments = vec!["-t", "1", "-c", &flows, "-d", &seconds, "-s", &script];
    if !requests.keep_alive {
        arguments.extend(["-H", "Connection: close"]);
    }
    arguments.push(&url);
    host.start(WRK.program, &arguments)
}

/// Reads the line of the script.
pub fn parse(output: &str) -> Result<Answers> {
    let found = output.lines().find_map(|line| {
        let numbers: Option<Vec<f64>> =
            line.strip_prefix(PREFIX)?.split_whitespace().map(|word| word.parse().ok()).collect();
        let [requests, us, broken, refused, times @ ..] = numbers?.try_into().ok().map(|all: [f64; 11]| all)?;
        let [min_ms, mean_ms, p50_ms, p90_ms, p95_ms, p99_ms, max_ms] = times.map(|us| us / 1e3);
        let count = requests as usize;
        let times = Distribution { count, min_ms, mean_ms, p50_ms, p90_ms, p95_ms, p99_ms, max_ms };
        // wrk counts answers that are no page among the requests.
        let answered = (requests - refused).max(0.0);
        Some(Answers {
            per_second: if us > 0.0 { answered * 1e6 / us } else { 0.0 },
            answered: answered as u64,
            failed: (broken + refused) as u64,
            times: (count > 0).then_some(times),
        })
    });
    found.ok_or_else(|| Error::system(format!("wrk told no results: {}", output.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read() {
        let text = "Running 4s test\nresults 80325 2000000 2 25 11.0 407.5 42.0 1344.0 2771.0 5518.0 13161.0\n";
        let answers = parse(text).unwrap();
        assert_eq!((answers.per_second, answers.answered, answers.failed), (40_150.0, 80_300, 27));
        let times = answers.times.unwrap();
        assert_eq!((times.count, times.mean_ms, times.p99_ms, times.max_ms), (80_325, 0.4075, 5.518, 13.161));
        assert_eq!(parse("results 0 1000000 9 0 0.0 0.0 0.0 0.0 0.0 0.0 0.0").unwrap().times, None);
        assert!(parse("unable to connect").unwrap_err().what.contains("unable to connect"));
    }
}
