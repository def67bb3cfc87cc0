//! Port forwarding: connections arrive whole and from where they should, errors find their way, changes disturb nobody else.

mod changes;
mod classes;
mod families;
mod host;
mod hostile;
mod network;
mod nftables;
mod observed;
mod peers;
mod queued;
mod tun;

use crate::lab::Lab;
use crate::needs::Need;
use crate::net::{CLIENT, SERVER};
use crate::suite::Suite;
use network::{BYTES, ENDS, INSIDE, INSIDE6, LISTEN, LISTEN6, SERVER6, at, forward, four, network, of, policy};
use peers::{Echo, datagram, exchange, with_hops};
use serde_json::json;
use std::io::ErrorKind;
use std::sync::atomic::Ordering;

pub fn suite() -> Suite {
    Suite::new("forward")
        .both("connections_arrive", &[], connections_arrive)
        .any("path_mtu_is_found", &[], path_mtu_is_found)
        .both("families_are_translated", &[Need::Ifb], families::families_are_translated)
        .both("rules_do_not_choose_the_class_of_forwards", &[], classes::rules_do_not_choose_the_class_of_forwards)
        .any("a_new_neighbour_is_heard_of", &[], changes::a_new_neighbour_is_heard_of)
        .any("sources_are_where_the_routes_say", &[], hostile::sources_are_where_the_routes_say)
        .any("interfaces_without_ethernet", &[Need::Tun], tun::interfaces_without_ethernet)
        .any("vlans", &[Need::Vlan], vlans)
        .any("targets_on_this_host", &[], host::targets_on_this_host)
        .any("clients_on_this_host", &[], host::clients_on_this_host)
        .both("both_sides_are_shown", &[], observed::both_sides_are_shown)
        .any("answers_leave_elsewhere", &[Need::Tcx, Need::Ifb], queued::answers_leave_elsewhere)
        .both("queued_on_arrival", &[Need::Tcx, Need::Ifb], queued::queued_on_arrival)
        .any("nftables_is_bypassed", &[Need::Conntrack], nftables::nftables_is_bypassed)
        .any("nftables_meets_what_goes_up", &[Need::Conntrack], nftables::nftables_meets_what_goes_up)
        .any(
            "nftables_behind_a_queue_of_arrivals",
            &[Need::Conntrack, Need::Tcx, Need::Ifb],
            nftables::nftables_behind_a_queue_of_arrivals,
        )
        .any("ports_of_nftables", &[Need::Conntrack], nftables::ports_of_nftables)
}

/// What the program decides, by the packet and its own tables alone.
pub fn decisions() -> Suite {
    Suite::new("forward")
        .alike_everywhere()
        .any("narrow_ways_cut_packets", &[], narrow_ways_cut_packets)
        .any("families_find_the_path_mtu", &[], families::families_find_the_path_mtu)
        .any("families_cut_packets", &[], families::families_cut_packets)
        .any("families_that_are_not_translated", &[], families::families_that_are_not_translated)
        .any("hops_are_counted", &[], hops_are_counted)
        .any("changes_disturb_nobody", &[], changes::changes_disturb_nobody)
        .any("a_flood_harms_no_connection", &[], hostile::a_flood_harms_no_connection)
        .any("later_fragments_follow", &[], hostile::later_fragments_follow)
        .any("others_go_up_and_down", &[Need::Ifb], changes::others_go_up_and_down)
        .any("answers_come_after_a_change", &[], changes::answers_come_after_a_change)
        .any("a_cut_meets_clients_that_never_pause", &[], changes::a_cut_meets_clients_that_never_pause)
        .any("stray_segments_begin_nothing", &[], hostile::stray_segments_begin_nothing)
        .any("targets_share", &[], targets_share)
        .any("an_upgrade_keeps_connections", &[], changes::an_upgrade_keeps_connections)
        .any("short_cuts_pass_nobody_by", &[], host::short_cuts_pass_nobody_by)
        .any("hosts_that_are_no_routers", &[], host::hosts_that_are_no_routers)
        .any("other_packets_pass", &[], host::other_packets_pass)
        .any("refused", &[], refused)
}

