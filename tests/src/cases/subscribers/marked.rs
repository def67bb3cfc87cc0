//! Subscribers that a firewall mark or a VLAN tells, instead of an address.

use crate::cases::classification::add_vlan_devices;
use crate::lab::Lab;
use crate::net::{B, Pair};
use crate::town::listed;
use crate::traffic::{self, Flow};
use serde_json::json;
use std::time::Duration;

/// The port of packets that nftables marks with [`MARK`].
const MARKED: u16 = 7002;
const MARK: u32 = 31;

/// A mark goes before a VLAN, and both before an address; another mark and another VLAN take force at once.
pub fn marks_and_vlans(lab: &Lab) {
    let pair = lab.pair();
    add_vlan_devices(&pair);
    let rules = format!(
        "table ip marks {{\n chain out {{\n  type filter hook output priority mangle\n  udp dport {MARKED} meta mark set {MARK}\n }}\n}}\n"
    );
    pair.a.tool("nft", &format!("-f {}", lab.file("marks.nft", rules).display())).ok();
    let subscriber = |name: &str, addresses: &[&str]| json!({ "name": name, "addresses": addresses, "ceil": "50mbit" });
    let policy = json!({
        "name": "marks",
        "link": { "rate": "100mbit" },
        "subscriber_side": ["a0"],
        "subscribers": [
            subscriber("marked", &["mark:0x1f", "192.0.2.1"]), subscriber("tagged", &["vlan:7", "192.0.2.2"]),
            subscriber("plain", &[B]),
        ],
    });
    let policy = lab.policy(&policy);
    lab.up(&pair.a, "a0", &policy, &[]);
    let (tagged, other) = ("10.80.7.2", "10.80.8.2");
    for (to, port, who) in [
        (B, 7001, Some("plain")),
        (B, MARKED, Some("marked")),
        (tagged, 7001, Some("tagged")),
        (tagged, MARKED, Some("marked")),
        (other, 7001, None),
    ] {
        belongs(lab, &pair, (to, port), who);
    }
    let marked = format!("mark {MARK}");
    for (packet, found) in
        [(marked.as_str(), "marked; down, by its mark 31"), ("vlan 7", "tagged; down, by its VLAN 7")]
    {
        let asked = [
            &["explain", "a0", "udp", "10.77.0.1:5000", "to", "10.77.0.2:6000"][..],
            &packet.split(' ').collect::<Vec<_>>(),
        ]
        .concat();
        for target in ["a0", &policy] {
            let asked = [&asked[..1], &[target], &asked[2..]].concat();
            let explained = lab.sluice(&pair.a, &asked).ok().stdout;
            assert!(explained.contains(found), "{found}: {explained}");
        }
    }
    for (name, addresses) in [("tagged", "vlan:8"), ("marked", "mark:32")] {
        lab.sluice(&pair.a, &["subscriber", "set", name, "--addresses", addresses]).ok();
    }
    belongs(lab, &pair, (tagged, 7001), None);
    belongs(lab, &pair, (other, 7001), Some("tagged"));
    belongs(lab, &pair, (B, MARKED), Some("plain"));
    lab.down(&pair.a, "a0");
}

/// Packets to this address and port are counted at this subscriber, and at no other one.
#[track_caller]
fn belongs(lab: &Lab, pair: &Pair, (to, port): (&str, u16), who: Option<&str>) {
    let before = listed(lab, &pair.a, "a0");
    let flow = [Flow::new(port, &[200], 400_000)];
    let outcome = traffic::run(&pair.a, &pair.b, to, &flow, Duration::from_millis(100), || 0).remove(0);
    for (name, (_, [sent, ..])) in listed(lab, &pair.a, "a0") {
        let own = if who == Some(&name) { outcome.sent } else { 0 };
        assert_eq!(sent - before[&name].1[0], own, "{name} of {to}:{port}");
    }
}
