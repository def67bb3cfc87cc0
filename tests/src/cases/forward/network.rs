//! The network of the cases of port forwarding, and their policies.

use crate::lab::Lab;
use crate::net::{CLIENT, Routed, SERVER};
use crate::status::Forward;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;

/// The router's address on the client's side, and on the server's.
pub const LISTEN: &str = "10.78.0.1";
pub const INSIDE: &str = "10.79.0.1";
pub const CLIENT6: &str = "fd78::2";
pub const LISTEN6: &str = "fd78::1";
pub const INSIDE6: &str = "fd79::1";
pub const SERVER6: &str = "fd79::2";
pub const LONG: Duration = Duration::from_secs(15);
/// How long a connection may be silent: as long as a test may take.
pub const IDLE: Duration = Duration::from_secs(600);
pub const BYTES: usize = 3_000_000;

/// A policy of one class with these forwards.
pub fn policy(forwards: Value) -> Value {
    json!({ "scheduler": "deficit_round_robin", "classes": [{ "id": 0 }, { "id": 1 }], "default_class": 0, "forwards": forwards })
}

pub fn forward(name: &str, port: u16, target: &str, source: &str) -> Value {
    json!({ "name": name, "protocol": "both", "port": port, "targets": target, "source": source })
}

/// The four forwards of the tests, of both families and both sources.
pub fn four() -> Value {
    json!([
        forward("keep", 80, &format!("{SERVER}:8000"), "keep"),
        forward("masquerade", 81, &format!("{SERVER}:8000"), "masquerade"),
        forward("keep6", 82, &format!("[{SERVER6}]:8000"), "keep"),
        forward("masquerade6", 83, &format!("[{SERVER6}]:8000"), "masquerade"),
    ])
}

/// Where a client connects to, and where the server sees it come from.
pub const ENDS: [(&str, u16, &str); 4] =
    [(LISTEN, 80, CLIENT), (LISTEN, 81, INSIDE), (LISTEN6, 82, CLIENT6), (LISTEN6, 83, INSIDE6)];

pub fn at(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse().expect("an address"), port)
}

/// A routed network with IPv6 beside IPv4.
pub fn network(lab: &Lab) -> Routed {
    let net = lab.routed();
    for (ns, dev, address) in [
        (&net.client, "c0", CLIENT6),
        (&net.router, "lan0", LISTEN6),
        (&net.router, "wan0", INSIDE6),
        (&net.server, "s0", SERVER6),
    ] {
        for dev in [dev, "all", "lo"] {
            ns.sysctl(&format!("net/ipv6/conf/{dev}/disable_ipv6"), "0");
        }
        ns.ip(&format!("addr add {address}/64 dev {dev} nodad"));
    }
    net.router.sysctl("net/ipv6/conf/all/forwarding", "1");
    net.client.ip(&format!("-6 route add default via {LISTEN6}"));
    net.server.ip(&format!("-6 route add default via {INSIDE6}"));
    net
}

/// The way to the target of the forward "keep", as `explain` knows it.
pub fn explained_way(lab: &Lab, net: &Routed) -> Value {
    explained_target(lab, net, 80)["way"].clone()
}

/// The first target of a packet of IPv4 to this port, as `explain` knows it.
pub fn explained_target(lab: &Lab, net: &Routed, port: u16) -> Value {
    let packet = format!("tcp {CLIENT}:5000 to {LISTEN}:{port}");
    let output = lab.sluice(&net.router, &["explain", "lan0", "--arriving", "--json", &packet]).ok();
    let answers: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output}"));
    answers[0]["forward"]["targets"][0].clone()
}

pub fn of(lab: &Lab, net: &Routed, name: &str) -> Forward {
    let status = lab.status(&net.router, "lan0");
    status.forwards.into_iter().find(|forward| forward.name == name).unwrap_or_else(|| panic!("no forward {name}"))
}
