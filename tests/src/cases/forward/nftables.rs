//! The host's nftables and connection tracking beside port forwarding: where they meet its packets, and where they do not.

use super::network::{INSIDE, LISTEN, LONG, at, forward, network, policy};
use super::peers::{Echo, exchange};
use crate::lab::Lab;
use crate::net::{CLIENT, Ns, Routed, SERVER};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// The hooks of nftables in the router, in the order in which a packet passes them: a name, the family, and the place.
const HOOKS: [(&str, &str, &str); 9] = [
    ("lan_in", "netdev", "ingress device lan0"),
    ("wan_in", "netdev", "ingress device wan0"),
    ("prerouting", "inet", "prerouting"),
    ("input", "inet", "input"),
    ("forward", "inet", "forward"),
    ("output", "inet", "output"),
    ("postrouting", "inet", "postrouting"),
    ("lan_out", "netdev", "egress device lan0"),
    ("wan_out", "netdev", "egress device wan0"),
];
/// After connection tracking, before nftables translates addresses.
const PRIORITY: i32 = -150;
const NO_HOOK: [&str; 0] = [];
/// How long an answer that is not to come is awaited.
const SHORT: Duration = Duration::from_millis(500);

/// Gives nftables in the router these rules.
fn rules(lab: &Lab, net: &Routed, text: &str) {
    net.router.tool("nft", &format!("-f {}", lab.file("rules.nft", text).display())).ok();
}

/// Counts packets at every hook of the router, by kinds: a name, and which packets are of that kind. The hooks of family netdev know no states of
/// connections.
fn count(lab: &Lab, net: &Routed, kinds: &[(&str, &str)]) {
    let table = |family: &str| {
        let mut text = format!("table {family} counted {{\n");
        for (hook, _, place) in HOOKS.iter().filter(|(_, of, _)| *of == family) {
            let mut counted = String::new();
            for (kind, packets) in kinds.iter().filter(|(_, packets)| family == "inet" || !packets.contains("ct state"))
            {
                text += &format!("counter {hook}-{kind} {{ }}\n");
                counted += &format!("{packets} counter name \"{hook}-{kind}\"\n");
            }
            text += &format!("chain {hook} {{ type filter hook {place} priority {PRIORITY}\n{counted}}}\n");
        }
        text + "}\n"
    };
    rules(lab, net, &(table("netdev") + &table("inet")));
}

/// The hooks that have seen packets of a kind.
fn seen(router: &Ns, kind: &str) -> Vec<&'static str> {
    let listed: Value = serde_json::from_str(&router.tool("nft", "-j list counters").ok().stdout).expect("JSON of nft");
    let counters = listed["nftables"].as_array().expect("a list").iter().filter_map(|one| one.get("counter"));
    let packets: BTreeMap<&str, u64> =
        counters.filter_map(|one| Some((one["name"].as_str()?, one["packets"].as_u64()?))).collect();
    assert!(packets.contains_key(format!("prerouting-{kind}").as_str()), "{kind} is counted");
    HOOKS
        .iter()
        .map(|(hook, ..)| *hook)
        .filter(|hook| packets.get(format!("{hook}-{kind}").as_str()).is_some_and(|seen| *seen > 0))
        .collect()
}

