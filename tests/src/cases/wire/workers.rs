//! Several receive queues and workers, which share one rate.

use super::{FAR, LONG, Middle, end, middle_with};
use crate::cases::assert_near;
use crate::command::await_that;
use crate::foreign::{Hook, Program, Verdict};
use crate::lab::{Lab, traces};
use crate::many_queues::{RUN, SETTLE, classes_by_port, port, together};
use crate::needs::is_icount;
use crate::net::Ns;
use crate::status::Direction;
use crate::traffic::{Flow, Outcome};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Number of queues and workers.
const QUEUES: u16 = 4;
const FOUR: &str = "numrxqueues 4 numtxqueues 4";
fn one_class() -> Value {
    classes_by_port(json!([{ "id": 0, "limit": 50 }]))
}

/// A machine in the middle whose interfaces have four queues. The hosts send on the queue that the port says, as RSS of a card would choose it by the flow.
fn steered(lab: &Lab) -> Middle {
    let net = middle_with(lab, FOUR);
    for (host, dev) in [(&net.near, "n0"), (&net.far, "f0")] {
        steer(host, dev);
    }
    net
}

fn steer(host: &Ns, dev: &str) {
    host.tc(&format!("qdisc add dev {dev} clsact"));
    let by_port = Program::new(Hook::Filter, Verdict::ByPort { mask: QUEUES - 1 });
    by_port.pinned(|path| host.tc(&format!("filter add dev {dev} egress bpf direct-action object-pinned {path}")));
}

impl Middle {
    /// Streams of frames of 1,514 bytes from the near host to these classes and queues, each with a load in bit/s.
    fn overload(&self, streams: &[(u16, u16, u64)]) -> Vec<Outcome> {
        let flows: Vec<Flow> =
            streams.iter().map(|(class, queue, bps)| Flow::new(port(*class, *queue), &[1514], *bps)).collect();
        let outcomes = self.send(true, &flows, RUN);
        assert!(outcomes.iter().all(Outcome::in_order), "a flow stays with its worker");
        outcomes
    }

    /// The arrivals of m0, as `status` says.
    fn ingress(&self, lab: &Lab) -> Direction {
        lab.status(&self.machine, "m0").direction("ingress").clone()
    }
}

/// All workers together send at the rate, whether all are busy or one; each is seen to have sent its part.
pub fn share_one_rate(lab: &Lab) {
    let net = steered(lab);
    let before = [net.machine.state("m0"), net.machine.state("m1")];
    let process = net.begin(lab, &one_class(), "40mbit");
    assert!(process.stdout().contains("4 workers"), "{}", process.stdout());
    await_that("packets pass", LONG, || process.stdout().contains("packets pass"));
    let notes = process.stdout().matches("note: each of the 4 receive queues has a worker").count();
    assert_eq!(notes, 1, "a note on both sides is told once: {}", process.stdout());
    assert_eq!(process.threads("worker 3").len(), 1, "each worker has a thread");
    let all: Vec<_> = (0..QUEUES).map(|queue| (0, queue, 14_000_000)).collect();
    for (what, streams) in [("four busy queues", &all[..]), ("one busy queue", &[(0, 2, 60_000_000)][..])] {
        let sent =
            |direction: &Direction| -> Vec<u64> { direction.tx_queues.iter().map(|one| one.sent.pkts).collect() };
        let then = net.ingress(lab);
        let outcomes = net.overload(streams);
        await_that("the queues are empty", LONG, || net.ingress(lab).class(0).backlog.pkts == 0);
        let now = net.ingress(lab);
        let each: Vec<u64> = sent(&now).iter().zip(sent(&then)).map(|(now, then)| now - then).collect();
        let queues: Vec<u16> = now.tx_queues.iter().map(|one| one.queue).collect();
        assert_eq!(queues, (0..QUEUES).collect::<Vec<_>>());
        for (queue, sent) in each.iter().enumerate() {
            let busy = streams.iter().any(|(_, own, _)| usize::from(*own) == queue);
            assert_eq!(*sent > 100, busy, "{what}: worker {queue} of {each:?}");
        }
        let early = |direction: &Direction| direction.class(0).drops.get("early").copied().unwrap_or(0);
        assert!(early(&now) > early(&then), "{what}: the hook looks into the scheduler of the packet's worker");
        assert_eq!(sent(&now).iter().sum::<u64>(), now.class(0).sent.pkts, "status adds the workers up");
        assert!(outcomes.iter().any(|one| one.lost() > 0), "{what}: more was offered than the rate");
        if is_icount() {
            assert_near(what, together(&outcomes), 40e6, 0.005);
            assert_eq!(each.iter().sum::<u64>(), outcomes.iter().map(Outcome::received).sum::<u64>(), "{what}");
        }
    }
    let status = lab.status(&net.machine, "m0");
    assert_eq!((status.queues, status.engine.as_str()), (4, "xsk"));
    let table = lab.sluice(&net.machine, &["status", "m0", "--queues"]).ok().stdout;
    assert!(table.contains("  worker") && table.contains("lost"), "{table}");
    let asked = ["explain", "m0", "udp", "10.90.0.1:5000", "to", &format!("{FAR}:{}", port(0, 1)), "--arriving"];
    let explained = lab.sluice(&net.machine, &asked).ok().stdout;
    assert!(explained.contains("queued in class"), "{explained}");
    let link_fill = net.ingress(lab).link_fill;
    assert_eq!(link_fill, Some(1.0), "the bucket that workers share is full");
    end(process);
    assert_eq!([net.machine.state("m0"), net.machine.state("m1")], before);
}

