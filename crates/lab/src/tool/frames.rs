//! Live XDP frames, which the command itself sends: `sluice lab frames`.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use crate::format::{Load, Rate};
use sluice_error::{Error, Result};
use sluice_testbed::Namespace;
use sluice_testbed::process::Process;

/// The frames that were sent.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Sent {
    /// Frames.
    pub frames: u64,
    /// Time from the first to the last, seconds.
    pub seconds: f64,
}

/// Starts to send the frames of a load to a device of a host.
pub fn start(host: &Namespace, sluice: &Path, device: &str, load: &Load, length: Duration) -> Result<Process> {
    let bytes = load.bytes.unwrap_or(64).to_string();
    let flows = load.flows.unwrap_or(1).to_string();
    let milliseconds = format!("{}ms", length.as_millis());
    let mut arguments =
        vec!["lab", "frames", device, "--bytes", &bytes, "--flows", &flows, "--duration", &milliseconds];
    let rate = match load.rate {
        Some(Rate::Bps(bps)) => Some(format!("{}kbit", bps / 1_000)),
        _ => None,
    };
    arguments.extend(rate.iter().flat_map(|rate| ["--rate", rate]));
    host.start(&sluice.to_string_lossy(), &arguments)
}

/// Reads what the sender has printed.
pub fn parse(text: &str) -> Result<Sent> {
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str(line).map_err(|e| Error::system(format!("sluice lab frames printed \"{line}\": {e}")))
}
