//! The network of a provider: sites, which form a tree below the link, and subscribers below them, or hosts that no list names.
//!
//! A policy with `subscribers` or `each_host`, or with a class tree, is a [`NetworkPolicy`] instead of a policy with flat classes; [`resolve`] makes a [`Network`] of it, the tree of
//! numbered nodes that `abi/hierarchy.h` describes. Sites and subscribers stand in the policy or in tables beside it. The files of LibreQoS are
//! read as they are: `network.json`, a tree of sites with their bandwidth, and `ShapedDevices.csv`, the subscribers with their addresses, rates
//! and parents. Every mistake is reported with its row, up to the number that [`crate::Diagnostics`] shows, in a time that grows with the table
//! and not with the mistakes.

mod address;
mod addresses;
mod as_policy;
pub(crate) mod checks;
mod class_checks;
mod class_tree;
mod classes;
pub(crate) mod difference;
mod group_checks;
mod leaf_classes;
mod leaf_queues;
pub(crate) mod names;
mod print;
mod resolve;
mod rows;
mod shaped_devices;
mod sites;
pub(crate) mod subscriber_table;
mod summary;
mod sums;
pub(crate) mod tables;

use crate::bytes::Bytes;
use crate::class_id::ClassId;
use crate::limit::Limit;
use crate::link::{Framing, LinkQueues, SplitGso};
use crate::queue::{Codel, Queue};
use crate::rate::Rate;
use crate::source::{Origin, Source, Where};
use serde::{Deserialize, Serialize};
use sluice_abi as abi;
use std::ops::RangeInclusive;

pub use address::Address;
pub(crate) use addresses::one as read_address;
pub use class_tree::{ClassTree, TreeInner, TreeLeaf};
pub use classes::{Classification, MAX_PLAN_CLASSES, NodeScheduler, Order, PlanClass, ShareKey};
pub(crate) use classes::{classes_of, default_of};
pub use leaf_classes::{LeafClass, LeafClasses};
pub use leaf_queues::LeafQueue;
pub(crate) use print::print;
pub(crate) use resolve::resolve;
pub use resolve::{Group, Leaf, Network, Node};
pub(crate) use sites::sites;

pub use summary::summary;
pub use tables::{MAX_TABLE_BYTES, Tables, Unreadable, no_tables};

/// The most subscribers of a network, 32,767: each is a leaf of the tree of classes, and one leaf is for packets of nobody.
pub const MAX_SUBSCRIBERS: usize = abi::SL_FIRST_INNER as usize - 1;
/// The most groups of hosts.
pub const MAX_HOST_GROUPS: usize = abi::SL_HOST_GROUPS as usize;
/// The hosts that a group may have a leaf for at once; their number is rounded up to a power of two.
pub const GROUP_HOSTS: RangeInclusive<u32> = abi::SL_HOST_PLACE_WAYS..=abi::SL_HOST_PLACES;
/// The hosts of a group that does not say how many.
pub const DEFAULT_GROUP_HOSTS: u32 = 1024;
/// The most columns of a table.
const MAX_COLUMNS: usize = 64;
/// A table with more mistakes is not read to its end.
const MAX_MISTAKES: usize = 100_000;
/// The most sites, 4,095: they and the link are the inner nodes.
pub const MAX_SITES: usize = abi::SL_INNERS as usize - 1;
/// The most sites from the link to a subscriber, 6: one more than the example of LibreQoS has.
pub const MAX_SITE_DEPTH: usize = abi::SL_TREE_LEVELS as usize - 2;
/// The longest name of a site, a plan or a subscriber, bytes.
pub const MAX_NETWORK_NAME_BYTES: usize = 255;
/// The heaviest weight of a site or a plan.
pub const MAX_NODE_WEIGHT: u32 = 10_000;
/// The quanta of classes under deficit round robin, bytes; stored as weights.
pub const CLASS_QUANTA_BYTES: RangeInclusive<u32> = 64..=abi::SL_NODE_WEIGHT_MAX;
/// The rates that a node of the tree can have: what its cost of a byte has bits for.
pub const NODE_RATES: RangeInclusive<Rate> = Rate(31_000)..=Rate(100_000_000_000);
/// The bursts that a plan may name, ns at its ceiling.
pub const BURST_TIMES_NS: RangeInclusive<u64> = 100_000..=4_000_000_000;

