//! The cost of buckets on one CPU and on two: the mean time of a run of the XDP program, where everything passes and where hardly
//! anything does. Needs root.

use sluice_model::limits::flood;
use std::time::Duration;

fn main() {
    let policy = |keys: &str, beside: &str| {
        format!(r#"{{ "scheduler": "round_robin", {beside} "classes": [{{ "id": 0{keys} }}] }}"#)
    };
    for (how, rate) in [("everything passes", "1tbit"), ("nearly nothing passes", "1mbit")] {
        let shared = format!(r#", "shared_ceil": {{ "name": "bench", "rate": "{rate}" }}"#);
        let class = format!(r#", "ceil": "{rate}", "police": true"#);
        let flow = format!(r#", "flow_ceil": "{rate}""#);
        let interface = format!(r#""limits": {{ "ingress": "{rate}" }},"#);
        for (name, policy) in [
            ("none", policy("", "")),
            ("class", policy(&class, "")),
            ("flow", policy(&flow, "")),
            ("interface", policy("", &interface)),
            ("shared", policy(&shared, "")),
            ("all four", policy(&[class, flow, shared].concat(), &interface)),
        ] {
            let cost =
                |threads| flood(&policy, threads, false, 500, Duration::from_millis(700)).map(|done| done.packet_ns);
            match (cost(1), cost(2)) {
                (Ok(one), Ok(two)) => println!("{how:<22} {name:<10} {one:6.0} ns, two CPUs {two:6.0} ns"),
                (Err(error), _) | (_, Err(error)) => return eprintln!("{error}"),
            }
        }
    }
}
