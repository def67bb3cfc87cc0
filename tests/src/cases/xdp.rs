//! The classifier in the driver.

use super::classification::{self, VLANS};
use crate::lab::Lab;
use crate::needs::Need;
use crate::net::{A, Pair};
use crate::policy::{by_port, port, three};
use crate::suite::Suite;
use crate::traffic::{self, Flow};
use serde_json::json;
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("xdp")
        .both("classifies_and_hands_on", &[], classifies_and_hands_on)
        .any("polices", &[], polices)
        .any("frames_are_classified_alike", &[], frames_are_classified_alike)
        .any("tags_beside_the_frame_are_seen", &[Need::Vlan], tags_beside_the_frame_are_seen)
}

fn attached(pair: &Pair) -> bool {
    pair.a.ip("-d link show dev a0").contains("prog/xdp")
}

/// The class travels in metadata: tc neither parses nor counts again, and the queue behind the ifb uses it.
fn classifies_and_hands_on(lab: &Lab) {
    let pair = lab.pair();
    let before = pair.a.state("a0");
    let options = ["--rate", "20mbit", "--ingress-rate", "20mbit", "--classifier", "xdp"];
    lab.up(&pair.a, "a0", &lab.policy(&three()), &options);
    assert!(attached(&pair), "{}", pair.a.ip("-d link show dev a0"));
    assert_eq!(lab.status(&pair.a, "a0").classifier, "xdp");
    let flows = [0, 1, 2].map(|class| Flow::new(port(class), &[300], 800_000));
    let outcomes = traffic::run(&pair.b, &pair.a, A, &flows, Duration::from_millis(200), || 0);
    let status = lab.status(&pair.a, "a0");
    let ingress = status.direction("ingress");
    for class in [0u8, 1, 2] {
        let sent = outcomes[usize::from(class)].sent;
        assert_eq!(ingress.class(class).sent.pkts, sent, "class {class} behind the ifb");
        assert_eq!(status.rule(&format!("to {class}")).pkts, sent, "each packet matched once");
    }
    let parsed: u64 = ingress.parsed.values().map(|count| count.pkts).sum();
    assert_eq!(parsed, outcomes.iter().map(|one| one.sent).sum::<u64>(), "each packet was parsed once");
    lab.down(&pair.a, "a0");
    assert!(!attached(&pair));
    assert_eq!(pair.a.state("a0"), before);
}

fn polices(lab: &Lab) {
    let pair = lab.pair();
    let policy = by_port(
        "strict_priority",
        json!([
            { "id": 0, "priority": 0 },
            { "id": 1, "priority": 1, "ceil": "2mbit", "police": true },
        ]),
    );
    lab.up(&pair.a, "a0", &lab.policy(&policy), &["--rate", "50mbit", "--classifier", "xdp"]);
    let flows = [Flow::new(port(0), &[500], 4_000_000), Flow::new(port(1), &[500], 8_000_000)];
    let dropped = || lab.status(&pair.a, "a0").direction("ingress").totals().1;
    let outcomes = traffic::run(&pair.b, &pair.a, A, &flows, Duration::from_millis(500), dropped);
    let status = lab.status(&pair.a, "a0");
    assert_eq!(outcomes[0].lost(), 0);
    assert!(outcomes[1].lost() > outcomes[1].sent / 2, "{} of {}", outcomes[1].lost(), outcomes[1].sent);
    assert_eq!(status.ingress(1).drops.get("policed"), Some(&outcomes[1].lost()));
    assert_eq!(status.ingress(1).sent.pkts, outcomes[1].received());
    lab.down(&pair.a, "a0");
}

fn frames_are_classified_alike(lab: &Lab) {
    let pair = lab.pair();
    classification::arriving(lab, &pair, &["--rate", "100mbit", "--classifier", "xdp"]);
    lab.down(&pair.a, "a0");
}

/// XDP does not see a tag that the card has taken out of the frame, so a policy with `vlan_id` is classified at tc.
fn tags_beside_the_frame_are_seen(lab: &Lab) {
    let pair = lab.pair();
    classification::add_vlan_devices(&pair);
    lab.up(&pair.a, "a0", &lab.policy(&classification::policy()), &["--rate", "20mbit", "--classifier", "xdp"]);
    assert!(attached(&pair), "{}", pair.a.ip("-d link show dev a0"));
    for (id, class) in VLANS {
        let before = lab.status(&pair.a, "a0").ingress(class).sent.pkts;
        let flow = [Flow::new(9, &[200], 400_000)];
        let to = format!("10.80.{id}.1");
        let outcomes = traffic::run(&pair.b, &pair.a, &to, &flow, Duration::from_millis(100), || 0);
        let after = lab.status(&pair.a, "a0").ingress(class).sent.pkts;
        assert_eq!(after - before, outcomes[0].sent, "VLAN {id} is class {class}");
    }
    lab.down(&pair.a, "a0");
}
