//! Interfaces without Ethernet headers: forwards that listen there, and targets behind them.

use super::network::{BYTES, LISTEN, LONG, at, forward, network, of, policy};
use super::peers::{Echo, exchange};
use crate::command::await_that;
use crate::frames::{V4, ports};
use crate::lab::Lab;
use crate::net::{CLIENT, Routed, SERVER, open_tun};
use serde_json::json;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// The router's address on the tun interface, and the host behind it.
const HERE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const BEHIND: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const PORT: u16 = 5_000;

/// The host behind a tun interface of the router.
fn host_behind(net: &Routed) -> File {
    let tun = net.router.inside(|| open_tun("t0", libc::IFF_TUN));
    // SAFETY: the descriptor is open; the flag concerns nobody else.
    assert_eq!(unsafe { libc::fcntl(tun.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) }, 0);
    net.router.sysctl("net/ipv6/conf/t0/disable_ipv6", "1");
    net.router.ip(&format!("addr add {HERE}/24 dev t0"));
    net.router.ip("link set t0 up");
    net.router.sysctl("net/ipv4/conf/t0/forwarding", "1");
    tun
}

/// The next packet of UDP that comes to the host.
fn next(mut tun: &File) -> Vec<u8> {
    let mut packet = Vec::new();
    await_that("a packet by the tun interface", LONG, || {
        let mut bytes = vec![0; 2_000];
        let read = tun.read(&mut bytes).unwrap_or(0);
        packet = bytes[..read].to_vec();
        read > 28 && packet[9] == 17
    });
    packet
}

fn address(bytes: &[u8]) -> Ipv4Addr {
    Ipv4Addr::from(<[u8; 4]>::try_from(&bytes[..4]).expect("four bytes"))
}

/// From a tun interface to Ethernet and back, and the other way round.
pub fn interfaces_without_ethernet(lab: &Lab) {
    let net = network(lab);
    let _echo = Echo::start(&net.server, 8000);
    let mut tun = host_behind(&net);
    let from_tun = json!([forward("out", 80, &format!("{SERVER}:8000"), "keep")]);
    lab.up(&net.router, "t0", &lab.policy(&policy(from_tun)), &[]);
    tun.write_all(&V4 { src: BEHIND, dst: HERE, ..V4::default() }.packet(&ports(PORT, 80))).expect("sending");
    let answer = next(&tun);
    assert_eq!((address(&answer[12..]), address(&answer[16..])), (HERE, BEHIND), "{answer:?}");
    assert_eq!(answer[20..24], ports(80, PORT)[..4], "{answer:?}");
    assert_eq!(&answer[28..], [b"10.77.0.2\n", &ports(PORT, 80)[8..]].concat());

    let to_tun = json!([
        forward("in", 81, &format!("{BEHIND}:9000"), "keep"),
        forward("web", 82, &format!("{SERVER}:8000"), "keep")
    ]);
    lab.up(&net.router, "lan0", &lab.policy(&policy(to_tun)), &[]);
    let client = net.client.inside(|| UdpSocket::bind((CLIENT, PORT)).expect("a socket"));
    client.set_read_timeout(Some(Duration::from_secs(3))).expect("a time limit");
    client.connect(at(LISTEN, 81)).expect("an address");
    client.send(b"hello tun").expect("sending");
    let came = next(&tun);
    let sender = CLIENT.parse().expect("an address");
    assert_eq!((address(&came[12..]), address(&came[16..])), (sender, BEHIND), "{came:?}");
    assert_eq!((&came[20..24], &came[28..]), (&ports(PORT, 9000)[..4], &b"hello tun"[..]), "{came:?}");
    tun.write_all(&V4 { src: BEHIND, dst: sender, ..V4::default() }.packet(&ports(9000, PORT))).expect("answering");
    let mut answer = [0; 100];
    assert_eq!(client.recv(&mut answer).expect("the answer, as from where the client sent to"), 20);
    assert_eq!(of(lab, &net, "in").from_targets.pkts, 1);
    exchange(&net.client, at(LISTEN, 82), BYTES).expect("Ethernet to Ethernet goes on");
    lab.down(&net.router, "lan0");
    lab.down(&net.router, "t0");
}
