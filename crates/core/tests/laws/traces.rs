//! Random traffic and random policies.

use crate::cases::{Arrival, Case, Change, ClassPolicy, Flow, Flows, Greedy, Phase, Policy, Rate};
use proptest::{collection::vec, option, prelude::*, sample::select};
use sluice_abi as abi;

/// Which classes always have packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Greed {
    Nobody,
    First,
    /// All but the first.
    Others,
    Some,
    All,
}

/// The traffic and the policies that a law is about. Features that are not asked for are not in them.
#[derive(Clone, Debug)]
pub struct Mix {
    kinds: Vec<u32>,
    ranks: Vec<u32>,
    ceilings: bool,
    peaks: bool,
    guarantees: bool,
    policing: bool,
    limits: bool,
    framing: bool,
    changes: bool,
    lateness: bool,
    steady: bool,
    worn: bool,
    absent: bool,
    lulls: bool,
    by_flow: bool,
    greed: Greed,
}

pub const KINDS: std::ops::Range<u32> = 0..abi::SL_KINDS;
pub const RANKS: std::ops::Range<u32> = 0..abi::SL_RANKS;

/// Traffic for these disciplines (`enum sl_kind`), with every rank function.
pub fn of(kinds: impl IntoIterator<Item = u32>) -> Mix {
    Mix {
        kinds: kinds.into_iter().collect(),
        ranks: RANKS.collect(),
        ceilings: false,
        peaks: false,
        guarantees: false,
        policing: false,
        limits: false,
        framing: false,
        changes: false,
        lateness: false,
        steady: false,
        worn: false,
        absent: false,
        lulls: false,
        by_flow: false,
        greed: Greed::Nobody,
    }
}

impl Mix {
    /// PIFO by these (`enum sl_rank`).
    pub fn ranks(mut self, ranks: impl IntoIterator<Item = u32>) -> Mix {
        self.ranks = ranks.into_iter().collect();
        self
    }

    pub fn ceilings(mut self) -> Mix {
        self.ceilings = true;
        self
    }

    /// Half of the classes with a ceiling have a peak.
    pub fn peaks(mut self) -> Mix {
        self.peaks = true;
        self
    }

    pub fn guarantees(mut self) -> Mix {
        self.guarantees = true;
        self
    }

    pub fn policing(mut self) -> Mix {
        self.policing = true;
        self
    }

    /// Few packets, bytes or slots.
    pub fn limits(mut self) -> Mix {
        self.limits = true;
        self
    }

    /// Overhead, least frame and cells of the link below.
    pub fn framing(mut self) -> Mix {
        self.framing = true;
        self
    }

    /// Other policies take force in between, and queues are cleared.
    pub fn changes(mut self) -> Mix {
        self.changes = true;
        self
    }

    /// Wake-ups that come late.
    pub fn lateness(mut self) -> Mix {
        self.lateness = true;
        self
    }

    /// A link of whole ns for a byte and no burst: the constant-rate server of the theorems.
    pub fn steady(mut self) -> Mix {
        self.steady = true;
        self
    }

    /// Schedulers that have sent so much that virtual time is about to wrap round.
    pub fn worn(mut self) -> Mix {
        self.worn = true;
        self
    }

    /// No other class has sent anything meanwhile, and in EEVDF no class is owed anything.
    pub fn absent(mut self) -> Mix {
        self.absent = true;
        self
    }

    /// Often, few classes that send in short bursts, and the link is idle in between.
    pub fn lulls(mut self) -> Mix {
        self.lulls = true;
        self
    }

    /// Classes that queue by flow: few heavy flows, many light ones.
    pub fn by_flow(mut self) -> Mix {
        self.by_flow = true;
        self
    }

    pub fn greedy(mut self, greed: Greed) -> Mix {
        self.greed = greed;
        self
    }

