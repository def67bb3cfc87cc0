//! A made-up run for tests: a few scenarios and contenders, repeats, failures.

use std::collections::BTreeMap;

use crate::result::environment::Environment;
use crate::result::results::{
    Bottleneck, Clock, ContenderInfo, Delays, EventDone, FORMAT, Flows, LoadInfo, Measured, Outcome, Processor,
    Results, ScenarioInfo, Timed, Trial,
};
use crate::result::statistics::{Distribution, mean_jitter_ms};

/// Name, title, whether it is Sluice, ms that a full queue adds, share of the rate.
pub const CONTENDERS: [(&str, &str, bool, f64, f64); 7] = [
    ("none", "No scheduler", false, 180.0, 1.0),
    ("fq_codel", "HTB + fq_codel", false, 9.0, 0.985),
    ("cake", "CAKE", false, 4.0, 0.97),
    ("tbf", "TBF", false, 60.0, 0.98),
    ("sluice", "Sluice", true, 2.5, 0.99),
    ("sluice-sched", "Sluice, scheduler", true, 3.2, 0.985),
    ("other", "Another", false, 20.0, 0.9),
];

/// Repeats of each trial.
pub const REPEATS: u32 = 3;

/// A deterministic pseudo-random generator.
struct Random(u64);

impl Random {
    /// The next number, from 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / f64::from(1u32 << 31)
    }
}

/// The run. The contender "other" fails, and does not support weights; TBF failed once.
pub fn results() -> Results {
    with(&[20_000_000, 100_000_000], CONTENDERS.len(), 1)
}

/// A run with these rates, this many contenders, and each scenario this many times.
pub fn with(rates: &[u64], contenders: usize, copies: usize) -> Results {
    let kinds: Vec<_> = CONTENDERS.iter().cycle().take(contenders).enumerate().collect();
    let name = |at: usize, name: &str| if at < CONTENDERS.len() { name.to_owned() } else { format!("{name}-{at}") };
    let scenarios: Vec<ScenarioInfo> =
        (0..copies).flat_map(|copy| scenarios().into_iter().map(move |s| renamed(s, copy))).collect();
    let mut trials = Vec::new();
    for scenario in &scenarios {
        for rate_bps in rates {
            for (at, kind) in &kinds {
                for repeat in 1..=REPEATS {
                    let seed = 1 + *at as u64 * 7919 + u64::from(repeat) * 104_729 + rate_bps / 1000;
                    trials.push(Trial {
                        scenario: scenario.name.clone(),
                        contender: name(*at, kind.0),
                        rate_bps: *rate_bps,
                        repeat,
                        outcome: outcome(scenario, kind, *rate_bps, repeat, Random(seed)),
                    });
                }
            }
        }
    }
    Results {
        format: FORMAT,
        sluice: "0.2.0".into(),
        plan: "published".into(),
        command: "sluice lab run --plan published".into(),
        began: "2026-11-21 09:30".into(),
        took_s: 2712.0,
        environment: Environment {
            cpu: "An Ordinary CPU @ 3.00GHz".into(),
            cores: 4,
            kernel: "6.12".into(),
            distribution: "Debian GNU/Linux 13 (trixie)".into(),
        },
        clock: Clock::Real,
        tools: BTreeMap::from([("iperf3".into(), "3.18".into()), ("irtt".into(), "0.9.1".into())]),
        warnings: vec!["The machine was busy with something else before the run: load 1.4 on 4 cores.".into()],
        scenarios,
        contenders: kinds
            .iter()
            .map(|(at, (key, title, ours, ..))| ContenderInfo {
                name: name(*at, key),
                title: name(*at, title),
                about: format!("{title}, as its manual recommends it for a slow line."),
                ours: *ours,
                baseline: *key == "none",
                file: format!("title = \"{title}\"\ncommands = [\"tc qdisc replace dev $DEV root {key}\"]\n"),
            })
            .collect(),
        trials,
    }
}

