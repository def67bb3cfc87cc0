//! The figures of several tx queues that share a link, in simulated time.

mod runs;
mod setting;

use setting::{FRAME, RATES, WARM_NS, bytes, draws_per_packet, rate_of, run_ns, share_error, simulation};
use sluice_core::shared_credit::Class;
use sluice_simulator::{Pattern, Source};

const WINDOW_NS: u64 = 100_000_000;

fn class(weight: u32) -> Class {
    Class { weight, ..Class::default() }
}

/// The parts of a link's rate that two classes get over eight queues.
fn parts_of_the_rate(rate: u64, classes: &[Class; 2], sources: Vec<Source>, seed: u64) -> [f64; 2] {
    let end = run_ns(rate);
    let mut run = simulation(8, rate, classes, sources, seed);
    run.run_until(end);
    [0, 1].map(|class| {
        rate_of(bytes(run.deliveries(), WARM_NS, end, |d| d.packet.class == class), end - WARM_NS) / rate as f64
    })
}

/// The rate of a link holds within 0.2 %, whichever queues are busy.
#[test]
fn rates_hold_over_eight_queues() {
    for rate in RATES {
        let end = run_ns(rate);
        let all: Vec<Source> = (0..8).map(|queue| Source::backlogged(queue, 0, FRAME)).collect();
        let one = vec![Source::backlogged(3, 0, FRAME)];
        // Each queue in turn has packets for an eighth of the time.
        let alternating: Vec<Source> = (0..8)
            .map(|queue| Source {
                from_ns: queue as u64 * 5_000_000,
                on_off_ns: (5_000_000, 35_000_000),
                ..Source::backlogged(queue, 0, FRAME)
            })
            .collect();
        for (name, sources) in [("all", all), ("one", one), ("alternating", alternating)] {
            let mut run = simulation(8, rate, &[class(1)], sources, 7);
            run.run_until(end);
            let got = rate_of(bytes(run.deliveries(), WARM_NS, end, |_| true), end - WARM_NS);
            let off = got / rate as f64 - 1.0;
            println!(
                "{rate} bit/s, {name}: off by {:+.4} %, {:.4} draws a packet",
                100.0 * off,
                draws_per_packet(&run, 8)
            );
            assert!(off.abs() < 0.002, "{rate} bit/s, {name} busy: off by {off}");
        }
    }
}

/// Of 8 and of 64 queues that are busy with one class, each sends an equal share, within a tenth of that.
#[test]
fn busy_queues_send_equally() {
    for rate in RATES {
        for queues in [8, 64] {
            let sources = (0..queues).map(|queue| Source::backlogged(queue, 0, FRAME)).collect();
            let end = run_ns(rate);
            let mut run = simulation(queues as u32, rate, &[class(1)], sources, 19);
            run.run_until(end);
            let all = bytes(run.deliveries(), WARM_NS, end, |_| true) as f64;
            let shares: Vec<f64> = (0..queues)
                .map(|n| bytes(run.deliveries(), WARM_NS, end, |d| d.queue == n) as f64 / all * queues as f64)
                .collect();
            let (least, most) = shares.iter().fold((f64::MAX, 0.0f64), |(a, b), share| (a.min(*share), b.max(*share)));
            println!("{rate} bit/s, {queues} queues: from {least:.3} to {most:.3} of an equal share");
            assert!(least > 0.9 && most < 1.1, "{rate} bit/s, {queues} queues: {least} to {most}");
        }
    }
}