/// Where a rule needs the headers of each packet, too, the hook looks into the scheduler of the packet's own worker: a stream on one queue loses nothing while
/// the scheduler of another one is full.
pub fn parsed_packets(lab: &Lab) {
    let net = steered(lab);
    let mut policy = one_class();
    let rules = policy["rules"].as_array_mut().expect("rules");
    rules.push(json!({ "name": "urgent", "priority": 1, "dscp": 46, "class_id": 0 }));
    let process = net.begin(lab, &policy, "10mbit");
    let outcomes = net.overload(&[(0, 0, 20_000_000), (0, 2, 1_000_000)]);
    assert!(outcomes[0].lost() > 0, "more was offered than the rate");
    assert_eq!(outcomes[1].lost(), 0, "of {}", outcomes[1].sent);
    let early = net.ingress(lab).class(0).drops.get("early").copied();
    assert!(early > Some(0), "the hook drops what the full scheduler would");
    end(process);
}

/// A class on one worker, and one of three times its weight on three; then the other way round.
pub fn weights_hold(lab: &Lab) {
    let net = steered(lab);
    let classes = json!([{ "id": 0, "weight": 1, "limit": 50 }, { "id": 1, "weight": 3, "limit": 50 }]);
    let process = net.begin(lab, &classes_by_port(classes), "40mbit");
    for (alone, many) in [(0, 1), (1, 0)] {
        let mut streams = vec![(alone, 0, 48_000_000)];
        streams.extend((1..QUEUES).map(|queue| (many, queue, 16_000_000)));
        let outcomes = net.overload(&streams);
        let (own, rest) = (together(&outcomes[..1]), together(&outcomes[1..]));
        let share = own / (own + rest);
        assert_near(
            &format!("share of class {alone} on one worker"),
            share,
            if alone == 0 { 0.25 } else { 0.75 },
            0.02,
        );
        assert_near("both classes", own + rest, 40e6, 0.005);
    }
    end(process);
}

pub fn ceilings_and_guarantees(lab: &Lab) {
    let net = steered(lab);
    let classes = json!([{ "id": 0, "ceil": "10mbit", "limit": 50 }, { "id": 1, "limit": 50 }]);
    let process = net.begin(lab, &classes_by_port(classes), "40mbit");
    let mut streams: Vec<_> = (0..2).map(|queue| (0, queue, 15_000_000)).collect();
    let alone = net.overload(&streams);
    assert_near("a ceiling over two workers", together(&alone), 10e6, 0.01);
    streams.extend((2..QUEUES).map(|queue| (1, queue, 25_000_000)));
    let both = net.overload(&streams);
    assert_near("the ceiling beside another class", together(&both[..2]), 10e6, 0.02);
    assert_near("the other class gets the rest", together(&both[2..]), 30e6, 0.01);
    let classes = json!([{ "id": 0, "rate": "24mbit", "limit": 50 }, { "id": 1, "weight": 9, "limit": 50 }]);
    lab.sluice(&net.machine, &["apply", "m0", &lab.policy(&classes_by_port(classes))]).ok();
    let mut streams = vec![(0, 3, 36_000_000)];
    streams.extend((0..3).map(|queue| (1, queue, 16_000_000)));
    let outcomes = net.overload(&streams);
    let (own, rest) = (together(&outcomes[..1]), together(&outcomes[1..]));
    assert!(own > 24e6 * 0.98, "a guarantee of 24 Mbit/s beside nine times the weight on three workers: {own}");
    assert_near("both classes", own + rest, 40e6, 0.005);
    end(process);
}

