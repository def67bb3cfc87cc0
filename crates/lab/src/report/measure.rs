//! The measures: names, units, which way is better, and when differences count.

use super::number;
use crate::result::statistics::Distribution;

/// A kind of delay of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Path {
    /// Through the bottleneck, one way, in the window.
    OneWay,
    /// Round trips or whole fetches in the window.
    Whole,
    /// Round trips or whole fetches before the bulk traffic.
    IdleOneWay,
    /// One way before the bulk traffic.
    Idle,
    /// Connection time of web.
    Connect,
    /// The probe that ends before the bottleneck.
    Noise,
    /// From arrival until the last bit is sent, in a model; us.
    Modelled,
}

/// A value of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    Min,
    Mean,
    P50,
    P90,
    P95,
    P99,
    Max,
}

/// All ranks.
pub const RANKS: [Rank; 7] = [Rank::Min, Rank::Mean, Rank::P50, Rank::P90, Rank::P95, Rank::P99, Rank::Max];

/// A quantity that trials are measured by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    Delay(Path, Rank),
    /// p99 of the delay (one way where known, else whole) above the idle median.
    Added,
    Jitter,
    Loss,
    /// Round trips a minute of web under load.
    PerMinute,
    /// Answered requests a second.
    PerSecond,
    Rate,
    /// A single flow's rate, counted from 1.
    Flow(usize),
    Jain,
    FlowLoss,
    FlowJitter,
    /// How far the rate of a load that the scenario is about departs from its mean.
    Deviation,
    Retransmitted,
    /// All loads together.
    TotalRate,
    /// Jain's index over the loads with a weight, each load's rate divided by its weight.
    WeightedJain,
    Used,
    Pkts,
    OwnedMean,
    OwnedMax,
    LineMax,
    LineDropped,
    Owned,
    Busy,
    Instructions,
    /// Packets that an observer's device has received, a second.
    Arrived,
    /// Packets that an observer got, a second.
    Observed,
    /// Records of a sample, a second.
    Records,
    /// Packets that a limit has let pass, a second.
    Passed,
    /// Instructions for a packet that a limit has let pass, with what was spent on those that it dropped.
    InstructionsPassed,
    /// Packets that arrived and that it did not get.
    Unobserved,
    /// Those of these that it has not told.
    Untold,
    /// Packets of a model that no receive ring had room for.
    LostOnArrival,
}

/// The better direction of a measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    Lower,
    Higher,
    Neither,
}

impl Measure {
    /// The name in CSV and JSON.
    pub fn name(self) -> String {
        let name = match self {
            Measure::Delay(path, rank) => return format!("{}_{}", path.name(), rank.name()),
            Measure::Flow(n) => return format!("flow_{n}"),
            Measure::Added => "added_p99",
            Measure::Jitter => "jitter",
            Measure::Loss => "loss",
            Measure::PerMinute => "round_trips_per_minute",
            Measure::PerSecond => "requests_per_second",
            Measure::Rate => "rate",
            Measure::Jain => "jain",
            Measure::FlowLoss => "flow_loss",
            Measure::FlowJitter => "flow_jitter",
            Measure::Deviation => "deviation",
            Measure::Retransmitted => "retransmitted",
            Measure::TotalRate => "total_rate",
            Measure::WeightedJain => "weighted_jain",
            Measure::Used => "used",
            Measure::Pkts => "pkts",
            Measure::OwnedMean => "owned_mean",
            Measure::OwnedMax => "owned_max",
            Measure::LineMax => "line_max",
            Measure::LineDropped => "line_dropped",
            Measure::Owned => "owned",
            Measure::Busy => "busy",
            Measure::Instructions => "instructions_per_packet",
            Measure::Arrived => "arrived_per_second",
            Measure::Observed => "observed_per_second",
            Measure::Records => "records_per_second",
            Measure::Passed => "passed_per_second",
            Measure::InstructionsPassed => "instructions_per_passed_packet",
            Measure::Unobserved => "unobserved",
            Measure::Untold => "untold",
            Measure::LostOnArrival => "lost_on_arrival",
        };
        name.to_owned()
    }

    /// The name in a sentence.
    pub fn title(self) -> String {
        match self {
            Measure::Delay(path, rank) => format!("{} of {}", rank.name(), path.title()),
            Measure::Added => "p99 delay above idle".to_owned(),
            Measure::Loss => "loss".to_owned(),
            Measure::TotalRate => "throughput".to_owned(),
            Measure::Deviation => "deviation of the rate".to_owned(),
            Measure::WeightedJain => "fairness".to_owned(),
            Measure::Used => "use of the wire".to_owned(),
            Measure::Busy => "processor time".to_owned(),
            Measure::Instructions => "instructions per packet".to_owned(),
            Measure::Arrived => "packets that arrived".to_owned(),
            Measure::Observed => "packets observed".to_owned(),
            Measure::Passed => "packets that passed the limit".to_owned(),
            Measure::InstructionsPassed => "instructions per packet that passed".to_owned(),
            Measure::Unobserved => "packets not observed".to_owned(),
            Measure::Untold => "loss that nobody told".to_owned(),
            other => other.name().replace('_', " "),
        }
    }

