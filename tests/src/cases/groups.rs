//! Groups: the arrivals of several interfaces in one scheduler.

use crate::cases::assert_near;
use crate::cases::crash::points;
use crate::cases::sets::passes;
use crate::cases::upgrade::{POINTS as UPGRADE_POINTS, age};
use crate::command::await_that;
use crate::lab::{Engine, Lab, record};
use crate::needs::{Need, is_icount};
use crate::net::{End, Routed, wire, wire_routed};
use crate::policy::{by_port, port, with};
use crate::suite::Suite;
use crate::traffic::{self, Flow, Outcome};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("groups")
        .both("two_interfaces_share_one_rate", &[Need::Ifb], share)
        .both("eight_interfaces_share_one_rate", &[Need::Ifb], eight)
        .both("members_come_and_go_under_traffic", &[Need::Ifb], come_and_go)
        .both("members_change_with_the_policy", &[Need::Ifb], change)
        .both("a_deleted_device_is_made_again", &[Need::Ifb], device_deleted)
        .both("a_renamed_interface_stays_a_member", &[Need::Ifb], renamed)
        .both("rules_follow_a_member", &[Need::Ifb], rules_follow)
        .both("names_and_namespaces_of_members_change", &[Need::Ifb], exchanged)
        .both("a_set_moves_a_member", &[Need::Ifb], moved)
        .both("members_have_policies_of_their_own", &[Need::Ifb], own_policies)
        .both("upgrade_swaps_the_hooks_of_members", &[Need::Ifb], upgraded)
}

/// Tests that are the same on any kernel.
pub fn commands() -> Suite {
    Suite::new("groups")
        .alike_everywhere()
        .any("killed_at_any_point", &[Need::Ifb], killed)
        .both("down_needs_no_record", &[Need::Ifb], unreadable)
        .any("a_policy_is_kept_for_the_next_boot", &[Need::Ifb], kept)
        .any("bad_input", &[Need::Ifb], bad_input)
}

const FRAME: usize = 514;
const GROUP: &str = "lines0";
const LAN: &str = "10.78.0.1";
const WAN: &str = "10.79.0.1";

/// Two classes with the same share, under the discipline that is published for this with engine `qdisc`.
fn policy(lab: &Lab, members: &[&str]) -> Value {
    let scheduler = if lab.engine == Engine::Qdisc { "eevdf" } else { "deficit_round_robin" };
    let classes = json!([{ "id": 0, "name": "left", "limit": 50 }, { "id": 1, "name": "right", "limit": 50 }]);
    with(by_port(scheduler, classes), "arrivals_of", json!(members))
}

fn up(lab: &Lab, net: &Routed, members: &[&str]) {
    lab.up(&net.router, GROUP, &lab.policy(&policy(lab, members)), &["--ingress-rate", "10mbit"]);
}

/// Class 0 arrives at lan0, class 1 at wan0; each at so many bits per second.
fn arrive(lab: &Lab, net: &Routed, load: [u64; 2], time: Duration) -> [Outcome; 2] {
    let left = traffic::start(&net.client, &net.router, LAN, &[Flow::new(port(0), &[FRAME], load[0])]);
    let right = traffic::start(&net.server, &net.router, WAN, &[Flow::new(port(1), &[FRAME], load[1])]);
    std::thread::sleep(time);
    let lost = |class: u8| lab.status(&net.router, GROUP).ingress(class).dropped.pkts;
    left.stop();
    right.stop();
    [left.finish(|| lost(0)).remove(0), right.finish(|| lost(1)).remove(0)]
}

