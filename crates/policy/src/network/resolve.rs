//! A network as an engine is to build it: numbered nodes, each with every value chosen, and the addresses of the leaves.

use super::leaf_classes::{self, LeafClass, LeafClasses, burst_at};
use super::leaf_queues::{LeafQueue, Queues, Wanted};
use super::{
    Address, EachWay, HostGroup, NODE_RATES, NetworkPolicy, NodeScheduler, Order, Subscriber, Way, checks, class_checks,
};
use crate::bytes::Bytes;
use crate::ceiling::default_burst;
use crate::class_id::ClassId;
use crate::diagnostic::{Diagnostic, Diagnostics, Kind, Severity};
use crate::engine::Engine;
use crate::link::{Framing, SplitGso};
use crate::queue::{Codel, Flows, Queue};
use crate::rate::Rate;
use crate::resolved::Context;
use ipnet::IpNet;
use sluice_abi as abi;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

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
    /// The ids and names of the classes inside subscribers, or of a class tree. Empty: no plan has classes.
    pub classes: Vec<(ClassId, String)>,
    /// The index of the leaf of packets that no rule gives to another one, of a class tree, where packets are found by their class alone.
    pub default_leaf: Option<usize>,
    /// The sum of the guarantees below the link, bits per second.
    pub guaranteed: EachWay<u128>,
    /// The inner nodes: the link, then the sites, each behind its parent, then the groups of hosts. The number of the one at `i` is `SL_FIRST_INNER + i`.
    pub inner: Vec<Node>,
    /// The leaves: the subscribers in the order of the table, then those of groups. The number of the one at `i` is `i`.
    pub leaves: Vec<Leaf>,
    /// The groups of hosts.
    pub groups: Vec<Group>,
    /// The queues that leaves have, each once.
    pub queues: Vec<LeafQueue>,
    /// Addresses of subscribers and the numbers of their leaves, in order. No prefix holds another one.
    pub addresses: Vec<(Address, u16)>,
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
    /// Its urgency among the nodes below the same parent, if that serves them by priority: 0 goes first.
    pub priority: u8,
    /// The request below EEVDF, or the latency budget below a PIFO.
    pub order: Order,
    /// How the nodes below it share what their guarantees leave. Of a leaf, it means nothing.
    pub scheduler: NodeScheduler,
}

/// A subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// The node.
    pub node: Node,
    /// The name of its plan.
    pub plan: Option<String>,
    /// Its number, of a class of a class tree.
    pub class: Option<ClassId>,
    /// The index of its queue in [`Network::queues`]; of one with classes, that of its default class.
    pub queue: EachWay<usize>,
    /// Its classes, each a leaf of its own below it. None: its packets are in one queue.
    pub classes: Arc<LeafClasses>,
}

/// Hosts that no list names, which have leaves while they are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The index of its node among the inner ones.
    pub inner: usize,
    /// The index of the leaf that hosts share for which there is no other one.
    pub shared: usize,
    /// The indices of the leaves that hosts have, a power of two of them.
    pub hosts: Range<usize>,
    /// The length of the prefix of IPv6 that is one host.
    pub ipv6_length: u8,
    /// The prefixes of all hosts.
    pub prefixes: Vec<IpNet>,
}

impl Network {
    /// The direction that departures from an interface have.
    pub fn way(&self, interface: &str) -> Way {
        Way::out_of(interface, &self.subscriber_side)
    }

    /// The queue of packets whose address no subscriber has.
    pub fn queue_of_nobody(&self, way: Way) -> LeafQueue {
        LeafQueue {
            queue: Queue::Flows(Flows::default()),
            codel: Some(Codel::default().at_rate(*self.link().ceil.of(way))),
            limit_pkts: None,
        }
    }

    /// The addresses of each leaf, in order.
    pub fn addresses(&self) -> Vec<Arc<[Address]>> {
        let mut all = vec![Vec::new(); self.leaves.len()];
        self.addresses.iter().for_each(|(address, leaf)| all[usize::from(*leaf)].push(*address));
        all.into_iter().map(Arc::from).collect()
    }

    /// The link.
    pub fn link(&self) -> &Node {
        &self.inner[0]
    }

