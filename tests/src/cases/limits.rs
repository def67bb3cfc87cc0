//! Limits of queues, drops by reason, and conservation: every packet is counted.

use crate::cases::assert_near;
use crate::lab::{Engine, Lab};
use crate::needs::{Need, is_icount};
use crate::net::{A, B, Pair};
use crate::policy::{by_port, port, with};
use crate::status::{Class, Direction};
use crate::suite::Suite;
use crate::traffic::{self, Flow, Outcome, Streams};
use serde_json::{Value, json};
use sluice_model::limits as model;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

pub fn suite() -> Suite {
    Suite::new("limits")
        .both("packets_and_bytes", &[], packets_and_bytes)
        .both("conservation_at_every_moment", &[], conservation)
        .both("police_drops_and_shape_delays", &[], police_and_shape)
        .both("each_flow_keeps_to_its_rate", &[], flows)
        .any("a_flood_of_flows_leaves_room_for_new_ones", &[], newcomers)
        .both("an_interface_keeps_to_its_rate", &[], interface)
        .both("interfaces_share_a_rate", &[], shared)
        .both("all_or_none_is_charged", &[], nested)
        .qdisc("packets_refused_by_the_queue_are_not_charged", &[], refunded)
        .any("cpus_keep_to_a_rate_together", &[], cpus)
        .any("any_window_keeps_to_the_rate", &[Need::Icount], any_window)
}

const FRAME: u64 = 1014;

fn limited() -> Value {
    by_port(
        "deficit_round_robin",
        json!([
            { "id": 0, "name": "packets", "limit": 40 },
            { "id": 1, "name": "bytes", "limit": "32kb" },
        ]),
    )
}

fn flood(lab: &Lab, pair: &Pair, policy: &Value, flows: &[Flow]) -> Streams {
    lab.up(&pair.a, "a0", &lab.policy(policy), &["--rate", "10mbit"]);
    traffic::start(&pair.a, &pair.b, B, flows)
}

fn drop_count(lab: &Lab, pair: &Pair) -> u64 {
    lab.status(&pair.a, "a0").direction("egress").totals().1
}

fn packets_and_bytes(lab: &Lab) {
    let pair = lab.pair();
    let flows = [0, 1].map(|class| Flow::new(port(class), &[FRAME as usize], 15_000_000));
    let streams = flood(lab, &pair, &limited(), &flows);
    let mut most = [0, 0];
    let begin = Instant::now();
    let mut looks = 0;
    while begin.elapsed() < Duration::from_millis(1200) || looks < 5 {
        let status = lab.status(&pair.a, "a0");
        most = [most[0].max(status.egress(0).backlog.pkts), most[1].max(status.egress(1).backlog.bytes)];
        looks += 1;
    }
    let outcomes = streams.finish(|| drop_count(lab, &pair));
    let status = lab.status(&pair.a, "a0");
    eprintln!("    seen in {looks} looks: {} packets, {} bytes", most[0], most[1]);
    assert!(most[0] <= 40 && most[1] <= 32 * 1024, "a limit is exceeded: {most:?}");
    assert!(most[0] >= 35 && most[1] >= 30 * 1024, "the queues do fill: {most:?}");
    for (class, reason) in [(0, "limit_pkts"), (1, "limit_bytes")] {
        let reason = if lab.engine == Engine::Tc { "queue" } else { reason };
        let got = status.egress(class);
        assert_eq!(got.drops.get(reason), Some(&outcomes[usize::from(class)].lost()), "{got:?}");
        assert_eq!(got.drops.len(), 1, "for no other reason: {got:?}");
        assert_eq!(got.sent.pkts, outcomes[usize::from(class)].received());
        assert_eq!(got.sent.bytes, got.sent.pkts * FRAME);
    }
    if lab.engine == Engine::Qdisc {
        assert_eq!(status.egress(0).peak_backlog_bytes, Some(40 * FRAME));
        assert_eq!(status.egress(1).peak_backlog_bytes, Some(32 * 1024 / FRAME * FRAME));
    }
    lab.down(&pair.a, "a0");
}

