//! Baselines of flows: for each flow an exponentially weighted mean rate.

use super::{Active, Name};
use std::collections::HashMap;

/// Time after which an old rate counts for 1/e, seconds.
const DECAY_S: f64 = 30.0;

/// The baselines of all flows.
#[derive(Debug, Default)]
pub(super) struct Baseline {
    flows: HashMap<Name, Mean>,
}

/// The mean rate of a flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mean {
    /// Mean rate, bits per second.
    pub bps: f64,
    /// Time over which the mean was learnt, seconds.
    pub known_s: f64,
}

impl Baseline {
    /// The mean rate of a flow, if the flow is known.
    pub fn of(&self, name: &Name) -> Option<Mean> {
        self.flows.get(name).copied()
    }

    /// Updates the means with the rates of the last `span_s` seconds. Flows that have left their table are forgotten.
    pub fn learn(&mut self, flows: &[Active<'_>], span_s: f64) {
        let weight = 1.0 - (-span_s / DECAY_S).exp();
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
