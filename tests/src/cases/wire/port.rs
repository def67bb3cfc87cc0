//! A port that is slower than the rate of the wire: what it has to send is kept short, and packets wait in the scheduler.

use super::{LONG, Middle, middle};
use crate::command::{Process, await_that, words};
use crate::lab::{Lab, binary};
use crate::policy::{port, three};
use crate::traffic::{Flow, Outcome};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::Value;
use std::time::Duration;

/// The rate of the port, Mbit/s.
const PORT_MBIT: u64 = 100;
/// Bytes that it adds to a frame.
const OVERHEAD: usize = 24;
/// Bytes of a long frame.
const LONG_FRAME: usize = 1514;
const TIME: Duration = Duration::from_millis(1500);
/// Packets that the port has at most where a number is asked for: as many as a veth takes before it refuses.
const MANY: u64 = 256;

/// The port beyond the wire: the far end of its veth is a card that takes the time of each frame, on a processor of its own.
struct Port {
    card: Process,
    processors: Vec<usize>,
}

impl Port {
    fn begin(net: &Middle) -> Port {
        // A veth refuses frames only where a qdisc would keep them (from Linux 6.16 on); frames of AF_XDP pass it by.
        net.machine.tc("qdisc replace dev m1 root pfifo_fast");
        let all = sched_getaffinity(Pid::from_raw(0)).expect("processors of this process");
        let processors: Vec<usize> = (0..CpuSet::count()).filter(|cpu| all.is_set(*cpu).unwrap_or(false)).collect();
        let last = processors.last().expect("a processor");
        // The namespace's own /sys is there alone.
        let line = format!(
            "netns exec {} {} lab card f0 --rate {PORT_MBIT}mbit --processor {last}",
            net.far.name,
            binary().display()
        );
        let card = Process::start(&mut words("ip", &line));
        card.await_stderr("sending");
        Port { card, processors }
    }

    /// Starts a process that keeps off the processor of the card.
    fn beside<T>(&self, start: impl FnOnce() -> T) -> T {
        let own = sched_getaffinity(Pid::from_raw(0)).expect("processors of this thread");
        let mut others = CpuSet::new();
        for cpu in &self.processors[..self.processors.len() - 1] {
            others.set(*cpu).expect("a processor");
        }
        sched_setaffinity(Pid::from_raw(0), &others).expect("other processors");
        let started = start();
        sched_setaffinity(Pid::from_raw(0), &own).expect("the processors from before");
        started
    }

    /// Ends it. The frames that it has sent.
    fn end(self) -> u64 {
        self.card.signal(Signal::SIGINT);
        let output = self.card.finish().ok();
        let sent: Value =
            serde_json::from_str(output.stdout.lines().last().unwrap_or_default()).expect("a line of JSON");
        sent["frames"].as_u64().expect("frames")
    }
}

/// Sends urgent and bulk packets by a wire whose port is the bottleneck. The outcomes of both.
fn overload(lab: &Lab, net: &Middle, limit: &str) -> (Vec<Outcome>, Process) {
    let port_beyond = Port::begin(net);
    let file = lab.policy(&three());
    let asked = ["wire", "m0", "m1", "--policy", &file, "--rate", "1gbit", "--port-limit", limit];
    let process = port_beyond.beside(|| lab.start(&net.machine, &asked));
    process.await_stdout_lines("packets pass", 1);
    let flows =
        [Flow::new(port(0), &[214], 1_000_000), Flow::new(port(2), &[LONG_FRAME], PORT_MBIT * 3 / 2 * 1_000_000)];
    let outcomes = port_beyond.beside(|| net.send(true, &flows, TIME));
    await_that("the queue is empty", LONG, || lab.status(&net.machine, "m0").ingress(2).backlog.pkts == 0);
    let received = || outcomes.iter().map(Outcome::received).sum::<u64>();
    assert!(port_beyond.end() >= received(), "all have gone through the card");
    (outcomes, process)
}