/// Sends a datagram from a port of an address, and returns the answer of an `Echo`.
fn ask(ns: &Ns, from: (&str, u16), to: SocketAddr, limit: Duration) -> Result<String, std::io::Error> {
    ns.inside(|| {
        let socket = UdpSocket::bind(from)?;
        socket.set_read_timeout(Some(limit))?;
        socket.connect(to)?;
        socket.send(b"hello")?;
        let mut answer = [0; 100];
        let length = socket.recv(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
    })
}

/// A forward's packets meet no hook of nftables, and so no connection tracking, whichever rules there are for them.
pub fn nftables_is_bypassed(lab: &Lab) {
    let net = network(lab);
    let _servers = [8000, 8001, 9000].map(|port| Echo::start(&net.server, port));
    let to_target = format!("ip daddr {SERVER} tcp dport 8000");
    let to_listen = format!("ip daddr {LISTEN} tcp dport 80");
    count(
        lab,
        &net,
        &[
            ("arrived", &to_listen),
            ("forwarded", &to_target),
            ("answer", &format!("ip saddr {SERVER} tcp sport 8000")),
            ("answered", &format!("ip saddr {LISTEN} tcp sport 80")),
            ("through", &format!("ip daddr {SERVER} tcp dport 9000")),
            ("back", &format!("ip saddr {SERVER} tcp sport 9000")),
            ("translated", &format!("ip daddr {SERVER} tcp dport 8001")),
        ],
    );
    rules(
        lab,
        &net,
        &format!(
            "table netdev harm {{
               chain arrivals {{ type filter hook ingress device lan0 priority 0; tcp dport {{ 80, 8000 }} counter; }}
               chain departures {{ type filter hook egress device wan0 priority 0; {to_target} drop; }}
             }}
             table inet harm {{
               chain input {{ type filter hook input priority 0; {to_listen} drop; }}
               chain forward {{ type filter hook forward priority 0; {to_target} drop; }}
               chain before {{ type nat hook prerouting priority -100; {to_listen} dnat ip to {SERVER}:8001; }}
               chain after {{ type nat hook postrouting priority 100; oifname wan0 masquerade; }}
             }}"
        ),
    );
    lab.up(
        &net.router,
        "lan0",
        &lab.policy(&policy(json!([forward("web", 80, &format!("{SERVER}:8000"), "keep")]))),
        &[],
    );
    let got = exchange(&net.client, at(LISTEN, 80), 100_000).expect("the forward is first");
    assert_eq!(got, (CLIENT.to_owned(), true), "and its packets are not masqueraded");
    for kind in ["arrived", "forwarded", "answer", "answered"] {
        assert_eq!(seen(&net.router, kind), NO_HOOK, "{kind}");
    }
    // Packets of no forward meet all of it, as ever.
    let got = exchange(&net.client, at(SERVER, 9000), 1_000).expect("no forward's");
    assert_eq!(got, (INSIDE.to_owned(), true), "it is masqueraded");
    assert_eq!(seen(&net.router, "through"), ["lan_in", "prerouting", "forward", "postrouting", "wan_out"]);
    assert_eq!(seen(&net.router, "back"), ["wan_in", "prerouting", "forward", "postrouting", "lan_out"]);
    lab.down(&net.router, "lan0");
    let got = exchange(&net.client, at(LISTEN, 80), 1_000).expect("nftables has the port");
    assert_eq!(got, (INSIDE.to_owned(), true));
    assert_eq!(seen(&net.router, "arrived"), ["lan_in", "prerouting"]);
    assert_eq!(seen(&net.router, "translated"), ["forward", "postrouting", "wan_out"]);
}

/// Packets that go up the stack meet nftables with the addresses that the forward has given them. The answers of the host's own targets are
/// rewritten after it.
pub fn nftables_meets_what_goes_up(lab: &Lab) {
    let net = network(lab);
    let (_own, _echo) = (Echo::start(&net.router, 7000), Echo::start(&net.server, 8000));
    let to_own = format!("ip daddr {INSIDE} tcp dport 7000");
    count(
        lab,
        &net,
        &[
            ("arrived", &format!("ip daddr {LISTEN} tcp dport {{ 80, 81 }}")),
            ("own", &to_own),
            ("established", &format!("{to_own} ct state established")),
            ("answer", &format!("ip saddr {INSIDE} tcp sport 7000")),
            ("answered", &format!("ip saddr {LISTEN} tcp sport 81")),
            ("forwarded", &format!("ip daddr {SERVER} tcp dport 8000")),
        ],
    );
    let forwards = json!([
        forward("web", 80, &format!("{SERVER}:8000"), "keep"),
        forward("own", 81, &format!("{INSIDE}:7000"), "keep"),
    ]);
    lab.up(&net.router, "lan0", &lab.policy(&policy(forwards)), &[]);
    let got = exchange(&net.client, at(LISTEN, 81), 1_000).expect("a target on this host");
    assert_eq!(got, (CLIENT.to_owned(), true));
    assert_eq!(seen(&net.router, "own"), ["lan_in", "prerouting", "input"]);
    assert_eq!(seen(&net.router, "established"), ["prerouting", "input"], "both directions are tracked");
    assert_eq!(seen(&net.router, "answer"), ["output", "postrouting", "lan_out"]);
    assert_eq!(seen(&net.router, "answered"), NO_HOOK);
    rules(
        lab,
        &net,
        &format!(
            "table inet harm {{ chain input {{ type filter hook input priority 0; {to_own} reject with tcp reset; }}\n}}"
        ),
    );
    let error = exchange(&net.client, at(LISTEN, 81), 1).expect_err("nftables rejects it");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
    // A target without a route is the stack's matter.
    assert_eq!(seen(&net.router, "forwarded"), NO_HOOK);
    net.router.ip(&format!("route add unreachable {SERVER}"));
    let error = exchange(&net.client, at(LISTEN, 80), 1).expect_err("there is no route");
    assert_eq!(error.kind(), ErrorKind::HostUnreachable, "{error}");
    assert_eq!(seen(&net.router, "forwarded"), ["lan_in", "prerouting"]);
    net.router.ip(&format!("route del unreachable {SERVER}"));
    assert_eq!(seen(&net.router, "arrived"), NO_HOOK);
    // Sockets of this host send to the target from the start.
    exchange(&net.router, at(LISTEN, 80), 1_000).expect("a client on this host");
    let hooks = ["lan_in", "prerouting", "output", "postrouting", "wan_out"];
    assert_eq!(seen(&net.router, "forwarded"), hooks);
    assert_eq!(seen(&net.router, "arrived"), NO_HOOK);
    lab.down(&net.router, "lan0");
}

