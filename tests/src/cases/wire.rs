//! Engine xsk: two interfaces as a wire, whose packets a process queues.

mod port;
mod trees;
mod workers;

use crate::cases::assert_near;
use crate::command::{Process, await_that};
use crate::frames::{LLDP, Wire, ethernet};
use crate::lab::{Lab, traces};
use crate::needs::{Need, is_icount};
use crate::net::{End, Ns, wire};
use crate::policy::{port, three, with};
use crate::suite::Suite;
use crate::traffic::{self, Flow, Outcome};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(20);
const NEAR: &str = "10.90.0.1";
const FAR: &str = "10.90.0.2";

pub fn suite() -> Suite {
    Suite::new("wire")
        .any("both_ways_are_shaped", &[Need::Xsk], both_ways_are_shaped)
        .any("policies_change_and_go_back", &[Need::Xsk], policies_change)
        .any("packets_pass_when_the_process_dies", &[Need::Xsk], process_dies)
        .any("a_wire_is_taken_down_whole", &[Need::Xsk], taken_down_whole)
        .any("packets_pass_while_the_process_hangs", &[Need::Xsk], process_hangs)
        .any("what_keeps_a_network_up_is_not_queued", &[Need::Xsk], neighbours_are_found)
        .any("an_interrupted_start_is_cleaned_up", &[Need::Xsk], an_interrupted_start)
        .any("parts_of_other_devices_are_refused", &[Need::Xsk, Need::Bridge], parts_of_other_devices)
        .any("interfaces_go_down_change_names_and_go", &[Need::Xsk], interfaces_go)
        .any("bad_input", &[Need::Xsk], bad_input)
        .any("plans_of_subscribers_hold", &[Need::Xsk], trees::plans_hold)
        .any("subscribers_change_while_packets_flow", &[Need::Xsk], trees::subscribers_change)
        .any("a_process_with_subscribers_dies", &[Need::Xsk], trees::process_of_a_tree_dies)
        .any("each_host_of_a_group_has_its_own", &[Need::Xsk], trees::each_host_has_its_own)
        .any("class_trees_share", &[Need::Xsk], trees::class_trees_share)
        .any("classes_inside_subscribers_share", &[Need::Xsk], trees::classes_inside)
        .any("trees_that_are_refused", &[Need::Xsk], trees::bad_trees)
        .any("workers_share_one_rate", &[Need::Xsk], workers::share_one_rate)
        .any("parsed_packets_are_dropped_by_their_worker", &[Need::Xsk], workers::parsed_packets)
        .any("weights_hold_over_workers", &[Need::Xsk, Need::Icount], workers::weights_hold)
        .any("ceilings_and_guarantees_hold_over_workers", &[Need::Xsk, Need::Icount], workers::ceilings_and_guarantees)
        .any("policies_change_over_workers", &[Need::Xsk], workers::policies_change)
        .any("a_worker_hangs", &[Need::Xsk], workers::one_hangs)
        .any("a_process_of_workers_dies", &[Need::Xsk], workers::process_dies)
        .any("a_wire_that_cannot_be_made_anew_stays", &[Need::Xsk], workers::stays)
        .any("queues_come_and_go", &[Need::Xsk], workers::queues_come_and_go)
        .any("numbers_of_workers_that_cannot_be", &[Need::Xsk], workers::bad_numbers)
        .any("urgent_packets_pass_the_backlog", &[Need::Xsk, Need::Processors], port::urgent_packets_pass_the_backlog)
        .any("a_number_of_packets_is_kept", &[Need::Xsk, Need::Processors, Need::RefusingVeth], port::a_number_is_kept)
        .any("drivers_are_asked", &[Need::Xsk], workers::busy_polling)
}

/// Two hosts, and a machine between them whose interfaces m0 and m1 are to be a wire.
struct Middle {
    near: Ns,
    machine: Ns,
    far: Ns,
}

fn middle(lab: &Lab) -> Middle {
    middle_with(lab, "numrxqueues 1 numtxqueues 1")
}