/// One view of both interfaces: what one class leaves, the other gets, and together they have the rate.
fn share(lab: &Lab) {
    let net = lab.routed();
    let before = [net.router.state("lan0"), net.router.state("wan0")];
    up(lab, &net, &["lan0", "wan0"]);
    let printed = lab.sluice(&net.router, &["status", GROUP]).ok().stdout;
    assert!(printed.contains("arrivals of lan0, wan0 shaped to 10 Mbit/s"), "{printed}");
    let outcomes = arrive(lab, &net, [20_000_000, 20_000_000], Duration::from_millis(1500));
    let status = lab.status(&net.router, GROUP);
    for (class, outcome) in (0..).zip(&outcomes) {
        let class = status.ingress(class);
        assert_eq!((class.sent.pkts, class.dropped.pkts), (outcome.received(), outcome.lost()), "{class:?}");
    }
    if is_icount() {
        let left = outcomes[0].between(outcomes[0].arrivals[0].at_ns + 300_000_000, outcomes[0].ended_ns);
        assert_near("the class of one of them", left.bps(Duration::ZERO, 0), 5e6, 0.01);
        assert_near("both interfaces together", together_bps(outcomes.into()), 10e6, 0.001);
    }
    lab.down(&net.router, GROUP);
    assert_eq!([net.router.state("lan0"), net.router.state("wan0")], before, "the group is gone");
}

/// What arrives from several senders together, bits per second.
fn together_bps(outcomes: Vec<Outcome>) -> f64 {
    let first_ns = outcomes.iter().map(|outcome| outcome.arrivals[0].at_ns).max().expect("some");
    let ended_ns = outcomes.iter().map(|outcome| outcome.ended_ns).min().expect("some");
    let mut arrivals: Vec<_> = outcomes.into_iter().flat_map(|outcome| outcome.arrivals).collect();
    arrivals.sort_by_key(|arrival| arrival.at_ns);
    let all = Outcome { sent: arrivals.len() as u64, ended_ns, arrivals };
    all.between(first_ns + 300_000_000, ended_ns).bps(Duration::ZERO, 0)
}

/// A rate over eight interfaces, each with a class of its own.
fn eight(lab: &Lab) {
    let (router, client) = (lab.ns("router"), lab.ns("client"));
    let names: Vec<String> = (0..8).map(|n| format!("m{n}")).collect();
    for (n, name) in names.iter().enumerate() {
        let [near, far] = [1, 2].map(|host| (format!("10.80.{n}.{host}"), format!("02:00:00:80:{n:02}:{host:02}")));
        let near = End { ns: &router, dev: name, address: &near.0, mac: &near.1 };
        wire(&End { ns: &client, dev: &format!("c{n}"), address: &far.0, mac: &far.1 }, &near, "");
    }
    for name in &names {
        let is_up = || router.ip(&format!("link show dev {name}")).contains("state UP");
        await_that("an end of the router is up", Duration::from_secs(10), is_up);
    }
    let scheduler = if lab.engine == Engine::Qdisc { "eevdf" } else { "deficit_round_robin" };
    let classes: Vec<Value> = (0..8).map(|n| json!({ "id": n, "name": format!("from {n}"), "limit": 50 })).collect();
    let policy = with(by_port(scheduler, json!(classes)), "arrivals_of", json!(names));
    lab.up(&router, GROUP, &lab.policy(&policy), &["--ingress-rate", "10mbit"]);
    let start = |n: u8| {
        let flow = Flow::new(port(n), &[FRAME], 2_500_000);
        traffic::start(&client, &router, &format!("10.80.{n}.1"), &[flow])
    };
    let streams: Vec<_> = (0..8).map(start).collect();
    std::thread::sleep(Duration::from_millis(1500));
    streams.iter().for_each(|stream| stream.stop());
    let lost = |class: u8| lab.status(&router, GROUP).ingress(class).dropped.pkts;
    let finished = (0..8).zip(streams).map(|(class, stream)| stream.finish(|| lost(class)).remove(0));
    let outcomes: Vec<Outcome> = finished.collect();
    for (class, outcome) in (0..).zip(&outcomes) {
        assert!(outcome.received() > 50, "class {class}: {} packets", outcome.received());
    }
    if is_icount() {
        assert_near("eight interfaces together", together_bps(outcomes), 10e6, 0.001);
    }
    lab.down(&router, GROUP);
}

