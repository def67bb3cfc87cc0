//! The values that the status of a tree of classes is made of.

use crate::status::Count;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use sluice_policy::network::{Address, Way};
use std::cmp::Reverse;
use std::sync::Arc;

/// The most subscribers that a status names.
const BUSIEST: usize = 10;

/// The tree of a policy with subscribers, in the direction of the interface's departures; on a side of a wire, of its arrivals.
#[derive(Debug, Clone, Serialize)]
pub struct TreeStatus {
    /// Direction as the subscribers see it: down or up.
    pub way: Way,
    /// Whether it is a class tree: then sites are inner classes, and subscribers leaf classes.
    pub is_class_tree: bool,
    /// Interfaces at whose arrivals packets are dropped that the queue of a subscriber has no room for.
    pub early_drop_at: Vec<String>,
    /// Sites, each behind the one above it, and groups of hosts.
    pub sites: Vec<SiteStatus>,
    /// All subscribers in the order of the table, then the hosts of groups that are there. Written are their number, as `subscribers`, and the
    /// busiest.
    #[serde(flatten, serialize_with = "number_and_busiest")]
    pub all: Vec<SubscriberStatus>,
    /// Packets whose address no subscriber has.
    pub nobody: LeafCounts,
}

impl TreeStatus {
    /// The subscribers that have sent the most bytes, up to ten.
    pub fn busiest(&self) -> Vec<&SubscriberStatus> {
        busiest(&self.all)
    }
}

fn busiest(all: &[SubscriberStatus]) -> Vec<&SubscriberStatus> {
    let mut order: Vec<&SubscriberStatus> = all.iter().filter(|one| one.queue.counts.sent.bytes > 0).collect();
    order.sort_by_key(|one| Reverse(one.queue.counts.sent.bytes));
    order.truncate(BUSIEST);
    order
}

fn number_and_busiest<S: Serializer>(all: &[SubscriberStatus], serializer: S) -> std::result::Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(2))?;
    map.serialize_entry("subscribers", &all.len())?;
    map.serialize_entry("busiest", &busiest(all))?;
    map.end()
}

fn as_texts<S: Serializer>(addresses: &[Address], serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_seq(addresses.iter().map(ToString::to_string))
}

/// What leaves have counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LeafCounts {
    /// Packets and bytes that left.
    pub sent: Count,
    /// Packets that were dropped.
    pub dropped_pkts: u64,
    /// Packets and bytes now in the queue.
    pub backlog: Count,
}

impl LeafCounts {
    pub(super) fn add(&mut self, other: &LeafCounts) {
        self.sent.add(other.sent);
        self.dropped_pkts += other.dropped_pkts;
        self.backlog.add(other.backlog);
    }
}

/// A site.
#[derive(Debug, Clone, Serialize)]
pub struct SiteStatus {
    /// Its name.
    pub name: String,
    /// The site above it. None: the link.
    pub parent: Option<String>,
    /// Sites between it and the link.
    pub depth: usize,
    /// Whether it is a group of hosts.
    pub is_group: bool,
    /// Subscribers below it, those of its sites included; of a group of hosts, those that are there.
    pub subscribers: usize,
    /// Guarantee, bits per second.
    pub rate_bps: Option<u64>,
    /// Ceiling, bits per second.
    pub ceil_bps: Option<u64>,
    /// Fill level of the ceiling's bucket, 0 to 1: at 0 all below it waits.
    pub ceil_fill: Option<f64>,
    /// What its subscribers have counted.
    #[serde(flatten)]
    pub counts: LeafCounts,
}

/// A subscriber.
#[derive(Debug, Clone, Serialize)]
pub struct SubscriberStatus {
    /// Its key in the table.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Its site. None: it is right below the link.
    pub site: Option<String>,
    /// Its plan.
    pub plan: Option<String>,
    /// Its addresses.
    #[serde(serialize_with = "as_texts")]
    pub addresses: Arc<[Address]>,
    /// Its limits, and the counters of its queue since it came.
    #[serde(flatten)]
    pub queue: QueueStatus,
    /// The classes inside it, in the order of its plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<LeafClassStatus>,
}

/// The limits and the counters of a subscriber, or of a class inside one.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct QueueStatus {
    /// Guarantee, bits per second.
    pub rate_bps: Option<u64>,
    /// Ceiling, bits per second.
    pub ceil_bps: Option<u64>,
    /// Fill level of the ceiling's bucket, 0 to 1: at 0 its packets wait.
    pub ceil_fill: Option<f64>,
    /// The counters.
    #[serde(flatten)]
    pub counts: LeafCounts,
    /// Packets that left with congestion marked, instead of being dropped.
    pub marked_pkts: u64,
    /// Wait of packets in the queue, ms: a mean that the last 16 or so make. None: none was sent, or engine `tc`, which does not measure it.
    pub wait_ms: Option<f64>,
}

/// A class inside a subscriber.
#[derive(Debug, Clone, Serialize)]
pub struct LeafClassStatus {
    /// Its number, by which rules name it.
    pub id: u8,
    /// Its name.
    pub name: String,
    /// Its limits inside the subscriber, and the counters of its queue.
    #[serde(flatten)]
    pub queue: QueueStatus,
}