/// As `middle`, its interfaces made with options of `ip link add`.
fn middle_with(lab: &Lab, options: &str) -> Middle {
    let net = Middle { near: lab.ns("near"), machine: lab.ns("machine"), far: lab.ns("far") };
    let side = |dev, mac| End { ns: &net.machine, dev, address: "10.91.0.1", mac };
    let near = End { ns: &net.near, dev: "n0", address: NEAR, mac: "02:00:00:00:90:01" };
    let far = End { ns: &net.far, dev: "f0", address: FAR, mac: "02:00:00:00:90:02" };
    wire(&near, &side("m0", "02:00:00:00:91:01"), options);
    wire(&far, &side("m1", "02:00:00:00:91:02"), options);
    for dev in ["m0", "m1"] {
        net.machine.ip(&format!("addr flush dev {dev}"));
    }
    for (host, dev, other) in [(&net.near, "n0", &far), (&net.far, "f0", &near)] {
        host.ip(&format!("neigh replace {} dev {dev} lladdr {} nud permanent", other.address, other.mac));
        // Frames of a veth lack the checksum that its host would have a card compute.
        host.tool("ethtool", &format!("-K {dev} tx off tso off gso off")).ok();
    }
    for dev in ["m0", "m1"] {
        // The kernel finds that a carrier is there some moments later.
        await_that("a side is up", LONG, || net.machine.ip(&format!("link show dev {dev}")).contains("state UP"));
    }
    net
}

impl Middle {
    fn begin(&self, lab: &Lab, policy: &Value, rates: &str) -> Process {
        let file = lab.policy(policy);
        let process = lab.start(&self.machine, &["wire", "m0", "m1", "--policy", &file, "--rate", rates]);
        process.await_stdout_lines("packets pass", 1);
        process
    }

    fn send(&self, forth: bool, flows: &[Flow], time: Duration) -> Vec<Outcome> {
        self.start(forth, flows).stop_after(time)
    }

    fn start(&self, forth: bool, flows: &[Flow]) -> traffic::Streams {
        if forth {
            traffic::start(&self.near, &self.far, FAR, flows)
        } else {
            traffic::start(&self.far, &self.near, NEAR, flows)
        }
    }
}

#[track_caller]
fn end(process: Process) {
    process.signal(Signal::SIGTERM);
    process.finish().ok();
}

/// Each way has its rate and its order of classes; the counters are those of what was sent; a stopped wire leaves nothing.
fn both_ways_are_shaped(lab: &Lab) {
    let net = middle(lab);
    let before = [net.machine.state("m0"), net.machine.state("m1")];
    let process = net.begin(lab, &three(), "10mbit/4mbit");
    for (forth, dev, mbit) in [(true, "m0", 10), (false, "m1", 4)] {
        let flows = [Flow::new(port(0), &[214], 1_000_000), Flow::new(port(2), &[1514], 15_000_000)];
        let outcomes = net.send(forth, &flows, Duration::from_millis(1500));
        let ingress = || lab.status(&net.machine, dev).direction("ingress").clone();
        await_that("the queue is empty", LONG, || ingress().class(2).backlog.pkts == 0);
        let ingress = ingress();
        assert!(ingress.queued);
        assert_eq!(lab.status(&net.machine, dev).queues, 1, "one receive queue has a worker");
        let history = lab.sluice(&net.machine, &["history", dev]).ok().stdout;
        assert!(history.contains(&format!("arrivals {mbit} Mbit/s")), "{history}");
        assert!(outcomes[1].lost() > 0 && outcomes.iter().all(Outcome::in_order), "{dev}");
        assert!(outcomes[0].delay_ms(0.5) < outcomes[1].delay_ms(0.5), "{dev}");
        // On a machine that gives the process no time, packets pass it by.
        if is_icount() {
            assert_eq!(outcomes[0].lost(), 0, "{dev}");
            assert_eq!(ingress.class(0).sent.pkts, outcomes[0].sent, "{dev}: of the urgent class all are sent");
            assert_eq!(ingress.class(2).sent.pkts + ingress.class(2).dropped.pkts, outcomes[1].sent, "{dev}");
            let settle = Duration::from_millis(300);
            let sum = outcomes[0].bps(settle, 0) + outcomes[1].bps(settle, 0);
            assert_near(&format!("what arrives at {dev}"), sum, f64::from(mbit) * 1e6, 0.01);
        }
    }
    let shown = lab.sluice(&net.machine, &["status", "m0"]).ok().stdout;
    assert!(shown.contains("engine xsk"), "{shown}");
    let asked = ["explain", "m0", "udp", "10.90.0.1:5000", "to", &format!("10.90.0.2:{}", port(0)), "--arriving"];
    let explained = lab.sluice(&net.machine, &asked).ok().stdout;
    assert!(explained.contains("class     0 control") && explained.contains("queued in class control"), "{explained}");
    let dhcp = ["explain", "m0", "udp", "0.0.0.0:68", "to", "255.255.255.255:67", "--arriving"];
    let explained = lab.sluice(&net.machine, &dhcp).ok().stdout;
    assert!(explained.contains("a wire queues no such packets"), "{explained}");
    end(process);
    assert_eq!([net.machine.state("m0"), net.machine.state("m1")], before);
}

