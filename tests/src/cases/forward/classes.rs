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
        for (address, port, source) in ENDS {
            let to = at(address, port);
            let got = exchange(&net.client, to, BYTES).unwrap_or_else(|error| panic!("{rule}: {to}: {error}"));
            assert_eq!(got, (source.to_owned(), true), "{to}");
        }
        // Two of the forwards have a class; rules choose that of the other two.
        let twice = 2 * BYTES as u64..=2 * BYTES as u64 * 5 / 4;
        for interface in ["lan0", "wan0"] {
            let status = lab.status(&net.router, interface);
            let [by_rules, of_forwards] = [0, 1].map(|class| status.egress(class).sent.bytes);
            assert!(
                twice.contains(&by_rules) && twice.contains(&of_forwards),
                "{rule}: {interface}: {by_rules} {of_forwards}"
            );
        }
        lab.down(&net.router, "lan0");
        lab.down(&net.router, "wan0");
    }
}
