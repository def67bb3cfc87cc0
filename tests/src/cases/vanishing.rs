//! Managed interfaces and namespaces that are deleted or renamed.

use crate::cases::lifecycle::passes;
use crate::command::run;
use crate::lab::{Lab, binary, traces};
use crate::needs::Need;
use crate::net::{Ns, wire_pair};
use crate::policy::{other, three};
use crate::suite::Suite;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

pub fn suite() -> Suite {
    Suite::new("vanishing")
        .both("interface_deleted", &[], interface_deleted)
        .both("interface_deleted_and_back", &[], interface_deleted_and_back)
        .both("interface_renamed", &[], interface_renamed)
        .both("former_name_taken", &[], former_name_taken)
        .both("namespace_deleted", &[], namespace_deleted)
        .any("records_of_vanished_interfaces_are_removed", &[], records_of_vanished_interfaces_are_removed)
        .any("down_with_run_full", &[], down_with_run_full)
        .qdisc("auto_falls_back", &[Need::Htb], auto_falls_back)
}

/// Tests that are the same on any kernel.
pub fn commands() -> Suite {
    Suite::new("vanishing").alike_everywhere().any("namespace_number_taken", &[], namespace_number_taken)
}

fn interface_deleted(lab: &Lab) {
    let pair = lab.pair();
    let policy = lab.policy(&three());
    lab.up(&pair.a, "a0", &policy, &["--rate", "20mbit", "--ingress-rate", "20mbit"]);
    pair.a.ip("link del a0");
    lab.sluice(&pair.a, &["status", "a0"]).exits(2).says("gone");
    lab.sluice(&pair.a, &["status"]).ok().says("left over");
    lab.down(&pair.a, "a0");
    assert!(lab.leftovers().is_empty(), "{:?}", lab.leftovers());
    wire_pair(&pair, "");
    let before = pair.a.state("a0");
    lab.up(&pair.a, "a0", &policy, &["--rate", "20mbit"]);
    passes(&pair);
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.state("a0"), before);
}

/// An interface is deleted and created again, as when a VPN reconnects, and the boot unit brings it up again.
fn interface_deleted_and_back(lab: &Lab) {
    let pair = lab.pair();
    let policy = lab.policy(&three());
    lab.up(&pair.a, "a0", &policy, &["--rate", "20mbit", "--ingress-rate", "20mbit"]);
    pair.a.ip("link del a0");
    wire_pair(&pair, "");
    let before = pair.a.state("a0").replace(&old_devices(&pair.a), "");
    let printed = lab.up(&pair.a, "a0", &policy, &["--rate", "20mbit"]).stdout;
    assert!(printed.contains("its remains were removed"), "{printed}");
    passes(&pair);
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.state("a0"), before);
}

fn old_devices(ns: &Ns) -> String {
    let names: Vec<String> = ns.interfaces().into_iter().filter(|name| name.starts_with("sluice-")).collect();
    names.iter().map(|name| format!(" {name}")).collect()
}

/// The interface works on under its new name; `down` by either name gives it back completely.
fn interface_renamed(lab: &Lab) {
    renamed(lab, "renamed");
    renamed(lab, "a0");
}

fn renamed(lab: &Lab, by: &str) {
    let pair = lab.pair();
    let before = pair.a.state("a0").replace("a0", "renamed");
    let policy = lab.policy(&three());
    lab.up(&pair.a, "a0", &policy, &["--rate", "20mbit"]);
    pair.a.ip("link set a0 down");
    pair.a.ip("link set a0 name renamed");
    pair.a.ip("link set renamed up");
    pair.a.ip(&format!("neigh replace {} dev renamed lladdr {} nud permanent", crate::net::B, crate::net::MAC_B));
    passes(&pair);
    if by == "renamed" {
        assert!(lab.status(&pair.a, by).egress(1).sent.pkts > 0);
        lab.try_up(&pair.a, by, &policy, &[]).exits(2).says("managed already");
    }
    lab.down(&pair.a, by);
    settles(&pair.a, "renamed");
    assert_eq!(pair.a.state("renamed"), before, "after `down {by}`");
    passes(&pair);
}