/// Every packet has left, was dropped, or is queued; tc and the product count the same.
fn conservation(lab: &Lab) {
    let pair = lab.pair();
    let flows = [0, 1].map(|class| Flow::new(port(class), &[FRAME as usize, 214], 15_000_000));
    let streams = flood(lab, &pair, &limited(), &flows);
    std::thread::sleep(Duration::from_millis(300));
    streams.stop();
    let whole = |egress: &Direction| egress.totals().0 + egress.totals().1 + egress.totals().2;
    crate::command::await_that("all that was sent is accounted for", Duration::from_secs(5), || {
        let sent = streams.so_far().0;
        whole(lab.status(&pair.a, "a0").direction("egress")) == sent
    });
    let outcomes = streams.finish(|| drop_count(lab, &pair));
    let status = lab.status(&pair.a, "a0");
    let (sent, dropped, queued) = status.direction("egress").totals();
    assert_eq!(queued, 0);
    assert_eq!(sent, outcomes.iter().map(Outcome::received).sum::<u64>());
    assert_eq!(dropped, outcomes.iter().map(Outcome::lost).sum::<u64>());
    let root = pair.a.root("a0").expect("a root qdisc");
    assert_eq!((root.packets, root.qlen), (sent, 0), "{root:?}");
    let bytes: u64 = status.direction("egress").classes.iter().map(|class| class.sent.bytes).sum();
    assert_eq!(root.bytes, bytes, "{root:?}");
    lab.down(&pair.a, "a0");
}

fn policed(police: bool) -> Value {
    by_port(
        "deficit_round_robin",
        json!([
            { "id": 0, "ceil": "4mbit", "police": police, "limit": 100, "burst": "8kb" },
            { "id": 1, "limit": 100 },
        ]),
    )
}

fn over_ceil(lab: &Lab, police: bool) -> (Outcome, Class) {
    let pair = lab.pair();
    let flows = [Flow::new(port(0), &[514], 8_000_000)];
    lab.up(&pair.a, "a0", &lab.policy(&policed(police)), &["--rate", "50mbit"]);
    let mut outcomes =
        traffic::run(&pair.a, &pair.b, B, &flows, Duration::from_millis(1500), || drop_count(lab, &pair));
    let class = lab.status(&pair.a, "a0").egress(0).clone();
    lab.down(&pair.a, "a0");
    (outcomes.remove(0), class)
}

fn police_and_shape(lab: &Lab) {
    let (policed, class) = over_ceil(lab, true);
    assert_eq!(class.drops.get("policed"), Some(&policed.lost()), "{class:?}");
    assert_eq!(class.drops.len(), 1, "{class:?}");
    let (shaped, class) = over_ceil(lab, false);
    assert_eq!(class.drops.get("policed"), None, "{class:?}");
    assert!(shaped.lost() > 0, "its queue is full in the end");
    let (fast, slow) = (policed.delay_ms(0.5), shaped.delay_ms(0.5));
    eprintln!("    median delay policed {fast:.2} ms, shaped {slow:.2} ms");
    // 100 frames of 514 bytes take 103 ms at 4 Mbit/s; CoDel lets a third of it stand.
    assert!(slow > 20.0 && fast < slow / 4.0, "policed {fast} ms, shaped {slow} ms");
    if is_icount() {
        let settle = Duration::from_millis(300);
        assert_near("4 Mbit/s policed", policed.bps(settle, 0), 4e6, 0.01);
        assert_near("4 Mbit/s shaped", shaped.bps(settle, 0), 4e6, 0.01);
        assert!(policed.delay_ms(0.99) < 3.0, "p99 of what is policed: {} ms", policed.delay_ms(0.99));
    }
}

const TIME: Duration = Duration::from_millis(1500);
/// The bytes that pass at once: a full bucket of these tests, and one more frame.
const BURST: u64 = 8 * 1024 + 514;

/// Asserts that the passed bytes are close to a rate and not above it.
pub fn assert_policed(what: &str, outcomes: &[&Outcome], mbit: u64) {
    let bytes: u64 = outcomes.iter().map(|outcome| outcome.bytes()).sum();
    let first = outcomes.iter().filter_map(|one| one.arrivals.first()).map(|one| one.at_ns).min().unwrap_or(0);
    let last = outcomes.iter().filter_map(|one| one.arrivals.last()).map(|one| one.at_ns).max().unwrap_or(0);
    let in_time = mbit * 125 * (last - first) / 1_000_000;
    eprintln!("    {what}: {bytes} bytes passed, {in_time} and a burst may");
    // Arrivals are a little closer together than the departures were.
    assert!(bytes <= in_time + BURST + mbit * 125_000 / 100, "{what}: {bytes} bytes, of {in_time}");
    assert!(bytes >= in_time * 9 / 10, "{what}: {bytes} bytes, of {in_time}");
}

