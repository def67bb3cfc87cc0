//! CoDel of a queue drops as RFC 8289 says.

use crate::{laws, traces, traces::Case, traces::OVERHEAD, world::World};
use proptest::{prelude::*, test_runner::TestCaseResult};
use sluice_abi as abi;
use sluice_core::pipes::{ALL_CLASSES, Codel, Packet, PipesCore, Profile, queue_number};
use std::collections::VecDeque;

laws! {
    drops_as_the_rfc_says: traces::of(0);
    queues_without_codel_do_not_drop: traces::of(0);
}

/// A unit of time, ns.
const UNIT_NS: u64 = 1 << abi::SL_PIPE_STAMP_SHIFT;
const TARGET: u64 = 80;
const INTERVAL: u64 = 1600;
const FRAME: u64 = 1514;

/// CoDel as in RFC 8289, with square roots, in units of time.
#[derive(Default)]
struct Model {
    above: Option<u64>,
    dropping: bool,
    next: f64,
    count: u32,
    count_before: u32,
}

impl Model {
    /// Whether a packet that leaves now is dropped.
    fn drops(&mut self, waited: u64, left_bytes: u64, now: u64) -> bool {
        if waited < TARGET || left_bytes <= FRAME {
            self.above = None;
            self.dropping = false;
            return false;
        }
        let above = *self.above.get_or_insert(now + INTERVAL);
        let control = |from: f64, count: u32| from + (INTERVAL as f64 / f64::from(count).sqrt()).floor();
        if now <= above {
            self.dropping = false;
            return false;
        }
        if !self.dropping {
            let delta = self.count - self.count_before;
            let lately = (now as f64 - self.next).max(0.0) < 16.0 * INTERVAL as f64;
            self.count = if delta > 1 && lately { delta } else { 1 };
            (self.dropping, self.count_before) = (true, self.count);
            self.next = control(now as f64, self.count);
            return true;
        }
        if (now as f64) < self.next {
            return false;
        }
        self.count += 1;
        self.next = control(self.next, self.count);
        true
    }
}

/// A queue with CoDel, to which packets come faster and slower than they leave, and what the model says of each packet. The drops of both.
fn drops(core: &'static PipesCore, case: &Case, classes: u32) -> Result<(u64, u64), TestCaseError> {
    let mut case = case.clone();
    let mut profile = Profile::of(100_000);
    profile.codel = Some(Codel { classes, target_ns: TARGET * UNIT_NS, interval_ns: INTERVAL * UNIT_NS });
    case.profiles[0] = profile;
    case.pipes[1].1 = 1;
    (case.pipes[1].0, case.slots) = (None, 100_000);
    let mut world = World::new(core, &case);
    let queue = queue_number(traces::PIPES[1], 4);
    let mut model = Model::default();
    let (mut arrived, mut dropped, mut model_dropped) = (VecDeque::new(), 0, 0);
    let mut random = case.seed;
    let mut out = [Packet { queue: 0, slot: 0, len_bytes: 0 }];
    for step in 0..12_000_u64 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        world.now_ns += UNIT_NS * u64::from(5 + (random >> 8) % 11);
        let now = world.now_ns / UNIT_NS;
        // A second packet now and then, so that the queue grows; and none for a while, so that it shrinks.
        let come = match step / 1500 % 4 {
            0 | 2 => 1 + (random >> 20) % 3 / 2,
            1 => 1,
            _ => (random >> 20) % 2,
        };
        for _ in 0..come {
            let mut packet = [Packet { queue, slot: 0, len_bytes: 1000 - OVERHEAD }];
            prop_assert_eq!(world.pipes.enqueue(&mut packet, world.now_ns), 0);
            arrived.push_back((packet[0].slot, now));
        }
        let got = world.pipes.dequeue(&mut out, ALL_CLASSES, None, world.now_ns);
        let mut gone = Vec::new();
        while let Some(slot) = world.pipes.reap() {
            gone.push(slot);
        }
        gone.reverse();
        dropped += gone.len() as u64;
        gone.extend(out[..got].iter().map(|packet| packet.slot));
        let count = gone.len();
        for (place, slot) in gone.into_iter().enumerate() {
            let (first, since) = arrived.pop_front().expect("it has come");
            prop_assert_eq!(first, slot, "order");
            let drops = model.drops(now - since, arrived.len() as u64 * u64::from(1000 - OVERHEAD), now);
            model_dropped += u64::from(drops);
            prop_assert!(place + 1 < count || got == 0 || arrived.len() < 3 || now - since < 1 << 17);
        }
    }
    Ok((dropped, model_dropped))
}

/// A queue with CoDel drops as many packets as the model would of what leaves it, but for a tenth, since roots have 16 bits, and two.
fn drops_as_the_rfc_says(core: &'static PipesCore, case: &Case) -> TestCaseResult {
    let (dropped, model) = drops(core, case, 1 << 4)?;
    prop_assert!(model > 5, "only {} are to be dropped", model);
    prop_assert!(dropped.abs_diff(model) <= model / 10 + 2, "{} packets are dropped, and not {}", dropped, model);
    Ok(())
}

/// A queue drops nothing if other classes have CoDel.
fn queues_without_codel_do_not_drop(core: &'static PipesCore, case: &Case) -> TestCaseResult {
    let (dropped, _) = drops(core, case, ALL_CLASSES & !(1 << 4))?;
    prop_assert_eq!(dropped, 0);
    Ok(())
}
