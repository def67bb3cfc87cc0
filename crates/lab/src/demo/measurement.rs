//! The measurements of a run: raw series and their summaries.

use serde::Serialize;

use crate::result::results::{Bottleneck, Delays};
use crate::result::statistics::Distribution;

/// One packet of a game or a call.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sample {
    /// Send time, ms since the downloads began.
    pub sent_ms: f64,
    /// Round trip from home to the server, ms; none if the packet was lost.
    pub rtt_ms: Option<f64>,
}

/// The delays and losses of a stream of small packets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Probe {
    /// Round trips before the downloads began.
    pub idle_rtt: Option<Distribution>,
    /// Round trips within the window: the ping that players see.
    pub rtt: Option<Distribution>,
    /// Mean change of the round trip from packet to packet, ms.
    pub jitter_ms: Option<f64>,
    /// Packets sent within the window.
    pub sent: u64,
    /// Packets sent within the window that never came back.
    pub lost: u64,
    /// Lost packets, percent of those sent.
    pub loss_percent: f64,
    /// Every packet of the run.
    pub series: Vec<Sample>,
}

impl Probe {
    /// The demo's figures of a load with delays.
    pub fn of(delays: &Delays) -> Probe {
        let sample = |(sent_ms, rtt_ms): &(f64, Option<f64>)| Sample { sent_ms: *sent_ms, rtt_ms: *rtt_ms };
        Probe {
            idle_rtt: delays.idle,
            rtt: delays.whole,
            jitter_ms: delays.jitter_ms,
            sent: delays.sent,
            lost: delays.lost,
            loss_percent: if delays.sent == 0 { 0.0 } else { delays.lost as f64 * 100.0 / delays.sent as f64 },
            series: delays.series.iter().map(sample).collect(),
        }
    }
}

/// The throughput of all downloads together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bulk {
    /// TCP payload received within the window, Mbit/s.
    pub mbit: f64,
    /// Pairs of time and rate: the end of an interval, ms since the downloads began, and the rate in it, Mbit/s.
    pub series: Vec<(f64, f64)>,
}

/// The queue in the modem, which shows where packets waited.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModemQueue {
    /// Mean over the window, ms on the slow link.
    pub mean_ms: f64,
    /// Greatest seen, ms on the slow link.
    pub max_ms: f64,
    /// Packets dropped during the whole run.
    pub dropped_packets: u64,
    /// Pairs of ms since the downloads began and queued bytes.
    pub series: Vec<(f64, u64)>,
}

impl ModemQueue {
    /// The queue of the line in a bottleneck's figures.
    pub fn of(bottleneck: &Bottleneck) -> ModemQueue {
        ModemQueue {
            mean_ms: bottleneck.line_mean_ms,
            max_ms: bottleneck.line_max_ms,
            dropped_packets: bottleneck.line_dropped,
            series: bottleneck.series.iter().map(|(at_ms, _, line_bytes)| (*at_ms, *line_bytes)).collect(),
        }
    }
}

/// One run: the same traffic under one contender.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    /// "without Sluice" or "with Sluice".
    pub contender: String,
    /// The engine, by Sluice's own report; none without Sluice.
    pub engine: Option<String>,
    /// Offloads of the router's device towards the modem during the run.
    pub offloads: String,
    /// The delays and losses of the game.
    pub game: Probe,
    /// The delays and losses of the call.
    pub call: Probe,
    /// The throughput of the downloads.
    pub bulk: Bulk,
    /// The queue in the modem.
    pub modem_queue: ModemQueue,
}
