//! Queues of a class, as a FIFO or by flow, and their active queue management.

use crate::bytes::{Bytes, FRAME_BYTES};
use crate::rate::Rate;
use std::ops::RangeInclusive;

/// The queue of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Queue {
    /// A FIFO.
    #[default]
    Fifo,
    /// A queue for each flow; the flows share the rate of the class.
    Flows(Flows),
}

impl Queue {
    /// The value of `queue` in policy files.
    pub fn name(self) -> &'static str {
        match self {
            Queue::Fifo => "fifo",
            Queue::Flows(_) => "flows",
        }
    }

    /// The parameters of flow queues.
    pub fn flows(self) -> Option<Flows> {
        match self {
            Queue::Fifo => None,
            Queue::Flows(flows) => Some(flows),
        }
    }

    /// The CoDel of a class whose policy does not say otherwise.
    pub(crate) fn default_codel(self) -> Option<Codel> {
        self.flows().map(|_| Codel::default())
    }
}

/// The parameters of flow queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flows {
    /// The hosts between which the class is fair before it is fair between flows.
    pub hosts: Hosts,
    /// The quantum of a bulk flow, bytes, within [`Flows::QUANTA_BYTES`].
    pub quantum_bytes: u32,
    /// The bytes that a flow may send ahead of others' turns before it counts as bulk: at least the quantum, at most
    /// [`Flows::MAX_ALLOWANCE`].
    pub allowance: Bytes,
}

impl Flows {
    /// The quanta that a policy may name.
    pub const QUANTA_BYTES: RangeInclusive<u32> = 64..=65_536;
    /// The largest allowance that a policy may name.
    pub const MAX_ALLOWANCE: Bytes = Bytes(16 << 20);
    /// The allowance of a policy that names none: 32 frames, more than most connections bring at once.
    const ALLOWANCE: Bytes = Bytes(32 * FRAME_BYTES as u64);

    /// The default allowance for this quantum.
    pub(crate) fn default_allowance(quantum_bytes: u32) -> Bytes {
        Flows::ALLOWANCE.max(Bytes(quantum_bytes.into()))
    }
}

impl Default for Flows {
    fn default() -> Flows {
        let quantum_bytes = FRAME_BYTES;
        Flows { hosts: Hosts::default(), quantum_bytes, allowance: Flows::default_allowance(quantum_bytes) }
    }
}

/// The hosts between which a class is fair before it is fair between flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Hosts {
    /// Sending and receiving hosts.
    #[default]
    Both,
    /// Sending hosts.
    Source,
    /// Receiving hosts.
    Destination,
    /// No hosts: fairness is only between flows.
    None,
}

impl Hosts {
    /// Every choice with its name in policy files.
    pub const NAMES: &[(&str, Hosts)] =
        &[("both", Hosts::Both), ("source", Hosts::Source), ("destination", Hosts::Destination), ("none", Hosts::None)];

    /// The name in policy files.
    pub fn name(self) -> &'static str {
        Hosts::NAMES.iter().find(|(_, hosts)| *hosts == self).map_or("", |(name, _)| name)
    }
}

/// CoDel (RFC 8289) in each queue of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Codel {
    /// The wait up to which CoDel does not act, ns.
    pub target_ns: u64,
    /// The time for which waits must exceed the target before a packet is dropped, ns; at least the target.
    pub interval_ns: u64,
}

impl Codel {
    /// The targets that a policy may name, ns.
    pub const TARGETS_NS: RangeInclusive<u64> = 100_000..=1_000_000_000;
    /// The intervals that a policy may name, ns.
    pub const INTERVALS_NS: RangeInclusive<u64> = 1_000_000..=10_000_000_000;
    /// The interval of a policy that names none.
    const INTERVAL_NS: u64 = 100_000_000;

    /// The default interval for this target.
    pub(crate) fn default_interval_ns(target_ns: u64) -> u64 {
        Codel::INTERVAL_NS.max(target_ns)
    }

    /// The parameters for a link of this rate. If one frame and a half take longer than the target, that time is the target, in
    /// whole microseconds: otherwise a queue of one frame would cause drops. The interval grows with it, to at least twice the
    /// target. CAKE does the same.
    #[must_use]
    pub fn at_rate(self, rate: Option<Rate>) -> Codel {
        let Some(rate) = rate else { return self };
        let bits = u64::from(FRAME_BYTES) * 8;
        let least_ns = (bits * 3_000_000 / 2).div_ceil(rate.0.max(1)) * 1_000;
        if least_ns <= self.target_ns {
            return self;
        }
        let interval_ns = (self.interval_ns + least_ns - self.target_ns).max(2 * least_ns);
        Codel { target_ns: least_ns, interval_ns }
    }
}

impl Default for Codel {
    fn default() -> Codel {
        Codel { target_ns: 5_000_000, interval_ns: Codel::INTERVAL_NS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_stay_consistent() {
        assert_eq!(Flows::default().allowance, Bytes(48_448));
        assert_eq!(Flows::default_allowance(60_000), Bytes(60_000), "at least the quantum");
        assert_eq!(Codel::default_interval_ns(5_000_000), 100_000_000);
        assert_eq!(Codel::default_interval_ns(200_000_000), 200_000_000, "at least the target");
        assert!(Hosts::NAMES.iter().all(|(name, hosts)| hosts.name() == *name));
    }

    #[test]
    fn target_is_at_least_one_frame_and_a_half() {
        let at = |bits| Codel::default().at_rate(Some(Rate(bits)));
        assert_eq!(at(20_000_000), Codel::default());
        assert_eq!(at(3_633_600), Codel::default(), "exactly 5 ms");
        assert_eq!(at(3_000_000), Codel { target_ns: 6_056_000, interval_ns: 101_056_000 });
        assert_eq!(at(128_000), Codel { target_ns: 141_938_000, interval_ns: 283_876_000 });
        assert_eq!(at(128_000).at_rate(Some(Rate(128_000))), at(128_000), "once is enough");
        assert_eq!(Codel::default().at_rate(None), Codel::default());
        assert!(at(Rate::MIN.0).interval_ns < 1 << 43, "{:?}", at(Rate::MIN.0));
    }
}
