//! Peaks of classes: a burst passes at the peak, and then the average.

use crate::lab::{Engine, Lab};
use crate::needs::{Need, is_icount};
use crate::net::{A, B, Ns, Pair};
use crate::policy::{by_port, port};
use crate::suite::Suite;
use crate::traffic::{self, Flow, Outcome};
use serde_json::{Value, json};
use std::time::Duration;

pub fn suite() -> Suite {
    Suite::new("peaks")
        .both("a_burst_waits_for_the_peak_in_both_directions", &[Need::Ifb], shaped)
        .both("a_burst_is_policed_to_the_peak_in_both_directions", &[], policed)
        .both("a_peak_changes_and_no_packet_is_lost", &[], changes)
        .tc("a_peak_comes_and_goes_below_htb", &[], comes_and_goes)
        .both("a_peak_is_shown_where_the_ceiling_is", &[], shown)
}

const CEIL: u64 = 2_000_000;
const PEAK: u64 = 8_000_000;
const BURST: u64 = 64 * 1024;
const PEAK_BURST: u64 = 3028;
const FRAME: u64 = 514;
const TIME: Duration = Duration::from_millis(1200);

fn policy(more: Value) -> Value {
    let mut class = json!({ "id": 0, "name": "busy", "ceil": "2mbit", "burst": "64kb", "peak": "8mbit",
        "peak_burst": PEAK_BURST, "limit": 200 });
    class.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    by_port("deficit_round_robin", json!([class, { "id": 1 }]))
}

fn overload() -> Flow {
    Flow::new(port(0), &[FRAME as usize], 16_000_000)
}

/// Bytes that may pass in so many ns; each bucket may go into debt by a packet.
fn allowed(ns: u64) -> u64 {
    let of = |bps: u64, burst: u64| bps * ns / 8_000_000_000 + burst + FRAME;
    of(CEIL, BURST).min(of(PEAK, PEAK_BURST))
}

/// Asserts that what passed is within both buckets in every window, that the burst passed at once, and that nothing of the average
/// is missing. Arrivals may be closer together than the departures were by `late`.
#[track_caller]
fn keeps_to_both(what: &str, engine: Engine, outcome: &Outcome) {
    let arrivals = outcome.window(Duration::ZERO);
    let late_ns = if is_icount() { 1_000_000 } else { 10_000_000 };
    // HTB sends what it guarantees, 8 kbit/s at least and a burst of 1,600 bytes, without asking the ceiling.
    let htb = if engine == Engine::Tc { 1600 + FRAME } else { 0 };
    let bytes_of = |window: &[traffic::Arrival]| window.iter().map(|one| one.bytes as u64).sum::<u64>();
    let mut fullest = 0.0f64;
    for (i, first) in arrivals.iter().enumerate() {
        let mut bytes = 0;
        for last in &arrivals[i..] {
            bytes += last.bytes as u64;
            let ns = last.at_ns.saturating_sub(first.at_ns);
            let most = allowed(ns + late_ns) + htb;
            assert!(bytes <= most, "{what}: {bytes} bytes in {} us, and {most} may", ns / 1000);
            fullest = fullest.max(bytes as f64 / most as f64);
        }
    }
    let (first, last) = (arrivals[0].at_ns, arrivals[arrivals.len() - 1].at_ns);
    let early = arrivals.partition_point(|one| one.at_ns < first + 250_000_000);
    let (early, all) = (bytes_of(&arrivals[..early]), bytes_of(arrivals));
    let due = allowed(last - first);
    eprintln!("    {what}: {early} bytes in 250 ms, {all} of {due} in all; the fullest window has {fullest:.3}");
    assert!(early > BURST, "{what}: the burst does not pass: {early} bytes in the first 250 ms");
    assert!(all >= due * 95 / 100, "{what}: {all} bytes, of {due}");
}

/// The flow's outcome in one direction, whatever the class drops counted.
fn run(lab: &Lab, pair: &Pair, direction: &str) -> Outcome {
    let (from, to, address): (&Ns, &Ns, &str) =
        if direction == "egress" { (&pair.a, &pair.b, B) } else { (&pair.b, &pair.a, A) };
    let lost = || lab.status(&pair.a, "a0").direction(direction).totals().1;
    traffic::run(from, to, address, &[overload()], TIME, lost).remove(0)
}

fn shaped(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&policy(json!({}))), &["--rate", "50mbit", "--ingress-rate", "50mbit"]);
    for direction in ["egress", "ingress"] {
        let outcome = run(lab, &pair, direction);
        keeps_to_both(&format!("{direction}, shaped"), lab.engine, &outcome);
    }
    lab.down(&pair.a, "a0");
}

fn policed(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&policy(json!({ "police": true }))), &["--rate", "50mbit"]);
    for direction in ["egress", "ingress"] {
        let outcome = run(lab, &pair, direction);
        // A policer is no class of HTB.
        keeps_to_both(&format!("{direction}, policed"), Engine::Qdisc, &outcome);
        let status = lab.status(&pair.a, "a0");
        let class = status.direction(direction).class(0);
        let count = |reason: &str| class.drops.get(reason).copied().unwrap_or(0);
        assert!(count("peak_limited") > 0 && count("policed") > 0, "{direction}: {class:?}");
        assert_eq!(count("peak_limited") + count("policed"), outcome.lost(), "{direction}: {class:?}");
    }
    lab.down(&pair.a, "a0");
}