/// An interface of a group that disappears leaves the other alone, and is queued again when it is back.
fn come_and_go(lab: &Lab) {
    let net = lab.routed();
    up(lab, &net, &["lan0", "wan0", "later0"]);
    let ensure_adds = |names: &[&str]| {
        let said = lab.sluice(&net.router, &["ensure", GROUP]).ok().stdout;
        names.iter().for_each(|name| assert!(said.contains(&format!("arrivals of {name} ")), "{said}"));
    };
    let streams = traffic::start(&net.client, &net.router, LAN, &[Flow::new(port(0), &[FRAME], 2_000_000)]);
    net.router.ip("link del wan0");
    std::thread::sleep(Duration::from_millis(200));
    ensure_adds(&[]);
    net.router.ip("link add later0 type veth peer name later1");
    net.router.ip("link set later0 up");
    ensure_adds(&["later0"]);
    std::thread::sleep(Duration::from_millis(200));
    let outcome = streams.finish(|| lab.status(&net.router, GROUP).ingress(0).dropped.pkts).remove(0);
    assert_eq!(outcome.lost(), 0, "arrivals of the other interface go on");
    net.router.ip("link del lan0");
    wire_routed(&net, "");
    ensure_adds(&["lan0", "wan0"]);
    let before = lab.status(&net.router, GROUP).ingress(1).sent.pkts;
    let outcomes = arrive(lab, &net, [1_000_000, 1_000_000], Duration::from_millis(300));
    assert_eq!(lab.status(&net.router, GROUP).ingress(1).sent.pkts - before, outcomes[1].received());
    lab.down(&net.router, GROUP);
}

fn change(lab: &Lab) {
    let net = lab.routed();
    let before = [net.router.state("lan0"), net.router.state("wan0")];
    up(lab, &net, &["lan0"]);
    let sent = |class: u8| lab.status(&net.router, GROUP).ingress(class).sent.pkts;
    arrive(lab, &net, [500_000, 500_000], Duration::from_millis(200));
    assert!(sent(0) > 0 && sent(1) == 0, "wan0 is no member");
    let both = lab.policy(&policy(lab, &["lan0", "wan0"]));
    let planned = lab.sluice(&net.router, &["apply", GROUP, &both, "--dry-run"]).ok().stdout;
    assert!(planned.contains("arrivals_of lan0 -> lan0, wan0"), "{planned}");
    lab.sluice(&net.router, &["apply", GROUP, &both]).ok();
    arrive(lab, &net, [500_000, 500_000], Duration::from_millis(200));
    let right = sent(1);
    assert!(right > 0, "wan0 is a member now");
    lab.sluice(&net.router, &["rollback", GROUP]).ok();
    arrive(lab, &net, [500_000, 500_000], Duration::from_millis(200));
    assert_eq!(sent(1), right, "wan0 is no member any more");
    // A second group with a discipline of its own, beside the first.
    let other = with(by_port("strict_priority", json!([{ "id": 1, "priority": 0 }])), "arrivals_of", json!(["wan0"]));
    lab.up(&net.router, "lines1", &lab.policy(&other), &["--ingress-rate", "5mbit"]);
    let outcomes = arrive(lab, &net, [500_000, 500_000], Duration::from_millis(200));
    assert_eq!(lab.status(&net.router, "lines1").ingress(1).sent.pkts, outcomes[1].received());
    lab.down(&net.router, "lines1");
    lab.down(&net.router, GROUP);
    assert_eq!([net.router.state("lan0"), net.router.state("wan0")], before);
}

/// The group's arrivals of an interface are counted there, all of them.
fn assert_counted(lab: &Lab, net: &Routed, group: &str) {
    let sent = || [0, 1].map(|class| lab.status(&net.router, group).ingress(class).sent.pkts);
    let before = sent();
    let outcomes = arrive(lab, net, [500_000, 500_000], Duration::from_millis(200));
    let after = sent();
    for class in 0..2 {
        assert!(outcomes[class].sent > 10, "{:?}", outcomes[class]);
        assert_eq!(after[class] - before[class], outcomes[class].sent, "class {class}");
    }
}