fn connections_arrive(lab: &Lab) {
    let net = network(lab);
    let _echo = Echo::start(&net.server, 8000);
    lab.up(&net.router, "lan0", &lab.policy(&policy(four())), &[]);
    for (address, port, source) in ENDS {
        let to = at(address, port);
        let got = exchange(&net.client, to, BYTES).unwrap_or_else(|error| panic!("{to}: {error}"));
        assert_eq!(got, (source.to_owned(), true), "{to}");
        let got = datagram(&net.client, to, b"hello").unwrap_or_else(|error| panic!("{to}: {error}"));
        assert_eq!(String::from_utf8_lossy(&got), format!("{source}\nhello"), "{to}");
        // As fragments, both ways.
        let long: Vec<u8> = (0..5_000).map(|n| (n % 251) as u8).collect();
        let got = datagram(&net.client, to, &long).unwrap_or_else(|error| panic!("{to}, in fragments: {error}"));
        assert!(got.ends_with(&long) && got.starts_with(source.as_bytes()), "{to}");
    }
    for name in ["keep", "masquerade", "keep6", "masquerade6"] {
        let forward = of(lab, &net, name);
        assert_eq!((forward.opened, forward.open), (3, 2), "TCP has ended, UDP is open: {forward:?}");
        assert!(forward.from_clients.bytes > BYTES as u64 && forward.from_targets.bytes > BYTES as u64, "{forward:?}");
    }
    lab.down(&net.router, "lan0");
    assert!(exchange(&net.client, at(LISTEN, 80), 1).is_err(), "it is a port of the router again");
}

fn path_mtu_is_found(lab: &Lab) {
    let net = network(lab);
    let _echo = Echo::start(&net.server, 8000);
    lab.up(&net.router, "lan0", &lab.policy(&policy(four())), &[]);
    // The way to the server is narrow, and the server does not say so: its answers fit.
    net.router.ip("link set wan0 mtu 1320");
    net.server.ip("link set s0 mtu 1320");
    net.server.ip("route replace 10.79.0.0/24 dev s0 advmss 1460");
    net.server.ip(&format!("route replace default via {INSIDE} advmss 1460"));
    net.server.ip("-6 route replace fd79::/64 dev s0 advmss 1440");
    net.server.ip(&format!("-6 route replace default via {INSIDE6} advmss 1440"));
    for (address, port, source) in ENDS {
        let to = at(address, port);
        let got = exchange(&net.client, to, BYTES).unwrap_or_else(|error| panic!("{to}: {error}"));
        assert_eq!(got, (source.to_owned(), true), "{to}");
    }
    let cached = net.client.ip("route get 10.78.0.1") + &net.client.ip(&format!("-6 route get {LISTEN6}"));
    assert_eq!(cached.matches("mtu 1320").count(), 2, "{cached}");
    let too_big = |name: &str| of(lab, &net, name).refused.get("too_big").copied().unwrap_or(0);
    assert!(too_big("keep") + too_big("masquerade") > 0 && too_big("keep6") + too_big("masquerade6") > 0, "counted");
    lab.down(&net.router, "lan0");
}

/// Packets that may be cut into fragments are, in either direction, where the way that is not as wide comes behind the router.
fn narrow_ways_cut_packets(lab: &Lab) {
    let net = network(lab);
    for ns in [&net.client, &net.server] {
        ns.sysctl("net/ipv4/ip_no_pmtu_disc", "1");
    }
    let _echo = Echo::start(&net.server, 8000);
    lab.up(&net.router, "lan0", &lab.policy(&policy(four())), &[]);
    let ends = [(&net.router, "lan0"), (&net.client, "c0"), (&net.router, "wan0"), (&net.server, "s0")];
    // The request is too long for the way to the server; then the answer, with its sender's address, for that to the client.
    for (narrow, bytes) in [(&ends[2..], 1_450), (&ends[..2], 1_370)] {
        ends.iter().for_each(|(ns, device)| drop(ns.ip(&format!("link set {device} mtu 1500"))));
        narrow.iter().for_each(|(ns, device)| drop(ns.ip(&format!("link set {device} mtu 1400"))));
        for (address, port, source) in &ENDS[..2] {
            let long = vec![7; bytes];
            let got =
                datagram(&net.client, at(address, *port), &long).unwrap_or_else(|error| panic!("{port}: {error}"));
            assert_eq!(got, [format!("{source}\n").as_bytes(), &long].concat(), "{port}");
        }
    }
    lab.down(&net.router, "lan0");
}

