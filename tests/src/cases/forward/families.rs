//! Forwards from IPv4 to IPv6 and back: packets and errors are translated, and what cannot be is dropped and counted.

use super::network::{
    BYTES, INSIDE, INSIDE6, LISTEN, LISTEN6, LONG, SERVER6, at, explained_target, four, network, of, policy,
};
use super::peers::{Echo, datagram, exchange, segmented, with_hops};
use crate::command::await_that;
use crate::frames::{self, V4, Wire};
use crate::lab::Lab;
use crate::net::{CLIENT, SERVER};
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Where a client connects to, and where the server sees it come from.
const CROSSING: [(&str, u16, &str); 2] = [(LISTEN, 90, INSIDE6), (LISTEN6, 91, INSIDE)];

fn translating(name: &str, address: &str, port: u16, target: &str) -> Value {
    json!({ "name": name, "protocol": "both", "address": address, "port": port, "targets": target, "source": "masquerade" })
}

/// A forward of each direction, and one of each to a port where nobody listens.
fn crossing() -> Value {
    json!([
        translating("to6", LISTEN, 90, &format!("[{SERVER6}]:8000")),
        translating("to4", LISTEN6, 91, &format!("{SERVER}:8000")),
        translating("closed6", LISTEN, 92, &format!("[{SERVER6}]:9")),
        translating("closed4", LISTEN6, 93, &format!("{SERVER}:9")),
    ])
}

/// Bulk both ways in super-packets, datagrams, hops, and ports where nobody listens. The receivers verify the checksums.
pub fn families_are_translated(lab: &Lab) {
    let net = network(lab);
    let _echo = Echo::start(&net.server, 8000);
    let mut alone = policy(crossing());
    alone["mode"] = json!("classify_only");
    alone["flow_table"] = json!(0);
    // Through queues; into the veth's other end at once; through queues, with finished checksums; where arrivals are queued.
    for (file, more, offload) in [
        (policy(crossing()), &[][..], "on"),
        (alone, &[][..], "on"),
        (policy(crossing()), &[][..], "off"),
        (policy(crossing()), &["--rate", "200mbit", "--ingress-rate", "200mbit"][..], "on"),
    ] {
        for (ns, device) in [(&net.client, "c0"), (&net.server, "s0")] {
            ns.tool("ethtool", &format!("-K {device} tx {offload} tso {offload} gso {offload}")).ok();
        }
        let up = lab.up(&net.router, "lan0", &lab.policy(&file), more);
        let queued = up.stdout.contains("past the queue of arrivals");
        assert_eq!(queued, more.contains(&"--ingress-rate"), "{up}");
        for (n, (address, port, source)) in CROSSING.into_iter().enumerate() {
            let to = at(address, port);
            let got = exchange(&net.client, to, BYTES).unwrap_or_else(|error| panic!("{to}: {error}"));
            assert_eq!(got, (source.to_owned(), true), "{to}");
            for bytes in [0, 1, 1_000] {
                let sent = vec![7; bytes];
                let got = datagram(&net.client, to, &sent).unwrap_or_else(|error| panic!("{to}: {error}"));
                assert_eq!(got, [format!("{source}\n").as_bytes(), &sent].concat(), "{to}");
            }
            // Linux 6.1 makes no super-packets of UDP whose checksums the device does not finish.
            if offload == "on" {
                for answer in segmented(&net.client, to, 1_000, 4).unwrap_or_else(|error| panic!("{to}: {error}")) {
                    assert_eq!(answer, [format!("{source}\n").as_bytes(), &[7; 1_000]].concat(), "{to}");
                }
            }
            let error = with_hops(&net.client, to, &[64, 1]).expect_err("one hop leads to the router");
            assert_eq!(error.raw_os_error(), Some(libc::EHOSTUNREACH), "{to}: {error}");
            let got = with_hops(&net.client, to, &[2]).unwrap_or_else(|error| panic!("{to}: {error}"));
            assert_eq!(String::from_utf8_lossy(&got), format!("{source}\nhops"), "{to}");
            let closed = at(address, 92 + n as u16);
            let error = with_hops(&net.client, closed, &[64]).expect_err("nobody listens there");
            assert_eq!(error.raw_os_error(), Some(libc::ECONNREFUSED), "{closed}: {error}");
            let error = exchange(&net.client, closed, 1).expect_err("nobody listens there");
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{closed}: {error}");
        }
        for name in ["to6", "to4"] {
            let forward = of(lab, &net, name);
            assert!(
                forward.from_clients.bytes > BYTES as u64 && forward.from_targets.bytes > BYTES as u64,
                "{forward:?}"
            );
            assert_eq!(forward.refused, [("ttl_exceeded".to_owned(), 1)].into(), "{forward:?}");
        }
        lab.down(&net.router, "lan0");
    }
}