    pub fn cases(self) -> BoxedStrategy<Case> {
        let start = prop_oneof![Just(0u64), 0u64..1_000_000_000, Just(1_700_000_000_000_000_000)];
        let size =
            prop_oneof![3 => 2usize..6, 1 => 6usize..=20, 1 => Just(1usize), 1 => Just(abi::SL_CLASSES as usize)];
        let absent = self.absent;
        let soon = prop_oneof![1u32..3_000, 1u32..100_000, 1u32..1_000_000];
        let worn = if self.worn { option::weighted(0.3, soon).boxed() } else { Just(None).boxed() };
        // How many classes, how many phases at most, and how many arrivals in a phase at most.
        let size = match (self.lulls, self.greed) {
            (true, _) => prop_oneof![2 => (2usize..5, Just((16, 4))), 1 => (size, Just((6, 40)))].boxed(),
            (_, Greed::All) => (size, Just((2, 0))).boxed(),
            _ => (size, Just((6, 40))).boxed(),
        };
        (start, size, worn)
            .prop_flat_map(move |(start_ns, (size, (phases, arrivals)), wraps_after)| {
                let device = if self.steady { Just(None).boxed() } else { option::weighted(0.3, rate(0)).boxed() };
                (
                    (Just(start_ns), Just(wraps_after)),
                    device,
                    self.policy(size),
                    self.greed(size),
                    vec(self.phase(size, arrivals), 1..=phases),
                    vec(any::<bool>(), phases),
                )
            })
            .prop_map(move |((start_ns, wraps_after), device, mut policy, greedy, mut phases, keeps)| {
                keep_flows(&policy, phases.iter_mut().zip(keeps));
                if wraps_after.is_some() {
                    let class = &mut policy.classes[0];
                    *class = ClassPolicy { weight: 1, policed: false, ceil: None, peak: None, rate: None, ..*class };
                }
                // A class that always has packets is not refused any.
                greedy.iter().for_each(|greedy| policy.classes[greedy.class as usize].policed = false);
                // Something must take time, or nothing is ever queued.
                let limits = |phase: &Phase| match &phase.before {
                    Change::Configure(policy) => policy.link.is_some(),
                    _ => true,
                };
                let always = policy.link.is_some() && phases.iter().all(limits);
                let device = if always { device } else { device.or(Some(Rate::whole(80))) };
                Case { start_ns, device, policy, greedy, wraps_after, absent, phases }
            })
            .boxed()
    }

    fn policy(&self, size: usize) -> BoxedStrategy<Policy> {
        let link = if self.steady {
            whole_rate().prop_map(Some).boxed()
        } else {
            option::weighted(0.7, rate(10_000_000)).boxed()
        };
        let framing = if self.framing {
            prop_oneof![
                2 => Just((0i32, 0u32, abi::SL_CELLS_NONE)),
                1 => (-14i32..60, 0u32..128, 0u32..=abi::SL_CELLS_PTM)
            ]
            .boxed()
        } else {
            Just((0, 0, abi::SL_CELLS_NONE)).boxed()
        };
        let slots = if self.limits {
            let few = if self.by_flow { 150u32 } else { 40 };
            prop_oneof![4 => Just(abi::SL_SLOTS), 1 => 1u32..few].boxed()
        } else {
            Just(abi::SL_SLOTS).boxed()
        };
        let longest_burst = if self.greed == Greed::Nobody { u64::MAX } else { 100_000 };
        let link = link.prop_map(move |link| {
            // Short packets without end would fill a long burst one by one.
            link.map(|link| Rate { burst_ns: link.burst_ns.min(longest_burst), ..link })
        });
        let rank = select(self.ranks.clone()).prop_flat_map(|rank| (Just(rank), shift(rank)));
        (select(self.kinds.clone()), rank, slots, framing, link, vec(self.class(), size))
            .prop_map(|(kind, (rank, rank_shift), slots, (overhead_bytes, mpu_bytes, cells), link, classes)| Policy {
                kind,
                rank,
                rank_shift,
                slots,
                overhead_bytes,
                mpu_bytes,
                cells,
                link,
                classes,
            })
            .boxed()
    }

