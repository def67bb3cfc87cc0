//! Removed parts of a managed interface: the line keeps working, commands report the missing part, and `sluice ensure` restores
//! it.

use crate::cases::lifecycle::passes;
use crate::command::await_that;
use crate::lab::Lab;
use crate::needs::Need;
use crate::net::{A, B, Pair};
use crate::policy::{port, three};
use crate::suite::Suite;
use crate::traffic::{self, Flow};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// Packets that each processor may lose until it bypasses a dead queue.
const MAX_LOST: u64 = 8;
/// Time limit of each step.
const LONG: Duration = Duration::from_secs(20);

pub fn suite() -> Suite {
    Suite::new("healing").both("the_queue_of_arrivals", &[Need::Ifb], the_queue_of_arrivals).both(
        "the_splitter",
        &[Need::Ifb],
        the_splitter,
    )
}

/// Tests that are the same on any kernel.
pub fn commands() -> Suite {
    Suite::new("healing").alike_everywhere().any("hooks_and_roots", &[], hooks_and_roots).qdisc(
        "a_child_of_mq",
        &[],
        a_child_of_mq,
    )
}

/// Asserts that every reading command reports `what` as missing.
#[track_caller]
fn reports_missing(lab: &Lab, pair: &Pair, what: &str) {
    let status = lab.sluice(&pair.a, &["status", "a0"]).ok().stdout;
    assert!(status.contains("NOT all is in place") && status.contains(what), "{what}: {status}");
    let json = lab.sluice(&pair.a, &["status", "a0", "--json"]).ok().stdout;
    assert!(json.contains("\"in_place\": false") && json.contains(what), "{what}: {json}");
    let once = lab.sluice(&pair.a, &["top", "a0", "--once"]).ok().stdout;
    assert!(once.contains("not all of it is in place"), "{once}");
}

/// Asserts that `ensure` reports the repair of `what`, and that nothing is missing afterwards.
#[track_caller]
fn is_repaired(lab: &Lab, pair: &Pair, what: &str) {
    let printed = lab.sluice(&pair.a, &["ensure"]).ok().stdout;
    assert!(printed.contains(&format!("a0: {what}")) && printed.contains("it is back"), "{printed}");
    let printed = lab.sluice(&pair.a, &["ensure", "a0"]).ok().stdout;
    assert_eq!(printed, "a0: everything is in place\n");
    let status = lab.sluice(&pair.a, &["status", "a0"]).ok().stdout;
    assert!(!status.contains("NOT"), "{status}");
    passes(pair);
}

/// The number of packets, of at least `count`, that do not reach a0.
fn lost(pair: &Pair, count: u64) -> u64 {
    let streams = traffic::start(&pair.b, &pair.a, A, &[Flow::new(port(1), &[200], 1_000_000)]);
    await_that("packets are sent", LONG, || streams.so_far().0 >= count);
    let outcome = streams.finish_lossy().remove(0);
    eprintln!("    {} of {} packets arrived", outcome.received(), outcome.sent);
    outcome.sent - outcome.received()
}

fn the_queue_of_arrivals(lab: &Lab) {
    let pair = lab.pair();
    let before = pair.a.state("a0");
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit", "--ingress-rate", "20mbit"]);
    let device = format!("sluice-in{}", pair.a.ifindex("a0"));
    assert_eq!(lost(&pair, 100), 0);
    let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    for (break_it, what) in [("link set DEV down", "is down"), ("link del DEV", "was deleted")] {
        pair.a.ip(&break_it.replace("DEV", &device));
        let count = lost(&pair, 100);
        assert!(count <= MAX_LOST * processors, "{count} packets are lost where the device {what}");
        reports_missing(lab, &pair, &format!("the device {device} {what}"));
        let doctor = lab.sluice(&pair.a, &["doctor"]).ok().stdout;
        assert!(doctor.contains(&format!("the device {device} {what}")), "{doctor}");
        is_repaired(lab, &pair, &format!("the device {device} {what}"));
        let queued = || lab.status(&pair.a, "a0").ingress(1).sent.pkts;
        let start = queued();
        assert_eq!(lost(&pair, 100), 0);
        assert!(queued() >= start + 100, "arrivals are queued again");
    }
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.state("a0"), before);
}