/// Policies take force while all workers are busy; one that several workers cannot share is refused, and nothing changes.
pub fn policies_change(lab: &Lab) {
    let net = steered(lab);
    let classes =
        |weight: u32| json!([{ "id": 0, "weight": weight, "limit": 500 }, { "id": 1, "rate": "2mbit", "limit": 500 }]);
    let process = net.begin(lab, &classes_by_port(classes(1)), "20mbit");
    let flows: Vec<Flow> = (0..QUEUES).map(|queue| Flow::new(port(queue % 2, queue), &[1014], 3_000_000)).collect();
    let streams = net.start(true, &flows);
    let apply = |policy: &Value, more: &[&str]| {
        lab.sluice(&net.machine, &[&["apply", "m0", &lab.policy(policy)], more].concat())
    };
    for (weight, rate) in [(5, "40mbit"), (1, "16mbit"), (3, "30mbit")] {
        std::thread::sleep(Duration::from_millis(150));
        apply(&classes_by_port(classes(weight)), &["--ingress-rate", rate]).ok();
    }
    let generation = || lab.status(&net.machine, "m0").policy.generation;
    assert_eq!(generation(), 4);
    let mut ranked = classes_by_port(json!([{ "id": 0, "priority": 0 }, { "id": 1, "priority": 1 }]));
    ranked["scheduler"] = json!("pifo");
    apply(&ranked, &[])
        .exits(2)
        .says("4 workers")
        .says("ranks hold within a queue only")
        .says("ethtool -L m0 combined 1");
    let mut in_turns = classes_by_port(classes(1));
    in_turns["scheduler"] = json!("round_robin");
    apply(&in_turns, &[]).exits(2).says("round_robin counts packets");
    let peak = json!([{ "id": 0, "ceil": "4mbit", "peak": "8mbit" }, { "id": 1 }]);
    apply(&classes_by_port(peak), &[]).exits(2).says("peak");
    assert_eq!(generation(), 4, "nothing has changed");
    let mut strict =
        classes_by_port(json!([{ "id": 0, "priority": 0, "limit": 500 }, { "id": 1, "priority": 1, "limit": 500 }]));
    strict["scheduler"] = json!("strict_priority");
    apply(&strict, &[]).ok();
    for outcome in streams.stop_after(Duration::from_millis(200)) {
        assert!(outcome.in_order() && outcome.received() > 0);
        assert!(outcome.lost() == 0 || !is_icount(), "{} lost", outcome.lost());
    }
    let urgent = net.overload(&[(0, 0, 10_000_000), (1, 1, 20_000_000), (1, 2, 20_000_000)]);
    if is_icount() {
        assert_eq!(urgent[0].lost(), 0, "the urgent class gets what it wants");
        assert_near("both classes", together(&urgent), 30e6, 0.005);
    }
    end(process);
}

/// A thread that the debugger's system call has stopped, alone of its process.
struct Stopped(i32);

impl Stopped {
    fn stop(thread: i32) -> Stopped {
        let none = std::ptr::null_mut::<libc::c_void>();
        // SAFETY: the calls take numbers only.
        unsafe {
            assert_eq!(libc::ptrace(libc::PTRACE_SEIZE, thread, none, none), 0, "{}", std::io::Error::last_os_error());
            assert_eq!(libc::ptrace(libc::PTRACE_INTERRUPT, thread, none, none), 0);
            assert_eq!(libc::waitpid(thread, std::ptr::null_mut(), libc::__WALL), thread);
        }
        Stopped(thread)
    }

    fn go_on(self) {
        let none = std::ptr::null_mut::<libc::c_void>();
        // SAFETY: the call takes numbers only.
        assert_eq!(unsafe { libc::ptrace(libc::PTRACE_DETACH, self.0, none, none) }, 0);
    }
}