fn renamed(scenario: ScenarioInfo, copy: usize) -> ScenarioInfo {
    if copy == 0 { scenario } else { ScenarioInfo { name: format!("{}-{copy}", scenario.name), ..scenario } }
}

fn load(name: &str, kind: &str, about: &str, probe: bool, weight: Option<f64>) -> LoadInfo {
    LoadInfo { name: name.into(), kind: kind.into(), about: about.into(), probe, weight }
}

fn scenarios() -> Vec<ScenarioInfo> {
    let info = |name: &str, title: &str, about: &str, loads: Vec<LoadInfo>| ScenarioInfo {
        name: name.into(),
        title: title.into(),
        about: about.into(),
        chain: false,
        tap: false,
        model: None,
        published: None,
        file: format!("title = \"{title}\"\nabout = \"{about}\"\n"),
        loads,
    };
    vec![
        info(
            "game",
            "A game beside downloads",
            "Does a game’s stream stay fast while downloads fill the line?",
            vec![
                load("downloads", "tcp", "4 TCP flows, cubic", false, None),
                load("uploads", "tcp", "1 TCP flow, bbr", false, None),
                load("game", "stream", "60 small packets a second each way", true, None),
            ],
        ),
        info(
            "web",
            "Pages beside a download",
            "How long do pages take while a download fills the line?",
            vec![
                load("download", "tcp", "1 TCP flow, cubic", false, None),
                load("pages", "web", "a page of 20 objects every second", true, None),
            ],
        ),
        info(
            "weights",
            "Shares by weight",
            "Are rates in proportion to weights?",
            vec![
                load("gold", "tcp", "4 TCP flows, cubic", false, Some(4.0)),
                load("silver", "tcp", "4 TCP flows, cubic", false, Some(2.0)),
                load("bronze", "udp", "1 UDP flow, faster than its share", false, Some(1.0)),
            ],
        ),
    ]
}

fn outcome(
    scenario: &ScenarioInfo,
    kind: &(&str, &str, bool, f64, f64),
    rate_bps: u64,
    repeat: u32,
    mut random: Random,
) -> Outcome {
    match (kind.0, scenario.loads[0].weight) {
        ("other", None) => return Outcome::Failed("tc: Error: Specified qdisc kind is unknown. <exit 2>".into()),
        ("other", Some(_)) => return Outcome::Unsupported("this kernel has no weights for it".into()),
        ("tbf", None) if repeat == 2 => return Outcome::Failed("the client ended with a timeout".into()),
        _ => {}
    }
    let share = kind.4 * (0.995 + 0.005 * random.next());
    let mbit = rate_bps as f64 / 1e6 * share * 0.95;
    let weights: Vec<f64> = scenario.loads.iter().map(|load| load.weight.unwrap_or(1.0)).collect();
    let exact = if kind.2 { 1.0 } else { 0.4 };
    let bulk: Vec<(usize, &LoadInfo)> =
        scenario.loads.iter().enumerate().filter(|(_, l)| ["tcp", "udp"].contains(&l.kind.as_str())).collect();
    let total: f64 = bulk.iter().map(|(at, _)| weights[*at].powf(exact)).sum();
    let flows =
        bulk.iter().map(|(at, load)| flows(load, mbit * weights[*at].powf(exact) / total, &mut random)).collect();
    let delays: Vec<Delays> = scenario
        .loads
        .iter()
        .filter(|l| l.probe)
        .map(|l| delays(l, kind.3 * 2e7 / rate_bps as f64, &mut random))
        .collect();
    Outcome::Measured(Box::new(Measured {
        engine: kind.2.then(|| "bpf".to_owned()),
        commands: vec![format!("tc qdisc replace dev wan root {} rate {rate_bps}bit", kind.0)],
        from_ms: 3000.0,
        to_ms: 13_000.0,
        offloads: "gso off, gro off".into(),
        delays,
        flows,
        bottlenecks: vec![Bottleneck {
            direction: "egress".into(),
            used_percent: share * 100.0,
            pkts: (mbit * 833.0) as u64,
            owned_mean_ms: (kind.0 != "none").then_some(kind.3 * 0.6),
            owned_max_ms: (kind.0 != "none").then_some(kind.3 * 1.1),
            line_mean_ms: if kind.0 == "none" { 190.0 } else { 0.2 },
            line_max_ms: if kind.0 == "none" { 196.0 } else { 0.4 },
            line_dropped: if kind.0 == "none" { 812 } else { 0 },
            series: vec![(0.0, 0, 0), (1000.0, 20_000, 0)],
        }],
        processor: Some(Processor {
            busy_percent: 21.0 + kind.3.min(9.0) + random.next(),
            instructions_per_packet: None,
        }),
        noise: Distribution::of((0..200).map(|_| 0.02 + 0.03 * random.next())),
        observed: Vec::new(),
        card: None,
        events: if kind.2 {
            vec![EventDone { at_ms: 7000.0, took_ms: 12.3, what: "the policy was replaced".into() }]
        } else {
            Vec::new()
        },
    }))
}

