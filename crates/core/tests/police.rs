//! The promises of the bucket in one word, whichever threads take from it and give back.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use sluice_core::police::{self, Bucket, RatedBucket};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

const START: u64 = 1_000_000;

/// A charge that stands: when it was taken, and how much.
type Charge = (u64, u64);

/// In every window what was taken is at most its length, the burst, one packet and this much more.
fn keeps_to_its_rate(charges: &[Charge], burst: u64, most: u64, more: u64) -> Result<(), String> {
    for (first, &(from, _)) in charges.iter().enumerate() {
        let mut sum = 0;
        for &(to, cost) in &charges[first..] {
            sum += cost;
            if sum > to - from + burst + most + more {
                return Err(format!("{sum} taken from {from} to {to}, with a burst of {burst} and packets of {most}"));
            }
        }
    }
    Ok(())
}

/// A step of a test: time passes, and a packet of this cost comes, or the charge of an earlier one is given back.
#[derive(Debug, Clone)]
enum Step {
    Take { wait: u64, cost: u64, keeps: bool },
    GiveBack { wait: u64, which: Index },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let take =
        (0..2_000u64, 1..1_500u64, any::<bool>()).prop_map(|(wait, cost, keeps)| Step::Take { wait, cost, keeps });
    let give_back = (0..2_000u64, any::<Index>()).prop_map(|(wait, which)| Step::GiveBack { wait, which });
    vec(prop_oneof![3 => take, 1 => give_back], 1..150)
}

/// Which charges stand after the steps, and how long those were pending that were given back. `choose` says which of the pending ones is.
fn charges_after(steps: Vec<Step>, burst: u64, choose: impl Fn(Index, usize) -> usize) -> (Vec<Charge>, u64) {
    let bucket = Bucket::default();
    let (mut now, mut charges, mut pending, mut waited) = (START, Vec::new(), Vec::new(), 0);
    for step in steps {
        match step {
            Step::Take { wait, cost, keeps } => {
                // No two are alike, so that the right one is given back.
                now += wait + 1;
                if let Some(full) = bucket.take(now, cost, burst) {
                    charges.push((now, cost));
                    if !keeps {
                        pending.push((now, cost, full));
                    }
                }
            }
            Step::GiveBack { wait, which } if !pending.is_empty() => {
                now += wait;
                let (at, cost, full) = pending.remove(choose(which, pending.len()));
                bucket.give_back(now, cost, full);
                waited += now - at;
                charges.retain(|charge| *charge != (at, cost));
            }
            Step::GiveBack { .. } => {}
        }
    }
    (charges, waited)
}

proptest! {
    /// Some of what was taken is given back, any time later, the last one first.
    #[test]
    fn no_window_has_more_than_its_share(burst in 0..5_000u64, steps in steps()) {
        let (charges, _) = charges_after(steps, burst, |_, pending| pending - 1);
        prop_assert_eq!(keeps_to_its_rate(&charges, burst, 1_500, 0), Ok(()));
    }

    /// In any order, no more is won than what is refilled while charges are pending.
    #[test]
    fn in_any_order_little_is_won(burst in 0..5_000u64, steps in steps()) {
        let (charges, waited) = charges_after(steps, burst, |which, pending| which.index(pending));
        prop_assert_eq!(keeps_to_its_rate(&charges, burst, 1_500, waited), Ok(()));
    }

    /// The bucket refuses no packet while it holds credit, and a charge that is given back at once can be taken again.
    #[test]
    fn it_is_open_while_it_holds_credit(burst in 0..5_000u64, packets in vec((0..2_000u64, 1..1_500u64, any::<bool>()), 1..150)) {
        let bucket = Bucket::default();
        // The debt of the bucket beyond being full.
        let (mut now, mut owed) = (START, 0u64);
        for (wait, cost, refused_elsewhere) in packets {
            now += wait;
            owed = owed.saturating_sub(wait);
            let taken = bucket.take(now, cost, burst);
            prop_assert_eq!(taken.is_some(), owed <= burst);
            match taken {
                Some(full) if refused_elsewhere => bucket.give_back(now, cost, full),
                Some(_) => owed += cost,
                None => {}
            }
        }
        prop_assert!(bucket.full() <= now + burst + 1_500);
    }
}