/// While packets wait for the ceiling, the peak becomes another one and is taken back; with engine `qdisc` it goes and comes.
fn changes(lab: &Lab) {
    let pair = lab.pair();
    lab.up(&pair.a, "a0", &lab.policy(&policy(json!({ "limit": 4000 }))), &["--rate", "50mbit"]);
    let streams = traffic::start(&pair.a, &pair.b, B, &[Flow::new(port(0), &[FRAME as usize], 3_000_000)]);
    let pause = || std::thread::sleep(Duration::from_millis(250));
    let faster = lab.policy(&policy(json!({ "limit": 4000, "peak": "20mbit", "peak_burst": "5kb" })));
    let planned = lab.sluice(&pair.a, &["apply", "a0", &faster, "--dry-run"]).ok().stdout;
    assert!(planned.contains("peak 8mbit -> 20mbit, peak_burst 3028b -> 5kb"), "{planned}");
    pause();
    lab.sluice(&pair.a, &["apply", "a0", &faster]).ok();
    assert_eq!(peak_bps(lab, &pair), json!(20_000_000));
    pause();
    if lab.engine == Engine::Qdisc {
        let mut without = policy(json!({ "limit": 4000 }));
        let class = without["classes"][0].as_object_mut().expect("an object");
        class.retain(|key, _| !key.starts_with("peak"));
        lab.sluice(&pair.a, &["apply", "a0", &lab.policy(&without)]).ok();
        assert_eq!(peak_bps(lab, &pair), Value::Null);
        pause();
        lab.sluice(&pair.a, &["rollback", "a0"]).ok();
        assert_eq!(peak_bps(lab, &pair), json!(20_000_000));
    } else {
        lab.sluice(&pair.a, &["rollback", "a0"]).ok();
        assert_eq!(peak_bps(lab, &pair), json!(8_000_000));
    }
    streams.finish(|| 0);
    lab.down(&pair.a, "a0");
}

/// HTB does not move a class below another one: a class that gets a peak is made anew.
fn comes_and_goes(lab: &Lab) {
    let pair = lab.pair();
    let mut without = policy(json!({}));
    without["classes"][0].as_object_mut().expect("an object").retain(|key, _| !key.starts_with("peak"));
    let (with, without) = (lab.policy(&policy(json!({}))), lab.policy(&without));
    lab.up(&pair.a, "a0", &without, &["--rate", "50mbit"]);
    lab.sluice(&pair.a, &["apply", "a0", &with]).ok();
    keeps_to_both("egress, since an apply", lab.engine, &run(lab, &pair, "egress"));
    lab.sluice(&pair.a, &["rollback", "a0"]).ok();
    assert_eq!(peak_bps(lab, &pair), Value::Null);
    lab.sluice(&pair.a, &["apply", "a0", &with]).ok();
    let told = lab.sluice(&pair.a, &["check", &with, "--engine", "tc"]).ok().stdout;
    assert!(told.contains("holds the ceiling and the class itself the peak"), "{told}");
    lab.down(&pair.a, "a0");
}

fn json_status(lab: &Lab, pair: &Pair) -> Value {
    let printed = lab.sluice(&pair.a, &["status", "a0", "--json"]).ok().stdout;
    serde_json::from_str(&printed).expect("JSON")
}

fn peak_bps(lab: &Lab, pair: &Pair) -> Value {
    json_status(lab, pair)["directions"][0]["classes"][0]["peak_bps"].clone()
}

fn shown(lab: &Lab) {
    let pair = lab.pair();
    for more in [json!({}), json!({ "police": true })] {
        let file = lab.policy(&policy(more.clone()));
        let checked = lab.sluice(&pair.a, &["check", &file]).ok().stdout;
        assert!(checked.contains("peak burst") && checked.contains("3028b"), "{checked}");
        lab.up(&pair.a, "a0", &file, &["--rate", "50mbit"]);
        // A scheduler is configured by its first packet.
        let few = Flow::new(port(0), &[FRAME as usize], 400_000);
        traffic::run(&pair.a, &pair.b, B, &[few], Duration::from_millis(100), || 0);
        let class = json_status(lab, &pair)["directions"][0]["classes"][0].clone();
        assert_eq!(class["peak_bps"], 8_000_000, "{class:#}");
        let known = lab.engine == Engine::Qdisc || more["police"] == true;
        let fill = class["peak_fill"].as_f64();
        assert!(fill.is_some() == known && fill.is_none_or(|fill| fill > 0.8), "{class:#}");
        let words = ["explain", "a0", "udp", "192.0.2.1:9", &format!("198.51.100.2:{}", port(0))];
        let explained = lab.sluice(&pair.a, &words).ok().stdout;
        let line = explained.lines().find(|line| line.starts_with("peak ")).unwrap_or_else(|| panic!("{explained}"));
        assert!(line.contains('8') && line.contains("bit"), "{line}");
        lab.down(&pair.a, "a0");
    }
}
