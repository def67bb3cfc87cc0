//! The forwarding host itself: its own targets, clients and ports.

use super::network::{
    BYTES, CLIENT6, ENDS, INSIDE, INSIDE6, LISTEN, LISTEN6, LONG, SERVER6, at, explained_way, forward, four, network,
    of, policy,
};
use super::peers::{Echo, datagram, exchange};
use crate::foreign::{Hook, Program, Verdict};
use crate::lab::Lab;
use crate::net::{CLIENT, SERVER};
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr, TcpStream, UdpSocket};

/// Targets on the forwarding host itself, and `sluice forward`.
pub fn targets_on_this_host(lab: &Lab) {
    let net = network(lab);
    let _own = Echo::start(&net.router, 7000);
    lab.up(&net.router, "lan0", &lab.policy(&policy(json!([]))), &[]);
    let add = |name: &str, port: &str, to: &str| {
        lab.sluice(&net.router, &["forward", "add", "lan0", name, "--protocol", "both", "--port", port, "--to", to])
    };
    let added = add("inside", "80", "10.79.0.1:7000").ok();
    assert!(added.stdout.contains("+ forward inside"), "{added}");
    add("inside6", "81", "[fd79::1]:7000").ok();
    add("inside", "82", "10.79.0.1:7000").exits(2).says("two forwards are named");
    add("same", "80-81", "10.79.0.1").exits(2).says("listen on the same port");
    let list = lab.sluice(&net.router, &["forward", "list", "lan0"]).ok().stdout;
    assert!(list.contains("inside6") && list.contains("any:80"), "{list}");
    for (address, port, peer) in [(LISTEN, 80, CLIENT), (LISTEN6, 81, CLIENT6)] {
        let to = at(address, port);
        let got = exchange(&net.client, to, BYTES).unwrap_or_else(|error| panic!("{to}: {error}"));
        assert_eq!(got, (peer.to_owned(), true), "{to}");
    }
    lab.sluice(&net.router, &["forward", "remove", "lan0", "nothing"]).exits(2).says("has no forward");
    lab.sluice(&net.router, &["forward", "remove", "lan0", "inside", "inside6"]).ok();
    assert!(exchange(&net.client, at(LISTEN, 80), 1).is_err());
    lab.down(&net.router, "lan0");
}

/// Sockets of the forwarding host itself are led to targets, and told that they are where they wanted to go. Others are left alone.
pub fn clients_on_this_host(lab: &Lab) {
    let net = network(lab);
    let (_echo, _own) = (Echo::start(&net.server, 8000), Echo::start(&net.router, 7000));
    lab.up(&net.router, "lan0", &lab.policy(&policy(four())), &[]);
    for (address, port, inside) in
        [(LISTEN, 80, INSIDE), (LISTEN, 81, INSIDE), (LISTEN6, 82, INSIDE6), (LISTEN6, 83, INSIDE6)]
    {
        let to = at(address, port);
        let got = exchange(&net.router, to, BYTES).unwrap_or_else(|error| panic!("{to}: {error}"));
        assert_eq!(got, (inside.to_owned(), true), "{to}");
        let got = datagram(&net.router, to, b"hello").unwrap_or_else(|error| panic!("{to}: {error}"));
        assert_eq!(String::from_utf8_lossy(&got), format!("{inside}\nhello"), "{to}");
        net.router.inside(|| {
            let stream = TcpStream::connect_timeout(&to, LONG).unwrap_or_else(|error| panic!("{to}: {error}"));
            assert_eq!(stream.peer_addr().expect("a peer"), to);
            let any: IpAddr =
                if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { std::net::Ipv6Addr::UNSPECIFIED.into() };
            let socket = UdpSocket::bind((any, 0)).expect("a socket");
            socket.set_read_timeout(Some(LONG)).expect("a time limit");
            socket.send_to(b"not connected", to).expect("sending");
            let (_, from) = socket.recv_from(&mut [0; 100]).expect("an answer");
            assert_eq!(from, to);
        });
    }
    assert_eq!(of(lab, &net, "keep").opened, 4, "two of TCP, two of UDP");
    // Its other ports, the ports of others, and other namespaces are what they were.
    for (ns, to, peer) in [
        (&net.router, at(LISTEN, 7000), LISTEN),
        (&net.router, at(SERVER, 8000), INSIDE),
        (&net.client, at(LISTEN, 80), CLIENT),
    ] {
        let got = exchange(ns, to, 1_000).unwrap_or_else(|error| panic!("{to}: {error}"));
        assert_eq!(got, (peer.to_owned(), true), "{to}");
    }
    lab.sluice(&net.router, &["apply", "lan0", &lab.policy(&policy(json!([])))]).ok();
    exchange(&net.router, at(LISTEN, 80), 1).expect_err("the forward has gone");
    lab.down(&net.router, "lan0");
    exchange(&net.router, at(LISTEN, 81), 1).expect_err("so have all");
}

