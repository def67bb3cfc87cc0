//! Captures that take packets from the host: all of them are in the file, none reaches the host, and the host has its packets again afterwards.

use super::{capture, comment, frame, output, read};
use crate::command::await_that;
use crate::foreign::{Hook, Program, Verdict};
use crate::frames::Wire;
use crate::lab::Lab;
use crate::net::{A, B, Ns, Pair};
use crate::policy::by_port;
use crate::terminal::Terminal;
use nix::sys::signal::Signal;
use serde_json::json;
use std::net::UdpSocket;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);

/// A socket of `b` that tells which packets have reached the host.
struct Host(UdpSocket);

impl Host {
    fn new(pair: &Pair) -> Host {
        let socket = pair.b.inside(|| UdpSocket::bind((B, 7)).expect("a socket"));
        socket.set_nonblocking(true).expect("not to wait");
        Host(socket)
    }

    /// Source ports of the datagrams that have come, once there are so many from port 4001.
    fn ports(&self, of_others: usize) -> Vec<u16> {
        let mut ports = Vec::new();
        await_that("packets that do not match reach the host", LONG, || {
            while let Ok((_, from)) = self.0.recv_from(&mut [0; 64]) {
                ports.push(from.port());
            }
            ports.iter().filter(|port| **port == 4001).count() >= of_others
        });
        ports
    }
}

/// Sends datagrams from this port, with their numbers.
fn send(pair: &Pair, port: u16, count: u32) {
    let socket = pair.a.inside(|| UdpSocket::bind((A, port)).expect("a socket"));
    for n in 0..count {
        socket.send_to(&n.to_be_bytes(), (B, 7)).expect("sending");
    }
}

/// The state of b0. The kernel says a moment after a veth was made that it is up.
fn state(pair: &Pair) -> String {
    await_that("b0 is up", LONG, || pair.b.ip("-d link show b0").contains("state UP"));
    pair.b.state("b0")
}

fn has_xdp(ns: &Ns) -> bool {
    ns.ip("-d link show b0").contains("xdp")
}

