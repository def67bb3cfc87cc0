//! The class of an arriving packet survives to the queue of its departure, and no application chooses it.

use crate::cases::flow_queues::natted;
use crate::foreign::{Hook, Program, Verdict};
use crate::lab::{Engine, Lab};
use crate::needs::Need;
use crate::net::{B, CLIENT, Routed, SERVER};
use crate::policy::{port, three, with};
use crate::status::Status;
use crate::suite::Suite;
use crate::traffic::{self, Flow, Outcome};
use serde_json::json;
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("hand_over")
        .both("survives_forwarding", &[], survives_forwarding)
        .both("survives_nat_where_flows_are_limited", &[Need::Conntrack], survives_nat)
        .both("another_policy_is_not_trusted", &[], another_policy_is_not_trusted)
        .both("applications_do_not_choose", &[], applications_do_not_choose)
        .both("containers_do_not_choose", &[], containers_do_not_choose)
}

fn through(net: &Routed, tos: u8) -> Vec<Outcome> {
    let flows = [0, 1, 2].map(|class| Flow::new(port(class), &[300], 800_000).tos(tos));
    traffic::run(&net.client, &net.server, SERVER, &flows, Duration::from_millis(60), || 0)
}

fn parsed(status: &Status, direction: &str) -> u64 {
    status.direction(direction).parsed.values().map(|count| count.pkts).sum()
}

/// Forwarding rewrites skb->priority from TOS; the class is stored elsewhere. Headers are parsed once, at the LAN.
fn survives_forwarding(lab: &Lab) {
    let net = lab.routed();
    let policy = lab.policy(&three());
    lab.up(&net.router, "lan0", &policy, &["--rate", "30mbit"]);
    lab.up(&net.router, "wan0", &policy, &["--rate", "20mbit"]);
    let mut total = 0;
    // Minimum delay, maximum throughput, maximum reliability: bands 0, 2 and 1 of pfifo_fast.
    for tos in [0, 0x10, 0x08, 0x04, 0xb8] {
        let before = lab.status(&net.router, "wan0");
        let outcomes = through(&net, tos);
        let (lan, wan) = (lab.status(&net.router, "lan0"), lab.status(&net.router, "wan0"));
        for (class, outcome) in (0u8..).zip(&outcomes) {
            let sent = wan.egress(class).sent.pkts - before.egress(class).sent.pkts;
            assert_eq!(sent, outcome.sent, "class {class} with TOS {tos:#x}");
        }
        total += outcomes.iter().map(|one| one.sent).sum::<u64>();
        assert_eq!(parsed(&lan, "ingress"), total, "each packet is parsed at the LAN");
        assert_eq!(parsed(&wan, "egress"), 0, "and not again at the WAN");
    }
    lab.down(&net.router, "lan0");
    lab.down(&net.router, "wan0");
}

/// The class is by the address before NAT. The flow has an entry of its own at the WAN, for its limit, and keeps its class.
fn survives_nat(lab: &Lab) {
    let (net, _) = natted(lab);
    let mut policy = three();
    policy["classes"][1]["flow_ceil"] = json!("2mbit");
    policy["rules"] = json!([{ "priority": 10, "src_ip": CLIENT, "class_id": 1 }]);
    let policy = lab.policy(&policy);
    lab.up(&net.router, "lan0", &policy, &["--rate", "30mbit"]);
    lab.up(&net.router, "wan0", &policy, &["--rate", "20mbit"]);
    let flow = Flow::new(port(0), &[300], 800_000);
    let outcomes = traffic::run(&net.client, &net.server, SERVER, &[flow], Duration::from_millis(60), || 0);
    let wan = lab.status(&net.router, "wan0");
    assert_eq!(wan.egress(1).sent.pkts, outcomes[0].sent, "packets of the limited class: {wan:?}");
    let seen = lab.sluice(&net.router, &["flows", "wan0", "--once", "--json", "--interval", "100ms"]).ok().stdout;
    assert!(seen.contains(&format!("\"dst_port\":{}", port(0))), "the flow has an entry: {seen}");
    lab.down(&net.router, "lan0");
    lab.down(&net.router, "wan0");
}

