//! CoDel, beside the pseudocode of RFC 8289.

use crate::{
    cases::{Case, Flows},
    laws, traces,
    world::{CLASSES, Event, Packet, run},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::Core;
use std::collections::VecDeque;

laws! {
    acts_as_its_pseudocode: OneQueue;
}

/// Classes of one queue, with CoDel: its target and its interval are of a few packets, and links are overloaded for longer.
struct OneQueue;

impl OneQueue {
    fn cases(self) -> BoxedStrategy<Case> {
        let kinds = 0..abi::SL_PIFO;
        let codel = (1u64..6, 3u64..60, any::<bool>());
        (traces::of(kinds).by_flow().ceilings().peaks().lateness().cases(), codel)
            .prop_map(|(mut case, (target, interval, marks))| {
                let pace = case.pace(&case.policy);
                let flows = Flows {
                    flows: 1,
                    hosts: 0,
                    quantum: 1_514,
                    allowance: 15_140,
                    target_ns: pace.time_ns(1_500 * target),
                    interval_ns: pace.time_ns(1_500 * interval),
                };
                case.policy.classes.iter_mut().for_each(|class| class.flows = Some(flows));
                for arrival in case.phases.iter_mut().flat_map(|phase| &mut phase.arrivals) {
                    arrival.flow.ecn &= marks;
                }
                case
            })
            .boxed()
    }
}

/// CoDel as RFC 8289 tells it, section 5; "codel_queue_t". Times are ns, and 1 / sqrt(count) is a fraction of 16 bits that
/// one step of Newton's method corrects for each drop.
#[derive(Clone, Default)]
struct Model {
    queue: VecDeque<Packet>,
    first_above: u64,
    drop_next: u64,
    count: u32,
    last_count: u32,
    root: u32,
    dropping: bool,
}

/// The packets that leave a queue at once.
#[derive(Debug, PartialEq)]
struct Leaves {
    dropped: Vec<u64>,
    sent: u64,
    marked: bool,
}

/// No more packets than this leave for one that is asked for.
const MOST: usize = 64;

/// x (3 - count x^2) / 2, for x = root / 2^16; the kernel's `codel_Newton_step`.
fn newton(root: u32, count: u32) -> u32 {
    let x = u64::from(root) << 16;
    let rest = (3 << 32) - u64::from(count) * ((x * x) >> 32);
    ((((rest >> 2) * x) >> 31) >> 16) as u32
}

impl Model {
    fn control_law(&self, interval: u64, time: u64) -> u64 {
        time + ((interval * u64::from(self.root)) >> 16)
    }

    /// Whether the head may be dropped.
    fn ok_to_drop(&mut self, flows: &Flows, now: u64) -> bool {
        let left: u64 = self.queue.iter().skip(1).map(|packet| u64::from(packet.len)).sum();
        if now - self.queue[0].arrived_ns < flows.target_ns || left <= 1_514 {
            self.first_above = 0;
            return false;
        }
        if self.first_above == 0 {
            self.first_above = now + flows.interval_ns;
            return false;
        }
        now > self.first_above
    }

    fn pop(&mut self) -> Packet {
        self.queue.pop_front().expect("a packet")
    }

    fn dequeue(&mut self, flows: &Flows, now: u64) -> Leaves {
        let (mut dropped, mut marked) = (Vec::new(), false);
        let mut ok = self.ok_to_drop(flows, now);
        if self.dropping {
            if !ok {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next && dropped.len() < MOST {
                self.count += 1;
                self.root = newton(self.root, self.count);
                if self.queue[0].flow.ecn {
                    marked = true;
                    self.drop_next = self.control_law(flows.interval_ns, self.drop_next);
                    break;
                }
                dropped.push(self.pop().number);
                if dropped.len() == MOST {
                    break;
                }
                ok = self.ok_to_drop(flows, now);
                if ok {
                    self.drop_next = self.control_law(flows.interval_ns, self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok {
            let delta = self.count.wrapping_sub(self.last_count);
            if delta > 1 && now - self.drop_next < 16 * flows.interval_ns {
                self.count = delta;
                self.root = newton(self.root, self.count);
            } else {
                (self.count, self.root) = (1, 0xffff);
            }
            (self.dropping, self.last_count) = (true, self.count);
            self.drop_next = self.control_law(flows.interval_ns, now);
            marked = self.queue[0].flow.ecn;
            if !marked {
                dropped.push(self.pop().number);
                // The next time says whether dropping goes on.
                self.ok_to_drop(flows, now);
            }
        }
        let sent = self.pop().number;
        if self.queue.is_empty() {
            // The dequeue that finds no packet.
            (self.first_above, self.dropping) = (0, false);
        }
        Leaves { dropped, sent, marked }
    }
}

/// The same packets are dropped or marked, in the same order, at the same times; a packet that can be marked is not
/// dropped.
fn acts_as_its_pseudocode(core: &'static Core, case: &Case) -> TestCaseResult {
    let mut models = vec![Model::default(); CLASSES];
    let mut dropped = Vec::new();
    run(core, case, |world, event| {
        match event {
            Event::Arrived(packet, Ok(())) => models[packet.class].queue.push_back(*packet),
            Event::Dropped(packet, reason) => {
                prop_assert_eq!(*reason, abi::SL_DROP_AQM, "reason of {:?}", packet);
                prop_assert!(!packet.flow.ecn, "it could be marked: {:?}", packet);
                dropped.push(packet.number);
            }
            Event::Sent(packet) => {
                let flows = world.policy.classes[packet.class].flows.expect("by flow");
                let should = models[packet.class].dequeue(&flows, world.now);
                let does = Leaves { dropped: std::mem::take(&mut dropped), sent: packet.number, marked: packet.marked };
                prop_assert_eq!(does, should, "of class {}", packet.class);
            }
            _ => {}
        }
        Ok(())
    })
}

/// One step for each count is enough: from 3 on it is within 3 % of 1 / sqrt(count).
#[test]
fn one_step_for_each_drop_follows_the_square_root() {
    let mut root = 0xffff;
    for count in 2..=1_000 {
        root = newton(root, count);
        let off = f64::from(root) / 65_536.0 * f64::from(count).sqrt() - 1.0;
        let most = if count == 2 { 0.3 } else { 0.03 };
        assert!(off.abs() < most, "1 / sqrt({count}) is off by {off}");
    }
}