/// Packets that no forward asks for: those to other ports of the router and its other addresses, and those that pass through.
pub fn other_packets_pass(lab: &Lab) {
    let net = network(lab);
    let (_echo, _direct) = (Echo::start(&net.server, 8000), Echo::start(&net.server, 80));
    let _own = Echo::start(&net.router, 7000);
    lab.up(&net.router, "lan0", &lab.policy(&policy(four())), &[]);
    for (to, peer) in [(at(SERVER, 80), CLIENT), (at(LISTEN, 7000), CLIENT), (at(SERVER6, 80), CLIENT6)] {
        let got = exchange(&net.client, to, 1_000).unwrap_or_else(|error| panic!("{to}: {error}"));
        assert_eq!(got, (peer.to_owned(), true), "{to}");
        datagram(&net.client, to, b"through").unwrap_or_else(|error| panic!("{to}: {error}"));
    }
    for name in ["keep", "masquerade", "keep6", "masquerade6"] {
        assert_eq!(of(lab, &net, name).opened, 0, "a packet to another host is none of {name}'s");
    }
    lab.down(&net.router, "lan0");
}

/// Who sends no packets on is told so, by `up` and by `explain`; packets pass as soon as the host does.
pub fn hosts_that_are_no_routers(lab: &Lab) {
    let net = network(lab);
    let _echo = Echo::start(&net.server, 8000);
    for setting in ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"] {
        net.router.sysctl(setting, "0");
    }
    let up = lab.up(&net.router, "lan0", &lab.policy(&policy(four())), &[]);
    let note = |setting| format!("note: {setting} is 0: this host sends no packets on");
    for setting in ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"] {
        assert_eq!(up.stdout.matches(&note(setting)).count(), 1, "once for a family: {up}");
    }
    assert_eq!(explained_way(lab, &net), json!({ "kind": "disabled", "sysctl": "net.ipv4.ip_forward" }));

    net.router.sysctl("net/ipv4/ip_forward", "1");
    let (address, port, source) = ENDS[0];
    assert_eq!(exchange(&net.client, at(address, port), 1_000).expect("an answer"), (source.to_owned(), true));
    let other = forward("other", 90, &format!("{SERVER}:8000"), "keep");
    let mut five = four();
    five.as_array_mut().expect("a list").push(other);
    let file = lab.file("five.json", policy(five).to_string()).display().to_string();
    let apply = lab.sluice(&net.router, &["apply", "lan0", &file]).ok();
    assert!(!apply.stdout.contains("sends no packets on"), "nothing new is of IPv6: {apply}");
    lab.down(&net.router, "lan0");
}