/// The kernel reports a restored carrier once a second at most.
pub fn settles(ns: &Ns, dev: &str) {
    let settled = Instant::now() + Duration::from_secs(3);
    while ns.state(dev).contains("NO-CARRIER") && Instant::now() < settled {
        thread::sleep(Duration::from_millis(50));
    }
}

/// Another interface gets the former name of a managed one, and comes under management too: each keeps its own policy.
fn former_name_taken(lab: &Lab) {
    let pair = lab.pair();
    let (policy, other) = (lab.policy(&three()), lab.policy(&other()));
    let before = pair.a.state("a0").replace("a0", "wan0");
    lab.up(&pair.a, "a0", &policy, &["--rate", "20mbit"]);
    pair.a.ip("link set a0 down");
    pair.a.ip("link set a0 name wan0");
    pair.a.ip("link set wan0 up");
    let printed = lab.sluice(&pair.a, &["status"]).ok();
    assert!(printed.stdout.contains("wan0  policy") && !printed.stderr.contains("left over"), "{printed}");
    for gone in [true, false] {
        pair.a.ip("link add a0 type veth peer name a1");
        pair.a.ip("link set a0 up");
        lab.up(&pair.a, "a0", &other, &["--rate", "10mbit"]);
        let printed = lab.sluice(&pair.a, &["status"]).ok();
        assert!(printed.stdout.contains("wan0  policy") && printed.stdout.contains("a0  policy"), "{printed}");
        assert_eq!(lab.sluice(&pair.a, &["history", "wan0"]).ok().stdout.matches(" up ").count(), 1);
        if gone {
            pair.a.ip("link del a0");
        }
        lab.down(&pair.a, "a0");
        lab.status(&pair.a, "wan0");
        assert_eq!(pair.a.root("wan0").map(|root| root.handle != "0:"), Some(true), "`down a0` has left it alone");
    }
    pair.a.ip("link del a0");
    lab.down(&pair.a, "wan0");
    assert!(lab.leftovers().is_empty(), "{:?}", lab.leftovers());
    settles(&pair.a, "wan0");
    assert_eq!(pair.a.state("wan0"), before);
}

/// A namespace is deleted, and the next one has its number, and an interface of the same name and number: a container that is started again.
fn namespace_number_taken(lab: &Lab) {
    let policy = lab.policy(&three());
    let wired = |ns: &Ns| {
        ns.ip("link add a0 type veth peer name a1");
        ns.ip("link set a0 up");
        ns.ifindex("a0")
    };
    // The kernel gives the lowest free number, soon after a namespace has gone, and files of /proc take some too: the namespaces that have got
    // another fill the gaps, until one gets the number of the one before it.
    let mut others = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(60);
    let (next, inode, ifindex) = loop {
        // Not the lab's, which would keep it from going.
        let first = Ns::create("again");
        let (inode, ifindex) = (first.inode, wired(&first));
        lab.up(&first, "a0", &policy, &["--rate", "20mbit"]);
        drop(first);
        thread::sleep(Duration::from_millis(300));
        let next = Ns::create("again");
        if next.inode == inode {
            break (next, inode, ifindex);
        }
        assert!(Instant::now() < deadline, "the number {inode} was given to nobody");
        others.push(next);
    };
    assert_eq!(wired(&next), ifindex);
    assert!(!traces(inode).is_empty(), "the former namespace has left a record");
    lab.sluice(&next, &["status", "a0"]).exits(2);
    lab.up(&next, "a0", &policy, &["--rate", "20mbit"]);
    lab.status(&next, "a0");
    lab.sluice(&next, &["up", "a0", "--policy", &policy]).exits(2).says("managed already");
    lab.down(&next, "a0");
    assert!(lab.leftovers().is_empty(), "{:?}", lab.leftovers());
}

