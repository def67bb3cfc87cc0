//! Earliest eligible virtual deadline first (Stoica and Abdel-Wahab, TR-95-22, 1995; with others RTSS 1996).

use crate::{
    cases::Case,
    fairness::Waiting,
    laws,
    traces::{self, Greed},
    world::{CLASSES, Event, World, members, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::Core;

const KIND: [u32; 1] = [abi::SL_EEVDF];

laws! {
    serves_the_earliest_eligible_deadline: traces::of(KIND).policing().worn().changes();
    lags_are_bounded: traces::of(KIND).worn().absent().greedy(Greed::All);
    guarantees_do_not_delay_the_others: traces::of(KIND).guarantees().greedy(Greed::All);
    keeps_up_with_the_fluid: traces::of(KIND).greedy(Greed::All);
    classes_do_not_starve: traces::of(KIND).greedy(Greed::All);
    visitors_take_no_more_than_their_share: traces::of(KIND).lulls().greedy(Greed::Others);
    lags_sum_to_zero: traces::of(KIND).ceilings().peaks().guarantees().policing().worn().changes().greedy(Greed::Some);
    lag_outlives_absence: traces::of(KIND).worn().greedy(Greed::Some);
}

/// A byte, in the unit of weight * virtual time.
const BYTE: i128 = 1 << 32;

/// The debt to a class that is ready: weight * (V - its virtual start), in bytes << 32.
fn lag(world: &World, class: usize) -> i128 {
    let state = world.core.state();
    let lag = state
        .state_of::<abi::sl_virtual_sched>()
        .time
        .wrapping_sub(state.classes[class].state_of::<abi::sl_virtual_class>().start) as i64;
    i128::from(lag) * i128::from(state.classes[class].weight)
}

/// The definition: the class with the earliest deadline among those at V or before it is served. If rounding leaves none there,
/// the first is served, and V is short of it by less than a byte for each weight. The deadline of a class is its place
/// after its request, which is of its quantum, or of its next packet if that is longer; it does not move until another
/// packet might not fit.
fn serves_the_earliest_eligible_deadline(core: &'static Core, case: &Case) -> TestCaseResult {
    let longest = case.longest();
    // Ready classes, before the core is asked: how far each is before V, and its deadline, seen from V.
    let mut seen: Vec<(usize, i64, i64)> = Vec::new();
    // The deadline of each class's request, and since when the class has been ready.
    let mut requests = [(0u64, 0u64); CLASSES];
    run(core, case, |world, event| {
        let state = world.core.state();
        let from_now = |time: u64| time.wrapping_sub(state.state_of::<abi::sl_virtual_sched>().time) as i64;
        if matches!(event, Event::Asking) && state.lone != 0 {
            seen.clear(); // the class of a lone packet makes no request
        } else if matches!(event, Event::Asking) {
            let of = |class: &abi::sl_class| {
                (
                    from_now(class.state_of::<abi::sl_virtual_class>().start),
                    from_now(class.state_of::<abi::sl_eevdf_class>().deadline),
                )
            };
            seen = world.ready().map(|class| (class, of(&state.classes[class]))).map(|(c, (s, d))| (c, s, d)).collect();
            for &(class, start, deadline) in &seen {
                let most = world.policy.classes[class].quantum.max(longest[class]);
                let left = (deadline - start) as u64 / world.virtual_cost(class);
                prop_assert!((1..=most.into()).contains(&left), "the request of class {class} has {left} bytes left");
                let class_now = &state.classes[class];
                let (deadline, stint) = requests[class];
                if (deadline, stint) != (class_now.state_of::<abi::sl_eevdf_class>().deadline, world.stints[class]) {
                    let next = world.queues[class][0].len;
                    let request = u64::from(world.policy.classes[class].quantum.max(next));
                    prop_assert_eq!(left, request, "the new request of class {}", class);
                }
                if stint == world.stints[class] && deadline != class_now.state_of::<abi::sl_eevdf_class>().deadline {
                    let left = deadline.wrapping_sub(class_now.state_of::<abi::sl_virtual_class>().start) as i64;
                    let packet = (u64::from(longest[class]) * world.virtual_cost(class)) as i64;
                    prop_assert!(left < packet, "class {class} makes a request before its last is done");
                }
                requests[class] = (class_now.state_of::<abi::sl_eevdf_class>().deadline, world.stints[class]);
            }
        }
        match event {
            // A class that is alone is served whenever.
            Event::Sent(packet) if seen.len() > 1 => {
                let &(_, start, deadline) = seen.iter().find(|&&(class, ..)| class == packet.class).expect("ready");
                let eligible = seen.iter().filter(|&&(_, start, _)| start <= 0);
                match eligible.map(|&(.., deadline)| deadline).min() {
                    Some(earliest) => {
                        prop_assert!(start <= 0, "class {} is not eligible, others are", packet.class);
                        prop_assert_eq!(deadline, earliest, "deadlines of {} and of the earliest", packet.class);
                    }
                    None => {
                        let first = seen.iter().map(|&(_, start, _)| start).min();
                        prop_assert_eq!(
                            Some(start),
                            first,
                            "nobody is eligible, and class {} is not first",
                            packet.class
                        );
                        prop_assert!(i128::from(start) < BYTE, "V is short by {start}");
                    }
                }
            }
            _ => {}
        }
        Ok(())
    })
}

/// The upper bound on the lag of a class: its request, or the longest packet of all, if that is more.
fn most_lag(world: &World, longest: &[u32], class: usize) -> u32 {
    let most = longest.iter().max().expect("of 64 classes");
    world.policy.classes[class].quantum.max(*most)
}

/// While all classes that always have packets are ready, the lag of each is between these bounds, in bytes.
fn lags_are_within(
    core: &'static Core,
    case: &Case,
    bounds: impl Fn(&World, &[u32], usize) -> (i128, i128),
) -> TestCaseResult {
    let (longest, everybody) = (case.longest(), case.greedy.len());
    let mut over = false;
    run(core, case, |world, event| {
        // The bounds hold from the beginning, when no class is owed anything.
        over |= matches!(event, Event::Sent(_)) && world.ready().count() < everybody;
        if over || !matches!(event, Event::Asking | Event::Sent(_)) {
            return Ok(());
        }
        for class in world.ready() {
            let (least, most) = bounds(world, &longest, class);
            let lag = lag(world, class);
            prop_assert!(lag > (least - 1) * BYTE, "lag of class {class}: {} bytes, not above {least}", lag / BYTE);
            prop_assert!(lag < (most + 1) * BYTE, "lag of class {class}: {} bytes, not below {most}", lag / BYTE);
        }
        Ok(())
    })
}

/// Theorem 1: while the same classes stay ready, the lag of class i is above -l_i and below max(q_i, l), where l_i is its
/// longest packet, q_i its quantum (the length of its requests) and l the longest packet of all. (There the time slice
/// is q, and a request may end early, so it is -r_max < lag < max(r_max, q). Here a class is looked at for each packet.)
fn lags_are_bounded(core: &'static Core, case: &Case) -> TestCaseResult {
    lags_are_within(core, case, |world, longest, class| {
        (-i128::from(longest[class]), i128::from(most_lag(world, longest, class)))
    })
}

/// A guarantee takes a class at most two packets ahead, however long it serves it: lag_i > -2 l_i. The lags sum to zero, so
/// that all that the others are owed together is less than the sum of 2 l_j, and each of them less than that + max(q_i, l):
/// a class that comes then waits for so much.
fn guarantees_do_not_delay_the_others(core: &'static Core, case: &Case) -> TestCaseResult {
    lags_are_within(core, case, |world, longest, class| {
        let ahead: i128 = longest.iter().map(|&len| 2 * i128::from(len)).sum();
        (-2 * i128::from(longest[class]), ahead + i128::from(most_lag(world, longest, class)))
    })
}

/// The same bounds, told from bytes alone: while the same classes stay ready, what generalized processor sharing would
/// have served class i, W w_i / (sum of weights), is ahead of what it was served by less than max(q_i, l), and behind by
/// less than l_i.
fn keeps_up_with_the_fluid(core: &'static Core, case: &Case) -> TestCaseResult {
    let (longest, everybody) = (case.longest(), case.greedy.len());
    let mut sent = [0u64; CLASSES];
    let mut over = false;
    run(core, case, |world, event| {
        let Event::Sent(packet) = event else { return Ok(()) };
        sent[packet.class] += u64::from(packet.len);
        over |= world.ready().count() < everybody;
        if over {
            return Ok(());
        }
        let weight = |class: usize| 1.0 / world.virtual_cost(class) as f64;
        let weights: f64 = world.ready().map(weight).sum();
        let total = sent.iter().sum::<u64>() as f64;
        // V counts weights, places count 2^32 / weight rounded down: they differ by 2^-16 at most.
        let rounding = 1.0 + total / 65_536.0;
        for class in world.ready() {
            let (least, most) = (-f64::from(longest[class]), f64::from(most_lag(world, &longest, class)));
            let owed = total * weight(class) / weights - sent[class] as f64;
            prop_assert!(owed > least - rounding, "class {class} is ahead by {} bytes, not by {}", -owed, -least);
            prop_assert!(owed < most + rounding, "class {class} is behind by {owed} bytes, not by {most}");
        }
        Ok(())
    })
}

/// While the same classes stay ready and class i waits, the others send less than (l_i + max(q_i, l)) W / w_i bytes
/// together, W the sum of the weights: its lag cannot grow by more.
fn classes_do_not_starve(core: &'static Core, case: &Case) -> TestCaseResult {
    let (mut waiting, longest, everybody) = (Waiting::new(), case.longest(), case.greedy.len());
    let mut over = false;
    run(core, case, |world, event| {
        over |= matches!(event, Event::Sent(_)) && world.ready().count() < everybody;
        if over {
            return Ok(());
        }
        let weight = |class: usize| u64::from(world.policy.classes[class].weight);
        let weights: u64 = world.ready().map(weight).sum();
        waiting.observe(world, event, |i, _, sent| {
            (sent.iter().sum(), u64::from(longest[i] + most_lag(world, &longest, i)) * weights / weight(i) + 1)
        })
    })
}

/// Class 0 comes and goes, the others stay. However often it does, what it was served is never more than l ahead of the
/// fluid share of what was sent while it was there: its lag only changes while it is there, and is above -l.
fn visitors_take_no_more_than_their_share(core: &'static Core, case: &Case) -> TestCaseResult {
    let longest = case.longest();
    let (mut asked, mut share, mut taken, mut total) = (0u64, 0.0, 0.0, 0.0);
    let mut over = false;
    run(core, case, |world, event| {
        match event {
            Event::Asking => asked = world.ready,
            Event::Sent(packet) if !over => {
                let len = f64::from(packet.len);
                total += len;
                if asked & 1 == 1 {
                    let weight = |class: usize| 1.0 / world.virtual_cost(class) as f64;
                    share += len * weight(0) / members(asked).map(weight).sum::<f64>();
                }
                if packet.class == 0 {
                    taken += len;
                }
                let most = f64::from(longest[0]) + 1.0 + total / 65_536.0;
                prop_assert!(taken - share <= most, "{taken} bytes taken, {share} its share");
                // In the end, the others go too.
                over = world.ready().filter(|&class| class != 0).count() < case.greedy.len();
            }
            _ => {}
        }
        Ok(())
    })
}

/// The lags of the classes that are ready sum to zero, up to rounding: each change of that set rounds V once, by less than
/// 2^-32 bytes for each weight. The remainders of the divisions that advance V are carried on.
fn lags_sum_to_zero(core: &'static Core, case: &Case) -> TestCaseResult {
    run(core, case, |world, event| {
        let ready = world.core.state().ready;
        if !matches!(event, Event::Sent(_) | Event::Arrived(..)) || ready == 0 {
            return Ok(());
        }
        let weights: i128 = world.policy.classes.iter().map(|class| i128::from(class.weight)).sum();
        // Each class that came has left, or is still there.
        let changes = 2 * i128::from(world.stints.iter().sum::<u64>()) + 1;
        let sum: i128 = members(ready).map(|class| lag(world, class)).sum();
        prop_assert!(sum.abs() <= changes * weights, "lags sum to {} bytes", sum as f64 / BYTE as f64);
        Ok(())
    })
}

/// A class that leaves with a lag has the same when it returns to others, neither more nor less; and none if it returns to
/// an empty set (strategy 2 there). No ceilings here, so a class leaves when it is empty and returns with its next packet.
fn lag_outlives_absence(core: &'static Core, case: &Case) -> TestCaseResult {
    let mut kept = [None; CLASSES];
    // V, sum of weights and what the last division left over, and where classes stand, before the core is asked.
    let (mut now, mut weights, mut rest, mut starts) = (0u64, 0i128, 0i128, [0u64; CLASSES]);
    run(core, case, |world, event| {
        let state = world.core.state();
        match event {
            Event::Asking => {
                (now, weights, rest) = (
                    state.state_of::<abi::sl_virtual_sched>().time,
                    state.state_of::<abi::sl_eevdf_sched>().weights.into(),
                    state.state_of::<abi::sl_eevdf_sched>().rest.into(),
                );
                if state.lone != 0 {
                    // The class of a lone packet stands nowhere; it would stand at V, alone.
                    let class = world.ready().next().expect("the class of the packet");
                    (weights, rest) = (state.classes[class].weight.into(), 0);
                    starts[class] = now;
                    return Ok(());
                }
                for class in world.ready() {
                    starts[class] = state.classes[class].state_of::<abi::sl_virtual_class>().start;
                }
            }
            Event::Sent(packet) if world.queues[packet.class].is_empty() => {
                let class = packet.class;
                let start = starts[class];
                let walked = i128::from(packet.len) * i128::from(world.virtual_cost(class));
                let weight = i128::from(state.classes[class].weight);
                let lag = i128::from(now.wrapping_sub(start) as i64) + (walked * weight + rest) / weights - walked;
                kept[class] = Some(lag);
            }
            Event::Arrived(packet, Ok(())) if world.queues[packet.class].len() == 1 => {
                let class = packet.class;
                let Some(kept) = kept[class].take() else { return Ok(()) };
                if state.lone != 0 {
                    return Ok(());
                }
                let others = state.ready & !(1 << class) != 0;
                let has = i128::from(
                    state
                        .state_of::<abi::sl_virtual_sched>()
                        .time
                        .wrapping_sub(state.classes[class].state_of::<abi::sl_virtual_class>().start)
                        as i64,
                );
                let expected = if others { kept } else { 0 };
                let weight = i128::from(state.classes[class].weight);
                // V may have been moved to the first class, by less than a byte for each weight.
                prop_assert!(
                    (has - expected).abs() * weight <= BYTE,
                    "class {class} left with {} bytes and returns with {}",
                    (kept * weight) as f64 / BYTE as f64,
                    (has * weight) as f64 / BYTE as f64
                );
            }
            _ => {}
        }
        Ok(())
    })
}
