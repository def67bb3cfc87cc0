//! What the programs of managed interfaces tell while somebody listens (`abi/watch.h`), and what commands have changed meanwhile.

mod listener;

use crate::inspect::probe::Metadata;
use serde::Serialize;
use sluice_abi as abi;
use std::net::IpAddr;

pub use listener::Listener;

/// What to listen to.
#[derive(Debug, Clone)]
pub enum Subject {
    /// What happens seldom and matters.
    Events,
    /// The way of packets.
    Packets(Filter),
}

/// Which packets. None: whatever it is.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// One in so many that leave the queues or are dropped; at least 1.
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

/// Something that was told.
#[derive(Debug, Clone, Serialize)]
pub struct Event {
    /// When, seconds since 1970.
    pub at_s: f64,
    /// The managed interface.
    pub interface: String,
    /// What.
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
    /// Its name.
    pub name: String,
}

/// What has happened.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// A class drops packets, which it has not for a second.
    Drops {
        /// Which.
        #[serde(flatten)]
        place: Place,
        /// Why: a reason of `sluice status`.
        reason: &'static str,
    },
    /// A token bucket is empty, which it has not been for a second.
    Exhausted {
        /// Whose class.
        #[serde(flatten)]
        place: Place,
        /// ceil, or a reason of `sluice status` by which hooks police.
        bucket: &'static str,
    },
    /// Packets of a class have waited longer than its target for 100 ms.
    Late {
        /// Which.
        #[serde(flatten)]
        place: Place,
        /// What the last one has waited, milliseconds.
        wait_ms: f64,
    },
    /// A packet's way has ended here.
    Packet(Box<Packet>),
    /// Another policy is in force.
    Policy {
        /// Its name.
        policy: String,
        /// Number of the configuration.
        generation: u32,
    },
    /// The interface is managed.
    Managed,
    /// It is not any more.
    Unmanaged,
    /// The link is up and carries packets.
    LinkUp,
    /// It does not.
    LinkDown,
}

/// A packet whose way has ended.
#[derive(Debug, Clone, Serialize)]
pub struct Packet {
    /// Its class.
    #[serde(flatten)]
    pub place: Place,
    /// Why it was dropped; none: it was sent (with engine tc: given to HTB).
    pub dropped: Option<&'static str>,
    /// Time in the queue, milliseconds; none where nobody measures it (engine tc, hooks).
    pub wait_ms: Option<f64>,
    /// Whether its flow gets a mark of congestion for it.
    pub marked: bool,
    /// Its length, bytes.
    pub length_bytes: u32,
    /// How it begins.
    #[serde(skip)]
    pub bytes: Vec<u8>,
    /// What the host knows of it.
    #[serde(skip)]
    pub metadata: Metadata,
}

/// An `enum sl_drop`, or beyond those an `enum sl_limit`.
fn reason(number: u8) -> &'static str {
    let mut drops = abi::drop_reasons().map(|reason| reason.name).chain(abi::limit_names());
    drops.nth(number.into()).unwrap_or("unknown")
}

fn bucket(number: u8) -> &'static str {
    if u32::from(number) == abi::SL_BUCKET_CEIL {
        return "ceil";
    }
    abi::limit_names().nth(number.into()).unwrap_or("unknown")
}

/// A reason in words.
pub fn explained(reason: &str) -> &'static str {
    let known = abi::drop_reasons().find(|known| known.name == reason);
    known.map_or("a rate before the queues is used up", |known| known.text)
}
