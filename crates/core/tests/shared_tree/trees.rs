//! Trees of classes at a link: its rate, and the weights and guarantees of its children, hold for all trees together (`sched/shared_tree.h`).

use crate::builds::Stepped;
use crate::cases::{self, Case, FRAME, Random, START_NS, bytes_in, most_ahead, time_of};
use crate::forest::{Child, World, rate_of};
use crate::laws;
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_abi::SL_FIRST_INNER as LINK;
use sluice_core::hierarchy::{Bucket, Node};

laws! {
    no_link_exceeds_its_bound: cases::of(16);
    long_packets_keep_to_the_rate: cases::of(16);
    a_link_with_packets_sends_at_its_rate: cases::of(16);
    children_share_by_weight: cases::of(16);
    children_that_come_back_share_by_weight: cases::of(16);
    guarantees_are_kept: cases::of(16);
    guarantees_leave_the_rest_by_weight: cases::of(2);
    trees_that_run_empty_want_nothing: cases::of(16);
    trees_that_end_leave_nothing_behind: cases::of(16);
    another_rate_takes_force: cases::of(16);
    stopped_queues_hold_up_no_others: cases::of(8);
    fast_links_touch_shared_words_rarely: cases::of(8);
}

/// The rate that a cost in whole numbers stands for, rounded up.
fn effective(rate: Bucket) -> u64 {
    ((8_000_000_000u64 << abi::SL_NODE_COST_BITS) / u64::from(rate.cost())) + 1
}

/// So many children, of random weights and in random trees, all backlogged.
fn children(case: &Case, count: usize) -> Vec<Child> {
    let mut random = Random::new(case.seed ^ 0x5eed);
    let mut child = || Child {
        home: random.below(u64::from(case.instances)) as usize,
        node: Node { weight: 1 + random.below(9) as u32, ..Node::below(LINK) },
        backlogged: true,
    };
    let mut all: Vec<Child> = (0..count).map(|_| child()).collect();
    all.iter_mut().zip(case.weights).for_each(|(child, weight)| child.node.weight = weight);
    all
}

/// Burst of the link and a batch for each tree, in bytes.
fn allowance(world: &World) -> f64 {
    let rate = world.rate();
    let burst = (rate.burst << 14) as f64 / rate.cost as f64;
    burst + world.trees.len() as f64 * f64::from(rate.batch_bytes) + 2.0
}

/// Enough time for what a bound allows to be small beside what is sent.
fn settled(world: &World, case: &Case) -> u64 {
    let batches = (u64::from(world.rate().batch_bytes) / 1500).clamp(4, 12);
    time_of(case, (60 + 20 * u64::from(case.instances)) * batches)
}

/// In any window no more than rate * t + burst + a batch for each tree is sent, while children come and go.
fn no_link_exceeds_its_bound(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let mut world = World::grown(stepped, case, children(case, 12), 0);
    for _ in 0..10 {
        let until = world.now_ns + time_of(case, 200);
        world.run_until(until)?;
        let child = world.random.below(12) as u32;
        let now = world.children[child as usize].backlogged;
        world.set_backlogged(child, !now);
    }
    let ahead = most_ahead(world.charges(), effective(rate_of(case)));
    let bound = allowance(&world);
    prop_assert!(ahead <= bound, "{} bytes ahead, the bound is {}", ahead, bound);
    Ok(())
}

/// Packets that are longer than a frame keep to the rate, as sched/shared_credit.h says.
fn long_packets_keep_to_the_rate(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    const LONG: u32 = 64_000;
    let mut world = World::grown(stepped, case, children(case, 12), LONG);
    let length = time_of(case, 42 * (100 + 3 * u64::from(case.instances)));
    world.run_until(START_NS + length)?;
    let ahead = most_ahead(world.charges(), effective(rate_of(case)));
    let rate = world.rate();
    let batch = f64::from(rate.batch_bytes + LONG - FRAME);
    let burst = ((rate.burst << 14) as f64 / rate.cost as f64).max(batch);
    let bound = burst + f64::from(case.instances) * batch + 2.0;
    prop_assert!(ahead <= bound, "{} bytes ahead, the bound is {}", ahead, bound);
    let (got, told) = (world.charges().map(|(_, bytes)| f64::from(bytes)).sum::<f64>(), bytes_in(case.rate, length));
    prop_assert!(got > 0.995 * told - bound, "{} of {} bytes", got, told);
    Ok(())
}

