//! The programs that make and measure traffic: their arguments and their output.

pub mod frames;
pub mod irtt;
pub mod nginx;
pub mod offload;
pub mod ping;
pub mod qdisc;
pub mod siege;
pub mod sluice;
pub mod web;
pub mod wrk;
