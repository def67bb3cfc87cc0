//! Metrics as text: OpenMetrics by the library, and from it the older format, which differs in the names of counters' families.

use super::family::{Family, Value};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::fmt::{Error, Write};

#[derive(Debug)]
struct Families(Vec<Family>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), Error> {
        for family in self.0.iter().filter(|family| !family.series.is_empty()) {
            // The library expects the period.
            let help = format!("{}.", family.help);
            let mut metric = encoder.encode_descriptor(family.name, &help, family.unit.as_ref(), family.kind)?;
            for (labels, value) in &family.series {
                value.write(metric.encode_family(labels)?)?;
            }
        }
        Ok(())
    }
}

impl Value {
    fn write(&self, mut encoder: MetricEncoder) -> Result<(), Error> {
        match self {
            Value::Count(count) => ConstCounter::new(*count).encode(encoder),
            Value::Sum(sum) => ConstCounter::new(*sum).encode(encoder),
            Value::Gauge(value) => ConstGauge::new(*value).encode(encoder),
            Value::Histogram(one) => {
                encoder.encode_histogram::<Vec<(String, String)>>(one.sum_s, one.count, &one.buckets, None)
            }
        }
    }
}

/// The text of the families in OpenMetrics 1.0.
pub fn openmetrics(families: Vec<Family>) -> Result<String, Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Families(families)));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

/// The same metrics in Prometheus' text format 0.0.4: there a counter's family has the name of its series, `_total` included, units
/// are left out, and nothing marks the end.
pub fn prometheus(openmetrics: &str) -> String {
    let mut text = String::with_capacity(openmetrics.len());
    let mut help = None;
    for line in openmetrics.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let suffix = if kind == "counter" { "_total" } else { "" };
            let sentence = help.take().map_or("", |(_, sentence)| sentence);
            let _ = writeln!(text, "# HELP {name}{suffix} {sentence}\n# TYPE {name}{suffix} {kind}");
        } else if !line.starts_with('#') {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::metrics::MetricType;
    use prometheus_client::registry::Unit;

    #[test]
    fn counter_names_follow_both_formats() {
        let series = vec![(vec![("class", "a \"b\"\\".to_owned())], Value::Count(7))];
        let family =
            Family { name: "x_sent", help: "What left", unit: Some(Unit::Bytes), kind: MetricType::Counter, series };
        let encoded = openmetrics(vec![family]).expect("encoding");
        assert_eq!(
            encoded,
            "# HELP x_sent_bytes What left.\n# TYPE x_sent_bytes counter\n# UNIT x_sent_bytes bytes\n\
             x_sent_bytes_total{class=\"a \\\"b\\\"\\\\\"} 7\n# EOF\n"
        );
        assert_eq!(
            prometheus(&encoded),
            "# HELP x_sent_bytes_total What left.\n# TYPE x_sent_bytes_total counter\n\
             x_sent_bytes_total{class=\"a \\\"b\\\"\\\\\"} 7\n"
        );
    }
}
