//! Tests of the report on made-up figures.

use super::*;
use crate::demo::measurement::{Bulk, ModemQueue, Probe};
use crate::run::traffic;
use crate::tool::irtt::Exchange;

/// A run of 4 s in which each ping is `rtt_ms` or a little more, every `lose_nth` packet is lost, and downloads get `mbit`.
fn made_up(contender: &str, engine: Option<&str>, rtt_ms: f64, lose_nth: Option<u32>, mbit: u64) -> Run {
    let window = Window { from_ms: 2e3, to_ms: 6e3 };
    let sample = |n: u32| {
        let sent_ms = f64::from(n) * 15.625 - 1e3;
        let rtt_ms = if sent_ms < 0.0 { 0.2 } else { rtt_ms * (1.0 + f64::from(n % 10) / 100.0) };
        let arrived = lose_nth.is_none_or(|nth| n % nth != 0);
        Exchange { sent_ms, whole_ms: arrived.then_some(rtt_ms), there_ms: None, back_ms: None }
    };
    let trips: Vec<Exchange> = (0..448).map(sample).collect();
    let probe = Probe::of(&traffic::delays("game", None, &trips, window));
    Run {
        contender: contender.to_owned(),
        engine: engine.map(str::to_owned),
        offloads: "tcp-segmentation-offload on".to_owned(),
        call: probe.clone(),
        game: probe,
        bulk: Bulk { mbit: mbit as f64, series: Vec::new() },
        modem_queue: ModemQueue {
            mean_ms: rtt_ms,
            max_ms: rtt_ms,
            dropped_packets: 7,
            series: vec![(3e3, (rtt_ms * 2_500.0) as u64)],
        },
    }
}

fn report() -> Report {
    let environment = Environment {
        cpu: "Some CPU".to_owned(),
        cores: 2,
        kernel: "6.17".to_owned(),
        distribution: "Debian GNU/Linux 13 (trixie)".to_owned(),
    };
    let options = Options { seconds: 4, ..Options::new("sluice") };
    Report {
        environment,
        parameters: Parameters::of(&options, &crate::demo::scenario().unwrap(), 19_000_000).unwrap(),
        without: made_up("without Sluice", None, 200.0, Some(40), 19),
        with: made_up("with Sluice", Some("qdisc"), 0.8, None, 18),
    }
}

#[test]
fn the_table_is_before_and_after() {
    let expected = "\
╭───────────┬─────────────────┬────────────────┬────────────────────────────╮
│           ┆                 ┆ without Sluice ┆ with Sluice (engine qdisc) │
╞═══════════╪═════════════════╪════════════════╪════════════════════════════╡
│ Game      ┆ ping p50        ┆         210 ms ┆                    0.83 ms │
│           ┆ ping p99        ┆         218 ms ┆                    0.87 ms │
│           ┆ ping max        ┆         218 ms ┆                    0.87 ms │
│           ┆ jitter          ┆        3.20 ms ┆                    0.01 ms │
│           ┆ loss            ┆          2.7 % ┆                      0.0 % │
│ Call      ┆ ping p50        ┆         210 ms ┆                    0.83 ms │
│           ┆ ping p99        ┆         218 ms ┆                    0.87 ms │
│           ┆ ping max        ┆         218 ms ┆                    0.87 ms │
│           ┆ jitter          ┆        3.20 ms ┆                    0.01 ms │
│           ┆ loss            ┆          2.7 % ┆                      0.0 % │
│ Downloads ┆ together        ┆    19.0 Mbit/s ┆                18.0 Mbit/s │
│ Modem     ┆ its queue, mean ┆         200 ms ┆                    0.80 ms │
╰───────────┴─────────────────┴────────────────┴────────────────────────────╯";
    assert_eq!(table::render(&report(), false), expected);
}

