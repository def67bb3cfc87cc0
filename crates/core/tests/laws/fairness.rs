//! Bounds on the service of classes while others are ready too.

use crate::world::{CLASSES, Event, Packet, World, members};
use proptest::{prelude::*, test_runner::TestCaseResult};
use std::collections::HashMap;

/// Compares what any two classes are served, over every interval in which both are ready.
///
/// D is what one is served less what the other is served, in a unit common to both. It must not range over more than the
/// bound while both stay ready: that is the bound for every interval within that time.
pub struct Pairs {
    asked: u64,
    served: [i128; CLASSES],
    seen: HashMap<(usize, usize), Seen>,
}

#[derive(Clone, Copy)]
struct Seen {
    stints: (u64, u64),
    least: i128,
    most: i128,
}

/// How two classes compare.
pub struct Terms {
    /// The worth of a byte of each.
    pub worth: (u64, u64),
    pub bound: i128,
}

impl Pairs {
    pub fn new() -> Pairs {
        Pairs { asked: 0, served: [0; CLASSES], seen: HashMap::new() }
    }

    pub fn observe(
        &mut self,
        world: &World,
        event: &Event,
        terms: impl Fn(usize, usize) -> Option<Terms>,
    ) -> TestCaseResult {
        match event {
            Event::Asking => self.asked = world.ready,
            Event::Sent(packet) => {
                for other in members(self.asked & !(1 << packet.class)) {
                    let (a, b) = (packet.class.min(other), packet.class.max(other));
                    if let Some(terms) = terms(a, b) {
                        self.compare(world, packet, a, b, &terms)?;
                    }
                }
                self.served[packet.class] += i128::from(packet.len);
            }
            _ => {}
        }
        Ok(())
    }

    fn compare(&mut self, world: &World, packet: &Packet, a: usize, b: usize, terms: &Terms) -> TestCaseResult {
        let worth = (i128::from(terms.worth.0), i128::from(terms.worth.1));
        let before = self.served[a] * worth.0 - self.served[b] * worth.1;
        let after = before + i128::from(packet.len) * if packet.class == a { worth.0 } else { -worth.1 };
        let stints = (world.stints[a], world.stints[b]);
        let fresh = Seen { stints, least: before, most: before };
        let seen = self.seen.entry((a, b)).or_insert(fresh);
        if seen.stints != stints {
            *seen = fresh;
        }
        seen.least = seen.least.min(after);
        seen.most = seen.most.max(after);
        let range = seen.most - seen.least;
        prop_assert!(range <= terms.bound, "classes {a} and {b} differ by {range}, not {} at most", terms.bound);
        Ok(())
    }
}

/// The bytes that the others send while a class that is ready waits for its next turn.
pub struct Waiting {
    asked: u64,
    stints: [u64; CLASSES],
    others: Vec<[u64; CLASSES]>,
}

impl Waiting {
    pub fn new() -> Waiting {
        Waiting { asked: 0, stints: [0; CLASSES], others: vec![[0; CLASSES]; CLASSES] }
    }

    /// `bound(waiting, other, sent)` has what each class has sent meanwhile, bytes: what of it counts, and its bound.
    pub fn observe(
        &mut self,
        world: &World,
        event: &Event,
        bound: impl Fn(usize, usize, &[u64; CLASSES]) -> (u64, u64),
    ) -> TestCaseResult {
        match event {
            Event::Asking => {
                self.asked = world.ready;
                for class in world.ready() {
                    if self.stints[class] != world.stints[class] {
                        self.stints[class] = world.stints[class];
                        self.others[class] = [0; CLASSES];
                    }
                }
            }
            Event::Sent(packet) => {
                let other = packet.class;
                self.others[other] = [0; CLASSES];
                for class in members(self.asked & !(1 << other)) {
                    let meanwhile = &mut self.others[class];
                    meanwhile[other] += u64::from(packet.len);
                    let (sent, most) = bound(class, other, meanwhile);
                    prop_assert!(
                        sent <= most,
                        "class {class} waits for {sent} bytes, not {most} at most ({other} sends)"
                    );
                }
            }
            _ => {}
        }
        Ok(())
    }
}
