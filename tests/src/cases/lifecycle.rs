//! `up`, `status`, `apply`, `down`: their output, and that an interface is given back unchanged.

use crate::lab::{Engine, Lab, traces};
use crate::needs::Need;
use crate::net::{A, B, Pair};
use crate::policy::{by_port, port, three};
use crate::suite::Suite;
use crate::traffic::{self, Flow};
use serde_json::json;
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("lifecycle")
        .qdisc("round_trip", &[], round_trip)
        .tc_everywhere("round_trip", &[], round_trip)
        .any("auto_takes_the_best_engine", &[], auto_takes_the_best_engine)
        .both("two_interfaces_two_policies", &[], two_interfaces_two_policies)
        .both("link_down_and_up", &[], link_down_and_up)
        .any("profiles_go_up", &[], profiles_go_up)
        .any("inside_ip_netns_exec", &[Need::FirstMounts], inside_ip_netns_exec)
        .any("bpffs_is_mounted_where_it_is_not", &[Need::Icount], bpffs_is_mounted)
}

/// Sends a few packets to each class from a to b; all must arrive.
#[track_caller]
pub fn passes(pair: &Pair) {
    let flows = [0, 1, 2].map(|class| Flow::new(port(class), &[200], 400_000));
    let outcomes = traffic::run(&pair.a, &pair.b, B, &flows, Duration::from_millis(60), || 0);
    assert!(outcomes.iter().all(|one| one.received() > 0), "each stream has sent something");
}

fn round_trip(lab: &Lab) {
    let pair = lab.pair();
    let before = pair.a.state("a0");
    let policy = lab.policy(&three());
    lab.up(&pair.a, "a0", &policy, &["--rate", "20mbit", "--ingress-rate", "30mbit"]);
    let status = lab.status(&pair.a, "a0");
    assert_eq!((status.interface.as_str(), status.phase.as_str()), ("a0", "active"));
    assert_eq!(status.ifindex, pair.a.ifindex("a0"));
    assert_eq!(status.engine, lab.engine.name());
    assert_eq!((status.rate_bps, status.ingress_rate_bps), (Some(20_000_000), Some(30_000_000)));
    assert_eq!((status.policy.scheduler.as_str(), status.policy.generation), ("strict_priority", 1));
    assert_eq!((status.policy.source.as_str(), status.classifier.as_str()), (policy.as_str(), "tc"));
    assert!(status.policy.applied_s > 1_600_000_000, "applied at {}", status.policy.applied_s);
    assert!(status.split, "at 20 Mbit/s super-packets are split");
    assert_eq!(status.queues, 0);
    let names: Vec<&str> = status.direction("egress").classes.iter().map(|class| class.name.as_str()).collect();
    assert_eq!(names, ["control", "game", "bulk"]);
    let root = pair.a.root("a0").expect("a root qdisc");
    assert_eq!(root.kind, if lab.engine == Engine::Qdisc { status.qdisc.as_str() } else { "htb" });
    if lab.engine == Engine::Tc {
        let qdiscs = pair.a.qdiscs("a0");
        assert_eq!(qdiscs.iter().filter(|one| one.kind == "pfifo").count(), 3, "{qdiscs:?}");
    }
    let htb = ["sl_htb_egress", "sl_htb_ingress", "sl_ingress", "sl_split"];
    assert_eq!(pair.a.programs("a0"), if lab.engine == Engine::Tc { &htb[..] } else { &htb[2..] });
    passes(&pair);
    let status = lab.status(&pair.a, "a0");
    for class in [0, 1, 2] {
        assert!(status.egress(class).sent.pkts > 0, "class {class} has sent: {status:?}");
        assert_eq!(status.rule(&format!("to {class}")).pkts, status.egress(class).sent.pkts, "rule and class {class}");
        assert_eq!(status.egress(class).dropped.pkts, 0);
    }
    let text = lab.sluice(&pair.a, &["status"]).ok().stdout;
    assert!(text.contains("a0") && text.contains("bulk"), "{text}");

    let drr = lab.policy(&by_port("deficit_round_robin", json!([{ "id": 0, "name": "x" }, { "id": 2, "name": "y" }])));
    lab.sluice(&pair.a, &["apply", "a0", &drr]).ok();
    let status = lab.status(&pair.a, "a0");
    assert_eq!((status.policy.scheduler.as_str(), status.policy.generation), ("deficit_round_robin", 2));
    assert_eq!(status.rate_bps, Some(20_000_000), "the rate stays");
    assert_eq!(status.direction("egress").classes.len(), 2);
    passes(&pair);

    lab.try_up(&pair.a, "a0", &policy, &[]).exits(2).says("managed already");
    assert_eq!(lab.status(&pair.a, "a0").policy.generation, 2, "a refused `up` changes nothing");
    assert!(!traces(pair.a.inode).is_empty(), "while it is up there are traces, so the check for leftovers can fail");
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.state("a0"), before);
    assert!(traces(pair.a.inode).is_empty(), "{:?}", traces(pair.a.inode));
    passes(&pair);
    lab.sluice(&pair.a, &["down", "a0"]).exits(2).says("not managed");
    lab.sluice(&pair.a, &["status", "a0"]).exits(2).says("not managed");
    lab.sluice(&pair.a, &["apply", "a0", &policy]).exits(2).says("not managed");
}