/// `apply` and `rollback` change the policy of a side while packets flow, and lose none.
fn policies_change(lab: &Lab) {
    let net = middle(lab);
    let process = net.begin(lab, &three(), "20mbit");
    let streams = net.start(true, &[Flow::new(port(0), &[214], 1_000_000), Flow::new(port(1), &[614], 2_000_000)]);
    let other = lab.policy(&with(three(), "scheduler", json!("weighted_fair_queuing")));
    let generation = || lab.status(&net.machine, "m0").policy.generation;
    for (arguments, expected) in
        [(["apply", "m0", &other], 2), (["rollback", "m0", "1"], 3), (["apply", "m0", &other], 4)]
    {
        std::thread::sleep(Duration::from_millis(100));
        lab.sluice(&net.machine, &arguments).ok();
        assert_eq!(generation(), expected);
    }
    lab.sluice(&net.machine, &["apply", "m0", &other, "--ingress-rate", "5mbit"]).ok();
    for outcome in streams.stop_after(Duration::from_millis(200)) {
        assert!(outcome.lost() == 0 || !is_icount(), "{} lost", outcome.lost());
        assert!(outcome.in_order() && outcome.received() > 0);
    }
    let status = lab.status(&net.machine, "m0");
    assert_eq!(status.policy.scheduler, "weighted_fair_queuing");
    let fast = net.send(true, &[Flow::new(port(1), &[1514], 20_000_000)], Duration::from_millis(1000)).remove(0);
    let most = if is_icount() { 5.05e6 } else { 10e6 };
    assert!(fast.bps(Duration::from_millis(300), 0) < most, "{}", fast.bps(Duration::from_millis(300), 0));
    // Another command ends the process.
    lab.sluice(&net.machine, &["down", "m0", "m1"]).ok();
    let output = process.finish().ok();
    assert!(output.stdout.contains("taken down by another command"), "{output}");
    lab.sluice(&net.machine, &["status", "m1"]).exits(2);
}

