//! Rates: the differences between two samples, per second.

mod tree;
mod tx_queues;

pub use tree::{
    LeafClassRates, LeafRates, QueueRates, Selection, SiteRates, SubscriberOrder, SubscriberRates, SubscriberView,
    TreeRates, is_at_ceiling,
};
pub use tx_queues::TxQueueRates;

use crate::sample::{Event, Sample};
use serde::Serialize;
use sluice_kernel::reader::News;
use sluice_kernel::status::{
    ClassState, ClassStatus, Count, DirectionStatus, Dropped, FlowQueues, ForwardStatus, Framing, PolicyStatus,
    RuleStatus, SchedulerState, Sojourn, Status, UnconfirmedStatus,
};
use sluice_kernel::{Engine, Hook};
use std::collections::BTreeMap;

/// The rates of all interfaces between two samples.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Rates {
    /// Time of the later sample, milliseconds since 1970.
    pub at_ms: u64,
    /// Time between the samples, seconds.
    pub span_s: f64,
    /// Interfaces that are up in the later sample.
    pub interfaces: Vec<InterfaceRates>,
    /// Events of interfaces between the samples.
    pub events: Vec<Event>,
}

/// The rates of an interface.
#[derive(Debug, Clone, Serialize)]
pub struct InterfaceRates {
    /// Name of the interface.
    pub interface: String,
    /// Number of the interface.
    pub ifindex: u32,
    /// Engine that queues.
    pub engine: Engine,
    /// Hook that classifies on arrival.
    pub classifier: Hook,
    /// Whether the queues, devices and hooks are still in place.
    pub in_place: bool,
    /// The policy in force.
    pub policy: PolicyStatus,
    /// Time left and former policy, if the policy in force must be confirmed.
    pub unconfirmed: Option<UnconfirmedStatus>,
    /// Departures, then arrivals.
    pub directions: Vec<DirectionRates>,
    /// Rules in the order in which they are asked.
    pub rules: Vec<RuleRates>,
    /// Rate of packets that matched no rule, packets per second.
    pub unmatched_pps: f64,
    /// Forwards by name.
    pub forwards: Vec<ForwardRates>,
    /// The tree of a policy with subscribers, in the direction of departures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeRates>,
}

/// The rates of one direction.
#[derive(Debug, Clone, Default, Serialize)]
pub struct DirectionRates {
    /// Name of the direction: egress or ingress.
    pub direction: &'static str,
    /// Whether packets are queued; else only counted.
    pub queued: bool,
    /// Rate that the direction is shaped to, bits per second on the link.
    pub rate_bps: Option<u64>,
    /// Used part of that rate, by the bytes of packets on the link: 1 is all. Bursts may be a little above.
    #[serde(rename = "use")]
    pub used: Option<f64>,
    /// Fill level of the link's token bucket now, 0 to 1.
    pub link_fill: Option<f64>,
    /// Rate limit of the interface before the queues, bits per second.
    pub limit_bps: Option<u64>,
    /// Fill level of that limit's token bucket now, 0 to 1.
    pub limit_fill: Option<f64>,
    /// Sending rate, bits per second.
    pub sent_bps: f64,
    /// Sending rate, packets per second.
    pub sent_pps: f64,
    /// Drop rate, packets per second.
    pub dropped_pps: f64,
    /// Rate of packets that left marked, packets per second.
    pub marked_pps: f64,
    /// Packets and bytes now in the queues.
    pub backlog: Count,
    /// Classes by id.
    pub classes: Vec<ClassRates>,
    /// The discipline's own state now.
    pub scheduler: Option<SchedulerState>,
    /// The tx queues by number, where each has a scheduler.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tx_queues: Vec<TxQueueRates>,
}