/// One worker hangs: its packets pass by in their order, those of the others are shaped as before; then it goes on.
pub fn one_hangs(lab: &Lab) {
    let net = steered(lab);
    let process = net.begin(lab, &one_class(), "8mbit");
    let threads = process.threads("worker 1");
    let [thread] = threads[..] else { panic!("{threads:?}") };
    // There is always a queue.
    let streams =
        net.start(true, &[Flow::new(port(0, 1), &[1014], 6_000_000), Flow::new(port(0, 2), &[1014], 6_000_000)]);
    std::thread::sleep(Duration::from_millis(400));
    let stopped = Stopped::stop(thread);
    std::thread::sleep(Duration::from_millis(500));
    let shown = lab.sluice(&net.machine, &["status", "m0"]).ok().stdout;
    assert!(
        shown.contains("the worker of receive queue 1 does not answer: what arrives there goes to m1 unshaped"),
        "{shown}"
    );
    lab.sluice(&net.machine, &["ensure", "m0"]).exits(1).says("its thread hangs");
    let asked = ["explain", "m0", "udp", "10.90.0.1:5000", "to", &format!("{FAR}:{}", port(0, 2)), "--arriving"];
    let explained = lab.sluice(&net.machine, &asked).ok().stdout;
    assert!(
        explained.contains("queued in class") && explained.contains("; but the worker of receive queue 1"),
        "{explained}"
    );
    stopped.go_on();
    let outcomes = streams.stop_after(Duration::from_millis(400));
    assert!(outcomes.iter().all(Outcome::in_order), "nothing is late");
    for outcome in &outcomes {
        let gap_ns = outcome.arrivals.windows(2).map(|two| two[1].at_ns - two[0].at_ns).max().expect("packets");
        assert!(!is_icount() || gap_ns < 110_000_000, "nothing for {} ms", gap_ns / 1_000_000);
    }
    let ingress = net.ingress(lab);
    let lost: Vec<u64> = ingress.tx_queues.iter().map(|one| one.lost.as_ref().expect("a count").pkts).collect();
    assert!(lost[1] > 0, "what it held is counted: {lost:?}");
    assert_eq!(ingress.lost.expect("a count").pkts, lost.iter().sum::<u64>());
    assert!(!is_icount() || lost[2] == 0, "the others have lost nothing: {lost:?}");
    let shown = lab.sluice(&net.machine, &["status", "m0"]).ok().stdout;
    assert!(shown.contains("lost by the wire"), "{shown}");
    // Both are shaped together again.
    let again = net.overload(&[(0, 1, 6_000_000), (0, 2, 6_000_000)]);
    assert!(!is_icount() || together(&again) < 8.2e6, "{}", together(&again));
    end(process);
}

/// The process is killed: all packets pass by; the next one shapes them again, and counts what was lost.
pub fn process_dies(lab: &Lab) {
    let net = steered(lab);
    let mut process = net.begin(lab, &one_class(), "8mbit");
    let flows: Vec<Flow> = (0..QUEUES).map(|queue| Flow::new(port(0, queue), &[1014], 3_000_000)).collect();
    let streams = net.start(true, &flows);
    std::thread::sleep(Duration::from_millis(400));
    process.kill();
    std::thread::sleep(Duration::from_millis(400));
    let shown = lab.sluice(&net.machine, &["status", "m0"]).ok().stdout;
    assert!(shown.contains("no `sluice wire` runs"), "{shown}");
    let outcomes = streams.stop_after(Duration::from_millis(100));
    assert!(outcomes.iter().all(Outcome::in_order), "packets pass in order");
    drop(process);
    let lost = |direction: &Direction| direction.lost.as_ref().map(|lost| lost.pkts);
    let wire = |more: &[&str]| lab.start(&net.machine, &[&["wire", "m0", "m1"], more].concat());
    wire(&["--workers", "2"]).finish().exits(2).says("made with 4 workers");
    let process = wire(&[]);
    process.await_stdout_lines("packets pass", 1);
    assert!(lost(&net.ingress(lab)) > Some(0), "what it held is counted");
    let all: Vec<_> = (0..QUEUES).map(|queue| (0, queue, 3_000_000)).collect();
    let again = net.overload(&all);
    if is_icount() {
        assert_near("all workers again", together(&again), 8e6, 0.01);
    }
    end(process);
}

