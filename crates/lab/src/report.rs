//! What the demo hands back: all numbers, and the ways to show them.

mod chart;
mod picture;
mod scale;
mod sentences;
mod table;

use std::path::Path;

use serde::Serialize;

use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::irtt::Stream;
use crate::line;
use crate::measurement::{Run, Window};
use crate::options::Options;
use crate::trial;

/// With what the demo was run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parameters {
    /// Rate of the slow link, Mbit/s, Ethernet header included.
    pub line_rate_mbit: u32,
    /// Room in the modem's queue, bytes.
    pub modem_queue_bytes: u64,
    /// What Sluice shaped to at the router, kbit/s.
    pub sluice_rate_kbit: u32,
    /// The policy that Sluice ran: a profile, or a file without its directories.
    pub policy: String,
    /// Measured time of each run, seconds.
    pub measured_s: u32,
    /// The stretch that counts, ms since the downloads began.
    pub window: Window,
    /// Downloads at a time.
    pub downloads: u32,
    /// Their congestion control.
    pub congestion_control: &'static str,
    /// The game's packets.
    pub game: Traffic,
    /// The call's packets.
    pub call: Traffic,
}

/// How a stream of small packets is made.
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

impl From<Stream> for Traffic {
    fn from(stream: Stream) -> Traffic {
        Traffic {
            port: stream.port,
            packets_per_second: 1e6 / f64::from(stream.interval_us),
            payload_bytes: stream.payload_bytes,
            tos: stream.tos,
        }
    }
}

impl Parameters {
    /// What these options mean, Sluice shaping to this share of the line.
    pub(crate) fn of(options: &Options, share_percent: u32) -> Parameters {
        Parameters {
            line_rate_mbit: options.rate_mbit,
            modem_queue_bytes: line::queue_bytes(options.rate_mbit),
            sluice_rate_kbit: options.rate_mbit * share_percent * 10,
            policy: policy_name(&options.policy),
            measured_s: options.seconds,
            window: trial::window(options.seconds),
            downloads: trial::DOWNLOADS,
            congestion_control: trial::CONGESTION_CONTROL,
            game: trial::GAME.into(),
            call: trial::CALL.into(),
        }
    }
}

fn policy_name(policy: &str) -> String {
    Path::new(policy).file_name().map_or_else(|| policy.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Everything that the demo found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// On what.
    pub environment: Environment,
    /// With what.
    pub parameters: Parameters,
    /// The run in which the modem's queue was left alone.
    pub without: Run,
    /// The run in which Sluice owned the router's egress.
    pub with: Run,
}

/// Narrower than this a chart says nothing, columns.
const NARROWEST: u16 = 72;
/// Wider than this it is no easier to read, columns.
const WIDEST: u16 = 110;

impl Report {
    /// What a person reads in the terminal: table, plot, conclusion. As wide as the terminal, if there is one.
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