fn auto_takes_the_best_engine(lab: &Lab) {
    let pair = lab.pair();
    let policy = lab.policy(&three());
    let best = if Need::BpfQdisc.is_met() { "qdisc" } else { "tc" };
    let why = format!("  engine {best}: this kernel has");
    let printed = lab.up(&pair.a, "a0", &policy, &["--rate", "20mbit"]).stdout;
    // The output lists only shortcomings that a user can remedy.
    assert!(printed.contains(&format!("engine {best} (")) && !printed.contains(&why), "{printed}");
    assert!(!printed.contains("SO_PRIORITY") && !printed.contains("super-packets"), "{printed}");
    lab.down(&pair.a, "a0");
    let printed = lab.up(&pair.a, "a0", &policy, &["--rate", "20mbit", "--verbose"]).stdout;
    assert!(printed.contains(&why) && printed.contains("super-packets"), "`up` says which engine, and why: {printed}");
    assert_eq!(lab.status(&pair.a, "a0").engine, best);
    lab.down(&pair.a, "a0");
}

fn two_interfaces_two_policies(lab: &Lab) {
    let net = lab.routed();
    let strict = lab.policy(&three());
    let drr = lab.policy(&by_port("deficit_round_robin", json!([{ "id": 0 }, { "id": 4 }])));
    lab.up(&net.router, "lan0", &strict, &["--rate", "30mbit"]);
    lab.up(&net.router, "wan0", &drr, &["--rate", "20mbit"]);
    let flows = [0, 4].map(|class| Flow::new(port(class), &[300], 800_000));
    traffic::run(&net.client, &net.server, crate::net::SERVER, &flows, Duration::from_millis(100), || 0);
    let wan = lab.status(&net.router, "wan0");
    assert!(wan.egress(0).sent.pkts > 0 && wan.egress(4).sent.pkts > 0, "{wan:?}");
    let lan = lab.status(&net.router, "lan0");
    assert_eq!(lan.egress(0).sent.pkts + lan.egress(1).sent.pkts + lan.egress(2).sent.pkts, 0, "{lan:?}");
    assert_eq!(lan.ingress(0).sent.pkts, wan.egress(0).sent.pkts);
    assert_eq!(lan.ingress(2).sent.pkts, wan.egress(4).sent.pkts, "the policy of lan0 has no class 4");
    lab.down(&net.router, "lan0");
    traffic::run(&net.client, &net.server, crate::net::SERVER, &flows, Duration::from_millis(50), || 0);
    assert!(lab.status(&net.router, "wan0").egress(0).sent.pkts > wan.egress(0).sent.pkts, "wan0 works on");
    lab.down(&net.router, "wan0");
}

fn link_down_and_up(lab: &Lab) {
    let pair = lab.pair();
    let before = pair.a.state("a0");
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "5mbit"]);
    let programs = pair.a.programs("a0");
    assert!(!programs.contains(&"sl_htb_ingress".to_owned()), "arrivals are not queued: {programs:?}");
    // Overload, so that packets are queued whenever the link goes down.
    let streams = traffic::start(&pair.a, &pair.b, B, &[Flow::new(port(2), &[1000], 20_000_000)]);
    for _ in 0..5 {
        let (_, received) = streams.so_far();
        crate::command::await_that("traffic flows", Duration::from_secs(10), || streams.so_far().1 > received + 20);
        pair.a.ip("link set a0 down");
        pair.a.ip("link set a0 up");
        // The kernel drops neighbours of a link that goes down.
        pair.a.ip(&format!("neigh replace {B} dev a0 lladdr {} nud permanent", crate::net::MAC_B));
        pair.a.ip(&format!("route replace {B} dev a0 src {A}"));
    }
    let (_, received) = streams.so_far();
    crate::command::await_that("traffic flows", Duration::from_secs(10), || streams.so_far().1 > received + 20);
    streams.finish_lossy();
    let status = lab.status(&pair.a, "a0");
    assert_eq!(status.egress(2).backlog.pkts, 0, "nothing is stuck: {status:?}");
    if lab.engine == Engine::Qdisc {
        assert!(status.egress(2).drops.get("reset").is_some_and(|n| *n > 0), "{status:?}");
    }
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.state("a0"), before);
}

fn profiles_go_up(lab: &Lab) {
    let pair = lab.pair();
    let before = pair.a.state("a0");
    let listed = lab.sluice(&pair.a, &["profiles"]).ok().stdout;
    assert!(listed.lines().any(|line| line == "gaming"), "{listed}");
    for profile in ["gaming", "default"] {
        lab.up(&pair.a, "a0", profile, &["--rate", "20mbit"]);
        assert_eq!(lab.status(&pair.a, "a0").policy.name, profile);
        lab.down(&pair.a, "a0");
    }
    assert_eq!(pair.a.state("a0"), before);
}

fn inside_ip_netns_exec(lab: &Lab) {
    let pair = lab.pair();
    let before = pair.a.state("a0");
    let binary = crate::lab::binary();
    let policy = lab.policy(&three());
    pair.a.exec(&format!("{} up a0 --policy {policy} --rate 20mbit", binary.display())).ok();
    // The mount namespace of the process is gone by now.
    passes(&pair);
    let inside = pair.a.exec(&format!("{} status a0 --json", binary.display())).ok().stdout;
    let status: crate::status::Status = serde_json::from_str(&inside).expect("JSON");
    assert!(status.egress(1).sent.pkts > 0, "{inside}");
    assert_eq!(lab.status(&pair.a, "a0").egress(1).sent, status.egress(1).sent, "the same from outside");
    pair.a.exec(&format!("{} down a0", binary.display())).ok();
    assert_eq!(pair.a.state("a0"), before);
}

/// Only in a virtual machine: no other program's bpffs is unmounted.
fn bpffs_is_mounted(lab: &Lab) {
    let pair = lab.pair();
    nix::mount::umount("/sys/fs/bpf").expect("unmounting bpffs");
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit"]);
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("the mounts");
    assert!(mounts.contains(" /sys/fs/bpf bpf "), "{mounts}");
    passes(&pair);
    lab.down(&pair.a, "a0");
}
