//! What a run measured: series as they came, and what is said about them.

use serde::Serialize;

use crate::statistics::{Distribution, mean_jitter_ms};
use crate::traffic::Window;

/// One packet of a game or a call.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sample {
    /// When it was sent, ms since the downloads began.
    pub sent_ms: f64,
    /// From home to the server and back, ms; nothing if it was lost.
    pub rtt_ms: Option<f64>,
}

/// What a stream of small packets felt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Probe {
    /// Round trips before the downloads began.
    pub idle_rtt: Option<Distribution>,
    /// Round trips within the window: what players call ping.
    pub rtt: Option<Distribution>,
    /// Mean change of the round trip from packet to packet, ms.
    pub jitter_ms: Option<f64>,
    /// Packets sent within the window.
    pub sent: usize,
    /// Those of them that never came back.
    pub lost: usize,
    /// Lost packets, percent of those sent.
    pub loss_percent: f64,
    /// Every packet of the run.
    pub series: Vec<Sample>,
}

impl Probe {
    /// What this series says in this window.
    pub fn of(series: Vec<Sample>, window: Window) -> Probe {
        let counted: Vec<Sample> = series.iter().copied().filter(|s| window.holds(s.sent_ms)).collect();
        let round_trips: Vec<Option<f64>> = counted.iter().map(|s| s.rtt_ms).collect();
        let lost = round_trips.iter().filter(|rtt| rtt.is_none()).count();
        Probe {
            idle_rtt: Distribution::of(series.iter().filter(|s| s.sent_ms < 0.0).filter_map(|s| s.rtt_ms)),
            rtt: Distribution::of(round_trips.iter().flatten().copied()),
            jitter_ms: mean_jitter_ms(&round_trips),
            sent: counted.len(),
            lost,
            loss_percent: if counted.is_empty() { 0.0 } else { lost as f64 * 100.0 / counted.len() as f64 },
            series,
        }
    }
}

/// What the downloads got, all together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bulk {
    /// TCP payload received within the window, Mbit/s.
    pub mbit: f64,
    /// Mbit/s over time: pairs of ms since the downloads began (end of a stretch) and the rate in that stretch.
    pub series: Vec<(f64, f64)>,
}

/// What waited in the modem: the proof of where the queue formed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModemQueue {
    /// Mean over the window, ms on the slow link.
    pub mean_ms: f64,
    /// Greatest seen, ms on the slow link.
    pub max_ms: f64,
    /// Packets that it dropped during the whole run.
    pub dropped_packets: u64,
    /// Pairs of ms since the downloads began and bytes waiting.
    pub series: Vec<(f64, u64)>,
}

impl ModemQueue {
    /// What these looks at the queue say.
    pub fn of(series: Vec<(f64, u64)>, dropped_packets: u64, window: Window, rate_mbit: u32) -> ModemQueue {
        let waits: Vec<f64> = series
            .iter()
            .filter(|(ms, _)| window.holds(*ms))
            .map(|(_, bytes)| *bytes as f64 * 8.0 / (f64::from(rate_mbit) * 1e3))
            .collect();
        let waits = Distribution::of(waits);
        ModemQueue {
            mean_ms: waits.map_or(0.0, |d| d.mean_ms),
            max_ms: waits.map_or(0.0, |d| d.max_ms),
            dropped_packets,
            series,
        }
    }
}

/// One run: the same traffic under one contender.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    /// "without Sluice" or "with Sluice".
    pub contender: String,
    /// Which engine ran, as Sluice said it; nothing without Sluice.
    pub engine: Option<String>,
    /// Offloads of the router's device towards the modem during the run.
    pub offloads: String,
    /// What the player felt.
    pub game: Probe,
    /// What the caller felt.
    pub call: Probe,
    /// What the downloads got.
    pub bulk: Bulk,
    /// What waited in the modem.
    pub modem_queue: ModemQueue,
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { from_ms: 1_000.0, to_ms: 2_000.0 };

    fn sample(sent_ms: f64, rtt_ms: Option<f64>) -> Sample {
        Sample { sent_ms, rtt_ms }
    }

    #[test]
    fn only_the_window_counts() {
        let series = vec![
            sample(-500.0, Some(0.1)),
            sample(500.0, Some(99.0)),
            sample(1_000.0, Some(4.0)),
            sample(1_200.0, None),
            sample(1_400.0, Some(6.0)),
            sample(1_600.0, Some(7.0)),
            sample(2_000.0, Some(99.0)),
        ];
        let probe = Probe::of(series, WINDOW);
        assert_eq!((probe.sent, probe.lost, probe.loss_percent), (4, 1, 25.0));
        assert_eq!(probe.idle_rtt.unwrap().max_ms, 0.1);
        let rtt = probe.rtt.unwrap();
        assert_eq!((rtt.count, rtt.p50_ms, rtt.max_ms), (3, 6.0, 7.0));
        assert_eq!(probe.jitter_ms, Some(1.0));
        assert_eq!(probe.series.len(), 7);
    }

    #[test]
    fn the_modems_queue_is_told_in_time() {
        let queue = ModemQueue::of(vec![(0.0, 9), (1_000.0, 250_000), (1_500.0, 500_000)], 3, WINDOW, 20);
        assert_eq!((queue.mean_ms, queue.max_ms, queue.dropped_packets), (150.0, 200.0, 3));
    }
}
