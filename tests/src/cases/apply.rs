//! A new policy under traffic.

use crate::cases::assert_near;
use crate::command::{await_that, run};
use crate::lab::Lab;
use crate::needs::{Need, is_icount};
use crate::net::{A, B, Pair};
use crate::policy::{by_port, port, with};
use crate::status::{Class, Count, Direction};
use crate::suite::Suite;
use crate::traffic::{self, Flow, Outcome, now_ns};
use serde_json::{Value, json};
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("apply")
        .both("fifty_times_without_loss", &[], fifty_times)
        .both("policies_do_not_mix", &[Need::Ifb], policies_do_not_mix)
        .any("tables_do_not_mix", &[Need::NoIcount], tables_do_not_mix)
        .both("a_class_that_goes_drains", &[], a_class_that_goes)
        .both("priorities_take_force_under_backlog", &[], priorities_take_force)
        .both("rules_count_from_when_they_come", &[], rules_count)
        .qdisc("through_every_discipline", &[], through_every_discipline)
}

/// Rules are added, removed, moved, renamed and restored: each keeps the matches since it was added. Also if the change was
/// taken back, or its command was killed.
fn rules_count(lab: &Lab) {
    let pair = lab.pair();
    let first = policy_of(lab, &[rule("zero", 10, 0), rule("one", 20, 1), rule("two", 30, 2)]);
    let second = policy_of(lab, &[rule("both", 5, 0), rule("two", 6, 2), rule("one, later", 40, 1)]);
    lab.up(&pair.a, "a0", &first, &["--rate", "100mbit"]);
    let mut hits = Hits { lab, pair: &pair, sent: 0 };
    hits.send([5, 7, 11]);
    hits.are(&[("zero", 5), ("one", 7), ("two", 11)], "at first");
    lab.sluice(&pair.a, &["apply", "a0", &second]).ok();
    hits.are(&[("both", 0), ("two", 11), ("one, later", 7)], "nothing is another rule's");
    hits.send([1, 2, 3]);
    hits.are(&[("both", 3), ("two", 14), ("one, later", 7)], "each goes on");
    let failed = run(lab.command(&pair.a, &["apply", "a0", &first]).env("SLUICE_FAULT", "apply-verified:error"));
    failed.exits(1).says("is in force again");
    hits.are(&[("both", 3), ("two", 14), ("one, later", 7)], "nothing has happened");
    hits.send([0, 1, 1]);
    hits.are(&[("both", 4), ("two", 15), ("one, later", 7)], "and it goes on");
    for point in ["apply-staged", "apply-live", "apply-noted"] {
        lab.killed_at(point, &pair.a, &["apply", "a0", &first]);
        hits.send([0, 0, 2]);
        lab.sluice(&pair.a, &["apply", "a0", &second]).ok();
        let of_both = if point == "apply-staged" { 4 } else { 0 };
        hits.are(&[("both", of_both), ("one, later", 7)], point);
    }
    let few = policy_of(lab, &[rule("one", 20, 1)]);
    lab.sluice(&pair.a, &["apply", "a0", &few]).ok();
    hits.send([0, 3, 0]);
    hits.are(&[("one", 10)], "with few rules, those that have gone count for the sum");
    lab.sluice(&pair.a, &["apply", "a0", &first]).ok();
    hits.send([1, 1, 1]);
    hits.are(&[("zero", 1), ("one", 11), ("two", 1)], "a restored rule begins anew");
    lab.down(&pair.a, "a0");
}

/// A rule for the port of a class; the rule "both" matches the ports from its class to class 1.
fn rule(name: &str, priority: u32, class: u8) -> Value {
    let (from, to) = (port(class), if name == "both" { port(1) } else { port(class) });
    json!({ "name": name, "priority": priority, "protocol": "udp", "dst_port_min": from, "dst_port_max": to, "class_id": class })
}