/// A direction, as a subscriber sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Towards the subscriber, whose address is the packet's destination.
    Down,
    /// From the subscriber, whose address is the packet's source.
    Up,
}

impl Way {
    /// The name, as policies have it.
    pub fn name(self) -> &'static str {
        match self {
            Way::Down => "down",
            Way::Up => "up",
        }
    }

    /// The direction of departures from an interface, with these interfaces towards the subscribers.
    pub fn out_of(interface: &str, subscriber_side: &[String]) -> Way {
        if subscriber_side.iter().any(|name| name == interface) { Way::Down } else { Way::Up }
    }
}

/// A value for each direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct EachWay<T> {
    /// Towards the subscriber.
    pub down: T,
    /// From the subscriber.
    pub up: T,
}

impl<T> EachWay<T> {
    /// The value of a direction.
    pub fn of(&self, way: Way) -> &T {
        match way {
            Way::Down => &self.down,
            Way::Up => &self.up,
        }
    }

    /// The same of both.
    pub fn map<U>(&self, of: impl Fn(&T) -> U) -> EachWay<U> {
        EachWay { down: of(&self.down), up: of(&self.up) }
    }

    /// Both pairs of values.
    pub fn zip<U: Copy>(&self, other: &EachWay<U>) -> EachWay<(T, U)>
    where
        T: Copy,
    {
        EachWay { down: (self.down, other.down), up: (self.up, other.up) }
    }

    /// Both, with the names that they have in messages.
    pub fn named(&self) -> [(&'static str, &T); 2] {
        [("down", &self.down), ("up", &self.up)]
    }
}

impl<T: Copy> EachWay<T> {
    /// One value for both directions.
    pub fn both(value: T) -> EachWay<T> {
        EachWay { down: value, up: value }
    }
}

impl<T: Copy> EachWay<Option<T>> {
    /// These values, and those of the other where there are none.
    pub fn or(&self, other: &EachWay<Option<T>>) -> EachWay<Option<T>> {
        EachWay { down: self.down.or(other.down), up: self.up.or(other.up) }
    }
}

/// The content of a policy file with subscribers. Policies with the same meaning are equal, whatever their text and wherever their tables stand.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkPolicy {
    /// The policy's name, 1 to 63 bytes; by default its file's name without `.json`.
    pub name: String,
    /// The description of the policy by its author.
    pub description: Option<String>,
    /// The link above all sites.
    pub link: NetworkLink,
    /// The interfaces towards the subscribers, at least one. There departures go down; at any other interface they go up.
    pub subscriber_side: Vec<String>,
    /// Whether more may be guaranteed than there is: a warning then, else an error.
    pub oversold: bool,
    /// The sites.
    pub sites: Sites,
    /// The plans, in the order of the file.
    pub plans: Vec<Plan>,
    /// The rules that choose the class of a packet inside its subscriber, or in a class tree.
    pub classification: Classification,
    /// The values of a class tree, whose leaf classes are stored as subscribers and whose inner classes are stored as sites. `None`: a policy with subscribers.
    pub class_tree: Option<ClassTree>,
    /// The subscribers.
    pub subscribers: Subscribers,
    /// Groups of hosts that no list names, in the order of the file.
    pub groups: Vec<HostGroup>,
    /// The guarantees of subscribers who are not listed, of a policy that is a part of another one.
    pub unlisted: Guarantees,
    /// Places of all values in the policy's own file.
    pub origin: Origin,
}

/// Sums of the guarantees of subscribers, bits per second.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guarantees {
    /// The sum of those right below the link.
    pub link: EachWay<u128>,
    /// The sum of those right below each site, in the order of the sites. Sites that are not there have none.
    pub sites: Vec<EachWay<u128>>,
}

impl Guarantees {
    /// The sums right below a site, or below the link.
    fn at(&mut self, site: Option<usize>) -> &mut EachWay<u128> {
        let Some(site) = site else { return &mut self.link };
        if self.sites.len() <= site {
            self.sites.resize(site + 1, EachWay::default());
        }
        &mut self.sites[site]
    }

