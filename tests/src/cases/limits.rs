//! Limits of queues, drops by reason, and that every packet is accounted for.

use crate::cases::assert_near;
use crate::lab::{Engine, Lab};
use crate::needs::is_icount;
use crate::net::{B, Pair};
use crate::policy::{by_port, port};
use crate::status::{Class, Direction};
use crate::suite::Suite;
use crate::traffic::{self, Flow, Outcome, Streams};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

pub fn suite() -> Suite {
    Suite::new("limits")
        .both("packets_and_bytes", &[], packets_and_bytes)
        .both("conservation_at_every_moment", &[], conservation)
        .both("police_drops_and_shape_delays", &[], police_and_shape)
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
    let least = if codel(&pair) { [20, 8 * 1024] } else { [35, 30 * 1024] };
    assert!(most[0] >= least[0] && most[1] >= least[1], "the queues do fill: {most:?}");
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

/// Whether queues are fq_codel, which drops before the limit.
fn codel(pair: &Pair) -> bool {
    pair.a.qdiscs("a0").iter().any(|qdisc| qdisc.kind == "fq_codel")
}

/// What came in has left, was dropped, or is queued; and what tc counts is what we count.
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