fn flow(port: u16) -> Flow {
    Flow::new(port, &[514], 6_000_000)
}

/// The outcomes of these flows under a policy, and the counters of class 0.
fn limited_by(lab: &Lab, policy: &Value, flows: &[Flow]) -> (Vec<Outcome>, Class) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(policy), &["--rate", "100mbit"]);
    let outcomes = traffic::run(&pair.a, &pair.b, B, flows, TIME, || drop_count(lab, &pair));
    let class = lab.status(&pair.a, "a0").egress(0).clone();
    lab.down(&pair.a, "a0");
    (outcomes, class)
}

/// Flows of a class have a bucket each.
fn flows(lab: &Lab) {
    let classes = json!([{ "id": 0, "flow_ceil": "2mbit", "flow_burst": "8kb" }]);
    let policy = by_port("deficit_round_robin", classes);
    let three = [flow(3000), flow(3001), flow(3002)];
    let (outcomes, class) = limited_by(lab, &policy, &three);
    for outcome in &outcomes {
        assert_policed("a flow", &[outcome], 2);
    }
    let lost: u64 = outcomes.iter().map(Outcome::lost).sum();
    assert_eq!(class.drops.get("flow_limited"), Some(&lost), "{class:?}");
    assert_eq!(class.drops.len(), 1, "for no other reason: {class:?}");
}

/// New flows have buckets of their own from the first packet on, even if there are more flows than the table holds.
fn newcomers(lab: &Lab) {
    const PORTS: std::ops::Range<u16> = 20_000..28_000;
    let pair = lab.pair();
    let classes = json!([{ "id": 0, "flow_ceil": "1mbit", "flow_burst": "8kb" }]);
    let policy = with(by_port("deficit_round_robin", classes), "flow_table", json!(1024));
    lab.up(&pair.a, "a0", &lab.policy(&policy), &["--rate", "100mbit"]);
    let socket = pair.a.inside(|| UdpSocket::bind((A, 0))).expect("a socket");
    let begin = Instant::now();
    for (number, port) in (0u32..).zip(PORTS) {
        // 20 Mbit/s.
        while begin.elapsed() < number * Duration::from_micros(100) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(socket.send_to(&[0; 208], (B, port)).ok(), Some(208));
    }
    let class = lab.status(&pair.a, "a0").egress(0).clone();
    let limited = class.drops.get("flow_limited").copied().unwrap_or(0);
    eprintln!("    {limited} of {} packets were refused by the limit of flows", PORTS.len());
    assert!(limited < PORTS.len() as u64 / 20, "{class:?}");
    lab.down(&pair.a, "a0");
}

fn interface(lab: &Lab) {
    let mut policy = by_port("deficit_round_robin", json!([{ "id": 0 }, { "id": 1 }]));
    policy["limits"] = json!({ "egress": "4mbit", "egress_burst": "8kb", "ingress": "3mbit", "ingress_burst": "8kb" });
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&policy), &["--rate", "100mbit"]);
    let two = [flow(port(0)), flow(port(1))];
    let out = traffic::run(&pair.a, &pair.b, B, &two, TIME, || drop_count(lab, &pair));
    assert_policed("the interface's departures", &[&out[0], &out[1]], 4);
    let arrived = || lab.status(&pair.a, "a0").direction("ingress").totals().1;
    let back = traffic::run(&pair.b, &pair.a, A, &two, TIME, arrived);
    assert_policed("the interface's arrivals", &[&back[0], &back[1]], 3);
    let status = lab.status(&pair.a, "a0");
    for (direction, outcomes) in [("egress", &out), ("ingress", &back)] {
        for class in [0u8, 1] {
            let got = status.direction(direction).class(class);
            let lost = outcomes[usize::from(class)].lost();
            assert_eq!(got.drops.get("interface_limited").copied().unwrap_or(0), lost, "{direction}: {got:?}");
        }
    }
    lab.down(&pair.a, "a0");
}