    fn class(&self) -> BoxedStrategy<ClassPolicy> {
        let some = |yes: bool, share: f64| {
            if yes { option::weighted(share, rate(5_000_000)).boxed() } else { Just(None).boxed() }
        };
        let limits = if self.limits {
            prop_oneof![
                4 => Just((10_000u32, u32::MAX)),
                1 => (0u32..20, Just(u32::MAX)),
                1 => (Just(10_000u32), 0u32..100_000),
                1 => (Just(10_000u32), (0u32..10).prop_map(|frames| 1514 * frames))
            ]
            .boxed()
        } else {
            Just((u32::MAX, u32::MAX)).boxed()
        };
        let policed = if self.policing { prop::bool::weighted(0.2).boxed() } else { Just(false).boxed() };
        let weight = prop_oneof![2 => Just(1u32), 4 => 1u32..20, 1 => 1u32..=65_535];
        let quantum = prop_oneof![Just(1_500u32), 200u32..20_000, 1u32..200];
        let budget = prop_oneof![0u64..1_000_000, 0u64..100_000_000];
        let flows = if self.by_flow { option::weighted(0.5, flows()).boxed() } else { Just(None).boxed() };
        let level = prop_oneof![3 => 0u32..2, 2 => 0u32..5, 1 => 0u32..abi::SL_CLASSES];
        let peak = if self.peaks { option::weighted(0.5, peak()).boxed() } else { Just(None).boxed() };
        let buckets = (some(self.ceilings, 0.4), peak, some(self.guarantees, 0.3));
        (level, weight, quantum, budget, limits, policed, buckets, flows)
            .prop_map(
                |(level, weight, quantum, budget_ns, (limit_pkts, limit_bytes), policed, (ceil, peak, rate), flows)| {
                    let peak = ceil
                        .zip(peak)
                        .map(|(ceil, (times, burst_ns))| Rate { cost: (ceil.cost / times).max(1), burst_ns });
                    ClassPolicy {
                        level,
                        weight,
                        quantum,
                        budget_ns,
                        limit_pkts,
                        limit_bytes,
                        policed,
                        ceil,
                        peak,
                        rate,
                        flows,
                    }
                },
            )
            .boxed()
    }

    fn greed(&self, size: usize) -> BoxedStrategy<Vec<Greedy>> {
        let some = |classes: Vec<u32>| {
            // Mixed packets, short ones only, or long ones only.
            select(vec![65_000u32, 9_000, 1_514]).prop_flat_map(move |most| {
                let mixed = vec(length().prop_map(move |len| len.min(most)), 1..4);
                let lengths = prop_oneof![3 => mixed, 2 => vec(40u32..200, 1..3), 2 => Just(vec![most])];
                let greedy = |&class| lengths.clone().prop_map(move |lengths| Greedy { class, lengths });
                classes.iter().map(greedy).collect::<Vec<_>>()
            })
        };
        match self.greed {
            Greed::Nobody => Just(Vec::new()).boxed(),
            Greed::First => some(vec![0]).boxed(),
            Greed::Some => vec(any::<bool>(), size)
                .prop_flat_map(move |chosen| some((0..size as u32).filter(|&class| chosen[class as usize]).collect()))
                .boxed(),
            Greed::Others => some((1..size as u32).collect()).boxed(),
            Greed::All => some((0..size as u32).collect()).boxed(),
        }
    }

    fn phase(&self, size: usize, most: usize) -> BoxedStrategy<Phase> {
        let before = if self.changes {
            prop_oneof![
                4 => Just(Change::No),
                1 => Just(Change::Clear),
                4 => self.policy(size).prop_map(|policy| Change::Configure(Box::new(policy)))
            ]
            .boxed()
        } else {
            Just(Change::No).boxed()
        };
        let late = if self.lateness { prop_oneof![Just(0u64), 0u64..2_000_000].boxed() } else { Just(0).boxed() };
        let pause = prop_oneof![Just(0u32), 0u32..30, Just(if self.greed == Greed::Nobody { 1_000 } else { 100 })];
        let by_flow = self.by_flow;
        // The load of a phase in percent of the pace: overload, about full, and draining.
        (before, select(vec![10u32, 60, 95, 150, 600]), pause, late)
            .prop_flat_map(move |(before, load, pause, late_ns)| {
                let flow = if by_flow { flow().boxed() } else { Just(Flow::default()).boxed() };
                let arrival = (0..200_000 / load, 0..size as u32, frame(), copies(), flow);
                (Just(before), vec(arrival, 0..=most), Just(pause), Just(late_ns))
            })
            .prop_map(|(before, arrivals, pause, late_ns)| {
                let arrivals = arrivals
                    .into_iter()
                    .map(|(gap, class, (len, segments), copies, flow)| Arrival {
                        gap,
                        class,
                        len,
                        segments,
                        copies,
                        flow,
                    })
                    .collect();
                Phase { before, arrivals, pause, late_ns }
            })
            .boxed()
    }
}

