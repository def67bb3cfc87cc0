//! Port forwarding: connections arrive whole and from where they should, errors find their way, changes disturb nobody else.

use crate::command::await_that;
use crate::lab::Lab;
use crate::needs::Need;
use crate::net::{CLIENT, Ns, Routed, SERVER};
use crate::status::Forward;
use crate::suite::Suite;
use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("forward")
        .both("connections_arrive", &[], connections_arrive)
        .any("path_mtu_is_found", &[], path_mtu_is_found)
        .any("hops_are_counted", &[], hops_are_counted)
        .any("changes_disturb_nobody", &[], changes_disturb_nobody)
        .any("a_flood_harms_no_connection", &[], a_flood_harms_no_connection)
        .any("later_fragments_follow", &[], later_fragments_follow)
        .any("vlans", &[Need::Vlan], vlans)
        .any("targets_share", &[], targets_share)
        .any("targets_on_this_host", &[], targets_on_this_host)
        .any("clients_on_this_host", &[], clients_on_this_host)
        .any("an_upgrade_keeps_connections", &[], an_upgrade_keeps_connections)
        .any("other_packets_pass", &[], other_packets_pass)
        .any("refused", &[], refused)
}

/// The router's address on the client's side, and on the server's.
const LISTEN: &str = "10.78.0.1";
const INSIDE: &str = "10.79.0.1";
const CLIENT6: &str = "fd78::2";
const LISTEN6: &str = "fd78::1";
const INSIDE6: &str = "fd79::1";
const SERVER6: &str = "fd79::2";
const LONG: Duration = Duration::from_secs(15);
/// How long a connection may be silent: as long as a test may take.
const IDLE: Duration = Duration::from_secs(600);
const BYTES: usize = 3_000_000;

/// A policy of one class with these forwards.
fn policy(forwards: Value) -> Value {
    json!({ "scheduler": "deficit_round_robin", "classes": [{ "id": 0 }, { "id": 1 }], "default_class": 0, "forwards": forwards })
}

fn forward(name: &str, port: u16, target: &str, source: &str) -> Value {
    json!({ "name": name, "protocol": "both", "port": port, "targets": target, "source": source })
}

/// The four forwards of the tests, of both families and both sources.
fn four() -> Value {
    json!([
        forward("keep", 80, &format!("{SERVER}:8000"), "keep"),
        forward("masquerade", 81, &format!("{SERVER}:8000"), "masquerade"),
        forward("keep6", 82, &format!("[{SERVER6}]:8000"), "keep"),
        forward("masquerade6", 83, &format!("[{SERVER6}]:8000"), "masquerade"),
    ])
}

/// Where a client connects to, and where the server sees it come from.
const ENDS: [(&str, u16, &str); 4] =
    [(LISTEN, 80, CLIENT), (LISTEN, 81, INSIDE), (LISTEN6, 82, CLIENT6), (LISTEN6, 83, INSIDE6)];

fn at(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse().expect("an address"), port)
}

