//! Weighted fair queueing by virtual start times: start-time fair queueing (Goyal, Vin and Cheng, IEEE/ACM ToN 1997).

use crate::{
    cases::Case,
    fairness::{Pairs, Terms, Waiting},
    gps::Gps,
    laws,
    traces::{self, Greed},
    world::{CLASSES, Event, World, members, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::Core;

const KIND: [u32; 1] = [abi::SL_WEIGHTED_FAIR_QUEUING];

laws! {
    serves_the_smallest_start: traces::of(KIND).by_flow().ceilings().peaks().policing().worn().changes();
    returns_at_the_virtual_time_or_its_own_end: traces::of(KIND).by_flow().worn().absent();
    shares_by_weight: traces::of(KIND).by_flow().ceilings().peaks().guarantees().worn().changes().greedy(Greed::Some);
    classes_do_not_starve: traces::of(KIND).by_flow().ceilings().peaks().greedy(Greed::Some);
    packets_leave_by_their_expected_arrival: traces::of(KIND).steady().lulls();
    keeps_up_with_the_fluid: traces::of(KIND).steady().greedy(Greed::First);
}

fn before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

/// The definition: the virtual time is the start of the packet in service, it never runs back, and no class that is ready
/// starts before it.
fn serves_the_smallest_start(core: &'static Core, case: &Case) -> TestCaseResult {
    let (mut asked, mut last) = (0u64, None);
    run(core, case, |world, event| {
        let now = world.core.state().state_of::<abi::sl_virtual_sched>().time;
        match event {
            Event::Asking => asked = world.ready,
            Event::Configured | Event::Cleared(_) => last = None,
            Event::Sent(packet) => {
                prop_assert!(!last.is_some_and(|last| before(now, last)), "from {last:?} back to {now}");
                last = Some(now);
                for class in members(asked & !(1 << packet.class)) {
                    let start = world.core.state().classes[class].state_of::<abi::sl_virtual_class>().start;
                    prop_assert!(!before(start, now), "class {class} starts at {start}, {} at {now}", packet.class);
                }
            }
            _ => {}
        }
        Ok(())
    })
}

/// The definition: a class that comes to an empty queue starts at the virtual time, or where its last packet ended if
/// that is later, however long it was away. Virtual times are counted here in 128 bits, which do not wrap round. No
/// ceilings here, so a class leaves when it is empty and returns with its next packet.
fn returns_at_the_virtual_time_or_its_own_end(core: &'static Core, case: &Case) -> TestCaseResult {
    let mut now = None;
    let mut ends = [0i128; CLASSES];
    // The class of a lone packet stands nowhere until that leaves, or another comes.
    let mut lone: Option<usize> = None;
    run(core, case, |world, event| {
        let state = world.core.state();
        // Before the first event, V has wrapped round once at most; classes that were not absent stand near it.
        let now = now.get_or_insert_with(|| {
            let now = i128::from(state.state_of::<abi::sl_virtual_sched>().time);
            for (end, class) in ends.iter_mut().zip(&state.classes) {
                let stands = class.state_of::<abi::sl_virtual_class>().start != 0;
                *end = if stands {
                    now + i128::from(
                        class
                            .state_of::<abi::sl_virtual_class>()
                            .start
                            .wrapping_sub(state.state_of::<abi::sl_virtual_sched>().time)
                            as i64,
                    )
                } else {
                    0
                };
            }
            now
        });
        *now += i128::from(state.state_of::<abi::sl_virtual_sched>().time.wrapping_sub(*now as u64) as i64);
        if let (0, Some(class)) = (state.lone, lone) {
            lone = None;
            let stands = state.classes[class].state_of::<abi::sl_virtual_class>().start;
            let mut start = *now + i128::from(stands.wrapping_sub(*now as u64) as i64);
            if let Event::Sent(packet) = event {
                start -= i128::from(packet.len) * i128::from(world.virtual_cost(class));
            }
            prop_assert_eq!(start, ends[class].max(*now), "V is {}, start of the lone packet of {}", now, class);
            ends[class] = start;
        }
        match event {
            Event::Arrived(packet, Ok(())) if state.lone != 0 => lone = Some(packet.class),
            Event::Arrived(packet, Ok(())) if world.queues[packet.class].len() == 1 => {
                let start = *now
                    + i128::from(
                        state.classes[packet.class].state_of::<abi::sl_virtual_class>().start.wrapping_sub(*now as u64)
                            as i64,
                    );
                prop_assert_eq!(start, ends[packet.class].max(*now), "V is {}, start of {:?}", now, packet);
                ends[packet.class] = start;
            }
            Event::Sent(packet) => {
                ends[packet.class] += i128::from(packet.len) * i128::from(world.virtual_cost(packet.class))
            }
            _ => {}
        }
        Ok(())
    })
}

/// Theorem 1: while classes f and m are both ready, |W_f / w_f - W_m / w_m| <= l_f / w_f + l_m / w_m. It asks nothing of
/// the link, so it holds also behind the guarantees of others.
fn shares_by_weight(core: &'static Core, case: &Case) -> TestCaseResult {
    let (mut pairs, longest) = (Pairs::new(), case.longest());
    run(core, case, |world, event| {
        pairs.observe(world, event, |f, m| {
            if world.rate[f].limits() || world.rate[m].limits() {
                return None;
            }
            let worth = (world.virtual_cost(f), world.virtual_cost(m));
            let bound = u64::from(longest[f]) * worth.0 + u64::from(longest[m]) * worth.1;
            Some(Terms { worth, bound: bound.into() })
        })
    })
}

/// While class i is ready and waits, class j sends at most w_j l_i / w_i + l_j bytes: i starts at most l_i / w_i after the
/// virtual time at which it begins to wait, and j sends nothing that starts later.
fn classes_do_not_starve(core: &'static Core, case: &Case) -> TestCaseResult {
    let (mut waiting, longest) = (Waiting::new(), case.longest());
    run(core, case, |world, event| {
        waiting.observe(world, event, |i, j, sent| {
            let start = u64::from(longest[i]) * world.virtual_cost(i);
            (sent[j], start / world.virtual_cost(j) + u64::from(longest[j]))
        })
    })
}

/// The worth of a byte to the class, relative to the others: its weight, as the core rounds it.
fn weight(world: &World, class: usize) -> f64 {
    1.0 / world.virtual_cost(class) as f64
}

/// Theorem 4: on a link of rate C, where class f is promised r_f and these sum up to C or less, its packet j of length
/// l departs by
///
///   EAT_j + sum over the other classes n of l_n^max / C + l / C,
///
/// where EAT_j = max(arrival of j, EAT_(j-1) + length of j-1 / r_f) is its expected arrival.
fn packets_leave_by_their_expected_arrival(core: &'static Core, case: &Case) -> TestCaseResult {
    let longest = case.longest();
    let all: u64 = longest.iter().map(|&len| u64::from(len)).sum();
    let link = case.policy.link.expect("a steady link");
    let mut expected = vec![std::collections::VecDeque::new(); CLASSES];
    // When the class may next bring a packet without bringing more than it is promised.
    let mut next = [0.0f64; CLASSES];
    // The link counts whole ns: a packet's time, and the wait before it, may each be up to one longer.
    let mut rounding = 1.0;
    run(core, case, |world, event| {
        match event {
            Event::Arrived(packet, Ok(())) => {
                let class = packet.class;
                let weights: f64 = (0..case.policy.classes.len()).map(|class| weight(world, class)).sum();
                let at = next[class].max((world.now - case.start_ns) as f64);
                next[class] = at + link.time_ns(packet.len.into()) as f64 * weights / weight(world, class);
                expected[class].push_back(at);
            }
            Event::Sent(packet) => {
                let others = all - u64::from(longest[packet.class]);
                rounding += 2.0;
                let departs = world.now - case.start_ns + link.time_ns(packet.len.into());
                let expected = expected[packet.class].pop_front().expect("it has arrived");
                let bound = expected + link.time_ns(others + u64::from(packet.len)) as f64;
                prop_assert!(
                    departs as f64 <= bound * (1.0 + 1e-9) + rounding,
                    "{packet:?} departs at {departs}, not by {bound}: expected at {expected}"
                );
            }
            _ => {}
        }
        Ok(())
    })
}

/// Class f always has packets, others come and go. At every time t, what f has been served is behind generalized
/// processor sharing of the same arrivals by no more than
///
///   G_f(t) - W_f(t) <= sum over the other classes n of (w_n l_f / w_f + l_n).
///
/// Let t be a time at which G_f - W_f is greatest so far, and s the last time before it at which GPS had nothing of n (or
/// the beginning). In GPS, G_n(t) = A_n(s) + (G_f(t) - G_f(s)) w_n / w_f, A_n being what had come. Here, what n is served
/// after s starts between the virtual times of s and t, and f starts at most l_f / w_f after that of s, so
/// W_n(t) <= A_n(s) + (W_f(t) - W_f(s)) w_n / w_f + w_n l_f / w_f + l_n. The difference was smaller at s, so
/// W_n(t) - G_n(t) <= w_n l_f / w_f + l_n. Both links are always busy: what f lacks, the others have.
fn keeps_up_with_the_fluid(core: &'static Core, case: &Case) -> TestCaseResult {
    let longest = case.longest();
    let ns_per_byte = (case.policy.link.expect("a steady link").cost >> 20) as f64;
    let (mut fluid, mut passed, mut sent, mut over) = (None, 0.0, 0.0, false);
    run(core, case, |world, event| {
        let fluid = fluid.get_or_insert_with(|| {
            let mut fluid = Gps::new((0..CLASSES).map(|class| weight(world, class)).collect());
            fluid.arrive(0, f64::INFINITY);
            fluid
        });
        if over || !matches!(event, Event::Arrived(_, Ok(())) | Event::Sent(_)) {
            return Ok(());
        }
        let bytes = (world.now - case.start_ns) as f64 / ns_per_byte;
        fluid.serve(bytes - passed);
        passed = bytes;
        match event {
            Event::Arrived(packet, _) if packet.class != 0 => fluid.arrive(packet.class, packet.len.into()),
            Event::Sent(packet) => {
                let others = (1..CLASSES).filter(|&class| longest[class] > 0);
                let ratio = |class: usize| weight(world, class) / weight(world, 0);
                let bound: f64 =
                    others.map(|class| ratio(class) * f64::from(longest[0]) + f64::from(longest[class])).sum();
                let behind = fluid.served(0) - sent;
                prop_assert!(behind <= bound + 1e-6 * passed + 1.0, "behind by {behind} bytes, not {bound} at most");
                if packet.class == 0 {
                    sent += f64::from(packet.len);
                    over = world.queues[0].is_empty();
                }
            }
            _ => {}
        }
        Ok(())
    })
}
