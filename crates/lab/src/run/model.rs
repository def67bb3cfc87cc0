//! One trial of a model: schedulers of pipes before a modelled card, in simulated time. The repeat is the seed.

use std::ops::Range;
use std::time::Duration;

use crate::format::{ALL, CardUse, EARLY, Model};
use crate::result::results::{AtCard, Delays, LoadInfo, Measured, Timed};
use crate::result::statistics::Distribution;
use crate::run::trial::{Setting, TrialResult};
use sluice_error::{Error, Kind, Result};
use sluice_simulator::card::CardConf;
use sluice_simulator::pipes::{self, Fate, Outcome, Record, Way};

/// The bytes that Ethernet adds to a frame: the check sequence, a preamble and a gap.
const OVERHEAD_BYTES: u32 = 24;
/// Packets that a queue of the scheduler holds.
const QUEUE_PKTS: u32 = 64;
/// The same, of the last class: so its backlog is a packet for each pipe.
const LAST_QUEUE_PKTS: u32 = 1;
/// Packets that the receive ring of an instance holds.
const RECEIVE_PKTS: usize = 1024;
/// The time of a turn of an instance without packets, ns.
const TURN_NS: u64 = 500;
/// Delays that the results keep of a load with curves; all count in the figures.
const KEPT: usize = 400;
/// A guess of the packets that are simulated in a second.
const PACKETS_A_SECOND: f64 = 1.5e6;

/// The duration of a trial: a guess, as of a packet at 25 Gbit/s.
pub fn nominal(model: &Model, simulated_ms: f64) -> Duration {
    let packets = simulated_ms / 1e3 * 25e9 / 8.0 / f64::from(model.bytes);
    Duration::from_secs_f64(0.1 + packets / PACKETS_A_SECOND)
}

/// The loads of a model, as reports name them: all packets, those of all classes but the last, those of each class.
pub fn loads(model: &Model) -> Vec<LoadInfo> {
    let load = |name: &str, about: String, probe: bool| LoadInfo {
        name: name.to_owned(),
        kind: if model.real { "flows" } else { "pipes" }.to_owned(),
        about,
        probe,
        weight: None,
    };
    parts(model)
        .into_iter()
        .map(|(name, classes)| match name.as_str() {
            ALL => load(ALL, model.about(), true),
            EARLY => load(EARLY, format!("classes 1 to {}", classes.end), true),
            class => load(class, if classes.start == 0 { "the most urgent".to_owned() } else { String::new() }, false),
        })
        .collect()
}

/// The names of packets, and their classes.
fn parts(model: &Model) -> Vec<(String, Range<u32>)> {
    let mut parts = vec![(ALL.to_owned(), 0..model.classes)];
    if model.classes > 1 {
        parts.push((EARLY.to_owned(), 0..model.classes - 1));
        parts.extend(model.class_names().into_iter().zip(0..).map(|(name, class)| (name, class..class + 1)));
    }
    parts
}

/// Runs a trial.
pub fn run(setting: &Setting) -> Result<TrialResult> {
    let (Some(model), Some(card)) = (&setting.scenario.model, setting.contender.card()) else {
        return Err(Error::new(Kind::Input, "a model needs a contender that uses a card"));
    };
    let outcome = pipes::run(&simulated(setting, model, card));
    let on_arrival = outcome.records.iter().filter(|record| record.fate == Fate::LostOnArrival).count();
    let on_arrival_percent = 100.0 * on_arrival as f64 / outcome.records.len().max(1) as f64;
    Ok(result(setting, &outcome, on_arrival_percent))
}

