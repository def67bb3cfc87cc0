//! The policy file: what an interface shall do with its traffic, from text to decisions.
//!
//! A pipeline of pure stages: text ([`Source`]) -> [`parse`] -> [`Policy`] -> [`resolve`] -> [`Resolved`]. Each stage
//! collects every error as [`Diagnostics`], which show file, line, column, the line itself, the cause and the cure.
//! [`print()`] goes back to text, [`table`] shows a resolved policy to people, [`load`] finds files and profiles.
//!
//! Nothing here touches an interface or knows an engine's tables.

mod bytes;
mod diagnostic;
mod dscp;
mod limit;
mod limits;
mod link;
mod lint;
mod parse;
mod policy;
mod print;
mod profile;
mod quantity;
mod rank;
mod rate;
mod resolve;
mod scheduler;
mod shadow;
mod source;
mod suggest;
mod table;
mod time;

pub use bytes::Bytes;
pub use diagnostic::{Diagnostic, Diagnostics, Kind, Severity};
pub use ipnet::IpNet;
pub use limit::Limit;
pub use link::{Cells, Framing, Link, SplitGso};
pub use parse::{ALL_KEYS, parse};
pub use policy::{
    Class, ClassFrom, ClassId, DEFAULT_FLOWS, Exceed, FORMAT_VERSION, FRAME_BYTES, LATENCY_BUDGETS_NS,
    MAX_CLASS_NAME_BYTES, MAX_CLASSES, MAX_FLOWS, MAX_NAME_BYTES, MAX_QUEUED_PKTS, MAX_RULES, MAX_WEIGHT, Malformed,
    Mode, Policy, Protocol, Rule,
};
pub use print::print;
pub use profile::{LoadError, load, profiles};
pub use quantity::UnitError;
pub use rank::Rank;
pub use rate::Rate;
pub use resolve::{Context, Engine, Resolved, ResolvedClass, resolve};
pub use scheduler::Scheduler;
pub use source::{Origin, Source};
pub use table::table;

/// The JSON Schema of policy files, as it ships beside the profiles.
pub const SCHEMA: &str = include_str!("../../../policies/policy.schema.json");