/// The rates of a class.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ClassRates {
    /// Number of the class.
    pub id: u8,
    /// Name of the class.
    pub name: String,
    /// Sending rate, bits per second.
    pub sent_bps: f64,
    /// Sending rate, packets per second.
    pub sent_pps: f64,
    /// Drop rate, packets per second.
    pub dropped_pps: f64,
    /// Drop rate by reason, packets per second; reasons that dropped nothing are left out.
    pub drops_pps: BTreeMap<&'static str, f64>,
    /// Rate of packets that left marked, packets per second.
    pub marked_pps: f64,
    /// Times in the queue of packets that left. None: no packet left, or the engine does not measure them.
    pub sojourn: Option<SojournRates>,
    /// Packets and bytes now in the queue.
    pub backlog: Count,
    /// Kind of the class's qdisc, with engine `tc`.
    pub queue: Option<String>,
    /// The most packets that the class may queue.
    pub limit_pkts: Option<u32>,
    /// The most bytes that the class may queue.
    pub limit_bytes: Option<u64>,
    /// Fill level of the queue, 0 to 1, by packets or bytes, whichever is nearer to its limit.
    pub backlog_fill: Option<f64>,
    /// Share of the bytes that left its direction, 0 to 1. None: nothing left.
    pub share: Option<f64>,
    /// Share that the class has while every class wants more, 0 to 1. None: the discipline promises none.
    pub promised_share: Option<f64>,
    /// Weight in the policy.
    pub weight: Option<u32>,
    /// Urgency in the policy, 0 is the most urgent.
    pub priority: Option<u8>,
    /// Bytes of a turn or a request.
    pub quantum_bytes: Option<u32>,
    /// Ceiling of the class, bits per second.
    pub ceil_bps: Option<u64>,
    /// Guarantee of the class, bits per second.
    pub rate_bps: Option<u64>,
    /// Fill level of the ceiling's token bucket now, 0 to 1.
    pub ceil_fill: Option<f64>,
    /// Peak of the class, bits per second: the rate at which the ceiling's burst passes.
    pub peak_bps: Option<u64>,
    /// Fill level of the peak's token bucket now, 0 to 1.
    pub peak_fill: Option<f64>,
    /// Fill level of the guarantee's token bucket now, 0 to 1.
    pub rate_fill: Option<f64>,
    /// Ceiling of each flow of the class, bits per second.
    pub flow_ceil_bps: Option<u64>,
    /// Ceiling that the class shares with others, bits per second.
    pub shared_ceil_bps: Option<u64>,
    /// Fill level of the shared ceiling's token bucket now, 0 to 1.
    pub shared_ceil_fill: Option<f64>,
    /// Fill level of the emptiest of these buckets. None: the class has none, or they are not known.
    pub bucket_fill: Option<f64>,
    /// CoDel's target: the wait up to which it does not act, microseconds.
    pub target_us: Option<f64>,
    /// Number of flow queues in each state now.
    pub flow_queues: Option<FlowQueues>,
    /// State that the discipline keeps of the class now.
    pub state: Option<ClassState>,
    /// Packets and bytes that left since the interface was set up.
    pub sent: Count,
    /// Packets and bytes that were dropped since then.
    pub dropped: Dropped,
}

/// Times in the queue of packets that left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct SojournRates {
    /// Number of these packets.
    pub pkts: u64,
    /// Median, microseconds, to 12.5 %.
    pub p50_us: f64,
    /// 95th percentile, microseconds, to 12.5 %.
    pub p95_us: f64,
    /// 99th percentile, microseconds, to 12.5 %.
    pub p99_us: f64,
    /// Upper bound of all times, microseconds.
    pub max_us: f64,
}

/// A rule and the rate of its matches.
#[derive(Debug, Clone, Serialize)]
pub struct RuleRates {
    /// Name of the rule, if it has one.
    pub name: String,
    /// Priority of the rule; built-in rules have none.
    pub priority: Option<u32>,
    /// Line of the rule in the policy file.
    pub line: Option<u16>,
    /// Conditions of the rule; empty for built-in rules.
    pub matches: String,
    /// Class of the rule.
    pub class: u8,
    /// Rate of matches, packets per second.
    pub matched_pps: f64,
    /// Packets and bytes that the rule has matched since it was added.
    pub matched: Count,
}

