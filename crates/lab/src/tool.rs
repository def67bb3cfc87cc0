//! The programs that make and measure traffic: their arguments and their output.

pub mod irtt;
pub mod offload;
pub mod ping;
pub mod qdisc;
pub mod sluice;
pub mod web;