/// The router is a hop, and says so; errors that the server sends come as from where the client sent to.
fn hops_are_counted(lab: &Lab) {
    let net = network(lab);
    let _echo = Echo::start(&net.server, 8000);
    let mut forwards = four();
    for (n, (target, source)) in
        [(SERVER, "keep"), (SERVER, "masquerade"), (SERVER6, "keep"), (SERVER6, "masquerade")].into_iter().enumerate()
    {
        let target = if target.contains(':') { format!("[{target}]:9") } else { format!("{target}:9") };
        let closed = forward(&format!("closed{n}"), 90 + n as u16, &target, source);
        forwards.as_array_mut().expect("a list").push(closed);
    }
    lab.up(&net.router, "lan0", &lab.policy(&policy(forwards)), &[]);
    for (n, (address, port, source)) in ENDS.into_iter().enumerate() {
        let to = at(address, port);
        // Alone, and as a packet of a connection that both sides have spoken on.
        for hops in [&[1][..], &[64, 64, 64, 1]] {
            let error = with_hops(&net.client, to, hops).expect_err("one hop leads to the router");
            assert_eq!(error.raw_os_error(), Some(libc::EHOSTUNREACH), "{to}: {hops:?}: {error}");
        }
        let got = with_hops(&net.client, to, &[2]).unwrap_or_else(|error| panic!("{to}: {error}"));
        assert_eq!(String::from_utf8_lossy(&got), format!("{source}\nhops"), "{to}");
        let closed = at(address, 90 + n as u16);
        let error = with_hops(&net.client, closed, &[64]).expect_err("nobody listens there");
        assert_eq!(error.raw_os_error(), Some(libc::ECONNREFUSED), "{closed}: {error}");
        let error = exchange(&net.client, closed, 1).expect_err("nobody listens there");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{closed}: {error}");
    }
    for name in ["keep", "masquerade", "keep6", "masquerade6"] {
        assert_eq!(of(lab, &net, name).refused, [("ttl_exceeded".to_owned(), 2)].into(), "{name}");
    }
    lab.down(&net.router, "lan0");
}

/// A packet whose tag names a VLAN is not for the interface below; the VLAN's own device forwards. A tag with a priority alone is none.
fn vlans(lab: &Lab) {
    let net = network(lab);
    let _echo = Echo::start(&net.server, 8000);
    for (ns, device, host) in [(&net.client, "c0", 2), (&net.router, "lan0", 1)] {
        ns.ip(&format!("link add link {device} name vlan5 type vlan id 5"));
        ns.ip(&format!("addr add 10.77.0.{host}/24 dev vlan5"));
        ns.ip("link set vlan5 up");
    }
    net.server.ip(&format!("route add 10.77.0.0/24 via {INSIDE}"));
    let tagged = at("10.77.0.1", 80);
    lab.up(&net.router, "lan0", &lab.policy(&policy(json!([four()[0]]))), &[]);
    let got = exchange(&net.client, at(LISTEN, 80), 1_000).expect("without a tag");
    assert_eq!(got, (CLIENT.to_owned(), true));
    exchange(&net.client, tagged, 1).expect_err("lan0 forwards, and vlan5 does not");
    assert_eq!(of(lab, &net, "keep").opened, 1);
    lab.up(&net.router, "vlan5", &lab.policy(&policy(json!([four()[0]]))), &[]);
    let got = exchange(&net.client, tagged, BYTES).expect("vlan5 forwards, too");
    assert_eq!(got, ("10.77.0.2".to_owned(), true));
    lab.down(&net.router, "vlan5");
    lab.down(&net.router, "lan0");
}