/// A forward and its rates.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ForwardRates {
    /// Name of the forward.
    pub name: String,
    /// Protocol: tcp, udp or both.
    pub protocol: String,
    /// Address and ports that it listens on; `any` for every address of the interface.
    pub listen: String,
    /// Where connections go.
    pub targets: Vec<String>,
    /// Connections that are open now.
    pub open: u64,
    /// Rate of new connections, per second.
    pub opened_per_s: f64,
    /// Rate of packets that were not passed on, packets per second.
    pub refused_pps: f64,
    /// The same by reason; reasons that refused nothing are left out.
    pub refusals_pps: BTreeMap<&'static str, f64>,
    /// Rate from clients, bits per second.
    pub from_clients_bps: f64,
    /// Rate from clients, packets per second.
    pub from_clients_pps: f64,
    /// Rate from targets, bits per second.
    pub from_targets_bps: f64,
    /// Rate from targets, packets per second.
    pub from_targets_pps: f64,
    /// Connections that were ever opened.
    pub opened: u64,
    /// Packets and bytes from clients since the forward came.
    pub from_clients: Count,
    /// Packets and bytes from targets since then.
    pub from_targets: Count,
}

impl Rates {
    /// The rates from one sample to a later one. A counter that went backwards has begun anew: then its present count is the difference.
    /// The rates of an interface that came in between are 0, since nothing is known of it yet.
    pub fn between(then: &Sample, now: &Sample) -> Rates {
        let span_s = now.at_ns.saturating_sub(then.at_ns) as f64 / 1e9;
        let interface = |status: &Status| {
            let begun = |event: &Event| event.interface == status.interface && event.what == News::SetUpAnew;
            // An interface that has another name now is the same.
            let same = then.interfaces.iter().find(|before| before.ifindex == status.ifindex);
            let namesake = then.interfaces.iter().any(|before| before.interface == status.interface);
            let earlier = match same {
                _ if now.events.iter().any(begun) => Earlier::Zero,
                Some(before) => Earlier::Then(before),
                None if namesake => Earlier::Zero,
                None => Earlier::Now,
            };
            interface_rates(status, earlier, span_s)
        };
        Rates {
            at_ms: now.at_ms,
            span_s,
            interfaces: now.interfaces.iter().map(interface).collect(),
            events: now.events.clone(),
        }
    }

    /// The rates of an interface.
    pub fn interface(&self, name: &str) -> Option<&InterfaceRates> {
        self.interfaces.iter().find(|one| one.interface == name)
    }
}

/// The earlier value of a difference.
#[derive(Clone, Copy)]
enum Earlier<T> {
    /// An earlier value.
    Then(T),
    /// Counting began at zero in between.
    Zero,
    /// Nothing is known of the earlier value: no difference.
    Now,
}

impl<T> Earlier<T> {
    fn of<U>(self, part: impl FnOnce(T) -> Option<U>) -> Earlier<U> {
        match self {
            Earlier::Then(then) => part(then).map_or(Earlier::Now, Earlier::Then),
            Earlier::Zero => Earlier::Zero,
            Earlier::Now => Earlier::Now,
        }
    }
}

impl Earlier<u64> {
    fn until(self, now: u64) -> u64 {
        match self {
            Earlier::Then(then) => now.checked_sub(then).unwrap_or(now),
            Earlier::Zero => now,
            Earlier::Now => 0,
        }
    }
}