/// Where arrivals are queued, the stack sends a forward's packets on. Where those of one side are queued alone, the others pass the stack by:
/// connection tracking sees one direction, unless it is told not to look.
pub fn nftables_behind_a_queue_of_arrivals(lab: &Lab) {
    let net = network(lab);
    let _servers = [8000, 9000].map(|port| Echo::start(&net.server, port));
    let to_target = format!("ip daddr {SERVER} tcp dport 8000");
    count(
        lab,
        &net,
        &[
            ("arrived", &format!("ip daddr {LISTEN} tcp dport 80")),
            ("forwarded", &to_target),
            ("answer", &format!("ip saddr {SERVER} tcp sport 8000")),
            ("invalid", &format!("{to_target} ct state invalid")),
            ("through", &format!("ip daddr {SERVER} tcp dport 9000")),
        ],
    );
    let web = policy(json!([forward("web", 80, &format!("{SERVER}:8000"), "keep")]));
    lab.up(&net.router, "lan0", &lab.policy(&web), &["--ingress-rate", "100mbit"]);
    let got = exchange(&net.client, at(LISTEN, 80), 10_000).expect("no rule is in the way");
    assert_eq!(got, (CLIENT.to_owned(), true));
    // Nothing that is queued on arrival meets the hooks of family netdev, whether a forward takes it or not.
    let hooks = ["prerouting", "forward", "postrouting"];
    assert_eq!(seen(&net.router, "arrived"), NO_HOOK);
    assert_eq!(seen(&net.router, "forwarded"), hooks);
    assert_eq!(seen(&net.router, "answer"), NO_HOOK);
    assert_eq!(seen(&net.router, "invalid"), hooks);
    exchange(&net.client, at(SERVER, 9000), 1_000).expect("no forward's");
    assert_eq!(seen(&net.router, "through"), hooks);
    rules(
        lab,
        &net,
        "table inet harm { chain forward { type filter hook forward priority 0; ct state invalid reject with tcp reset; }\n}",
    );
    exchange(&net.client, at(LISTEN, 80), 1_000).expect_err("nftables rejects it");
    lab.up(&net.router, "wan0", &lab.policy(&policy(json!([]))), &["--ingress-rate", "100mbit"]);
    exchange(&net.client, at(LISTEN, 80), 10_000).expect("both directions are queued, and tracked");
    let answered = seen(&net.router, "answer");
    assert!(hooks.iter().all(|hook| answered.contains(hook)), "{answered:?}");
    lab.down(&net.router, "wan0");
    let from = |port| (CLIENT, port);
    ask(&net.client, from(4_000), at(LISTEN, 80), LONG).expect("one direction of UDP is not invalid");
    rules(
        lab,
        &net,
        "table inet harm { chain after { type nat hook postrouting priority 100; oifname wan0 masquerade; }\n}",
    );
    ask(&net.client, from(4_001), at(LISTEN, 80), SHORT).expect_err("the target answers to another address");
    rules(
        lab,
        &net,
        &format!(
            "table inet spared {{ chain raw {{ type filter hook prerouting priority -300; ip daddr {SERVER} th dport 8000 notrack; }}\n}}"
        ),
    );
    let got = exchange(&net.client, at(LISTEN, 80), 10_000).expect("its packets are not tracked");
    assert_eq!(got, (CLIENT.to_owned(), true));
    let answer = ask(&net.client, from(4_002), at(LISTEN, 80), LONG).expect("so they are not masqueraded");
    assert_eq!(answer, format!("{CLIENT}\nhello"));
    lab.down(&net.router, "lan0");
}

/// nftables does not know where forwards listen: UDP that it masquerades from such a port is answered there, and a forward takes the answers. A
/// range of ports for masquerading keeps them apart.
pub fn ports_of_nftables(lab: &Lab) {
    let net = network(lab);
    let _echo = Echo::start(&net.server, 8000);
    let _clients = [9998, 9999].map(|port| Echo::start(&net.client, port));
    let masquerade = |ports: &str| {
        let out = format!("type nat hook postrouting priority 100; meta l4proto udp oifname lan0 masquerade{ports};");
        rules(lab, &net, &format!("table ip nat\ndelete table ip nat\ntable ip nat {{ chain out {{ {out} }}\n}}"));
    };
    masquerade("");
    let web = policy(json!([forward("web", 80, &format!("{SERVER}:8000"), "keep")]));
    lab.up(&net.router, "lan0", &lab.policy(&web), &[]);
    let masqueraded = format!("{LISTEN}\nhello");
    let answer = ask(&net.server, (SERVER, 81), at(CLIENT, 9999), LONG).expect("no forward listens there");
    assert_eq!(answer, masqueraded);
    ask(&net.server, (SERVER, 80), at(CLIENT, 9999), SHORT).expect_err("the forward takes the answer");
    masquerade(" to :20000-29999");
    // To another port: a flow keeps the port that connection tracking gave it first.
    let answer = ask(&net.server, (SERVER, 80), at(CLIENT, 9998), LONG).expect("a port of the range");
    assert_eq!(answer, masqueraded);
    lab.down(&net.router, "lan0");
}