    /// The sites and the groups of hosts.
    pub fn sites(&self) -> &[Node] {
        &self.inner[1..]
    }

    /// The classes inside all leaves, with the index of the leaf: in the order of leaves, and of the classes of each.
    pub fn leaf_classes(&self) -> impl Iterator<Item = (usize, &LeafClass)> + '_ {
        self.leaves
            .iter()
            .enumerate()
            .flat_map(|(leaf, own)| own.classes.classes.iter().map(move |class| (leaf, class)))
    }

    /// Whether the leaves are classes, which alone lead packets there.
    pub fn is_class_tree(&self) -> bool {
        self.default_leaf.is_some()
    }

    /// The leaves of subscribers.
    pub fn subscribers(&self) -> &[Leaf] {
        &self.leaves[..self.groups.first().map_or(self.leaves.len(), |group| group.shared)]
    }

    /// The node of a number.
    pub fn node(&self, number: u16) -> Option<&Node> {
        match number.checked_sub(FIRST_INNER) {
            Some(inner) => self.inner.get(usize::from(inner)),
            None => self.leaves.get(usize::from(number)).map(|leaf| &leaf.node),
        }
    }

    /// The scheduler of what is above a node.
    pub fn scheduler_above(&self, node: &Node) -> NodeScheduler {
        self.node(node.parent).map_or(NodeScheduler::default(), |above| above.scheduler)
    }

    /// The subscriber that has an address.
    fn subscriber(&self, address: IpAddr) -> Option<usize> {
        let before = |own: &Address| own.prefix().is_some_and(|prefix| prefix.network() <= address);
        let behind = self.addresses.partition_point(|(own, _)| before(own));
        let (own, leaf) = self.addresses[..behind].last()?;
        own.contains(address).then_some(usize::from(*leaf))
    }

    /// The mark or the VLAN of a packet that tells its leaf, whatever its addresses are, and the index of the leaf. The mark goes first.
    pub fn marked(&self, mark: Option<u32>, vlan: Option<u16>) -> Option<(Address, usize)> {
        let found = |address: Address| {
            let at = self.addresses.binary_search_by_key(&address, |(own, _)| *own).ok()?;
            Some((address, usize::from(self.addresses[at].1)))
        };
        mark.map(Address::Mark).and_then(found).or_else(|| vlan.map(Address::Vlan).and_then(found))
    }

    /// The group that has an address.
    pub fn group(&self, address: IpAddr) -> Option<&Group> {
        self.groups.iter().find(|group| group.prefixes.iter().any(|prefix| prefix.contains(&address)))
    }

    /// The index of the leaf of an address: a subscriber's, or the one that stands for all hosts of a group.
    pub fn leaf_of(&self, address: IpAddr) -> Option<usize> {
        self.subscriber(address).or_else(|| self.group(address).map(|group| group.shared))
    }

    /// The addresses of subscribers and the prefixes of groups, with the indices of their leaves.
    pub fn all_addresses(&self) -> impl Iterator<Item = (Address, usize)> + '_ {
        let own = self.addresses.iter().map(|(address, leaf)| (*address, usize::from(*leaf)));
        let of_group =
            |group: &Group| group.prefixes.iter().map(|prefix| ((*prefix).into(), group.shared)).collect::<Vec<_>>();
        own.chain(self.groups.iter().flat_map(of_group))
    }

    /// The most sites between the link and a subscriber, or a site without any. A group of hosts counts as a site.
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
    if context.engine == Engine::Tc {
        findings.extend(class_checks::cut_by_tc(policy));
    }
    findings.extend(link_rate(policy, context, &rate));
    findings.extend(checks::against_link(policy, &rate));
    let source = policy.origin.source().cloned();
    if findings.iter().any(|finding| finding.severity() == Severity::Error) {
        return Err(Diagnostics::new(source, findings));
    }
    let mut made = Made::default();
    let leaves = policy.subscribers.subscribers.iter().enumerate();
    let mut leaves: Vec<Leaf> = leaves.map(|(number, one)| leaf(policy, number, one, &rate, &mut made)).collect();
    let first_group = policy.sites.sites.len() + 1;
    let groups: Vec<Group> = (first_group..)
        .zip(&policy.groups)
        .map(|(inner, own)| group(policy, inner, own, &rate, &mut made, &mut leaves))
        .collect();
    let addresses = addresses(policy);
    let all: Vec<Address> = addresses
        .iter()
        .map(|(address, _)| *address)
        .chain(groups.iter().flat_map(|group| group.prefixes.iter().copied().map(Address::from)))
        .collect();
    findings.extend(beyond_tables(policy, made.queues.kinds(), &all));
    let queues = made.queues.list;
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
        classes: policy.classes(),
        default_leaf: policy.class_tree.as_ref().map(|tree| tree.default_leaf(policy.classification.default_class)),
        guaranteed: checks::whole(policy),
        inner: inner(policy, rate),
        leaves,
        groups,
        queues,
        addresses,
        remarks: Diagnostics::new(source, findings),
    })
}