/// A routed network with IPv6 beside IPv4.
fn network(lab: &Lab) -> Routed {
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

/// A server that sends back what it gets, after a line with the address that it comes from. Ends with the value.
struct Echo {
    ends: Arc<AtomicBool>,
    accepted: Arc<AtomicU32>,
    threads: Vec<JoinHandle<()>>,
}

impl Echo {
    fn start(ns: &Ns, port: u16) -> Echo {
        let ends = Arc::new(AtomicBool::new(false));
        let (tcp, udp) = ns.inside(|| {
            let tcp = TcpListener::bind(("::", port)).expect("a TCP port");
            tcp.set_nonblocking(true).expect("a listener that does not wait");
            let udp = UdpSocket::bind(("::", port)).expect("a UDP port");
            udp.set_read_timeout(Some(Duration::from_millis(50))).expect("a time limit");
            (tcp, udp)
        });
        let accepted = Arc::new(AtomicU32::new(0));
        let counts = Arc::clone(&accepted);
        let (of_tcp, of_udp) = (Arc::clone(&ends), Arc::clone(&ends));
        let threads = vec![
            std::thread::spawn(move || {
                while !of_tcp.load(Ordering::Relaxed) {
                    match tcp.accept() {
                        Ok((stream, peer)) => {
                            counts.fetch_add(1, Ordering::Relaxed);
                            drop(std::thread::spawn(move || echo(stream, peer)));
                        }
                        Err(_) => std::thread::sleep(Duration::from_millis(2)),
                    }
                }
            }),
            std::thread::spawn(move || {
                let mut bytes = [0; 9000];
                while !of_udp.load(Ordering::Relaxed) {
                    if let Ok((length, peer)) = udp.recv_from(&mut bytes) {
                        let answer = [line(peer).as_bytes(), &bytes[..length]].concat();
                        let _ = udp.send_to(&answer, peer);
                    }
                }
            }),
        ];
        Echo { ends, accepted, threads }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn line(peer: SocketAddr) -> String {
    format!("{}\n", peer.ip().to_canonical())
}

fn echo(mut stream: TcpStream, peer: SocketAddr) {
    let _ = stream.set_nonblocking(false);
    let _ = stream.set_read_timeout(Some(IDLE));
    let mut all = line(peer).into_bytes();
    if stream.read_to_end(&mut all).is_ok() {
        let _ = stream.write_all(&all);
    }
}

/// Sends so many bytes to an address, and returns what comes back: the line, and whether the rest is what was sent.
fn exchange(ns: &Ns, to: SocketAddr, bytes: usize) -> Result<(String, bool), std::io::Error> {
    ns.inside(|| {
        let mut stream = TcpStream::connect_timeout(&to, LONG)?;
        stream.set_read_timeout(Some(LONG))?;
        stream.set_write_timeout(Some(LONG))?;
        let sent: Vec<u8> = (0..bytes).map(|n| (n ^ n >> 8 ^ n >> 16) as u8).collect();
        stream.write_all(&sent)?;
        stream.shutdown(Shutdown::Write)?;
        let mut all = Vec::new();
        stream.read_to_end(&mut all)?;
        let end = all.iter().position(|&byte| byte == b'\n').ok_or(ErrorKind::UnexpectedEof)?;
        Ok((String::from_utf8_lossy(&all[..end]).into_owned(), all[end + 1..] == sent[..]))
    })
}

/// Sends a datagram; what comes back.
fn datagram(ns: &Ns, to: SocketAddr, bytes: &[u8]) -> Result<Vec<u8>, std::io::Error> {
    ns.inside(|| {
        let any: IpAddr =
            if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { std::net::Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect(to)?;
        socket.set_read_timeout(Some(Duration::from_secs(3)))?;
        socket.send(bytes)?;
        let mut answer = vec![0; 9000];
        let length = socket.recv(&mut answer)?;
        answer.truncate(length);
        Ok(answer)
    })
}

fn of(lab: &Lab, net: &Routed, name: &str) -> Forward {
    let status = lab.status(&net.router, "lan0");
    status.forwards.into_iter().find(|forward| forward.name == name).unwrap_or_else(|| panic!("no forward {name}"))
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
    lab.down(&net.router, "lan0");
}

/// A datagram that may pass so many routers, and what its sender hears of it.
fn with_hops(ns: &Ns, to: SocketAddr, hops: u32) -> Result<Vec<u8>, std::io::Error> {
    use std::os::fd::AsRawFd;
    ns.inside(|| {
        let any: IpAddr =
            if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { std::net::Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((any, 0))?;
        let (level, limit, tells) = if to.is_ipv4() {
            (libc::IPPROTO_IP, libc::IP_TTL, libc::IP_RECVERR)
        } else {
            (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, libc::IPV6_RECVERR)
        };
        for (option, value) in [(limit, hops as libc::c_int), (tells, 1)] {
            // SAFETY: the value lives through the call, and its length is told.
            let done = unsafe {
                libc::setsockopt(
                    socket.as_raw_fd(),
                    level,
                    option,
                    (&raw const value).cast(),
                    size_of_val(&value) as u32,
                )
            };
            assert_eq!(done, 0, "setsockopt: {}", std::io::Error::last_os_error());
        }
        socket.connect(to)?;
        socket.set_read_timeout(Some(Duration::from_secs(3)))?;
        socket.send(b"hops")?;
        let mut answer = vec![0; 100];
        let length = socket.recv(&mut answer)?;
        answer.truncate(length);
        Ok(answer)
    })
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
        let error = with_hops(&net.client, to, 1).expect_err("one hop leads to the router");
        assert_eq!(error.raw_os_error(), Some(libc::EHOSTUNREACH), "{to}: {error}");
        let got = with_hops(&net.client, to, 2).unwrap_or_else(|error| panic!("{to}: {error}"));
        assert_eq!(String::from_utf8_lossy(&got), format!("{source}\nhops"), "{to}");
        let closed = at(address, 90 + n as u16);
        let error = with_hops(&net.client, closed, 64).expect_err("nobody listens there");
        assert_eq!(error.raw_os_error(), Some(libc::ECONNREFUSED), "{closed}: {error}");
        let error = exchange(&net.client, closed, 1).expect_err("nobody listens there");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{closed}: {error}");
    }
    lab.down(&net.router, "lan0");
}

/// A connection that is open, and tried now and then.
struct Open(TcpStream);

impl Open {
    fn to(ns: &Ns, to: SocketAddr) -> Open {
        let stream =
            ns.inside(|| TcpStream::connect_timeout(&to, LONG)).unwrap_or_else(|error| panic!("{to}: {error}"));
        stream.set_read_timeout(Some(LONG)).expect("a time limit");
        Open(stream)
    }

    /// The connection still carries data, both ways: what was sent comes back when it ends.
    fn ends_well(mut self) {
        self.0.write_all(b"still here").expect("sending");
        self.0.shutdown(Shutdown::Write).expect("the end");
        let mut all = String::new();
        self.0.read_to_string(&mut all).expect("the answer");
        assert!(all.ends_with("still here"), "{all}");
    }
}

fn changes_disturb_nobody(lab: &Lab) {
    const CHANGES: u16 = 20;
    /// Between two requests: on one CPU, the changes need their part of it.
    const PAUSE: Duration = Duration::from_millis(1);
    let net = network(lab);
    let (_echo, _other) = (Echo::start(&net.server, 8000), Echo::start(&net.server, 8001));
    let changed = |n: u16| {
        let mut forwards = four();
        let target = format!("{SERVER}:{}", 8000 + n % 2);
        forwards.as_array_mut().expect("a list").push(forward("changes", 90, &target, "keep"));
        lab.policy(&policy(forwards))
    };
    lab.up(&net.router, "lan0", &changed(0), &[]);
    let open = Open::to(&net.client, at(LISTEN, 90));
    let (ends, done, failed) = (AtomicBool::new(false), AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for port in [80, 81, 90] {
            let (net, ends, done, failed) = (&net, &ends, &done, &failed);
            scope.spawn(move || {
                while !ends.load(Ordering::Relaxed) {
                    match exchange(&net.client, at(LISTEN, port), 1_000) {
                        Ok((_, true)) => _ = done.fetch_add(1, Ordering::Relaxed),
                        other => {
                            eprintln!("    port {port}: {other:?}");
                            failed.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    std::thread::sleep(PAUSE);
                }
            });
        }
        for n in 1..=CHANGES {
            lab.sluice(&net.router, &["apply", "lan0", &changed(n)]).ok();
        }
        ends.store(true, Ordering::Relaxed);
    });
    let (done, failed) = (done.into_inner(), failed.into_inner());
    eprintln!("    {done} requests during {CHANGES} changes, {failed} failed");
    assert!(
        done > 100 && failed == 0,
        "{done} requests, {failed} failed: {:?}",
        lab.status(&net.router, "lan0").forwards
    );
    open.ends_well();
    // A forward that is removed keeps its connections, too.
    let open = Open::to(&net.client, at(LISTEN, 90));
    lab.sluice(&net.router, &["apply", "lan0", &lab.policy(&policy(four()))]).ok();
    assert!(exchange(&net.client, at(LISTEN, 90), 1).is_err(), "it takes no new ones");
    open.ends_well();
    // One whose policy says so cuts them.
    let mut cuts = forward("cuts", 90, &format!("{SERVER}:8000"), "keep");
    cuts["open_connections"] = json!("cut");
    lab.sluice(&net.router, &["apply", "lan0", &lab.policy(&policy(json!([cuts])))]).ok();
    let Open(mut open) = Open::to(&net.client, at(LISTEN, 90));
    lab.sluice(&net.router, &["forward", "remove", "lan0", "cuts"]).ok();
    let cut = open.write_all(b"hello").and_then(|()| open.read_to_end(&mut Vec::new()));
    assert_eq!(cut.expect_err("it was cut").kind(), ErrorKind::ConnectionReset);
    // A client that goes on from the same port comes to the forward that takes the place of the old one.
    let socket = net.client.inside(|| UdpSocket::bind((CLIENT, 4_000)).expect("a socket"));
    socket.connect(at(LISTEN, 90)).expect("an address");
    socket.set_read_timeout(Some(Duration::from_millis(200))).expect("a time limit");
    for port in [8000, 8001] {
        let mut cuts = forward("cuts", 90, &format!("{SERVER}:{port}"), "keep");
        cuts["open_connections"] = json!("cut");
        lab.sluice(&net.router, &["apply", "lan0", &lab.policy(&policy(json!([cuts])))]).ok();
        await_that("its datagrams are answered", LONG, || {
            socket.send(b"on and on").is_ok() && socket.recv(&mut [0; 100]).is_ok()
        });
    }
    lab.down(&net.router, "lan0");
}

/// Targets on the forwarding host itself, and `sluice forward`.
fn targets_on_this_host(lab: &Lab) {
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
fn clients_on_this_host(lab: &Lab) {
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

/// Programs are swapped under open connections.
fn an_upgrade_keeps_connections(lab: &Lab) {
    let net = network(lab);
    let _echo = Echo::start(&net.server, 8000);
    lab.up(&net.router, "lan0", &lab.policy(&policy(four())), &[]);
    let open: Vec<Open> = ENDS.map(|(address, port, _)| Open::to(&net.client, at(address, port))).into();
    crate::cases::upgrade::age(&net.router);
    let upgraded = lab.sluice(&net.router, &["upgrade", "lan0"]).ok();
    assert!(!upgraded.stdout.contains("forwards are lost"), "{upgraded}");
    assert_eq!(of(lab, &net, "keep").open, 1, "it is still known");
    open.into_iter().for_each(Open::ends_well);
    for (address, port, source) in ENDS {
        let got = exchange(&net.client, at(address, port), 1_000).expect("a new connection");
        assert_eq!(got, (source.to_owned(), true));
        let got = datagram(&net.router, at(address, port), b"hello").expect("the host itself");
        assert!(got.ends_with(b"hello"));
    }
    lab.down(&net.router, "lan0");
}

/// More half-open connections than the table holds, from addresses that nobody has.
fn a_flood_harms_no_connection(lab: &Lab) {
    use crate::frames::{self, V4, Wire};
    const FLOOD: u32 = 20_000;
    const TABLE: u64 = 4_096;
    let net = network(lab);
    let _echo = Echo::start(&net.server, 8000);
    let mut small = policy(four());
    small["connection_table"] = json!(TABLE);
    lab.up(&net.router, "lan0", &lab.policy(&small), &[]);
    let open = [Open::to(&net.client, at(LISTEN, 80)), Open::to(&net.client, at(LISTEN, 81))];
    let wire = Wire::open(&net.client, "c0");
    for n in 0..FLOOD {
        let src = Ipv4Addr::from(0x0a_40_00_00 + n);
        let mut tcp = frames::ports(1_024 + (n % 50_000) as u16, 80);
        tcp.resize(20, 0);
        tcp[4..8].copy_from_slice(&n.to_be_bytes());
        (tcp[12], tcp[13]) = (0x50, 2);
        let packet = V4 { src, dst: LISTEN.parse().expect("an address"), proto: 6, ..V4::default() }.packet(&tcp);
        let mut frame = frames::ethernet(&[], frames::IPV4, &packet);
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 0x78, 1]);
        wire.offer(&frame);
    }
    let forward = of(lab, &net, "keep");
    eprintln!(
        "    {} of {FLOOD} were opened, {} are open, refused: {:?}",
        forward.opened, forward.open, forward.refused
    );
    assert!(forward.opened > u64::from(FLOOD) * 3 / 4, "the flood came: {forward:?}");
    assert!(forward.open <= TABLE, "the table is bounded: {forward:?}");
    for (address, port, _) in ENDS {
        let to = at(address, port);
        exchange(&net.client, to, 1_000).unwrap_or_else(|error| panic!("new connections find room, {to}: {error}"));
    }
    open.into_iter().for_each(Open::ends_well);
    lab.down(&net.router, "lan0");
}

/// Fragments without their first go nowhere, and are counted; those of packets to the host's own ports are the stack's.
fn later_fragments_follow(lab: &Lab) {
    use crate::frames::{self, V4, Wire};
    let net = network(lab);
    let (_echo, _own) = (Echo::start(&net.server, 8000), Echo::start(&net.router, 7000));
    lab.up(&net.router, "lan0", &lab.policy(&policy(json!([four()[0]]))), &[]);
    let long = vec![7; 5_000];
    for port in [80, 7000] {
        let got = datagram(&net.client, at(LISTEN, port), &long).unwrap_or_else(|error| panic!("{port}: {error}"));
        assert!(got.ends_with(&long), "{port}");
    }
    let wire = Wire::open(&net.client, "c0");
    let (src, dst) = (CLIENT.parse().expect("an address"), LISTEN.parse().expect("an address"));
    for id in 0..10 {
        let packet = V4 { src, dst, id, proto: 17, fragment: 0x2000 | 185, ..V4::default() }.packet(&[0; 100]);
        let mut frame = frames::ethernet(&[], frames::IPV4, &packet);
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 0x78, 1]);
        wire.offer(&frame);
    }
    let forward = of(lab, &net, "keep");
    assert_eq!(forward.refused.get("unknown_fragment"), Some(&10), "{forward:?}");
    // Port 0, which fragments are looked up by, is no port that anything is forwarded from.
    let packet = V4 { src, dst, proto: 17, ..V4::default() }.packet(&frames::ports(1_024, 0));
    let mut frame = frames::ethernet(&[], frames::IPV4, &packet);
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0x78, 1]);
    wire.offer(&frame);
    assert_eq!(of(lab, &net, "keep").opened, forward.opened, "port 0 is not forwarded");
    lab.down(&net.router, "lan0");
}

/// What a tag says is for a VLAN is not for the interface below it; the VLAN's own device forwards. A tag with a priority alone is none.
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

/// What no forward asks for: other ports of the router, its other addresses, and packets that pass through.
fn other_packets_pass(lab: &Lab) {
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
    // A TCP packet that begins no connection gets the answer of a closed port.
    let forwarded = exchange(&net.client, at(LISTEN, 80), 10).expect("a connection");
    assert_eq!(forwarded.0, CLIENT);
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
    lab.sluice(&net.router, &["apply", "lan0", &lab.policy(&lost)]).says("the former policy");
    let got = exchange(&net.client, at(LISTEN, 80), 1_000).expect("the former forwards are there");
    assert_eq!(got, (CLIENT.to_owned(), true));

    // What others have is taken by force alone.
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
