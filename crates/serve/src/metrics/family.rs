//! A family of metrics: the series of a name. Units follow Prometheus' conventions.

use super::histogram::Histogram;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use sluice_kernel::status::Status;

/// A label's name and value.
pub type Label = (&'static str, String);

/// The value of a series.
#[derive(Debug, Clone)]
pub enum Value {
    /// Value of a counter.
    Count(u64),
    /// Value of a counter of what is no number of things.
    Sum(f64),
    /// Value of a gauge.
    Gauge(f64),
    /// Value of a histogram.
    Histogram(Histogram),
}

/// All series of a name.
#[derive(Debug, Clone)]
pub struct Family {
    /// Name without unit and suffix.
    pub name: &'static str,
    /// Help text: a sentence without its period.
    pub help: &'static str,
    /// Unit of the values.
    pub unit: Option<Unit>,
    /// Type of the metric: counter, gauge or histogram.
    pub kind: MetricType,
    /// Series of the name, by labels.
    pub series: Vec<(Vec<Label>, Value)>,
}

impl Family {
    pub(super) fn new(name: &'static str, help: &'static str, unit: Option<Unit>, kind: MetricType) -> Family {
        Family { name, help, unit, kind, series: Vec::new() }
    }

    pub(super) fn counter(name: &'static str, help: &'static str, unit: Unit) -> Family {
        Family::new(name, help, Some(unit), MetricType::Counter)
    }

    pub(super) fn gauge(name: &'static str, help: &'static str, unit: Option<Unit>) -> Family {
        Family::new(name, help, unit, MetricType::Gauge)
    }

    pub(super) fn each<'a, T: 'a>(
        mut self,
        all: impl Iterator<Item = T>,
        of: impl Fn(T) -> Option<(Vec<Label>, Value)>,
    ) -> Family {
        self.series = all.filter_map(of).collect();
        self
    }
}

pub(super) fn connections() -> Unit {
    Unit::Other("connections".to_owned())
}

pub(super) fn packets() -> Unit {
    Unit::Other("packets".to_owned())
}

pub(super) fn ratio() -> Unit {
    Unit::Other("ratio".to_owned())
}

pub(super) fn bytes_per_second() -> Option<Unit> {
    Some(Unit::Other("bytes_per_second".to_owned()))
}

pub(super) fn name(one: &Status) -> Label {
    ("interface", one.interface.clone())
}
