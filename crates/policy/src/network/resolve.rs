//! A network as an engine is to build it: numbered nodes, each with every value chosen, and the prefixes of the leaves.

use super::{BURST_TIMES_NS, Burst, EachWay, NODE_RATES, NetworkPolicy, Plan, Subscriber, Way, checks};
use crate::bytes::{Bytes, FRAME_BYTES};
use crate::ceiling::default_burst;
use crate::diagnostic::{Diagnostic, Diagnostics, Kind, Severity};
use crate::limits;
use crate::link::{Framing, SplitGso};
use crate::queue::{Codel, Flows, Queue};
use crate::rate::Rate;
use crate::resolved::Context;
use ipnet::IpNet;
use sluice_abi as abi;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

type Rates = EachWay<Option<Rate>>;

/// A network with every value chosen.
#[derive(Debug, Clone)]
pub struct Network {
    /// The policy's name.
    pub name: String,
    /// The policy's purpose, as its author wrote it.
    pub description: Option<String>,
    /// The interfaces towards the subscribers.
    pub subscriber_side: Vec<String>,
    /// Bytes that the link adds to a packet.
    pub framing: Framing,
    /// Whether packets larger than a frame are split before they are queued.
    pub split_gso: SplitGso,
    /// The number of plans.
    pub plans: usize,
    /// The sum of the guarantees below the link, bits per second.
    pub guaranteed: EachWay<u128>,
    /// The inner nodes: the link, then the sites, each behind its parent. The number of the one at `i` is `SL_FIRST_INNER + i`.
    pub inner: Vec<Node>,
    /// The leaves, which are the subscribers in the order of the table. The number of the one at `i` is `i`.
    pub leaves: Vec<Leaf>,
    /// The queues that leaves have, each once.
    pub queues: Vec<LeafQueue>,
    /// Prefixes and the numbers of their leaves, IPv4 before IPv6, by address. No prefix holds another one.
    pub prefixes: Vec<(IpNet, u16)>,
    /// Warnings, and notes on chosen values. There are no errors.
    pub remarks: Diagnostics,
}

/// A node of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its number, as in `abi/hierarchy.h`.
    pub number: u16,
    /// The number of the inner node above it; of the link, its own.
    pub parent: u16,
    /// Its key among the sites, or among the subscribers; `link` for the link.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Its share beside others below the same parent, 1 to [`super::MAX_NODE_WEIGHT`].
    pub weight: u32,
    /// Its guarantee, bits per second; the link has none.
    pub rate: Rates,
    /// Its ceiling, bits per second; that of the link is the rate to which it is shaped.
    pub ceil: Rates,
    /// The most that passes at once after a pause, if there is a ceiling. Of the link, `None` may also be the engine's own choice.
    pub burst: EachWay<Option<Bytes>>,
}

/// A subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// The node.
    pub node: Node,
    /// The name of its plan.
    pub plan: Option<String>,
    /// The index of its queue in [`Network::queues`].
    pub queue: EachWay<usize>,
}

/// The queue of leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeafQueue {
    /// A FIFO, or by flow.
    pub queue: Queue,
    /// The active queue management, for the leaf's rate; `None` for none.
    pub codel: Option<Codel>,
    /// The most packets; `None`: as many as there is room for. A limit in bytes or time is as many full frames.
    pub limit_pkts: Option<u32>,
}

impl LeafQueue {
    /// Bytes that a flow may send in its turn.
    pub fn quantum_bytes(&self) -> u32 {
        self.queue.flows().map_or(FRAME_BYTES, |flows| flows.quantum_bytes)
    }

    /// The time of a turn at a rate, ns; without one, at 1 Gbit/s. Rounded up to a power of two, so that leaves of many rates have few kinds of queues.
    pub fn round_ns(&self, rate: Option<Rate>) -> u32 {
        let bps = u128::from(rate.map_or(1_000_000_000, |rate| rate.0).max(1));
        let ns = u128::from(self.quantum_bytes()) * 8_000_000_000 / bps;
        (ns.clamp(1, 1 << 31) as u32).next_power_of_two()
    }