/// Whether a connection through a0 works both ways: what it sends goes through the splitter.
fn connects(pair: &Pair) -> bool {
    let limit = Duration::from_secs(10);
    let listener = pair.b.inside(|| TcpListener::bind((B, 7000)).expect("listening"));
    std::thread::scope(|scope| {
        let server = scope.spawn(move || {
            let (mut stream, _) = listener.accept()?;
            stream.set_read_timeout(Some(limit))?;
            let mut all = Vec::new();
            stream.read_to_end(&mut all).map(|_| all.len())
        });
        let sent = pair.a.inside(|| {
            let mut stream = TcpStream::connect_timeout(&format!("{B}:7000").parse().expect("an address"), limit)?;
            stream.set_write_timeout(Some(limit))?;
            stream.write_all(&[7; 200_000])
        });
        if sent.is_err() {
            // A connection from here ends the server's wait.
            let _ = pair.b.inside(|| TcpStream::connect((B, 7000)));
        }
        let received = server.join().expect("a server");
        sent.is_ok() && received.is_ok_and(|bytes| bytes == 200_000)
    })
}

fn the_splitter(lab: &Lab) {
    let pair = lab.pair();
    let before = pair.a.state("a0");
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit"]);
    let device = format!("sluice-sp{}", pair.a.ifindex("a0"));
    assert!(connects(&pair));
    for (break_it, what) in [("link set DEV down", "is down"), ("link del DEV", "was deleted")] {
        pair.a.ip(&break_it.replace("DEV", &device));
        assert!(connects(&pair), "no connection where the device {what}");
        reports_missing(lab, &pair, &format!("the device {device} {what}"));
        is_repaired(lab, &pair, &format!("the device {device} {what}"));
        assert!(connects(&pair));
    }
    pair.a.tc("filter del dev a0 egress pref 65000");
    reports_missing(lab, &pair, "nothing sends super-packets through the splitter");
    is_repaired(lab, &pair, "nothing sends super-packets through the splitter");
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.state("a0"), before);
}

fn hooks_and_roots(lab: &Lab) {
    let pair = lab.pair();
    let before = pair.a.state("a0");
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit"]);
    let pins = crate::lab::traces(pair.a.inode).into_iter().find(|path| path.join("tables").exists()).expect("pins");
    let link = pins.join("link_ingress");
    if link.exists() {
        std::fs::remove_file(&link).expect("unpinning");
    } else {
        pair.a.tc("filter del dev a0 ingress pref 65000");
    }
    await_that("the kernel has detached it", LONG, || {
        lab.sluice(&pair.a, &["status", "a0"]).ok().stdout.contains("the hook that classifies arriving packets is gone")
    });
    reports_missing(lab, &pair, "the hook that classifies arriving packets is gone");
    is_repaired(lab, &pair, "the hook that classifies arriving packets is gone");
    pair.a.tc("qdisc del dev a0 root");
    reports_missing(lab, &pair, "the root qdisc of a0 is");
    is_repaired(lab, &pair, "the root qdisc of a0 is");
    // A handmade qdisc may be intended.
    pair.a.tc("qdisc replace dev a0 root handle 7: pfifo");
    lab.sluice(&pair.a, &["ensure", "a0"]).exits(2).says("pfifo 7:, made by hand").says("sluice down a0");
    assert_eq!(pair.a.root("a0").map(|root| root.kind), Some("pfifo".to_owned()));
    pair.a.tc("qdisc del dev a0 root");
    lab.sluice(&pair.a, &["ensure"]).ok();
    lab.sluice(&pair.a, &["ensure", "nope0"]).exits(2).says("no interface `nope0`");
    lab.sluice(&pair.b, &["ensure", "b0"]).exits(2).says("not managed");
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.state("a0"), before);
}

fn a_child_of_mq(lab: &Lab) {
    let pair = lab.pair_with("numtxqueues 4 numrxqueues 4");
    let before = pair.a.state("a0");
    lab.up(&pair.a, "a0", &lab.policy(&three()), &[]);
    pair.a.tc("qdisc replace dev a0 parent 5100:2 pfifo");
    reports_missing(lab, &pair, "the scheduler of queue 2 of mq was replaced");
    is_repaired(lab, &pair, "the scheduler of queue 2 of mq was replaced");
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.state("a0"), before);
}
