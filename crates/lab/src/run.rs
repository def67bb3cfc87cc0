//! The run of a job's trials, one after the other, here or in a virtual machine.

pub mod campaign;
pub mod chain;
pub mod command;
pub mod contender;
pub mod experiment;
pub mod hops;
pub mod job;
mod model;
pub mod network;
mod port;
pub mod progress;
pub mod sampler;
pub mod store;
pub mod tap;
pub mod traffic;
pub mod tree;
pub mod trial;
pub mod virtual_machine;
