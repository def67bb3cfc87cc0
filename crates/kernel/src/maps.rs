//! The pinned maps that programs and commands share, each read and written in one place.

pub(crate) mod arrivals;
pub(crate) mod counters;
pub mod flows;
pub(crate) mod forwarding;
pub(crate) mod observing;
pub(crate) mod schedulers;
pub(crate) mod shared;
pub(crate) mod tables;
pub(crate) mod tree;
pub(crate) mod workers;