/// A class whose queue is always full uses nothing of the interface's rate, which another class needs.
fn refunded(lab: &Lab) {
    let classes = json!([{ "id": 0, "ceil": "1mbit", "limit": 5 }, { "id": 1 }]);
    let mut policy = by_port("deficit_round_robin", classes);
    policy["limits"] = json!({ "egress": "6mbit", "egress_burst": "8kb" });
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&policy), &["--rate", "100mbit"]);
    let two = [Flow::new(port(0), &[514], 12_000_000), Flow::new(port(1), &[514], 3_000_000)];
    let outcomes = traffic::run(&pair.a, &pair.b, B, &two, TIME, || drop_count(lab, &pair));
    let status = lab.status(&pair.a, "a0");
    assert!(outcomes[0].lost() > outcomes[0].received(), "the queue refuses most");
    assert_eq!(outcomes[1].lost(), 0, "it was charged for what the queue refused: {:?}", status.egress(1));
    lab.down(&pair.a, "a0");
}

/// Two pairs, whose classes take from one bucket.
fn shared(lab: &Lab) {
    let name = format!("test-{}", std::process::id());
    let policy = |rate: &str| {
        let own = json!({ "name": name, "rate": rate, "burst": "8kb" });
        by_port("deficit_round_robin", json!([{ "id": 0, "shared_ceil": own }]))
    };
    let (one, two) = (lab.pair(), lab.pair());
    lab.up(&one.a, "a0", &lab.policy(&policy("4mbit")), &["--rate", "100mbit"]);
    let refused = lab.try_up(&two.a, "a0", &lab.policy(&policy("5mbit")), &["--rate", "100mbit"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("a0") && refused.stderr.contains("4mbit"), "{refused}");
    lab.up(&two.a, "a0", &lab.policy(&policy("4mbit")), &["--rate", "100mbit"]);
    let streams = [&one, &two].map(|pair| traffic::start(&pair.a, &pair.b, B, &[flow(port(0))]));
    std::thread::sleep(TIME);
    streams.iter().for_each(Streams::stop);
    let mut pairs = [&one, &two].into_iter();
    let outcomes = streams.map(|streams| {
        let pair = pairs.next().expect("two pairs");
        streams.finish(|| drop_count(lab, pair)).remove(0)
    });
    assert_policed("both interfaces", &[&outcomes[0], &outcomes[1]], 4);
    for (pair, outcome) in [&one, &two].into_iter().zip(&outcomes) {
        let class = lab.status(&pair.a, "a0").egress(0).clone();
        assert_eq!(class.drops.get("shared_limited").copied().unwrap_or(0), outcome.lost(), "{class:?}");
    }
    let other = lab.sluice(&two.a, &["apply", "a0", &lab.policy(&policy("5mbit"))]);
    assert_eq!(other.code, Some(2), "{other}");
    let pin = format!("/sys/fs/bpf/sluice/shared/{name}");
    lab.down(&one.a, "a0");
    assert!(std::path::Path::new(&pin).exists(), "the other interface has it still");
    lab.down(&two.a, "a0");
    assert!(!std::path::Path::new(&pin).exists(), "the last one removes it");
}

/// Packets that the interface refuses are not charged to flows: a flow next to one above its rate gets its own rate.
fn nested(lab: &Lab) {
    let shared = json!({ "name": format!("test-{}", std::process::id()), "rate": "3mbit", "burst": "8kb" });
    let class = json!({ "id": 0, "flow_ceil": "2500kbit", "flow_burst": "8kb", "shared_ceil": shared });
    let mut policy = by_port("deficit_round_robin", json!([class]));
    policy["limits"] = json!({ "egress": "8mbit" });
    let (outcomes, class) = limited_by(lab, &policy, &[flow(3000), flow(3001)]);
    assert_policed("both flows", &[&outcomes[0], &outcomes[1]], 3);
    let lost: u64 = outcomes.iter().map(Outcome::lost).sum();
    let count = |reason: &str| class.drops.get(reason).copied().unwrap_or(0);
    assert_eq!(count("flow_limited") + count("shared_limited"), lost, "{class:?}");
    assert!(count("shared_limited") > 0, "{class:?}");
}

/// Threads on separate CPUs run the program without an interface. Under overload the rate and one burst pass whichever bucket
/// it is: no more, and hardly less. The burst outlasts any time in which other work has the CPUs.
fn cpus(_: &Lab) {
    const THREADS: u16 = 2;
    const BPS: f64 = 100e6;
    const BURST: f64 = 10.0 * 1024.0 * 1024.0;
    let (rate, burst) = (json!("100mbit"), json!("10mb"));
    let shared = json!({ "name": "here", "rate": rate, "burst": burst });
    for (what, class, limits) in [
        ("a class", json!({ "id": 0, "ceil": rate, "burst": burst, "police": true }), json!({})),
        ("a flow", json!({ "id": 0, "flow_ceil": rate, "flow_burst": burst }), json!({})),
        ("an interface", json!({ "id": 0 }), json!({ "ingress": rate, "ingress_burst": burst })),
        ("a shared bucket", json!({ "id": 0, "shared_ceil": shared }), json!({})),
    ] {
        let policy = json!({ "scheduler": "round_robin", "classes": [class], "limits": limits }).to_string();
        let done =
            model::flood(&policy, THREADS, what == "a flow", 500, Duration::from_secs(2)).expect("the program runs");
        let due = BPS / 8.0 * done.time.as_secs_f64() + BURST;
        let beyond = done.passed as f64 - due;
        eprintln!(
            "    {what}: {} bytes of {} packets passed in {:?}, {beyond:+.0} beyond",
            done.passed, done.tried, done.time
        );
        assert!(beyond <= f64::from(THREADS) * 500.0, "{what}: {beyond} bytes too many");
        assert!(beyond >= -0.001 * due, "{what}: {beyond} bytes too few");
    }
}

/// The packets that pass the program: in every window at low rates; in total at 1 Gbit/s, where a burst ends before it can be
/// asked for.
fn any_window(_: &Lab) {
    const BURST: u64 = 8 * 1024;
    const COUNT: usize = 2000;
    for (name, bps, bytes, pause_us) in
        [("64kbit", 64_000u64, 100, 5_000), ("1mbit", 1_000_000, 500, 1_500), ("100mbit", 100_000_000, 3000, 0)]
    {
        let limits = json!({ "ingress": name, "ingress_burst": "8kb" });
        let policy = json!({ "scheduler": "round_robin", "classes": [{ "id": 0 }], "limits": limits }).to_string();
        let passed =
            model::departures(&policy, bytes, Duration::from_micros(pause_us), COUNT).expect("the program runs");
        let mut fullest = 0.0f64;
        for (i, first) in passed.iter().enumerate() {
            let mut window_bytes = 0;
            for last in &passed[i..] {
                window_bytes += last.bytes;
                let time = last.latest - first.earliest;
                let due = u128::from(bps) * time.as_nanos() / 8_000_000_000 + u128::from(BURST + last.bytes);
                assert!(u128::from(window_bytes) <= due, "{name}: {window_bytes} bytes in {time:?}, more than {due}");
                fullest = fullest.max(window_bytes as f64 / due as f64);
            }
        }
        eprintln!("    {name}: the fullest window has {fullest:.4} of what it may have");
        assert!(fullest > 0.98, "{name}: the clock outside is too coarse to find a window that has too much");
        let bytes: u64 = passed.iter().map(|one| one.bytes).sum();
        let time = passed.last().expect("packets have passed").latest - passed[0].earliest;
        let due = bps as f64 / 8.0 * time.as_secs_f64() + BURST as f64;
        assert_near(&format!("bytes passed at {name} in {time:.3?}"), bytes as f64, due, 0.001);
    }
    // A run ends and begins with a grace period of RCU, which the burst outlasts.
    let limits = json!({ "ingress": "1gbit", "ingress_burst": "32mb" });
    let policy = json!({ "scheduler": "round_robin", "classes": [{ "id": 0 }], "limits": limits }).to_string();
    let done = model::flood(&policy, 1, true, 3000, Duration::from_millis(500)).expect("the program runs");
    let due = 125e6 * done.time.as_secs_f64() + 32.0 * 1024.0 * 1024.0;
    let least = due - 125e6 * model::TICK.as_secs_f64();
    assert!(done.passed as f64 >= least * 0.999, "{} of {least}", done.passed);
    assert!(done.passed as f64 <= due + 3000.0, "{} of {due}", done.passed);
}