pub fn takes_what_matches(lab: &Lab) {
    let pair = lab.pair();
    let (file, host) = (output(lab), Host::new(&pair));
    let before = state(&pair);
    let more = ["--steal", "--yes", "--only", "udp sport 4000"];
    let said = capture(lab, &pair, &file, &more, || {
        assert!(has_xdp(&pair.b));
        send(&pair, 4000, 300);
        // A veth with XDP may give each packet a page, and a socket has room for some fifty.
        send(&pair, 4001, 30);
        assert_eq!(host.ports(30), vec![4001; 30], "packets that match do not reach the host");
    });
    assert!(said.contains("taking packets of b0 from the host: native XDP, by copy, 1 queue"), "{said}");
    assert!(said.contains("300 were taken from the host; 0 of these are lost"), "{said}");
    let seen = read(&file);
    assert_eq!((seen.packets.len(), seen.received, seen.missing), (300, 300, 0));
    let mut last = Duration::ZERO;
    for (n, packet) in (0u32..).zip(&seen.packets) {
        // Ethernet, IPv4 and UDP have 42 bytes.
        assert_eq!((packet.original_len, &packet.data[42..46]), (46, &n.to_be_bytes()[..]));
        assert_eq!(comment(packet), "arriving | no class | no policy | taken from the host");
        assert!(packet.timestamp >= last, "times go on");
        last = packet.timestamp;
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let age = now.saturating_sub(last);
    assert!(last <= now && age < Duration::from_secs(60), "the last packet is {age:?} old");
    assert_eq!(state(&pair), before);
    send(&pair, 4001, 10);
    assert_eq!(host.ports(10), vec![4001; 10]);
}

/// Snap length, sampling, a number of packets, and files that rotate: as by copy.
pub fn serves_every_queue(lab: &Lab) {
    let pair = lab.pair_with("numrxqueues 4 numtxqueues 4");
    let (file, host) = (output(lab), Host::new(&pair));
    let said = capture(lab, &pair, &file, &["--steal", "--yes", "--only", "udp dport 7", "--snap", "50"], || {
        // Flows are spread over queues by a hash.
        (0..64).for_each(|n| send(&pair, 5000 + n, 20));
    });
    assert!(said.contains("4 queues"), "{said}");
    assert!(said.contains("1280 were taken from the host; 0 of these are lost"), "{said}");
    assert!(said.contains("0 are cut"), "{said}");
    assert_eq!(host.ports(0), Vec::<u16>::new());
    let mut seen = [0; 64];
    for packet in read(&file).packets {
        seen[usize::from(u16::from_be_bytes([packet.data[34], packet.data[35]])) - 5000] += 1;
    }
    assert_eq!(seen, [20; 64]);
    let wire = Wire::open(&pair.a, "a0");
    let more = ["--steal", "--yes", "--force", "--only", "udp sport 4000"];
    let cut = capture(lab, &pair, &file, &[&more, &["--snap", "100"][..]].concat(), || wire.send(&frame(0, 1514)));
    assert!(cut.contains("1 are cut"), "{cut}");
    let seen = read(&file);
    assert_eq!((seen.packets[0].data.as_ref(), seen.packets[0].original_len), (&frame(0, 1514)[..100], 1514));
    capture(lab, &pair, &file, &[&more, &["--rotate", "20K", "--files", "2"][..]].concat(), || {
        (0..60).for_each(|n| wire.send(&frame(n, 1000)));
    });
    let there: Vec<u32> = (1..10).filter(|n| file.with_file_name(format!("x-{n}.pcapng")).exists()).collect();
    assert_eq!(there, [3, 4], "60 packets are four files, of which the last two are kept");
    let path = file.display().to_string();
    let some = lab.start(&pair.b, &[&["capture", "b0", "-o", &path, "--packets", "5"], &more[..]].concat());
    some.await_stderr("Ctrl-C ends");
    (0..20).for_each(|n| wire.send(&frame(n, 100)));
    some.finish().ok();
    let seen = read(&file);
    assert_eq!(seen.packets.len(), 5);
    assert_eq!(seen.received, 5 + seen.missing, "packets behind the last one are told of");
    let sampled = capture(lab, &pair, &file, &[&more, &["--one-in", "10"][..]].concat(), || {
        (0..1000).for_each(|n| wire.send(&frame(n, 100)));
    });
    assert!(sampled.contains("stayed with the host"), "{sampled}");
    let seen = read(&file);
    assert!((30..300).contains(&seen.packets.len()), "{} of 1,000 are one in 10", seen.packets.len());
    assert!(comment(&seen.packets[0]).contains("stands for 10 packets"));
}

/// A device whose driver has no XDP: a bridge, which has packets of its port.
pub fn in_the_stack(lab: &Lab) {
    let pair = lab.pair();
    let file = output(lab);
    pair.b.ip("link add br0 type bridge");
    pair.b.ip("link set b0 master br0");
    pair.b.ip("link set br0 up");
    await_that("the port of the bridge forwards", Duration::from_secs(10), || {
        pair.b.ip("-details link show dev b0").contains("state forwarding")
    });
    let path = file.display().to_string();
    let more = ["--steal", "--yes", "--only", "udp sport 4000"];
    let capturing = lab.start(&pair.b, &[&["capture", "br0", "-o", &path], &more[..]].concat());
    capturing.await_stderr("Ctrl-C ends");
    let wire = Wire::open(&pair.a, "a0");
    let mut broadcast = frame(0, 200);
    broadcast[..6].fill(0xff);
    (0..50).for_each(|_| wire.send(&broadcast));
    capturing.signal(Signal::SIGTERM);
    let said = capturing.finish().ok().stderr;
    assert!(said.contains("generic XDP, since the driver has none, by copy, 1 queue"), "{said}");
    let seen = read(&file);
    assert_eq!((seen.packets.len(), seen.received, seen.missing), (50, 50, 0));
    assert!(seen.packets.iter().all(|packet| packet.data.as_ref() == broadcast));
    pair.b.ip("link del br0");
}

pub fn asks_first(lab: &Lab) {
    let pair = lab.pair();
    let file = output(lab);
    let path = file.display().to_string();
    let before = state(&pair);
    let arguments = ["capture", "b0", "--steal", "-o", &path, "--packets", "1"];
    let nobody =
        lab.sluice(&pair.b, &arguments).exits(2).says("every packet that arrives at b0 is taken from the host");
    nobody.says("confirm with --yes");
    lab.sluice(&pair.b, &["capture", "b0", "--yes", "-o", &path]).exits(2);
    let ask = |question: &str, keys: &str| {
        let mut terminal = Terminal::start(&mut lab.command(&pair.b, &arguments), 100, 24);
        terminal.shows(question);
        terminal.press(keys);
        terminal
    };
    let refuse = |question: &str, keys: &str| {
        let ended = ask(question, keys).finish();
        assert_eq!(ended.output.code, Some(2));
        assert!(ended.screen.screen().contents().contains("nothing was changed"));
        assert!(!file.exists() && state(&pair) == before, "nothing was changed");
    };
    let agree = |question: &str, keys: &str| {
        let terminal = ask(question, keys);
        terminal.shows("Ctrl-C ends");
        send(&pair, 4000, 5);
        assert_eq!(terminal.finish().output.code, Some(0));
        assert_eq!(read(&file).packets.len(), 1);
        std::fs::remove_file(&file).expect("the file");
    };
    refuse("Continue? [y/N]", "\n");
    refuse("Continue? [y/N]", "n\n");
    agree("Continue? [y/N]", "y\n");
    pair.b.ip(&format!("route add default via {A}"));
    let unattended = [&arguments[..], &["--yes"]].concat();
    lab.sluice(&pair.b, &unattended).exits(2).says("carries the default route").says("its name must be typed");
    refuse("Type b0 to continue", "y\n");
    agree("Type b0 to continue", "b0\n");
}

pub fn is_refused(lab: &Lab) {
    let pair = lab.pair();
    let file = output(lab);
    let path = file.display().to_string();
    let refused = |interface: &str, more: &[&str], says: &str| {
        let before = state(&pair);
        let arguments = [&["capture", interface, "--steal", "--yes", "-o", &path], more].concat();
        lab.sluice(&pair.b, &arguments).exits(2).says(says).says("help: ");
        assert!(!file.exists() && state(&pair) == before, "nothing was changed");
    };
    refused("b0", &["--hook", "tc"], "works at XDP");
    refused("b0", &["--adaptive"], "--adaptive");
    refused("b0", &["--departing"], "arriving packets");
    refused("b0", &["--both"], "arriving packets");
    refused("b0", &["--ring", "5000"], "power of two");
    refused("b0", &["--snap", "0"], "--snap");
    refused("lo", &[], "lo carries");
    refused("x9", &[], "there is no interface");
    let (mut own, mut shown) = (0, String::new());
    for line in std::fs::read_to_string("/proc/meminfo").expect("memory").lines() {
        if let Some(rest) = line.strip_prefix("MemAvailable:") {
            own = rest.split_whitespace().next().expect("a number").parse::<u64>().expect("a number") << 10;
            shown = line.to_owned();
        }
    }
    assert!(own > 0, "{shown}");
    if own < 2 << 30 {
        refused("b0", &["--ring", "1G"], "locked memory");
    }
    pair.b.ip("link set b0 mtu 9000");
    refused("b0", &[], "a frame of AF_XDP holds 3840");
    pair.b.ip("link set b0 mtu 1500");
    let foreign = Program::new(Hook::Xdp, Verdict::Pass);
    let attached = foreign.attach(&pair.b, "b0");
    refused("b0", &[], "an XDP program already");
    drop(attached);
    let classes = json!([{ "id": 0, "name": "all", "priority": 0 }]);
    lab.up(&pair.b, "b0", &lab.policy(&by_port("strict_priority", classes)), &[]);
    refused("b0", &[], "b0 is managed by sluice");
    lab.down(&pair.b, "b0");
    let one = lab.start(&pair.b, &["capture", "b0", "--steal", "--yes", "-o", "/dev/null", "--force"]);
    one.await_stderr("Ctrl-C ends");
    refused("b0", &[], "perhaps of another capture");
    one.signal(Signal::SIGINT);
    one.finish().ok();
}

/// Whatever ends the process, the host has its packets again.
pub fn ends_with_its_process(lab: &Lab) {
    let pair = lab.pair();
    let host = Host::new(&pair);
    let before = state(&pair);
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGKILL] {
        let arguments = ["capture", "b0", "--steal", "--yes", "-o", "/dev/null", "--force"];
        let capturing = lab.start(&pair.b, &arguments);
        capturing.await_stderr("Ctrl-C ends");
        send(&pair, 4001, 20);
        capturing.signal(signal);
        let output = capturing.finish();
        match signal {
            Signal::SIGKILL => assert_eq!(output.signal, Some(9)),
            _ => drop(output.ok().says("20 were taken from the host; 0 of these are lost")),
        }
        // The kernel frees what a process has left a moment later.
        await_that("no program remains", LONG, || !has_xdp(&pair.b));
        assert_eq!(host.ports(0), Vec::<u16>::new());
        send(&pair, 4001, 20);
        assert_eq!(host.ports(20), vec![4001; 20]);
        assert_eq!(state(&pair), before);
    }
}