/// Threads that share a bucket and a clock get the rate together, no more and hardly less.
#[test]
fn threads_share_a_rate() {
    const COST: u64 = 1_000;
    const BURST: u64 = 8_000;
    const END: u64 = START + 20_000_000;
    let (bucket, clock, passed) = (Bucket::default(), AtomicU64::new(START), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (bucket, clock, passed) = (&bucket, &clock, &passed);
            scope.spawn(move || {
                let mut n = thread;
                loop {
                    let now = clock.fetch_add(100, Ordering::Relaxed);
                    if now >= END {
                        break;
                    }
                    n += 1;
                    let Some(full) = bucket.take(now, COST, BURST) else { continue };
                    // Every third packet is refused by another bucket.
                    if n % 3 == 0 {
                        bucket.give_back(clock.load(Ordering::Relaxed), COST, full);
                    } else {
                        passed.fetch_add(COST, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let (passed, time) = (passed.load(Ordering::Relaxed), END - START);
    assert!(passed <= time + BURST + COST, "{passed} in {time}");
    assert!(passed >= time - time / 50, "{passed} in {time}");
}

/// Threads whose clocks go at different speeds share only the word: while a thread always wants more, the word tells to the unit how much
/// was taken, and that is no more than the fastest clock allows.
#[test]
fn threads_with_clocks_of_their_own_conserve() {
    const MOST: u64 = 1_500;
    const STEPS: [u64; 4] = [97, 50, 13, 1];
    // A burst that is never used up grants every charge, so that threads meet at the word all the time.
    for (burst, tries) in [(50_000, 1_000_000), (1 << 50, 5_000_000)] {
        let (bucket, taken, start) = (Bucket::default(), AtomicU64::new(0), Barrier::new(STEPS.len()));
        std::thread::scope(|scope| {
            for step in STEPS {
                let (bucket, taken, start) = (&bucket, &taken, &start);
                scope.spawn(move || {
                    start.wait();
                    let mut sum = 0;
                    for n in 0..tries {
                        let cost = 1 + (n * 7919 + step) % MOST;
                        if bucket.take(START + n * step, cost, burst).is_some() {
                            sum += cost;
                        }
                    }
                    taken.fetch_add(sum, Ordering::Relaxed);
                });
            }
        });
        let (taken, time) = (taken.load(Ordering::Relaxed), (tries - 1) * STEPS[0]);
        assert_eq!(taken, bucket.full() - START, "what was taken is what the word says");
        assert!(taken <= time + burst + MOST, "{taken} in {time}");
        if burst < time {
            assert!(taken >= time + burst - MOST, "{taken} in {time}");
        }
    }
}

/// A rate and a burst as policies have them: bit/s and bytes. Cost of a byte and burst as buckets have them.
fn terms(bps: u64, burst_bytes: u64) -> (u64, u64) {
    (((8_000_000_000u64 * 16) << 16).div_ceil(bps), burst_bytes * 8_000_000_000 * 16 / bps)
}

const MS: u64 = 1_000_000;

/// The debt of a bucket is in bytes: the bucket opens after the time that these take at the new rate, and not at the old one (8.4 s for
/// 1 MiB of 1 Mbit/s, then 100 Mbit/s).
#[test]
fn a_new_rate_does_not_wait_for_the_old_one() {
    let burst = 1 << 20;
    for (old, new) in
        [(1_000_000, 100_000_000), (64_000, 100_000_000), (100_000_000, 1_000_000), (5_000_000, 5_000_000)]
    {
        let (mut bucket, now) = (RatedBucket::default(), police::time(1_000 * MS));
        let (cost, old_burst) = terms(old, burst);
        let mut taken = 0;
        while bucket.take(now, cost, 1_500, old_burst) {
            taken += 1_500;
        }
        assert!(taken >= burst && taken <= burst + 1_500, "{taken} of a burst of {burst}");
        // The same burst at the new rate is as empty as it was.
        let (cost, new_burst) = terms(new, burst);
        let due_ns = (taken - burst) * 8_000_000_000 / new;
        let opens = |after_ns| now + police::time(after_ns);
        // The first packet at the new rate converts what is owed.
        assert!(!bucket.take(now, cost, 1_500, new_burst), "{old} to {new} bit/s: a debt is forgiven");
        assert!(!bucket.take(opens(due_ns - 1_000), cost, 1_500, new_burst), "{old} to {new} bit/s: too early");
        assert!(bucket.take(opens(due_ns + 2 * 8_000_000_000 / new), cost, 1_500, new_burst), "{old} to {new} bit/s");
    }
}
