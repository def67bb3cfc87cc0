//! The sentences of the report.

use super::Report;
use crate::demo::measurement::Run;
use crate::result::environment::UNKNOWN;

/// A remark is made if downloads keep less than this share of their rate.
const RATE_KEPT: f64 = 0.9;

/// A delay as text.
pub fn milliseconds(ms: f64) -> String {
    if ms >= 99.5 {
        format!("{ms:.0} ms")
    } else if ms >= 9.95 {
        format!("{ms:.1} ms")
    } else {
        format!("{ms:.2} ms")
    }
}

/// The name of Sluice in the report, with its engine.
pub fn with_title(report: &Report) -> String {
    match &report.with.engine {
        Some(engine) => format!("{} (engine {engine})", report.with.contender),
        None => report.with.contender.clone(),
    }
}

/// The scene: loads, line, policy.
pub fn scene(report: &Report) -> String {
    let p = &report.parameters;
    format!(
        "A game and a call beside {} downloads over a line of {} Mbit/s, whose modem queues up to {} ms: first as it is, \
         then with Sluice at the router (policy \"{}\", {} Mbit/s).",
        p.downloads,
        p.line_rate_mbit,
        p.modem_queue_ms,
        p.policy,
        f64::from(p.sluice_rate_kbit) / 1e3
    )
}

/// The comparison of the two runs, in one sentence.
pub fn conclusion(report: &Report) -> String {
    let Some((before_ms, after_ms)) = worst_game(&report.without).zip(worst_game(&report.with)) else {
        return "In one of the runs not a single game packet came back, so there is nothing to compare.".to_owned();
    };
    let (mbit_before, mbit_after) = (report.without.bulk.mbit, report.with.bulk.mbit);
    let share = if mbit_before > 0.0 { mbit_after / mbit_before } else { 1.0 };
    let mut game = format!("99 of 100 pings within {} instead of {}", milliseconds(after_ms), milliseconds(before_ms));
    let losses = [&report.without, &report.with].map(|run| run.game.loss_percent);
    if losses.iter().any(|percent| *percent >= 0.05) {
        game += &format!(" and {:.1} % of its packets lost instead of {:.1} %", losses[1], losses[0]);
    }
    let bulk = format!("{:.0} % of their rate ({mbit_after:.1} of {mbit_before:.1} Mbit/s)", share * 100.0);
    let better = after_ms < before_ms && losses[1] <= losses[0] + 0.05;
    match (better, share >= RATE_KEPT) {
        (true, true) => format!("With Sluice the game has {game}, and the downloads keep {bulk}."),
        (true, false) => format!("With Sluice the game has {game}, but the downloads keep only {bulk}."),
        (false, _) => format!("Sluice did not help here: the game has {game}; the downloads keep {bulk}."),
    }
}

fn worst_game(run: &Run) -> Option<f64> {
    run.game.rtt.map(|rtt| rtt.p99_ms)
}

/// The conditions of the measurement, which a reader needs to judge the figures.
pub fn small_print(report: &Report) -> String {
    let e = &report.environment;
    let p = &report.parameters;
    let idle = report.without.game.idle_rtt.map_or("not known".to_owned(), |idle| milliseconds(idle.p50_ms));
    let mut machine = vec![e.cpu.clone(), format!("{} core{}", e.cores, if e.cores == 1 { "" } else { "s" })];
    machine.extend(
        [("kernel ", &e.kernel), ("", &e.distribution)]
            .iter()
            .filter(|of| of.1 != UNKNOWN)
            .map(|of| format!("{}{}", of.0, of.1)),
    );
    format!(
        "Measured on {}: {} s per run after {} s of warm-up, delays as round trips (irtt), downloads by iperf3 ({}). The \
         line has no length of its own, so what is seen is the queue: ping without downloads {idle}. Offloads at the \
         router: {}.",
        machine.join(", "),
        p.measured_s,
        p.window.from_ms / 1e3,
        p.congestion_control,
        report.with.offloads
    )
}
