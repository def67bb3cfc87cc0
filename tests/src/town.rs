//! A router between the subscribers of a town and the internet: their policy, traffic to them, and what commands say of them.

use crate::cases::assert_near;
use crate::lab::Lab;
use crate::net::{Ns, Routed, SERVER};
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

/// Downloads of a, b, c and of d, who is no subscriber, had what the plans of the town say, and are counted so.
#[track_caller]
pub fn assert_town_down(lab: &Lab, net: &Routed, outcomes: &[Outcome]) {
    // "d" gets what is left.
    for ((name, mbit), outcome) in [("a", 20.0), ("b", 40.0), ("c", 20.0), ("d", 15.0)].iter().zip(outcomes) {
        assert_near(&format!("down to {name}"), outcome.bps(SETTLE, 0), mbit * 1e6, 0.005);
        assert!(outcome.in_order(), "{name}");
    }
    let down = listed(lab, &net.router, "lan0");
    for (name, outcome) in ["a", "b", "c"].iter().zip(outcomes) {
        let (_, [sent, dropped, queued]) = down[*name];
        assert_eq!((sent, sent + dropped + queued), (outcome.received(), outcome.sent), "{name}");
    }
}

/// Hides the subscribers behind the router's address.
pub fn masquerade(net: &Routed) {
    net.router.tool("nft", "add table ip translated").ok();
    net.router.tool("nft", "add chain ip translated out { type nat hook postrouting priority 100 ; }").ok();
    net.router.tool("nft", "add rule ip translated out oifname wan0 masquerade").ok();
}

/// Uploads of a subscriber behind NAT have what its plan says, and are counted as its own.
#[track_caller]
pub fn assert_up_behind_nat(lab: &Lab, net: &Routed, name: &str, mbit: f64) {
    net.client.ip(&format!("route replace default via 10.78.0.1 src {}", address(name)));
    let flow = Flow::new(7100, &[1514], 20_000_000);
    let outcome =
        traffic::start(&net.client, &net.server, SERVER, &[flow]).stop_after(Duration::from_millis(1000)).remove(0);
    assert_near(&format!("up from {name}"), outcome.bps(SETTLE, 0), mbit * 1e6, 0.005);
    assert_eq!(listed(lab, &net.router, "wan0")[name].1[0], outcome.received(), "{name} is known behind NAT");
}