/// The result of a trial by the fates of its packets. `on_arrival_percent`: those that were lost before the scheduler, of all.
pub fn result(setting: &Setting, outcome: &Outcome, on_arrival_percent: f64) -> TrialResult {
    let model = setting.scenario.model.as_ref();
    let (from_ms, window_ms) = (setting.scenario.warm_up.0, setting.measured_ms);
    let waiting = outcome.records.iter().filter(|record| record.fate == Fate::Waits).count() as u64;
    let at_card = AtCard {
        jain: outcome.fairness(),
        wire_mbit: outcome.bits_per_second() / 1e6,
        lost_on_arrival_percent: on_arrival_percent,
        waiting,
    };
    let measured = Measured {
        engine: None,
        commands: Vec::new(),
        from_ms,
        to_ms: from_ms + window_ms,
        offloads: String::new(),
        delays: model
            .into_iter()
            .flat_map(parts)
            .map(|(name, classes)| delays(outcome, name, classes, from_ms))
            .collect(),
        flows: Vec::new(),
        bottlenecks: Vec::new(),
        processor: None,
        noise: None,
        events: Vec::new(),
        observed: Vec::new(),
        card: Some(at_card),
    };
    let late = (waiting > 0).then(|| {
        let title = &setting.scenario.title;
        format!("{title}: some packets had not left when the run ended, long after the window; they have no latency")
    });
    TrialResult { measured, raw: Vec::new(), warnings: late.into_iter().collect() }
}

fn simulated(setting: &Setting, model: &Model, card: &CardUse) -> pipes::Setting {
    let ns = |ms: f64| (ms * 1e6).round() as u64;
    let (conf, way) = match (card.ring, card.queues) {
        (Some(descriptors), _) => (CardConf::ring(setting.rate_bps, OVERHEAD_BYTES, descriptors), Way::Alone),
        (None, queues) => {
            let descriptors = queues.unwrap_or_default();
            let pending_pkts = card.pending.unwrap_or_default();
            let conf = CardConf::strict(setting.rate_bps, OVERHEAD_BYTES, model.classes, descriptors);
            (conf, Way::Backpressure { pending_pkts, burst_pkts: pending_pkts })
        }
    };
    pipes::Setting {
        card: conf,
        way,
        instances: model.instances,
        pipes: model.pipes,
        classes: model.classes,
        bytes: (model.bytes, model.bytes),
        load: model.load / 100.0,
        queue_pkts: QUEUE_PKTS,
        last_queue_pkts: LAST_QUEUE_PKTS,
        receive_pkts: RECEIVE_PKTS,
        turn_ns: TURN_NS,
        receive_ns: model.packet_ns / 2,
        send_ns: model.packet_ns - model.packet_ns / 2,
        warm_ns: ns(setting.scenario.warm_up.0),
        window_ns: ns(setting.measured_ms),
        seed: u64::from(setting.repeat),
    }
}

/// The latencies of some classes.
fn delays(outcome: &Outcome, load: String, classes: Range<u32>, from_ms: f64) -> Delays {
    let ms = |record: &Record| f64::from(record.latency_ns) / 1e6;
    let (mut sent, mut lost): (Vec<&Record>, Vec<&Record>) = (Vec::new(), Vec::new());
    for record in outcome.of(classes) {
        match record.fate {
            Fate::Sent => sent.push(record),
            Fate::Waits => {}
            Fate::LostOnArrival | Fate::LostInScheduler | Fate::LostAtCard => lost.push(record),
        }
    }
    sent.sort_by_key(|record| record.latency_ns);
    // Each of the kept ones stands for as many others, from the least to the greatest.
    let step = (sent.len() + lost.len()).div_ceil(KEPT).max(1);
    // Whole microseconds, since numbers with fewer digits make smaller files.
    let at = |record: &Record| ((from_ms * 1e3).round() + f64::from(record.arrived_ns / 1000)) / 1e3;
    let has_curve = [ALL, EARLY].contains(&load.as_str());
    let kept = sent.iter().rev().step_by(step).map(|record| (at(record), Some(ms(record))));
    let series = kept.chain(lost.iter().step_by(step).map(|record| (at(record), None)));
    let series = if has_curve { series.collect() } else { Vec::new() };
    Delays {
        what: Timed::OneWay,
        idle: None,
        whole: None,
        one_way: Distribution::of(sent.iter().map(|record| ms(record))),
        idle_one_way: None,
        jitter_ms: None,
        sent: (sent.len() + lost.len()) as u64,
        lost: lost.len() as u64,
        series,
        connect: None,
        per_minute: None,
        per_second: None,
        load,
    }
}