/// A process that is killed takes only what it held with it: packets go on directly, in their order, and a new process shapes them again.
fn process_dies(lab: &Lab) {
    let net = middle(lab);
    let mut process = net.begin(lab, &three(), "20mbit");
    let streams = net.start(true, &[Flow::new(port(0), &[214], 2_000_000)]);
    std::thread::sleep(Duration::from_millis(300));
    let (sent_before, _) = streams.so_far();
    process.kill();
    std::thread::sleep(Duration::from_millis(500));
    let shown = lab.sluice(&net.machine, &["status", "m0"]).ok().stdout;
    assert!(shown.contains("no `sluice wire` runs"), "{shown}");
    let outcome = streams.stop_after(Duration::from_millis(100)).remove(0);
    assert!(outcome.in_order(), "packets pass in order");
    let gap_ns = outcome.arrivals.windows(2).map(|two| two[1].at_ns - two[0].at_ns).max().expect("packets");
    assert!(outcome.sent > sent_before + 100, "{} packets, {sent_before} before", outcome.sent);
    // At 2 Mbit/s, so many packets of 214 bytes come in the time until the hook takes the process for dead.
    let most = 2_000_000 * 150 / 1000 / (214 * 8);
    if is_icount() {
        assert!(outcome.lost() <= most, "{} lost", outcome.lost());
        assert!(gap_ns < 100_000_000, "nothing for {} ms", gap_ns / 1_000_000);
    }
    // Unshaped now.
    let fast = net.send(true, &[Flow::new(port(0), &[1514], 40_000_000)], Duration::from_millis(500)).remove(0);
    assert!(fast.bps(Duration::from_millis(100), 0) > 30e6, "{}", fast.bps(Duration::from_millis(100), 0));
    let process = lab.start(&net.machine, &["wire", "m0", "m1"]);
    process.await_stdout_lines("packets pass", 1);
    let again = net.send(true, &[Flow::new(port(0), &[1514], 40_000_000)], Duration::from_millis(1000)).remove(0);
    let most = if is_icount() { 20.2e6 } else { 30e6 };
    assert!(again.bps(Duration::from_millis(300), 0) < most, "{}", again.bps(Duration::from_millis(300), 0));
    commands_agree_while_it_is_stopped(lab, &net, &process);
    end(process);
}

/// All commands say the same of a process that is there and does not run, with the cure, and that it runs once it goes on.
fn commands_agree_while_it_is_stopped(lab: &Lab, net: &Middle, process: &Process) {
    let ask = |arguments: &[&str]| lab.sluice(&net.machine, arguments);
    let explain = ["explain", "m0", "udp", "10.90.0.1:5000", "to", "10.90.0.2:6000", "--arriving"];
    process.signal(Signal::SIGSTOP);
    // So long the hook waits for it.
    std::thread::sleep(Duration::from_millis(100));
    let stopped = "the process of `sluice wire` (PID";
    let shown = ask(&["status", "m0"]).ok().stdout;
    assert!(shown.contains(stopped) && shown.contains("is stopped: packets go to m1 as they come"), "{shown}");
    ask(&["ensure", "m0"]).exits(1).says(stopped).says("kill -CONT");
    let explained = ask(&explain).ok().stdout;
    assert!(explained.contains("passes by the queue") && explained.contains(stopped), "{explained}");
    ask(&["wire", "m0", "m1"]).exits(2).says("another `sluice wire m0 m1` runs, and is stopped").says("kill -CONT");
    // It loads all programs, which takes an emulated machine long.
    if !is_icount() {
        let found = ask(&["doctor"]).ok().stdout;
        assert_eq!(found.matches(stopped).count(), 2, "each side: {found}");
    }
    process.signal(Signal::SIGCONT);
    let is_in_place = || !ask(&["status", "m0"]).ok().stdout.contains("NOT all is in place");
    await_that("it goes on", LONG, is_in_place);
    ask(&["ensure", "m0"]).ok();
    let explained = ask(&explain).ok().stdout;
    assert!(explained.contains("queued in class"), "{explained}");
}

/// `down` of one side takes the whole wire down where no process does, also after a command that was killed, and where an interface has gone.
fn taken_down_whole(lab: &Lab) {
    let net = middle(lab);
    let before = net.machine.state("m0");
    let mut process = net.begin(lab, &three(), "5mbit");
    process.kill();
    drop(process);
    lab.killed_at("down-recorded", &net.machine, &["down", "m1"]);
    lab.sluice(&net.machine, &["status", "m0"]).exits(2).says("a `sluice down` was interrupted");
    net.machine.ip("link del m1");
    let output = lab.down(&net.machine, "m0").stdout;
    assert!(output.contains("m0 is as it was\nm1, the other side of its wire, is as it was"), "{output}");
    assert_eq!(net.machine.state("m0"), before.trim_end_matches(" m1"));
    assert_eq!(traces(net.machine.inode), [] as [std::path::PathBuf; 0], "nothing is left");
}

