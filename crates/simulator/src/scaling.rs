//! A model of how many packets so many processors send through one interface, from measured costs. It is a sum of times, and nothing is fitted.
//!
//! A processor spends some time of its own on each packet. A lock, or a word that all of them change, belongs to one processor at a time, and the time
//! of that bounds the packets of all together. Below that bound, a processor waits for each line of memory that another one has changed.

/// Times that packets cost, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// The work of a processor for a packet that others can do at the same time.
    pub apart_ns: f64,
    /// The work of a processor for a packet under a lock that all have to take. 0: there is none.
    pub locked_ns: f64,
    /// A line of memory comes from another processor, which has changed it.
    pub line_ns: f64,
}

/// How processors share a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Design {
    /// Each goes to shared words so often, for a packet, and changes so many lines each time.
    Shared {
        /// Visits to shared words, for a packet.
        visits: f64,
        /// Lines that a visit reads or changes, and that another processor has changed since.
        lines: f64,
    },
    /// One lock for all, whose line and whose queue's lines come from the processor that had it last.
    Locked {
        /// Those lines.
        lines: f64,
    },
    /// Each has a part of the rate for itself, and looks at all others once in a period.
    Parts {
        /// The period, ns.
        period_ns: f64,
    },
}

/// Packets that so many processors send in a second, all of them busy.
pub fn packets_per_second(design: Design, costs: Costs, processors: u32) -> f64 {
    let all = f64::from(processors.max(1));
    // A line comes from another processor unless the same one had it last: each is as likely.
    let moved_ns = costs.line_ns * (1.0 - 1.0 / all);
    let own_ns = costs.apart_ns + costs.locked_ns;
    let (packet_ns, serial_ns) = match design {
        Design::Shared { visits, lines } => {
            let moving_ns = visits * lines * moved_ns;
            // Each line goes round on its own.
            (own_ns + moving_ns, visits * moved_ns)
        }
        Design::Locked { lines } => (own_ns + lines * moved_ns, costs.locked_ns + lines * moved_ns),
        Design::Parts { period_ns } => (own_ns / (1.0 - (all * moved_ns / period_ns).min(1.0)), 0.0),
    };
    let together = all / packet_ns;
    1e9 * if serial_ns > 0.0 && processors > 1 { together.min(1.0 / serial_ns) } else { together }
}

#[cfg(test)]
mod tests {
    use super::{Costs, Design, packets_per_second};

    const COSTS: Costs = Costs { apart_ns: 600.0, locked_ns: 400.0, line_ns: 50.0 };

    fn at(design: Design, processors: u32) -> f64 {
        packets_per_second(design, COSTS, processors)
    }

    #[test]
    fn one_processor_moves_no_lines() {
        let designs = [
            Design::Shared { visits: 0.1, lines: 3.0 },
            Design::Locked { lines: 4.0 },
            Design::Parts { period_ns: 2e5 },
        ];
        for design in designs {
            assert_eq!(at(design, 1), 1e6, "{design:?}");
        }
    }

    #[test]
    fn a_lock_ends_it() {
        let locked = Design::Locked { lines: 4.0 };
        // 1,000 ns of its own, and 100 for lines; then 400 under the lock and nearly 200 for lines, one after the other.
        assert!((at(locked, 2) - 2e9 / 1100.0).abs() < 1.0, "{}", at(locked, 2));
        assert!((at(locked, 64) - 1e9 / (400.0 + 200.0 * 63.0 / 64.0)).abs() < 1.0, "{}", at(locked, 64));
        assert!(at(locked, 64) < at(locked, 4), "more processors move more lines");
    }

    #[test]
    fn shared_words_cost_by_the_visit() {
        let rare = Design::Shared { visits: 0.01, lines: 3.0 };
        assert!(at(rare, 64) > 63.0 * 1e6, "{}", at(rare, 64));
        // At a visit for each packet, a line is had 20 million times a second at most.
        let always = Design::Shared { visits: 1.0, lines: 3.0 };
        assert!((at(always, 64) - 1e9 / (50.0 * 63.0 / 64.0)).abs() < 1.0, "{}", at(always, 64));
    }

    #[test]
    fn parts_look_at_each_other() {
        let parts = Design::Parts { period_ns: 200_000.0 };
        let expected = 64.0 * 1e6 * (1.0 - 63.0 * 50.0 / 200_000.0);
        assert!((at(parts, 64) - expected).abs() < 1.0, "{} instead of {expected}", at(parts, 64));
    }
}
