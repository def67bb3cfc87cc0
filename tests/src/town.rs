//! A router between the subscribers of a town and the internet: their policy, traffic to them, and what commands say of them.

use crate::lab::Lab;
use crate::net::{Ns, Routed};
use crate::traffic::{self, Flow, Outcome};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

pub const SETTLE: Duration = Duration::from_millis(300);
/// The subscribers' addresses, all of the client.
const ADDRESSES: [(&str, &str); 4] =
    [("a", "10.78.0.11"), ("b", "10.78.0.12"), ("c", "10.78.0.13"), ("d", "10.78.0.14")];

pub fn address(name: &str) -> &'static str {
    ADDRESSES.iter().find(|(known, _)| *known == name).expect("a known subscriber").1
}

/// A router between subscribers and the internet.
pub fn box_between(lab: &Lab) -> Routed {
    box_with(lab, "")
}

/// The same, by veths with these options.
pub fn box_with(lab: &Lab, options: &str) -> Routed {
    let net = lab.routed_with(options);
    for (_, address) in ADDRESSES {
        net.client.ip(&format!("addr add {address}/32 dev c0"));
        net.router.ip(&format!("neigh replace {address} dev lan0 lladdr 02:00:00:00:78:02 nud permanent"));
    }
    net
}

pub fn subscriber(name: &str, plan: &str, site: &str) -> Value {
    let mut own = json!({ "name": name, "addresses": [address(name)], "plan": plan });
    if !site.is_empty() {
        own["site"] = site.into();
    }
    own
}

pub fn policy(subscribers: &[Value]) -> Value {
    json!({
        "name": "town",
        "link": { "rate": "100mbit", "overhead": 14 },
        "subscriber_side": ["lan0"],
        "sites": { "north": { "ceil": "60mbit" }, "south": {} },
        "plans": {
            "home": { "rate": { "down": "5mbit", "up": "1mbit" }, "ceil": { "down": "20mbit", "up": "5mbit" }, "queue": "fifo" },
            "work": { "ceil": { "down": "50mbit", "up": "10mbit" }, "queue": "fifo" },
        },
        "subscribers": subscribers,
    })
}

/// The town with a site below a site, and a subscriber whose key means something in HTML and in paths.
pub fn town_with_a_mast() -> Value {
    let odd = json!({ "name": ODD, "addresses": ["192.0.2.64/29", "2001:db8:7::/56"] });
    let own =
        [subscriber("a", "home", "mast"), subscriber("b", "work", "north"), subscriber("c", "home", "south"), odd];
    let mut policy = policy(&own);
    policy["sites"]["north"]["sites"] = json!({ "mast": { "ceil": "40mbit" } });
    policy
}

/// A key that must be shown as it is.
pub const ODD: &str = "<b>../x?y=z&\"</b>";

pub fn town() -> Value {
    policy(&[subscriber("a", "home", "north"), subscriber("b", "work", "north"), subscriber("c", "home", "south")])
}

/// What a list of subscribers says of each: its ceiling, and packets that were sent, dropped and are queued.
pub fn listed(lab: &Lab, ns: &Ns, interface: &str) -> BTreeMap<String, (u64, [u64; 3])> {
    let output = lab.sluice(ns, &["subscriber", "list", "--interface", interface, "--json"]).ok();
    let all: Value = serde_json::from_str(&output.stdout).expect("JSON");
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let of = |one: &Value| {
        let counts = [&one["sent"]["pkts"], &one["dropped_pkts"], &one["backlog"]["pkts"]].map(number);
        (one["id"].as_str().expect("a key").to_owned(), (number(&one["ceil_bps"]), counts))
    };
    all[interface].as_array().expect("a list").iter().map(of).collect()
}

/// The classes of HTB, without the handles of the moment.
pub fn htb_classes(net: &Routed) -> Vec<String> {
    let shown = net.router.tool("tc", "class show dev lan0").ok().stdout;
    let own = shown.lines().filter(|line| line.starts_with("class htb"));
    let without_leaf = |line: &str| match line.split_once(" leaf ") {
        Some((begin, rest)) => format!("{begin} {}", rest.split_once(' ').map_or("", |(_, end)| end)),
        None => line.to_owned(),
    };
    let mut all: Vec<String> = own.map(without_leaf).collect();
    all.sort();
    all
}

/// Sends to each subscriber so many Mbit/s.
pub fn download(net: &Routed, loads: &[(&str, u64)]) -> Vec<traffic::Streams> {
    let start = |(place, (name, mbit)): (usize, &(&str, u64))| {
        traffic::start(
            &net.server,
            &net.client,
            address(name),
            &[Flow::new(7000 + place as u16, &[1514], mbit * 1_000_000)],
        )
    };
    loads.iter().enumerate().map(start).collect()
}

/// Ends streams, and returns the outcome of each.
pub fn end(streams: Vec<traffic::Streams>) -> Vec<Outcome> {
    streams.iter().for_each(traffic::Streams::stop);
    streams.into_iter().map(|stream| stream.finish_lossy().remove(0)).collect()
}
