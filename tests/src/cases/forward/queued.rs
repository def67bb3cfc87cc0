//! Forwards where packets are queued as they arrive: the stack sends them on, and they get their source as they leave.

use super::network::{BYTES, ENDS, at, explained_way, four, network, of, policy};
use super::peers::{Echo, Open, datagram, exchange, with_hops};
use crate::lab::Lab;
use crate::net::CLIENT;
use serde_json::json;
use std::time::Duration;

pub fn queued_on_arrival(lab: &Lab) {
    let net = network(lab);
    let _echo = Echo::start(&net.server, 8000);
    let mut forwards = four();
    forwards.as_array_mut().expect("a list").iter_mut().for_each(|forward| forward["class_id"] = json!(1));
    let queued = ["--rate", "200mbit", "--ingress-rate", "200mbit"];
    lab.up(&net.router, "lan0", &lab.policy(&policy(forwards)), &queued);
    let sent = |interface: &str, class: u8| lab.status(&net.router, interface).egress(class).sent.bytes;
    let arrived = |interface: &str| {
        let status = lab.status(&net.router, interface);
        status.direction("ingress").classes.iter().map(|class| class.sent.bytes).sum::<u64>()
    };
    assert_eq!(explained_way(lab, &net), json!({ "kind": "stack", "interface": "wan0" }));
    // At first answers are not queued; then packets of both directions are.
    for both in [false, true] {
        if both {
            lab.up(&net.router, "wan0", &lab.policy(&policy(json!([]))), &queued);
        }
        let before = (sent("lan0", 1), arrived("lan0"));
        for (address, port, source) in ENDS {
            let to = at(address, port);
            let got = exchange(&net.client, to, BYTES).unwrap_or_else(|error| panic!("{to}: {error}"));
            assert_eq!(got, (source.to_owned(), true), "{to}");
            let long = vec![7; 5_000];
            let got = datagram(&net.client, to, &long).unwrap_or_else(|error| panic!("{to}: {error}"));
            assert_eq!(got, [format!("{source}\n").as_bytes(), &long].concat(), "{to}");
            let error = with_hops(&net.client, to, &[1]).expect_err("one hop leads to the router");
            assert_eq!(error.raw_os_error(), Some(libc::EHOSTUNREACH), "{to}: {error}");
            let got = with_hops(&net.client, to, &[2]).unwrap_or_else(|error| panic!("{to}: {error}"));
            assert_eq!(String::from_utf8_lossy(&got), format!("{source}\nhops"), "{to}");
        }
        let many = 4 * BYTES as u64;
        assert!(sent("lan0", 1) - before.0 > many, "answers have the class of their forward");
        assert!(arrived("lan0") - before.1 > many, "what came from clients was queued");
        if both {
            assert!(sent("wan0", 1) > many, "packets to targets have the class of their forward");
            assert!(arrived("wan0") > many, "what came from targets was queued");
        }
    }
    for name in ["keep", "masquerade", "keep6", "masquerade6"] {
        assert!(of(lab, &net, name).opened >= 6, "{name}");
    }
    lab.down(&net.router, "lan0");
    lab.down(&net.router, "wan0");
}

/// Answers that are queued as they arrive leave by an interface that the client has not come by, and that has no hook of ours.
pub fn answers_leave_elsewhere(lab: &Lab) {
    let net = network(lab);
    let _echo = Echo::start(&net.server, 8000);
    net.router.ip(&format!("link add lan1 type veth peer name c1 netns {}", net.client.name));
    for (ns, device, address) in [(&net.router, "lan1", "10.80.0.1/24"), (&net.client, "c1", "10.80.0.2/24")] {
        ns.ip(&format!("addr add {address} dev {device}"));
        ns.ip(&format!("link set {device} up"));
        ns.sysctl(&format!("net/ipv4/conf/{device}/rp_filter"), "0");
        ns.sysctl("net/ipv4/conf/all/rp_filter", "0");
    }
    lab.up(&net.router, "lan0", &lab.policy(&policy(four())), &[]);
    lab.up(&net.router, "wan0", &lab.policy(&policy(json!([]))), &["--ingress-rate", "200mbit"]);
    for (address, port, source) in &ENDS[..2] {
        let to = at(address, *port);
        let open = Open::to(&net.client, to);
        net.router.ip(&format!("route add {CLIENT}/32 via 10.80.0.2 dev lan1"));
        // Ways are remembered for a moment.
        std::thread::sleep(Duration::from_millis(200));
        let got = exchange(&net.client, to, 100_000).unwrap_or_else(|error| panic!("{to}: {error}"));
        assert_eq!(got, ((*source).to_owned(), true), "{to}");
        open.ends_well();
        net.router.ip(&format!("route del {CLIENT}/32 via 10.80.0.2 dev lan1"));
    }
    lab.down(&net.router, "lan0");
    lab.down(&net.router, "wan0");
}