/// The errors of a network that the tree of classes or its table of addresses has no room for.
fn beyond_tables(policy: &NetworkPolicy, kinds: usize, addresses: &[Address]) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    let mut say = |title: String, help: &str| {
        let place = policy.origin.span("/subscribers").or(policy.origin.span("/each_host"));
        let finding = Diagnostic::error(Kind::TooMany, title).at(place, "these");
        findings.push(finding.help(help));
    };
    if addresses.len() > abi::SL_ADDRESSES as usize {
        let title =
            format!("the subscribers have {} addresses and prefixes, more than {}", addresses.len(), abi::SL_ADDRESSES);
        say(title, "write neighbouring addresses of one subscriber as a prefix");
    }
    for (family, whole) in [("IPv4", 32), ("IPv6", 128)] {
        let mut lengths: Vec<u8> = addresses
            .iter()
            .filter_map(Address::prefix)
            .filter(|prefix| prefix.max_prefix_len() == whole)
            .map(|prefix| prefix.prefix_len())
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
        // Each side of a wire has its own.
        let title = match context.engine != Engine::Xsk && policy.class_tree.is_none() {
            false => format!("--rate {given} takes the place of the policy's rate"),
            true => format!("--rate {given} takes the place of the policy's rates, in both directions"),
        };
        let note = Diagnostic::new(Severity::Note, Kind::LinkRateOverridden, title);
        findings.push(note.at(place.clone(), "not used"));
    }
    for (way, rate) in rate.named() {
        let Some(way) = policy.way_name(way) else { continue };
        match rate {
            None => {
                let title = format!(
                    "the link's rate{way} is not known: it is not shaped, and rates are not checked against it"
                );
                let note = Diagnostic::new(Severity::Note, Kind::LinkRateUnknown, title)
                    .at(policy.origin.span("/link"), "says none");
                findings.push(note.help(if policy.class_tree.is_some() {
                    "give `--rate`, or write it in the policy, as in `\"link\": { \"rate\": \"20mbit\" }`"
                } else {
                    "write it, as in `\"link\": { \"rate\": { \"down\": \"1gbit\", \"up\": \"200mbit\" } }`"
                }));
            }
            Some(rate) if !NODE_RATES.contains(rate) => {
                let (least, most) = (NODE_RATES.start(), NODE_RATES.end());
                let title = format!("the link has a rate of {rate}{way}, which is not between {least} and {most}");
                let place = place.clone().or(policy.origin.span("/subscribers")).or(policy.origin.span("/each_host"));
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
        priority: 0,
        order: Order::default(),
        scheduler: policy.class_tree.as_ref().map_or(NodeScheduler::default(), |tree| tree.scheduler),
    };
    let own = |place: usize| policy.class_tree.as_ref().map(|tree| &tree.inner[place]);
    let sites = policy.sites.sites.iter().zip(checks::guarantees(policy)).enumerate();
    let sites = sites.map(|(place, (site, guarantee))| Node {
        number: inner_number(Some(place)),
        parent: inner_number(site.parent),
        id: site.name.clone(),
        name: site.name.clone(),
        weight: site.weight,
        rate: guarantee,
        ceil: site.ceil,
        burst: site
            .ceil
            .map(|ceil| ceil.map(|ceil| own(place).and_then(|own| own.burst).unwrap_or(default_burst(ceil)))),
        priority: own(place).map_or(0, |own| own.priority),
        order: own(place).map_or(Order::default(), |own| own.order),
        scheduler: own(place).map_or(NodeScheduler::default(), |own| own.scheduler),
    });
    let groups = policy.groups.iter().enumerate().map(|(place, group)| Node {
        number: inner_number(Some(policy.sites.sites.len() + place)),
        parent: inner_number(group.each.parent),
        id: group.each.id.clone(),
        name: group.each.name.clone(),
        weight: 1,
        rate: EachWay::default(),
        ceil: EachWay::default(),
        burst: EachWay::default(),
        priority: 0,
        order: Order::default(),
        scheduler: NodeScheduler::default(),
    });
    std::iter::once(link).chain(sites).chain(groups).collect()
}

/// A group below its node, whose leaves are added: the one that hosts share, then one for each host.
fn group(
    policy: &NetworkPolicy,
    inner: usize,
    group: &HostGroup,
    link: &Rates,
    made: &mut Made,
    leaves: &mut Vec<Leaf>,
) -> Group {
    let shared = leaves.len();
    let hosts = shared + 1..shared + 1 + group.places() as usize;
    let mut each = leaf(policy, shared, &group.each, link, made);
    each.node.parent = FIRST_INNER + inner as u16;
    each.node.name = format!("a host of {}", group.each.name);
    leaves.push(each.clone());
    leaves.extend(hosts.clone().map(|place| {
        let mut own = each.clone();
        (own.node.number, own.node.id) = (place as u16, format!("{} {}", group.each.id, place - shared));
        own
    }));
    let mut prefixes: Vec<IpNet> = group.each.addresses.iter().filter_map(|written| written.address.prefix()).collect();
    prefixes.sort_by_key(|prefix| (prefix.network(), prefix.prefix_len()));
    prefixes.dedup_by(|narrow, wide| wide.contains(&*narrow));
    Group { inner, shared, hosts, ipv6_length: group.ipv6_length, prefixes }
}

/// What leaves have in common, each once.
#[derive(Default)]
struct Made {
    queues: Queues,
    classes: leaf_classes::Known,
}

fn leaf(policy: &NetworkPolicy, number: usize, subscriber: &Subscriber, link: &Rates, made: &mut Made) -> Leaf {
    let (plan, ceil) = (policy.plan(subscriber), policy.ceil(subscriber));
    let written = plan.map_or(EachWay::default(), |plan| plan.burst);
    let sends_at = ceil.or(link);
    let classes = made.classes.of(policy, subscriber.plan, sends_at, &mut made.queues);
    let queue = match classes.classes.get(classes.default) {
        Some(class) => class.queue,
        None => made.queues.of(Wanted::of_subscriber(plan), sends_at),
    };
    let own = policy.class_tree.as_ref().and_then(|tree| tree.leaves.get(number));
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
            priority: own.map_or(0, |own| own.priority),
            order: own.map_or(Order::default(), |own| own.order),
            scheduler: NodeScheduler::default(),
        },
        // A leaf class has an unnamed plan of its own, which is not shown.
        plan: plan.filter(|_| own.is_none()).map(|plan| plan.name.clone()),
        class: own.map(|own| own.id),
        queue,
        classes,
    }
}

/// The addresses of all leaves in order, without those that another one of the same leaf holds.
fn addresses(policy: &NetworkPolicy) -> Vec<(Address, u16)> {
    let subscribers = policy.subscribers.subscribers.iter().enumerate();
    let mut all: Vec<(Address, u16)> = subscribers
        .flat_map(|(leaf, one)| one.addresses.iter().map(move |written| (written.address, leaf as u16)))
        .collect();
    // A wider prefix comes before those that it holds.
    all.sort_by_key(|(address, _)| *address);
    let mut kept: Vec<(Address, u16)> = Vec::with_capacity(all.len());
    for one in all {
        if !kept.last().is_some_and(|(wide, _)| wide.holds(&one.0)) {
            kept.push(one);
        }
    }
    kept
}

#[cfg(test)]
mod tests;
