//! Traffic of classes over several queues of an interface: a port says to which class a packet belongs, and on which queue it is to be.

use crate::lab::Lab;
use crate::net::{B, Pair};
use crate::traffic::{self, Flow, Outcome};
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

/// A veth hands packets to the processor that sends them. Here, one takes all of so many queues, so the order in which they were sent remains.
pub fn take_in_by_one_processor(lab: &Lab, pair: &Pair, queues: u16) {
    let first = lab.file("first", "1");
    for queue in 0..queues {
        pair.b.exec(&format!("cp {} /sys/class/net/b0/queues/rx-{queue}/rps_cpus", first.display())).ok();
    }
}

/// The outcomes of streams that last for three seconds, and the bytes that their root qdisc has sent in a time within, ns. `dropped`: packets that were
/// counted as lost.
pub fn sent_in_three_seconds(pair: &Pair, flows: &[Flow], dropped: impl FnMut() -> u64) -> (Vec<Outcome>, u64, u64) {
    let streams = traffic::start(&pair.a, &pair.b, B, flows);
    std::thread::sleep(SETTLE);
    let sent_bytes = || pair.a.qdiscs("a0").iter().find(|one| one.root).expect("a root").bytes;
    let (from_ns, before) = (traffic::now_ns(), sent_bytes());
    std::thread::sleep(Duration::from_secs(3));
    let (sent, until_ns) = (sent_bytes() - before, traffic::now_ns());
    (streams.finish(dropped), sent, until_ns - from_ns)
}