/// Memory for two packets, and a reader that does not run: every packet is in the file or counted as missing.
pub fn counts_an_overload(lab: &Lab) {
    let pair = lab.pair();
    let file = output(lab);
    let wire = Wire::open(&pair.a, "a0");
    let path = file.display().to_string();
    let more = ["--steal", "--yes", "--ring", "4K", "--only", "udp sport 4000"];
    let capturing = lab.start(&pair.b, &[&["capture", "b0", "-o", &path], &more[..]].concat());
    capturing.await_stderr("Ctrl-C ends");
    capturing.signal(Signal::SIGSTOP);
    (0..500).for_each(|n| wire.send(&frame(n, 100)));
    capturing.signal(Signal::SIGCONT);
    capturing.signal(Signal::SIGINT);
    let said = capturing.finish().ok().stderr;
    let seen = read(&file);
    assert_eq!(seen.received, 500);
    assert!(seen.missing > 400, "two frames have no room for 500 packets, and {} are missing", seen.missing);
    assert_eq!(seen.packets.len() as u64 + seen.missing, 500, "every packet is told of");
    assert!(said.contains(&format!("500 were taken from the host; {} of these are lost", seen.missing)), "{said}");
    let counted = format!("rx_dropped {}, rx_ring_full 0", seen.missing);
    assert!(said.contains(&counted), "the kernel counts as many: {said}");
}

/// An interface that goes away, and a full disk.
pub fn ends(lab: &Lab) {
    let pair = lab.pair();
    let file = output(lab);
    let wire = Wire::open(&pair.a, "a0");
    let more = ["--steal", "--yes", "--only", "udp sport 4000"];
    let full = [&["capture", "b0", "-o", "/dev/full", "--force"], &more[..]].concat();
    lab.sluice(&pair.b, &full).exits(1).says("No space left on device");
    assert!(!has_xdp(&pair.b));
    let path = file.display().to_string();
    let capturing = lab.start(&pair.b, &[&["capture", "b0", "-o", &path], &more[..]].concat());
    capturing.await_stderr("Ctrl-C ends");
    (0..30).for_each(|n| wire.send(&frame(n, 100)));
    pair.a.ip("link del a0");
    capturing.finish().exits(1).says("b0 was removed");
    let seen = read(&file);
    assert_eq!((seen.packets.len(), seen.received, seen.missing), (30, 30, 0));
}
