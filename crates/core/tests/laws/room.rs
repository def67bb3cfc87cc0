//! Laws of full slots: which class gives way to a new packet.

use crate::{
    cases::{Arrival, Case, ClassPolicy, Flow, Flows, Phase, Policy, Rate},
    flow_queues::the_longest_gives_way,
    laws, traces,
    world::{Event, run},
};
use proptest::{option, prelude::*, strategy::BoxedStrategy, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::Core;

laws! {
    urgent_classes_find_room: Crowd;
    the_longest_of_many_gives_way: Crowd;
}

/// The least number of slots for which all of SL_SPARE_SLOTS are kept, and more than flow queues that one class gets.
const SLOTS: u32 = 600;
/// Packets that the urgent class brings.
const URGENT_PKTS: usize = 150;
/// Packets of a second class, which has many too, but fewer than the largest.
const QUIET_PKTS: usize = 70;

/// A class that takes all slots, by one FIFO or by flow, under any discipline; then a burst of a more urgent class. Every second packet of the
/// crowd is of one flow. A third class has some packets all the time.
struct Crowd;

impl Crowd {
    fn cases(&self) -> BoxedStrategy<Case> {
        let ceil = option::of(Just(Rate::bps(1_000_000, 1_000_000)));
        let flows = option::of(Just(Flows {
            flows: 256,
            hosts: abi::SL_HOSTS_SOURCE,
            quantum: 1_514,
            allowance: 10_000,
            target_ns: 0,
            interval_ns: 0,
        }));
        (traces::KINDS, ceil, flows, 1..400u32)
            .prop_map(|(kind, ceil, flows, different)| {
                let urgent = ClassPolicy { level: 0, limit_pkts: 1_000, ..ClassPolicy::default() };
                let crowd = ClassPolicy { level: 1, ceil, flows, ..ClassPolicy::default() };
                let quiet = ClassPolicy { level: 0, limit_pkts: 1_000, ..ClassPolicy::default() };
                let policy = Policy {
                    kind,
                    rank: abi::SL_RANK_PRIORITY,
                    slots: SLOTS,
                    link: Some(Rate::bps(2_500_000, 0)),
                    classes: vec![urgent, crowd, quiet],
                    ..Policy::default()
                };
                let of_crowd = |n: u32| {
                    let number = if n % 2 == 0 { 0 } else { 1 + n / 2 % different };
                    let flow = Flow { hash: number.wrapping_mul(0x9e37_79b9), src: (n % 7) as u16, ..Flow::default() };
                    Arrival { flow, ..Arrival::of(0, 1, 1_000) }
                };
                let short = |class| Arrival::of(0, class, 200);
                let quiet = (0..QUIET_PKTS).map(|_| short(2));
                let urgent = (0..URGENT_PKTS).map(|_| short(0));
                let arrivals = quiet.chain((0..SLOTS + 100).map(of_crowd)).chain(urgent);
                Case { phases: vec![Phase { arrivals: arrivals.collect(), ..Phase::default() }], ..Case::of(policy) }
            })
            .boxed()
    }
}

/// A burst of an urgent class that is within its limits finds room, however full another class has made the interface; and only that
/// class gives.
fn urgent_classes_find_room(core: &'static Core, case: &Case) -> TestCaseResult {
    run(core, case, |world, event| {
        match event {
            Event::Arrived(packet, answer) => {
                let held = world.queues[1].len();
                prop_assert!(
                    packet.class == 1 || answer.is_ok(),
                    "refused, while another class holds {held}: {packet:?}"
                );
            }
            Event::Dropped(packet, _) => prop_assert_eq!(packet.class, 1, "gives way: {:?}", packet),
            _ => {}
        }
        Ok(())
    })
}

/// As in any traffic, a long flow gives way, or the packet behind the head of a FIFO.
fn the_longest_of_many_gives_way(core: &'static Core, case: &Case) -> TestCaseResult {
    if case.policy.kind == abi::SL_PIFO {
        return Ok(()); // it gives what would leave last
    }
    the_longest_gives_way(core, case)
}