/// A namespace is deleted with its interfaces, so no `down` can run in it: the next command cleans up.
fn namespace_deleted(lab: &Lab) {
    let pair = lab.pair();
    let policy = lab.policy(&three());
    lab.up(&pair.a, "a0", &policy, &["--rate", "20mbit"]);
    lab.sluice(&pair.a, &["apply", "a0", &policy, "--at-boot"]).ok();
    let kept = format!("/var/lib/sluice/boot/a0@{}.json", pair.a.inode);
    assert!(!traces(pair.a.inode).is_empty() && Path::new(&kept).exists());
    pair.a.remove();
    let next = lab.pair();
    lab.up(&next.a, "a0", &policy, &["--rate", "20mbit"]);
    passes(&next);
    lab.down(&next.a, "a0");
    assert!(traces(pair.a.inode).is_empty(), "no command has cleaned up: {:?}", traces(pair.a.inode));
    assert!(!Path::new(&kept).exists(), "the next namespace with this number would get its policy");
}

/// Containers' interfaces come and go without `down`.
fn records_of_vanished_interfaces_are_removed(lab: &Lab) {
    let pair = lab.pair();
    let policy = lab.policy(&three());
    let up = |dev: &str| lab.up(&pair.a, dev, &policy, &["--rate", "20mbit", "--ingress-rate", "20mbit"]);
    for collector in ["up", "ensure"] {
        up("a0");
        pair.a.ip("link del a0");
        assert!(!lab.leftovers().is_empty(), "a record, pins and devices are left");
        if collector == "up" {
            pair.a.ip("link add c0 type veth peer name c1");
            up("c0");
            lab.down(&pair.a, "c0");
        } else {
            let printed = lab.sluice(&pair.a, &["ensure"]).ok().stdout;
            assert!(printed.contains("a0 has gone: its remains are removed"), "{printed}");
        }
        assert!(lab.leftovers().is_empty(), "by {collector}: {:?}", lab.leftovers());
        wire_pair(&pair, "");
    }
}

fn down_with_run_full(lab: &Lab) {
    let pair = lab.pair();
    let before = pair.a.state("a0");
    let program = std::fs::canonicalize(binary()).expect("SLUICE_BIN names the program");
    let sluice = format!("{} --netns {}", program.display(), pair.a.name);
    let script = format!(
        "set -e; mkdir -p /run/sluice; mount -t tmpfs -o size=64k tmpfs /run/sluice; {sluice} up a0 --policy {} --rate 20mbit; \
         if dd if=/dev/zero of=/run/sluice/fill bs=4k; then exit 9; fi; {sluice} down a0; ls /run/sluice",
        lab.policy(&three())
    );
    let output = run(Command::new("unshare").args(["-m", "sh", "-c", &script])).ok();
    assert!(output.stdout.contains("a0 is as it was") && !output.stdout.contains("json"), "{output}");
    assert_eq!(pair.a.state("a0"), before);
}

/// A future kernel's verifier may refuse programs that today's accepts.
fn auto_falls_back(lab: &Lab) {
    let pair = lab.pair();
    let before = pair.a.state("a0");
    let policy = lab.policy(&three());
    let up = |engine: &str| {
        let mut command =
            lab.command(&pair.a, &["up", "a0", "--policy", &policy, "--rate", "20mbit", "--engine", engine]);
        run(command.env("SLUICE_FAULT", "load-qdisc:error"))
    };
    up("qdisc").exits(3).says("load-qdisc fails");
    assert_eq!(pair.a.state("a0"), before);
    let printed = up("auto").ok().stdout;
    assert!(printed.contains("engine tc instead of qdisc: load-qdisc fails"), "{printed}");
    assert_eq!(lab.status(&pair.a, "a0").engine, "tc");
    passes(&pair);
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.state("a0"), before);
}