/// What routers of one family say of a way's MTU reaches senders of the other, with the difference of both headers.
pub fn families_find_the_path_mtu(lab: &Lab) {
    let net = network(lab);
    let _echo = Echo::start(&net.server, 8000);
    lab.up(&net.router, "lan0", &lab.policy(&policy(crossing())), &[]);
    // The way to the server is narrow, and the server does not say so.
    net.router.ip("link set wan0 mtu 1320");
    net.server.ip("link set s0 mtu 1320");
    net.server.ip(&format!("route replace default via {INSIDE} advmss 1460"));
    net.server.ip("route replace 10.79.0.0/24 dev s0 advmss 1460");
    net.server.ip(&format!("-6 route replace default via {INSIDE6} advmss 1440"));
    net.server.ip("-6 route add fd79::/64 dev s0 metric 100 advmss 1440");
    for (address, port, source) in CROSSING {
        let to = at(address, port);
        let got = exchange(&net.client, to, BYTES).unwrap_or_else(|error| panic!("{to}: {error}"));
        assert_eq!(got, (source.to_owned(), true), "{to}");
    }
    let cached = [net.client.ip(&format!("route get {LISTEN}")), net.client.ip(&format!("-6 route get {LISTEN6}"))];
    assert!(cached[0].contains("mtu 1300"), "{cached:?}");
    assert!(cached[1].contains("mtu 1340"), "{cached:?}");
    lab.down(&net.router, "lan0");
}

/// Datagrams that are longer than the way: fragments are translated, and a sender hears what to cut to, whether it allows fragments or not.
pub fn families_cut_packets(lab: &Lab) {
    let net = network(lab);
    let _echo = Echo::start(&net.server, 8000);
    lab.up(&net.router, "lan0", &lab.policy(&policy(crossing())), &[]);
    for (address, port, source) in CROSSING {
        let to = at(address, port);
        for bytes in [1_452, 5_000, 8_000] {
            let sent: Vec<u8> = (0..bytes).map(|n| (n % 251) as u8).collect();
            let whole = [format!("{source}\n").as_bytes(), &sent].concat();
            // The first fragments may be too long by the header that they get.
            await_that("the datagram comes back", LONG, || {
                datagram(&net.client, to, &sent).is_ok_and(|got| got == whole)
            });
        }
    }
    // The way to the server is narrow: what its sender does not let be cut is refused with the MTU; so is what may be cut, and the sender cuts it.
    for (ns, device) in [(&net.router, "wan0"), (&net.server, "s0")] {
        ns.ip(&format!("link set {device} mtu 1400"));
    }
    let refused = || of(lab, &net, "to6").refused.get("too_big").copied().unwrap_or(0);
    let to = at(CROSSING[0].0, CROSSING[0].1);
    let told = || net.client.ip(&format!("route get {LISTEN}"));
    for (discover, mtu) in [(libc::IP_PMTUDISC_DO, "mtu 1380"), (libc::IP_PMTUDISC_DONT, "mtu 1372")] {
        net.client.ip("route flush cache");
        let before = refused();
        let socket = net.client.inside(|| UdpSocket::bind((CLIENT, 0)).expect("a socket"));
        set_discovery(&socket, discover);
        socket.connect(to).expect("an address");
        socket.set_read_timeout(Some(Duration::from_millis(500))).expect("a time limit");
        socket.send(&[7; 1_420]).expect("sending");
        await_that("the sender hears of the MTU", LONG, || told().contains(mtu));
        assert_eq!(refused(), before + 1, "it is counted");
        // A sender that forbids fragments is told, and sends less; packets of the other sender are cut from then on.
        let allows = discover == libc::IP_PMTUDISC_DONT;
        let heard = socket.take_error().expect("an option of the socket").and_then(|error| error.raw_os_error());
        assert_eq!(heard, (!allows).then_some(libc::EMSGSIZE), "{mtu}");
        let many = if allows { 1_420 } else { 1_352 };
        socket.send(&vec![7; many]).unwrap_or_else(|error| panic!("{mtu}: {error}"));
        let mut answer = [0; 2_000];
        let got = socket.recv(&mut answer).unwrap_or_else(|error| panic!("{mtu}: {error}"));
        assert_eq!(answer[..got], [format!("{INSIDE6}\n").as_bytes(), &vec![7; many]].concat(), "{mtu}");
        assert_eq!(refused(), before + 1, "what fits goes on");
    }
    lab.down(&net.router, "lan0");
}