/// A wire without a process passes packets, and does so still after a command that was to make it anew with other queues and failed. A side whose other one is
/// not known any more is taken down with that one.
pub fn stays(lab: &Lab) {
    let net = steered(lab);
    let mut process = net.begin(lab, &one_class(), "8mbit");
    process.kill();
    drop(process);
    for (host, dev) in [(&net.near, "n0"), (&net.far, "f0")] {
        host.tool("ethtool", &format!("-L {dev} tx 2")).ok();
    }
    for dev in ["m0", "m1"] {
        net.machine.tool("ethtool", &format!("-L {dev} rx 2 tx 2")).ok();
    }
    net.machine.ip("addr add 10.90.7.1/24 dev m1");
    let path = lab.policy(&one_class());
    let ask = || lab.sluice(&net.machine, &["wire", "m0", "m1", "--policy", &path, "--rate", "5mbit"]).exits(2);
    ask().says("m1 has the address 10.90.7.1/24");
    net.machine.ip("addr flush dev m1");
    net.machine.ip("link set m1 mtu 3000");
    ask().says("frames of m1 have up to");
    net.machine.ip("link set m1 mtu 1500");
    let passed = net.send(true, &[Flow::new(port(0, 1), &[1014], 1_000_000)], SETTLE);
    assert!(passed[0].received() > 0, "packets pass");
    let is_of_m0 = |path: &PathBuf| path.extension().is_some() && path.to_string_lossy().contains("/m0@");
    let record = traces(net.machine.inode).into_iter().find(is_of_m0).expect("a record");
    fs::remove_file(record).expect("removed");
    let refused = lab.sluice(&net.machine, &["ensure", "m1"]);
    refused.says("m0 is not its other side any more: sluice down m1");
    let output = lab.down(&net.machine, "m0").stdout;
    assert!(output.contains("m1, the other side of its wire, is as it was"), "{output}");
}

/// Queues that come while the wire runs are reported, and their packets pass; the kernel keeps those in use. A longer MTU is reported, too.
pub fn queues_come_and_go(lab: &Lab) {
    let net = steered(lab);
    // A veth with an XDP program needs as many receive queues as its other end sends by.
    let hosts = |queues: u16| {
        net.near.tool("ethtool", &format!("-L n0 tx {queues}")).ok();
        net.far.tool("ethtool", &format!("-L f0 tx {queues}")).ok();
    };
    hosts(2);
    for dev in ["m0", "m1"] {
        net.machine.tool("ethtool", &format!("-L {dev} rx 2 tx 2")).ok();
    }
    let process = net.begin(lab, &one_class(), "20mbit");
    assert!(process.stdout().contains("2 workers"), "{}", process.stdout());
    net.machine.tool("ethtool", "-L m0 rx 4").ok();
    process.await_stderr("m0 has 4 receive queues now, and the wire 2 workers");
    let shown = lab.sluice(&net.machine, &["status", "m0"]).ok().stdout;
    assert!(
        shown.contains("m0 has 4 receive queues and the wire 2 workers, so what arrives on the others passes unshaped"),
        "{shown}"
    );
    lab.sluice(&net.machine, &["ensure", "m0"]).exits(1).says("ethtool -L m0 combined 2");
    net.near.tool("ethtool", "-L n0 tx 4").ok();
    let all: Vec<_> = (0..QUEUES).map(|queue| (0, queue, 2_000_000)).collect();
    let outcomes = net.overload(&all);
    let sent = net.ingress(lab).tx_queues.iter().map(|one| one.sent.pkts).sum::<u64>();
    assert!(sent < outcomes.iter().map(Outcome::received).sum::<u64>(), "packets of two queues pass by");
    assert!(
        outcomes.iter().all(|one| one.received() > 50),
        "{:?}",
        outcomes.iter().map(Outcome::received).collect::<Vec<_>>()
    );
    hosts(1);
    net.machine.tool("ethtool", "-L m0 rx 2").ok();
    process.await_stderr("m0 has as many receive queues again as the wire has workers");
    let fewer = net.machine.tool("ethtool", "-L m0 rx 1");
    assert_ne!(fewer.code, Some(0), "the kernel keeps queues with sockets: {fewer}");
    net.machine.ip("link set m0 mtu 3000");
    let shown = lab.sluice(&net.machine, &["status", "m0"]).ok().stdout;
    assert!(
        shown.contains("m0 takes frames of up to 3022 bytes") && shown.contains("its MTU may be 1770 at most"),
        "{shown}"
    );
    lab.sluice(&net.machine, &["ensure", "m0"]).exits(1).says("ip link set m0 mtu 1770");
    net.machine.ip("link set m0 mtu 1500");
    let shown = lab.sluice(&net.machine, &["status", "m0"]).ok().stdout;
    assert!(!shown.contains("NOT all is in place"), "{shown}");
    end(process);
}