fn flows(load: &LoadInfo, mbit: f64, random: &mut Random) -> Flows {
    let tcp = load.kind == "tcp";
    let each: Vec<f64> = (0..if tcp { 4 } else { 1 }).map(|_| 0.8 + 0.4 * random.next()).collect();
    let sum: f64 = each.iter().sum();
    Flows {
        load: load.name.clone(),
        mbit,
        each_mbit: each.iter().map(|part| mbit * part / sum).collect(),
        series: (1..=65).map(|n| (f64::from(n) * 200.0, mbit * (0.9 + 0.2 * random.next()))).collect(),
        retransmitted: tcp.then(|| (random.next() * 300.0) as u64),
        lost_percent: (!tcp).then(|| 12.0 + random.next()),
        jitter_ms: (!tcp).then_some(0.4),
        deviation_kbit: None,
    }
}

fn delays(load: &LoadInfo, queue_ms: f64, random: &mut Random) -> Delays {
    let web = load.kind == "web";
    let (step_ms, base_ms) = if web { (500.0, 60.0) } else { (16.0, 0.3) };
    let mut series = Vec::new();
    let mut at_ms: f64 = -3000.0;
    let mut filled = 0.0;
    while at_ms < 13_000.0 {
        filled = if at_ms < 0.0 { 0.0 } else { (filled + 0.02 + 0.2 * (random.next() - 0.45)).clamp(0.1, 1.0) };
        let delay = base_ms * (1.0 + 0.2 * random.next()) + queue_ms * filled * if web { 8.0 } else { 1.0 };
        let lost = queue_ms > 30.0 && filled >= 1.0 && random.next() < 0.1;
        series.push((at_ms, (!lost).then_some(delay)));
        at_ms += step_ms;
    }
    let counted: Vec<Option<f64>> = series.iter().filter(|(ms, _)| *ms >= 3000.0).map(|(_, delay)| *delay).collect();
    let window = Distribution::of(counted.iter().flatten().copied());
    let idle = Distribution::of(series.iter().filter(|(ms, _)| *ms < 0.0).filter_map(|(_, delay)| *delay));
    let doubled = |d: Option<Distribution>| {
        d.map(|d| Distribution { p50_ms: d.p50_ms * 2.0, p99_ms: d.p99_ms * 2.0, max_ms: d.max_ms * 2.0, ..d })
    };
    Delays {
        load: load.name.clone(),
        what: if web { Timed::Fetch } else { Timed::RoundTrip },
        idle: if web { idle } else { doubled(idle) },
        whole: if web { window } else { doubled(window) },
        one_way: if web { None } else { window },
        idle_one_way: if web { None } else { idle },
        jitter_ms: mean_jitter_ms(&counted),
        sent: counted.len() as u64,
        lost: counted.iter().filter(|delay| delay.is_none()).count() as u64,
        series,
        connect: if web { Distribution::of((0..20).map(|_| 1.0 + queue_ms * random.next())) } else { None },
        per_minute: web.then_some(60_000.0 / (20.0 + queue_ms)),
        per_second: None,
    }
}