fn interface_rates(now: &Status, earlier: Earlier<&Status>, span_s: f64) -> InterfaceRates {
    let per_second = |count: u64| if span_s > 0.0 { count as f64 / span_s } else { 0.0 };
    let same_rules = matches!(earlier, Earlier::Then(then) if then.policy.generation == now.policy.generation);
    let rule = |(place, rule): (usize, &RuleStatus)| {
        // Counters are of places in the policy: a new policy may have another rule at this one.
        let alike = |then: &&RuleStatus| {
            same_rules || (&then.name, then.priority, then.class) == (&rule.name, rule.priority, rule.class)
        };
        let then = earlier.of(|then| then.rules.get(place).filter(alike).map(|then| then.matched.pkts));
        RuleRates {
            name: rule.name.clone(),
            priority: rule.priority,
            line: rule.line,
            matches: rule.matches.clone(),
            class: rule.class,
            matched_pps: per_second(then.until(rule.matched.pkts)),
            matched: rule.matched,
        }
    };
    let direction = |one: &DirectionStatus| {
        let then = earlier.of(|then| then.directions.iter().find(|other| other.direction == one.direction));
        direction_rates(one, then, span_s)
    };
    let forward = |(place, forward): (usize, &ForwardStatus)| {
        // Sums of forwards outlast a change of the policy, and `down` where another interface is managed: nothing is known of a first one.
        let Earlier::Then(then) = earlier else { return forward_rates(forward, forward, span_s) };
        let namesake = |then: &&ForwardStatus| then.name == forward.name;
        let same = then.forwards.get(place).filter(namesake).or_else(|| then.forwards.iter().find(namesake));
        forward_rates(forward, same.unwrap_or(forward), span_s)
    };
    InterfaceRates {
        interface: now.interface.clone(),
        ifindex: now.ifindex,
        engine: now.engine,
        classifier: now.classifier,
        in_place: now.in_place,
        policy: now.policy.clone(),
        unconfirmed: now.unconfirmed.clone(),
        directions: now.directions.iter().map(direction).collect(),
        rules: now.rules.iter().enumerate().map(rule).collect(),
        unmatched_pps: per_second(earlier.of(|then| Some(then.unmatched.pkts)).until(now.unmatched.pkts)),
        forwards: now.forwards.iter().enumerate().map(forward).collect(),
        tree: now.tree.as_ref().map(|tree| {
            let departures = now.directions.iter().find(|one| one.direction == "egress");
            let framing = departures.and_then(|one| one.framing.as_ref());
            tree::tree_rates(tree, earlier.of(|then| then.tree.as_ref()), framing, span_s)
        }),
    }
}

/// The rates of a forward. A sum that fell has lost that of a forward which was replaced: its rate is 0.
fn forward_rates(now: &ForwardStatus, then: &ForwardStatus, span_s: f64) -> ForwardRates {
    let counted = |of: &dyn Fn(&ForwardStatus) -> u64| {
        if span_s > 0.0 { of(now).saturating_sub(of(then)) as f64 / span_s } else { 0.0 }
    };
    let refused = |reason: &str| counted(&|one| one.refused.get(reason).copied().unwrap_or(0));
    let refusals = now.refused.keys().map(|reason| (*reason, refused(reason)));
    let refusals: BTreeMap<&'static str, f64> = refusals.filter(|(_, pps)| *pps > 0.0).collect();
    ForwardRates {
        name: now.name.clone(),
        protocol: now.protocol.clone(),
        listen: now.listen.clone(),
        targets: now.targets.clone(),
        open: now.open,
        opened_per_s: counted(&|one| one.opened),
        // The sum of no floats is -0.
        refused_pps: refusals.values().fold(0.0, |sum, pps| sum + pps),
        refusals_pps: refusals,
        from_clients_bps: counted(&|one| one.from_clients.bytes) * 8.0,
        from_clients_pps: counted(&|one| one.from_clients.pkts),
        from_targets_bps: counted(&|one| one.from_targets.bytes) * 8.0,
        from_targets_pps: counted(&|one| one.from_targets.pkts),
        opened: now.opened,
        from_clients: now.from_clients,
        from_targets: now.from_targets,
    }
}

fn direction_rates(now: &DirectionStatus, earlier: Earlier<&DirectionStatus>, span_s: f64) -> DirectionRates {
    let class = |class: &ClassStatus| {
        let then = earlier.of(|then| then.classes.iter().find(|other| other.id == class.id));
        class_rates(class, then, span_s)
    };
    let mut classes: Vec<ClassRates> = now.classes.iter().map(class).collect();
    let sum = |of: fn(&ClassRates) -> f64| classes.iter().map(of).sum::<f64>();
    let (sent_bps, sent_pps) = (sum(|class| class.sent_bps), sum(|class| class.sent_pps));
    let (dropped_pps, marked_pps) = (sum(|class| class.dropped_pps), sum(|class| class.marked_pps));
    let mut backlog = Count::default();
    for class in &mut classes {
        class.share = (sent_bps > 0.0).then(|| class.sent_bps / sent_bps);
        backlog.pkts += class.backlog.pkts;
        backlog.bytes += class.backlog.bytes;
    }
    let used = now.rate_bps.filter(|rate| *rate > 0).map(|rate| {
        let on_link: f64 =
            classes.iter().map(|class| wire_bps((class.sent_bps, class.sent_pps), now.framing.as_ref())).sum();
        on_link / rate as f64
    });
    DirectionRates {
        direction: now.direction,
        queued: now.queued,
        rate_bps: now.rate_bps,
        used,
        link_fill: now.link_fill,
        limit_bps: now.limit_bps,
        limit_fill: now.limit_fill,
        sent_bps,
        sent_pps,
        dropped_pps,
        marked_pps,
        backlog,
        classes,
        scheduler: now.scheduler.clone(),
        tx_queues: tx_queues::rates(now, earlier, span_s),
    }
}