/// With different policies on LAN and WAN, the WAN classifies again.
fn another_policy_is_not_trusted(lab: &Lab) {
    let net = lab.routed();
    let policy = lab.policy(&three());
    let mut swapped = with(three(), "description", json!("the game's port is bulk here"));
    swapped["rules"][1]["class_id"] = json!(2);
    lab.up(&net.router, "lan0", &lab.policy(&swapped), &["--rate", "30mbit"]);
    lab.up(&net.router, "wan0", &policy, &["--rate", "20mbit"]);
    let outcomes = through(&net, 0);
    let (lan, wan) = (lab.status(&net.router, "lan0"), lab.status(&net.router, "wan0"));
    assert_eq!(lan.ingress(1).sent.pkts, 0, "at the LAN it is bulk");
    assert_eq!(wan.egress(1).sent.pkts, outcomes[1].sent, "at the WAN a game");
    assert_eq!(parsed(&wan, "egress"), outcomes.iter().map(|one| one.sent).sum::<u64>());
    lab.down(&net.router, "lan0");
    lab.down(&net.router, "wan0");
}

/// Root of a container can set tc_index on its end of a veth, and tries every tag. The other end is not managed.
fn containers_do_not_choose(lab: &Lab) {
    let net = lab.routed();
    lab.up(&net.router, "wan0", &lab.policy(&three()), &["--rate", "20mbit"]);
    let forger = Program::new(Hook::Filter, Verdict::Forge(1));
    net.client.tc("qdisc add dev c0 clsact");
    forger.pinned(|path| net.client.tc(&format!("filter add dev c0 egress bpf direct-action object-pinned {path}")));
    // Two packets for each of the 1,024 tags.
    let flow = Flow::new(port(2), &[100], 12_000_000);
    // A sender that was held up makes up for it in a burst, for which the queue may have no room.
    let counts = || {
        let wan = lab.status(&net.router, "wan0");
        [0, 1, 2].map(|class| (wan.egress(class).sent.pkts, wan.egress(class).dropped.pkts))
    };
    let dropped = || counts().iter().map(|(_, dropped)| dropped).sum();
    let outcomes = traffic::run(&net.client, &net.server, SERVER, &[flow], Duration::from_millis(150), dropped);
    assert!(forger.seen() > 1_100, "{} tags were tried", forger.seen());
    let [first, second, (sent, dropped)] = counts();
    assert_eq!((first, second, sent + dropped), ((0, 0), (0, 0), outcomes[0].sent), "packets by class");
    lab.down(&net.router, "wan0");
}

fn applications_do_not_choose(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&three()), &["--rate", "20mbit"]);
    let plain = Flow::new(port(2), &[300], 800_000);
    let mut priorities = vec![1, 6, 7, 0x5100_0001];
    if lab.engine == Engine::Qdisc {
        // Priorities that name HTB classes: a process with CAP_NET_ADMIN can choose one, and HTB then skips its filters.
        priorities.extend([0x1_0010, 0x1_0000, 0x1_0001]);
    }
    let priorities = priorities.into_iter().map(|n| plain.clone().priority(n));
    let marks = [1, 0x40, 0x1_0010, u32::MAX].map(|mark| plain.clone().mark(mark));
    let mut wrong = Vec::new();
    for flow in priorities.chain(marks) {
        let before = lab.status(&pair.a, "a0");
        let outcomes = traffic::run(&pair.a, &pair.b, B, std::slice::from_ref(&flow), Duration::from_millis(40), || 0);
        let after = lab.status(&pair.a, "a0");
        let more = [0, 1, 2].map(|class| after.egress(class).sent.pkts - before.egress(class).sent.pkts);
        if more != [0, 0, outcomes[0].sent] {
            wrong.push(format!("SO_PRIORITY {:x?}, SO_MARK {:#x}: {more:?}", flow.priority, flow.mark));
        }
    }
    lab.down(&pair.a, "a0");
    assert!(wrong.is_empty(), "an application got what is not its class:\n  {}", wrong.join("\n  "));
}