/// While a child has packets, the link sends at its rate, whichever others come and go.
fn a_link_with_packets_sends_at_its_rate(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let mut world = World::grown(stepped, case, children(case, 6), 0);
    for _ in 0..8 {
        let until = world.now_ns + time_of(case, 400);
        world.run_until(until)?;
        let child = 1 + world.random.below(5) as u32;
        let now = world.children[child as usize].backlogged;
        world.set_backlogged(child, !now);
    }
    let got: f64 = world.charges().map(|(_, bytes)| f64::from(bytes)).sum();
    let told = bytes_in(case.rate, world.now_ns - START_NS);
    let drawn = f64::from(case.instances) * f64::from(world.rate().batch_bytes);
    prop_assert!(got > 0.994 * told - drawn, "{} of {} bytes", got, told);
    Ok(())
}

/// The bound of sched/shared_tree.h, of bytes by weight, for children that stay ready; and two packets of each from the trees' own discipline.
fn share_bound(world: &World) -> f64 {
    let rate = world.rate();
    let batch = f64::from(rate.batch_bytes);
    let fast = rate.batch <= (2 * u64::from(abi::SL_SHARED_BATCH_NS)) << 6;
    let lag = if fast { batch * f64::from(abi::SL_SHARED_BURST_BATCHES) } else { batch };
    let busy = || world.children.iter().filter(|child| child.backlogged);
    let all: u32 = busy().map(|child| child.node.weight).sum();
    let of_tree = |n: usize| busy().filter(|child| child.home == n).map(|child| child.node.weight).sum::<u32>();
    let least = (0..world.trees.len()).map(of_tree).filter(|weights| *weights > 0).min().unwrap_or(1);
    let least_child = busy().map(|child| child.node.weight).min().unwrap_or(1);
    2.0 * (lag / f64::from(all) + 2.0 * batch / f64::from(least)) + 4.0 * f64::from(FRAME) / f64::from(least_child)
}

