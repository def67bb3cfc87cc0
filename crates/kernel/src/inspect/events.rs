//! The events of managed interfaces: messages of their programs while a listener has a lease (`abi/watch.h`), and changes by commands.

mod listener;

use crate::inspect::probe::Metadata;
use serde::Serialize;
use sluice_abi as abi;
use std::net::IpAddr;

pub use listener::Listener;

/// The messages to listen to.
#[derive(Debug, Clone)]
pub enum Subject {
    /// Rare events.
    Events,
    /// Packets that leave the queues or are dropped.
    Packets(Filter),
}

/// A filter of packets. None: any value.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// One in so many packets that leave the queues or are dropped; at least 1.
    pub one_in: u32,
    /// IP protocol number.
    pub protocol: Option<u16>,
    /// Source address.
    pub src: Option<IpAddr>,
    /// Destination address.
    pub dst: Option<IpAddr>,
    /// Source port.
    pub src_port: Option<u16>,
    /// Destination port.
    pub dst_port: Option<u16>,
}

/// A message of a program, or a change by a command or of a link.
#[derive(Debug, Clone, Serialize)]
pub struct Event {
    /// Time of the event, seconds since 1970.
    pub at_s: f64,
    /// The managed interface.
    pub interface: String,
    /// Kind of the event.
    #[serde(flatten)]
    pub what: EventKind,
}

/// A class in a direction.
#[derive(Debug, Clone, Serialize)]
pub struct Place {
    /// egress or ingress.
    pub direction: &'static str,
    /// Number of the class.
    pub class: u8,
    /// Name of the class.
    pub name: String,
}

/// The kinds of events.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// A class drops packets, after a second without drops.
    Drops {
        /// The class.
        #[serde(flatten)]
        place: Place,
        /// Reason of the drops, as `sluice status` names it.
        reason: &'static str,
    },
    /// A token bucket is empty, after a second in which it was not.
    Exhausted {
        /// The class of the bucket.
        #[serde(flatten)]
        place: Place,
        /// The bucket: ceil, peak, or a reason of `sluice status` by which hooks police.
        bucket: &'static str,
    },
    /// Packets of a class have waited longer than CoDel's target, or else the latency budget, for 100 ms.
    Late {
        /// The class.
        #[serde(flatten)]
        place: Place,
        /// Wait of the last packet, milliseconds.
        wait_ms: f64,
    },
    /// A packet has left the queues, or was dropped.
    Packet(Box<Packet>),
    /// Another policy is in force.
    Policy {
        /// Name of the policy.
        policy: String,
        /// Number of the configuration.
        generation: u32,
    },
    /// The interface is managed.
    Managed,
    /// The interface is not managed any more.
    Unmanaged,
    /// The link is up and carries packets.
    LinkUp,
    /// The link is down, or carries no packets.
    LinkDown,
}

/// A packet that has left the queues, or was dropped.
#[derive(Debug, Clone, Serialize)]
pub struct Packet {
    /// Class of the packet.
    #[serde(flatten)]
    pub place: Place,
    /// Reason of the drop; none: the packet was sent (with engine tc: given to HTB).
    pub dropped: Option<&'static str>,
    /// Time in the queue, milliseconds; none where it is not measured (engine tc, hooks).
    pub wait_ms: Option<f64>,
    /// Whether the packet's flow gets a mark of congestion for it.
    pub marked: bool,
    /// Length of the packet, bytes.
    pub length_bytes: u32,
    /// First bytes of the packet.
    #[serde(skip)]
    pub bytes: Vec<u8>,
    /// Metadata of the packet, beside its bytes.
    #[serde(skip)]
    pub metadata: Metadata,
}

/// Name of an `enum sl_refusal`.
fn reason(number: u8) -> &'static str {
    number.checked_sub(1).and_then(|index| abi::refusal_names().nth(index.into())).unwrap_or("unknown")
}

fn bucket(number: u8) -> &'static str {
    match u32::from(number) {
        abi::SL_BUCKET_CEIL => return "ceil",
        abi::SL_BUCKET_PEAK => return "peak",
        _ => {}
    }
    abi::limit_names().nth(number.into()).unwrap_or("unknown")
}

/// A reason in words.
pub fn explained(reason: &str) -> &'static str {
    let known = abi::drop_reasons().find(|known| known.name == reason);
    known.map_or("a rate before the queues is used up", |known| known.text)
}