fn device_deleted(lab: &Lab) {
    let net = lab.routed();
    let before = [net.router.state("lan0"), net.router.state("wan0")];
    up(lab, &net, &["lan0", "wan0"]);
    let number = net.router.ifindex(GROUP);
    net.router.ip(&format!("link del {GROUP}"));
    lab.sluice(&net.router, &["status", GROUP]).exits(2).says("was deleted").says("sluice ensure lines0");
    let said = lab.sluice(&net.router, &["ensure"]).ok().stdout;
    assert!(said.contains("the device lines0 was deleted; it is back"), "{said}");
    assert_eq!(net.router.ifindex(GROUP), number);
    assert_counted(lab, &net, GROUP);
    net.router.ip(&format!("link del {GROUP}"));
    lab.down(&net.router, GROUP);
    assert_eq!([net.router.state("lan0"), net.router.state("wan0")], before);
}

fn renamed(lab: &Lab) {
    let net = lab.routed();
    let before = net.router.state("lan0").replace("lan0", "other0");
    up(lab, &net, &["lan0", "wan0"]);
    for command in ["set lan0 down", "set lan0 name other0", "set other0 up"] {
        net.router.ip(&format!("link {command}"));
    }
    let said = lab.sluice(&net.router, &["ensure", GROUP]).ok().stdout;
    assert!(said.contains("everything is in place"), "{said}");
    let printed = lab.sluice(&net.router, &["status", GROUP]).ok().stdout;
    assert!(printed.contains("arrivals of other0, wan0"), "{printed}");
    assert_counted(lab, &net, GROUP);
    lab.down(&net.router, GROUP);
    crate::cases::vanishing::settles(&net.router, "other0");
    assert_eq!(net.router.state("other0"), before);
}

/// A rule about a member holds for the interface that comes back with its name, and is no error meanwhile.
fn rules_follow(lab: &Lab) {
    let net = lab.routed();
    let rules = json!([{ "priority": 1, "in_interface": "wan0", "class_id": 1 }]);
    let by_interface = with(with(policy(lab, &["lan0", "wan0"]), "rules", rules), "default_class", json!(0));
    let by_interface = lab.policy(&by_interface);
    lab.up(&net.router, GROUP, &by_interface, &["--ingress-rate", "10mbit"]);
    assert_counted(lab, &net, GROUP);
    net.router.ip("link del lan0");
    net.router.ip("link del wan0");
    lab.sluice(&net.router, &["apply", GROUP, &by_interface]).ok();
    wire_routed(&net, "");
    lab.sluice(&net.router, &["ensure", GROUP]).ok();
    assert_counted(lab, &net, GROUP);
    lab.down(&net.router, GROUP);
}

/// One member takes the name of another, and one leaves for another namespace: each is told from the other, and none is held.
fn exchanged(lab: &Lab) {
    let net = lab.routed();
    let elsewhere = lab.ns("elsewhere");
    up(lab, &net, &["lan0", "wan0"]);
    let shown = || lab.sluice(&net.router, &["status", GROUP]).ok().stdout;
    let rename = |from: &str, to: &str| {
        for command in [format!("set {from} down"), format!("set {from} name {to}"), format!("set {to} up")] {
            net.router.ip(&format!("link {command}"));
        }
    };
    rename("lan0", "old0");
    rename("wan0", "lan0");
    lab.sluice(&net.router, &["ensure", GROUP]).ok();
    assert!(shown().contains("arrivals of lan0 shaped"), "{}", shown());
    let before = lab.status(&net.router, GROUP).ingress(1).sent.pkts;
    let outcomes = arrive(lab, &net, [500_000, 500_000], Duration::from_millis(200));
    assert_eq!(lab.status(&net.router, GROUP).ingress(1).sent.pkts - before, outcomes[1].sent);
    net.router.ip(&format!("link set lan0 netns {}", elsewhere.name));
    elsewhere.ip("addr add 10.79.0.1/24 dev lan0");
    elsewhere.ip("link set lan0 up");
    assert!(shown().contains("lan0 of the group is not here any more"), "{}", shown());
    lab.sluice(&net.router, &["ensure", GROUP]).ok();
    assert!(shown().contains("no interface of the group is there"), "{}", shown());
    net.server.exec("ping -c 1 -W 5 10.79.0.1").ok();
    lab.down(&net.router, GROUP);
}

