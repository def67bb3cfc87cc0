//! The figures of a trial and their computation.

use super::measure::{Measure, Path, RANKS};
use crate::result::results::{Delays, Flows, Measured, Observed, ScenarioInfo};

/// The least number of values for an idle median: the first packet, which asks for addresses, is one of them.
const BASELINE: usize = 10;

/// One figure of one trial. `of`: a load, a direction, or "" for the trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    pub of: String,
    pub measure: Measure,
    pub value: f64,
}

/// Jain's index of these shares: 1 if all are equal, 1/n if one load has everything; none without shares.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// All figures of a trial that are numbers.
pub fn figures(scenario: &ScenarioInfo, measured: &Measured) -> Vec<Figure> {
    let mut all = Vec::new();
    let mut push = |of: &str, measure: Measure, value: Option<f64>| {
        all.extend(value.filter(|v| v.is_finite()).map(|value| Figure { of: of.to_owned(), measure, value }));
    };
    for delays in &measured.delays {
        let push = |measure, value| push(&delays.load, measure, value);
        if scenario.model.is_some() { of_model(delays, push) } else { of_delays(delays, push) }
    }
    for flows in &measured.flows {
        of_flows(flows, |measure, value| push(&flows.load, measure, value));
        let subject = scenario.loads.iter().any(|load| load.name == flows.load && load.probe);
        push(&flows.load, Measure::Deviation, flows.deviation_kbit.filter(|_| subject));
    }
    for observed in &measured.observed {
        of_observed(observed, |measure, value| push(&observed.load, measure, value));
    }
    if let Some(card) = &measured.card {
        push("", Measure::Jain, Some(card.jain));
        push("", Measure::TotalRate, Some(card.wire_mbit));
        push("", Measure::LostOnArrival, Some(card.lost_on_arrival_percent));
    }
    push("", Measure::Loss, failed(scenario, measured));
    push("", Measure::TotalRate, total_rate(scenario, measured));
    push("", Measure::WeightedJain, weighted_jain(scenario, measured));
    for b in &measured.bottlenecks {
        push(&b.direction, Measure::Used, Some(b.used_percent));
        push(&b.direction, Measure::Pkts, Some(b.pkts as f64));
        push(&b.direction, Measure::OwnedMean, b.owned_mean_ms);
        push(&b.direction, Measure::OwnedMax, b.owned_max_ms);
        push(&b.direction, Measure::LineMax, Some(b.line_max_ms));
        push(&b.direction, Measure::LineDropped, Some(b.line_dropped as f64));
        push(&b.direction, Measure::Owned, Some(f64::from(u8::from(b.owned()))));
    }
    push("", Measure::Busy, measured.processor.map(|p| p.busy_percent));
    push("", Measure::Instructions, measured.processor.and_then(|p| p.instructions_per_packet));
    for rank in RANKS {
        push("", Measure::Delay(Path::Noise, rank), measured.noise.map(|d| rank.of(&d)));
    }
    all
}

fn of_delays(delays: &Delays, mut push: impl FnMut(Measure, Option<f64>)) {
    let paths = [
        (Path::OneWay, delays.one_way),
        (Path::Whole, delays.whole),
        (Path::IdleOneWay, delays.idle_one_way),
        (Path::Idle, delays.idle),
        (Path::Connect, delays.connect),
    ];
    for (path, distribution) in paths {
        for rank in RANKS {
            push(Measure::Delay(path, rank), distribution.map(|d| rank.of(&d)));
        }
    }
    let one_way = delays.one_way.zip(delays.idle_one_way);
    let known = one_way.or(delays.whole.zip(delays.idle)).filter(|(_, idle)| idle.count >= BASELINE);
    push(Measure::Added, known.map(|(loaded, idle)| loaded.p99_ms - idle.p50_ms));
    push(Measure::PerMinute, delays.per_minute);
    push(Measure::PerSecond, delays.per_second);
    push(Measure::Jitter, delays.jitter_ms);
    push(Measure::Loss, lost_percent(delays));
}

