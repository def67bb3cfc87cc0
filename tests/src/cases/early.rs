//! Early drop: arrivals for which the queue has no room are dropped by the hook before it.

use crate::cases::assert_near;
use crate::cases::events::while_listening;
use crate::lab::{Engine, Lab};
use crate::needs::{Need, is_icount};
use crate::net::{A, Pair};
use crate::policy::{by_port, port};
use crate::status::Class;
use crate::suite::Suite;
use crate::traffic::{self, Flow, Outcome};
use serde_json::{Value, json};
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("early")
        .both("xdp_drops_what_a_full_class_would", &[Need::Ifb], |lab| full_classes(lab, "xdp"))
        .both("tc_drops_what_a_full_class_would", &[Need::Ifb], |lab| full_classes(lab, "tc"))
        .both("goodput_stays_whatever_is_offered", &[Need::Ifb, Need::Icount], goodput)
        .qdisc("light_flows_of_a_full_class_lose_nothing", &[Need::Ifb], light_flows)
        .tc("classes_that_queue_by_flow_are_left_to_the_queue", &[Need::Ifb, Need::FqCodel], left_to_the_queue)
        .both("early_drops_of_xdp_are_traced", &[Need::Ifb], traced)
        .both("doctor_says_where_arrivals_are_dropped", &[Need::Ifb], told)
}

const FRAME: usize = 514;
const TIME: Duration = Duration::from_millis(1500);

/// Packets of a class that were dropped early, and that were dropped at all.
fn dropped(class: &Class) -> (u64, u64) {
    (class.drops.get("early").copied().unwrap_or(0), class.dropped.pkts)
}

fn arrive(lab: &Lab, pair: &Pair, flows: &[Flow]) -> Vec<Outcome> {
    let lost = || lab.status(&pair.a, "a0").direction("ingress").totals().1;
    traffic::run(&pair.b, &pair.a, A, flows, TIME, lost)
}

fn up(lab: &Lab, pair: &Pair, policy: &Value, hook: &str) {
    lab.up(&pair.a, "a0", &lab.policy(policy), &["--ingress-rate", "10mbit", "--classifier", hook]);
}

/// Two classes with a queue each, of which one holds a ceiling and gets five times as much. Each class sends what it would send without
/// early drop, and what is lost is lost by the one that is full, almost all of it before its queue.
fn full_classes(lab: &Lab, hook: &str) {
    let pair = lab.pair();
    let policy = by_port(
        "deficit_round_robin",
        json!([{ "id": 0, "name": "busy", "ceil": "4mbit", "limit": 50 }, { "id": 1, "name": "light", "limit": 100 }]),
    );
    up(lab, &pair, &policy, hook);
    let outcomes =
        arrive(lab, &pair, &[Flow::new(port(0), &[FRAME], 20_000_000), Flow::new(port(1), &[FRAME], 1_000_000)]);
    let status = lab.status(&pair.a, "a0");
    let (busy, light) = (status.ingress(0), status.ingress(1));
    let ((early, all), at_ceil) = (dropped(busy), outcomes[0].bps(Duration::from_millis(300), 0));
    eprintln!("    {hook}: {} offered, {} sent, {early} of {all} dropped early", outcomes[0].sent, busy.sent.pkts);
    assert_eq!(outcomes[1].lost(), 0, "the light class loses nothing: {light:?}");
    assert_eq!((outcomes[0].lost(), all), (all, outcomes[0].sent - busy.sent.pkts), "each loss is counted: {busy:?}");
    assert!(early * 10 >= all * 9, "{early} of {all} are dropped before the queue: {busy:?}");
    if is_icount() {
        assert_near("the busy class sends its ceiling", at_ceil, 4e6, 0.01);
    }
    lab.down(&pair.a, "a0");
}

/// Both classes get once to ten times what they may send: one its ceiling, the other the rest of the line.
fn goodput(lab: &Lab) {
    let pair = lab.pair();
    let policy = by_port(
        "deficit_round_robin",
        json!([{ "id": 0, "name": "ceiling", "ceil": "4mbit", "limit": 50 }, { "id": 1, "name": "rest", "limit": 50 }]),
    );
    up(lab, &pair, &policy, "xdp");
    let settle = Duration::from_millis(200);
    for times in [1, 3, 10] {
        let load = |class: u8, bps: u64| Flow::new(port(class), &[FRAME], bps * times);
        let flows = [load(0, 4_000_000), load(1, 6_000_000)];
        let lost = || lab.status(&pair.a, "a0").direction("ingress").totals().1;
        let before = lost();
        let time = Duration::from_millis(700);
        let outcomes = traffic::run(&pair.b, &pair.a, A, &flows, time, || lost() - before);
        for (outcome, due) in outcomes.iter().zip([4e6, 6e6]) {
            assert_near(&format!("goodput at {times} times the limit"), outcome.bps(settle, 0), due, 0.01);
        }
    }
    lab.down(&pair.a, "a0");
}

