//! Schedulers of pipes before a card, in overload at the scale of the published evaluation: 8 classes, a port of 25 Gbit/s, and 110 % of that offered.
//! Time is simulated, so figures are the same in each run.
//!
//! Software alone does not know what the card refuses: it sends whatever is there, all classes share one ring of the card in the order in which
//! they come, and what the ring has no room for is lost. With backpressure the card has a queue for each class, which go first in their order.
//! The ring has 4,096 places, and a queue has 64: software that is told what is refused needs no longer ones. A ring as short as all queues together
//! has less latency and loses of each class.

use sluice_simulator::card::CardConf;
use sluice_simulator::pipes::{Fate, Outcome, Setting, Way, run};

const CLASSES: u32 = 8;
/// All classes but the last.
const EARLY: std::ops::Range<u32> = 0..CLASSES - 1;
const LAST: std::ops::Range<u32> = CLASSES - 1..CLASSES;
const ALL: std::ops::Range<u32> = 0..CLASSES;

fn overload(pipes: u32, instances: u32, ms: u64) -> Setting {
    Setting {
        card: CardConf::strict(25_000_000_000, 24, CLASSES, 64),
        way: Way::Backpressure { pending_pkts: 32, burst_pkts: 32 },
        instances,
        pipes,
        classes: CLASSES,
        bytes: (1376, 1376),
        load: 1.1,
        queue_pkts: 64,
        last_queue_pkts: 1,
        receive_pkts: 1024,
        turn_ns: 500,
        receive_ns: 125,
        send_ns: 125,
        warm_ns: ms * 200_000,
        window_ns: ms * 800_000,
        seed: 1,
    }
}

/// The same, with software alone before a ring of so many places.
fn alone(setting: &Setting, descriptors: u32) -> Setting {
    let card = CardConf::ring(setting.card.bits_per_second, setting.card.overhead_bytes, descriptors);
    Setting { card, way: Way::Alone, ..setting.clone() }
}

fn show(name: &str, setting: &Setting, outcome: &Outcome) {
    println!(
        "{} pipes, {} instances, {name}: mean of all {:.1} us, of all but the last class {:.1} us; lost of these {:.2} %, of the last {:.2} %; fairness {:.5}; {:.3} Gbit/s",
        setting.pipes,
        setting.instances,
        outcome.mean_us(ALL),
        outcome.mean_us(EARLY),
        outcome.lost_percent(EARLY),
        outcome.lost_percent(LAST),
        outcome.fairness(),
        outcome.bits_per_second() / 1e9,
    );
}

/// Runs both, and checks what holds at any scale: latency of all classes but the last, loss, and fairness.
fn compare(setting: &Setting) -> (Outcome, Outcome) {
    let (alone, with) = (run(&alone(setting, 4096)), run(setting));
    show("software alone", setting, &alone);
    show("with backpressure", setting, &with);
    assert!(20.0 * with.mean_us(EARLY) <= alone.mean_us(EARLY), "latency of all classes but the last");
    assert_eq!(with.of(EARLY).filter(|record| record.fate != Fate::Sent).count(), 0, "only the last class loses");
    assert!(with.lost_percent(LAST) > 0.0, "there is overload");
    for class in ALL {
        assert!(alone.lost_percent(class..class + 1) > 0.0, "software alone loses of class {class}");
    }
    assert!(with.fairness() >= 0.99 * alone.fairness(), "{} and {}", with.fairness(), alone.fairness());
    assert!((with.bits_per_second() / alone.bits_per_second() - 1.0).abs() < 0.001, "the port is as busy");
    assert!(with.bits_per_second() <= 25.01e9 && with.bits_per_second() > 24.9e9, "{}", with.bits_per_second());
    (alone, with)
}

/// 200 pipes, whose queues of the last class hold a packet: the mean latency of all packets is at most 1/11.
#[test]
fn few_pipes_wait_an_eleventh() {
    let setting = overload(200, 1, 100);
    let (software, with) = compare(&setting);
    assert!(11.0 * with.mean_us(ALL) <= software.mean_us(ALL), "{} and {}", with.mean_us(ALL), software.mean_us(ALL));
    // A short ring is no way out: latency is lower, and each class loses.
    let short = run(&alone(&setting, 512));
    show("software alone, a ring of 512", &setting, &short);
    for class in ALL {
        assert!(short.lost_percent(class..class + 1) > 0.0);
    }
    assert!(short.mean_us(EARLY) > 5.0 * with.mean_us(EARLY));
}

/// 32,000 pipes, as many as in the published evaluation. Each has a packet of the last class in the scheduler, so the mean of all packets is that
/// of this backlog, and is not compared.
#[test]
fn many_pipes_lose_of_the_last_class_only() {
    compare(&overload(32_000, 1, 150));
}

#[test]
fn instances_share_a_card() {
    compare(&overload(4000, 8, 100));
}

/// A port of 100 Gbit/s takes 9 million packets a second, of which a processor handles fewer than 4: instances are added until nothing is lost.
#[test]
fn instances_are_added_until_nothing_is_lost() {
    let setting = |instances| Setting {
        card: CardConf::strict(100_000_000_000, 24, CLASSES, 64),
        bytes: (1337, 1337),
        load: 0.98,
        ..overload(4000, instances, 40)
    };
    let seen: Vec<(f64, f64)> = [1, 2, 4]
        .map(|instances| {
            let setting = setting(instances);
            let outcome = run(&setting);
            show("with backpressure", &setting, &outcome);
            (outcome.mean_us(ALL), outcome.lost_percent(ALL))
        })
        .to_vec();
    assert!(seen[0].1 > 50.0 && seen[1].1 > 5.0, "processors are the bottleneck: {seen:?}");
    assert_eq!(seen[2].1, 0.0, "capacity suffices");
    assert!(seen[0].0 > seen[1].0 && seen[1].0 > 5.0 * seen[2].0, "latency falls: {seen:?}");
}

#[test]
fn a_run_can_be_had_again() {
    let of = |seed| run(&Setting { seed, ..overload(200, 2, 5) });
    let fates = |outcome: &Outcome| {
        outcome.records.iter().map(|record| (record.arrived_ns, record.latency_ns, record.pipe)).collect::<Vec<_>>()
    };
    assert_eq!(fates(&of(7)), fates(&of(7)));
    assert_ne!(fates(&of(7)), fates(&of(8)));
}

/// Packets of a pipe and a class leave in the order in which they came, and each that came has a fate.
#[test]
fn nothing_is_forgotten() {
    for way in [Way::Alone, Way::Backpressure { pending_pkts: 32, burst_pkts: 32 }] {
        let mut setting = overload(400, 2, 10);
        if way == Way::Alone {
            setting = alone(&setting, 4096);
        }
        let outcome = run(&setting);
        let mut last = std::collections::BTreeMap::new();
        let mut records = outcome.records.clone();
        records.sort_by_key(|record| record.arrived_ns);
        for record in &records {
            assert_ne!(record.fate, Fate::Waits);
            if record.fate == Fate::Sent {
                let sent_ns = record.arrived_ns + record.latency_ns;
                let before = last.insert((record.pipe, record.class), sent_ns).unwrap_or(0);
                assert!(sent_ns > before, "{record:?} overtakes");
            }
        }
        let offered = outcome.records.len() as f64 * 1400.0 * 8e9 / outcome.window_ns as f64;
        assert!((offered / 27.5e9 - 1.0).abs() < 0.01, "{offered}");
    }
}
