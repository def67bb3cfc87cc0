//! The programs that make and look at traffic: how each is called, and what it answers.

pub mod irtt;
pub mod offload;
pub mod ping;
pub mod qdisc;
pub mod sluice;
pub mod web;
