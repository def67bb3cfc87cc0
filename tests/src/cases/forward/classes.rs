//! The class of a forward: what its policy says, whatever rules ask for where its packets leave.

use super::network::{BYTES, ENDS, at, four, network, policy};
use super::peers::{Echo, exchange};
use crate::lab::Lab;
use serde_json::json;

/// Rules that ask for a DSCP, a mark or a tag choose the class of all packets but those of a forward with a class.
pub fn rules_do_not_choose_the_class_of_forwards(lab: &Lab) {
    let net = network(lab);
    let _echo = Echo::start(&net.server, 8000);
    let limits = ["--rate", "400mbit"];
    let with = |forwards, rule: &serde_json::Value| {
        let mut policy = policy(forwards);
        policy["rules"] = json!([rule]);
        lab.policy(&policy)
    };
    let sent = |interface: &str, class: u8| lab.status(&net.router, interface).egress(class).sent.bytes;
    for rule in [
        json!({ "priority": 1, "dscp": 0, "class_id": 0 }),
        json!({ "priority": 1, "mark": 0, "class_id": 0 }),
        json!({ "priority": 1, "vlan_id": 7, "class_id": 0 }),
    ] {
        let mut forwards = four();
        for n in [0, 3] {
            forwards[n]["class_id"] = json!(1);
        }
        lab.up(&net.router, "lan0", &with(forwards, &rule), &limits);
        lab.up(&net.router, "wan0", &with(json!([]), &rule), &limits);
        for (n, (address, port, source)) in ENDS.into_iter().enumerate() {
            let before = ["lan0", "wan0"].map(|interface| (sent(interface, 0), sent(interface, 1)));
            let to = at(address, port);
            let got = exchange(&net.client, to, BYTES).unwrap_or_else(|error| panic!("{rule}: {to}: {error}"));
            assert_eq!(got, (source.to_owned(), true), "{to}");
            for (interface, before) in ["lan0", "wan0"].into_iter().zip(before) {
                let by_rules = sent(interface, 0) - before.0;
                let of_forward = sent(interface, 1) - before.1;
                let (many, few) = if n % 3 == 0 { (of_forward, by_rules) } else { (by_rules, of_forward) };
                assert!(
                    many > BYTES as u64 && few < BYTES as u64 / 100,
                    "{rule}: {interface}: {by_rules} {of_forward}"
                );
            }
        }
        lab.down(&net.router, "lan0");
        lab.down(&net.router, "wan0");
    }
}