/// Numbers of queues and workers that do not fit are errors with their cures, and nothing has changed.
pub fn bad_numbers(lab: &Lab) {
    let net = middle_with(lab, "numrxqueues 10 numtxqueues 10");
    let set = |dev: &str, queues: u32| {
        net.machine.tool("ethtool", &format!("-L {dev} rx {queues} tx {queues}")).ok();
    };
    let state = || [net.machine.state("m0"), net.machine.state("m1")];
    let ask = |policy: &Value, more: &[&str]| {
        let path = lab.policy(policy);
        let all = [&["wire", "m0", "m1", "--policy", &path, "--rate", "10mbit"], more].concat();
        lab.sluice(&net.machine, &all).exits(2)
    };
    let before = state();
    let flat = one_class();
    ask(&flat, &["--workers", "0"]).says("1 to 8");
    ask(&flat, &["--workers", "9"]).says("1 to 8");
    ask(&flat, &["--workers", "many"]).says("write auto");
    ask(&flat, &[])
        .says("m0 has 10 receive queues")
        .says("8 workers, which is the most")
        .says("ethtool -L m0 combined 8");
    assert_eq!(state(), before, "nothing has changed");
    set("m0", 4);
    set("m1", 4);
    let before = state();
    ask(&flat, &["--workers", "6"]).says("m0 has 4 receive queues, and 6 workers need as many").says("--workers 4");
    ask(&flat, &["--workers", "1"])
        .says("m0 has 4 receive queues, and the wire 1 worker")
        .says("ethtool -L m0 combined 1");
    let ranked = json!({ "version": 1, "scheduler": "pifo", "classes": [{ "id": 0, "priority": 0 }] });
    ask(&ranked, &["--workers", "4"]).says("ranks hold within a queue only").says("--workers 1");
    ask(&ranked, &[]).says("the wire 1 worker, since ranks hold").says("combined 1");
    let tree = json!({ "version": 1, "link": { "rate": "10mbit" },
        "classes": [{ "name": "all" }, { "id": 0, "name": "own", "parent": "all" }] });
    ask(&tree, &["--workers", "4"]).says("a class tree need");
    let mut one = one_class();
    one["link"] = json!({ "queues": "one" });
    ask(&one, &[]).says("`\"queues\": \"one\"`");
    set("m1", 2);
    ask(&flat, &[]).says("m0 has 4 receive queues, and the wire 2 workers").says("combined 2");
    set("m1", 4);
    net.machine.tool("ethtool", "-L m1 tx 1").ok();
    ask(&flat, &[]).says("m1 has 1 transmit queue");
    net.machine.tool("ethtool", "-L m1 tx 4").ok();
    assert_eq!(state(), before, "nothing has changed");
    // A veth with an XDP program needs as many receive queues as its other end sends by, and the cure is one.
    let path = lab.policy(&flat);
    let more_at_the_host = lab.sluice(&net.machine, &["wire", "m0", "m1", "--policy", &path, "--rate", "10mbit"]);
    let in_near = format!("ethtool -L PEER tx 4 in the network namespace {}", net.near.name);
    more_at_the_host.exits(3).says("m0 has 4 receive queues, and its other end sends by more").says(&in_near);
    net.near.tool("ethtool", "-L n0 tx 4").ok();
    net.far.tool("ethtool", "-L f0 tx 4").ok();
    let process = lab.start(
        &net.machine,
        &["wire", "m0", "m1", "--policy", &lab.policy(&flat), "--rate", "10mbit", "--workers", "4"],
    );
    process.await_stdout_lines("packets pass", 1);
    end(process);
    assert_eq!(state(), before);
}

/// Busy polling moves packets at the same rate, and the worker still sleeps and wakes.
pub fn busy_polling(lab: &Lab) {
    let net = steered(lab);
    let file = lab.policy(&one_class());
    let process = lab.start(&net.machine, &["wire", "m0", "m1", "--policy", &file, "--rate", "20mbit", "--busy-poll"]);
    process.await_stdout_lines("packets pass", 1);
    let all: Vec<_> = (0..QUEUES).map(|queue| (0, queue, 7_000_000)).collect();
    let outcomes = net.overload(&all);
    if is_icount() {
        assert_near("four workers that poll", together(&outcomes), 20e6, 0.005);
    }
    assert!(outcomes.iter().all(|one| one.received() > 100));
    // Packets come one at a time, while the workers sleep.
    let few = net.overload(&[(0, 3, 200_000)]);
    assert!(few[0].lost() == 0 && few[0].received() > 5, "{} of {}", few[0].received(), few[0].sent);
    end(process);
}
