//! Classes that queue by flow: sparse flows go first, hosts and then flows share the rest, and drops are counted by reason.

use crate::cases::assert_near;
use crate::iperf;
use crate::lab::{Engine, Lab};
use crate::needs::Need;
use crate::net::{B, End, Ns, Pair, Routed, SERVER, wire};
use crate::policy::{by_port, port};
use crate::suite::Suite;
use crate::traffic::{self, Flow, Outcome, Streams};
use serde_json::{Value, json};
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("flow_queues")
        .qdisc("sparse_flows_go_first", &[Need::Icount], sparse_first)
        .tc("sparse_flows_go_first", &[Need::FqCodel, Need::Icount], sparse_first)
        .qdisc("hosts_share_before_flows", &[Need::Icount], hosts)
        .qdisc("hosts_behind_nat_are_distinguished", &[Need::Icount, Need::Conntrack], behind_nat)
        .qdisc("downloads_of_hosts_behind_nat", &[Need::Icount, Need::Conntrack, Need::Iperf3], downloads_behind_nat)
        .qdisc("changes_of_queue_type_lose_nothing", &[], changes)
        .tc("classes_have_the_qdisc_of_their_queue_type", &[Need::FqCodel], leaves)
}

const FRAME: usize = 1014;
/// The time of a frame at 10 Mbit/s.
const FRAME_MS: f64 = 0.8112;
const SETTLE: Duration = Duration::from_millis(500);

fn by_flow(more: Value) -> Value {
    let mut class = json!({ "id": 0, "name": "all", "queue": "flows" });
    class.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    json!({ "version": 1, "scheduler": "deficit_round_robin", "classes": [class] })
}

fn dropped(lab: &Lab, pair: &Pair) -> u64 {
    lab.status(&pair.a, "a0").direction("egress").totals().1
}

/// A game next to two floods, each of which almost fills the link, without any rule.
fn sparse_first(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&by_flow(json!({ "limit": 1000 }))), &["--rate", "10mbit"]);
    let flood = |id| Flow::new(port(id), &[FRAME], 9_000_000);
    let light = |id| Flow::new(port(id), &[142], 32 * 142 * 8);
    let flows = [light(0), light(3), flood(1), flood(2)];
    let outcomes = traffic::run(&pair.a, &pair.b, B, &flows, Duration::from_millis(2500), || dropped(lab, &pair));
    let (games, floods) = outcomes.split_at(2);
    let late = |game: &Outcome| Outcome { arrivals: game.window(SETTLE).to_vec(), ..game.clone() };
    // Once in 500 times, fq_codel's hash gives a game the queue of a flood. Sluice looks for another queue.
    let harm = |game: &&Outcome| (game.lost(), (late(game).delay_ms(0.99) * 1e3) as u64);
    let (worst, best) = (games.iter().max_by_key(harm).expect("two"), games.iter().min_by_key(harm).expect("two"));
    let game = if lab.engine == Engine::Tc { best } else { worst };
    let late = late(game);
    eprintln!(
        "    game: {} of {} packets, delay p50 {:.2} ms, p99 {:.2} ms; floods: p50 {:.0} ms, {} lost",
        game.received(),
        game.sent,
        late.delay_ms(0.5),
        late.delay_ms(0.99),
        floods[0].delay_ms(0.5),
        floods.iter().map(Outcome::lost).sum::<u64>()
    );
    assert_eq!(game.lost(), 0);
    assert!(game.in_order() && floods.iter().all(Outcome::in_order));
    // One frame is in transmission.
    assert!(late.delay_ms(0.99) < 1.5 * FRAME_MS, "the game waits {:.2} ms", late.delay_ms(0.99));
    let rates: Vec<f64> = floods.iter().map(|flood| flood.bps(SETTLE, 0)).collect();
    assert_near("what one flood gets", rates[0], (1e7 - 64.0 * 142.0 * 8.0) / 2.0, 0.02);
    assert_near("what the other gets", rates[1], rates[0], 0.02);
    if lab.engine == Engine::Qdisc {
        let status = lab.status(&pair.a, "a0");
        let class = status.egress(0);
        let reasons: Vec<&str> = class.drops.keys().map(String::as_str).collect();
        assert_eq!(reasons, ["aqm", "overflow"], "{class:?}");
    }
    lab.down(&pair.a, "a0");
}

/// Four floods to one address and one to another.
fn hosts(lab: &Lab) {
    const OTHER: &str = "10.77.0.22";
    let pair = lab.pair();
    pair.b.ip(&format!("address add {OTHER}/24 dev b0"));
    for (hosts, other) in [("destination", 0.5), ("both", 0.2), ("none", 0.2)] {
        let policy = by_flow(json!({ "hosts": hosts, "aqm": "none", "limit": 500 }));
        lab.up(&pair.a, "a0", &lab.policy(&policy), &["--rate", "10mbit"]);
        let flood = |id| Flow::new(port(id), &[FRAME], 9_000_000);
        let one = traffic::start(&pair.a, &pair.b, B, &[0, 1, 2, 3].map(flood));
        let two = traffic::start(&pair.a, &pair.b, OTHER, &[flood(4)]);
        // With one source for all flows, the destination decides under `both`.
        assert_near(&format!("its share, hosts {hosts}"), share(one, two), other, 0.04);
        lab.down(&pair.a, "a0");
    }
}