/// A process that is stopped and goes on has dropped what it held: nothing comes behind what has passed it by.
fn process_hangs(lab: &Lab) {
    let net = middle(lab);
    let process = net.begin(lab, &three(), "4mbit");
    // It has always a queue.
    let streams = net.start(true, &[Flow::new(port(2), &[514], 6_000_000)]);
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(300));
        process.signal(Signal::SIGSTOP);
        std::thread::sleep(Duration::from_millis(300));
        process.signal(Signal::SIGCONT);
    }
    let outcome = streams.stop_after(Duration::from_millis(300)).remove(0);
    assert!(outcome.in_order(), "nothing is late");
    let gap_ns = outcome.arrivals.windows(2).map(|two| two[1].at_ns - two[0].at_ns).max().expect("packets");
    if is_icount() {
        assert!(gap_ns < 100_000_000, "nothing for {} ms", gap_ns / 1_000_000);
    }
    end(process);
}

/// ARP passes a full wire at once. LLDP passes as well, and no more than the built-in rules let through: a flood of it is queued like others.
fn neighbours_are_found(lab: &Lab) {
    let net = middle(lab);
    let process = net.begin(lab, &three(), "1mbit");
    let lldp = Wire::open(&net.near, "n0");
    let frame = ethernet(&[], LLDP, &[7; 1000]);
    let queued =
        || lab.status(&net.machine, "m0").direction("ingress").classes.iter().map(|one| one.sent.pkts).sum::<u64>();
    (0..10).for_each(|_| lldp.send(&frame));
    // Packets of others may be among them: those of IPv6.
    std::thread::sleep(Duration::from_millis(100));
    let few = queued();
    assert!(few < 5, "{few} of 10 frames of LLDP were queued");
    // The bucket holds 64 KiB.
    await_that("a flood is queued", LONG, || {
        (0..50).for_each(|_| lldp.send(&frame));
        queued() > few + 50
    });
    let streams = net.start(true, &[Flow::new(port(2), &[1514], 5_000_000)]);
    std::thread::sleep(Duration::from_millis(500));
    net.near.ip(&format!("neigh del {FAR} dev n0"));
    let known = || net.near.ip("neigh show dev n0").contains("lladdr 02:00:00:00:90:02");
    await_that("ARP is answered", Duration::from_secs(3), known);
    streams.finish_lossy();
    end(process);
}

/// A start that dies halfway leaves nothing that keeps the next one from its work.
fn an_interrupted_start(lab: &Lab) {
    let net = middle(lab);
    let file = lab.policy(&three());
    for point in ["up-recorded", "down-recorded"] {
        lab.killed_at("up-recorded", &net.machine, &["wire", "m0", "m1", "--policy", &file, "--rate", "5mbit"]);
        if point == "down-recorded" {
            // The next one dies while it cleans up.
            lab.killed_at(point, &net.machine, &["wire", "m0", "m1", "--policy", &file, "--rate", "5mbit"]);
        }
        let process = net.begin(lab, &three(), "5mbit");
        let outcome = net.send(true, &[Flow::new(port(0), &[214], 1_000_000)], Duration::from_millis(200)).remove(0);
        assert!(outcome.received() > 0, "packets pass");
        end(process);
    }
}

/// A port of a bridge cannot be a side: the bridge would get no packets from it.
fn parts_of_other_devices(lab: &Lab) {
    let net = middle(lab);
    net.machine.ip("link add br0 type bridge");
    net.machine.ip("link set m1 master br0");
    let file = lab.policy(&three());
    let asked = ["wire", "m0", "m1", "--policy", &file, "--rate", "1mbit"];
    lab.sluice(&net.machine, &asked).exits(2).says("m1 is part of br0").says("nomaster");
    let asked = ["wire", "m0", "br0", "--policy", &file, "--rate", "1mbit"];
    lab.sluice(&net.machine, &asked)
        .exits(2)
        .says("br0 is a device of kind bridge")
        .says("of a bridge its ports: m0, m1");
    lab.sluice(&net.machine, &["status", "m0"]).exits(2);
}