fn policy_of(lab: &Lab, rules: &[Value]) -> String {
    let classes = json!([{ "id": 0 }, { "id": 1 }, { "id": 2 }]);
    lab.policy(&json!({ "version": 1, "scheduler": "deficit_round_robin", "classes": classes, "rules": rules }))
}

/// The packets that were sent since `up`, and the hits of rules.
struct Hits<'a> {
    lab: &'a Lab,
    pair: &'a Pair,
    sent: u64,
}

impl Hits<'_> {
    /// Sends a number of packets to the port of each class.
    fn send(&mut self, pkts: [u64; 3]) {
        self.pair.a.inside(|| {
            let socket = UdpSocket::bind((A, 0)).expect("a socket");
            for (class, count) in (0u8..).zip(pkts) {
                for _ in 0..count {
                    socket.send_to(&[0; 100], (B, port(class))).expect("sending");
                }
            }
        });
        self.sent += pkts.iter().sum::<u64>();
    }

    /// Asserts the hits of rules, and that all packets are counted, whichever rules count them.
    #[track_caller]
    fn are(&self, wanted: &[(&str, u64)], what: &str) {
        let status = self.lab.status(&self.pair.a, "a0");
        let own: Vec<(&str, u64)> = wanted.iter().map(|(name, _)| (*name, status.rule(name).pkts)).collect();
        assert_eq!(own, wanted, "{what}");
        assert_eq!(status.direction("egress").parsed["ipv4"].pkts, self.sent, "all packets are counted: {what}");
    }
}

/// Two policies that differ in their discipline, quanta, rates and rules: no packet is lost, reordered or misclassified.
fn fifty_times(lab: &Lab) {
    let pair = lab.pair();
    let strict = lab.policy(&by_port(
        "strict_priority",
        json!([
            { "id": 0, "name": "game", "priority": 0, "limit": 1000 },
            { "id": 1, "name": "bulk", "priority": 1, "limit": 1000, "ceil": "15mbit" },
        ]),
    ));
    let drr = lab.policy(&by_port(
        "deficit_round_robin",
        json!([
            { "id": 0, "name": "game", "quantum": 3028, "limit": 900 },
            { "id": 1, "name": "bulk", "quantum": 1514, "limit": 800 },
            { "id": 2, "name": "other" },
        ]),
    ));
    lab.up(&pair.a, "a0", &strict, &["--rate", "20mbit"]);
    let flows = [Flow::new(port(0), &[214], 800_000), Flow::new(port(1), &[1014], 4_000_000)];
    let streams = traffic::start(&pair.a, &pair.b, B, &flows);
    let begin = std::time::Instant::now();
    for n in 0..50 {
        lab.sluice(&pair.a, &["apply", "a0", if n % 2 == 0 { &drr } else { &strict }]).ok();
    }
    let each = begin.elapsed() / 50;
    let outcomes = streams.finish(|| 0);
    eprintln!("    {} packets, an apply took {each:?}", outcomes[0].sent + outcomes[1].sent);
    assert!(outcomes.iter().all(|one| one.lost() == 0 && one.in_order()), "{outcomes:?}");
    assert!(outcomes.iter().all(|one| one.sent > 100), "traffic flowed all the while");
    let status = lab.status(&pair.a, "a0");
    assert_eq!((status.policy.generation, status.policy.scheduler.as_str()), (51, "strict_priority"));
    for class in [0u8, 1] {
        assert_eq!(status.egress(class).sent.pkts, outcomes[usize::from(class)].sent, "counters go on, class {class}");
        assert_eq!(status.egress(class).dropped.pkts, 0);
    }
    lab.down(&pair.a, "a0");
}

const PORTS: u8 = 4;
/// The id of a class that both policies have, and that gets no packet.
const UNUSED: u8 = 2 * PORTS;

/// Length of the frames of a port, which identifies them in a class.
fn frame(port: u8) -> usize {
    190 + 70 * usize::from(port)
}