/// The greatest difference of two children that are backlogged, in bytes by weight, from a time on.
fn difference(world: &World, from_ns: u64) -> f64 {
    let busy = (0..).zip(&world.children).filter(|(_, child)| child.backlogged);
    let of: Vec<f64> =
        busy.map(|(n, child)| world.bytes_of(n, from_ns) as f64 / f64::from(child.node.weight)).collect();
    of.iter().copied().fold(0.0, f64::max) - of.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Children that always have packets send by their weights, whichever trees they are in, from any time on.
fn children_share_by_weight(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let mut world = World::grown(stepped, case, children(case, 2 + (case.seed % 7) as usize), 0);
    // The burst at the beginning is for all who come.
    world.run_until(START_NS + 1)?;
    let begin = START_NS + (world.rate().burst >> 6) + time_of(case, 8);
    world.run_until(begin)?;
    let length = settled(&world, case);
    world.run_until(begin + length)?;
    let bound = share_bound(&world);
    for part in [0, 3, 7] {
        let off = difference(&world, begin + length * part / 10);
        prop_assert!(off <= bound, "children differ by {} bytes a weight, the bound is {}", off, bound);
    }
    Ok(())
}

/// The same for children that were away, however long others were alone.
fn children_that_come_back_share_by_weight(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let mut world = World::grown(stepped, case, children(case, 4), 0);
    world.run_until(START_NS + 1)?;
    let part = settled(&world, case);
    for alone in [0, 1] {
        (0..4).for_each(|child| world.set_backlogged(child, child % 2 == alone));
        let until = world.now_ns + part;
        world.run_until(until)?;
        (0..4).for_each(|child| world.set_backlogged(child, true));
        let from = world.now_ns;
        world.run_until(from + part)?;
        // One that was alone may have drawn in advance.
        let bound = share_bound(&world) * 1.5;
        let off = difference(&world, from);
        prop_assert!(off <= bound, "children differ by {} bytes a weight, the bound is {}", off, bound);
    }
    Ok(())
}

/// The time by which a guarantee of the link's child makes up lateness: what others have drawn before, and their batches.
fn guarantee(case: &Case, bits_per_second: u64) -> Bucket {
    let batch_ns = time_of(case, 64).min(80_000).max(time_of(case, 1));
    let burst_ns = 4 * u64::from(abi::SL_SHARED_AHEAD_NS) + 8 * u64::from(case.instances + 2) * batch_ns;
    Bucket { bits_per_second, burst_ns: burst_ns.min(4_000_000_000) as u32 }
}

/// A child with a guarantee of half of the link gets it against one in any tree with a hundred times its weight.
fn guarantees_are_kept(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let mut two = children(case, 2);
    let half = case.rate / 2;
    two[0].node = Node { weight: 1, rate: Some(guarantee(case, half)), ..two[0].node };
    two[1].node.weight = 100;
    let mut world = World::grown(stepped, case, two, 0);
    world.run_until(START_NS + 1)?;
    let begin = START_NS + (world.rate().burst >> 6) + time_of(case, 8);
    world.run_until(begin)?;
    let length = 2 * settled(&world, case);
    world.run_until(begin + length)?;
    let late = 2.0 * (f64::from(case.instances) + 9.0) * f64::from(world.rate().batch_bytes);
    let (got, told) = (world.bytes_of(0, begin) as f64, bytes_in(half, length));
    prop_assert!(got >= 0.99 * told - late, "{} of {} bytes", got, told);
    // It is a guarantee and no priority: the other child gets what it leaves.
    let burst = bytes_in(half, u64::from(guarantee(case, half).burst_ns));
    let others = world.bytes_of(1, begin);
    prop_assert!(got <= told * 1.03 + burst + late, "{} bytes, guaranteed are {}; others {}", got, told, others);
    Ok(())
}

/// Each child has its guarantee, if it has one, and its share by weight of what all guarantees leave, whichever tree it is in.
fn guarantees_leave_the_rest_by_weight(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let mut case = case.clone();
    (case.instances, case.rate) = (2, case.rate.min(10_000_000_000));
    let count = 2 + (case.seed % 4) as usize;
    let mut all = children(&case, count);
    let assured = guarantee(&case, case.rate / (2 * count as u64));
    let mut random = Random::new(case.seed);
    (0..)
        .zip(&mut all)
        .for_each(|(n, child)| (child.home, child.node.rate) = (n % 2, random.one_in(2).then_some(assured)));
    all[0].node.rate = Some(assured);
    let mut world = World::grown(stepped, &case, all, FRAME);
    world.run_until(START_NS + 1)?;
    let begin = START_NS + (world.rate().burst >> 6) + time_of(&case, 8);
    world.run_until(begin)?;
    // A guarantee that was late makes up for its burst.
    let length = (20 * settled(&world, &case)).max(20 * u64::from(assured.burst_ns));
    world.run_until(begin + length)?;
    let guaranteed = |child: &Child| child.node.rate.map_or(0.0, |rate| bytes_in(rate.bits_per_second, length));
    let rest = bytes_in(case.rate, length) - world.children.iter().map(guaranteed).sum::<f64>();
    let weights: u32 = world.children.iter().map(|child| child.node.weight).sum();
    let apart = share_bound(&world);
    for (n, child) in (0..).zip(&world.children) {
        let weight = f64::from(child.node.weight);
        let told = guaranteed(child) + rest * weight / f64::from(weights);
        let (got, bound) = (world.bytes_of(n, begin) as f64, 0.06 * told + apart * weight);
        prop_assert!((got - told).abs() <= bound, "child {}: {} of {} bytes, may be {} off", n, got, told, bound);
    }
    Ok(())
}

/// Trees that run empty want nothing, and have no credit that others lack.
fn trees_that_run_empty_want_nothing(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let mut world = World::grown(stepped, case, children(case, 8), 0);
    let part = time_of(case, 300).max(2_000_000);
    world.run_until(START_NS + part)?;
    (0..8).for_each(|child| world.set_backlogged(child, false));
    let until = world.now_ns + part + 32 * (world.rate().batch >> 6);
    world.run_until(until)?;
    let words = &world.link;
    for (n, (tree, own)) in world.trees.iter().zip(&world.parts).enumerate() {
        prop_assert_eq!(tree.state().pkts, 0, "tree {} has packets", n);
        prop_assert_eq!(words.share[n].claim, 0, "tree {} wants credit", n);
        // It gives back once in this time.
        let mut homed = world.sent.iter().filter(|sent| world.children[sent.child as usize].home == n);
        let just_did = homed.next_back().is_some_and(|sent| sent.at_ns < own.credit.gave_back_ns + 1_000_000);
        let keeps = own.credit.bytes > 0 && own.credit.scarce == 1 && !just_did;
        prop_assert!(!keeps, "tree {} keeps {} bytes", n, own.credit.bytes);
    }
    Ok(())
}

/// Trees that end while they have packets want nothing, and have given back all that they had.
fn trees_that_end_leave_nothing_behind(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let mut world = World::grown(stepped, case, children(case, 8), 0);
    world.run_until(START_NS + time_of(case, 300))?;
    // The trees could send at once the credit of the bucket and the credit that they give back.
    let had: i64 = world.parts.iter().map(|own| i64::from(own.credit.bytes.max(0))).sum();
    let before = world.link.bucket.value;
    world.stop_all();
    let words = &world.link;
    let cost = world.rate().cost;
    let back = (before.wrapping_sub(words.bucket.value) << 14) / cost;
    prop_assert!((had - back as i64).abs() <= 16, "{} bytes of {} came back", back, had);
    for (n, own) in world.parts.iter().enumerate() {
        prop_assert_eq!(words.share[n].claim, 0, "tree {} wants credit", n);
        prop_assert_eq!(own.credit.bytes, 0, "tree {} has credit", n);
    }
    Ok(())
}

/// The link's node gets another rate: it holds from then on, and debts stay.
fn another_rate_takes_force(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let mut world = World::grown(stepped, case, children(case, 8), 0);
    world.run_until(START_NS + time_of(case, 300))?;
    let before = allowance(&world);
    let mut random = Random::new(case.seed);
    let case =
        Case { rate: (case.rate * (1 + random.below(4)) / (1 + random.below(4))).min(100_000_000_000), ..case.clone() };
    world.set_rate(rate_of(&case));
    let from = world.now_ns;
    let length = time_of(&case, 3_000 + 100 * u64::from(case.instances));
    world.run_until(from + length)?;
    let sent = || world.charges().filter(|(at_ns, _)| *at_ns >= from);
    let ahead = most_ahead(sent(), effective(rate_of(&case)));
    let bound = allowance(&world).max(before);
    prop_assert!(ahead <= bound, "{} bytes ahead, the bound is {}", ahead, bound);
    let (got, told) = (sent().map(|(_, bytes)| f64::from(bytes)).sum::<f64>(), bytes_in(case.rate, length));
    let owed = before + bytes_in(case.rate, 2 * u64::from(abi::SL_SHARED_AHEAD_NS));
    prop_assert!(got > 0.995 * told - bound - 2.0 * owed, "{} of {} bytes", got, told);
    Ok(())
}

/// A tree whose device takes nothing keeps no other from sending for longer than the horizon.
fn stopped_queues_hold_up_no_others(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let mut case = case.clone();
    case.instances = case.instances.max(2);
    let mut all = children(&case, 2 * case.instances as usize);
    (0..).zip(&mut all).for_each(|(n, child)| child.home = n % case.instances as usize);
    let mut world = World::grown(stepped, &case, all, 0);
    world.run_until(START_NS + 1)?;
    let horizon_ns = (8 * (world.rate().batch >> 6)).max(1_000_000);
    let part = settled(&world, &case).max(4 * horizon_ns);
    world.run_until(START_NS + part)?;
    world.stopped = 1;
    let stop = world.now_ns;
    world.run_until(stop + part)?;
    let lost = bytes_in(case.rate, horizon_ns) + allowance(&world);
    let got: f64 = world.charges().filter(|(at_ns, _)| *at_ns >= stop).map(|(_, bytes)| f64::from(bytes)).sum();
    let told = bytes_in(case.rate, part);
    prop_assert!(got >= 0.99 * told - lost, "while the first queue is stopped, {} of {} bytes are sent", got, told);
    world.stopped = 0;
    let again = world.now_ns;
    world.run_until(again + part)?;
    let bound = share_bound(&world) * 1.5;
    let off = difference(&world, again);
    prop_assert!(off <= bound, "children differ by {} bytes a weight, the bound is {}", off, bound);
    Ok(())
}

/// At 10 Gbit/s and more, trees go to shared words once in 16 full packets at most.
fn fast_links_touch_shared_words_rarely(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let mut case = case.clone();
    case.rate = 10_000_000_000 * (1 + case.rate % 4);
    let mut world = World::grown(stepped, &case, children(&case, 16), FRAME);
    world.run_until(START_NS + time_of(&case, 12_000))?;
    let (draws, packets) = (world.draws(), world.sent.len() as u64);
    prop_assert!(packets > 10_000, "{} packets", packets);
    prop_assert!(draws * 16 <= packets, "{} times in {} packets", draws, packets);
    Ok(())
}
