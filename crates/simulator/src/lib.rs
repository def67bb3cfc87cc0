//! A deterministic simulator of the scheduler core: sources send packets to the tx queues of a port, each with a scheduler instance of `sched/`, and
//! the port sends on a link. Time is a number, and randomness comes from one seed, so a run can be had again.
//!
//! ```text
//! sources -> instances (sluice_core), one for each tx queue -> rings of the port -> link -> deliveries
//! ```
//!
//! Schedulers of pipes have a loop of their own (`pipes`), before a card that shapes and refuses (`card`).

pub mod card;
mod events;
mod link;
pub mod pipes;
mod port;
pub mod scaling;
mod simulation;
mod source;

pub use link::Link;
pub use port::{Packet, Port};
pub use simulation::{Delivery, Simulation};
pub use source::{Pattern, Source};

/// A second in ns.
pub const SECOND_NS: u64 = 1_000_000_000;
