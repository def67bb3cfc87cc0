//! Runs can be had again, and sources, rings and links are what they are told to be.

use crate::setting::{FRAME, bytes, rate_of, scheduler, simulation};
use sluice_core::shared_credit::{Class, Conf, Instance};
use sluice_simulator::{Delivery, Link, Pattern, Port, SECOND_NS, Simulation, Source};

const RATE: u64 = 1_000_000_000;

/// A run with everything that is random: lengths, times, the lateness of watchdogs.
fn random_run(seed: u64) -> Vec<Delivery> {
    let classes = [Class { weight: 2, ..Class::default() }, Class::default()];
    let poisson = Pattern::Poisson { bits_per_second: RATE / 6 };
    let mut sources: Vec<Source> = (0..8)
        .map(|queue| Source { bytes: (64, FRAME), pattern: poisson, ..Source::backlogged(queue, 0, FRAME) })
        .collect();
    sources.push(Source { bytes: (200, 400), ..Source::backlogged(2, 1, FRAME) });
    let mut run = simulation(8, RATE, &classes, sources, seed);
    run.run_until(20_000_000);
    run.deliveries().to_vec()
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let first = random_run(42);
    assert!(first.len() > 1_000, "{} packets", first.len());
    assert_eq!(first, random_run(42));
}

#[test]
fn another_seed_gives_another_run() {
    assert_ne!(random_run(42), random_run(43));
}

/// A run in parts is the run as a whole.
#[test]
fn a_run_goes_on_where_it_stopped() {
    let sources = || vec![Source { bytes: (64, FRAME), ..Source::backlogged(0, 0, FRAME) }];
    let (mut whole, mut parts) = (
        simulation(2, RATE, &[Class::default()], sources(), 1),
        simulation(2, RATE, &[Class::default()], sources(), 1),
    );
    whole.run_until(3_000_000);
    for part in 1..=30 {
        parts.run_until(part * 100_000);
    }
    assert_eq!(whole.deliveries(), parts.deliveries());
}

/// A port whose shared rate is far above its link, so that only ring and link limit.
fn slow_link(ring_packets: usize, link: Link, sources: Vec<Source>) -> Simulation {
    let classes = [Class::default()];
    let port = Port { link, ring_packets, timer_late_ns: 0 };
    let instances = (0..2).map(|n| Instance::new(n, &scheduler(&classes), 0)).collect();
    Simulation::new(port, instances, Conf::new(2, 100_000_000_000, 0, FRAME, &classes), sources, 9)
}

/// The link sends one packet after the other, and each arrives a delay later.
#[test]
fn a_link_sends_at_its_rate() {
    let link = Link { bits_per_second: 12_000_000, delay_ns: 5_000_000 };
    let mut run = slow_link(4, link, vec![Source::backlogged(0, 0, 1500), Source::backlogged(1, 0, 1500)]);
    run.run_until(SECOND_NS);
    let deliveries = run.deliveries();
    assert_eq!(deliveries[0].at_ns, 6_000_000, "a packet takes 1 ms, and 5 to arrive");
    assert!(deliveries.windows(2).all(|two| two[1].at_ns - two[0].at_ns == 1_000_000));
    assert!(deliveries.windows(2).all(|two| two[1].queue != two[0].queue), "rings take turns");
}

/// A packet waits behind no more than a ring of others once its instance has let it go.
#[test]
fn rings_are_finite() {
    for ring in [1, 8] {
        let link = Link { bits_per_second: 12_000_000, delay_ns: 0 };
        let burst = Source {
            pattern: Pattern::Bursts { bits_per_second: 1_000_000, packets: 40 },
            ..Source::backlogged(0, 0, 1500)
        };
        let mut run = slow_link(ring, link, vec![burst]);
        run.run_until(SECOND_NS);
        let own = run.instance(0).own();
        assert!(own.draws > 0, "the instance was asked");
        let waits = run.deliveries().iter().map(|d| d.sent_ns - d.let_go_ns).max().expect("packets arrive");
        assert!(waits <= ring as u64 * 1_000_000, "{waits} ns in a ring of {ring}");
        assert!(waits >= (ring as u64 - 1) * 1_000_000, "{waits} ns in a ring of {ring}");
    }
}

/// Instances refuse what their classes have no room for.
#[test]
fn full_queues_drop() {
    let link = Link { bits_per_second: 12_000_000, delay_ns: 0 };
    let source =
        Source { pattern: Pattern::Constant { bits_per_second: 60_000_000 }, ..Source::backlogged(0, 0, 1500) };
    let mut run = slow_link(4, link, vec![source]);
    run.run_until(SECOND_NS);
    // 5,000 packets come, 1,000 leave and some 1,000 wait.
    assert!((2_900..3_100).contains(&run.dropped()), "{} dropped", run.dropped());
}

/// Constant, Poisson and burst sources have their mean rate, and pause when they are told to.
#[test]
fn sources_have_their_rate() {
    let told = 80_000_000;
    for (pattern, off) in [
        (Pattern::Constant { bits_per_second: told }, 0.001),
        (Pattern::Poisson { bits_per_second: told }, 0.05),
        (Pattern::Bursts { bits_per_second: told, packets: 20 }, 0.01),
    ] {
        let source = |on_off_ns| Source { bytes: (500, 500), pattern, on_off_ns, ..Source::backlogged(0, 0, FRAME) };
        let rate = |on_off_ns| {
            let mut run = simulation(1, RATE, &[Class::default()], vec![source(on_off_ns)], 17);
            run.run_until(SECOND_NS);
            rate_of(bytes(run.deliveries(), 0, SECOND_NS, |_| true), SECOND_NS) / told as f64
        };
        let (always, half) = (rate((0, 0)), rate((50_000_000, 50_000_000)));
        assert!((always - 1.0).abs() < off, "{pattern:?}: {always} of its rate");
        assert!((half - 0.5).abs() < off.max(0.02), "{pattern:?}, half of the time: {half} of its rate");
    }
}