fn targets_share(lab: &Lab) {
    let net = network(lab);
    let servers = [Echo::start(&net.server, 8000), Echo::start(&net.server, 8001)];
    let forwards = json!([{ "name": "shared", "protocol": "tcp", "port": 80,
        "targets": [format!("{SERVER}:8000"), { "address": SERVER, "port": 8001, "weight": 3 }] }]);
    lab.up(&net.router, "lan0", &lab.policy(&policy(forwards)), &[]);
    const CONNECTIONS: u32 = 400;
    for _ in 0..CONNECTIONS {
        exchange(&net.client, at(LISTEN, 80), 10).expect("a connection");
    }
    let second = servers[1].accepted.load(Ordering::Relaxed);
    assert_eq!(servers[0].accepted.load(Ordering::Relaxed) + second, CONNECTIONS);
    // Three quarters, give or take five standard deviations of a binomial share.
    assert!((257..=343).contains(&second), "{second} of {CONNECTIONS} went to the target with three quarters");
    lab.down(&net.router, "lan0");
}

fn refused(lab: &Lab) {
    let net = network(lab);
    let _echo = Echo::start(&net.server, 8000);
    let lost = policy(json!([forward("lost", 80, "192.0.2.9:80", "keep")]));
    net.router.ip("route add unreachable 192.0.2.0/24");
    let output = lab.try_up(&net.router, "lan0", &lab.policy(&lost), &[]);
    output.exits(2).says("forward \"lost\": there is no route to its target 192.0.2.9");
    assert_eq!(lab.sluice(&net.router, &["status", "lan0"]).code, Some(2), "nothing was begun");
    lab.up(&net.router, "lan0", &lab.policy(&policy(four())), &[]);
    for more in [&[][..], &["--dry-run"], &["--force"]] {
        let output = lab.sluice(&net.router, &[&["apply", "lan0", &lab.policy(&lost)], more].concat());
        output.exits(2).says("there is no route to its target 192.0.2.9");
    }
    assert_eq!(lab.status(&net.router, "lan0").policy.generation, 1, "nothing has changed");
    // A target that loses its route keeps nobody from changing others.
    net.router.ip("route add 192.0.2.1/32 dev wan0");
    lab.sluice(&net.router, &["forward", "add", "lan0", "loses", "--port", "87", "--to", "192.0.2.1:1"]).ok();
    net.router.ip("route del 192.0.2.1/32 dev wan0");
    let target = format!("{SERVER}:8000");
    let add = ["forward", "add", "lan0", "other", "--port", "88", "--to", &target];
    lab.sluice(&net.router, &add).ok().says("forward \"loses\": there is no route to its target 192.0.2.1");
    exchange(&net.client, at(LISTEN, 88), 1_000).expect("the other one is there");
    lab.sluice(&net.router, &["rollback", "lan0"]).ok();
    exchange(&net.client, at(LISTEN, 88), 1).expect_err("it has gone");
    lab.sluice(&net.router, &["forward", "remove", "lan0", "loses"]).ok();
    let got = exchange(&net.client, at(LISTEN, 80), 1_000).expect("the former forwards are there");
    assert_eq!(got, (CLIENT.to_owned(), true));

    // Ports and addresses of others are taken by force alone.
    let _own = Echo::start(&net.router, 7000);
    let target = format!("{SERVER}:8000");
    let add = |name: &str, port: &str, more: &[&str]| {
        let words = ["forward", "add", "lan0", name, "--port", port, "--to", &target, "--masquerade"];
        lab.sluice(&net.router, &[&words[..], more].concat())
    };
    add("ours", "7000", &[]).exits(2).says("forward \"ours\": a socket of this host").says("has TCP port 7000");
    add("relay", "85", &["--address", "192.0.2.77"]).exits(2).says("192.0.2.77 is not an address of this host");
    assert!(exchange(&net.client, at(LISTEN, 7000), 10).is_ok_and(|(peer, _)| peer == CLIENT), "nothing changed");
    let taken = add("ours", "7000", &["--force"]).ok();
    assert!(taken.stdout.contains("note: forward \"ours\": a socket of this host"), "{taken}");
    assert!(exchange(&net.client, at(LISTEN, 7000), 10).is_ok_and(|(peer, _)| peer == INSIDE), "it has the port");
    lab.sluice(&net.router, &["forward", "add", "lan0", "more", "--port", "86", "--to", &target]).ok();
    lab.sluice(&net.router, &["forward", "remove", "lan0", "ours"]).ok();
    assert!(exchange(&net.client, at(LISTEN, 7000), 10).is_ok_and(|(peer, _)| peer == CLIENT), "it is given back");
    lab.down(&net.router, "lan0");
}