/// Weights hold within 2 % in any 100 ms, wherever packets wait.
#[test]
fn weights_hold_over_queues() {
    for rate in RATES {
        for (name, of_class, weights) in [
            ("one queue against seven, 1:1", vec![vec![0], (1..8).collect()], vec![1, 1]),
            ("one queue against eight, 1:1", vec![vec![0], (0..8).collect()], vec![1, 1]),
            ("one queue against seven, 3:1", vec![vec![0], (1..8).collect()], vec![3, 1]),
            ("seven queues against one, 3:1", vec![(1..8).collect(), vec![0]], vec![3, 1]),
            ("three classes on all, 1:2:3", vec![(0..8).collect::<Vec<usize>>(); 3], vec![1, 2, 3]),
        ] {
            let classes: Vec<Class> = weights.iter().map(|weight| class(*weight)).collect();
            let sources = (0..)
                .zip(&of_class)
                .flat_map(|(c, queues)| queues.iter().map(move |queue| Source::backlogged(*queue, c, FRAME)))
                .collect();
            let end = run_ns(rate) / 2;
            let mut run = simulation(8, rate, &classes, sources, 11);
            run.run_until(end);
            let got = rate_of(bytes(run.deliveries(), WARM_NS, end, |_| true), end - WARM_NS) / rate as f64 - 1.0;
            let whole: u32 = weights.iter().sum();
            let worst = (0..)
                .zip(&weights)
                .map(|(c, weight)| {
                    share_error(run.deliveries(), end, WINDOW_NS, c, f64::from(*weight) / f64::from(whole))
                })
                .fold(0.0, f64::max);
            println!(
                "{rate} bit/s, {name}: shares off by {:.3} %, rate by {:+.4} %, {:.4} draws a packet",
                100.0 * worst,
                100.0 * got,
                draws_per_packet(&run, 8)
            );
            assert!(worst < 0.02, "{rate} bit/s, {name}: off by {worst}");
            assert!(got.abs() < 0.002, "{rate} bit/s, {name}: the rate is off by {got}");
            let draws = draws_per_packet(&run, 8);
            assert!(rate < 10_000_000_000 || draws <= 1.0 / 16.0, "{rate} bit/s, {name}: {draws} draws a packet");
        }
    }
}

/// Of classes of two levels, the urgent one gets all that it wants, though the other one has packets on all queues; what it does not want, the other
/// one gets. Its packets wait for what instances have drawn before.
#[test]
fn urgent_classes_go_first() {
    for rate in RATES {
        let classes = [class(1), Class { level: 1, ..class(1) }];
        let wanted = Pattern::Poisson { bits_per_second: rate * 3 / 10 };
        let mut sources = vec![Source { pattern: wanted, ..Source::backlogged(0, 0, FRAME) }];
        sources.extend((0..8).map(|queue| Source::backlogged(queue, 1, FRAME)));
        let end = run_ns(rate);
        let mut run = simulation(8, rate, &classes, sources, 3);
        run.run_until(end);
        let of = [0, 1].map(|class| {
            rate_of(bytes(run.deliveries(), WARM_NS, end, |d| d.packet.class == class), end - WARM_NS) / rate as f64
        });
        let urgent = run.deliveries().iter().filter(|d| d.packet.class == 0 && d.at_ns > WARM_NS);
        let mut waits_ns: Vec<u64> = urgent.map(|d| d.let_go_ns - d.packet.arrived_ns).collect();
        waits_ns.sort_unstable();
        let (p99, most) = (waits_ns[waits_ns.len() * 99 / 100], waits_ns[waits_ns.len() - 1]);
        println!(
            "{rate} bit/s: wanted 0.3, got {:.4}; the other class {:.4}; waits {} us at the 99th percentile, {} at most",
            of[0],
            of[1],
            p99 / 1000,
            most / 1000
        );
        assert!((of[0] - 0.3).abs() < 0.02, "{rate} bit/s: {}", of[0]);
        assert!((of[0] + of[1] - 1.0).abs() < 0.002, "{rate} bit/s: {} and {}", of[0], of[1]);
        // Its own bursts at a third of the load, behind a batch of each instance and what was drawn in advance.
        let frames_ns = 8 * u64::from(FRAME) * 8_000_000_000 / rate;
        assert!(p99 < 2_000_000 + 4 * frames_ns, "{rate} bit/s: {p99} ns");
    }
}

