//! Snapshots of queues, wires and processors while traffic runs, and figures computed from them.

use std::fs;

use crate::format::{Queue, Shaped, Topology};
use crate::result::results::{Bottleneck, Clock, Processor};
use crate::run::network::{Network, device};
use crate::run::traffic::Window;
use crate::tool::qdisc;
use sluice_error::{Error, Result};
use sluice_testbed::Namespace;

/// A snapshot of all queues and processors.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Time of the snapshot, ms since the bulk traffic began.
    pub at_ms: f64,
    /// The queues and counters of each shaped direction.
    pub directions: Vec<DirectionSnapshot>,
    /// Ticks of all processors: busy, all.
    pub ticks: (u64, u64),
}

/// A shaped direction at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DirectionSnapshot {
    /// Backlog of the contender, bytes.
    pub owned_bytes: u64,
    /// Backlog of the line, bytes.
    pub line_bytes: u64,
    /// Packets that the line has dropped.
    pub line_dropped: u64,
    /// Bytes that have left.
    pub wire_bytes: u64,
    /// Packets that have left.
    pub wire_pkts: u64,
}

/// Takes a snapshot.
pub fn take(
    at_ms: f64,
    (topology, queue): (&Topology, &Queue),
    shaped: &[&Shaped],
    network: &Network,
) -> Result<Snapshot> {
    let owner_end = queue.owner.get_ref();
    let own_device = device(owner_end);
    let known: Vec<String> = topology.nodes().map(|name| device(&(owner_end.0.clone(), name.clone()))).collect();
    let at_owner = qdisc::roots(network.host(&owner_end.0)?)?;
    let mut directions = Vec::new();
    for shaped in shaped {
        let (line, wire) = (shaped.line.get_ref(), shaped.wire.get_ref());
        // Arriving packets wait at a device that the contender has made.
        let is_own = |name: &str| match shaped.direction {
            crate::format::Direction::Egress => name == own_device,
            crate::format::Direction::Ingress => name != "lo" && !known.iter().any(|known| known == name),
        };
        let line_queue = qdisc::root(network.host(&line.0)?, &device(line))?;
        let (wire_bytes, wire_pkts) = sent(network.host(&wire.0)?, &device(wire))?;
        directions.push(DirectionSnapshot {
            owned_bytes: at_owner.iter().filter(|queue| is_own(&queue.device)).map(|queue| queue.backlog_bytes).sum(),
            line_bytes: line_queue.backlog_bytes,
            line_dropped: line_queue.dropped_packets,
            wire_bytes,
            wire_pkts,
        });
    }
    Ok(Snapshot { at_ms, directions, ticks: ticks()? })
}

/// Bytes and packets that a device has sent.
fn sent(host: &Namespace, device: &str) -> Result<(u64, u64)> {
    let table = host
        .inside(|| fs::read_to_string("/proc/thread-self/net/dev"))?
        .map_err(|e| Error::system(format!("cannot read the devices' counters: {e}")))?;
    counters(&table, device).ok_or_else(|| Error::system(format!("device {device} has no counters")))
}

fn counters(table: &str, device: &str) -> Option<(u64, u64)> {
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix(device)?.strip_prefix(':'))?;
    let fields: Vec<u64> = line.split_whitespace().filter_map(|field| field.parse().ok()).collect();
    Some((*fields.get(8)?, *fields.get(9)?))
}

/// Busy ticks of all processors, and all ticks.
pub fn ticks() -> Result<(u64, u64)> {
    let text = fs::read_to_string("/proc/stat").map_err(|e| Error::system(format!("cannot read /proc/stat: {e}")))?;
    busy(&text).ok_or_else(|| Error::system("/proc/stat has no line of all processors"))
}

fn busy(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    // The order is user nice system idle iowait irq softirq steal; the columns after these are contained in user and nice.
    let fields: Vec<u64> = line.split_whitespace().take(8).filter_map(|field| field.parse().ok()).collect();
    let all: u64 = fields.iter().sum();
    Some((all - fields.get(3)? - fields.get(4)?, all))
}

/// Busy time of the processors between two snapshots, percent.
pub fn busy_percent(before: (u64, u64), after: (u64, u64)) -> f64 {
    let all = after.1.saturating_sub(before.1);
    if all == 0 { 0.0 } else { after.0.saturating_sub(before.0) as f64 * 100.0 / all as f64 }
}

/// The first and the last snapshot in the window.
fn ends(snapshots: &[Snapshot], window: Window) -> Option<(&Snapshot, &Snapshot)> {
    // A snapshot is taken a little after it is due.
    let slack = Window { from_ms: window.from_ms, to_ms: window.to_ms + 250.0 };
    let mut counted = snapshots.iter().filter(|snapshot| slack.holds(snapshot.at_ms));
    let first = counted.next()?;
    Some((first, counted.next_back()?))
}