/// The n-th port is class n, or class 4 + n by rules in the opposite order. So a packet that meets a rule of the one policy and takes its
/// class from the other gets one that is the n-th port's in neither.
fn opposite(second: bool) -> Value {
    let classes: Vec<Value> = (0..=UNUSED).map(|id| json!({ "id": id, "limit": 1000 })).collect();
    let rules: Vec<Value> = (0..PORTS)
        .map(|n| {
            let (turn, class) = if second { (PORTS - 1 - n, PORTS + n) } else { (n, n) };
            json!({ "name": format!("port {n}"), "priority": 10 + turn, "protocol": "udp",
                "dst_port_min": port(n), "class_id": class })
        })
        .collect();
    json!({ "version": 1, "scheduler": "deficit_round_robin", "classes": classes, "rules": rules,
        "default_class": UNUSED })
}

/// Asserts that every packet has arrived, and that every class has sent only its own port's packets.
fn assert_unmixed(direction: &Direction, outcomes: &[Outcome]) {
    let name = &direction.direction;
    for (n, outcome) in (0..PORTS).zip(outcomes) {
        let mut seen: Vec<u64> = outcome.arrivals.iter().map(|one| one.seq).collect();
        seen.sort_unstable();
        assert!(seen.iter().copied().eq(0..outcome.sent), "{name}: each packet of port {n} arrives once");
        let both = [n, PORTS + n].map(|id| direction.class(id).sent);
        eprintln!("    {name}, port {n}: {} packets by the one, {} by the other", both[0].pkts, both[1].pkts);
        assert_eq!(both[0].pkts + both[1].pkts, outcome.sent, "{name}, port {n}");
        for count in both {
            assert_eq!(count.bytes, count.pkts * frame(n) as u64, "{name}: only frames of port {n}");
            assert!(count.pkts > 0, "{name}, port {n}: both policies were in force");
        }
    }
    assert_eq!(direction.class(UNUSED).sent, Count::default(), "{name}: by neither policy");
    assert_eq!(direction.totals().1, 0, "{name}: dropped");
}