fn of_model(delays: &Delays, mut push: impl FnMut(Measure, Option<f64>)) {
    for rank in RANKS {
        push(Measure::Delay(Path::Modelled, rank), delays.one_way.map(|d| rank.of(&d) * 1e3));
    }
    push(Measure::Loss, lost_percent(delays));
}

fn lost_percent(delays: &Delays) -> Option<f64> {
    (delays.sent > 0).then(|| delays.lost as f64 * 100.0 / delays.sent as f64)
}

fn of_observed(observed: &Observed, mut push: impl FnMut(Measure, Option<f64>)) {
    let a_second = |packets: u64| (observed.seconds > 0.0).then(|| packets as f64 / observed.seconds);
    let percent = |packets: u64| (observed.arrived > 0).then(|| 100.0 * packets as f64 / observed.arrived as f64);
    let unobserved = observed.arrived.saturating_sub(observed.delivered);
    push(Measure::Arrived, a_second(observed.arrived));
    push(Measure::Instructions, observed.instructions);
    if let Some(dropped) = observed.dropped {
        let passed = observed.arrived.saturating_sub(dropped);
        let each = observed.arrived as f64 / passed.max(1) as f64;
        push(Measure::Passed, a_second(passed));
        push(Measure::InstructionsPassed, observed.instructions.map(|each_arrived| each_arrived * each));
        return;
    }
    push(Measure::Observed, a_second(observed.delivered));
    push(Measure::Unobserved, percent(unobserved));
    push(Measure::Untold, percent(unobserved.saturating_sub(observed.missed)));
    push(Measure::Records, observed.records.and_then(a_second));
}

fn of_flows(flows: &Flows, mut push: impl FnMut(Measure, Option<f64>)) {
    push(Measure::Rate, Some(flows.mbit));
    for (at, mbit) in flows.each_mbit.iter().enumerate() {
        push(Measure::Flow(at + 1), Some(*mbit));
    }
    if flows.each_mbit.len() > 1 {
        push(Measure::Jain, jain(&flows.each_mbit));
    }
    push(Measure::FlowLoss, flows.lost_percent);
    push(Measure::FlowJitter, flows.jitter_ms);
    push(Measure::Retransmitted, flows.retransmitted.map(|n| n as f64));
}

/// The total rate of TCP and of probes; none over a chain, where loads do not share a link. A flood is counted only if there is nothing else, since its throughput is no merit.
fn total_rate(scenario: &ScenarioInfo, measured: &Measured) -> Option<f64> {
    if scenario.chain || scenario.tap {
        return None;
    }
    let wanted = |flows: &&Flows| {
        scenario.loads.iter().any(|load| load.name == flows.load && (load.kind != "udp" || load.probe))
    };
    let wanted: Vec<f64> = measured.flows.iter().filter(wanted).map(|flows| flows.mbit).collect();
    if !wanted.is_empty() {
        return Some(wanted.iter().sum());
    }
    (!measured.flows.is_empty()).then(|| measured.flows.iter().map(|flows| flows.mbit).sum())
}

/// The requests over a chain that failed, percent of all.
fn failed(scenario: &ScenarioInfo, measured: &Measured) -> Option<f64> {
    let sum = |of: fn(&Delays) -> u64| measured.delays.iter().map(of).sum::<u64>() as f64;
    let sent = sum(|delays| delays.sent);
    (scenario.chain && sent > 0.0).then(|| 100.0 * sum(|delays| delays.lost) / sent)
}

fn weighted_jain(scenario: &ScenarioInfo, measured: &Measured) -> Option<f64> {
    let weighted = scenario.loads.iter().filter_map(|load| Some((load, load.weight.filter(|w| *w > 0.0)?)));
    let shares: Vec<f64> =
        weighted.filter_map(|(load, weight)| Some(measured.flows_of(&load.name)?.mbit / weight)).collect();
    if shares.len() < 2 { None } else { jain(&shares) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_one_where_all_have_the_same() {
        assert_eq!(jain(&[2.0, 2.0, 2.0]), Some(1.0));
        assert_eq!(jain(&[4.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!((jain(&[]), jain(&[0.0])), (None, None));
    }
}
