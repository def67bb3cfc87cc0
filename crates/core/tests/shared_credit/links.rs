//! Whole instances at a link: rates, shares, guarantees and ceilings hold for all of them together, and nothing idles.

use crate::{
    builds::Stepped,
    cases::{self, Case, Random, START_NS, bytes_in, most_ahead, time_of},
    laws,
    world::World,
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::shared_credit::Class;

laws! {
    no_link_exceeds_its_bound: cases::of(64);
    long_packets_keep_to_the_rate: cases::of(64);
    no_class_exceeds_its_ceiling: cases::of(16);
    a_link_with_packets_sends_at_its_rate: cases::of(64);
    busy_classes_share_by_weight: cases::of(16);
    classes_that_come_back_share_by_weight: cases::of(16);
    urgent_classes_go_first: cases::of(16);
    urgent_classes_leave_the_rest: cases::of(16);
    guarantees_are_kept: cases::of(16);
    queues_that_run_empty_leave: cases::of(64);
    instances_that_end_leave_nothing_behind: cases::of(64);
    changes_leave_debts_alone: cases::of(16);
    stopped_queues_hold_up_no_others: cases::of(8);
    fast_links_touch_shared_words_rarely: cases::of(8);
}

/// Each class on a random set of instances, at least one.
fn spread(case: &Case, classes: u32) -> Vec<u64> {
    let mut random = Random::new(case.seed ^ 0xabcdef);
    let mut on = vec![0u64; case.instances as usize];
    for class in 0..classes {
        let many = random.one_in(2);
        on.iter_mut().for_each(|on| *on |= u64::from(many && random.one_in(2)) << class);
        on[random.below(u64::from(case.instances)) as usize] |= 1 << class;
    }
    on
}

fn weighted(case: &Case) -> Vec<Class> {
    case.weights.iter().map(|weight| Class { weight: *weight, ..Class::default() }).collect()
}

/// Burst of the link and a batch for each instance, in bytes.
fn allowance(world: &World, case: &Case) -> f64 {
    let link = &world.conf.raw().link;
    bytes_in(case.rate, link.burst >> 6) + f64::from(case.instances) * f64::from(link.batch_bytes) + 2.0
}

/// In any window no more than rate * t + burst + a batch for each instance is sent, while classes come and go.
fn no_link_exceeds_its_bound(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let mut world = World::new(stepped, case, &weighted(case), spread(case, 2), 0);
    let part = time_of(case, 200);
    for _ in 0..10 {
        let until = world.now_ns + part;
        world.run_until(until)?;
        let n = world.random.below(u64::from(case.instances)) as usize;
        let classes = world.random.below(4);
        world.set_backlogged(n, classes);
    }
    let ahead = most_ahead(world.sent.iter().map(|sent| (sent.at_ns, sent.bytes)), case.rate);
    let bound = allowance(&world, case);
    prop_assert!(ahead <= bound, "{} bytes ahead, the bound is {}", ahead, bound);
    Ok(())
}

/// Packets that are longer than a frame, and than the burst, keep to the rate as sched/shared_credit.h says.
fn long_packets_keep_to_the_rate(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    const LONG: u32 = 64_000;
    let mut world = World::new(stepped, case, &weighted(case), spread(case, 2), LONG);
    let length = time_of(case, 42 * (100 + 3 * u64::from(case.instances)));
    world.run_until(START_NS + length)?;
    let ahead = most_ahead(world.sent.iter().map(|sent| (sent.at_ns, sent.bytes)), case.rate);
    let link = world.conf.raw().link;
    let batch = f64::from(link.batch_bytes + LONG - cases::FRAME);
    let burst = bytes_in(case.rate, link.burst >> 6).max(batch);
    let bound = burst + f64::from(case.instances) * batch + 2.0;
    prop_assert!(ahead <= bound, "{} bytes ahead, the bound is {}", ahead, bound);
    let (got, told) = (world.bytes_of(0, START_NS) + world.bytes_of(1, START_NS), bytes_in(case.rate, length));
    prop_assert!(got as f64 > 0.995 * told - bound, "{} of {} bytes", got, told);
    Ok(())
}

/// In any window a class sends no more than ceiling * t + burst + a batch for each instance, and while it has packets hardly less.
fn no_class_exceeds_its_ceiling(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let ceiling = case.rate / 3;
    let mut classes = weighted(case);
    classes[0].ceiling = Some(ceiling);
    let mut world = World::new(stepped, case, &classes, spread(case, 1), 0);
    let length = time_of(case, 3_000);
    world.run_until(START_NS + length)?;
    let terms = world.conf.raw().classes[0].ceiling;
    let bound = bytes_in(ceiling, terms.burst >> 6) + f64::from(case.instances) * f64::from(terms.batch_bytes) + 2.0;
    let ahead = most_ahead(world.sent.iter().map(|sent| (sent.at_ns, sent.bytes)), ceiling);
    prop_assert!(ahead <= bound, "{} bytes ahead, the bound is {}", ahead, bound);
    let (got, told) = (world.bytes_of(0, START_NS) as f64, bytes_in(ceiling, length));
    prop_assert!(got > 0.98 * told - bound, "{} of {} bytes", got, told);
    Ok(())
}

/// While an instance has packets, the link sends at its rate, whichever of its instances and classes come and go.
fn a_link_with_packets_sends_at_its_rate(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let mut world = World::new(stepped, case, &weighted(case), spread(case, 2), 0);
    let part = time_of(case, 400);
    for _ in 0..8 {
        let until = world.now_ns + part;
        world.run_until(until)?;
        let n = world.random.below(u64::from(case.instances)) as usize;
        let classes = if n == 0 { 1 } else { world.random.below(4) };
        world.set_backlogged(n, classes);
        world.set_backlogged(0, 1);
    }
    let got: u64 = world.sent.iter().map(|sent| u64::from(sent.bytes)).sum();
    let told = bytes_in(case.rate, world.now_ns - START_NS);
    // Bytes that instances have drawn and not spent.
    let drawn = f64::from(case.instances) * f64::from(world.conf.raw().link.batch_bytes);
    prop_assert!(got as f64 > 0.995 * told - drawn, "{} of {} bytes", got, told);
    Ok(())
}

/// The bound of sched/shared_shares.h: two classes may differ by so many bytes, each divided by its weight.
fn share_bound(world: &World, case: &Case) -> f64 {
    let batch = f64::from(world.conf.raw().link.batch_bytes);
    let fast = world.conf.raw().link.batch <= (2 * u64::from(abi::SL_SHARED_BATCH_NS)) << 6;
    let lag = if fast { batch * f64::from(abi::SL_SHARED_BURST_BATCHES) } else { batch };
    let sum = f64::from(case.weights[0] + case.weights[1]);
    let least = f64::from(case.weights[0].min(case.weights[1]));
    2.0 * (lag / sum + (f64::from(case.instances) + 1.0) * batch / least)
}

/// The difference of two classes by their weights, from a time on.
fn difference(world: &World, case: &Case, from_ns: u64) -> f64 {
    let of = |class: u32| world.bytes_of(class, from_ns) as f64 / f64::from(case.weights[class as usize]);
    (of(0) - of(1)).abs()
}

/// Two classes that always have packets, on any instances, send by their weights, from any time on.
fn busy_classes_share_by_weight(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let mut world = World::new(stepped, case, &weighted(case), spread(case, 2), 0);
    // The burst at the beginning is for all who come.
    let begin = START_NS + (world.conf.raw().link.burst >> 6);
    world.run_until(begin)?;
    let batches = u64::from(world.conf.raw().link.batch_bytes) / 1500;
    world.run_until(begin + time_of(case, (60 + 20 * u64::from(case.instances)) * batches.clamp(4, 12)))?;
    let bound = share_bound(&world, case);
    for part in [0, 3, 7] {
        let from = begin + (world.now_ns - begin) * part / 10;
        let off = difference(&world, case, from);
        prop_assert!(off <= bound, "classes differ by {} bytes a weight, the bound is {}", off, bound);
    }
    Ok(())
}

/// The same for a class that was away, however long the other one was alone.
fn classes_that_come_back_share_by_weight(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let on = spread(case, 2);
    let mut world = World::new(stepped, case, &weighted(case), on.clone(), 0);
    let batches = u64::from(world.conf.raw().link.batch_bytes) / 1500;
    let part = time_of(case, (60 + 20 * u64::from(case.instances)) * batches.clamp(4, 12));
    for alone in [1, 2] {
        for (n, on) in on.iter().enumerate() {
            world.set_backlogged(n, on & alone);
        }
        let until = world.now_ns + part;
        world.run_until(until)?;
        for (n, on) in on.iter().enumerate() {
            world.set_backlogged(n, *on);
        }
        let from = world.now_ns;
        world.run_until(from + part)?;
        // One that was alone may have drawn in advance.
        let bound = share_bound(&world, case) * 1.5;
        let off = difference(&world, case, from);
        prop_assert!(off <= bound, "classes differ by {} bytes a weight, the bound is {}", off, bound);
    }
    Ok(())
}

/// Two classes, and which of them goes first.
fn ordered(case: &Case) -> (Vec<Class>, u32) {
    let urgent = (case.seed >> 7 & 1) as u32;
    let level = |class| u32::from(class != urgent);
    (weighted(case).into_iter().zip(0..).map(|(own, class)| Class { level: level(class), ..own }).collect(), urgent)
}

/// Bytes that the later class may send beside the urgent one: a batch of each instance, as often as instances can have drawn before it came.
fn before_it_came(world: &World, case: &Case) -> f64 {
    let ahead_ns = u64::from(abi::SL_SHARED_AHEAD_NS);
    2.0 * allowance(world, case) + bytes_in(case.rate, ahead_ns)
}

/// While a class of a lower level has packets, on any instances, it gets all, whenever it comes.
fn urgent_classes_go_first(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let on = spread(case, 2);
    let (classes, urgent) = ordered(case);
    let mut world = World::new(stepped, case, &classes, on.clone(), 0);
    let batches = u64::from(world.conf.raw().link.batch_bytes) / 1500;
    let part = time_of(case, (100 + 20 * u64::from(case.instances)) * batches.clamp(4, 12)).max(4_000_000);
    for beside in [true, false, true] {
        for (n, on) in on.iter().enumerate() {
            world.set_backlogged(n, if beside { *on } else { on & !(1 << urgent) });
        }
        let from = world.now_ns;
        world.run_until(from + part)?;
        let (got, bound) = (world.bytes_of(1 - urgent, from) as f64, before_it_came(&world, case));
        let told = bytes_in(case.rate, part) - bound;
        prop_assert!(!beside || got <= bound, "{} bytes beside an urgent class, the bound is {}", got, bound);
        prop_assert!(beside || got >= 0.99 * told, "{} of {} bytes once it has gone", got, told);
    }
    Ok(())
}

/// A class of a higher level gets what an urgent one with a ceiling leaves.
fn urgent_classes_leave_the_rest(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let (mut classes, urgent) = ordered(case);
    classes[urgent as usize].ceiling = Some(case.rate / 3);
    let mut world = World::new(stepped, case, &classes, spread(case, 2), 0);
    let length = time_of(case, 3_000);
    world.run_until(START_NS + length)?;
    let told = bytes_in(case.rate, length);
    let got = [urgent, 1 - urgent].map(|class| world.bytes_of(class, START_NS) as f64);
    let drawn = allowance(&world, case);
    prop_assert!(got[0] > 0.98 * told / 3.0 - drawn, "the urgent class got {:?} of {} bytes", got, told);
    prop_assert!(got[0] + got[1] > 0.99 * told - drawn, "both got {:?} of {} bytes", got, told);
    Ok(())
}

/// A class with a guarantee of half of the link gets it against one with a hundred times its weight.
fn guarantees_are_kept(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let guarantee = case.rate / 2;
    let mut case = case.clone();
    case.weights = [1, 100];
    let mut classes = weighted(&case);
    classes[0].guarantee = Some(guarantee);
    let mut world = World::new(stepped, &case, &classes, spread(&case, 2), 0);
    let begin = START_NS + (world.conf.raw().link.burst >> 6);
    world.run_until(begin)?;
    let batches = u64::from(world.conf.raw().link.batch_bytes) / 1500;
    let length = time_of(&case, (60 + 20 * u64::from(case.instances)) * batches.clamp(4, 12));
    world.run_until(begin + length)?;
    let late = 2.0 * (f64::from(case.instances) + 9.0) * f64::from(world.conf.raw().link.batch_bytes);
    let (got, told) = (world.bytes_of(0, begin) as f64, bytes_in(guarantee, length));
    prop_assert!(got >= 0.99 * told - late, "{} of {} bytes", got, told);
    // It is a guarantee and no priority: the other class gets what it leaves.
    let burst = bytes_in(guarantee, world.conf.raw().classes[0].guarantee.burst >> 6);
    prop_assert!(
        got <= told * 1.03 + burst + late,
        "{} bytes, guaranteed are {}; others {}",
        got,
        told,
        world.bytes_of(1, begin)
    );
    Ok(())
}

/// Instances that run empty are in no class any more, and have no credit that others lack.
fn queues_that_run_empty_leave(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let mut world = World::new(stepped, case, &weighted(case), spread(case, 2), 0);
    let part = time_of(case, 300).max(2_000_000);
    world.run_until(START_NS + part)?;
    for n in 0..case.instances as usize {
        world.set_backlogged(n, 0);
    }
    let until = world.now_ns + part + 4 * world.conf.raw().horizon_ns;
    world.run_until(until)?;
    let words = world.link.words();
    let mut last_ns = vec![0; case.instances as usize];
    world.sent.iter().for_each(|sent| last_ns[sent.instance] = sent.at_ns);
    for (n, instance) in world.instances.iter_mut().enumerate() {
        prop_assert_eq!(instance.scheduler().state().backlog_pkts, 0, "instance {} has packets", n);
        let own = instance.own();
        prop_assert_eq!(own.joined, 0, "instance {} is in classes", n);
        // It gives back once in this time.
        let just_did = last_ns[n] < own.credit.gave_back_ns + 1_000_000;
        let keeps = own.credit.bytes > 0 && own.credit.scarce == 1 && !just_did;
        prop_assert!(!keeps, "instance {} keeps {} bytes", n, own.credit.bytes);
    }
    for share in &words.classes.share {
        prop_assert_eq!(share.instances, 0);
    }
    Ok(())
}

/// Instances that end while they have packets are in no class any more, and have given back all that they had.
fn instances_that_end_leave_nothing_behind(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let mut classes = weighted(case);
    classes[0].ceiling = Some(case.rate / 3);
    let mut world = World::new(stepped, case, &classes, spread(case, 2), 0);
    world.run_until(START_NS + time_of(case, 300))?;
    world.stop_all();
    let words = world.link.words();
    prop_assert_eq!(words.classes.active.value, 0);
    for share in &words.classes.share {
        prop_assert_eq!(share.instances, 0);
    }
    for (n, instance) in world.instances.iter().enumerate() {
        let own = instance.own();
        prop_assert!(own.credit.bytes <= 0, "instance {} keeps {} bytes of the link", n, own.credit.bytes);
        prop_assert!(own.ceiling_bytes[0] <= 0, "instance {} keeps {} bytes of a ceiling", n, own.ceiling_bytes[0]);
        prop_assert!(own.unreported | own.charged == 0, "instance {} has not reported what it sent", n);
    }
    Ok(())
}

/// When a link gets another configuration, instances leave all classes and keep their debts alone; then the new rates and weights hold.
fn changes_leave_debts_alone(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let mut classes = weighted(case);
    classes[0].ceiling = Some(case.rate / 3);
    let mut world = World::new(stepped, case, &classes, spread(case, 2), 0);
    world.run_until(START_NS + time_of(case, 300))?;
    let had: Vec<_> = world.instances.iter().map(|one| (one.own().credit.bytes, one.own().ceiling_bytes[0])).collect();
    let burst_before_ns = world.conf.raw().link.burst >> 6;
    let mut random = Random::new(case.seed);
    let rate = case.rate * (1 + random.below(8)) / (1 + random.below(4));
    let case = Case { rate, weights: [case.weights[1], case.weights[0]], ..case.clone() };
    world.renew_all(rate, case.burst_ns, &weighted(&case));
    prop_assert_eq!(world.link.words().classes.active.value, 0);
    for (n, (instance, (credit, of_ceiling))) in world.instances.iter().zip(had).enumerate() {
        let own = instance.own();
        let has = (own.credit.bytes, own.ceiling_bytes[0]);
        prop_assert_eq!(has, (credit.min(0), of_ceiling.min(0)), "instance {} had {} and {}", n, credit, of_ceiling);
        prop_assert!(own.unreported | own.charged | own.joined | own.refused == 0, "instance {} is in a class", n);
    }
    let from = world.now_ns;
    let length = time_of(&case, 3_000 + 100 * u64::from(case.instances));
    world.run_until(from + length)?;
    let bound = allowance(&world, &case);
    let sent = || world.sent.iter().filter(|sent| sent.at_ns >= from).map(|sent| (sent.at_ns, sent.bytes));
    let ahead = most_ahead(sent(), rate);
    prop_assert!(ahead <= bound, "{} bytes ahead, the bound is {}", ahead, bound);
    let (got, told) = (sent().map(|(_, bytes)| f64::from(bytes)).sum::<f64>(), bytes_in(rate, length));
    let owed = bytes_in(rate, burst_before_ns + 2 * u64::from(abi::SL_SHARED_AHEAD_NS));
    prop_assert!(got > 0.995 * told - bound - owed, "{} of {} bytes", got, told);
    Ok(())
}

/// An instance whose device takes nothing keeps no other from sending for longer than the horizon, and its class catches up on nothing.
fn stopped_queues_hold_up_no_others(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let mut case = case.clone();
    case.instances = case.instances.max(2);
    // The first class is on the first instance alone.
    let on: Vec<u64> = (0..case.instances).map(|n| if n == 0 { 1 } else { 2 }).collect();
    let mut world = World::new(stepped, &case, &weighted(&case), on, 0);
    let batches = u64::from(world.conf.raw().link.batch_bytes) / 1500;
    let part = time_of(&case, 400 * batches.clamp(1, 8)).max(4 * world.conf.raw().horizon_ns);
    world.run_until(START_NS + part)?;
    world.stopped = 1;
    let stop = world.now_ns;
    world.run_until(stop + part)?;
    let lost = bytes_in(case.rate, world.conf.raw().horizon_ns) + allowance(&world, &case);
    let (got, told) = (world.bytes_of(1, stop) as f64, bytes_in(case.rate, part));
    prop_assert!(got >= 0.99 * told - lost, "while the first queue is stopped, {} of {} bytes are sent", got, told);
    world.stopped = 0;
    let again = world.now_ns;
    world.run_until(again + part)?;
    let bound = share_bound(&world, &case) * 1.5;
    let off = difference(&world, &case, again);
    prop_assert!(off <= bound, "classes differ by {} bytes a weight, the bound is {}", off, bound);
    Ok(())
}

/// At 10 Gbit/s and more, instances go to shared words once in 16 full packets at most.
fn fast_links_touch_shared_words_rarely(stepped: &'static Stepped, case: &Case) -> TestCaseResult {
    let mut case = case.clone();
    case.rate = 10_000_000_000 * (1 + case.rate % 4);
    let mut world = World::new(stepped, &case, &weighted(&case), spread(&case, 2), 1500);
    world.run_until(START_NS + time_of(&case, 12_000))?;
    let (draws, packets) = (world.draws(), world.sent.len() as u64);
    prop_assert!(packets > 10_000, "{} packets", packets);
    prop_assert!(draws * 16 <= packets, "{} times in {} packets", draws, packets);
    Ok(())
}