    /// These sums and others.
    pub fn with(&self, others: &Guarantees) -> Guarantees {
        self.each(others, |own, other| own + other)
    }

    /// These sums without others that are part of them.
    pub fn without(&self, others: &Guarantees) -> Guarantees {
        self.each(others, u128::saturating_sub)
    }

    fn each(&self, others: &Guarantees, of: impl Fn(u128, u128) -> u128) -> Guarantees {
        let both = |own: EachWay<u128>, other: EachWay<u128>| own.zip(&other).map(|(own, other)| of(*own, *other));
        let at = |all: &Guarantees, site: usize| all.sites.get(site).copied().unwrap_or_default();
        let sites = self.sites.len().max(others.sites.len());
        Guarantees {
            link: both(self.link, others.link),
            sites: (0..sites).map(|site| both(at(self, site), at(others, site))).collect(),
        }
    }
}

/// The link above all sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NetworkLink {
    /// The rate of each direction, bits per second. `None`: not shaped.
    pub rate: EachWay<Option<Rate>>,
    /// The cost of a packet on the link.
    pub framing: Framing,
    /// The burst of the link's bucket, in bytes. None: the engine's own choice.
    pub burst: Option<Bytes>,
    /// Whether packets larger than a frame (GSO) are split before they are queued.
    pub split_gso: SplitGso,
    /// Which tx queues of an interface have a tree.
    pub queues: LinkQueues,
}

/// Sites in an order in which each comes behind its parent.
#[derive(Debug, Clone, Default)]
pub struct Sites {
    /// The sites.
    pub sites: Vec<Site>,
    /// The text that they come from; none if there are no sites.
    pub(crate) source: Option<Source>,
}

impl PartialEq for Sites {
    fn eq(&self, other: &Sites) -> bool {
        self.sites == other.sites
    }
}

/// A place through which the traffic of several subscribers passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Its name, which no other site has.
    pub name: String,
    /// The index of the site above it; none: the link.
    pub parent: Option<usize>,
    /// The guarantee. `None`: the sum of those of its subscribers and sites.
    pub rate: EachWay<Option<Rate>>,
    /// What passes at most.
    pub ceil: EachWay<Option<Rate>>,
    /// Its share beside others below the same parent, 1 to [`MAX_NODE_WEIGHT`].
    pub weight: u32,
    /// Its place in its file.
    pub(crate) span: Where,
}

/// The values that subscribers have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Its name, which no other plan has.
    pub name: String,
    /// The guarantee of a subscriber.
    pub rate: EachWay<Option<Rate>>,
    /// The ceiling of a subscriber.
    pub ceil: EachWay<Option<Rate>>,
    /// The most that passes at once after a pause. `None`: 10 ms at the ceiling, at least two full frames.
    pub burst: EachWay<Option<Burst>>,
    /// A subscriber's share beside others below the same parent, 1 to [`MAX_NODE_WEIGHT`].
    pub weight: u32,
    /// The queue of a subscriber, and of its classes which do not say otherwise.
    pub queue: Queue,
    /// The active queue management; `None` for none.
    pub codel: Option<Codel>,
    /// The limit of the queue. `None`: chosen by `resolve`.
    pub limit: Option<Limit>,
    /// How the classes of a subscriber share what it gets.
    pub scheduler: NodeScheduler,
    /// The classes inside a subscriber, up to [`MAX_PLAN_CLASSES`], each with a queue of its own. None: it has one queue.
    pub classes: Vec<PlanClass>,
    /// Its place in the policy's file.
    pub(crate) span: Where,
}

impl Plan {
    /// A plan without limits.
    pub(crate) fn new(name: &str, span: Where) -> Plan {
        Plan {
            name: name.to_owned(),
            rate: EachWay::default(),
            ceil: EachWay::default(),
            burst: EachWay::default(),
            weight: 1,
            queue: Queue::default(),
            codel: None,
            limit: None,
            scheduler: NodeScheduler::default(),
            classes: Vec::new(),
            span,
        }
    }
}

/// A burst as a policy writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Burst {
    /// Bytes, `"64kb"`.
    Bytes(Bytes),
    /// A time at the ceiling, ns, within [`BURST_TIMES_NS`]; `"20ms"`.
    TimeNs(u64),
}