    /// The kind of the queue in the tree: everything but the limit, which the tree keeps by leaf.
    fn kind(&self, rate: Option<Rate>) -> (Queue, Option<Codel>, u32) {
        (self.queue, self.codel, self.round_ns(rate))
    }
}

impl Network {
    /// The direction that departures from an interface have.
    pub fn way(&self, interface: &str) -> Way {
        if self.subscriber_side.iter().any(|name| name == interface) { Way::Down } else { Way::Up }
    }

    /// The queue of packets whose address no subscriber has.
    pub fn queue_of_nobody(&self, way: Way) -> LeafQueue {
        LeafQueue {
            queue: Queue::Flows(Flows::default()),
            codel: Some(Codel::default().at_rate(*self.link().ceil.of(way))),
            limit_pkts: None,
        }
    }

    /// The link.
    pub fn link(&self) -> &Node {
        &self.inner[0]
    }

    /// The sites.
    pub fn sites(&self) -> &[Node] {
        &self.inner[1..]
    }

    /// The node of a number.
    pub fn node(&self, number: u16) -> Option<&Node> {
        match number.checked_sub(FIRST_INNER) {
            Some(inner) => self.inner.get(usize::from(inner)),
            None => self.leaves.get(usize::from(number)).map(|leaf| &leaf.node),
        }
    }

    /// The subscriber that has an address.
    pub fn leaf(&self, address: IpAddr) -> Option<&Leaf> {
        let behind = self.prefixes.partition_point(|(prefix, _)| prefix.network() <= address);
        let (prefix, leaf) = self.prefixes[..behind].last()?;
        prefix.contains(&address).then(|| &self.leaves[usize::from(*leaf)])
    }

    /// The most sites between the link and a subscriber, or a site without any.
    pub fn levels(&self) -> usize {
        let mut levels = vec![0; self.inner.len()];
        for (place, node) in self.inner.iter().enumerate().skip(1) {
            levels[place] = levels[usize::from(node.parent - FIRST_INNER)] + 1;
        }
        levels.into_iter().max().unwrap_or(0)
    }
}

const FIRST_INNER: u16 = abi::SL_FIRST_INNER as u16;

/// The number of an inner node, by its index behind the link.
fn inner_number(site: Option<usize>) -> u16 {
    // There are fewer than 4,096.
    FIRST_INNER + site.map_or(0, |site| site as u16 + 1)
}

/// Chooses every open value of a network, and checks it against the link. A rate of the command line holds for both directions.
pub fn resolve(policy: &NetworkPolicy, context: &Context) -> Result<Network, Diagnostics> {
    let rate = context.link_rate.map_or(policy.link.rate, |rate| EachWay::both(Some(rate)));
    let mut findings = checks::warnings(policy);
    findings.extend(link_rate(policy, context, &rate));
    findings.extend(checks::against_link(policy, &rate));
    let source = policy.origin.source().cloned();
    if findings.iter().any(|finding| finding.severity() == Severity::Error) {
        return Err(Diagnostics::new(source, findings));
    }
    let mut queues = Queues::default();
    let leaves = policy.subscribers.subscribers.iter().enumerate();
    let leaves = leaves.map(|(number, one)| leaf(policy, number, one, &rate, &mut queues)).collect();
    let prefixes = prefixes(policy);
    findings.extend(beyond_tables(policy, queues.kinds(), &prefixes));
    let queues = queues.list;
    if findings.iter().any(|finding| finding.severity() == Severity::Error) {
        return Err(Diagnostics::new(source, findings));
    }
    Ok(Network {
        name: policy.name.clone(),
        description: policy.description.clone(),
        subscriber_side: policy.subscriber_side.clone(),
        framing: policy.link.framing,
        split_gso: policy.link.split_gso,
        plans: policy.plans.len(),
        guaranteed: checks::whole(policy),
        inner: inner(policy, rate),
        leaves,
        queues,
        prefixes,
        remarks: Diagnostics::new(source, findings),
    })
}