/// Where nothing is scheduled, packets go into the peer of a veth at once; where somebody looks at departures, they leave as any others.
pub fn short_cuts_pass_nobody_by(lab: &Lab) {
    let net = network(lab);
    let _echo = Echo::start(&net.server, 8000);
    let mut alone = policy(four());
    alone["mode"] = json!("classify_only");
    alone["flow_table"] = json!(0);
    let left = |device: &str| net.router.sent_bytes(device);
    // The bytes that leave by either interface while a connection of each forward carries data.
    let carried = || {
        let before = (left("wan0"), left("lan0"));
        for (address, port, source) in ENDS {
            let to = at(address, port);
            let got = exchange(&net.client, to, BYTES).unwrap_or_else(|error| panic!("{to}: {error}"));
            assert_eq!(got, (source.to_owned(), true), "{to}");
        }
        (left("wan0") - before.0, left("lan0") - before.1)
    };
    let (few, many) = (0..BYTES as u64 / 100, BYTES as u64..);
    lab.up(&net.router, "lan0", &lab.policy(&alone), &[]);
    let (to_server, to_client) = carried();
    assert!(few.contains(&to_server) && few.contains(&to_client), "past both: {to_server} and {to_client}");
    assert_eq!(explained_way(lab, &net), json!({ "kind": "peer", "interface": "wan0" }));
    let peer =
        |sender, interface| json!({ "sender": sender, "targets": [SERVER], "kind": "peer", "interface": interface });
    assert_eq!(of(lab, &net, "keep").ways, json!([peer("client", "wan0"), peer("target", "lan0")]));

    // A qdisc that comes to the way out afterwards is passed by, which is said, until the ways are chosen anew.
    net.router.tc("qdisc add dev wan0 root pfifo");
    let mut passes = peer("client", "wan0");
    passes["passes"] = json!("qdisc");
    assert_eq!(of(lab, &net, "keep").ways, json!([passes, peer("target", "lan0")]));
    let told = "from clients by wan0, into its other end at once, since nothing was scheduled there when a policy last \
                changed; now a qdisc schedules there: keep, keep6, masquerade, masquerade6";
    let doctor = lab.sluice(&net.router, &["doctor"]);
    assert!(doctor.stdout.contains(told) && doctor.stdout.contains("-> sluice apply lan0"), "{doctor}");
    let list = lab.sluice(&net.router, &["forward", "list", "lan0"]).ok().stdout;
    assert!(list.contains(told) && list.contains("from targets by lan0, into its other end at once, since"), "{list}");
    lab.sluice(&net.router, &["apply", "lan0", &lab.policy(&alone)]).ok();
    let queues =
        json!({ "sender": "client", "targets": [SERVER], "kind": "queues", "interface": "wan0", "why": "qdisc" });
    assert_eq!(of(lab, &net, "keep").ways, json!([queues, peer("target", "lan0")]));
    lab.down(&net.router, "lan0");
    lab.up(&net.router, "lan0", &lab.policy(&policy(four())), &[]);
    let (to_server, to_client) = carried();
    assert!(many.contains(&to_server) && many.contains(&to_client), "through queues: {to_server} and {to_client}");
    assert_eq!(explained_way(lab, &net), json!({ "kind": "queues", "interface": "wan0", "why": "qdisc" }));
    net.router.ip(&format!("route add unreachable {SERVER}"));
    assert_eq!(explained_way(lab, &net), json!({ "kind": "unrouted" }));
    net.router.ip(&format!("route del unreachable {SERVER}"));

    net.router.tc("qdisc del dev wan0 root");
    lab.down(&net.router, "lan0");
    net.router.tc("qdisc add dev wan0 clsact");
    let other = Program::new(Hook::Filter, Verdict::Pass);
    other.pinned(|path| net.router.tc(&format!("filter add dev wan0 egress bpf direct-action object-pinned {path}")));
    lab.up(&net.router, "lan0", &lab.policy(&alone), &[]);
    let (to_server, to_client) = carried();
    assert!(
        many.contains(&to_server) && few.contains(&to_client),
        "a filter sees departures: {to_server} and {to_client}"
    );
    assert!(other.seen() > 100, "{} packets were seen", other.seen());
    lab.down(&net.router, "lan0");
}