    /// The unit; "" where the measure has none.
    pub fn unit(self) -> &'static str {
        match self {
            Measure::Delay(Path::Modelled, _) => "µs",
            Measure::Delay(..) | Measure::Added | Measure::Jitter | Measure::FlowJitter => "ms",
            Measure::OwnedMean | Measure::OwnedMax | Measure::LineMax => "ms",
            Measure::Loss | Measure::FlowLoss | Measure::Used | Measure::Busy => "%",
            Measure::Unobserved | Measure::Untold | Measure::LostOnArrival => "%",
            Measure::Rate | Measure::Flow(_) | Measure::TotalRate => "Mbit/s",
            Measure::Deviation => "kbit/s",
            Measure::Retransmitted | Measure::Pkts | Measure::LineDropped => "",
            Measure::Instructions | Measure::InstructionsPassed => "",
            Measure::PerMinute => "a minute",
            Measure::PerSecond | Measure::Arrived | Measure::Observed | Measure::Records | Measure::Passed => {
                "a second"
            }
            Measure::Jain | Measure::WeightedJain | Measure::Owned => "",
        }
    }

    pub fn better(self) -> Better {
        match self {
            Measure::Rate | Measure::TotalRate | Measure::PerMinute | Measure::PerSecond => Better::Higher,
            Measure::Jain | Measure::WeightedJain | Measure::Owned => Better::Higher,
            Measure::Arrived | Measure::Observed => Better::Higher,
            Measure::Used | Measure::Pkts | Measure::Flow(_) | Measure::Records | Measure::Passed => Better::Neither,
            Measure::Delay(Path::Noise | Path::Idle | Path::IdleOneWay, _) => Better::Neither,
            _ => Better::Lower,
        }
    }

    /// The resolution of the measure: differences below the greater of (absolute, share) do not count.
    pub fn resolution(self) -> (f64, f64) {
        match self {
            Measure::Loss | Measure::FlowLoss | Measure::Unobserved | Measure::Untold | Measure::LostOnArrival => {
                (0.1, 0.0)
            }
            Measure::PerSecond | Measure::Arrived | Measure::Observed | Measure::Passed => (0.0, 0.02),
            Measure::Used => (0.5, 0.0),
            Measure::Busy => (2.0, 0.15),
            Measure::Deviation => (1.0, 0.05),
            Measure::Instructions | Measure::InstructionsPassed => (0.0, 0.15),
            Measure::Rate | Measure::Flow(_) | Measure::TotalRate => (0.0, 0.01),
            Measure::Jain | Measure::WeightedJain => (0.005, 0.0),
            Measure::Retransmitted | Measure::Pkts | Measure::LineDropped | Measure::Owned => (0.5, 0.05),
            _ => (0.1, 0.02),
        }
    }

    /// The value as text, without its unit.
    pub fn text(self, value: f64) -> String {
        match self {
            Measure::Jain | Measure::WeightedJain => number::fixed(value, 3),
            Measure::Busy | Measure::Used => number::fixed(value, 1),
            Measure::Retransmitted
            | Measure::Pkts
            | Measure::LineDropped
            | Measure::Instructions
            | Measure::InstructionsPassed
            | Measure::Passed
            | Measure::PerMinute
            | Measure::PerSecond
            | Measure::Arrived
            | Measure::Observed
            | Measure::Records => number::fixed(value, 0),
            _ => number::digits(value),
        }
    }

    /// The value with its unit.
    pub fn quantity(self, value: f64) -> String {
        format!("{} {}", self.text(value), self.unit()).trim_end().to_owned()
    }
}

impl Path {
    fn name(self) -> &'static str {
        match self {
            Path::OneWay => "one_way",
            Path::Whole => "whole",
            Path::IdleOneWay => "idle_one_way",
            Path::Idle => "idle",
            Path::Connect => "connect",
            Path::Noise => "noise",
            Path::Modelled => "latency_us",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Path::OneWay => "one-way delay",
            Path::Whole => "delay",
            Path::IdleOneWay => "idle one-way delay",
            Path::Idle => "idle delay",
            Path::Connect => "time to connect",
            Path::Noise => "noise",
            Path::Modelled => "latency",
        }
    }
}

impl Rank {
    fn name(self) -> &'static str {
        match self {
            Rank::Min => "min",
            Rank::Mean => "mean",
            Rank::P50 => "p50",
            Rank::P90 => "p90",
            Rank::P95 => "p95",
            Rank::P99 => "p99",
            Rank::Max => "max",
        }
    }

    /// The value of this rank in a distribution.
    pub fn of(self, d: &Distribution) -> f64 {
        match self {
            Rank::Min => d.min_ms,
            Rank::Mean => d.mean_ms,
            Rank::P50 => d.p50_ms,
            Rank::P90 => d.p90_ms,
            Rank::P95 => d.p95_ms,
            Rank::P99 => d.p99_ms,
            Rank::Max => d.max_ms,
        }
    }
}
