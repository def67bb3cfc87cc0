//! The rates of a tree of subscribers.

mod selection;

pub use selection::{Selection, SubscriberOrder, SubscriberView};

use super::Earlier;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use sluice_kernel::status::{
    Address, Count, Framing, LeafClassStatus, LeafCounts, QueueStatus, SiteStatus, SubscriberStatus, TreeStatus, Way,
};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

/// The most subscribers that are written out: those that send most.
const WRITTEN: usize = 50;
/// The used part of a ceiling from which on its packets wait for it. The rate of a second is that of whole packets.
const AT_CEILING: f64 = 0.97;

/// The rates of a tree.
#[derive(Debug, Clone, Serialize)]
pub struct TreeRates {
    /// Direction as the subscribers see it: down or up.
    pub way: Way,
    /// Whether it is a class tree: then sites are inner classes, and subscribers leaf classes.
    pub is_class_tree: bool,
    /// Sites, each behind the one above it.
    pub sites: Vec<SiteRates>,
    /// All subscribers, in the order of the table. Written are their number, as `count`, and the busiest.
    #[serde(flatten, serialize_with = "number_and_busiest")]
    pub subscribers: Vec<SubscriberRates>,
    /// Packets whose address no subscriber has.
    pub nobody: LeafRates,
}

impl TreeRates {
    /// The subscribers that send, those that send most first.
    pub fn sending(&self) -> Vec<&SubscriberRates> {
        sending(&self.subscribers)
    }

    /// The subscribers that send most, up to 50.
    pub fn busiest(&self) -> Vec<&SubscriberRates> {
        busiest(&self.subscribers)
    }
}

fn sending(all: &[SubscriberRates]) -> Vec<&SubscriberRates> {
    let mut sending: Vec<&SubscriberRates> = all.iter().filter(|one| one.queue.rates.sent_bps > 0.0).collect();
    sending.sort_by(|one, other| other.queue.rates.sent_bps.total_cmp(&one.queue.rates.sent_bps));
    sending
}

fn busiest(all: &[SubscriberRates]) -> Vec<&SubscriberRates> {
    let mut busiest = sending(all);
    busiest.truncate(WRITTEN);
    busiest
}

fn number_and_busiest<S: Serializer>(all: &[SubscriberRates], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(2))?;
    map.serialize_entry("count", &all.len())?;
    map.serialize_entry("busiest", &busiest(all))?;
    map.end()
}

/// The rates of a leaf, or of all leaves below a site.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct LeafRates {
    /// Sending rate, bits per second.
    pub sent_bps: f64,
    /// Sending rate, packets per second.
    pub sent_pps: f64,
    /// Drop rate, packets per second.
    pub dropped_pps: f64,
    /// Packets and bytes now in the queue.
    pub backlog: Count,
}

impl LeafRates {
    fn add(&mut self, other: &LeafRates) {
        self.sent_bps += other.sent_bps;
        self.sent_pps += other.sent_pps;
        self.dropped_pps += other.dropped_pps;
        self.backlog.pkts += other.backlog.pkts;
        self.backlog.bytes += other.backlog.bytes;
    }

    /// The used part of a ceiling, by the bytes of packets on the link. None: there is none.
    fn used(&self, ceil_bps: Option<u64>, framing: Option<&Framing>) -> Option<f64> {
        let ceil_bps = ceil_bps.filter(|ceil| *ceil > 0)?;
        Some(super::wire_bps((self.sent_bps, self.sent_pps), framing) / ceil_bps as f64)
    }
}

/// Whether this much of a ceiling is all that it lets through.
pub fn is_at_ceiling(used: Option<f64>) -> bool {
    used.is_some_and(|used| used > AT_CEILING)
}