fn moved(lab: &Lab) {
    let net = lab.routed();
    let before = [net.router.state("lan0"), net.router.state("wan0")];
    let set = |name: &str, first: &[&str], second: &[&str]| {
        let link = json!({ "ingress_rate": "10mbit" });
        let group = |members: &[&str]| json!({ "arrivals_of": members, "link": link });
        let mut common = policy(lab, &[]);
        common.as_object_mut().expect("an object").remove("arrivals_of");
        let set = with(common, "interfaces", json!({ GROUP: group(first), "lines1": group(second) }));
        lab.file(name, set.to_string()).display().to_string()
    };
    let (old, new) = (set("old.json", &["lan0", "wan0"], &["late0"]), set("new.json", &["late0"], &["wan0", "lan0"]));
    lab.sluice(&net.router, &["up", "--policy", &old, "--engine", lab.engine.name()]).ok();
    for (policy, group) in [(&old, GROUP), (&new, "lines1"), (&old, GROUP)] {
        let said = lab.sluice(&net.router, &["apply", policy]).ok();
        assert!(!said.stdout.contains("XDP program is attached"), "{said}");
        assert_counted(lab, &net, group);
    }
    // One member cannot be taken from a group alone.
    let refused = lab.sluice(&net.router, &["apply", "lines1", &new]).exits(2);
    assert!(refused.stderr.contains("queued in lines0 already"), "{refused}");
    lab.sluice(&net.router, &["down", GROUP, "lines1"]).ok();
    assert_eq!([net.router.state("lan0"), net.router.state("wan0")], before);
}

/// The policy of a member classifies and counts its arrivals before they come to the group, whichever was first.
fn own_policies(lab: &Lab) {
    let net = lab.routed();
    let own = lab.policy(&by_port("strict_priority", json!([{ "id": 0, "priority": 0 }])));
    lab.up(&net.router, "lan0", &own, &["--rate", "50mbit"]);
    up(lab, &net, &["lan0", "wan0"]);
    lab.up(&net.router, "wan0", &own, &["--rate", "50mbit"]);
    let outcomes = arrive(lab, &net, [1_000_000, 1_000_000], Duration::from_millis(300));
    assert_eq!(lab.status(&net.router, GROUP).ingress(0).sent.pkts, outcomes[0].received());
    assert_eq!(lab.status(&net.router, GROUP).ingress(1).sent.pkts, outcomes[1].received());
    assert_eq!(lab.status(&net.router, "lan0").ingress(0).sent.pkts, outcomes[0].sent);
    assert_eq!(lab.status(&net.router, "wan0").ingress(0).sent.pkts, outcomes[1].sent);
    // The group still knows the class of what arrives there.
    lab.down(&net.router, "wan0");
    let before = lab.status(&net.router, GROUP).ingress(1).sent.pkts;
    let outcomes = arrive(lab, &net, [1_000_000, 1_000_000], Duration::from_millis(200));
    assert_eq!(lab.status(&net.router, GROUP).ingress(1).sent.pkts - before, outcomes[1].received());
    for device in ["lan0", GROUP] {
        lab.down(&net.router, device);
    }
}

fn upgraded(lab: &Lab) {
    let net = lab.routed();
    let before = [net.router.state("lan0"), net.router.state("wan0")];
    up(lab, &net, &["lan0", "wan0"]);
    age(&net.router);
    let said = lab.sluice(&net.router, &["upgrade", GROUP]).ok().stdout;
    assert!(said.contains("runs the programs of this version"), "{said}");
    let outcomes = arrive(lab, &net, [1_000_000, 1_000_000], Duration::from_millis(200));
    for (class, outcome) in (0..).zip(&outcomes) {
        assert_eq!(lab.status(&net.router, GROUP).ingress(class).sent.pkts, outcome.received());
    }
    lab.down(&net.router, GROUP);
    assert_eq!([net.router.state("lan0"), net.router.state("wan0")], before);
}