/// A class with a guarantee gets it, though its weight is a tenth of another's.
#[test]
fn guarantees_are_kept() {
    for rate in RATES {
        let classes = [Class { guarantee: Some(rate * 4 / 10), ..class(1) }, class(9)];
        let mut sources = vec![Source::backlogged(0, 0, FRAME)];
        sources.extend((0..8).map(|queue| Source::backlogged(queue, 1, FRAME)));
        let of = parts_of_the_rate(rate, &classes, sources, 3);
        println!("{rate} bit/s: guaranteed 0.4, got {:.4}; the other class {:.4}", of[0], of[1]);
        assert!(of[0] > 0.4 * 0.99, "{rate} bit/s: {}", of[0]);
        assert!((of[0] + of[1] - 1.0).abs() < 0.002, "{rate} bit/s: {} and {}", of[0], of[1]);
    }
}

/// A class sends at its ceiling over all queues, and others get the rest.
#[test]
fn ceilings_hold_over_queues() {
    for rate in RATES {
        let classes = [Class { ceiling: Some(rate / 5), ..class(1) }, class(1)];
        let mut sources: Vec<Source> = (0..8).map(|queue| Source::backlogged(queue, 0, FRAME)).collect();
        sources.extend((0..8).map(|queue| Source::backlogged(queue, 1, FRAME)));
        let of = parts_of_the_rate(rate, &classes, sources, 3);
        println!("{rate} bit/s: ceiling 0.2, got {:.4}; the other class {:.4}", of[0], of[1]);
        assert!((of[0] / 0.2 - 1.0).abs() < 0.005, "{rate} bit/s: {}", of[0]);
        assert!((of[0] + of[1] - 1.0).abs() < 0.002, "{rate} bit/s: {} and {}", of[0], of[1]);
    }
}

/// A class that wants less than its share gets all that it wants, and others the rest.
#[test]
fn what_a_class_does_not_want_others_get() {
    for rate in RATES {
        let classes = [class(3), class(1)];
        let mut sources =
            vec![Source { pattern: Pattern::Poisson { bits_per_second: rate / 5 }, ..Source::backlogged(0, 0, FRAME) }];
        sources.extend((1..8).map(|queue| Source::backlogged(queue, 1, FRAME)));
        let of = parts_of_the_rate(rate, &classes, sources, 5);
        println!("{rate} bit/s: wanted 0.2, got {:.4}; the other class {:.4}", of[0], of[1]);
        assert!(of[0] > 0.19 && of[0] < 0.21, "{rate} bit/s: {}", of[0]);
        assert!((of[0] + of[1] - 1.0).abs() < 0.002, "{rate} bit/s: {} and {}", of[0], of[1]);
    }
}

/// At 10 Gbit/s instances go to shared words at most once in 16 packets, with frames of any length and at any load.
#[test]
fn shared_words_are_touched_once_in_sixteen_packets() {
    let rate = 10_000_000_000;
    for frame in [64, 600, FRAME] {
        for load in [None, Some(rate / 2), Some(rate * 95 / 100)] {
            let pattern = |bits_per_second| Pattern::Poisson { bits_per_second };
            let sources = (0..8)
                .flat_map(|queue| [0, 1].map(|c| Source::backlogged(queue, c, frame)))
                .map(|source| match load {
                    Some(load) => Source { pattern: pattern(load / 16), ..source },
                    None => source,
                })
                .collect();
            let mut run = simulation(8, rate, &[class(1), class(2)], sources, 13);
            run.run_until(if frame == 64 { 10_000_000 } else { 60_000_000 });
            let draws = draws_per_packet(&run, 8);
            println!("frames of {frame}, load {load:?}: {draws:.4} draws a packet");
            assert!(draws <= 1.0 / 16.0, "frames of {frame}, load {load:?}: {draws} draws a packet");
        }
    }
}