/// The figures of a direction's bottleneck.
pub fn bottleneck(
    shaped: &Shaped,
    number: usize,
    snapshots: &[Snapshot],
    window: Window,
    rate_bps: u64,
    line_bps: u64,
) -> Bottleneck {
    let ms = |bytes: u64, bps: u64| bytes as f64 * 8e3 / bps as f64;
    let counted: Vec<(f64, DirectionSnapshot)> = snapshots
        .iter()
        .filter(|snapshot| window.holds(snapshot.at_ms))
        .filter_map(|snapshot| Some((snapshot.at_ms, *snapshot.directions.get(number)?)))
        .collect();
    let owned: Vec<f64> = counted.iter().map(|(_, direction)| ms(direction.owned_bytes, rate_bps)).collect();
    let line: Vec<f64> = counted.iter().map(|(_, direction)| ms(direction.line_bytes, line_bps)).collect();
    let mean = |all: &[f64]| (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64);
    let (used_percent, pkts) = ends(snapshots, window).map_or((0.0, 0), |(first, last)| {
        let (a, b) = (first.directions[number], last.directions[number]);
        let bits = (b.wire_bytes - a.wire_bytes) as f64 * 8.0;
        let seconds = (last.at_ms - first.at_ms) / 1e3;
        (100.0 * bits / (rate_bps as f64 * seconds), b.wire_pkts - a.wire_pkts)
    });
    let dropped = |snapshot: Option<&Snapshot>| snapshot.map_or(0, |snapshot| snapshot.directions[number].line_dropped);
    Bottleneck {
        direction: shaped.direction.name().to_owned(),
        used_percent,
        pkts,
        owned_mean_ms: mean(&owned),
        owned_max_ms: owned.iter().copied().reduce(f64::max),
        line_mean_ms: mean(&line).unwrap_or_default(),
        line_max_ms: line.iter().copied().fold(0.0, f64::max),
        line_dropped: dropped(snapshots.last()) - dropped(snapshots.first()),
        series: snapshots
            .iter()
            .filter_map(|snapshot| Some((snapshot.at_ms.round(), snapshot.directions.get(number)?)))
            .map(|(at_ms, direction)| (at_ms, direction.owned_bytes, direction.line_bytes))
            .collect(),
    }
}

/// The figures of the processors.
pub fn processor(snapshots: &[Snapshot], window: Window, clock: Clock) -> Processor {
    let Some((first, last)) = ends(snapshots, window) else {
        return Processor { busy_percent: 0.0, instructions_per_packet: None };
    };
    let busy_percent = busy_percent(first.ticks, last.ticks);
    let pkts = |snapshot: &Snapshot| snapshot.directions.iter().map(|direction| direction.wire_pkts).sum::<u64>();
    let pkts = pkts(last) - pkts(first);
    // The machine has one processor, which runs 10^9 instructions a second.
    let instructions = busy_percent / 100.0 * (last.at_ms - first.at_ms) * 1e6;
    let per_packet = (clock == Clock::Instructions && pkts > 0).then(|| instructions / pkts as f64);
    Processor { busy_percent, instructions_per_packet: per_packet }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_averaged_over_time() {
        let demo = crate::demo::scenario().unwrap().topology;
        let snapshot = |at_ms, owned_bytes, line_bytes, sent| Snapshot {
            at_ms,
            directions: vec![DirectionSnapshot {
                owned_bytes,
                line_bytes,
                line_dropped: sent,
                wire_bytes: sent * 1_000,
                wire_pkts: sent,
            }],
            ticks: (sent, 2 * sent),
        };
        let seen = [
            snapshot(0.0, 9, 9, 0),
            snapshot(1_000.0, 250_000, 250_000, 100),
            snapshot(1_500.0, 0, 500_000, 1_350),
            snapshot(2_010.0, 9, 9, 2_600),
        ];
        let window = Window { from_ms: 1_000.0, to_ms: 2_000.0 };
        let found = bottleneck(&demo.queue().unwrap().shaped[0], 0, &seen, window, 10_000_000, 20_000_000);
        assert_eq!((found.line_mean_ms, found.line_max_ms, found.line_dropped), (150.0, 200.0, 2_600));
        assert_eq!((found.owned_mean_ms, found.owned_max_ms, found.pkts), (Some(100.0), Some(200.0), 2_500));
        assert!(
            (found.used_percent - 2_500.0 * 8_000.0 * 100.0 / (10e6 * 1.01)).abs() < 1e-9,
            "{}",
            found.used_percent
        );
        assert!(!found.owned());
        let cost = processor(&seen, window, Clock::Instructions);
        assert_eq!((cost.busy_percent, cost.instructions_per_packet), (50.0, Some(0.5 * 1_010.0 * 1e6 / 2_500.0)));
    }

    #[test]
    fn counters_of_the_kernel_are_read() {
        let table = "Inter-|   Receive\n face |bytes packets\n    lo: 1 2 3 4 5 6 7 8 9 10 0 0 0 0 0 0\nto-home: 10 1 0 0 0 0 0 0 500 5 0 0 0 0 0 0\n";
        assert_eq!(counters(table, "to-home"), Some((500, 5)));
        assert_eq!(counters(table, "to"), None);
        assert_eq!(busy("cpu  10 0 20 60 5 1 4 0 0 0\ncpu0 1\n"), Some((35, 100)));
        assert_eq!(busy_percent((35, 100), (85, 200)), 50.0);
    }
}
