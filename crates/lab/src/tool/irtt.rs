//! irtt, a sender of small packets at a steady pace that times each round trip: its arguments and its output.

use std::time::Duration;

use serde::Deserialize;

use sluice_error::{Error, Result};
use sluice_testbed::Namespace;
use sluice_testbed::process::Process;
use sluice_testbed::tool::IRTT;

/// A steady stream of small packets, each answered by one of the same size.
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    /// UDP port of the server.
    pub port: u16,
    /// Microseconds from packet to packet.
    pub interval_us: u32,
    /// UDP payload, bytes.
    pub payload_bytes: u32,
    /// The TOS byte, both ways (irtt calls it DSCP, but takes the whole byte).
    pub tos: u8,
}

/// Starts a server for one stream.
pub fn start_server(host: &Namespace, address: &str, stream: &Stream) -> Result<Process> {
    // -i 0 accepts a burst that a queue releases at once.
    host.start_timing(IRTT.program, &["server", "-b", &format!("{address}:{}", stream.port), "-i", "0"])
}

/// Starts the client of one stream for this time.
pub fn start_client(host: &Namespace, server: &str, stream: &Stream, duration: Duration) -> Result<Process> {
    let duration = format!("{}ms", duration.as_millis());
    let interval = format!("{}us", stream.interval_us);
    let length = stream.payload_bytes.to_string();
    let tos = format!("--dscp={:#04x}", stream.tos);
    let target = format!("{server}:{}", stream.port);
    let arguments = [
        "client",
        "-4",
        "-d",
        &duration,
        "-i",
        &interval,
        "-l",
        &length,
        &tos,
        "-Q",
        "-o",
        "-",
        "--fill=rand",
        &target,
    ];
    host.start_timing(IRTT.program, &arguments)
}

/// One packet and its answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exchange {
    /// Send time, ms since `zero_ns` of `parse`.
    pub sent_ms: f64,
    /// Round trip, ms; none if the packet was lost.
    pub whole_ms: Option<f64>,
    /// Delay from client to server (all hosts share one clock), ms; none if the packet was lost.
    pub there_ms: Option<f64>,
    /// Delay from server to client, ms; none if the packet was lost.
    pub back_ms: Option<f64>,
}

#[derive(Deserialize)]
struct Document {
    round_trips: Vec<RoundTrip>,
}

#[derive(Deserialize)]
struct RoundTrip {
    lost: String,
    timestamps: Timestamps,
    #[serde(default)]
    delay: Delay,
}

#[derive(Deserialize)]
struct Timestamps {
    client: Client,
}

#[derive(Deserialize)]
struct Client {
    send: Stamp,
}

#[derive(Deserialize)]
struct Stamp {
    wall: i64,
}

/// Nanoseconds; absent for a lost packet.
#[derive(Deserialize, Default)]
struct Delay {
    rtt: Option<i64>,
    send: Option<i64>,
    receive: Option<i64>,
}

/// Parses a client's JSON. Times become milliseconds since `zero_ns` (wall clock, nanoseconds since 1970).
pub fn parse(json: &str, zero_ns: i64) -> Result<Vec<Exchange>> {
    let document: Document = serde_json::from_str(json).map_err(|e| {
        Error::system(format!("cannot read the output of irtt: {e}"))
            .help("irtt 0.9.0, as Debian has it, is known to work")
    })?;
    Ok(document.round_trips.into_iter().map(|exchange| read(&exchange, zero_ns)).collect())
}

fn read(exchange: &RoundTrip, zero_ns: i64) -> Exchange {
    let arrived = exchange.lost == "false";
    let milliseconds = |ns: Option<i64>| ns.filter(|_| arrived).map(|ns| ns as f64 / 1e6);
    Exchange {
        sent_ms: (exchange.timestamps.client.send.wall - zero_ns) as f64 / 1e6,
        whole_ms: milliseconds(exchange.delay.rtt),
        there_ms: milliseconds(exchange.delay.send),
        back_ms: milliseconds(exchange.delay.receive),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_output_is_parsed() {
        let exchanges = parse(include_str!("../../tests/fixtures/irtt.json"), 1_795_222_919_660_000_000).unwrap();
        assert_eq!(exchanges.len(), 3);
        assert_eq!((exchanges[0].whole_ms, exchanges[0].back_ms), (Some(101.387_299), Some(101.300_055)));
        assert!((exchanges[0].sent_ms - 10.705).abs() < 0.001, "{}", exchanges[0].sent_ms);
        assert_eq!((exchanges[1].whole_ms, exchanges[1].back_ms), (None, None));
        assert!((exchanges[1].sent_ms - 26.993).abs() < 0.001, "{}", exchanges[1].sent_ms);
        assert_eq!(exchanges[2].whole_ms, Some(111.485_822));
    }

    #[test]
    fn nonsense_is_refused_with_a_cure() {
        let error = parse("{}", 0).unwrap_err();
        assert!(error.what.contains("round_trips") && error.cure.is_some());
    }
}
