//! Foreign qdiscs and filters on an interface that comes under management.

use crate::cases::lifecycle::passes;
use crate::lab::{Engine, Lab, traces};
use crate::policy::three;
use crate::suite::Suite;
use std::path::PathBuf;

pub fn suite() -> Suite {
    Suite::new("neighbours")
        .both("other_clsact_filters_survive", &[], other_clsact_filters_survive)
        .any("a_foreign_qdisc_is_refused", &[], a_foreign_qdisc_is_refused)
        .both("force_replaces_and_saves", &[], force_replaces_and_saves)
        .both("a_foreign_device_is_refused", &[], a_foreign_device_is_refused)
        .both("doctor_knows_our_queues", &[], doctor_knows_our_queues)
        .both("a_root_that_was_replaced_is_noticed", &[], a_root_that_was_replaced_is_noticed)
}

/// A foreign filter of packets from 255.255.255.255.
const FILTER: &str = "protocol ip pref 10 u32 match u32 0xffffffff 0xffffffff at 12 classid 1:1";

fn other_clsact_filters_survive(lab: &Lab) {
    let pair = lab.pair();
    pair.a.tc("qdisc add dev a0 clsact");
    pair.a.tc(&format!("filter add dev a0 ingress {FILTER}"));
    pair.a.tc(&format!("filter add dev a0 egress {FILTER}"));
    let before = pair.a.state("a0");
    assert!(before.matches("pref 10 u32").count() >= 2, "both filters are in what is compared: {before}");
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit"]);
    for side in ["ingress", "egress"] {
        let shown = pair.a.tc(&format!("filter show dev a0 {side}"));
        assert!(shown.contains("pref 10 u32"), "{side} while it is up: {shown}");
    }
    passes(&pair);
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.state("a0"), before);
}

fn a_foreign_qdisc_is_refused(lab: &Lab) {
    let pair = lab.pair();
    pair.a.tc("qdisc add dev a0 root handle 5: htb default 7");
    pair.a.tc("class add dev a0 parent 5: classid 5:7 htb rate 90mbit");
    let before = pair.a.state("a0");
    let policy = lab.policy(&three());
    lab.try_up(&pair.a, "a0", &policy, &["--rate", "20mbit"]).exits(2).says("hand-made").says("--force").says("htb");
    assert_eq!(pair.a.state("a0"), before);
    assert!(traces(pair.a.inode).is_empty(), "{:?}", traces(pair.a.inode));
}

fn force_replaces_and_saves(lab: &Lab) {
    let pair = lab.pair();
    pair.a.tc("qdisc add dev a0 root handle 5: htb default 7");
    pair.a.tc("class add dev a0 parent 5: classid 5:7 htb rate 91mbit");
    let printed = lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit", "--force"]).stdout;
    let dump = printed.split_whitespace().find(|word| word.starts_with("/var/lib/sluice/")).map(PathBuf::from);
    let dump = dump.unwrap_or_else(|| panic!("`up --force` says where the dump is: {printed}"));
    let text = std::fs::read_to_string(&dump).expect("reading the dump");
    let _ = std::fs::remove_file(&dump);
    assert!(text.contains("htb 5:") && text.contains("5:7") && text.contains("91Mbit"), "{text}");
    passes(&pair);
    let printed = lab.down(&pair.a, "a0").stdout;
    assert!(printed.contains("not restored"), "{printed}");
    assert_eq!(pair.a.root("a0").map(|root| root.kind), Some("noqueue".to_owned()), "the kernel's own is back");
}

/// A foreign device with the name, and even the kind, of one of the product's.
fn a_foreign_device_is_refused(lab: &Lab) {
    let pair = lab.pair();
    let policy = lab.policy(&three());
    for (kind, name) in [("veth", "sluice-sp"), ("ifb", "sluice-sp"), ("ifb", "sluice-in")] {
        let name = format!("{name}{}", pair.a.ifindex("a0"));
        pair.a.ip(&format!("link add {name} type {kind}"));
        let before = pair.a.state("a0");
        let refused = lab.try_up(&pair.a, "a0", &policy, &["--rate", "20mbit", "--ingress-rate", "20mbit"]).exits(2);
        refused.says(&name).says("not made").says("ip link del");
        assert_eq!(pair.a.state("a0"), before);
        assert!(traces(pair.a.inode).is_empty(), "{:?}", traces(pair.a.inode));
        pair.a.ip(&format!("link del {name}"));
    }
}

fn doctor_knows_our_queues(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit", "--ingress-rate", "20mbit"]);
    let printed = lab.sluice(&pair.a, &["doctor"]);
    assert!(printed.stdout.contains("of sluice") && !printed.stdout.contains("made by hand"), "{printed}");
    lab.down(&pair.a, "a0");
}

fn a_root_that_was_replaced_is_noticed(lab: &Lab) {
    let pair = lab.pair();
    let policy = lab.policy(&three());
    lab.up(&pair.a, "a0", &policy, &["--rate", "20mbit"]);
    pair.a.tc("qdisc replace dev a0 root handle 9: pfifo limit 77");
    lab.sluice(&pair.a, &["apply", "a0", &policy]).exits(2).says("not ours");
    if lab.engine == Engine::Qdisc {
        passes(&pair);
    }
    lab.down(&pair.a, "a0");
    assert_eq!(pair.a.root("a0").map(|root| root.handle), Some("9:".to_owned()), "what is not ours stays");
}