/// An urgent packet waits for what the port has to send, which is little, and not for the backlog; the port is busy; what is lost is counted.
pub fn urgent_packets_pass_the_backlog(lab: &Lab) {
    let net = middle(lab);
    let (outcomes, process) = overload(lab, &net, "auto");
    let long_ms = ((LONG_FRAME + OVERHEAD) * 8) as f64 / (PORT_MBIT as f64 * 1e3);
    assert!(outcomes.iter().all(Outcome::in_order));
    let median_ms = outcomes[0].delay_ms(0.5);
    println!("urgent packets wait for {median_ms:.2} ms (median), {:.2} ms (99 %)", outcomes[0].delay_ms(0.99));
    assert!(median_ms < MANY as f64 * long_ms / 2.0, "{median_ms} ms, and a frame takes {long_ms}");
    let bps: f64 = outcomes.iter().map(|outcome| outcome.bps(Duration::from_millis(300), OVERHEAD as i64)).sum();
    println!("the port sends at {:.1} Mbit/s", bps / 1e6);
    // A machine with other work gives the card less than its processor.
    assert!(bps > 0.7 * PORT_MBIT as f64 * 1e6, "{bps}");
    let ingress = lab.status(&net.machine, "m0").direction("ingress").clone();
    let dropped: u64 = ingress.classes.iter().map(|class| class.dropped.pkts).sum::<u64>();
    let lost = ingress.lost.as_ref().map_or(0, |lost| lost.pkts);
    // If the machine gave the process no time, packets have passed it by, through the qdisc.
    let link: Value = serde_json::from_str(&net.machine.ip("-s -j link show dev m1")).expect("ip -j prints JSON");
    let at_veth = link[0]["stats64"]["tx"]["dropped"].as_u64().expect("packets that the veth dropped");
    let at_qdisc: u64 = net.machine.root("m1").map_or(0, |qdisc| qdisc.drops);
    let sent: u64 = outcomes.iter().map(|outcome| outcome.sent).sum();
    let received: u64 = outcomes.iter().map(Outcome::received).sum();
    assert!(dropped > 0, "more is sent than the port takes");
    assert_eq!(
        sent,
        received + dropped + lost + at_veth + at_qdisc,
        "{lost}, {at_veth}, {at_qdisc} lost behind the queue"
    );
    let port = ingress.port.expect("a wire has a port");
    assert!(port.wait_s > 0.1, "{} s", port.wait_s);
    assert!(port.limit_bytes.is_some_and(|bytes| bytes >= LONG_FRAME as u64), "{:?}", port.limit_bytes);
    let shown = lab.sluice(&net.machine, &["status", "m0"]).ok().stdout;
    assert!(shown.contains("packets waited for the interface on the other side: "), "{shown}");
    super::end(process);
}

/// Where a number of packets is asked for, the port has so many, and urgent packets wait for them.
pub fn a_number_is_kept(lab: &Lab) {
    let net = middle(lab);
    let asked = |limit: &str| {
        let policy = lab.policy(&three());
        lab.sluice(&net.machine, &["wire", "m0", "m1", "--policy", &policy, "--rate", "1gbit", "--port-limit", limit])
    };
    for bad in ["0", "2049", "few"] {
        asked(bad).exits(2).says("write auto, or a number of packets from 1 to 2048");
    }
    let (outcomes, process) = overload(lab, &net, &MANY.to_string());
    let long_ms = ((LONG_FRAME + OVERHEAD) * 8) as f64 / (PORT_MBIT as f64 * 1e3);
    let median_ms = outcomes[0].delay_ms(0.5);
    println!("urgent packets wait for {median_ms:.2} ms (median)");
    assert!(outcomes.iter().all(Outcome::in_order));
    assert!(median_ms > MANY as f64 * long_ms / 2.0, "{median_ms} ms, and a frame takes {long_ms}");
    assert_eq!(lab.status(&net.machine, "m0").direction("ingress").port.and_then(|port| port.limit_bytes), None);
    super::end(process);
}