/// The number of policy changes, unless SLUICE_APPLIES is set: a thousand takes minutes.
fn changes(default: u32) -> u32 {
    std::env::var("SLUICE_APPLIES").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Traffic of every class, both ways, while two policies alternate: no packet is lost, and each is classified by one of the
/// policies.
fn policies_do_not_mix(lab: &Lab) {
    let pair = lab.pair();
    let files = [opposite(false), opposite(true)].map(|policy| lab.policy(&policy));
    lab.up(&pair.a, "a0", &files[0], &["--rate", "200mbit", "--ingress-rate", "200mbit"]);
    let flows: Vec<Flow> = (0..PORTS).map(|n| Flow::new(port(n), &[frame(n)], 3_000_000)).collect();
    let Pair { a, b } = &pair;
    let (out, back) = (traffic::start(a, b, B, &flows), traffic::start(b, a, A, &flows));
    let (begin, changes) = (std::time::Instant::now(), changes(if is_icount() { 20 } else { 50 }));
    for n in 1..=changes {
        lab.sluice(a, &["apply", "a0", &files[n as usize % 2], "--quiet"]).ok();
    }
    eprintln!("    {changes} applies, each {:?}", begin.elapsed() / changes);
    let (out, back) = (out.finish(|| 0), back.finish(|| 0));
    let status = lab.status(a, "a0");
    assert_unmixed(status.direction("egress"), &out);
    assert_unmixed(status.direction("ingress"), &back);
    lab.down(a, "a0");
}

/// Runs the loaded program without pause on two CPUs while its tables are changed. (On one CPU, hardly any change falls into a
/// run.)
fn tables_do_not_mix(_: &Lab) {
    let changes = changes(80);
    let done = sluice_model::reload::turns(changes).expect("no packet is classified by a mixture");
    eprintln!("    {changes} changes in {:.1} s, packets by class: {:?}", done.time.as_secs_f64(), done.packets);
    assert!(done.packets.iter().all(|count| *count > 0), "every policy was asked: {done:?}");
}

/// Both classes always have a queue, so the scheduler has no other occasion to evaluate a class afresh.
fn priorities_take_force(lab: &Lab) {
    let pair = lab.pair();
    let class = |id: u8| json!({ "id": id, "priority": id, "limit": 200 });
    let alike = lab.policy(&by_port("deficit_round_robin", json!([class(0), class(1)])));
    let strict = lab.policy(&by_port("strict_priority", json!([class(0), class(1)])));
    lab.up(&pair.a, "a0", &alike, &["--rate", "4mbit"]);
    let flows = [Flow::new(port(0), &[1014], 4_000_000), Flow::new(port(1), &[1014], 4_000_000)];
    let streams = traffic::start(&pair.a, &pair.b, B, &flows);
    await_that("both classes queue", Duration::from_secs(20), || {
        let status = lab.status(&pair.a, "a0");
        status.egress(0).backlog.pkts > 100 && status.egress(1).backlog.pkts > 100
    });
    lab.sluice(&pair.a, &["apply", "a0", &strict]).ok();
    // Counters are compared from here on: engine tc counts anew where it makes a queue anew.
    let before = lab.status(&pair.a, "a0");
    thread::sleep(Duration::from_secs(2));
    let status = lab.status(&pair.a, "a0");
    let sent = |class: u8| status.egress(class).sent.pkts - before.egress(class).sent.pkts;
    assert!(sent(0) > 20 * sent(1), "{} packets of the urgent class, {} of the other", sent(0), sent(1));
    streams.finish_lossy();
    lab.down(&pair.a, "a0");
}

/// Packets queued in a class that the new policy lacks still leave; later packets are in the default class.
fn a_class_that_goes(lab: &Lab) {
    let pair = lab.pair();
    let class = |id: u8| json!({ "id": id, "limit": 400 });
    let two = lab.policy(&by_port("deficit_round_robin", json!([class(0), class(1)])));
    let one = lab.policy(&by_port("deficit_round_robin", json!([class(0)])));
    lab.up(&pair.a, "a0", &two, &["--rate", "2mbit"]);
    let streams = traffic::start(&pair.a, &pair.b, B, &[Flow::new(port(1), &[514], 4_000_000)]);
    await_that("class 1 queues", Duration::from_secs(10), || lab.status(&pair.a, "a0").egress(1).backlog.pkts > 50);
    lab.sluice(&pair.a, &["apply", "a0", &one]).ok();
    await_that("class 0 takes what class 1 was sent", Duration::from_secs(10), || {
        lab.status(&pair.a, "a0").egress(0).sent.pkts > 20
    });
    let outcomes = streams.finish_lossy();
    let status = lab.status(&pair.a, "a0");
    assert_eq!(status.direction("egress").totals().2, 0, "nothing is stuck");
    assert_eq!(status.direction("egress").classes.len(), 1);
    if lab.engine == crate::lab::Engine::Qdisc {
        assert_eq!(outcomes.iter().map(Outcome::lost).sum::<u64>(), status.egress(0).dropped.pkts, "class 1 drained");
    }
    lab.down(&pair.a, "a0");
}

/// The disciplines forward and back, twice, with three ranks at each turn. Class 3 has a ceiling half of the time.
fn disciplines() -> Vec<Value> {
    let classes = |ceil: Option<&str>| {
        let class = |id: u32, weight: u32| {
            json!({ "id": id, "priority": id, "weight": weight, "quantum": 1514 * weight, "limit": 4000,
                "latency_budget": format!("{}ms", 20 << id) })
        };
        let mut classes = json!([class(0, 1), class(1, 4), class(2, 2), class(3, 3)]);
        if let Some(ceil) = ceil {
            classes[3]["ceil"] = json!(ceil);
        }
        classes
    };
    let plain = ["strict_priority", "deficit_round_robin", "round_robin", "weighted_fair_queuing", "eevdf"];
    let ranks =
        ["priority", "earliest_deadline", "shortest_packet", "least_attained_service", "start_time_fair", "slack"];
    let pifo = |rank: &&str| with(by_port("pifo", classes(Some("1500kbit"))), "rank", json!(rank));
    let mut all = Vec::new();
    for turn in ranks.chunks(3) {
        all.extend(plain.iter().map(|name| by_port(name, classes(None))));
        all.extend(turn.iter().map(pifo));
        all.extend(plain.iter().rev().map(|name| by_port(name, classes(Some("1mbit")))));
    }
    all
}

/// Under constant overload no packet is lost, doubled or reordered, the link is never idle, and all counters agree, in
/// mid-stream and in the end.
fn through_every_discipline(lab: &Lab) {
    let pair = lab.pair();
    let policies: Vec<String> = disciplines().iter().map(|policy| lab.policy(policy)).collect();
    let apply = |file: &str, rate: &str| lab.sluice(&pair.a, &["apply", "a0", file, "--rate", rate]).ok();
    lab.up(&pair.a, "a0", &policies[0], &["--rate", "6mbit"]);
    let flows = [
        Flow::new(port(0), &[214], 1_000_000),
        Flow::new(port(1), &[614], 2_500_000),
        Flow::new(port(2), &[1014], 2_500_000),
        Flow::new(port(3), &[1514], 2_500_000),
    ];
    let streams = traffic::start(&pair.a, &pair.b, B, &flows);
    thread::sleep(Duration::from_millis(300));
    let from = now_ns();
    policies[1..].iter().for_each(|file| drop(apply(file, "6mbit")));
    let to = now_ns();
    streams.stop();
    // Slow enough to look twice between two packets.
    apply(&policies[0], "48kbit");
    let mut queued = 0;
    await_that("status, tc and traffic agree in mid-stream", Duration::from_secs(20), || {
        let (status, root) = (lab.status(&pair.a, "a0"), pair.a.root("a0").expect("a root qdisc"));
        let egress = status.direction("egress");
        let (sent, dropped, backlog) = egress.totals();
        queued = backlog;
        let bytes = |of: fn(&Class) -> Count| egress.classes.iter().map(|class| of(class).bytes).sum::<u64>();
        (dropped, root.drops) == (0, 0)
            && streams.so_far() == (sent + backlog, sent)
            && (root.packets, root.qlen) == (sent, backlog)
            && (root.bytes, root.backlog) == (bytes(|class| class.sent), bytes(|class| class.backlog))
    });
    assert!(queued > 100, "there is a queue: {queued}");
    apply(&policies[0], "200mbit");
    let outcomes = streams.finish(|| 0);
    let sent: u64 = outcomes.iter().map(|one| one.sent).sum();
    eprintln!("    {sent} packets, {queued} of them queued after {} switches", policies.len());
    for (class, outcome) in (0u8..).zip(&outcomes) {
        assert!(outcome.in_order(), "class {class}: each packet arrives once, in order");
        assert_eq!(outcome.lost(), 0, "class {class}");
    }
    if is_icount() {
        let bps: f64 = outcomes.iter().map(|one| one.between(from, to).bytes() as f64 * 8e9 / (to - from) as f64).sum();
        assert_near("all of the link, while disciplines were switched", bps, 6e6, 0.005);
    }
    let (status, root) = (lab.status(&pair.a, "a0"), pair.a.root("a0").expect("a root qdisc"));
    let egress = status.direction("egress");
    assert_eq!(egress.totals(), (sent, 0, 0));
    assert_eq!((root.packets, root.drops, root.qlen, root.backlog), (sent, 0, 0, 0), "{root:?}");
    for (class, outcome) in (0u8..).zip(&outcomes) {
        assert_eq!(egress.class(class).sent, Count { pkts: outcome.sent, bytes: outcome.bytes() }, "class {class}");
    }
    assert_eq!(root.bytes, egress.classes.iter().map(|class| class.sent.bytes).sum::<u64>(), "{root:?}");
    lab.down(&pair.a, "a0");
}