/// Subscribers, and the text that they come from.
#[derive(Debug, Clone)]
pub struct Subscribers {
    /// The subscribers, in the order of the table.
    pub subscribers: Vec<Subscriber>,
    pub(crate) source: Source,
}

impl PartialEq for Subscribers {
    fn eq(&self, other: &Subscribers) -> bool {
        self.subscribers == other.subscribers
    }
}

/// A customer, or whoever else has a share of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscriber {
    /// Its key in the table, which no other has.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// The index of its site; none: the link.
    pub parent: Option<usize>,
    /// The index of its plan.
    pub plan: Option<usize>,
    /// Its guarantee, in the place of its plan's.
    pub rate: EachWay<Option<Rate>>,
    /// Its ceiling, in the place of its plan's.
    pub ceil: EachWay<Option<Rate>>,
    /// Its addresses, in the order of the table.
    pub addresses: Vec<WrittenAddress>,
    /// The place of its first row.
    pub(crate) span: Where,
}

/// Hosts that no list names: each address of the group has a leaf of its own while it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostGroup {
    /// A host of the group, as a subscriber. Its name is that of the group, which no site and no other group has, and its addresses are those of all
    /// hosts.
    pub each: Subscriber,
    /// The hosts that have leaves at once, within [`GROUP_HOSTS`].
    pub hosts: u32,
    /// The length of the prefix of IPv6 that is one host, up to 128.
    pub ipv6_length: u8,
}

impl HostGroup {
    /// The leaves of hosts, a power of two of them.
    pub fn places(&self) -> u32 {
        self.hosts.next_power_of_two()
    }
}

/// An address of a subscriber in its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenAddress {
    /// The address.
    pub address: Address,
    /// Its place in the table.
    pub(crate) span: Where,
}

impl NetworkPolicy {
    /// Whether its text alone means the same: it names itself, and no tables. To read a long text once more would tell that too.
    pub(crate) fn stands_alone(&self) -> bool {
        let Some(source) = self.origin.source() else { return false };
        let own_sites = self.sites.source.as_ref().is_none_or(|sites| sites.is(source));
        self.origin.span("/name").is_some() && own_sites && self.subscribers.source.is(source)
    }

    /// The sums of what its subscribers are guaranteed, without those that are not listed.
    pub fn guarantees(&self) -> Guarantees {
        let mut sums = Guarantees::default();
        for subscriber in &self.subscribers.subscribers {
            sums::add(sums.at(subscriber.parent), sums::bits(&self.rate(subscriber)));
        }
        sums
    }

    /// This policy as a part of a larger one, whose other subscribers are guaranteed so much. None: the guarantees do not fit together, of which the
    /// larger policy tells more.
    pub fn beside(self, unlisted: Guarantees) -> Option<NetworkPolicy> {
        let part = NetworkPolicy { unlisted, ..self };
        checks::guarantees_fit(&part).then_some(part)
    }

    /// The ids and the names of the classes that packets have, each once, by id: those of all plans, or of a class tree.
    pub fn classes(&self) -> Vec<(ClassId, String)> {
        let Some(tree) = &self.class_tree else { return classes_of(&self.plans) };
        let names = self.subscribers.subscribers.iter().map(|leaf| leaf.name.clone());
        let mut all: Vec<(ClassId, String)> = tree.leaves.iter().map(|leaf| leaf.id).zip(names).collect();
        all.sort_unstable();
        all
    }

    /// The plan of a subscriber.
    pub fn plan(&self, subscriber: &Subscriber) -> Option<&Plan> {
        subscriber.plan.and_then(|plan| self.plans.get(plan))
    }

    /// The guarantee of a subscriber: its own, or its plan's.
    pub fn rate(&self, subscriber: &Subscriber) -> EachWay<Option<Rate>> {
        subscriber.rate.or(&self.plan(subscriber).map_or(EachWay::default(), |plan| plan.rate))
    }

    /// The ceiling of a subscriber: its own, or its plan's.
    pub fn ceil(&self, subscriber: &Subscriber) -> EachWay<Option<Rate>> {
        subscriber.ceil.or(&self.plan(subscriber).map_or(EachWay::default(), |plan| plan.ceil))
    }
}
