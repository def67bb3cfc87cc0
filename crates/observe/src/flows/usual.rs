//! What flows usually send: a mean of each that forgets what is long ago.

use super::{Active, Name};
use std::collections::HashMap;

/// Time after which what was counts for a third, seconds.
const MEMORY_S: f64 = 30.0;

/// What is usual for flows.
#[derive(Debug, Default)]
pub(super) struct Usual {
    flows: HashMap<Name, Mean>,
}

/// The mean of a flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mean {
    /// Bits per second.
    pub bps: f64,
    /// How long it has been learnt, seconds.
    pub known_s: f64,
}

impl Usual {
    /// What is known of a flow.
    pub fn of(&self, name: &Name) -> Option<Mean> {
        self.flows.get(name).copied()
    }

    /// Takes what flows have just sent in so many seconds. Those that have left their table are forgotten.
    pub fn learn(&mut self, flows: &[Active<'_>], span_s: f64) {
        let weight = 1.0 - (-span_s / MEMORY_S).exp();
        let mut learnt = HashMap::with_capacity(flows.len());
        for one in flows {
            let name = (one.interface, one.flow.key);
            let mean = match self.flows.get(&name) {
                None => Mean { bps: one.bps, known_s: span_s },
                Some(old) => Mean { bps: old.bps + (one.bps - old.bps) * weight, known_s: old.known_s + span_s },
            };
            learnt.insert(name, mean);
        }
        self.flows = learnt;
    }
}