/// Of a class that queues by flow, a heavy flow loses packets before the queue, and a light one none at all.
fn light_flows(lab: &Lab) {
    for hook in ["xdp", "tc"] {
        let pair = lab.pair();
        up(lab, &pair, &one_class_by_flow(), hook);
        let outcomes =
            arrive(lab, &pair, &[Flow::new(port(0), &[FRAME], 40_000_000), Flow::new(port(1), &[FRAME], 1_000_000)]);
        let (early, all) = dropped(lab.status(&pair.a, "a0").ingress(0));
        eprintln!("    {hook}: {early} of {all} dropped early");
        assert_eq!(outcomes[1].lost(), 0, "the light flow loses nothing");
        assert_eq!(outcomes[0].lost(), all, "each loss is counted");
        assert!(early * 10 >= all * 8, "{early} of {all} are dropped before the queue");
        if is_icount() {
            let sum: f64 = outcomes.iter().map(|outcome| outcome.bps(Duration::from_millis(300), 0)).sum();
            assert_near("the link is full", sum, 10e6, 0.01);
        }
        lab.down(&pair.a, "a0");
    }
}

/// One class that queues by flow, for two ports.
fn one_class_by_flow() -> Value {
    json!({ "version": 1, "scheduler": "deficit_round_robin",
        "classes": [{ "id": 0, "name": "all", "queue": "flows", "limit": 200 }] })
}

/// A virtual queue knows no flows, so there is none for such a class: fq_codel drops its packets.
fn left_to_the_queue(lab: &Lab) {
    let pair = lab.pair();
    up(lab, &pair, &one_class_by_flow(), "xdp");
    let outcomes = arrive(lab, &pair, &[Flow::new(port(0), &[FRAME], 20_000_000)]);
    let (early, all) = dropped(lab.status(&pair.a, "a0").ingress(0));
    assert_eq!((early, outcomes[0].lost()), (0, all));
    assert!(all > 0);
    lab.down(&pair.a, "a0");
}

fn traced(lab: &Lab) {
    let pair = lab.pair();
    let classes = json!([{ "id": 0, "ceil": "1mbit", "limit": 10 }, { "id": 1, "limit": 20 }]);
    up(lab, &pair, &by_port("deficit_round_robin", classes), "xdp");
    let dport = port(0).to_string();
    let arguments = ["trace", "a0", "udp", "dport", &dport, "--one-in", "1", "--count", "200", "--json", "--for", "6s"];
    let told = while_listening(lab, &pair, &arguments, |_| {
        let flows = [Flow::new(port(0), &[FRAME], 3_000_000), Flow::new(port(1), &[FRAME], 500_000)];
        traffic::start(&pair.b, &pair.a, A, &flows).stop_after(Duration::from_millis(500));
    });
    let early: Vec<&Value> = told.iter().filter(|one| one["dropped"] == "early").collect();
    assert!(!early.is_empty(), "none of {} was dropped early: {:?}", told.len(), told.first());
    for one in early {
        assert_eq!((&one["direction"], &one["class"]), (&json!("ingress"), &json!(0)), "{one}");
        assert_eq!((&one["fields"]["dst_port"], &one["length_bytes"]), (&json!(port(0)), &json!(FRAME)), "{one}");
    }
    lab.down(&pair.a, "a0");
}

fn told(lab: &Lab) {
    let pair = lab.pair();
    let policy = by_port("deficit_round_robin", json!([{ "id": 0 }]));
    for (hook, says) in [("xdp", "XDP drops what the queue of a class has no room for"), ("tc", "socket buffer")] {
        up(lab, &pair, &policy, hook);
        let doctor = lab.sluice(&pair.a, &["doctor"]).ok();
        let line = doctor.stdout.lines().find(|line| line.contains("arrivals")).unwrap_or_else(|| panic!("{doctor}"));
        assert!(line.contains(says), "{hook}: {line}");
        assert_eq!(line.contains("virtual queue"), lab.engine == Engine::Tc, "{line}");
        lab.down(&pair.a, "a0");
    }
}