/// The rates of a site.
#[derive(Debug, Clone, Serialize)]
pub struct SiteRates {
    /// Name of the site.
    pub name: String,
    /// Name of the site above it. None: the link.
    pub parent: Option<String>,
    /// Sites between it and the link.
    pub depth: usize,
    /// Subscribers below it.
    pub subscribers: usize,
    /// Guarantee, bits per second.
    pub rate_bps: Option<u64>,
    /// Ceiling, bits per second.
    pub ceil_bps: Option<u64>,
    /// Used part of the ceiling, by the bytes of packets on the link: 1 is all.
    pub used: Option<f64>,
    /// The sum of the rates of its subscribers.
    #[serde(flatten)]
    pub rates: LeafRates,
}

/// The rates of a subscriber.
#[derive(Debug, Clone, Serialize)]
pub struct SubscriberRates {
    /// Its key in the table.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Its site. None: it is right below the link.
    pub site: Option<String>,
    /// Its plan.
    pub plan: Option<String>,
    /// Its addresses.
    #[serde(skip)]
    pub addresses: Arc<[Address]>,
    /// Its limits and the rates of its queue.
    #[serde(flatten)]
    pub queue: QueueRates,
    /// The counters of its queue, from zero on.
    #[serde(skip)]
    pub counts: LeafCounts,
    /// Packets that left with congestion marked, from zero on.
    #[serde(skip)]
    pub marked_pkts: u64,
    /// The rates of the classes inside it, in the order of its plan. A list of subscribers leaves them out.
    #[serde(skip)]
    pub classes: Vec<LeafClassRates>,
}

/// The limits of a subscriber, or of a class inside one, and the rates of its queue.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct QueueRates {
    /// Guarantee, bits per second.
    pub rate_bps: Option<u64>,
    /// Ceiling, bits per second.
    pub ceil_bps: Option<u64>,
    /// Used part of the ceiling, by the bytes of packets on the link: 1 is all.
    pub used: Option<f64>,
    /// The rates.
    #[serde(flatten)]
    pub rates: LeafRates,
    /// Wait of packets in the queue, ms: a mean that the last 16 or so make. None: it sends nothing, or engine `tc`, which does not measure it.
    pub wait_ms: Option<f64>,
}

/// The rates of a class inside a subscriber.
#[derive(Debug, Clone, Serialize)]
pub struct LeafClassRates {
    /// Its number, by which rules name it.
    pub id: u8,
    /// Its name.
    pub name: String,
    /// Its limits and the rates of its queue.
    #[serde(flatten)]
    pub queue: QueueRates,
}

/// The rates from one state of a tree to a later one.
pub(super) fn tree_rates<'a>(
    now: &TreeStatus,
    earlier: Earlier<&'a TreeStatus>,
    framing: Option<&Framing>,
    span_s: f64,
) -> TreeRates {
    let rates = |now: &LeafCounts, then: Earlier<&LeafCounts>| {
        let per_second = |of: fn(&LeafCounts) -> u64| {
            let count = then.of(|then| Some(of(then))).until(of(now));
            if span_s > 0.0 { count as f64 / span_s } else { 0.0 }
        };
        LeafRates {
            sent_bps: per_second(|one| one.sent.bytes) * 8.0,
            sent_pps: per_second(|one| one.sent.pkts),
            dropped_pps: per_second(|one| one.dropped_pkts),
            backlog: now.backlog,
        }
    };
    // Most stand where they stood; those who do not are looked up by their keys.
    let known: OnceCell<HashMap<&str, &SubscriberStatus>> = OnceCell::new();
    let queue = |now: &QueueStatus, then: Earlier<&QueueStatus>| {
        let rates = rates(&now.counts, then.of(|then| Some(&then.counts)));
        QueueRates {
            rate_bps: now.rate_bps,
            ceil_bps: now.ceil_bps,
            used: rates.used(now.ceil_bps, framing),
            rates,
            wait_ms: now.wait_ms.filter(|_| rates.sent_pps > 0.0),
        }
    };
    let before = |then: &'a TreeStatus, place: usize, id: &str| match then.all.get(place) {
        Some(there) if there.id == id => Some(there),
        _ => {
            let by_key = || then.all.iter().map(|one| (one.id.as_str(), one)).collect();
            known.get_or_init(by_key).get(id).copied()
        }
    };
    let subscriber = |(place, one): (usize, &SubscriberStatus)| {
        let before = |then: &'a TreeStatus| before(then, place, &one.id);
        let class = |own: &LeafClassStatus| {
            let then = earlier.of(|then| Some(&before(then)?.classes.iter().find(|then| then.id == own.id)?.queue));
            LeafClassRates { id: own.id, name: own.name.clone(), queue: queue(&own.queue, then) }
        };
        SubscriberRates {
            id: one.id.clone(),
            name: one.name.clone(),
            site: one.site.clone(),
            plan: one.plan.clone(),
            addresses: Arc::clone(&one.addresses),
            queue: queue(&one.queue, earlier.of(|then| Some(&before(then)?.queue))),
            counts: one.queue.counts,
            marked_pkts: one.queue.marked_pkts,
            classes: one.classes.iter().map(class).collect(),
        }
    };
    let subscribers: Vec<SubscriberRates> = now.all.iter().enumerate().map(subscriber).collect();
    let known: HashMap<&str, &LeafCounts> = match earlier {
        Earlier::Then(then) => then.sites.iter().map(|one| (one.name.as_str(), &one.counts)).collect(),
        _ => HashMap::new(),
    };
    let of_group = |one: &SiteStatus| rates(&one.counts, earlier.of(|_| known.get(one.name.as_str()).copied()));
    let sites = site_rates(&now.sites, &subscribers, of_group, framing);
    let nobody = rates(&now.nobody, earlier.of(|then| Some(&then.nobody)));
    TreeRates { way: now.way, is_class_tree: now.is_class_tree, sites, nobody, subscribers }
}

