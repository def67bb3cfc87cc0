//! Policies of tests: class n gets UDP port 3000 + n.

use serde_json::{Value, json};

/// First port; class n has the n-th after it.
pub const PORT: u16 = 3000;

/// UDP port whose packets class `id` gets.
pub fn port(id: u8) -> u16 {
    PORT + u16::from(id)
}

/// A policy with these classes, each with a rule for its port.
pub fn by_port(scheduler: &str, classes: Value) -> Value {
    let rules: Vec<Value> = ids(&classes)
        .map(|id| {
            json!({ "name": format!("to {id}"), "priority": 100 + id, "protocol": "udp",
                "dst_port_min": PORT as u64 + id, "class_id": id })
        })
        .collect();
    json!({ "version": 1, "scheduler": scheduler, "classes": classes, "rules": rules })
}

/// A class that passes, and one that is policed to 1 Mbit/s before the queues.
pub fn one_policed() -> Value {
    by_port(
        "strict_priority",
        json!([
            { "id": 0, "name": "game", "priority": 0 },
            { "id": 1, "name": "bulk", "priority": 1, "ceil": "1mbit", "police": true },
        ]),
    )
}

fn ids(classes: &Value) -> impl Iterator<Item = u64> {
    let classes = classes.as_array().expect("classes are a list");
    classes.iter().map(|class| class["id"].as_u64().expect("a class has an id"))
}

/// Three classes, each as urgent as its number.
pub fn three() -> Value {
    by_port(
        "strict_priority",
        json!([
            { "id": 0, "name": "control", "priority": 0, "limit": 1000 },
            { "id": 1, "name": "game", "priority": 1, "limit": 1000 },
            { "id": 2, "name": "bulk", "priority": 2, "limit": 100 },
        ]),
    )
}

/// The policy with another key.
pub fn with(mut policy: Value, key: &str, value: Value) -> Value {
    policy[key] = value;
    policy
}

/// A policy that differs from `three` in all parts: its discipline, classes, limits and rules.
pub fn other() -> Value {
    let mut policy = by_port(
        "deficit_round_robin",
        json!([
            { "id": 0, "name": "control", "limit": 500 },
            { "id": 2, "name": "bulk", "limit": 200, "ceil": "5mbit" },
            { "id": 5, "name": "late", "limit": 300 },
        ]),
    );
    policy["rules"][0]["priority"] = json!(300);
    policy
}