/// Some of the policies that come later have their flows as the first one has them.
fn keep_flows<'a>(first: &Policy, phases: impl Iterator<Item = (&'a mut Phase, bool)>) {
    for (phase, keep) in phases {
        let Change::Configure(policy) = &mut phase.before else { continue };
        let classes = policy.classes.iter_mut().zip(&first.classes);
        classes.filter(|_| keep).for_each(|(class, first)| class.flows = first.flows);
    }
}

/// Rates around those of a home and of a data centre, never below `least` bit/s.
fn rate(least: u64) -> impl Strategy<Value = Rate> + Clone {
    let bps = select(vec![100_000u64, 2_500_000, 20_000_000, 333_333_333, 1_000_000_000, 10_000_000_000]);
    let burst = prop_oneof![Just(0u64), 0u64..100_000, 0u64..20_000_000];
    (bps, burst).prop_map(move |(bps, burst_ns)| Rate::bps(bps.max(least), burst_ns))
}

/// How many times the ceiling a peak is, and its burst.
fn peak() -> impl Strategy<Value = (u64, u64)> + Clone {
    (prop_oneof![Just(1u64), 2u64..20], prop_oneof![Just(0u64), 0u64..10_000, 0u64..1_000_000])
}

fn whole_rate() -> impl Strategy<Value = Rate> {
    prop_oneof![1u64..10, 10u64..2000].prop_map(Rate::whole)
}

fn length() -> impl Strategy<Value = u32> + Clone {
    prop_oneof![
        4 => 40u32..=100,
        4 => 40u32..=1514,
        3 => Just(1514u32),
        3 => 40u32..=9000,
        1 => Just(65_000u32)
    ]
}

/// A packet and what it becomes on the wire.
fn frame() -> impl Strategy<Value = (u32, u32)> {
    (length(), any::<bool>()).prop_map(|(len, split)| (len, if split && len > 1514 { len.div_ceil(1514) } else { 1 }))
}

fn copies() -> impl Strategy<Value = u32> {
    prop_oneof![4 => Just(1u32), 2 => 1u32..6, 1 => 5u32..30]
}

/// Queues that are too few for the flows, or enough; allowances that are used up soon, or not.
fn flows() -> impl Strategy<Value = Flows> {
    let flows = select(vec![1u32, 2, 8, 64, abi::SL_CLASS_FLOWS]);
    let quantum = prop_oneof![Just(1_514u32), 300u32..3_000, 1u32..20_000];
    let allowance = prop_oneof![Just(0u32), 1_000u32..10_000, Just(30_000u32)];
    let target = prop_oneof![Just(0u64), 0u64..200_000, 0u64..10_000_000];
    let interval = prop_oneof![1_000u64..1_000_000, 1_000u64..100_000_000];
    (flows, 0u32..4, quantum, allowance, target, interval).prop_map(
        |(flows, hosts, quantum, allowance, target_ns, interval_ns)| Flows {
            flows,
            hosts,
            quantum,
            allowance,
            target_ns,
            interval_ns,
        },
    )
}

/// Few heavy flows, many light ones, some of them of hosts that have others.
fn flow() -> impl Strategy<Value = Flow> {
    let hash = prop_oneof![3 => 0u32..4, 1 => 0u32..200, 1 => any::<u32>()];
    (hash, 0u16..3, any::<bool>()).prop_map(|(hash, host, ecn)| {
        // Mostly, a flow has the same hosts.
        let (src, dst) = ((hash % 5) as u16, if hash < 4 { 0 } else { host });
        Flow { hash, src, dst, ecn }
    })
}

/// Resolutions that suit a rank function, so that its window mostly fits.
fn shift(rank: u32) -> BoxedStrategy<u32> {
    match rank {
        abi::SL_RANK_PRIORITY => Just(0).boxed(),
        abi::SL_RANK_SHORTEST_PACKET | abi::SL_RANK_LEAST_ATTAINED_SERVICE => prop_oneof![0u32..12, 4u32..12].boxed(),
        abi::SL_RANK_START_TIME_FAIR => (20u32..44).boxed(),
        _ => prop_oneof![10u32..24, 16u32..24].boxed(),
    }
}