/// The rates of sites: of a site whose subscribers come, go or move, no counters may be compared, but those of each subscriber may. Those of a
/// group of hosts may, and not those of hosts, which come with their first packets.
fn site_rates(
    sites: &[SiteStatus],
    subscribers: &[SubscriberRates],
    of_group: impl Fn(&SiteStatus) -> LeafRates,
    framing: Option<&Framing>,
) -> Vec<SiteRates> {
    let places: HashMap<&str, usize> =
        sites.iter().enumerate().map(|(place, one)| (one.name.as_str(), place)).collect();
    let mut sums = vec![LeafRates::default(); sites.len()];
    let mut add = |rates: &LeafRates, site: Option<&str>| {
        let mut at = site;
        while let Some(place) = at.and_then(|name| places.get(name).copied()) {
            sums[place].add(rates);
            at = sites[place].parent.as_deref();
        }
    };
    let is_host = |one: &SubscriberRates| {
        one.site.as_deref().and_then(|name| places.get(name)).is_some_and(|place| sites[*place].is_group)
    };
    subscribers.iter().filter(|one| !is_host(one)).for_each(|one| add(&one.queue.rates, one.site.as_deref()));
    sites.iter().filter(|site| site.is_group).for_each(|site| add(&of_group(site), Some(&site.name)));
    let sites = sites.iter().zip(sums).map(|(one, rates)| SiteRates {
        name: one.name.clone(),
        parent: one.parent.clone(),
        depth: one.depth,
        subscribers: one.subscribers,
        rate_bps: one.rate_bps,
        ceil_bps: one.ceil_bps,
        used: rates.used(one.ceil_bps, framing),
        rates,
    });
    sites.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceiling_is_used_by_the_bytes_on_the_link() {
        let framing = Framing { extra_bytes: 24, least_bytes: 0, cells: None };
        // 1,000 packets of 76 bytes, each of which takes 100.
        let rates = LeafRates { sent_bps: 608_000.0, sent_pps: 1000.0, ..LeafRates::default() };
        let used = rates.used(Some(800_000), Some(&framing));
        assert_eq!((used, is_at_ceiling(used)), (Some(1.0), true));
        assert!(!is_at_ceiling(rates.used(Some(800_000), None)), "without framing they take less");
        assert_eq!(rates.used(None, Some(&framing)), None);
        assert_eq!(LeafRates::default().used(Some(800_000), Some(&framing)), Some(0.0));
    }
}