/// The bits per second that bits and packets per second take on the link, by the framing of a packet of the mean length.
fn wire_bps((bps, pps): (f64, f64), framing: Option<&Framing>) -> f64 {
    let Some(framing) = framing else { return bps };
    if pps <= 0.0 {
        return 0.0;
    }
    framing.wire_bytes(bps / 8.0 / pps) * 8.0 * pps
}

fn class_rates(now: &ClassStatus, earlier: Earlier<&ClassStatus>, span_s: f64) -> ClassRates {
    let per_second = |count: u64| if span_s > 0.0 { count as f64 / span_s } else { 0.0 };
    let counted = |of: fn(&ClassStatus) -> u64| per_second(earlier.of(|then| Some(of(then))).until(of(now)));
    let drops = now.drops.iter().map(|(reason, pkts)| {
        let then = earlier.of(|then| Some(then.drops.get(reason).copied().unwrap_or(0)));
        (*reason, per_second(then.until(*pkts)))
    });
    let fills = [
        now.limit_pkts.filter(|limit| *limit > 0).map(|limit| now.backlog.pkts as f64 / f64::from(limit)),
        now.limit_bytes.filter(|limit| *limit > 0).map(|limit| now.backlog.bytes as f64 / limit as f64),
    ];
    ClassRates {
        id: now.id,
        name: now.name.clone(),
        sent_bps: counted(|class| class.sent.bytes) * 8.0,
        sent_pps: counted(|class| class.sent.pkts),
        dropped_pps: counted(|class| class.dropped.pkts),
        drops_pps: drops.filter(|(_, pps)| *pps > 0.0).collect(),
        marked_pps: counted(|class| class.marked.pkts),
        sojourn: now.sojourn.as_ref().and_then(|waits| sojourn_rates(waits, earlier)),
        backlog: now.backlog,
        queue: now.queue.clone(),
        limit_pkts: now.limit_pkts,
        limit_bytes: now.limit_bytes,
        backlog_fill: fills.into_iter().flatten().reduce(f64::max),
        share: None,
        promised_share: now.share,
        weight: now.weight,
        priority: now.priority,
        quantum_bytes: now.quantum_bytes,
        ceil_bps: now.ceil_bps,
        rate_bps: now.rate_bps,
        ceil_fill: now.ceil_fill,
        peak_bps: now.peak_bps,
        peak_fill: now.peak_fill,
        rate_fill: now.rate_fill,
        flow_ceil_bps: now.flow_ceil_bps,
        shared_ceil_bps: now.shared_ceil_bps,
        shared_ceil_fill: now.shared_ceil_fill,
        bucket_fill: now.bucket_fill(),
        target_us: now.target_us,
        flow_queues: now.flow_queues,
        state: now.state,
        sent: now.sent,
        dropped: now.dropped,
    }
}

fn sojourn_rates(now: &Sojourn, earlier: Earlier<&ClassStatus>) -> Option<SojournRates> {
    let waits = match earlier {
        Earlier::Then(then) => then.sojourn.as_ref().and_then(|then| now.since(then)).unwrap_or_else(|| now.clone()),
        Earlier::Zero => now.clone(),
        Earlier::Now => return None,
    };
    Some(SojournRates {
        pkts: waits.pkts(),
        p50_us: waits.quantile_us(0.50)?,
        p95_us: waits.quantile_us(0.95)?,
        p99_us: waits.quantile_us(0.99)?,
        max_us: waits.max_us()?,
    })
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
