//! The result of the demo: all numbers, and their presentations.

mod chart;
mod picture;
mod scale;
mod sentences;
mod table;

use std::path::Path;

use serde::Serialize;

use crate::demo::measurement::Run;
use crate::demo::options::Options;
use crate::format::{Load, Milliseconds, Scenario};
use crate::result::environment::Environment;
use crate::run::traffic::Window;
use sluice_error::{Error, Result};

/// The parameters of the demo.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parameters {
    /// Rate of the slow link, Mbit/s, Ethernet header included.
    pub line_rate_mbit: u32,
    /// Room in the modem's queue, bytes.
    pub modem_queue_bytes: u64,
    /// The time in which the full queue drains, ms.
    pub modem_queue_ms: f64,
    /// The rate that Sluice shaped to at the router, kbit/s.
    pub sluice_rate_kbit: u32,
    /// The policy that Sluice ran: a profile, or a file without its directories.
    pub policy: String,
    /// Measured time of each run, seconds.
    pub measured_s: u32,
    /// Time of game and call alone before the downloads began, seconds.
    pub idle_s: f64,
    /// The measured window, ms since the downloads began.
    pub window: Window,
    /// Downloads at a time.
    pub downloads: u32,
    /// Their congestion control.
    pub congestion_control: String,
    /// The game's packets.
    pub game: Traffic,
    /// The call's packets.
    pub call: Traffic,
}

/// The parameters of a stream of small packets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Traffic {
    /// UDP port of the server.
    pub port: u16,
    /// Packets a second, each way.
    pub packets_per_second: f64,
    /// UDP payload, bytes.
    pub payload_bytes: u32,
    /// The TOS byte.
    pub tos: u8,
}

impl Traffic {
    fn of(load: &Load) -> Traffic {
        Traffic {
            port: load.port.unwrap_or_default(),
            packets_per_second: load.interval.map_or(0.0, |interval| 1.0 / interval.seconds()),
            payload_bytes: load.bytes.unwrap_or_default(),
            tos: load.dscp.unwrap_or_default().0,
        }
    }
}

impl Parameters {
    /// The parameters of these options in the demo's scenario, Sluice shaping to this rate.
    pub(crate) fn of(options: &Options, scenario: &Scenario, sluice_bps: u64) -> Result<Parameters> {
        let load = |name: &str| {
            let found = scenario.loads.iter().find(|load| load.name() == name);
            found.ok_or_else(|| Error::system(format!("the demo's scenario has no {name}")))
        };
        let downloads = load("downloads")?;
        let queue = scenario.topology.link.iter().find_map(|link| link.queue).unwrap_or(Milliseconds(0.0));
        let from_ms = scenario.warm_up.0;
        Ok(Parameters {
            line_rate_mbit: options.rate_mbit,
            modem_queue_bytes: (f64::from(options.rate_mbit) * 1e6 / 8.0 * queue.seconds()) as u64,
            modem_queue_ms: queue.0,
            sluice_rate_kbit: (sluice_bps / 1_000) as u32,
            policy: policy_name(&options.policy),
            measured_s: options.seconds,
            idle_s: scenario.idle.seconds(),
            window: Window { from_ms, to_ms: from_ms + f64::from(options.seconds) * 1e3 },
            downloads: downloads.flows.unwrap_or(1),
            congestion_control: downloads.congestion.clone().unwrap_or_default(),
            game: Traffic::of(load("game")?),
            call: Traffic::of(load("call")?),
        })
    }
}

fn policy_name(policy: &str) -> String {
    Path::new(policy).file_name().map_or_else(|| policy.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The measurements of the demo.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The machine.
    pub environment: Environment,
    /// The parameters of both runs.
    pub parameters: Parameters,
    /// The run without Sluice at the modem's queue.
    pub without: Run,
    /// The run in which Sluice owned the router's egress.
    pub with: Run,
}

/// The least width of a chart, columns.
const NARROWEST: u16 = 72;
/// The greatest useful width of a chart, columns.
const WIDEST: u16 = 110;

impl Report {
    /// The report for the terminal: table, plot, conclusion, as wide as the terminal.
    pub fn text(&self, color: bool) -> String {
        let columns = console::Term::stdout().size_checked().map_or(100, |(_, columns)| columns);
        self.text_in(color, columns.clamp(NARROWEST, WIDEST))
    }

    fn text_in(&self, color: bool, columns: u16) -> String {
        let parts = [
            sentences::scene(self),
            table::render(self, color),
            chart::render(self, color, columns),
            sentences::conclusion(self),
            sentences::small_print(self),
        ];
        let wrap = |text: &String| if text.contains('\n') { text.clone() } else { wrap(text, columns.into()) };
        parts.iter().map(wrap).collect::<Vec<String>>().join("\n\n") + "\n"
    }

    /// All numbers, raw series included.
    pub fn json(&self) -> Result<String> {
        serde_json::to_string(self)
            .map(|json| json + "\n")
            .map_err(|e| Error::system(format!("cannot write the report as JSON: {e}")))
    }

    /// The picture of both runs.
    pub fn svg(&self) -> Result<String> {
        picture::render(self)
    }
}

/// Break a paragraph between words, never between a number and its unit.
fn wrap(text: &str, columns: usize) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let unit = ["ms", "s", "%", "Mbit/s"].contains(&word.trim_end_matches(['.', ',', ':', ';', ')']));
        match words.last_mut() {
            Some(number) if unit && number.ends_with(|c: char| c.is_ascii_digit()) => *number += &format!(" {word}"),
            _ => words.push(word.to_owned()),
        }
    }
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => *line += &format!(" {word}"),
            _ => lines.push(word),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests;