/// Packets for a link that is down are dropped, not kept; a renamed side is given back; a side that goes ends the process with an error.
fn interfaces_go(lab: &Lab) {
    let net = middle(lab);
    let process = net.begin(lab, &three(), "1mbit");
    net.machine.ip("link set m1 down");
    net.send(true, &[Flow::new(port(2), &[1514], 2_000_000)], Duration::from_millis(500));
    let status = lab.status(&net.machine, "m0");
    assert_eq!(status.ingress(2).backlog.pkts, 0, "nothing is kept");
    net.machine.ip("link set m1 name mm1");
    net.machine.ip("link set mm1 up");
    let shown = lab.sluice(&net.machine, &["status", "m0"]).ok().stdout;
    assert!(!shown.contains("NOT all is in place"), "{shown}");
    lab.sluice(&net.machine, &["apply", "mm1", &lab.policy(&with(three(), "scheduler", json!("round_robin")))]).ok();
    end(process);
    assert!(net.machine.ip("-d link show mm1").contains("promiscuity 0"), "the renamed side is given back");
    net.machine.ip("link set mm1 down");
    net.machine.ip("link set mm1 name m1");
    net.machine.ip("link set m1 up");
    let process = net.begin(lab, &three(), "1mbit");
    net.machine.ip("link del m1");
    process.finish().exits(1).says("m1 is gone");
    let shown = net.machine.ip("-d link show m0");
    assert!(shown.contains("promiscuity 0") && !shown.contains("xdp"), "{shown}");
    lab.sluice(&net.machine, &["status", "m0"]).exits(2);
}

fn bad_input(lab: &Lab) {
    let net = middle(lab);
    let state = [net.machine.state("m0"), net.machine.state("m1")];
    let file = lab.policy(&three());
    let ask = |arguments: &[&str]| lab.sluice(&net.machine, &[&["wire"], arguments].concat());
    ask(&["m0", "m0", "--policy", &file, "--rate", "1mbit"]).exits(2).says("named twice");
    ask(&["m0", "m9", "--policy", &file, "--rate", "1mbit"]).exits(2).says("m9");
    ask(&["m0", "m1", "--policy", &file]).exits(2).says("no rate").says("--rate");
    ask(&["m0", "m1", "--policy", &file, "--rate", "fast"]).exits(2).says("fast");
    ask(&["m0", "m1"]).exits(2).says("not part of a wire").says("--policy");
    ask(&["m0", "lo", "--policy", &file, "--rate", "1mbit"])
        .exits(2)
        .says("lo carries")
        .says("name two Ethernet interfaces")
        .says("m0, m1");
    let marked = with(three(), "rules", json!([{ "priority": 1, "mark": 5, "class_id": 0 }]));
    ask(&["m0", "m1", "--policy", &lab.policy(&marked), "--rate", "1mbit"]).exits(2).says("which XDP does not see");
    net.machine.ip("addr add 10.91.0.7/24 dev m1");
    ask(&["m0", "m1", "--policy", &file, "--rate", "1mbit"]).exits(2).says("has the address 10.91.0.7/24");
    net.machine.ip("addr flush dev m1");
    net.machine.ip("link set m1 mtu 3000");
    ask(&["m0", "m1", "--policy", &file, "--rate", "1mbit"]).exits(2).says("1792").says("mtu 1770");
    net.machine.ip("link set m1 mtu 1500");
    assert_eq!([net.machine.state("m0"), net.machine.state("m1")], state, "nothing has changed");
    let process = net.begin(lab, &three(), "5mbit");
    ask(&["m0", "m1", "--policy", &file, "--rate", "1mbit"]).exits(2).says("another `sluice wire m0 m1` runs");
    end(process);
    assert_eq!([net.machine.state("m0"), net.machine.state("m1")], state);
}
