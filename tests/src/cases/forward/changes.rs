//! Changes of forwards, and of the programs, under connections that are open.

use super::network::{ENDS, INSIDE, LISTEN, LONG, SERVER6, at, forward, four, network, of, policy};
use super::peers::{Echo, Open, datagram, exchange};
use crate::command::await_that;
use crate::lab::Lab;
use crate::net::{CLIENT, SERVER};
use serde_json::json;
use std::io::{ErrorKind, Read, Write};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

pub fn changes_disturb_nobody(lab: &Lab) {
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
    // A packet from the target of a cut connection is dropped, and counted.
    let late = net.server.inside(|| UdpSocket::bind((SERVER, 8002)).expect("a socket"));
    late.set_read_timeout(Some(Duration::from_millis(200))).expect("a time limit");
    let mut cuts = forward("cuts", 90, &format!("{SERVER}:8002"), "keep");
    cuts["open_connections"] = json!("cut");
    lab.sluice(&net.router, &["apply", "lan0", &lab.policy(&policy(json!([cuts])))]).ok();
    await_that("a question comes", LONG, || socket.send(b"a question").is_ok() && late.recv(&mut [0; 100]).is_ok());
    let client = (CLIENT, 4_000);
    cuts["targets"] = json!(format!("{SERVER}:8000"));
    lab.sluice(&net.router, &["apply", "lan0", &lab.policy(&policy(json!([cuts])))]).ok();
    late.send_to(b"too late", client).expect("sending");
    await_that("the late answer is counted", LONG, || of(lab, &net, "cuts").refused.get("cut") == Some(&1));
    lab.down(&net.router, "lan0");
}

