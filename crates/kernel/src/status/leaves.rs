//! The queues of classes below HTB, as tc shows them. (It shows qdiscs as JSON, but not classes.)

use super::{ClassStatus, Count, add_drops};
use crate::error::Result;
use crate::qdiscs::Qdisc;
use crate::{htb, iproute};
use serde::Deserialize;

/// A qdisc and its counters.
#[derive(Debug, Deserialize)]
pub(crate) struct Leaf {
    kind: String,
    handle: String,
    #[serde(default)]
    root: bool,
    #[serde(default)]
    parent: String,
    bytes: u64,
    packets: u64,
    drops: u64,
    #[serde(default)]
    backlog: u64,
    #[serde(default)]
    qlen: u64,
    /// fq_codel's marks of congestion.
    #[serde(default)]
    ecn_mark: u64,
}

/// Every qdisc of a device.
pub(crate) fn leaves(device: &str) -> Result<Vec<Leaf>> {
    iproute::json("tc", &format!("-s -j qdisc show dev {device}"))
}

/// The root among them.
pub(crate) fn root(leaves: &[Leaf]) -> Option<Qdisc> {
    let root = leaves.iter().find(|leaf| leaf.root)?;
    Some(Qdisc { kind: root.kind.clone(), handle: root.handle.clone(), root: true })
}

fn leaf(leaves: &[Leaf], class: u8) -> Option<&Leaf> {
    let parent = htb::parent_of(class);
    leaves.iter().find(|leaf| leaf.parent == parent)
}

/// What waits in the queue of a class below HTB.
pub(crate) fn queued_pkts(device: &str, class: u8) -> Result<u64> {
    Ok(leaf(&leaves(device)?, class).map_or(0, |leaf| leaf.qlen))
}

pub(super) fn add(classes: &mut [ClassStatus], leaves: &[Leaf]) {
    for class in classes {
        let Some(leaf) = leaf(leaves, class.id) else { continue };
        class.sent.add(Count { pkts: leaf.packets, bytes: leaf.bytes });
        class.backlog.add(Count { pkts: leaf.qlen, bytes: leaf.backlog });
        class.dropped.add_pkts(leaf.drops);
        class.marked.pkts += leaf.ecn_mark;
        add_drops(class, "queue", leaf.drops);
    }
}
