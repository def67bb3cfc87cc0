//! The policy file: an interface's treatment of traffic, from text to decisions.
//!
//! A pipeline of pure stages: text ([`Source`]) -> [`parse`] -> [`Policy`] -> [`resolve`] -> [`Resolved`]. Each stage
//! collects every error as [`Diagnostics`], which show file, line, column, the line itself, the cause and the cure.
//! [`print()`] goes back to text, [`table`] shows a resolved policy to people, [`load`] finds files and profiles.
//!
//! A policy with subscribers goes the same way in [`network`]: [`NetworkPolicy`], then [`network::Network`].
//!
//! Nothing here touches an interface or knows an engine's tables.

#[macro_use]
mod listed;

mod bytes;
mod ceiling;
mod class_id;
mod diagnostic;
pub mod difference;
mod dscp;
pub mod edit;
mod engine;
mod excerpt;
mod forward;
mod icmp;
mod limit;
mod limits;
mod link;
mod lint;
mod mark;
pub mod network;
mod one_queue;
mod parse;
mod policy;
mod print;
mod profile;
mod quantity;
mod queue;
mod rank;
mod rate;
mod resolve;
mod resolved;
mod rule;
mod scheduler;
mod set;
mod shadow;
mod source;
mod suggest;
mod sums;
mod table;
mod tcp_flags;
mod terms;
mod time;
mod window;
mod without_kernel;

pub use bytes::{Bytes, FRAME_BYTES};
pub use ceiling::{Ceiling, Limits, SharedCeiling};
pub use class_id::ClassId;
pub use diagnostic::{Diagnostic, Diagnostics, Kind, Place, Severity};
pub use difference::{Difference, difference};
pub use engine::Engine;
pub use forward::{
    DEFAULT_CONNECTIONS, Forward, ForwardSource, LEAST_CONNECTIONS, MAX_CONNECTIONS, MAX_FORWARDS, MAX_TARGETS,
    OldConnections, Target, Transport,
};
pub use ipnet::IpNet;
pub use limit::Limit;
pub use link::{Cells, Framing, Link, LinkQueues, SplitGso};
pub use network::NetworkPolicy;
pub use one_queue::OneQueue;
pub use parse::pointer::pointers;
pub use parse::{ALL_KEYS, parse, parse_file, parse_file_for, parse_file_with};
pub use policy::{
    Class, ClassFrom, DEFAULT_FLOWS, Exceed, FORMAT_VERSION, IcmpType, LATENCY_BUDGETS_NS, MAX_CLASS_NAME_BYTES,
    MAX_CLASSES, MAX_FLOWS, MAX_INTERFACE_BYTES, MAX_INTERFACES, MAX_NAME_BYTES, MAX_QUEUED_PKTS, MAX_RULES,
    MAX_SET_NAME_BYTES, MAX_WEIGHT, Malformed, Mode, Policy, Protocol, Rule, TcpFlags, Term, Terms,
};
pub use print::{asks, print, written};
pub use profile::{LoadError, load, load_for, profiles};
pub use quantity::UnitError;
pub use queue::{Codel, Flows, Hosts, Queue};
pub use rank::Rank;
pub use rate::Rate;
pub use resolve::resolve;
pub use resolved::{Context, Resolved, ResolvedClass, ResolvedRule};
pub use scheduler::Scheduler;
pub use set::{PolicyFile, PolicySet};
pub use source::{Origin, Source};
pub use table::table;
pub use window::{PIFO_BUCKETS, rank_resolution, rank_shift};

/// The names in policies, for other crates that read or print them.
pub mod names {
    pub use crate::dscp::{name as dscp_name, value as dscp};

    /// The number of a named ICMP type in ICMP or ICMPv6, in any case; `None` if it has none there.
    pub fn icmp_type(name: &str, v6: bool) -> Option<u8> {
        crate::icmp::by_name(name).and_then(|kind| if v6 { kind.v6 } else { kind.v4 })
    }

    /// TCP flags between commas, such as `syn,ack`, as the low byte of RFC 9293's control bits.
    pub fn tcp_flags(names: &str) -> Option<u8> {
        let bit = |name: &str| {
            let place = crate::tcp_flags::NAMES.iter().position(|known| known.eq_ignore_ascii_case(name.trim()))?;
            Some(1 << place)
        };
        names.split(',').try_fold(0, |flags, name| Some(flags | bit(name)?))
    }
}

/// The JSON Schema of policy files, as it ships beside the profiles.
pub const SCHEMA: &str = include_str!("../../../policies/policy.schema.json");