/// The errors of a network that the tree of classes or its table of addresses has no room for.
fn beyond_tables(policy: &NetworkPolicy, kinds: usize, prefixes: &[(IpNet, u16)]) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    let mut say = |title: String, help: &str| {
        let finding = Diagnostic::error(Kind::TooMany, title).at(policy.origin.span("/subscribers"), "these");
        findings.push(finding.help(help));
    };
    if prefixes.len() > abi::SL_ADDRESSES as usize {
        let title =
            format!("the subscribers have {} addresses and prefixes, more than {}", prefixes.len(), abi::SL_ADDRESSES);
        say(title, "write neighbouring addresses of one subscriber as a prefix");
    }
    for (family, whole) in [("IPv4", 32), ("IPv6", 128)] {
        let mut lengths: Vec<u8> = prefixes
            .iter()
            .map(|(prefix, _)| prefix)
            .filter(|prefix| prefix.max_prefix_len() == whole)
            .map(IpNet::prefix_len)
            .filter(|length| *length != whole)
            .collect();
        lengths.sort_unstable();
        lengths.dedup();
        if lengths.len() > abi::SL_ADDRESS_LENGTHS as usize {
            let title =
                format!("{family} prefixes have {} lengths, more than {}", lengths.len(), abi::SL_ADDRESS_LENGTHS);
            say(title, "write the prefixes of a rare length as several longer ones");
        }
    }
    // Packets of nobody may take one more.
    if kinds >= abi::SL_LEAF_QUEUES as usize {
        let title = format!("the subscribers have {kinds} kinds of queues, more than {}", abi::SL_LEAF_QUEUES - 1);
        say(
            title,
            "let more plans have the same \"queue\" and \"aqm\"; CoDel's target follows a slow ceiling, so round those below 10mbit",
        );
    }
    findings
}

/// The findings on the link's rate: it is not known, overridden, or one that a node cannot have.
fn link_rate(policy: &NetworkPolicy, context: &Context, rate: &Rates) -> Vec<Diagnostic> {
    let place = policy.origin.span("/link/rate");
    let mut findings = Vec::new();
    if let Some(given) = context.link_rate.filter(|_| policy.link.rate != EachWay::default()) {
        let title = format!("--rate {given} takes the place of the policy's rates, in both directions");
        let note = Diagnostic::new(Severity::Note, Kind::LinkRateOverridden, title);
        findings.push(note.at(place.clone(), "not used"));
    }
    for (way, rate) in rate.named() {
        match rate {
            None => {
                let title = format!(
                    "the link's rate {way} is not known: it is not shaped, and rates are not checked against it"
                );
                let note = Diagnostic::new(Severity::Note, Kind::LinkRateUnknown, title)
                    .at(policy.origin.span("/link"), "says none");
                findings.push(
                    note.help("write it, as in `\"link\": { \"rate\": { \"down\": \"1gbit\", \"up\": \"200mbit\" } }`"),
                );
            }
            Some(rate) if !NODE_RATES.contains(rate) => {
                let (least, most) = (NODE_RATES.start(), NODE_RATES.end());
                let title = format!("the link has a rate of {rate} {way}, which is not between {least} and {most}");
                let place = place.clone().or(policy.origin.span("/subscribers"));
                let finding = Diagnostic::error(Kind::OutOfRange, title).at(place, "cannot be kept");
                findings.push(finding.help("write a rate within that range"));
            }
            Some(_) => {}
        }
    }
    findings
}

fn inner(policy: &NetworkPolicy, rate: Rates) -> Vec<Node> {
    let link = Node {
        number: FIRST_INNER,
        parent: FIRST_INNER,
        id: "link".to_owned(),
        name: "link".to_owned(),
        weight: 1,
        rate: EachWay::default(),
        ceil: rate,
        burst: EachWay::both(policy.link.burst),
    };
    let sites = policy.sites.sites.iter().zip(checks::guarantees(policy)).enumerate();
    let sites = sites.map(|(place, (site, guarantee))| Node {
        number: inner_number(Some(place)),
        parent: inner_number(site.parent),
        id: site.name.clone(),
        name: site.name.clone(),
        weight: site.weight,
        rate: guarantee,
        ceil: site.ceil,
        burst: site.ceil.map(|ceil| ceil.map(default_burst)),
    });
    std::iter::once(link).chain(sites).collect()
}