/// Two hosts behind a router that masquerades: four floods of the one, one of the other.
fn behind_nat(lab: &Lab) {
    let (net, other) = natted(lab);
    let policy = by_flow(json!({ "hosts": "source", "aqm": "none", "limit": 500 }));
    lab.up(&net.router, "wan0", &lab.policy(&policy), &["--rate", "10mbit"]);
    let flood = |id| Flow::new(port(id), &[FRAME], 9_000_000);
    let many = traffic::start(&net.client, &net.server, SERVER, &[0, 1, 2, 3].map(flood));
    let one = traffic::start(&other, &net.server, SERVER, &[flood(4)]);
    let share = share(many, one);
    assert_near("the share of the host with one flow", share, 0.5, 0.04);
    lab.down(&net.router, "wan0");
}

/// Four downloads of one host and one of the other, behind NAT: their packets are queued before they are translated.
fn downloads_behind_nat(lab: &Lab) {
    let (net, other) = natted(lab);
    let policy = by_flow(json!({ "hosts": "destination", "aqm": "none", "limit": 500 }));
    lab.up(&net.router, "wan0", &lab.policy(&policy), &["--ingress-rate", "10mbit"]);
    let servers = [5201, 5202].map(|port| iperf::serve_at(&net.server, port));
    let load = |ns, port, flows| iperf::start(ns, &format!("-c {SERVER} -p {port} -u -R -b 9M -l 972 -P {flows} -t 6"));
    let clients = [load(&net.client, 5201, 4), load(&other, 5202, 1)];
    std::thread::sleep(Duration::from_secs(2));
    let sent = || ["lan0", "lan1"].map(|device| net.router.sent_bytes(device));
    let before = sent();
    std::thread::sleep(Duration::from_secs(2));
    let after = sent();
    let [many, one] = [0, 1].map(|host| (after[host] - before[host]) as f64);
    assert_near("the share of the host with one download", one / (many + one), 0.5, 0.04);
    clients.into_iter().chain(servers).for_each(|process| {
        process.finish();
    });
    lab.down(&net.router, "wan0");
}

/// A client and another host behind a router that masquerades.
pub fn natted(lab: &Lab) -> (Routed, Ns) {
    let (net, other) = (lab.routed(), lab.ns("other"));
    let lan = End { ns: &net.router, dev: "lan1", address: "10.80.0.1", mac: "02:00:00:00:80:01" };
    wire(&End { ns: &other, dev: "c0", address: "10.80.0.2", mac: "02:00:00:00:80:02" }, &lan, "");
    other.ip("route add default via 10.80.0.1");
    let rules = lab.file(
        "nat.nft",
        "add table ip nat
         add chain ip nat out { type nat hook postrouting priority 100; }
         add rule ip nat out oifname wan0 masquerade
",
    );
    net.router.tool("nft", &format!("-f {}", rules.display())).ok();
    (net, other)
}

/// The share of the second streams in the bytes of both, once they have settled.
fn share(one: Streams, two: Streams) -> f64 {
    std::thread::sleep(SETTLE);
    let begin = traffic::now_ns();
    std::thread::sleep(Duration::from_secs(2));
    let end = traffic::now_ns();
    one.stop();
    two.stop();
    let (one, two) = (one.finish_lossy(), two.finish_lossy());
    assert!(one.iter().chain(&two).all(Outcome::in_order));
    let bytes = |flows: &[Outcome]| flows.iter().map(|flow| flow.between(begin, end).bytes()).sum::<u64>() as f64;
    bytes(&two) / (bytes(&one) + bytes(&two))
}

/// Changes of the queue type take effect under traffic that fits the link in the mean, and comes in bursts.
fn changes(lab: &Lab) {
    let pair = lab.pair();
    let policies: Vec<String> = [
        json!({ "id": 0, "queue": "flows", "target": "1s", "interval": "10s" }),
        json!({ "id": 0, "limit": 2000 }),
        json!({ "id": 0, "queue": "flows", "aqm": "none", "limit": 2000, "hosts": "none" }),
        json!({ "id": 0, "aqm": "codel", "target": "1s", "interval": "10s", "limit": 2000 }),
    ]
    .into_iter()
    .map(|class| lab.policy(&json!({ "version": 1, "scheduler": "deficit_round_robin", "classes": [class] })))
    .collect();
    lab.up(&pair.a, "a0", &policies[0], &["--rate", "20mbit"]);
    let burst = |id| Flow::bursts(port(id), FRAME, 40, Duration::from_millis(100));
    let streams = traffic::start(&pair.a, &pair.b, B, &[0, 1, 2].map(burst));
    for policy in policies.iter().cycle().skip(1).take(12) {
        std::thread::sleep(Duration::from_millis(60));
        lab.sluice(&pair.a, &["apply", "a0", policy]).ok();
    }
    let outcomes = streams.finish(|| dropped(lab, &pair));
    let lost: u64 = outcomes.iter().map(Outcome::lost).sum();
    eprintln!("    {} packets, {lost} lost", outcomes.iter().map(|one| one.sent).sum::<u64>());
    assert_eq!(lost, 0);
    lab.down(&pair.a, "a0");
}

/// On engine tc each class has the qdisc of its queue type.
fn leaves(lab: &Lab) {
    let pair = lab.pair();
    let classes = json!([{ "id": 0, "queue": "flows" }, { "id": 1 }]);
    lab.up(&pair.a, "a0", &lab.policy(&by_port("deficit_round_robin", classes)), &["--rate", "10mbit"]);
    let kinds: Vec<String> = pair.a.qdiscs("a0").into_iter().map(|qdisc| qdisc.kind).collect();
    for kind in ["fq_codel", "pfifo"] {
        assert_eq!(kinds.iter().filter(|one| *one == kind).count(), 1, "{kind} among {kinds:?}");
    }
    lab.down(&pair.a, "a0");
}
