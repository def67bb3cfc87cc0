//! Traffic of classes over several queues of an interface: a port says to which class a packet belongs, and on which queue it is to be.

use crate::traffic::Outcome;
use serde_json::{Value, json};
use std::time::Duration;

/// Time for which streams run before their rates count.
pub const SETTLE: Duration = Duration::from_millis(200);
/// Time for which streams run.
pub const RUN: Duration = Duration::from_millis(1200);
/// Class c has 16 ports from here on, of which the lowest bits are the number of a queue.
const FIRST: u16 = 3008;

/// The port of a class whose packets take a queue.
pub fn port(class: u16, queue: u16) -> u16 {
    FIRST + 16 * class + queue
}

/// A policy of these classes by weight, with a rule for the ports of each.
pub fn classes_by_port(classes: Value) -> Value {
    let count = classes.as_array().expect("a list of classes").len() as u16;
    let rules: Vec<Value> = (0..count)
        .map(|class| {
            json!({ "name": format!("to {class}"), "priority": 100 + class, "protocol": "udp",
                "dst_port_min": port(class, 0), "dst_port_max": port(class, 0) + 15, "class_id": class })
        })
        .collect();
    json!({ "version": 1, "scheduler": "weighted_fair_queuing", "default_class": count - 1, "classes": classes, "rules": rules })
}

/// The rate of some streams together, bits per second.
pub fn together<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> f64 {
    let outcomes: Vec<&Outcome> = outcomes.into_iter().collect();
    let arrivals = || outcomes.iter().flat_map(|one| &one.arrivals);
    let first = arrivals().map(|arrival| arrival.at_ns).min().expect("arrivals");
    let (from, to) =
        (first + SETTLE.as_nanos() as u64, outcomes.iter().map(|one| one.ended_ns).min().expect("streams"));
    let bytes: u64 = arrivals().filter(|one| (from..to).contains(&one.at_ns)).map(|one| one.bytes as u64).sum();
    bytes as f64 * 8e9 / (to - from) as f64
}