/// Programs are swapped under open connections.
pub fn an_upgrade_keeps_connections(lab: &Lab) {
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

/// Where no forward leads any more, answers of open connections are rewritten still.
pub fn answers_come_after_a_change(lab: &Lab) {
    let net = network(lab);
    let (_echo, _own) = (Echo::start(&net.server, 8000), Echo::start(&net.router, 8000));
    let web = |target: &str, source: &str| lab.policy(&policy(json!([forward("web", 80, target, source)])));
    for source in ["keep", "masquerade"] {
        lab.up(&net.router, "lan0", &web(&format!("{SERVER}:8000"), source), &[]);
        let open = Open::to(&net.client, at(LISTEN, 80));
        lab.sluice(&net.router, &["apply", "lan0", &web(&format!("{INSIDE}:8000"), source)]).ok();
        let here = exchange(&net.client, at(LISTEN, 80), 1_000).expect("a connection to the router itself");
        assert_eq!(here, (CLIENT.to_owned(), true), "the router's own sockets see their clients");
        open.ends_well();
        // It has ended: the next change finds none that is open.
        lab.sluice(&net.router, &["apply", "lan0", &web(&format!("{SERVER}:8001"), source)]).ok();
        assert_eq!(of(lab, &net, "web").opened, 2, "counts are handed on");
        lab.down(&net.router, "lan0");
    }
}

/// A way is remembered for a moment only: the new address of a neighbour is heard of under open connections.
pub fn a_new_neighbour_is_heard_of(lab: &Lab) {
    const MAC: &str = "02:00:00:00:79:99";
    const MOMENT: Duration = Duration::from_millis(100);
    let net = network(lab);
    let _echo = Echo::start(&net.server, 8000);
    // A short cut into the peer of a veth does not ask whether the address is the peer's.
    net.router.tc("qdisc add dev wan0 root pfifo");
    lab.up(&net.router, "lan0", &lab.policy(&policy(four())), &[]);
    let open: Vec<Open> = ENDS.map(|(address, port, _)| Open::to(&net.client, at(address, port))).into();
    let sockets = net.client.inside(|| {
        ENDS.map(|(address, port, _)| {
            let any = if address == LISTEN { "0.0.0.0:0" } else { "[::]:0" };
            let socket = UdpSocket::bind(any).expect("a socket");
            socket.connect(at(address, port)).expect("an address");
            socket.set_read_timeout(Some(Duration::from_secs(3))).expect("a time limit");
            socket
        })
    });
    let answered = |socket: &UdpSocket| socket.send(b"hello").is_ok() && socket.recv(&mut [0; 100]).is_ok();
    // The state of a connection stays the same from the second on.
    assert!(sockets.iter().all(|socket| (0..4).all(|_| answered(socket))), "before");
    net.server.ip(&format!("link set s0 address {MAC}"));
    for server in [SERVER, SERVER6] {
        net.router.ip(&format!("neigh replace {server} dev wan0 lladdr {MAC} nud permanent"));
    }
    std::thread::sleep(MOMENT);
    assert!(sockets.iter().all(answered), "after");
    open.into_iter().for_each(Open::ends_well);
    for (address, port, source) in ENDS {
        let got = exchange(&net.client, at(address, port), 1_000).expect("a new connection");
        assert_eq!(got, (source.to_owned(), true));
    }
    lab.down(&net.router, "lan0");
}

/// The old target gets nothing after the change, though its client never pauses. One datagram is refused where connections are cut.
pub fn a_cut_meets_clients_that_never_pause(lab: &Lab) {
    const CHANGES: usize = 6;
    const PAUSE: Duration = Duration::from_millis(1);
    let net = network(lab);
    let servers = net.server.inside(|| [8000, 8001].map(|port| UdpSocket::bind((SERVER, port)).expect("a UDP port")));
    for server in &servers {
        server.set_nonblocking(true).expect("a socket that does not wait");
    }
    // Takes all that there is.
    let has_come = |server: &UdpSocket| {
        let mut bytes = [0; 100];
        std::iter::from_fn(|| server.recv(&mut bytes).ok().map(|length| bytes[..length] == *b"after"))
            .fold(false, |any, after| any | after)
    };
    let leads_to = |n: usize| {
        let mut cuts = forward("cuts", 90, &format!("{SERVER}:{}", 8000 + n % 2), "keep");
        cuts["open_connections"] = json!("cut");
        lab.policy(&policy(json!([cuts])))
    };
    lab.up(&net.router, "lan0", &leads_to(0), &[]);
    let client = net.client.inside(|| UdpSocket::bind((CLIENT, 4_000)).expect("a socket"));
    client.connect(at(LISTEN, 90)).expect("an address");
    for n in 1..=CHANGES {
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    let _ = client.send(b"before");
                    servers.iter().for_each(|server| _ = has_come(server));
                    std::thread::sleep(PAUSE);
                }
            });
            lab.sluice(&net.router, &["apply", "lan0", &leads_to(n)]).ok();
            ends.store(true, Ordering::Relaxed);
        });
        for _ in 0..5 {
            let _ = client.send(b"after");
            std::thread::sleep(PAUSE);
        }
        await_that("the new target gets it", LONG, || has_come(&servers[n % 2]));
        assert!(!has_come(&servers[(n + 1) % 2]), "change {n}: the old one does not");
    }
    lab.down(&net.router, "lan0");
}

/// The interface by which targets answer goes up and down under open connections.
pub fn others_go_up_and_down(lab: &Lab) {
    let net = network(lab);
    let _echo = Echo::start(&net.server, 8000);
    lab.up(&net.router, "lan0", &lab.policy(&policy(four())), &[]);
    let open: Vec<Open> = ENDS.iter().map(|(address, port, _)| Open::to(&net.client, at(address, *port))).collect();
    let ends = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&ends);
    // Data goes on meanwhile: an answer that meets no hook would be the end of its connection.
    let busy = std::thread::spawn(move || {
        let mut open = open;
        while !stop.load(Ordering::Relaxed) {
            open.iter_mut().for_each(|one| one.0.write_all(b"more").expect("sending"));
            std::thread::sleep(Duration::from_millis(1));
        }
        open
    });
    for more in [&["--rate", "200mbit"][..], &["--ingress-rate", "200mbit"], &[]] {
        lab.up(&net.router, "wan0", &lab.policy(&policy(json!([]))), more);
        std::thread::sleep(Duration::from_millis(200));
        lab.down(&net.router, "wan0");
        std::thread::sleep(Duration::from_millis(200));
    }
    ends.store(true, Ordering::Relaxed);
    for one in busy.join().expect("all went on") {
        one.ends_well();
    }
    lab.down(&net.router, "lan0");
}