/// Says whether a socket's packets may be cut into fragments, and whether it heeds what routers say of their length.
fn set_discovery(socket: &UdpSocket, how: libc::c_int) {
    let (level, option) = (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER);
    // SAFETY: the value lives through the call, and its length is told.
    let done = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const how).cast(), size_of_val(&how) as u32)
    };
    assert_eq!(done, 0, "setsockopt: {}", std::io::Error::last_os_error());
}

/// What is not translated is dropped and counted; sockets of this host are not led into the other family; targets on this host are refused.
pub fn families_that_are_not_translated(lab: &Lab) {
    let net = network(lab);
    let _echo = Echo::start(&net.server, 8000);
    lab.up(&net.router, "lan0", &lab.policy(&policy(crossing())), &[]);
    let counted = |name: &str| of(lab, &net, name).refused.get("untranslatable").copied().unwrap_or(0);
    let wire = Wire::open(&net.client, "c0");
    let (src, dst) = (CLIENT.parse().expect("an address"), LISTEN.parse().expect("an address"));
    let mut unsummed = frames::ports(1_024, 90);
    unsummed.extend([0, 8, 0, 0]);
    let mut frame = frames::ethernet(&[], frames::IPV4, &V4 { src, dst, proto: 17, ..V4::default() }.packet(&unsummed));
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0x78, 1]);
    wire.offer(&frame);
    await_that("a datagram without a checksum", LONG, || counted("to6") == 1);
    exchange(&net.router, at(LISTEN, 90), 1).expect_err("sockets of this host are not led into the other family");
    lab.down(&net.router, "lan0");

    let keeps = json!([{ "name": "keeps", "protocol": "tcp", "address": LISTEN, "port": 80, "targets": format!("[{SERVER6}]:80") }]);
    lab.try_up(&net.router, "lan0", &lab.policy(&policy(keeps)), &[]).exits(2).says("goes from IPv4 to IPv6");
    let here = json!([translating("here", LISTEN, 80, &format!("[{INSIDE6}]:80"))]);
    let refused = lab.try_up(&net.router, "lan0", &lab.policy(&policy(here)), &[]);
    refused.exits(2).says("its target fd79::1 is this host's, and of IPv6");
    net.router.sysctl("net/ipv6/conf/all/forwarding", "0");
    let up = lab.up(&net.router, "lan0", &lab.policy(&policy(json!([crossing()[0], four()[0]]))), &[]);
    assert!(up.stdout.contains("note: net.ipv6.conf.all.forwarding is 0"), "{up}");
    let way = json!({ "kind": "disabled", "sysctl": "net.ipv6.conf.all.forwarding" });
    let (to6, keep) = (explained_target(lab, &net, 90), explained_target(lab, &net, 80));
    assert_eq!((&to6["way"], &to6["translated"], &keep["translated"]), (&way, &json!(true), &json!(false)));
    assert_ne!(keep["way"]["kind"], "disabled", "IPv4 goes on");
    lab.down(&net.router, "lan0");
}