/// The kill points of a command; in a slow machine, every third.
fn some_points(command: &str) -> Vec<&'static str> {
    points(command).into_iter().step_by(if is_icount() { 3 } else { 1 }).collect()
}

/// What is left after a death at any point goes with `down`, and packets pass meanwhile.
fn killed(lab: &Lab) {
    let net = lab.routed();
    let gone = |point: &str, before: &[String; 2]| {
        assert_eq!([net.router.state("lan0"), net.router.state("wan0")], *before, "after a death at {point}");
        assert!(!net.router.interfaces().contains(&GROUP.to_owned()), "after a death at {point}");
        assert!(lab.leftovers().is_empty(), "after a death at {point}: {:?}", lab.leftovers());
    };
    let before = [net.router.state("lan0"), net.router.state("wan0")];
    let (both, one) = (lab.policy(&policy(lab, &["lan0", "wan0"])), lab.policy(&policy(lab, &["lan0"])));
    let engine = lab.engine.name();
    let up = ["up", GROUP, "--policy", &both, "--engine", engine, "--ingress-rate", "10mbit"];
    for point in ["group-made"].into_iter().chain(some_points("up")) {
        lab.killed_at(point, &net.router, &up);
        passes(&net);
        lab.down(&net.router, GROUP);
        gone(point, &before);
    }
    for point in some_points("apply") {
        lab.sluice(&net.router, &up).ok();
        lab.killed_at(point, &net.router, &["apply", GROUP, &one]);
        passes(&net);
        lab.sluice(&net.router, &["apply", GROUP, &one]).ok();
        lab.killed_at(point, &net.router, &["apply", GROUP, &both]);
        passes(&net);
        lab.down(&net.router, GROUP);
        gone(point, &before);
    }
    for point in UPGRADE_POINTS {
        lab.sluice(&net.router, &up).ok();
        age(&net.router);
        lab.killed_at(point, &net.router, &["upgrade", GROUP]);
        passes(&net);
        lab.down(&net.router, GROUP);
        gone(point, &before);
    }
    for point in some_points("down") {
        lab.sluice(&net.router, &up).ok();
        lab.killed_at(point, &net.router, &["down", GROUP]);
        passes(&net);
        lab.down(&net.router, GROUP);
        gone(point, &before);
    }
}