#[test]
fn text_differs_only_in_escape_sequences() {
    let plain = report().text_in(false, 100);
    assert!(!plain.contains('\x1b'));
    assert!(plain.lines().all(|line| line.chars().count() <= 100), "{plain}");
    assert!(
        plain.contains("without Sluice (upper curve)") && plain.contains("with Sluice (engine qdisc) (lower curve)")
    );
    let mut coloured = report().text_in(true, 100);
    for code in ["\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m"] {
        assert!(coloured.contains(code));
        coloured = coloured.replace(code, "");
    }
    assert_eq!(coloured, plain);
}

#[test]
fn conclusion_states_only_measured_differences() {
    assert_eq!(
        sentences::conclusion(&report()),
        "With Sluice the game has 99 of 100 pings within 0.87 ms instead of 218 ms and 0.0 % of its packets lost instead \
         of 2.7 %, and the downloads keep 95 % of their rate (18.0 of 19.0 Mbit/s)."
    );
    let slow = Report { with: made_up("with Sluice", Some("tc"), 0.8, None, 5), ..report() };
    assert!(sentences::conclusion(&slow).contains("but the downloads keep only 26 %"));
    let useless = Report { with: made_up("with Sluice", Some("tc"), 300.0, None, 19), ..report() };
    assert!(sentences::conclusion(&useless).starts_with("Sluice did not help here:"));
    let dead = Report { with: made_up("with Sluice", Some("tc"), 1.0, Some(1), 19), ..report() };
    assert!(sentences::conclusion(&dead).contains("nothing to compare"));
    assert!(dead.text_in(false, 100).contains("nothing to compare"));
    assert!(dead.svg().unwrap().contains("no answers"));
}

#[test]
fn the_picture_holds_both_curves_the_losses_and_labels() {
    let svg = report().svg().unwrap();
    for text in [
        "without Sluice: p50 210 ms, p99 218 ms, 2.7 % lost (x)",
        "with Sluice (engine qdisc): p50 0.83 ms, p99 0.87 ms",
        "Ping of a game beside 4 downloads on a 20 Mbit/s line",
        "seconds since the downloads began",
        "round trip, ms (logarithmic)",
    ] {
        assert!(svg.contains(text), "{text} is missing");
    }
    // Beside its line in the legend each run has its curve: one piece, or one between losses.
    let curves = |colour: &str| svg.matches(&format!("stroke=\"{colour}\" stroke-width=\"1\" points=")).count();
    assert_eq!(curves("#0072B2"), 1);
    assert!(curves("#D55E00") >= 8);
    assert!(svg.starts_with("<svg") && svg.contains("#FCFCFA"));
}

#[test]
fn the_json_holds_figures_and_series() {
    let json: serde_json::Value = serde_json::from_str(&report().json().unwrap()).unwrap();
    assert_eq!(json["environment"]["kernel"], "6.17");
    assert_eq!(json["parameters"]["sluice_rate_kbit"], 19_000);
    assert_eq!(json["with"]["engine"], "qdisc");
    assert_eq!(json["without"]["game"]["series"].as_array().unwrap().len(), 448);
    assert!(json["without"]["game"]["rtt"]["p95_ms"].is_f64());
    assert_eq!(json["without"]["game"]["series"][0]["rtt_ms"], serde_json::Value::Null);
}

#[test]
fn units_stay_with_their_numbers() {
    assert_eq!(wrap("it takes 12 ms, or 96 % of it", 11), "it takes\n12 ms, or\n96 % of it");
}

#[test]
fn directories_stay_out_of_the_report() {
    assert_eq!(policy_name("gaming"), "gaming");
    assert_eq!(policy_name("/home/someone/our.json"), "our.json");
}

#[test]
fn unknown_values_are_left_out() {
    let mut report = report();
    assert!(sentences::small_print(&report).starts_with("Measured on Some CPU, 2 cores, kernel 6.17, Debian"));
    report.environment.cores = 1;
    report.environment.distribution = "unknown".to_owned();
    assert!(sentences::small_print(&report).starts_with("Measured on Some CPU, 1 core, kernel 6.17: 4 s per run"));
}