/// The queues of all leaves, each once.
#[derive(Default)]
struct Queues {
    list: Vec<LeafQueue>,
    known: HashMap<LeafQueue, usize>,
    kinds: EachWay<HashSet<(Queue, Option<Codel>, u32)>>,
}

impl Queues {
    fn index(&mut self, queue: LeafQueue) -> usize {
        *self.known.entry(queue).or_insert_with(|| {
            self.list.push(queue);
            self.list.len() - 1
        })
    }

    /// The kinds of queues that a tree has, of the direction that has more.
    fn kinds(&self) -> usize {
        self.kinds.down.len().max(self.kinds.up.len())
    }
}

fn leaf(policy: &NetworkPolicy, number: usize, subscriber: &Subscriber, link: &Rates, queues: &mut Queues) -> Leaf {
    let (plan, ceil) = (policy.plan(subscriber), policy.ceil(subscriber));
    let written = plan.map_or(EachWay::default(), |plan| plan.burst);
    let sends_at = ceil.or(link);
    let own = sends_at.map(|rate| queue(plan, *rate));
    queues.kinds.down.insert(own.down.kind(sends_at.down));
    queues.kinds.up.insert(own.up.kind(sends_at.up));
    Leaf {
        node: Node {
            number: number as u16,
            parent: inner_number(subscriber.parent),
            id: subscriber.id.clone(),
            name: subscriber.name.clone(),
            weight: plan.map_or(1, |plan| plan.weight),
            rate: policy.rate(subscriber).map(|rate| rate.map(|rate| rate.max(*NODE_RATES.start()))),
            ceil,
            burst: ceil.zip(&written).map(|(ceil, burst)| ceil.map(|ceil| burst_at(ceil, *burst))),
        },
        plan: plan.map(|plan| plan.name.clone()),
        queue: EachWay { down: queues.index(own.down), up: queues.index(own.up) },
    }
}

/// The burst of a ceiling. One in bytes is cut to what a node can have, for a subscriber may have a slower ceiling than its plan.
fn burst_at(ceil: Rate, burst: Option<Burst>) -> Bytes {
    match burst {
        None => default_burst(ceil),
        Some(Burst::Bytes(bytes)) => bytes.min(Bytes(ceil.bytes_in_ns(*BURST_TIMES_NS.end()))),
        Some(Burst::TimeNs(ns)) => Bytes(ceil.bytes_in_ns(ns)),
    }
}

/// The queue of a subscriber that sends at this rate.
fn queue(plan: Option<&Plan>, rate: Option<Rate>) -> LeafQueue {
    let queue = plan.map_or(Queue::Flows(Flows::default()), |plan| plan.queue);
    let codel = plan.map_or(queue.default_codel(), |plan| plan.codel);
    let limit = plan.and_then(|plan| plan.limit);
    let kept_short = queue.flows().is_some() && codel.is_some();
    let demand = limits::demand(limit, rate, kept_short);
    LeafQueue {
        queue,
        codel: codel.map(|codel| codel.at_rate(rate)),
        limit_pkts: match demand.bytes {
            Some(bytes) => Some((bytes.0 / u64::from(FRAME_BYTES)).clamp(1, u16::MAX.into()) as u32),
            None => (!demand.all).then(|| demand.wanted_pkts.min(u16::MAX.into()) as u32),
        },
    }
}

/// The prefixes of all leaves, without those that another one of the same leaf holds.
fn prefixes(policy: &NetworkPolicy) -> Vec<(IpNet, u16)> {
    let subscribers = policy.subscribers.subscribers.iter().enumerate();
    let mut all: Vec<(IpNet, u16)> = subscribers
        .flat_map(|(leaf, one)| one.addresses.iter().map(move |address| (address.prefix, leaf as u16)))
        .collect();
    // A wider prefix comes before those that it holds.
    all.sort_by_key(|(prefix, _)| (prefix.network(), prefix.prefix_len()));
    let mut kept: Vec<(IpNet, u16)> = Vec::with_capacity(all.len());
    for one in all {
        if !kept.last().is_some_and(|(wide, _)| wide.contains(&one.0)) {
            kept.push(one);
        }
    }
    kept
}

#[cfg(test)]
mod tests;