/// A record that cannot be read, or is gone.
fn unreadable(lab: &Lab) {
    let net = lab.routed();
    let before = [net.router.state("lan0"), net.router.state("wan0")];
    type Damage<'a> = &'a dyn Fn(&Path);
    let damage: [Damage<'_>; 2] =
        [&|record| fs::write(record, r#"{ "from": "the future" }"#).expect("writing"), &|record| {
            fs::remove_file(record).expect("removing")
        }];
    for damage in damage {
        up(lab, &net, &["lan0", "wan0"]);
        damage(&record(&net.router));
        lab.sluice(&net.router, &["status", GROUP]).exits(2).says("sluice down lines0");
        lab.down(&net.router, GROUP);
        assert_eq!([net.router.state("lan0"), net.router.state("wan0")], before);
        assert!(!net.router.interfaces().contains(&GROUP.to_owned()));
        assert!(lab.leftovers().is_empty(), "{:?}", lab.leftovers());
    }
}

/// As the unit calls `up`, before and after a policy was kept.
fn kept(lab: &Lab) {
    let net = lab.routed();
    let files = [lab.policy(&policy(lab, &["lan0"])), lab.policy(&policy(lab, &["lan0", "wan0"]))];
    let up = ["up", GROUP, "--policy", &files[0], "--restore", "saved", "--ingress-rate", "10mbit"];
    let members = || lab.sluice(&net.router, &["status", GROUP]).ok().stdout;
    lab.sluice(&net.router, &up).ok();
    assert!(members().contains("arrivals of lan0 shaped"), "{}", members());
    lab.sluice(&net.router, &["apply", GROUP, &files[1], "--at-boot"]).ok();
    lab.down(&net.router, GROUP);
    lab.sluice(&net.router, &up).ok();
    assert!(members().contains("arrivals of lan0, wan0 shaped"), "{}", members());
    lab.down(&net.router, GROUP);
}

fn bad_input(lab: &Lab) {
    let net = lab.routed();
    let before = [net.router.state("lan0"), net.router.state("wan0")];
    let of = |members: &[&str]| lab.policy(&policy(lab, members));
    let refused = |words: &[&str], says: &str| lab.sluice(&net.router, words).exits(2).says(says).says("help: ");
    refused(&["up", GROUP, "--policy", &of(&["lan0"])], "without a rate of arrivals");
    refused(&["up", "lan0", "--policy", &of(&["wan0"]), "--ingress-rate", "10mbit"], "an interface lan0 already");
    refused(&["up", GROUP, "--policy", &of(&[GROUP]), "--ingress-rate", "10mbit"], "names itself");
    refused(&["up", GROUP, "--policy", &of(&["lan0", "lan0"]), "--ingress-rate", "10mbit"], "has lan0 twice");
    refused(&["check", &of(&[])], "names no interface");
    refused(&["up", GROUP, "--policy", &of(&["sluice-in9"]), "--ingress-rate", "10mbit"], "that sluice has made");
    assert!(!net.router.interfaces().contains(&GROUP.to_owned()), "nothing is left");
    let plain = lab.policy(&by_port("strict_priority", json!([{ "id": 0, "priority": 0 }])));
    lab.sluice(&net.router, &["up", "wan0", "--policy", &plain, "--ingress-rate", "10mbit"]).ok();
    refused(&["up", GROUP, "--policy", &of(&["lan0", "wan0"]), "--ingress-rate", "10mbit"], "queued by its own policy");
    lab.sluice(&net.router, &["down", "wan0"]).ok();
    lab.sluice(&net.router, &["up", GROUP, "--policy", &of(&["lan0"]), "--ingress-rate", "10mbit"]).ok();
    refused(&["up", "lines1", "--policy", &of(&["lan0"]), "--ingress-rate", "10mbit"], "queued in lines0 already");
    refused(&["up", "lan0", "--policy", &plain, "--ingress-rate", "10mbit"], "queued in lines0 already");
    refused(&["apply", GROUP, &plain], "whether this is a group");
    let forwards = json!([{ "name": "web", "protocol": "tcp", "port": 8080, "targets": crate::net::SERVER }]);
    let forwards =
        lab.policy(&with(by_port("strict_priority", json!([{ "id": 0, "priority": 0 }])), "forwards", forwards));
    refused(&["up", "lan0", "--policy", &forwards], "lan0 is in the group lines0, and so cannot forward ports");
    lab.sluice(&net.router, &["up", "lan0", "--policy", &plain]).ok();
    refused(&["apply", "lan0", &forwards], "lan0 is in the group lines0, and so cannot forward ports");
    lab.sluice(&net.router, &["down", "lan0"]).ok();
    lab.sluice(&net.router, &["apply", GROUP, &of(&["lan0", "late0"])]).ok();
    refused(&["up", "lines1", "--policy", &of(&["late0"]), "--ingress-rate", "10mbit"], "queued in lines0 already");
    refused(&["up", "lines1", "--policy", &of(&["late1"]), "--rate", "10mbit"], "give --ingress-rate instead");
    for name in ["g%d", "-a", "sluice-in9", "all"] {
        refused(&["up", "--policy", &of(&["late1"]), "--ingress-rate", "10mbit", "--", name], "cannot be the name");
    }
    assert!(!net.router.interfaces().iter().any(|name| name.starts_with('g')), "{:?}", net.router.interfaces());
    lab.sluice(&net.router, &["down", GROUP]).ok();
    lab.sluice(&net.router, &["up", "wan0", "--policy", &forwards]).ok();
    refused(&["up", GROUP, "--policy", &of(&["lan0", "wan0"]), "--ingress-rate", "10mbit"], "wan0 forwards ports");
    lab.sluice(&net.router, &["down", "wan0"]).ok();
    assert_eq!([net.router.state("lan0"), net.router.state("wan0")], before);
}
