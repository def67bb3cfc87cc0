//! The queues of classes below HTB, as tc shows them. (It shows qdiscs as JSON, but not classes.)

use crate::engine::htb;
use crate::system::iproute;
use serde::Deserialize;
use sluice_error::Result;

/// A qdisc and its counters.
#[derive(Debug, Deserialize)]
pub(crate) struct Leaf {
    pub kind: String,
    #[serde(default)]
    pub parent: String,
    pub bytes: u64,
    pub packets: u64,
    pub drops: u64,
    #[serde(default)]
    pub backlog: u64,
    #[serde(default)]
    pub qlen: u64,
    /// fq_codel's marks of congestion.
    #[serde(default)]
    pub ecn_mark: u64,
    #[serde(default)]
    pub options: serde_json::Value,
}

/// Every qdisc of a device.
pub(crate) fn of_device(device: &str) -> Result<Vec<Leaf>> {
    iproute::json("tc", &format!("-s -j qdisc show dev {device}"))
}

/// The queue of a class.
pub(crate) fn of_class(leaves: &[Leaf], class: u8) -> Option<&Leaf> {
    let parent = htb::parent_of(class);
    leaves.iter().find(|leaf| leaf.parent == parent)
}

/// Number of packets in the queue of a class below HTB.
pub(crate) fn queued_pkts(device: &str, class: u8) -> Result<u64> {
    Ok(of_class(&of_device(device)?, class).map_or(0, |leaf| leaf.qlen))
}
